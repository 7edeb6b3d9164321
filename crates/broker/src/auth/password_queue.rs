//! The queue of passwords to check, which the worker checks one after the other.
//!
//! The queue is fair: sources take turns, and so do the users of one source, so that a flood of
//! logons delays another source or user by one turn at most. After each wrong password the next
//! check of that user from that source is delayed longer.

use crate::auth::password::PasswordCheck;
use crate::ids::ClientId;
use crate::net::source::Source;
use crate::time::Nanos;
use foldhash::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Delay after the first wrong password of a user from a source; it doubles up to the longest.
const DELAY: Nanos = 100_000_000;
const DELAY_MAX: Nanos = 2_000_000_000;
/// Wrong passwords expire a minute after the last one.
const EXPIRY: Nanos = 60_000_000_000;
/// The most entries of wrong passwords: more than can be checked in that time.
const REMEMBERED_MAX: usize = 8_192;

/// Queued password checks.
#[derive(Debug, Default)]
pub(crate) struct PasswordQueue {
    /// The source whose last turn is longest ago is first.
    sources: VecDeque<SourceQueue>,
    wrong: WrongPasswords<(Source, u64)>,
    wrong_by_source: WrongPasswords<Source>,
}

#[derive(Debug)]
struct SourceQueue {
    source: Source,
    users: VecDeque<UserQueue>,
    /// Every other turn is for the newest logon; otherwise a burst would delay all logons after it.
    prefers_newest: bool,
}

#[derive(Debug)]
struct UserQueue {
    user: u64,
    checks: Vec<PasswordCheck>,
}

impl PasswordQueue {
    pub(crate) fn push(&mut self, check: PasswordCheck) {
        let source = position_or_push(
            &mut self.sources,
            |of| of.source == check.source,
            || SourceQueue { source: check.source, users: VecDeque::new(), prefers_newest: false },
        );
        let user = position_or_push(
            &mut source.users,
            |of| of.user == check.user,
            || UserQueue { user: check.user, checks: Vec::new() },
        );
        user.checks.push(check);
    }

    /// Takes the next password that may be checked now.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<PasswordCheck> {
        for at in 0..self.sources.len() {
            let (wrong, of) = (&self.wrong, &mut self.sources[at]);
            let source = of.source;
            // A source whose users all wait for their delay gives its turn to the next one.
            let Some(check) = of.next(|user| wrong.not_before(&(source, user)) <= now) else {
                continue;
            };
            if let Some(of) = self.sources.remove(at).filter(|of| !of.users.is_empty()) {
                // Behind all others: a source with many logons gets one check per round.
                self.sources.push_back(of);
            }
            return Some(check);
        }
        None
    }

    /// When the next password may be checked.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let pairs = self.sources.iter().flat_map(|of| {
            of.users.iter().map(|user| self.wrong.not_before(&(of.source, user.user)))
        });
        pairs.min()
    }

    /// Removes the passwords of a client that disconnected.
    pub(crate) fn remove_client(&mut self, client: ClientId) {
        for of in &mut self.sources {
            of.users.iter_mut().for_each(|user| user.checks.retain(|it| it.client != client));
            of.users.retain(|user| !user.checks.is_empty());
        }
        self.sources.retain(|of| !of.users.is_empty());
    }

    /// The oldest logon for the user that a source names most often.
    pub(crate) fn oldest_of_busiest_user(&self, source: Source) -> Option<ClientId> {
        let of = self.sources.iter().find(|of| of.source == source)?;
        // `max_by_key` returns the last of equals; `rev` makes that the first in the queue.
        let user = of.users.iter().rev().max_by_key(|user| user.checks.len())?;
        user.checks.first().map(|check| check.client)
    }

    /// Records a right password: the user's delay ends.
    pub(crate) fn record_right(&mut self, source: Source, user: u64) {
        self.wrong.by.remove(&(source, user));
    }

    /// Records a wrong password; returns how many were wrong from that source recently.
    pub(crate) fn record_wrong(&mut self, source: Source, user: u64, now: Nanos) -> u64 {
        self.wrong.record((source, user), now);
        // Only the operator's log uses this count; delays are by source and user.
        self.wrong_by_source.record(source, now)
    }
}

fn position_or_push<T>(
    all: &mut VecDeque<T>,
    is_it: impl FnMut(&T) -> bool,
    make: impl FnOnce() -> T,
) -> &mut T {
    let at = all.iter().position(is_it).unwrap_or_else(|| {
        all.push_back(make());
        all.len() - 1
    });
    &mut all[at]
}

impl SourceQueue {
    /// Takes the next password of a user for which `may_check`.
    fn next(&mut self, may_check: impl Fn(u64) -> bool) -> Option<PasswordCheck> {
        let mut due = self.users.iter().enumerate().filter(|(_, of)| may_check(of.user));
        let (at, _) = match self.prefers_newest {
            true => due.max_by_key(|(_, of)| of.checks.last().map(|check| check.serial)),
            false => due.next(),
        }?;
        self.prefers_newest = !self.prefers_newest;
        let mut of = self.users.remove(at)?;
        // The newest, since its client is most likely still connected.
        let check = of.checks.pop();
        if !of.checks.is_empty() {
            self.users.push_back(of);
        }
        check
    }
}

/// Recent wrong passwords: count and time of the last, by key.
#[derive(Debug)]
struct WrongPasswords<K> {
    by: HashMap<K, (u64, Nanos)>,
}

