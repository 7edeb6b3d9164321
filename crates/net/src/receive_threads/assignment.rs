//! The receive thread of each session of one subscriber.

use crate::source::Source;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Sessions by number, each with its thread.
#[derive(Debug)]
pub(super) struct Assignment {
    sessions: HashMap<u64, AssignedSession>,
    /// Joins sent to each thread.
    joins: Vec<u64>,
}

#[derive(Debug)]
struct AssignedSession {
    thread: usize,
    group: Option<SocketAddr>,
    /// The thread's joins up to the last one of this session.
    joins: u64,
}

impl Assignment {
    pub(super) fn new(threads: usize) -> Self {
        Self { sessions: HashMap::new(), joins: vec![0; threads] }
    }

    /// The thread of a session: its own, or that of another session of its multicast group.
    pub(super) fn of(&self, source: &Source) -> Option<usize> {
        let in_group = || {
            let group = source.group?;
            self.sessions.values().find(|it| it.group == Some(group))
        };
        self.sessions.get(&source.session).or_else(in_group).map(|it| it.thread)
    }

    /// A join of the session is sent to `thread`; returns whether the session is new.
    pub(super) fn join(&mut self, source: &Source, thread: usize) -> bool {
        self.joins[thread] += 1;
        let assigned = AssignedSession { thread, group: source.group, joins: self.joins[thread] };
        self.sessions.insert(source.session, assigned).is_none()
    }

    /// Nothing was left of the session at `thread` after so many joins; returns whether it has no
    /// thread any more.
    pub(super) fn release(&mut self, session: u64, thread: usize, joins: u64) -> bool {
        // A join that was on its way has the session served there again.
        let is_last = |it: &AssignedSession| it.thread == thread && it.joins <= joins;
        let is_released = self.sessions.get(&session).is_some_and(is_last);
        if is_released {
            self.sessions.remove(&session);
        }
        is_released
    }

    /// The thread of each session.
    pub(super) fn threads(&self) -> impl Iterator<Item = usize> {
        self.sessions.values().map(|it| it.thread)
    }
}
