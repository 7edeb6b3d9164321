//! Last sequence numbers of publishers, by which duplicates are detected.
//!
//! The engine's state owns them, and checks them before each numbered command. Numbers of commands
//! to durable topics are on disk as well, see `docs/protocol/state.md`. The number of names is
//! limited in all and for each user, and unused names expire: by the wall clock while the server is
//! down, by the monotonic clock while it runs, so that a clock that is set removes no name.

use crate::command::error::CommandError;
use crate::config::server_config::ServerConfig;
use crate::time::{Nanos, Now};
use foldhash::HashMap;
use lanecast_wire::command::{SEQUENCE_JUMP, SEQUENCE_MAX};
use std::collections::VecDeque;

/// Names examined for expiry in a turn.
const STEP: usize = 64;

/// Last sequence numbers, by key: the client name, or the user name, a line feed and the client
/// name where users are configured.
#[derive(Debug, Default)]
pub(crate) struct SequenceStore {
    names: HashMap<Box<str>, LastSequence>,
    /// Number of names of each user.
    users: HashMap<Box<str>, usize>,
    /// Times at which names may expire; each name once.
    due: VecDeque<(Nanos, Box<str>)>,
    /// Names on disk, with the time of their last use in nanoseconds since 1970, 0 if unknown.
    /// Their ages are known with the first turn.
    undated: Vec<(u64, Box<str>)>,
    names_max: usize,
    names_of_user_max: usize,
    age: Nanos,
}

/// The last sequence number of a name.
#[derive(Clone, Copy, Debug)]
struct LastSequence {
    sequence: u64,
    /// When it expires if it stays unused; `None` until its age is known.
    due: Option<Nanos>,
}

impl SequenceStore {
    /// Starts with the names on disk: each with its last number and its time.
    pub(crate) fn new<'a>(
        config: &ServerConfig,
        known: impl Iterator<Item = (&'a str, u64, u64)>,
    ) -> Self {
        let age = u64::try_from(config.names_age.as_nanos()).unwrap_or(u64::MAX);
        let (names_max, names_of_user_max) = (config.names_max, config.names_of_user_max);
        let mut store = Self { names_max, names_of_user_max, age, ..Self::default() };
        for (name, sequence, unix_ns) in known.take(names_max) {
            store.insert(name, LastSequence { sequence, due: None });
            store.undated.push((unix_ns, name.into()));
        }
        store
    }

    /// The last sequence number of a name.
    pub(crate) fn last(&self, name: &str) -> Option<u64> {
        self.names.get(name).map(|last| last.sequence)
    }

    /// Whether sequence numbers are remembered at all.
    pub(crate) fn is_enabled(&self) -> bool {
        self.names_max > 0
    }

    /// Whether a sequence number of a name is not new.
    ///
    /// # Errors
    /// If the number is too far beyond the last one, or the limit of names is reached.
    pub(crate) fn is_duplicate(&self, name: &str, sequence: u64) -> Result<bool, CommandError> {
        let last = self.last(name);
        if last.is_some_and(|last| sequence <= last) {
            return Ok(true);
        }
        // A number far beyond the last would make every later message a duplicate.
        let farthest = last.map_or(SEQUENCE_MAX, |last| last + SEQUENCE_JUMP.max(last / 8));
        if sequence > farthest.min(SEQUENCE_MAX) {
            return Err(CommandError::Sequence { sequence, last: last.unwrap_or(0) });
        }
        if last.is_none() && self.is_enabled() {
            self.check_limits(name)?;
        }
        Ok(false)
    }

    fn check_limits(&self, name: &str) -> Result<(), CommandError> {
        if self.names.len() >= self.names_max {
            return Err(CommandError::Names(self.names_max));
        }
        let user = user_of(name).and_then(|user| self.users.get(user));
        match user {
            Some(count) if *count >= self.names_of_user_max => {
                Err(CommandError::NamesOfUser(self.names_of_user_max))
            }
            _ => Ok(()),
        }
    }