impl<K> Default for WrongPasswords<K> {
    fn default() -> Self {
        Self { by: HashMap::default() }
    }
}

impl<K: Hash + Eq> WrongPasswords<K> {
    /// Counts a wrong password.
    fn record(&mut self, key: K, now: Nanos) -> u64 {
        if self.by.len() >= REMEMBERED_MAX {
            self.by.retain(|_, (_, last)| last.saturating_add(EXPIRY) > now);
        }
        if self.by.len() >= REMEMBERED_MAX {
            // Hardly possible: fewer passwords can be checked within the expiry. Delays end early
            // then.
            self.by.clear();
        }
        let (count, last) = self.by.entry(key).or_insert((0, now));
        if last.saturating_add(EXPIRY) <= now {
            *count = 0;
        }
        (*count, *last) = (*count + 1, now);
        *count
    }

    /// The earliest time of the next check.
    fn not_before(&self, key: &K) -> Nanos {
        let Some((count, last)) = self.by.get(key) else { return 0 };
        // Bounded, so that the shift cannot overflow.
        let doublings = u32::try_from(count - 1).unwrap_or(u32::MAX).min(16);
        last.saturating_add((DELAY << doublings).min(DELAY_MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u8) -> Source {
        Source::of([10, 0, 0, number].into())
    }

    fn check(client: u32, source: Source, user: u64) -> PasswordCheck {
        PasswordCheck {
            client: ClientId(client),
            serial: client.into(),
            source,
            user,
            hash: "".into(),
            password: Vec::new(),
            is_known: true,
        }
    }

    fn flooded() -> PasswordQueue {
        let mut queue = PasswordQueue::default();
        (0..900).for_each(|client| queue.push(check(client, source(1), 1)));
        (900..1_800).for_each(|client| queue.push(check(client, source(2), client.into())));
        queue
    }

    /// Number of checks before a logon that arrives now.
    fn waits(mut queue: PasswordQueue, source: Source, user: u64) -> usize {
        queue.push(check(9_999, source, user));
        let turn = (0..2_000).find(|now| queue.next(*now).expect("one").client == ClientId(9_999));
        turn.expect("its turn") as usize
    }

    #[test]
    fn a_flood_delays_no_other_client() {
        assert!(waits(flooded(), source(3), 5) <= 2, "another address");
        assert!(waits(flooded(), source(1), 5) <= 3, "another user of the same");
        assert!(waits(flooded(), source(2), 5) <= 4, "another of many users of the same");
        assert!(waits(flooded(), source(1), 1) <= 3, "the same");
    }

    #[test]
    fn none_is_left_out() {
        let mut queue = flooded();
        (0..900).filter(|client| client % 2 == 0).for_each(|it| queue.remove_client(ClientId(it)));
        let mut all: Vec<_> = std::iter::from_fn(|| queue.next(0)).map(|it| it.client).collect();
        all.sort_unstable();
        let left = (0..1_800).filter(|client| *client >= 900 || client % 2 == 1);
        assert_eq!(all, left.map(ClientId).collect::<Vec<_>>());
        assert!(queue.sources.is_empty() && queue.next_due().is_none());
    }

    #[test]
    fn the_delay_grows_with_each_failed_logon_of_a_source_and_user_only() {
        let mut queue = PasswordQueue::default();
        let mut now = 0;
        for delay in [1, 2, 4, 8, 16, 20, 20].map(|tenths| tenths * DELAY) {
            queue.record_wrong(source(1), 1, now);
            queue.push(check(0, source(1), 1));
            assert_eq!(queue.next_due(), Some(now + delay));
            assert!(queue.next(now + delay - 1).is_none());
            queue.push(check(1, source(1), 2));
            assert_eq!(queue.next(now).map(|it| it.client), Some(ClientId(1)), "another user");
            queue.push(check(2, source(2), 1));
            assert_eq!(queue.next(now).map(|it| it.client), Some(ClientId(2)), "another address");
            now += delay;
            assert!(queue.next(now).is_some());
        }
        assert_eq!(queue.record_wrong(source(1), 2, now), 8);
        queue.record_right(source(1), 1);
        queue.push(check(0, source(1), 1));
        assert!(queue.next(now).is_some(), "it was right");
        assert_eq!(queue.record_wrong(source(1), 1, now + EXPIRY), 1, "the others are forgotten");
    }

    #[test]
    fn wrong_ones_take_little_memory() {
        let mut queue = PasswordQueue::default();
        for user in 0..100_000 {
            queue.record_wrong(source((user % 251) as u8), user, 0);
        }
        assert!(queue.wrong.by.len() <= REMEMBERED_MAX);
    }

    #[test]
    fn the_user_named_most_gives_one_up() {
        let mut queue = PasswordQueue::default();
        let users = [(0, 7), (1, 8), (2, 8), (3, 9)];
        users.iter().for_each(|(client, user)| queue.push(check(*client, source(1), *user)));
        assert_eq!(queue.oldest_of_busiest_user(source(1)), Some(ClientId(1)));
        queue.remove_client(ClientId(1));
        assert_eq!(queue.oldest_of_busiest_user(source(1)), Some(ClientId(0)), "the first to come");
        assert_eq!(queue.oldest_of_busiest_user(source(2)), None);
    }
}
