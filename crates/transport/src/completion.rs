//! Completion of a session: which subscribers have read everything, and which have not.

use crate::publisher_event::{DepartureReason, SubscriberInfo};
use core::fmt;

/// Report of [`Publish::drain`](crate::Publish::drain) and
/// [`Publish::close`](crate::Publish::close): the subscribers that have read everything, and those
/// that have not.
///
/// A transport remembers a bounded number of departed subscribers; [`omitted`](Self::omitted)
/// counts those beyond it that had not read everything.
#[must_use = "subscribers may not have read everything"]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    complete: usize,
    incomplete: Vec<IncompleteSubscriber>,
    omitted: usize,
}

/// A subscriber that has not read everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IncompleteSubscriber {
    /// The subscriber.
    pub subscriber: SubscriberInfo,
    /// The reason.
    pub reason: IncompleteReason,
}

/// Reasons for which a subscriber has not read everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IncompleteReason {
    /// The subscriber still reads.
    Behind {
        /// Unread messages, of all topics of the session; `None` if the transport cannot count
        /// them.
        messages: Option<u64>,
        /// Unread bytes, with the transport's headers.
        bytes: u64,
    },
    /// The subscriber has lost messages on the way.
    LostMessages,
    /// The subscriber is gone. One that [left](DepartureReason::Left) did so with messages unread.
    Departed(DepartureReason),
}

impl Completion {
    /// Whether every subscriber has read everything. Subscribers that left by themselves count as
    /// if they had: they did not want the rest.
    pub fn is_complete(&self) -> bool {
        self.omitted == 0 && self.incomplete.iter().all(IncompleteSubscriber::has_left)
    }

    /// Whether the time was over before every joined subscriber had read everything.
    pub fn timed_out(&self) -> bool {
        let mut reasons = self.incomplete.iter().map(|subscriber| subscriber.reason);
        reasons.any(|reason| matches!(reason, IncompleteReason::Behind { .. }))
    }

    /// Number of subscribers that have read everything: joined ones, and those that departed after
    /// the last message.
    pub const fn complete(&self) -> usize {
        self.complete
    }

    /// The subscribers that have not read everything, those that left early among them.
    pub fn incomplete(&self) -> &[IncompleteSubscriber] {
        &self.incomplete
    }

    /// Number of departed subscribers that had not read everything, and are not in
    /// [`incomplete`](Self::incomplete): the transport remembers a bounded number.
    pub const fn omitted(&self) -> usize {
        self.omitted
    }

    /// Adds `count` subscribers that have read everything.
    pub const fn add_complete(&mut self, count: usize) {
        self.complete += count;
    }

    /// Adds a subscriber that has not read everything.
    pub fn add_incomplete(&mut self, subscriber: SubscriberInfo, reason: IncompleteReason) {
        self.incomplete.push(IncompleteSubscriber { subscriber, reason });
    }

    /// Adds `count` subscribers that had not read everything, and of which no more is known.
    pub const fn add_omitted(&mut self, count: usize) {
        self.omitted += count;
    }

    /// Adds the subscribers of another report: of the same session over another transport.
    pub fn merge(&mut self, other: Self) {
        self.complete += other.complete;
        self.incomplete.extend(other.incomplete);
        self.omitted += other.omitted;
    }
}

/// `2 subscribers read everything; did not: shm:3 (app, pid 71): died`
impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = if self.complete == 1 { "" } else { "s" };
        write!(f, "{} subscriber{s} read everything", self.complete)?;
        for (index, subscriber) in self.incomplete.iter().enumerate() {
            f.write_str(if index == 0 { "; did not: " } else { ", " })?;
            subscriber.fmt(f)?;
        }
        match self.omitted {
            0 => Ok(()),
            omitted => write!(f, "; nor did {omitted} others, which are gone"),
        }
    }
}

impl IncompleteSubscriber {
    /// Whether the subscriber left by itself.
    pub fn has_left(&self) -> bool {
        self.reason == IncompleteReason::Departed(DepartureReason::Left)
    }
}

/// `shm:3 (app, pid 71): died`
impl fmt::Display for IncompleteSubscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subscriber, self.reason)
    }
}

impl fmt::Display for IncompleteReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Behind { messages: Some(messages), .. } => {
                let s = if *messages == 1 { "" } else { "s" };
                write!(f, "still has {messages} message{s} to read")
            }
            Self::Behind { messages: None, bytes } => {
                write!(f, "still has {bytes} bytes to read")
            }
            Self::LostMessages => f.write_str("lost messages"),
            Self::Departed(DepartureReason::Left) => f.write_str("left early"),
            Self::Departed(reason) => reason.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SubscriberId;

    fn subscriber(slot: u64) -> SubscriberInfo {
        let name = (slot == 1).then(|| "app".to_owned());
        let pid = (slot < 3).then_some(70 + slot as u32);
        SubscriberInfo { id: SubscriberId(slot), address: format!("shm:{slot}"), pid, name }
    }

    #[test]
    fn only_subscribers_that_left_by_themselves_are_excused() {
        let departed = IncompleteReason::Departed;
        let mut report = Completion::default();
        assert!(report.is_complete());
        report.add_complete(1);
        report.add_incomplete(subscriber(1), departed(DepartureReason::Left));
        assert!(report.is_complete() && !report.timed_out());
        for reason in [
            IncompleteReason::Behind { messages: None, bytes: 9 },
            IncompleteReason::LostMessages,
            departed(DepartureReason::Died),
            departed(DepartureReason::TimedOut),
            departed(DepartureReason::Evicted),
            departed(DepartureReason::Damaged),
        ] {
            let mut report = report.clone();
            report.add_incomplete(subscriber(2), reason);
            assert!(!report.is_complete(), "{reason}");
            assert_eq!(report.timed_out(), matches!(reason, IncompleteReason::Behind { .. }));
        }
        report.add_omitted(1);
        assert!(!report.is_complete());
    }

    #[test]
    fn a_report_names_each_subscriber() {
        let mut report = Completion::default();
        report.add_complete(2);
        report.add_incomplete(subscriber(1), IncompleteReason::Departed(DepartureReason::Died));
        let mut other = Completion::default();
        let behind = IncompleteReason::Behind { messages: Some(1), bytes: 40 };
        other.add_incomplete(subscriber(2), behind);
        other.add_incomplete(subscriber(3), IncompleteReason::LostMessages);
        other.add_omitted(4);
        report.merge(other);
        assert_eq!(
            report.to_string(),
            "2 subscribers read everything; did not: shm:1 (app, pid 71): died, shm:2 (pid 72): \
             still has 1 message to read, shm:3: lost messages; nor did 4 others, which are gone"
        );
    }
}
