//! What a publisher tells of itself.

use super::Outbound;
use crate::counters::PublisherCounters;
use lanecast_base::sync::Ordering;
use lanecast_protocol::Nanos;
use lanecast_protocol::sender::TopicError;

impl Outbound {
    /// Adds a topic; the same number for the same name.
    pub(crate) fn add_topic(&mut self, name: &str) -> Result<u32, TopicError> {
        let before = self.sender.topics();
        let number = self.sender.add_topic(name)?;
        if self.sender.topics() > before {
            self.board.add_topic(name);
        }
        Ok(number)
    }

    /// What has been counted so far.
    pub(crate) fn counters(&self) -> PublisherCounters {
        PublisherCounters {
            sent: *self.sender.counters(),
            topics: self.sender.topics() as u64,
            receivers: self.sender.joined() as u64,
            back_pressured: self.tally.back_pressured.load(Ordering::Relaxed),
            refused: self.refused,
        }
    }

    #[cold]
    pub(super) fn tell(&mut self, now: Nanos) {
        let counters = self.counters();
        self.board.show(now, &counters);
    }
}
