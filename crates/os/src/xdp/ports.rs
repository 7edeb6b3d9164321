//! Addresses and ports whose datagrams go to AF_XDP sockets.
//!
//! A frame goes to one socket. So a group that several sockets of this host have joined is left to
//! the kernel, which copies it to each of them.

use super::bpf;
use super::program::PortKey;
use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};

/// Ports of one device, and the kernel's map of them.
#[derive(Debug)]
pub(super) struct Ports {
    map: OwnedFd,
    /// First places in the map of sockets of those that want an address.
    wanted: HashMap<SocketAddrV4, Vec<u32>>,
    /// Addresses in the kernel's map.
    redirected: HashMap<SocketAddrV4, u32>,
}

impl Ports {
    pub(super) fn new(map: OwnedFd) -> Self {
        Self { map, wanted: HashMap::new(), redirected: HashMap::new() }
    }

    /// Sends datagrams for `address` to the sockets from `place` on, if they are the only ones.
    pub(super) fn add(&mut self, address: SocketAddrV4, place: u32) {
        self.wanted.entry(address).or_default().push(place);
        self.update(address, &system_sockets());
    }

    pub(super) fn remove(&mut self, address: SocketAddrV4, place: u32) {
        if let Some(places) = self.wanted.get_mut(&address) {
            places.retain(|known| *known != place);
            if places.is_empty() {
                self.wanted.remove(&address);
            }
        }
        self.update(address, &system_sockets());
    }

    /// Looks for sockets of other programs in the groups.
    pub(super) fn refresh(&mut self) {
        let groups = self.wanted.keys().copied().filter(|it| it.ip().is_multicast());
        let groups: Vec<SocketAddrV4> = groups.collect();
        if groups.is_empty() {
            return;
        }
        let sockets = system_sockets();
        groups.into_iter().for_each(|group| self.update(group, &sockets));
    }

    fn update(&mut self, address: SocketAddrV4, sockets: &[SocketAddrV4]) {
        let places = self.wanted.get(&address).map_or(&[][..], Vec::as_slice);
        // Each socket here has one of the system beside it, bound to the same address.
        let of_system = sockets.iter().filter(|socket| receives(**socket, address)).count();
        let is_alone = !address.ip().is_multicast() || of_system <= 1;
        let place = match places {
            [place] if is_alone => Some(*place),
            _ => None,
        };
        if self.redirected.get(&address).copied() == place {
            return;
        }
        let key = PortKey::of(address);
        let changed = match place {
            Some(place) => bpf::update(self.map.as_fd(), &key, &place),
            None => bpf::delete(self.map.as_fd(), &key),
        };
        // After an error datagrams take the way that they took before; the next call tries again.
        if changed.is_ok() {
            match place {
                Some(place) => self.redirected.insert(address, place),
                None => self.redirected.remove(&address),
            };
        }
    }
}

/// Whether a socket bound to `local` may be sent what comes to `group`.
fn receives(local: SocketAddrV4, group: SocketAddrV4) -> bool {
    local.port() == group.port() && (local.ip() == group.ip() || local.ip().is_unspecified())
}

/// Local addresses of all IPv4 UDP sockets of this network namespace: /proc/net/udp.
fn system_sockets() -> Vec<SocketAddrV4> {
    let text = std::fs::read_to_string("/proc/thread-self/net/udp").unwrap_or_default();
    text.lines().skip(1).filter_map(local_address).collect()
}

fn local_address(line: &str) -> Option<SocketAddrV4> {
    let (ip, port) = line.split_ascii_whitespace().nth(1)?.split_once(':')?;
    let ip = Ipv4Addr::from(u32::from_str_radix(ip, 16).ok()?.to_le_bytes());
    Some(SocketAddrV4::new(ip, u16::from_str_radix(port, 16).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_of_the_system_are_read() {
        let line = "  812: 0247C0EF:3840 00000000:0000 07 00000000:00000000 00:00000000 00000000";
        let group: SocketAddrV4 = "239.192.71.2:14400".parse().expect("an address");
        assert_eq!(local_address(line), Some(group));
        assert_eq!(local_address("  sl  local_address rem_address"), None);
        assert_eq!(local_address(""), None);
        let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 14_400);
        assert!(receives(any, group) && receives(group, group));
        assert!(!receives(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 14_400), group));
    }
}
