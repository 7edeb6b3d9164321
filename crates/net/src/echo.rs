//! Whether what is sent to a group comes back to this host.

use lanecast_os::interface::interfaces;
use lanecast_os::udp::UdpSocket;
use lanecast_protocol::sender::Sender;
use std::net::SocketAddr;

/// Follows who listens: a host of which no receiver is needs no copy of each datagram. That copy
/// would take as long as sending did, and every subscriber here to anything in the group would
/// receive it, only to throw it away.
#[derive(Debug)]
pub(crate) struct Echo {
    is_on: bool,
    /// The turnover of receivers that `is_on` was found for.
    seen: u64,
}

impl Echo {
    /// As sockets begin.
    pub(crate) const fn new() -> Self {
        Self { is_on: true, seen: 0 }
    }

    /// To be called before anything is sent to receivers that have just been let in.
    #[inline]
    pub(crate) fn follow(&mut self, sender: &Sender, socket: &UdpSocket) {
        if self.seen != sender.membership_changes() {
            self.seen = sender.membership_changes();
            self.turn(is_needed(sender.addresses()), socket);
        }
    }

    #[cold]
    fn turn(&mut self, on: bool, socket: &UdpSocket) {
        // Where it cannot be set it stays as it was, which is on at first.
        if on != self.is_on && socket.echo_multicast(on).is_ok() {
            self.is_on = on;
        }
    }
}

/// Whether a receiver is on this host, or may be.
fn is_needed(receivers: impl Iterator<Item = SocketAddr>) -> bool {
    let Ok(interfaces) = interfaces() else { return true };
    let mut receivers = receivers.map(|receiver| receiver.ip());
    let here = |ip| interfaces.iter().flat_map(|it| &it.addresses).any(|(own, _)| *own == ip);
    receivers.any(|ip| ip.is_loopback() || here(ip))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_receivers_on_this_host_need_it() {
        let there = SocketAddr::from(([203, 0, 113, 200], 9));
        let here = SocketAddr::from(([127, 0, 0, 5], 9));
        assert!(!is_needed([there].into_iter()));
        assert!(is_needed([there, here].into_iter()));
        let own = interfaces().expect("known").into_iter().flat_map(|it| it.addresses);
        for (ip, _) in own {
            assert!(is_needed([SocketAddr::new(ip, 9)].into_iter()), "{ip}");
        }
    }
}
