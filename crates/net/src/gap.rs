//! What an application can be told of datagrams that are missing on the way.

use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{GapEnd, GapRecord};
use lanecast_transport::{LossReason, SessionId};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Something about a run of missing datagrams.
///
/// A gap is told of once when it is noticed, and then piece by piece as the datagrams come or are
/// given up. Messages that are lost to the application come as events of their own, in order with
/// the others: this is for whoever wants to watch the network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapReport {
    /// The session.
    pub session: SessionId,
    /// Where it comes from, for people.
    pub source: Arc<str>,
    /// When the datagrams were missed.
    pub noticed: SystemTime,
    /// The first one's sequence.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// What is known of them.
    pub state: GapState,
}

/// How a gap stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapState {
    /// The datagrams are missing, and will be asked for.
    Noticed,
    /// They have come.
    Recovered {
        /// How long after they were missed.
        after: Duration,
    },
    /// They will not come.
    GivenUp {
        /// How long after they were missed.
        after: Duration,
        /// Why.
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
            noticed: SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH),
            first: record.first,
            count: record.count,
            state: match record.end {
                GapEnd::Open => GapState::Noticed,
                GapEnd::Recovered => GapState::Recovered { after },
                GapEnd::Lost(why) => GapState::GivenUp { after, why },
            },
        }
    }
}
