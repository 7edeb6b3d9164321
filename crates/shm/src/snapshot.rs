//! Snapshots of a domain's sessions; two of them give rates.

use crate::error::JoinError;
use crate::inspect::{SessionReport, SubscriberReport, inspect};
use lanecast_stats::per_second;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// A domain's sessions at one moment.
#[derive(Debug)]
pub struct DomainSnapshot {
    /// Time of the snapshot.
    pub at: Instant,
    /// Sessions, in the order of creation.
    pub sessions: Vec<SessionReport>,
    /// Errors of unreadable sessions; each names its file.
    pub unreadable: Vec<JoinError>,
}

/// Rates of a session per second between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionRates {
    /// Messages published.
    pub messages: f64,
    /// Bytes published, with headers.
    pub bytes: f64,
    /// Claims that found no space.
    pub back_pressured: f64,
    /// Rates of its subscribers, in the order of the report.
    pub subscribers: Vec<SubscriberRates>,
}

/// Rates of a subscriber per second between two snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SubscriberRates {
    /// Messages read.
    pub messages: f64,
    /// Sleeps.
    pub sleeps: f64,
}

impl DomainSnapshot {
    /// Inspects the sessions in `directory`.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn take(directory: &Path) -> io::Result<Self> {
        let mut snapshot =
            Self { at: Instant::now(), sessions: Vec::new(), unreadable: Vec::new() };
        for report in inspect(directory)? {
            match report {
                Ok(report) => snapshot.sessions.push(report),
                Err(error) => snapshot.unreadable.push(error),
            }
        }
        snapshot.sessions.sort_by_key(|report| (report.created_unix_ns, report.session));
        Ok(snapshot)
    }

    /// Rates of `report`'s session from this snapshot until `at`; 0 for a session or subscriber
    /// that is not in this snapshot.
    pub fn rates_until(&self, report: &SessionReport, at: Instant) -> SessionRates {
        let elapsed = at.duration_since(self.at);
        let then = self.sessions.iter().find(|then| then.session == report.session);
        let Some(then) = then else {
            let subscribers = vec![SubscriberRates::default(); report.subscribers.len()];
            return SessionRates { subscribers, ..SessionRates::default() };
        };
        let subscribers = report.subscribers.iter();
        SessionRates {
            messages: per_second(then.messages, report.messages, elapsed),
            bytes: per_second(then.position, report.position, elapsed),
            back_pressured: per_second(then.back_pressured, report.back_pressured, elapsed),
            subscribers: subscribers.map(|now| subscriber(then, now, elapsed)).collect(),
        }
    }
}

fn subscriber(then: &SessionReport, now: &SubscriberReport, elapsed: Duration) -> SubscriberRates {
    let same = |then: &&SubscriberReport| (then.slot, then.process) == (now.slot, now.process);
    then.subscribers.iter().find(same).map_or_else(SubscriberRates::default, |then| {
        SubscriberRates {
            messages: per_second(then.messages, now.messages, elapsed),
            sleeps: per_second(then.sleeps, now.sleeps, elapsed),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(session: u64, messages: u64, readers: &[(usize, u64)]) -> SessionReport {
        let reader = |&(slot, messages)| SubscriberReport {
            slot,
            messages,
            sleeps: 3 * messages,
            ..SubscriberReport::default()
        };
        SessionReport {
            session,
            messages,
            position: 100 * messages,
            subscribers: readers.iter().map(reader).collect(),
            ..SessionReport::default()
        }
    }

    #[test]
    fn new_sessions_and_subscribers_have_no_rates() {
        let start = Instant::now();
        let sessions = vec![session(1, 10, &[(0, 4)])];
        let before = DomainSnapshot { at: start, sessions, unreadable: Vec::new() };
        let end = start + Duration::from_secs(2);
        let rates = before.rates_until(&session(1, 30, &[(0, 14), (1, 9)]), end);
        assert_eq!((rates.messages, rates.bytes, rates.back_pressured), (10.0, 1000.0, 0.0));
        let stayed = SubscriberRates { messages: 5.0, sleeps: 15.0 };
        assert_eq!(rates.subscribers, [stayed, SubscriberRates::default()]);
        let came = before.rates_until(&session(2, 30, &[(0, 14)]), end);
        assert_eq!((came.messages, came.subscribers), (0.0, vec![SubscriberRates::default()]));
    }
}
