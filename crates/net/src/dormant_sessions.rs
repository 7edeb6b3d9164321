//! Sessions of a subscriber that have timed out, the oldest first.
//!
//! Their state allows recovery of what was missed, should the publisher come back.

use crate::context::NetContext;
use crate::receive_session::ReceiveSession;
use crate::source::Source;
use lanecast_protocol::Nanos;
use std::collections::VecDeque;
use std::io;

/// The most sessions that are kept.
const DORMANT_MAX: usize = 64;

/// Timed-out sessions. Owned by `ReceiveSessions`.
#[derive(Debug, Default)]
pub(crate) struct DormantSessions(VecDeque<ReceiveSession>);

impl DormantSessions {
    /// Keeps a session; returns the oldest one if they are too many.
    pub(crate) fn keep(&mut self, session: ReceiveSession) -> Option<ReceiveSession> {
        self.0.push_back(session);
        // Bounded: publishers that come and go would otherwise fill the memory.
        if self.0.len() > DORMANT_MAX { self.0.pop_front() } else { None }
    }

    /// Takes the session whose publisher has come back.
    ///
    /// # Errors
    /// If the system has no connection for it.
    pub(crate) fn revive(
        &mut self,
        context: &NetContext,
        source: &Source,
        now: Nanos,
    ) -> io::Result<Option<ReceiveSession>> {
        let Some(at) = self.0.iter().position(|session| session.is(source)) else {
            return Ok(None);
        };
        // Taken out only on success: its gaps can be recovered by a later attempt.
        let revived = self.0[at].revive(context, source, now)?;
        Ok(if revived { self.0.remove(at) } else { None })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &ReceiveSession> {
        self.0.iter()
    }
}