    /// Records a sequence number.
    pub(crate) fn record(&mut self, name: &str, sequence: u64, now: Nanos) {
        let due = now.saturating_add(self.age);
        match self.names.get_mut(name) {
            // A deletion that takes several turns ends after later commands.
            Some(last) => {
                *last = LastSequence { sequence: last.sequence.max(sequence), due: Some(due) };
            }
            None => {
                self.insert(name, LastSequence { sequence, due: Some(due) });
                self.due.push_back((due, name.into()));
            }
        }
    }

    fn insert(&mut self, name: &str, last: LastSequence) {
        if let Some(user) = user_of(name) {
            *self.users.entry(user.into()).or_default() += 1;
        }
        self.names.insert(name.into(), last);
    }

    /// Dates the names on disk: their ages go on from here by the monotonic clock.
    #[cold]
    fn date(&mut self, now: Now) {
        let mut dated: Vec<(Nanos, Box<str>)> = Vec::with_capacity(self.undated.len());
        for (unix_ns, name) in std::mem::take(&mut self.undated) {
            // Without a time, or with one in the future, the age begins now.
            let used = if unix_ns == 0 { now.unix_ns } else { unix_ns };
            let left = self.age.saturating_sub(now.unix_ns.saturating_sub(used));
            let due = now.monotonic_ns.saturating_add(left);
            if let Some(last) = self.names.get_mut(&name) {
                last.due.get_or_insert(due);
                dated.push((due, name));
            }
        }
        // Sorted once here; later names arrive in the order of their times.
        self.due.extend(dated);
        self.due.make_contiguous().sort_unstable();
    }

    /// Takes a name that was unused for too long: the caller [removes](Self::remove) it, or
    /// [keeps](Self::keep) it. `examined` counts the names of this turn.
    pub(crate) fn next_unused(&mut self, now: Now, examined: &mut usize) -> Option<Box<str>> {
        if !self.undated.is_empty() {
            self.date(now);
        }
        let now = now.monotonic_ns;
        while *examined < STEP && self.due.front().is_some_and(|(due, _)| *due <= now) {
            *examined += 1;
            let (earliest, name) = self.due.pop_front()?;
            let Some(last) = self.names.get(&name) else { continue };
            let due = last.due.unwrap_or(earliest);
            if due <= now {
                return Some(name);
            }
            // Used since: publishing does not touch the list, so the entry moves only here.
            self.due.push_back((due, name));
        }
        None
    }

    /// Marks a name as used now.
    pub(crate) fn keep(&mut self, name: Box<str>, now: Nanos) {
        if let Some(last) = self.names.get_mut(&name) {
            let due = now.saturating_add(self.age);
            last.due = Some(due);
            self.due.push_back((due, name));
        }
    }

    /// Removes a name.
    pub(crate) fn remove(&mut self, name: &str) {
        if self.names.remove(name).is_none() {
            return;
        }
        if let Some(user) = user_of(name)
            && let Some(count) = self.users.get_mut(user)
        {
            *count -= 1;
            if *count == 0 {
                self.users.remove(user);
            }
        }
    }
}

