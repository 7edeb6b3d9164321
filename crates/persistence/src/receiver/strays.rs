//! Live messages of sessions that no store has named yet.

use crate::early::cost;
use crate::outlet::ReceiverOutlet;
use crate::receiver_event::ReceiverEvent;
use std::collections::{BTreeMap, VecDeque};

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
    /// Number of the first message that found no room.
    dropped: Option<u64>,
    /// Number after the last message.
    next: u64,
    has_left: bool,
}

impl Strays {
    pub(super) const fn new(bytes_max: usize) -> Self {
        Self { sessions: BTreeMap::new(), bytes: 0, bytes_max }
    }

    /// A message of an unknown session.
    pub(super) fn push(&mut self, session: u64, number: u64, body: &[u8], token: u64) -> Pushed {
        let (is_new, sessions) = (!self.sessions.contains_key(&session), self.sessions.len());
        if is_new && sessions >= COUNTED_MAX {
            return Pushed::Forgotten;
        }
        let dropped = (sessions >= SESSIONS_MAX).then_some(number);
        let messages = VecDeque::new();
        let new = || Stray { token, messages, dropped, next: number, has_left: false };
        let stray = self.sessions.entry(session).or_insert_with(new);
        stray.next = number + 1;
        // Behind a dropped message none is kept: they would be handed out in front of it.
        if stray.dropped.is_none() && self.bytes + cost(body) <= self.bytes_max {
            self.bytes += cost(body);
            stray.messages.push_back((number, body.into()));
        } else {
            stray.dropped.get_or_insert(number);
        }
        if is_new { Pushed::New } else { Pushed::Known }
    }

    /// A session has ended.
    pub(super) fn on_left(&mut self, session: u64) {
        if let Some(stray) = self.sessions.get_mut(&session) {
            stray.has_left = true;
        }
    }

    /// Sessions that were seen before the question `token` was asked, in ascending order.
    pub(super) fn asked_before(&self, token: u64) -> Vec<u64> {
        let is_old = |(session, stray): (&u64, &Stray)| (stray.token < token).then_some(*session);
        self.sessions.iter().filter_map(is_old).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Number of the first message of a session.
    pub(super) fn first(&self, session: u64) -> Option<u64> {
        let stray = self.sessions.get(&session)?;
        stray.messages.front().map(|(number, _)| *number).or(stray.dropped)
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

    /// Hands out the messages of a session that no store keeps.
    pub(super) fn deliver(&self, session: u64, out: &mut dyn ReceiverOutlet) {
        for (number, bytes) in self.messages() {
            out.event(ReceiverEvent::Unkept { session, number, bytes });
        }
        if let Some(first) = self.dropped {
            let count = self.next - first;
            out.event(ReceiverEvent::UnkeptLost { session, first, count });
        }
    }
}
