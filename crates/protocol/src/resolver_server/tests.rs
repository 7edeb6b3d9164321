//! Resolvers and daemons that talk to each other, and frames made by hand.

mod cluster;
mod finding;
mod hostile;
mod seeds;

use super::*;
use crate::resolution::SessionTransport;

fn announcement(session: u64) -> Announcement {
    Announcement {
        session,
        transport: SessionTransport::Unicast,
        control: SocketAddr::from(([0, 0, 0, 0], 4_000)),
        group: None,
        host: 1,
        domain: 0,
        pid: 9,
        datagram_bytes: 1_472,
    }
}
