//! Control of multicast loopback: whether datagrams to the group come back to this host.

use crate::datagram_socket::DatagramSocket;
use lanecast_os::interface::interfaces;
use lanecast_protocol::sender::Sender;
use std::net::SocketAddr;

/// Turns loopback off while no receiver is on this host. The copy of each datagram would cost as
/// much as sending it, and every subscriber here to the group would receive and drop it.
#[derive(Debug)]
pub(crate) struct MulticastLoopback {
    is_on: bool,
    /// The sender's count of membership changes when `is_on` was set.
    seen: u64,
}

impl MulticastLoopback {
    /// Loopback is on, as in a new socket.
    pub(crate) const fn new() -> Self {
        Self { is_on: true, seen: 0 }
    }

    /// Adapts to joined and departed receivers; called before anything is sent to them.
    #[inline]
    pub(crate) fn update(&mut self, sender: &Sender, socket: &mut DatagramSocket) {
        // The count is cheap; the list of the host's interfaces is not, and changes matter only
        // then.
        if self.seen != sender.membership_changes() {
            self.seen = sender.membership_changes();
            self.set(is_needed(sender.addresses()), socket);
        }
    }

    #[cold]
    fn set(&mut self, on: bool, socket: &mut DatagramSocket) {
        // A failure leaves the socket as it was: on, at first.
        if on != self.is_on && socket.set_multicast_loopback(on).is_ok() {
            self.is_on = on;
        }
    }
}

/// Whether a receiver is on this host, or may be as the host's addresses are unknown.
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