/// The user in a key. Names have no control characters, so the line feed is unambiguous.
fn user_of(name: &str) -> Option<&str> {
    name.split_once('\n').map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// A turn at this time since the start; the wall clock is somewhere else.
    const fn at(monotonic_ns: u64) -> Now {
        Now { monotonic_ns, unix_ns: 1_000_000 + monotonic_ns }
    }

    fn store(most: usize, most_of_user: usize) -> SequenceStore {
        let config = ServerConfig {
            names_max: most,
            names_of_user_max: most_of_user,
            names_age: Duration::from_nanos(100),
            ..ServerConfig::default()
        };
        SequenceStore::new(&config, [("old", 7, 0)].into_iter())
    }

    #[test]
    fn numbers_go_on_in_steps_that_make_sense() {
        let mut store = store(10, 10);
        let mut take = |sequence| {
            let judged = store.is_duplicate("a", sequence);
            if judged == Ok(false) {
                store.record("a", sequence, 1);
            }
            judged
        };
        assert!(take(u64::MAX).is_err() && take(SEQUENCE_MAX + 1).is_err());
        assert_eq!(
            (take(1), take(1), take(3), take(2)),
            (Ok(false), Ok(true), Ok(false), Ok(true))
        );
        assert!(take(u64::MAX).is_err() && take(4 + SEQUENCE_JUMP).is_err());
        assert_eq!(take(3 + SEQUENCE_JUMP), Ok(false));
        // Numbers that are times in nanoseconds: years may lie between them.
        let now = 1_790_000_000_000_000_000;
        assert_eq!(store.is_duplicate("b", now), Ok(false));
        store.record("b", now, 1);
        assert_eq!(store.is_duplicate("b", now + 100_000_000_000_000_000), Ok(false));
        assert!(store.is_duplicate("b", now + now / 4).is_err());
        // A deletion that began earlier ends later.
        store.record("b", now - 1, 2);
        assert_eq!(store.last("b"), Some(now));
        store.record("c", SEQUENCE_MAX, 1);
        assert_eq!(store.is_duplicate("c", SEQUENCE_MAX), Ok(true));
        assert!(store.is_duplicate("c", SEQUENCE_MAX + 1).is_err());
    }

    #[test]
    fn names_have_a_quota_and_end() {
        let mut store = store(4, 2);
        assert_eq!(store.last("old"), Some(7));
        for name in ["ann\na", "ann\nb"] {
            assert_eq!(store.is_duplicate(name, 1), Ok(false));
            store.record(name, 1, 10);
        }
        assert_eq!(store.is_duplicate("ann\nc", 1), Err(CommandError::NamesOfUser(2)));
        assert_eq!(store.is_duplicate("ann\na", 2), Ok(false));
        assert_eq!(store.is_duplicate("bob\na", 1), Ok(false));
        store.record("bob\na", 1, 10);
        assert_eq!(store.is_duplicate("eve\na", 1), Err(CommandError::Names(4)));
        assert_eq!(store.is_duplicate("old", 7), Ok(true), "what is known stays known");

        // A name without a time counts as used at the first check.
        assert_eq!(store.next_unused(at(105), &mut 0), None);
        store.record("ann\na", 2, 90);
        let mut unused = Vec::new();
        while let Some(name) = store.next_unused(at(110), &mut 0) {
            unused.push(name);
        }
        unused.sort_unstable();
        assert_eq!(unused, ["ann\nb".into(), "bob\na".into()]);
        store.remove("ann\nb");
        store.keep("bob\na".into(), 110);
        assert_eq!(store.is_duplicate("ann\nc", 1), Ok(false), "there is room again");
        assert_eq!((store.last("ann\nb"), store.last("bob\na")), (None, Some(1)));
        assert_eq!(store.next_unused(at(204), &mut 0), None);
        assert_eq!(store.next_unused(at(205), &mut 0).as_deref(), Some("old"));
        assert_eq!(store.next_unused(at(205), &mut 0).as_deref(), Some("ann\na"));
        assert_eq!(store.next_unused(at(999), &mut STEP.clone()), None, "a turn has so many");
        assert_eq!(store.next_unused(at(999), &mut 0).as_deref(), Some("bob\na"));
    }

    #[test]
    fn a_clock_that_is_set_removes_no_name_and_keeps_none() {
        let age = Duration::from_nanos(100);
        let config = ServerConfig { names_age: age, ..ServerConfig::default() };
        // Used 70 before the start, in the future, and before the age.
        let known = [("a", 1, 930), ("b", 1, 5_000), ("c", 1, 10)];
        let mut store = SequenceStore::new(&config, known.into_iter());
        store.record("d", 1, 0);
        let mut ended = Vec::new();
        // The clock goes a year ahead, and an hour back.
        for (monotonic_ns, unix_ns) in [(0, 1_000), (29, 1_000_000), (31, 3), (99, 3), (101, 3)] {
            let now = Now { monotonic_ns, unix_ns };
            while let Some(name) = store.next_unused(now, &mut 0) {
                ended.push((monotonic_ns, name));
            }
        }
        let names = ended.iter().map(|(at, name)| (*at, &**name)).collect::<Vec<_>>();
        assert_eq!(names, [(0, "c"), (31, "a"), (101, "b"), (101, "d")]);
    }
}
