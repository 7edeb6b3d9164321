//! The integration tests of this crate, in one program.

mod resolution;
mod resolver_server;

use lanecast_protocol::resolution::{Announcement, SessionTransport};
use lanecast_wire::net::{AdvertEntry, Frame, address_bytes};
use std::net::SocketAddr;
use zerocopy::FromZeros;

/// A session of a publisher that is reached where its Adverts come from.
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

/// The same as an entry of an Advert.
fn entry(session: u64, flags: u8) -> AdvertEntry {
    let announced = announcement(session);
    let mut entry = AdvertEntry::new_zeroed();
    entry.session = session.into();
    entry.host = announced.host.into();
    entry.pid = announced.pid.into();
    (entry.control, entry.control_port) = address_bytes(announced.control);
    entry.datagram_bytes = announced.datagram_bytes.into();
    entry.transport = 2;
    entry.flags = flags;
    entry
}

/// The only frame in `bytes`.
fn split(bytes: &[u8]) -> Frame<'_> {
    let (frame, rest) = Frame::split(bytes).expect("a frame");
    assert!(rest.is_empty());
    frame
}
