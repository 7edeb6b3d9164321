//! Last sequence numbers of publishers: what a publisher sends again is told from what is new.
//!
//! The hub owns them and asks before each numbered command. Numbers of what durable topics have are
//! on disk as well, see `docs/protocol/state.md`. How many names are remembered is bounded, in all
//! and for each user, and a name that is not used is forgotten after a time.

use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::config::server_config::ServerConfig;
use crate::engine::Engine;
use foldhash::HashMap;
use lanecast_wire::command::{SEQUENCE_JUMP, SEQUENCE_MAX};
use std::collections::VecDeque;

/// Names that are looked at before others get their turn.
const STEP: usize = 64;

/// The last numbers of publishers, by name.
///
/// Where users are known a name begins with the user's and a line feed.
#[derive(Debug, Default)]
pub(crate) struct SequenceStore {
    names: HashMap<Box<str>, LastSequence>,
    /// How many of them each user has.
    users: HashMap<Box<str>, usize>,
    /// When it is to be seen whether a name is still used, in nanoseconds since 1970. Each name is
    /// there once.
    due: VecDeque<(u64, Box<str>)>,
    most: usize,
    most_of_user: usize,
    age_ns: u64,
}

/// The last number of a name.
#[derive(Clone, Copy, Debug)]
struct LastSequence {
    sequence: u64,
    /// When it was given, in nanoseconds since 1970; 0 if that is not known.
    unix_ns: u64,
}

impl SequenceStore {
    /// The names on disk, each with its last number and when that was given.
    pub(crate) fn new<'a>(
        settings: &ServerConfig,
        known: impl Iterator<Item = (&'a str, u64, u64)>,
    ) -> Self {
        let age_ns = u64::try_from(settings.names_age.as_nanos()).unwrap_or(u64::MAX);
        let (most, most_of_user) = (settings.names_max, settings.names_of_user_max);
        let mut store = Self { most, most_of_user, age_ns, ..Self::default() };
        for (name, sequence, unix_ns) in known.take(most) {
            store.insert(name, LastSequence { sequence, unix_ns });
        }
        store.due.make_contiguous().sort_unstable();
        store
    }

    /// The last number of a name, if one is known.
    pub(crate) fn last(&self, name: &str) -> Option<u64> {
        self.names.get(name).map(|last| last.sequence)
    }

    /// Whether numbers are remembered at all.
    pub(crate) fn is_on(&self) -> bool {
        self.most > 0
    }

    /// Whether a name has had this number, or a later one.
    ///
    /// # Errors
    /// If the number is too far beyond the last one, or there is no room for the name.
    pub(crate) fn is_duplicate(&self, name: &str, sequence: u64) -> Result<bool, CommandError> {
        let last = self.last(name);
        if last.is_some_and(|last| sequence <= last) {
            return Ok(true);
        }
        let farthest = last.map_or(SEQUENCE_MAX, |last| last + SEQUENCE_JUMP.max(last / 8));
        if sequence > farthest.min(SEQUENCE_MAX) {
            return Err(CommandError::Sequence { sequence, last: last.unwrap_or(0) });
        }
        if last.is_none() && self.is_on() {
            self.check_room(name)?;
        }
        Ok(false)
    }

    fn check_room(&self, name: &str) -> Result<(), CommandError> {
        if self.names.len() >= self.most {
            return Err(CommandError::Names(self.most));
        }
        let user = user_of(name).and_then(|user| self.users.get(user));
        match user {
            Some(count) if *count >= self.most_of_user => {
                Err(CommandError::NamesOfUser(self.most_of_user))
            }
            _ => Ok(()),
        }
    }

