//! Connections of members that watch this one: answers to their probes, and bounds of strangers.
//!
//! Owned by the member's `Watch`, used in the application's polls. A watcher says nothing while all
//! is well, so an idle connection may be a member's or anybody's. Each host of the view therefore
//! has a place for each of its members, which others cannot take; a few more are for members that
//! have joined just now, or come from another address. There the oldest gives way to newcomers. It
//! is dismissed by a byte, after which the end of the connection is no crash, and connects again.

use lanecast_wire::group::watch::{WATCH_ANSWER, WATCH_DISMISSAL, are_probes};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};

/// The most connections of one address beyond the members of the view there.
const OTHERS_PER_ADDRESS: usize = 16;
/// The most connections of all addresses beyond the members of the view.
const OTHERS_MAX: usize = 64;
/// Probes read at a time.
const PROBES_MAX: usize = 64;

/// A connection whose greeting was sent.
#[derive(Debug)]
struct Watcher {
    key: u64,
    from: IpAddr,
    stream: TcpStream,
}

/// The connections, the oldest first.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    all: Vec<Watcher>,
}

impl Watchers {
    #[cfg(test)]
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a connection from `from`; another one gives way if there are too many beside `members`,
    /// the addresses of the view's other members.
    pub(crate) fn add(
        &mut self,
        key: u64,
        from: IpAddr,
        stream: TcpStream,
        members: impl Iterator<Item = IpAddr>,
    ) {
        self.all.push(Watcher { key, from, stream });
        if let Some(at) = gives_way(self.all.iter().map(|it| it.from), members) {
            self.all.remove(at).dismiss();
        }
    }

    /// Looks at the connection `key`; false if it is none of these.
    pub(crate) fn look(&mut self, key: u64) -> bool {
        let Some(at) = self.all.iter().position(|it| it.key == key) else { return false };
        if !self.all[at].answer() {
            self.all.remove(at);
        }
        true
    }
}

/// The place of the connection that gives way, among those from `watchers`, the oldest first: the
/// oldest of the address that has most beyond its `members`, if that address has too many or all
/// together have.
fn gives_way(
    watchers: impl Iterator<Item = IpAddr>,
    members: impl Iterator<Item = IpAddr>,
) -> Option<usize> {
    let mut places: BTreeMap<IpAddr, usize> = BTreeMap::new();
    members.for_each(|address| *places.entry(address).or_default() += 1);
    // By address: the oldest connection, and the number beyond the places of members.
    let mut others: BTreeMap<IpAddr, (usize, usize)> = BTreeMap::new();
    for (at, from) in watchers.enumerate() {
        let (_, beyond) = others.entry(from).or_insert((at, 0));
        match places.get_mut(&from) {
            Some(left @ 1..) => *left -= 1,
            _ => *beyond += 1,
        }
    }
    let all: usize = others.values().map(|(_, beyond)| beyond).sum();
    let most = others.into_values().max_by_key(|(at, beyond)| (*beyond, usize::MAX - at));
    let (oldest, beyond) = most?;
    (beyond > OTHERS_PER_ADDRESS || all > OTHERS_MAX).then_some(oldest)
}

impl Watcher {
    /// Answers probes; false if the connection has ended, or brings anything else.
    fn answer(&mut self) -> bool {
        let mut probes = [0; PROBES_MAX];
        match self.stream.read(&mut probes) {
            Ok(count @ 1..) if are_probes(&probes[..count]) => {
                // A watcher that reads no answers gets no more of them.
                drop(self.stream.write(&[WATCH_ANSWER]));
                true
            }
            Ok(_) => false,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// Closes the connection such that its end is not taken for a crash.
    fn dismiss(mut self) {
        // Unread probes would make the end a reset, which overtakes the byte.
        let _ = self.stream.read(&mut [0; PROBES_MAX]);
        // Without room the watcher has left thousands of answers unread.
        let _ = self.stream.write(&[WATCH_DISMISSAL]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::{empty, repeat_n};

    fn host(number: usize) -> IpAddr {
        IpAddr::from([10, 0, (number >> 8) as u8, number as u8])
    }

    #[test]
    fn the_oldest_of_an_address_with_too_many_gives_way() {
        let crowd = || [host(1)].into_iter().chain(repeat_n(host(2), OTHERS_PER_ADDRESS));
        assert_eq!(gives_way(crowd(), empty()), None);
        assert_eq!(gives_way(crowd().chain([host(2)]), empty()), Some(1));
        // Each member there has a place beside those.
        let members = || repeat_n(host(2), 3);
        assert_eq!(gives_way(crowd().chain(members()), members()), None);
        assert_eq!(gives_way(crowd().chain(repeat_n(host(2), 4)), members()), Some(1));
        assert_eq!(gives_way(empty(), members()), None);
    }

    #[test]
    fn many_addresses_take_no_place_of_members() {
        let members = || (0..100).map(host);
        let strangers = |count: usize| (1_000..1_000 + count).map(host);
        let all = |count| members().chain(strangers(count));
        assert_eq!(gives_way(all(OTHERS_MAX), members()), None);
        assert_eq!(gives_way(all(OTHERS_MAX + 1), members()), Some(100), "the oldest stranger");
        // An address with several gives way before others with one each.
        let crowd = all(OTHERS_MAX - 1).chain(repeat_n(host(5_000), 2));
        assert_eq!(gives_way(crowd, members()), Some(100 + OTHERS_MAX - 1));
    }
}
