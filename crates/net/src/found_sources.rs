//! Publishers that discovery has found for a subscriber, and that are not joined yet.
//!
//! Owned by the thread that serves the subscriber's sessions: the conductor, or a receive thread
//! for its share.

use crate::admission::Admission;
use crate::receive_sessions::ReceiveSessions;
use crate::source::Source;
use lanecast_protocol::Nanos;

/// The most joins that wait for a free session, and the most of them that are tried in one duty
/// cycle. Further topics of joined sessions do not wait.
const DEFERRED_MAX: usize = 4_096;
const DEFERRED_AT_ONCE: usize = 128;

/// Joins that are due.
#[derive(Debug, Default)]
pub(crate) struct FoundSources(Vec<(Source, String)>);

impl FoundSources {
    pub(crate) fn push(&mut self, source: Source, topic: String) {
        self.0.push((source, topic));
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sessions whose joins wait.
    pub(crate) fn sessions(&self) -> impl Iterator<Item = u64> {
        self.0.iter().map(|(source, _)| source.session)
    }

    /// Joins the publishers, as far as the limits of `sessions` allow now; returns whether one was
    /// refused, which discovery has to find anew.
    pub(crate) fn join(&mut self, sessions: &mut ReceiveSessions, now: Nanos) -> bool {
        let (mut deferred, mut tried, mut has_refused) = (Vec::new(), 0, false);
        for (source, topic) in self.0.drain(..) {
            // A joined session takes another topic without a join, so it need not wait.
            if tried >= DEFERRED_AT_ONCE && !sessions.has_session(&source) {
                deferred.push((source, topic));
                continue;
            }
            match sessions.join(&source, &topic, now) {
                // Without a session if the topic is refused, or the publisher is the subscriber's
                // own.
                Ok(Admission::Joined) => has_refused |= !sessions.has_session(&source),
                Ok(Admission::Deferred) => {
                    tried += 1;
                    deferred.push((source, topic));
                }
                // The next advertisement finds it again, perhaps when others have gone.
                Ok(Admission::Refused) => {
                    has_refused = true;
                    sessions.report_lost(source.session);
                }
                Err(error) => {
                    has_refused = true;
                    sessions.record_error(&format!("cannot join {topic:?} of {source}: {error}"));
                    sessions.report_lost(source.session);
                }
            }
        }
        // Joins that were not tried come first the next time.
        let (tried, most) = (tried.min(deferred.len()), deferred.len().min(DEFERRED_MAX));
        deferred.rotate_left(tried);
        // Too many to keep: discovery finds these again by their next advertisements.
        for (source, _) in deferred.drain(most..) {
            has_refused = true;
            sessions.report_lost(source.session);
        }
        self.0 = deferred;
        sessions.send_control(now);
        has_refused
    }
}
