//! Streams of other members: their addresses, and the meaning of their ends.

use crate::watch;
use lanecast_membership::{Departure, MemberId};
use lanecast_transport::{CloseReason, Stream};
use std::net::IpAddr;

/// Keeps the address of a member between hosts.
pub(crate) fn remember(addresses: &mut Vec<(MemberId, IpAddr)>, stream: &Stream) {
    let id = MemberId(stream.session.0);
    addresses.retain(|(it, _)| *it != id);
    addresses.extend(watch::address_of(&stream.source).map(|address| (id, address)));
}

/// The meaning of a stream's end for its member; none if the machine has to find out.
pub(crate) fn departure(stream: &Stream, why: CloseReason) -> Option<Departure> {
    match why {
        CloseReason::Closed => Some(Departure::Left),
        // The kernel freed the lock of a process on this host. Between hosts it is only silence.
        CloseReason::Died if watch::address_of(&stream.source).is_none() => {
            Some(Departure::Crashed)
        }
        _ => None,
    }
}
