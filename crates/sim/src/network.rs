//! Hosts, the links between them, multicast groups, and cuts.

use crate::link::{Link, LinkConditions, Passage};
use crate::rng::SimRng;
use lanecast_protocol::Nanos;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};

/// A host.
pub type Host = u16;
/// A socket; numbers are unique in the network.
pub type Socket = u16;

/// Longest datagram.
pub const DATAGRAM_MAX: usize = 65_507;

/// Address of a host's socket.
pub fn address(host: Host, socket: Socket) -> SocketAddr {
    let place = Ipv4Addr::from_bits(10 << 24 | u32::from(host));
    SocketAddr::from((place, socket))
}

/// Address of a multicast group.
pub fn group_address(group: u8) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::new(239, 0, 0, group), 40_000))
}

/// Host and socket of an address; `None` for a group.
pub fn owner(address: SocketAddr) -> Option<(Host, Socket)> {
    let SocketAddr::V4(address) = address else { return None };
    let place = address.ip().to_bits();
    (place >> 24 == 10).then_some((place as u16, address.port()))
}

/// Fate of a datagram on one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Arrives at the socket.
    Arrives(Nanos),
    /// The link lost it.
    Lost,
    /// The link's queue was full.
    Overflown,
    /// The path is cut.
    Cut,
}

/// The network.
#[derive(Debug)]
pub struct Network {
    fabric: LinkConditions,
    egress: BTreeMap<Host, Link>,
    paths: BTreeMap<(Host, Host), Link>,
    cuts: BTreeSet<(Host, Host)>,
    groups: BTreeMap<SocketAddr, BTreeSet<(Host, Socket)>>,
    rng: SimRng,
}

impl Network {
    /// Creates a network with the same conditions on all paths.
    pub const fn new(fabric: LinkConditions, rng: SimRng) -> Self {
        Self {
            fabric,
            egress: BTreeMap::new(),
            paths: BTreeMap::new(),
            cuts: BTreeSet::new(),
            groups: BTreeMap::new(),
            rng,
        }
    }

    /// Sets the conditions of one direction.
    pub fn set_path(&mut self, from: Host, to: Host, conditions: LinkConditions) {
        self.paths.entry((from, to)).or_insert(Link::new(conditions)).change(conditions);
    }

    /// Sets the link shared by all datagrams that leave a host.
    pub fn set_egress(&mut self, host: Host, conditions: LinkConditions) {
        self.egress.entry(host).or_insert(Link::new(conditions)).change(conditions);
    }

    /// Changes the conditions everywhere except on hosts' own links.
    pub fn set_fabric(&mut self, conditions: LinkConditions) {
        self.fabric = conditions;
        self.paths.values_mut().for_each(|link| link.change(conditions));
    }

    /// Cuts a direction.
    pub fn cut(&mut self, from: Host, to: Host) {
        self.cuts.insert((from, to));
    }

    /// Undoes a cut.
    pub fn heal(&mut self, from: Host, to: Host) {
        self.cuts.remove(&(from, to));
    }

    /// Whether a direction is cut.
    pub fn is_cut(&self, from: Host, to: Host) -> bool {
        self.cuts.contains(&(from, to))
    }

    /// Conditions of one direction.
    pub fn conditions(&self, from: Host, to: Host) -> LinkConditions {
        self.paths.get(&(from, to)).map_or(self.fabric, Link::conditions)
    }

    /// Adds a socket to a group.
    pub fn add(&mut self, group: SocketAddr, host: Host, socket: Socket) {
        self.groups.entry(group).or_default().insert((host, socket));
    }

    /// Removes a socket from all groups.
    pub fn close(&mut self, host: Host, socket: Socket) {
        for members in self.groups.values_mut() {
            members.remove(&(host, socket));
        }
    }