    /// A name has given this number.
    pub(crate) fn remember(&mut self, name: &str, sequence: u64, unix_ns: u64) {
        match self.names.get_mut(name) {
            Some(last) => *last = LastSequence { sequence, unix_ns },
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

    /// A name that may have been unused for too long: [`forget`](Self::forget) it, or
    /// [`keep`](Self::keep) it. A turn has so many of them at most.
    pub(crate) fn next_unused(&mut self, now_ns: u64, turn: &mut usize) -> Option<Box<str>> {
        while *turn < STEP && self.due.front().is_some_and(|(due, _)| *due <= now_ns) {
            *turn += 1;
            let (_, name) = self.due.pop_front()?;
            let Some(last) = self.names.get_mut(&name) else { continue };
            if last.unix_ns == 0 {
                last.unix_ns = now_ns;
            }
            let due = last.unix_ns.saturating_add(self.age_ns);
            if due <= now_ns {
                return Some(name);
            }
            self.due.push_back((due, name));
        }
        None
    }

    /// The name is used as of now.
    pub(crate) fn keep(&mut self, name: Box<str>, now_ns: u64) {
        if let Some(last) = self.names.get_mut(&name) {
            last.unix_ns = now_ns;
            self.due.push_back((now_ns.saturating_add(self.age_ns), name));
        }
    }

    /// The name is not remembered any more.
    pub(crate) fn forget(&mut self, name: &str) {
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

impl Engine {
    /// Whether a named client has had this number, or a later one.
    ///
    /// # Errors
    /// If it cannot be its next one, or no more names are remembered.
    pub(crate) fn is_duplicate(
        &mut self,
        id: ClientId,
        sequence: Option<u64>,
        now_ns: u64,
    ) -> Result<bool, CommandError> {
        let client = self.clients.get(id.0 as usize).and_then(Option::as_ref);
        let name = client.and_then(|client| client.numbered_as.clone());
        let Some((name, sequence)) = name.zip(sequence) else { return Ok(false) };
        let judged = match self.sequences.is_duplicate(&name, sequence) {
            Err(CommandError::Names(_) | CommandError::NamesOfUser(_)) => {
                self.forget_unused_names(now_ns);
                self.sequences.is_duplicate(&name, sequence)
            }
            judged => judged,
        };
        self.counters.duplicates += u64::from(judged == Ok(true));
        judged
    }

    /// Forgets names that no client has used for long, also on disk.
    pub(crate) fn forget_unused_names(&mut self, now_ns: u64) {
        let mut turn = 0;
        while let Some(name) = self.sequences.next_unused(now_ns, &mut turn) {
            let own = name.split_once('\n').map_or(&*name, |(_, own)| own);
            let client = self.in_use.get(own).and_then(|id| self.clients.get(id.0 as usize));
            let client = client.and_then(Option::as_ref);
            let is_used = client.is_some_and(|one| one.numbered_as.as_deref() == Some(&*name));
            let disk = self.world.disk.as_mut();
            // What the disk does not take is tried again when its time is over once more.
            if is_used || disk.is_some_and(|disk| disk.forget_name(&name, now_ns).is_err()) {
                self.sequences.keep(name, now_ns);
            } else {
                self.sequences.forget(&name);
            }
        }
    }
}

/// The user whose name it is, where users are known: names have no control characters.
fn user_of(name: &str) -> Option<&str> {
    name.split_once('\n').map(|(user, _)| user)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn store(most: usize, most_of_user: usize) -> SequenceStore {
        let settings = ServerConfig {
            names_max: most,
            names_of_user_max: most_of_user,
            names_age: Duration::from_nanos(100),
            ..ServerConfig::default()
        };
        SequenceStore::new(&settings, [("old", 7, 0)].into_iter())
    }

    #[test]
    fn numbers_go_on_in_steps_that_make_sense() {
        let mut store = store(10, 10);
        let mut take = |sequence| {
            let judged = store.is_duplicate("a", sequence);
            if judged == Ok(false) {
                store.remember("a", sequence, 1);
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
        store.remember("b", now, 1);
        assert_eq!(store.is_duplicate("b", now + 100_000_000_000_000_000), Ok(false));
        assert!(store.is_duplicate("b", now + now / 4).is_err());
        store.remember("c", SEQUENCE_MAX, 1);
        assert_eq!(store.is_duplicate("c", SEQUENCE_MAX), Ok(true));
        assert!(store.is_duplicate("c", SEQUENCE_MAX + 1).is_err());
    }

    #[test]
    fn names_have_a_quota_and_end() {
        let mut store = store(4, 2);
        assert_eq!(store.last("old"), Some(7));
        for name in ["ann\na", "ann\nb"] {
            assert_eq!(store.is_duplicate(name, 1), Ok(false));
            store.remember(name, 1, 10);
        }
        assert_eq!(store.is_duplicate("ann\nc", 1), Err(CommandError::NamesOfUser(2)));
        assert_eq!(store.is_duplicate("ann\na", 2), Ok(false));
        assert_eq!(store.is_duplicate("bob\na", 1), Ok(false));
        store.remember("bob\na", 1, 10);
        assert_eq!(store.is_duplicate("eve\na", 1), Err(CommandError::Names(4)));
        assert_eq!(store.is_duplicate("old", 7), Ok(true), "what is known stays known");

        // The first look at one whose time is not known is the beginning of its time.
        assert_eq!(store.next_unused(105, &mut 0), None);
        store.remember("ann\na", 2, 90);
        let mut unused = Vec::new();
        while let Some(name) = store.next_unused(110, &mut 0) {
            unused.push(name);
        }
        unused.sort_unstable();
        assert_eq!(unused, ["ann\nb".into(), "bob\na".into()]);
        store.forget("ann\nb");
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
