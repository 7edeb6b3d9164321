//! Gap reports: datagrams that were missed, recovered or given up, for monitoring.

use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{GapEnd, GapRecord};
use lanecast_transport::{LossReason, SessionId};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A report about a run of missing datagrams.
///
/// A gap is reported once when it is noticed, and then in parts as datagrams are recovered or
/// given up. Reports are for monitoring: lost messages also come to the handler as
/// [`Event::Lost`](lanecast_transport::Event::Lost), in order with the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapReport {
    /// The session.
    pub session: SessionId,
    /// The session's readable name.
    pub source: Arc<str>,
    /// Time at which the gap was noticed.
    pub noticed: SystemTime,
    /// Sequence of the first datagram.
    pub first: u64,
    /// Number of datagrams.
    pub count: u64,
    /// Their state.
    pub state: GapState,
}

/// State of the datagrams of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapState {
    /// Missing; NAKs will ask for them.
    Noticed,
    /// Received by repair, or rebuilt from parity.
    Recovered {
        /// Time since the gap was noticed.
        after: Duration,
    },
    /// Lost.
    GivenUp {
        /// Time since the gap was noticed.
        after: Duration,
        /// The reason.
        why: LossReason,
    },
}

impl GapReport {
    pub(crate) fn new(session: u64, source: &Arc<str>, record: &GapRecord, now: Nanos) -> Self {
        let age = Duration::from_nanos(now.saturating_sub(record.noticed));
        let after = Duration::from_nanos(record.after);
        Self {
            session: SessionId(session),
            source: Arc::clone(source),
            // Only the calendar clock is comparable across hosts; records have the monotonic one.
            noticed: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
            first: record.first,
            count: record.count,
            state: match record.end {
                GapEnd::Open => GapState::Noticed,
                GapEnd::Late | GapEnd::Repaired | GapEnd::Rebuilt => GapState::Recovered { after },
                GapEnd::Lost(why) => GapState::GivenUp { after, why },
            },
        }
    }
}