    /// Sends a datagram of `bytes` bytes; returns its fate on each path.
    ///
    /// # Panics
    /// If the datagram is too long.
    pub fn send(
        &mut self,
        now: Nanos,
        from: Host,
        to: SocketAddr,
        bytes: usize,
        mut fate: impl FnMut(Socket, Fate),
    ) {
        assert!(bytes <= DATAGRAM_MAX, "a datagram of {bytes} bytes");
        let ways: Vec<(Host, Socket)> = match owner(to) {
            Some(one) => vec![one],
            None => self.groups.get(&to).into_iter().flatten().copied().collect(),
        };
        let out_at = match self.egress.get_mut(&from) {
            None => now,
            Some(link) => match link.carry(now, bytes, &mut self.rng) {
                Passage::Once(at) | Passage::Twice(at, _) => at,
                Passage::Lost => return ways.iter().for_each(|way| fate(way.1, Fate::Lost)),
                Passage::Overflown => {
                    return ways.iter().for_each(|way| fate(way.1, Fate::Overflown));
                }
            },
        };
        for (host, socket) in ways {
            self.pass(out_at, (from, host), bytes, |next| fate(socket, next));
        }
    }

    fn pass(&mut self, now: Nanos, path: (Host, Host), bytes: usize, mut fate: impl FnMut(Fate)) {
        if self.cuts.contains(&path) {
            return fate(Fate::Cut);
        }
        let conditions = if path.0 == path.1 { LinkConditions::INSIDE } else { self.fabric };
        let link = self.paths.entry(path).or_insert(Link::new(conditions));
        match link.carry(now, bytes, &mut self.rng) {
            Passage::Lost => fate(Fate::Lost),
            Passage::Overflown => fate(Fate::Overflown),
            Passage::Once(at) => fate(Fate::Arrives(at)),
            Passage::Twice(first, second) => {
                fate(Fate::Arrives(first));
                fate(Fate::Arrives(second));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network() -> Network {
        Network::new(LinkConditions { jitter: 0, ..LinkConditions::CALM }, SimRng::new(1))
    }

    fn fates(network: &mut Network, from: Host, to: SocketAddr) -> Vec<(Socket, Fate)> {
        let mut fates = Vec::new();
        network.send(0, from, to, 100, |socket, fate| fates.push((socket, fate)));
        fates
    }

    #[test]
    fn an_address_names_its_socket() {
        assert_eq!(owner(address(300, 7)), Some((300, 7)));
        assert_eq!(owner(group_address(3)), None);
    }

    #[test]
    fn a_group_reaches_its_members_only() {
        let (mut network, group) = (network(), group_address(1));
        let arrives = Fate::Arrives(LinkConditions::CALM.delay);
        network.add(group, 2, 20);
        network.add(group, 3, 30);
        assert_eq!(fates(&mut network, 1, group), [(20, arrives), (30, arrives)]);
        network.close(2, 20);
        assert_eq!(fates(&mut network, 1, group), [(30, arrives)]);
        assert_eq!(fates(&mut network, 1, group_address(2)), []);
    }

    #[test]
    fn cuts_have_a_direction() {
        let mut network = network();
        let arrives = Fate::Arrives(LinkConditions::CALM.delay);
        network.cut(1, 2);
        assert_eq!(fates(&mut network, 1, address(2, 20)), [(20, Fate::Cut)]);
        assert_eq!(fates(&mut network, 2, address(1, 10)), [(10, arrives)]);
        network.heal(1, 2);
        assert_eq!(fates(&mut network, 1, address(2, 20)), [(20, arrives)]);
    }

    #[test]
    fn all_that_leaves_a_host_shares_its_link() {
        let mut network = network();
        let conditions =
            LinkConditions { rate: 1_000_000, queue: 250, delay: 0, ..LinkConditions::INSIDE };
        network.set_egress(1, conditions);
        let both: Vec<_> = (2..5).flat_map(|to| fates(&mut network, 1, address(to, to))).collect();
        let at = |bytes: u64| Fate::Arrives(bytes * 1_000 + LinkConditions::CALM.delay);
        assert_eq!(both, [(2, at(100)), (3, at(200)), (4, Fate::Overflown)]);
    }
}
