//! A subscriber's reporting: counters files, the log of losses, and gap reports.

use crate::counters::SubscriberCounters;
use crate::gap::GapReport;
use crate::receive_session::ReceiveSession;
use crate::receive_sockets::ReceiveSockets;
use crate::telemetry::UPDATE_INTERVAL;
use lanecast_protocol::Nanos;
use std::collections::VecDeque;
use std::sync::Arc;

/// The most gap reports that wait for the application.
const REPORTS_MAX: usize = 1024;

/// Reports of one subscriber.
#[derive(Debug)]
pub(crate) struct Reporting {
    /// Time of the next update of the counters files; `Nanos::MAX` without files.
    due: Nanos,
    /// Counters of sessions that have ended.
    past: SubscriberCounters,
    /// Unread gap reports; none are kept before the application asks for the first.
    gaps: Option<VecDeque<GapReport>>,
    /// Number of the receive thread that serves the sessions; 0: none.
    receive_thread: u64,
}

impl Reporting {
    pub(crate) fn new() -> Self {
        Self { due: Nanos::MAX, past: SubscriberCounters::default(), gaps: None, receive_thread: 0 }
    }

    /// The sessions are served by the receive thread of this number from now on; 0: by none.
    pub(crate) const fn set_receive_thread(&mut self, number: u64) {
        self.receive_thread = number;
    }

    #[inline]
    pub(crate) const fn due(&self) -> Nanos {
        self.due
    }

    /// A session has been added, perhaps with a counters file.
    pub(crate) fn start(&mut self, sessions: &[ReceiveSession], now: Nanos) {
        if sessions.iter().any(ReceiveSession::is_reported) {
            self.due = self.due.min(now);
        }
    }

    /// Makes the next update due at once: some sessions have many gap records.
    #[cold]
    pub(crate) const fn hurry(&mut self) {
        self.due = 0;
    }

    /// Updates the counters files, and logs gaps.
    pub(crate) fn update(
        &mut self,
        sessions: &mut [ReceiveSession],
        sockets: &ReceiveSockets,
        now: Nanos,
    ) {
        for session in &mut *sessions {
            let drops = sockets.dropped_for(session.source());
            session.update_counter_file(now, drops, self.receive_thread);
        }
        self.collect_gaps(sessions, now);
        let is_reported = sessions.iter().any(ReceiveSession::is_reported);
        // Without files there is nothing to update: the timer must not wake an idle thread.
        self.due = if is_reported { now.saturating_add(UPDATE_INTERVAL) } else { Nanos::MAX };
    }

    /// Keeps the counters of a session that ends.
    pub(crate) fn add_past(&mut self, session: &ReceiveSession) {
        // Totals never fall when a session goes; its topics and gaps go with it.
        self.past.received.add(&session.counters().received);
    }

    /// Keeps the drops of sockets that are closed.
    pub(crate) fn add_past_drops(&mut self, dropped: u64) {
        self.past.kernel_drops += dropped;
    }

    /// Counters over `sessions` and those that have ended.
    pub(crate) fn counters<'a>(
        &self,
        sessions: impl Iterator<Item = &'a ReceiveSession>,
        sockets: &ReceiveSockets,
    ) -> SubscriberCounters {
        let mut sum = self.past;
        for session in sessions {
            sum.add(&session.counters());
        }
        sum.kernel_drops += sockets.dropped();
        sum
    }

    /// The oldest unread gap report. Reports are kept from the first call on.
    pub(crate) fn next_gap(
        &mut self,
        sessions: &mut [ReceiveSession],
        now: Nanos,
    ) -> Option<GapReport> {
        if self.gaps.get_or_insert_default().is_empty() {
            self.collect_gaps(sessions, now);
        }
        self.gaps.as_mut()?.pop_front()
    }

    /// Takes the sessions' gap records, which are logged on the way.
    pub(crate) fn collect_gaps(&mut self, sessions: &mut [ReceiveSession], now: Nanos) {
        for session in sessions {
            let mut name: Option<Arc<str>> = None;
            while let Some(record) = session.next_gap(now) {
                // Taken and logged even if the application wants no reports: records would pile up.
                let Some(gaps) = &mut self.gaps else { continue };
                let source = session.source();
                let name = name.get_or_insert_with(|| source.to_string().into());
                // The newest are kept: an application that stops reading costs a fixed amount.
                if gaps.len() == REPORTS_MAX {
                    gaps.pop_front();
                }
                gaps.push_back(GapReport::new(source.session, name, &record, now));
            }
        }
    }
}
