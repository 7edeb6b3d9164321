//! Logons whose passwords wait to be checked, one after the other: that takes long.
//!
//! Addresses take turns, and so do the users that one address names, so that a flood keeps neither
//! another address nor another user waiting for more than a turn. A user whose password was wrong
//! waits longer each time, at that address.

use crate::Nanos;
use crate::auth::authenticator::PasswordCheck;
use crate::client::ClientId;
use crate::net::source::Source;
use foldhash::HashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// After one wrong password the next for that user from that address waits this long, then twice
/// as long each time, up to the longest.
const DELAY: Nanos = 100_000_000;
const DELAY_MAX: Nanos = 2_000_000_000;
/// Wrong passwords are forgotten after a minute without another one.
const MEMORY: Nanos = 60_000_000_000;
/// The most that are remembered: more than can be checked in that time.
const REMEMBERED_MAX: usize = 8_192;

/// All that wait.
#[derive(Debug, Default)]
pub(crate) struct PasswordQueue {
    /// Those that have not had their turn for longest are first.
    sources: VecDeque<OfSource>,
    wrong: Wrong<(Source, u64)>,
    wrong_of: Wrong<Source>,
}

#[derive(Debug)]
struct OfSource {
    source: Source,
    users: VecDeque<OfUser>,
    /// Every other time the latest to come is next, or a burst would be a queue for all after it.
    is_for_latest: bool,
}

#[derive(Debug)]
struct OfUser {
    user: u64,
    proofs: Vec<PasswordCheck>,
}

impl PasswordQueue {
    pub(crate) fn push(&mut self, proof: PasswordCheck) {
        let source = position_or_push(
            &mut self.sources,
            |of| of.source == proof.source,
            || OfSource { source: proof.source, users: VecDeque::new(), is_for_latest: false },
        );
        let user = position_or_push(
            &mut source.users,
            |of| of.user == proof.user,
            || OfUser { user: proof.user, proofs: Vec::new() },
        );
        user.proofs.push(proof);
    }

    /// The next that may be checked.
    pub(crate) fn next(&mut self, now: Nanos) -> Option<PasswordCheck> {
        for at in 0..self.sources.len() {
            let (wrong, of) = (&self.wrong, &mut self.sources[at]);
            let source = of.source;
            let Some(proof) = of.next(|user| wrong.not_before(&(source, user)) <= now) else {
                continue;
            };
            if let Some(of) = self.sources.remove(at).filter(|of| !of.users.is_empty()) {
                self.sources.push_back(of);
            }
            return Some(proof);
        }
        None
    }

