//! What a subscriber tells of one of its sessions.

use super::{Session, Source};
use crate::Kind;
use crate::counters::SubscriberCounters;
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{Delivery, GapEnd, GapRecord};
use lanecast_stats::{Loss, LossCause, LossOutcome, unix_ns};
use lanecast_transport::LossReason;

impl Session {
    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    /// What it has counted, but for what its socket lost.
    pub(crate) fn counters(&self) -> SubscriberCounters {
        SubscriberCounters {
            received: *self.receiver.counters(),
            topics: self.joined,
            missing: self.receiver.missing(),
            kernel_drops: 0,
        }
    }

    pub(crate) fn show(&mut self, now: Nanos, kernel_drops: u64) {
        let counters = SubscriberCounters { kernel_drops, ..self.counters() };
        self.board.show(now, &counters);
    }

    /// Whether somebody can look at what it tells.
    pub(crate) const fn is_shown(&self) -> bool {
        self.board.due() != Nanos::MAX || self.board.logs()
    }

    /// The oldest record of a gap that nobody has had; what is over is logged.
    pub(crate) fn next_gap(&mut self, now: Nanos) -> Option<GapRecord> {
        let record = self.receiver.next_gap_record()?;
        let end = match record.end {
            GapEnd::Open => return Some(record),
            GapEnd::Recovered => LossOutcome::Recovered,
            GapEnd::Lost(why) => LossOutcome::GivenUp(reason(why)),
        };
        if self.board.logs() {
            self.board.loss(&Loss {
                source: &self.source.to_string(),
                topic: self.topic_of_datagrams(),
                session: self.source.session,
                unix_ns: unix_ns().saturating_sub(now.saturating_sub(record.noticed)),
                after_ns: record.after,
                first: record.first,
                count: Some(record.count),
                end,
            });
        }
        Some(record)
    }

    /// The topic that a datagram must be of, or nothing: a group's may be of any, others are of
    /// those that are wanted.
    fn topic_of_datagrams(&self) -> &str {
        match self.first {
            Some((slot, false)) if self.source.kind != Kind::Rm => self.receiver.topic(slot).name(),
            _ => "",
        }
    }

    /// Messages will not come, or a stream is over.
    #[cold]
    pub(super) fn note(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Lost { slot, first, count, why } if self.board.logs() => {
                self.board.loss(&Loss {
                    source: &self.source.to_string(),
                    topic: self.receiver.topic(*slot).name(),
                    session: self.source.session,
                    unix_ns: unix_ns(),
                    after_ns: 0,
                    first: *first,
                    count: *count,
                    end: LossOutcome::Reported(reason(*why)),
                });
            }
            Delivery::Left { .. } => self.joined = self.joined.saturating_sub(1),
            _ => {}
        }
    }
}

const fn reason(why: LossReason) -> LossCause {
    match why {
        LossReason::GaveUp => LossCause::GaveUp,
        LossReason::Gone => LossCause::Gone,
        LossReason::Skipped => LossCause::Skipped,
        LossReason::Evicted => LossCause::Evicted,
        // `Damaged`, and reasons that only other transports give.
        _ => LossCause::Damaged,
    }
}
