//! Live messages of sessions that no store has named yet.

use crate::early::cost;
use crate::outlet::ReceiverOutlet;
use crate::receiver_event::ReceiverEvent;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Most sessions that wait to be named with their messages.
const SESSIONS_MAX: usize = 1_024;
/// Most sessions that wait to be named. Of those beyond the ones above only the numbers of their
/// messages are kept, so that these can be told to be lost.
const COUNTED_MAX: usize = 65_536;

/// Result of a push.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The message's session waits from now on: the stores have to be asked for it.
    New,
    /// The message's session waits already.
    Known,
    /// Too many sessions wait.
    Forgotten,
}

/// Sessions whose stream is unknown, with their messages.
#[derive(Clone, Debug)]
pub(super) struct Strays {
    sessions: BTreeMap<u64, Stray>,
    bytes: usize,
    bytes_max: usize,
}

/// A session whose stream is unknown.
#[derive(Clone, Debug)]
pub(super) struct Stray {
    /// Only answers to later questions tell whether a store keeps its messages.
    token: u64,
    messages: VecDeque<(u64, Box<[u8]>)>,
    /// A message found no room. Behind it none is kept: they would be handed out in front of it.
    is_full: bool,
    /// Number of the first message that came or was lost.
    first: u64,
    /// Number after the last one.
    next: u64,
    has_left: bool,
}

impl Strays {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { sessions: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// A message of an unknown session.
    pub(super) fn push(&mut self, session: u64, number: u64, body: &[u8], token: u64) -> Pushed {
        let (pushed, stray) = Self::stray(&mut self.sessions, session, number, token);
        let Some(stray) = stray else { return pushed };
        // A subscription that took the place of another one may bring it again.
        if number < stray.next {
            return pushed;
        }
        stray.next = number.saturating_add(1);
        if !stray.is_full && self.bytes + cost(body) <= self.bytes_max {
            self.bytes += cost(body);
            stray.messages.push_back((number, body.into()));
        } else {
            stray.is_full = true;
        }
        pushed
    }

    /// Messages of an unknown session were lost.
    pub(super) fn lose(&mut self, session: u64, numbers: Range<u64>, token: u64) -> Pushed {
        let (pushed, stray) = Self::stray(&mut self.sessions, session, numbers.start, token);
        if let Some(stray) = stray {
            stray.next = stray.next.max(numbers.end);
        }
        pushed
    }

    /// A session of which something is heard; `None` if too many wait.
    fn stray(
        sessions: &mut BTreeMap<u64, Stray>,
        session: u64,
        first: u64,
        token: u64,
    ) -> (Pushed, Option<&mut Stray>) {
        let count = sessions.len();
        match sessions.entry(session) {
            Entry::Occupied(stray) => (Pushed::Known, Some(stray.into_mut())),
            Entry::Vacant(_) if count >= COUNTED_MAX => (Pushed::Forgotten, None),
            Entry::Vacant(vacant) => {
                let (messages, is_full) = (VecDeque::new(), count >= SESSIONS_MAX);
                let stray = Stray { token, messages, is_full, first, next: first, has_left: false };
                (Pushed::New, Some(vacant.insert(stray)))
            }
        }
    }

    /// A session has ended; returns whether it waits.
    pub(super) fn on_left(&mut self, session: u64) -> bool {
        let stray = self.sessions.get_mut(&session);
        stray.map(|stray| stray.has_left = true).is_some()
    }

    /// Sessions that were seen before the question `token` was asked, in ascending order.
    pub(super) fn asked_before(&self, token: u64) -> Vec<u64> {
        let is_old = |(session, stray): (&u64, &Stray)| (stray.token < token).then_some(*session);
        self.sessions.iter().filter_map(is_old).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Number of the first message of a session that came or was lost.
    pub(super) fn first(&self, session: u64) -> Option<u64> {
        self.sessions.get(&session).map(|stray| stray.first)
    }

    /// Whether a session waits, and has ended.
    pub(super) fn has_left(&self, session: u64) -> bool {
        self.sessions.get(&session).is_some_and(Stray::has_left)
    }

    /// Takes the messages of a session.
    pub(super) fn take(&mut self, session: u64) -> Option<Stray> {
        let stray = self.sessions.remove(&session)?;
        self.bytes -= stray.messages.iter().map(|(_, body)| cost(body)).sum::<usize>();
        Some(stray)
    }
}

impl Stray {
    /// Whether the session has ended.
    pub(super) const fn has_left(&self) -> bool {
        self.has_left
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.messages.iter().map(|(number, body)| (*number, &**body))
    }

    /// Number after the last message that came or was lost.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Hands out the messages of a session that no store keeps, and tells those between them and
    /// behind them that are lost.
    pub(super) fn deliver(&self, session: u64, out: &mut dyn ReceiverOutlet) {
        let mut next = self.first;
        for (number, bytes) in self.messages() {
            tell_lost(session, next..number, out);
            out.event(ReceiverEvent::Unkept { session, number, bytes });
            next = number.saturating_add(1);
        }
        tell_lost(session, next..self.next, out);
    }
}

/// Tells that these messages of a session that no store keeps are lost, if there are any.
pub(super) fn tell_lost(session: u64, numbers: Range<u64>, out: &mut dyn ReceiverOutlet) {
    if !numbers.is_empty() {
        let (first, count) = (numbers.start, numbers.end - numbers.start);
        out.event(ReceiverEvent::UnkeptLost { session, first, count });
    }
}
