//! Sessions whose end was announced, remembered for as long as older Adverts may arrive late.

use crate::{Nanos, SECOND};
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// A closed session is ignored for this long in Adverts of the resolver that announced its end:
/// older Adverts may arrive late. Other resolvers' Adverts count, as the end may be forged.
pub(super) const TOMBSTONE: Nanos = 10 * SECOND;
/// Most closed sessions remembered, and most of one address: it cannot push out those of others.
const TOMBSTONES_MAX: usize = 16_384;
const ADDRESS_MAX: usize = TOMBSTONES_MAX / 4;

/// A session, and the resolver that announced its end.
type Id = (u64, u64);

/// Closed sessions; of too many the oldest give way, those of the same address first.
#[derive(Debug, Default)]
pub(super) struct Tombstones {
    /// Number of the end among all, and its time.
    ends: BTreeMap<Id, (u64, Nanos)>,
    /// Ends in their order, by address.
    addresses: BTreeMap<IpAddr, VecDeque<(u64, Id)>>,
    /// Addresses in the order of the ends there; ends that are forgotten are passed over.
    order: VecDeque<(u64, IpAddr)>,
    /// Number of ends in `addresses`.
    count: usize,
    last: u64,
}

impl Tombstones {
    /// Remembers the end of a session at `address`.
    pub(super) fn add(&mut self, now: Nanos, id: Id, address: IpAddr) {
        self.last += 1;
        self.ends.insert(id, (self.last, now));
        self.order.push_back((self.last, address));
        let ends = self.addresses.entry(address).or_default();
        ends.push_back((self.last, id));
        self.count += 1;
        if ends.len() > ADDRESS_MAX {
            self.forget_oldest_of(address);
        }
        while self.count > TOMBSTONES_MAX
            && let Some((number, address)) = self.order.pop_front()
        {
            if self.is_kept(number, address) {
                self.forget_oldest_of(address);
            }
        }
        if self.order.len() > 2 * TOMBSTONES_MAX {
            let order = std::mem::take(&mut self.order).into_iter();
            self.order = order.filter(|(number, at)| self.is_kept(*number, *at)).collect();
        }
    }

    /// Whether the end with this number is still in its address's queue.
    fn is_kept(&self, number: u64, address: IpAddr) -> bool {
        let oldest = self.addresses.get(&address).and_then(VecDeque::front);
        oldest.is_some_and(|(oldest, _)| *oldest <= number)
    }

    fn forget_oldest_of(&mut self, address: IpAddr) {
        let Some(ends) = self.addresses.get_mut(&address) else { return };
        let oldest = ends.pop_front();
        self.count -= usize::from(oldest.is_some());
        if let Some((number, id)) = oldest
            // The session may have ended once more since.
            && self.ends.get(&id).is_some_and(|(last, _)| *last == number)
        {
            self.ends.remove(&id);
        }
        if ends.is_empty() {
            self.addresses.remove(&address);
        }
    }

    /// Whether Adverts of the session by this resolver are ignored.
    pub(super) fn covers(&self, now: Nanos, id: Id) -> bool {
        self.ends.get(&id).is_some_and(|(_, at)| now.saturating_sub(*at) < TOMBSTONE)
    }

    /// Forgets ends from which no Advert can be on its way any more.
    pub(super) fn sweep(&mut self, now: Nanos) {
        while let Some((number, address)) = self.order.front().copied() {
            let front = self.addresses.get(&address).and_then(VecDeque::front).copied();
            if let Some((oldest, id)) = front.filter(|(oldest, _)| *oldest == number) {
                let end = self.ends.get(&id).filter(|(last, _)| *last == oldest);
                if end.is_some_and(|(_, at)| now.saturating_sub(*at) < TOMBSTONE) {
                    return;
                }
                self.forget_oldest_of(address);
            }
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    #[test]
    fn an_address_with_endless_ends_pushes_out_none_of_others() {
        let mut ends = Tombstones::default();
        // The lowest number of all, as an attacker wants it.
        ends.add(SECOND, (0, 0), address(1));
        for session in 1..100_000 {
            ends.add(SECOND, (session, 7), address(2));
            assert!(ends.covers(SECOND, (session, 7)));
        }
        assert!(ends.covers(SECOND, (0, 0)), "another's is kept");
        assert_eq!((ends.ends.len(), ends.count), (ADDRESS_MAX + 1, ADDRESS_MAX + 1));
        assert!(!ends.covers(SECOND, (100_000 - ADDRESS_MAX as u64 - 1, 7)), "its oldest are gone");
        assert!(ends.covers(SECOND, (100_000 - ADDRESS_MAX as u64, 7)));
        assert!(ends.order.len() <= 2 * TOMBSTONES_MAX && ends.addresses.len() <= 2);
    }

    #[test]
    fn of_too_many_the_oldest_give_way_whatever_their_numbers() {
        let mut ends = Tombstones::default();
        let each = 2 * TOMBSTONES_MAX as u64;
        for end in 0..each {
            ends.add(SECOND, (u64::MAX - end, end), address((end % 100) as u8));
        }
        let is_kept = |end: u64| ends.covers(SECOND, (u64::MAX - end, end));
        assert!((0..each / 2).all(|end| !is_kept(end)) && (each / 2..each).all(is_kept));
    }

    #[test]
    fn ends_are_forgotten_by_time_and_a_second_one_counts() {
        let mut ends = Tombstones::default();
        ends.add(SECOND, (1, 1), address(1));
        ends.add(2 * SECOND, (2, 1), address(1));
        ends.add(9 * SECOND, (1, 1), address(1));
        ends.sweep(SECOND + TOMBSTONE);
        assert!(ends.covers(SECOND + TOMBSTONE, (1, 1)));
        assert!(ends.covers(SECOND + TOMBSTONE, (2, 1)) && !ends.covers(SECOND, (1, 2)));
        ends.sweep(9 * SECOND + TOMBSTONE);
        assert!(!ends.covers(9 * SECOND + TOMBSTONE, (1, 1)));
        assert!(
            ends.count == 0
                && ends.ends.is_empty()
                && ends.addresses.is_empty()
                && ends.order.is_empty()
        );
    }
}