    /// When one may be checked.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        let pairs = self.sources.iter().flat_map(|of| {
            of.users.iter().map(|user| self.wrong.not_before(&(of.source, user.user)))
        });
        pairs.min()
    }

    /// A client has gone.
    pub(crate) fn forget(&mut self, client: ClientId) {
        for of in &mut self.sources {
            of.users.iter_mut().for_each(|user| user.proofs.retain(|it| it.client != client));
            of.users.retain(|user| !user.proofs.is_empty());
        }
        self.sources.retain(|of| !of.users.is_empty());
    }

    /// The first to come of those that a source has for the user whom it names most.
    pub(crate) fn first_of_most(&self, source: Source) -> Option<ClientId> {
        let of = self.sources.iter().find(|of| of.source == source)?;
        // Of several the first in the queue, which is the last by `rev`.
        let user = of.users.iter().rev().max_by_key(|user| user.proofs.len())?;
        user.proofs.first().map(|proof| proof.client)
    }

    /// A password was right.
    pub(crate) fn succeeded(&mut self, source: Source, user: u64) {
        self.wrong.by.remove(&(source, user));
    }

    /// A password was wrong; how many were from there, one shortly after the other.
    pub(crate) fn failed(&mut self, source: Source, user: u64, now: Nanos) -> u64 {
        self.wrong.note((source, user), now);
        self.wrong_of.note(source, now)
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

impl OfSource {
    /// The next of a user who may have one checked.
    fn next(&mut self, may: impl Fn(u64) -> bool) -> Option<PasswordCheck> {
        let mut due = self.users.iter().enumerate().filter(|(_, of)| may(of.user));
        let (at, _) = match self.is_for_latest {
            true => due.max_by_key(|(_, of)| of.proofs.last().map(|proof| proof.serial)),
            false => due.next(),
        }?;
        self.is_for_latest = !self.is_for_latest;
        let mut of = self.users.remove(at)?;
        // The latest, for which somebody waits who has not gone yet.
        let proof = of.proofs.pop();
        if !of.proofs.is_empty() {
            self.users.push_back(of);
        }
        proof
    }
}

/// Wrong passwords, not long ago.
#[derive(Debug)]
struct Wrong<K> {
    by: HashMap<K, (u64, Nanos)>,
}

impl<K> Default for Wrong<K> {
    fn default() -> Self {
        Self { by: HashMap::default() }
    }
}

impl<K: Hash + Eq> Wrong<K> {
    /// Counts one more.
    fn note(&mut self, key: K, now: Nanos) -> u64 {
        if self.by.len() >= REMEMBERED_MAX {
            self.by.retain(|_, (_, last)| last.saturating_add(MEMORY) > now);
        }
        if self.by.len() >= REMEMBERED_MAX {
            self.by.clear();
        }
        let (count, last) = self.by.entry(key).or_insert((0, now));
        if last.saturating_add(MEMORY) <= now {
            *count = 0;
        }
        (*count, *last) = (*count + 1, now);
        *count
    }

    /// When the next is checked at the earliest.
    fn not_before(&self, key: &K) -> Nanos {
        let Some((count, last)) = self.by.get(key) else { return 0 };
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

    fn proof(client: u32, source: Source, user: u64) -> PasswordCheck {
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
        (0..900).for_each(|client| queue.push(proof(client, source(1), 1)));
        (900..1_800).for_each(|client| queue.push(proof(client, source(2), client.into())));
        queue
    }

    /// After how many others it is the turn of a logon that comes now.
    fn waits(mut queue: PasswordQueue, source: Source, user: u64) -> usize {
        queue.push(proof(9_999, source, user));
        let turn = (0..2_000).find(|now| queue.next(*now).expect("one").client == ClientId(9_999));
        turn.expect("its turn") as usize
    }

    #[test]
    fn a_flood_keeps_nobody_else_waiting() {
        assert!(waits(flooded(), source(3), 5) <= 2, "another address");
        assert!(waits(flooded(), source(1), 5) <= 3, "another user of the same");
        assert!(waits(flooded(), source(2), 5) <= 4, "another of many users of the same");
        assert!(waits(flooded(), source(1), 1) <= 3, "the same");
    }

    #[test]
    fn none_is_left_out() {
        let mut queue = flooded();
        (0..900).filter(|client| client % 2 == 0).for_each(|it| queue.forget(ClientId(it)));
        let mut all: Vec<_> = std::iter::from_fn(|| queue.next(0)).map(|it| it.client).collect();
        all.sort_unstable();
        let left = (0..1_800).filter(|client| *client >= 900 || client % 2 == 1);
        assert_eq!(all, left.map(ClientId).collect::<Vec<_>>());
        assert!(queue.sources.is_empty() && queue.next_due().is_none());
    }

    #[test]
    fn who_was_wrong_waits_longer_each_time_and_nobody_else() {
        let mut queue = PasswordQueue::default();
        let mut now = 0;
        for delay in [1, 2, 4, 8, 16, 20, 20].map(|tenths| tenths * DELAY) {
            queue.failed(source(1), 1, now);
            queue.push(proof(0, source(1), 1));
            assert_eq!(queue.next_due(), Some(now + delay));
            assert!(queue.next(now + delay - 1).is_none());
            queue.push(proof(1, source(1), 2));
            assert_eq!(queue.next(now).map(|it| it.client), Some(ClientId(1)), "another user");
            queue.push(proof(2, source(2), 1));
            assert_eq!(queue.next(now).map(|it| it.client), Some(ClientId(2)), "another address");
            now += delay;
            assert!(queue.next(now).is_some());
        }
        assert_eq!(queue.failed(source(1), 2, now), 8);
        queue.succeeded(source(1), 1);
        queue.push(proof(0, source(1), 1));
        assert!(queue.next(now).is_some(), "it was right");
        assert_eq!(queue.failed(source(1), 1, now + MEMORY), 1, "the others are forgotten");
    }

    #[test]
    fn wrong_ones_take_little_memory() {
        let mut queue = PasswordQueue::default();
        for user in 0..100_000 {
            queue.failed(source((user % 251) as u8), user, 0);
        }
        assert!(queue.wrong.by.len() <= REMEMBERED_MAX);
    }

    #[test]
    fn the_user_named_most_gives_one_up() {
        let mut queue = PasswordQueue::default();
        let users = [(0, 7), (1, 8), (2, 8), (3, 9)];
        users.iter().for_each(|(client, user)| queue.push(proof(*client, source(1), *user)));
        assert_eq!(queue.first_of_most(source(1)), Some(ClientId(1)));
        queue.forget(ClientId(1));
        assert_eq!(queue.first_of_most(source(1)), Some(ClientId(0)), "the first to come");
        assert_eq!(queue.first_of_most(source(2)), None);
    }
}
