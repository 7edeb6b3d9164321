//! What a subscriber tells of itself.

use super::Inbound;
use crate::Kind;
use crate::counters::SubscriberCounters;
use crate::gap::GapReport;
use crate::session::{Session, Source};
use crate::telemetry::TELL_EVERY;
use lanecast_protocol::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most reports that wait for the application.
const REPORTS_MAX: usize = 1024;

/// What is told besides the messages, and when.
#[derive(Debug)]
pub(super) struct Telling {
    /// When the sessions are to be shown again; `Nanos::MAX` if there are none.
    due: Nanos,
    /// What former sessions have counted.
    past: SubscriberCounters,
    /// What the application has not fetched; nothing is kept before it asks.
    reports: Option<VecDeque<GapReport>>,
}

impl Telling {
    pub(super) fn new() -> Self {
        Self { due: Nanos::MAX, past: SubscriberCounters::default(), reports: None }
    }

    #[inline]
    pub(super) const fn due(&self) -> Nanos {
        self.due
    }
}

impl Inbound {
    /// A session has come, which may have to be shown.
    pub(super) fn begin_telling(&mut self, now: Nanos) {
        if self.sessions.iter().any(Session::is_shown) {
            self.telling.due = self.telling.due.min(now);
        }
    }

    /// Shows the sessions and logs what they have missed.
    pub(super) fn tell(&mut self, now: Nanos) {
        for index in 0..self.sessions.len() {
            let drops = self.dropped_for(self.sessions[index].source());
            self.sessions[index].show(now, drops);
        }
        self.gather_gaps(now);
        let is_shown = self.sessions.iter().any(Session::is_shown);
        self.telling.due = if is_shown { now.saturating_add(TELL_EVERY) } else { Nanos::MAX };
    }

    /// A session is about to be forgotten: what it has counted is not.
    pub(super) fn remember(&mut self, session: &Session) {
        self.telling.past.received.add(&session.counters().received);
    }

    /// The sockets of these groups are no longer needed.
    pub(super) fn leave_groups(&mut self) {
        let sessions = &self.sessions;
        let past = &mut self.telling.past.kernel_drops;
        self.groups.retain(|(group, socket)| {
            let needed = sessions.iter().any(|session| session.group() == Some(*group));
            *past += if needed { 0 } else { u64::from(socket.dropped().unwrap_or(0)) };
            needed
        });
    }

    /// What has been counted so far, former sessions included.
    pub(crate) fn counters(&self) -> SubscriberCounters {
        let mut sum = self.telling.past;
        for session in self.sessions.iter().chain(&self.dormant) {
            let counters = session.counters();
            sum.received.add(&counters.received);
            sum.topics += counters.topics;
            sum.missing += counters.missing;
        }
        let sockets = self.groups.iter().map(|(_, socket)| socket).chain([&self.own]);
        let drops = sockets.map(|socket| u64::from(socket.dropped().unwrap_or(0)));
        sum.kernel_drops += drops.sum::<u64>();
        sum
    }

    /// The oldest report that the application has not had. From the first call on, reports are
    /// kept for it.
    pub(crate) fn next_gap(&mut self, now: Nanos) -> Option<GapReport> {
        if self.telling.reports.get_or_insert_default().is_empty() {
            self.gather_gaps(now);
        }
        self.telling.reports.as_mut()?.pop_front()
    }

    pub(crate) fn note_error(&self, text: &str) {
        self.place.telemetry.error(text);
    }

    pub(super) fn gather_gaps(&mut self, now: Nanos) {
        for session in &mut self.sessions {
            let mut words: Option<Arc<str>> = None;
            while let Some(record) = session.next_gap(now) {
                let Some(reports) = &mut self.telling.reports else { continue };
                let source = session.source();
                let words = words.get_or_insert_with(|| source.to_string().into());
                if reports.len() == REPORTS_MAX {
                    reports.pop_front();
                }
                reports.push_back(GapReport::new(source.session, words, &record, now));
            }
        }
    }

    /// What the socket that a session comes by has lost.
    fn dropped_for(&self, source: &Source) -> u64 {
        let socket = match source.kind {
            Kind::Tcp => return 0,
            Kind::Ru => &self.own,
            Kind::Rm => {
                let mut groups = self.groups.iter();
                let known = groups.find(|(group, _)| Some(*group) == source.group);
                known.map_or(&self.own, |(_, socket)| socket)
            }
        };
        socket.dropped().unwrap_or(0).into()
    }
}
