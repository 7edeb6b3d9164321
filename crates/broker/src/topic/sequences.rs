//! Last sequence numbers of publishers, by which duplicates are detected.
//!
//! The engine's state owns them, and checks them before each numbered command. Numbers of commands
//! to durable topics are on disk as well, see `docs/protocol/state.md`. The number of names is
//! limited in all and for each user, and unused names expire.

use crate::command::error::CommandError;
use crate::config::server_config::ServerConfig;
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
    /// Times at which names may expire, in nanoseconds since 1970; each name once.
    due: VecDeque<(u64, Box<str>)>,
    names_max: usize,
    names_of_user_max: usize,
    age_ns: u64,
}

/// The last sequence number of a name.
#[derive(Clone, Copy, Debug)]
struct LastSequence {
    sequence: u64,
    /// When it was used, in nanoseconds since 1970; 0 if unknown.
    unix_ns: u64,
}

impl SequenceStore {
    /// Starts with the names on disk: each with its last number and its time.
    pub(crate) fn new<'a>(
        config: &ServerConfig,
        known: impl Iterator<Item = (&'a str, u64, u64)>,
    ) -> Self {
        let age_ns = u64::try_from(config.names_age.as_nanos()).unwrap_or(u64::MAX);
        let (names_max, names_of_user_max) = (config.names_max, config.names_of_user_max);
        let mut store = Self { names_max, names_of_user_max, age_ns, ..Self::default() };
        for (name, sequence, unix_ns) in known.take(names_max) {
            store.insert(name, LastSequence { sequence, unix_ns });
        }
        // Sorted once here; later names arrive in the order of their times.
        store.due.make_contiguous().sort_unstable();
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
    pub(crate) fn record(&mut self, name: &str, sequence: u64, unix_ns: u64) {
        match self.names.get_mut(name) {
            // A deletion that takes several turns ends after later commands.
            Some(last) => {
                *last = LastSequence { sequence: last.sequence.max(sequence), unix_ns };
            }
            None => self.insert(name, LastSequence { sequence, unix_ns }),
        }
    }

    fn insert(&mut self, name: &str, last: LastSequence) {
        if let Some(user) = user_of(name) {
            *self.users.entry(user.into()).or_default() += 1;
        }
        self.due.push_back((last.unix_ns.saturating_add(self.age_ns), name.into()));
        self.names.insert(name.into(), last);
    }

    /// Takes a name that was unused for too long: the caller [removes](Self::remove) it, or
    /// [keeps](Self::keep) it. `examined` counts the names of this turn.
    pub(crate) fn next_unused(&mut self, now_ns: u64, examined: &mut usize) -> Option<Box<str>> {
        while *examined < STEP && self.due.front().is_some_and(|(due, _)| *due <= now_ns) {
            *examined += 1;
            let (_, name) = self.due.pop_front()?;
            let Some(last) = self.names.get_mut(&name) else { continue };
            if last.unix_ns == 0 {
                // Without a time the name's age begins now, rather than in 1970.
                last.unix_ns = now_ns;
            }
            let due = last.unix_ns.saturating_add(self.age_ns);
            if due <= now_ns {
                return Some(name);
            }
            // Used since: publishing does not touch the list, so the entry moves only here.
            self.due.push_back((due, name));
        }
        None
    }

    /// Marks a name as used now.
    pub(crate) fn keep(&mut self, name: Box<str>, now_ns: u64) {
        if let Some(last) = self.names.get_mut(&name) {
            last.unix_ns = now_ns;
            self.due.push_back((now_ns.saturating_add(self.age_ns), name));
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
        assert_eq!(store.next_unused(105, &mut 0), None);
        store.record("ann\na", 2, 90);
        let mut unused = Vec::new();
        while let Some(name) = store.next_unused(110, &mut 0) {
            unused.push(name);
        }
        unused.sort_unstable();
        assert_eq!(unused, ["ann\nb".into(), "bob\na".into()]);
        store.remove("ann\nb");
        store.keep("bob\na".into(), 110);
        assert_eq!(store.is_duplicate("ann\nc", 1), Ok(false), "there is room again");
        assert_eq!((store.last("ann\nb"), store.last("bob\na")), (None, Some(1)));
        assert_eq!(store.next_unused(204, &mut 0), None);
        assert_eq!(store.next_unused(205, &mut 0).as_deref(), Some("old"));
        assert_eq!(store.next_unused(205, &mut 0).as_deref(), Some("ann\na"));
        assert_eq!(store.next_unused(999, &mut STEP.clone()), None, "a turn has so many");
        assert_eq!(store.next_unused(999, &mut 0).as_deref(), Some("bob\na"));
    }
}
