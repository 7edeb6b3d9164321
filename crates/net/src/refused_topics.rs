//! Topics of a subscriber's patterns that found no room, to be found again.
//!
//! Owned by the conductor, one for each subscriber. Discovery reports a publisher once; so the
//! conductor has it report the publishers of such topics again when there is room.

use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_transport::TopicSelection;

/// Pause between two looks, as room is made on threads that do not wake the conductor; and between
/// room and the report: by then discovery knows of the publishers that have left.
const PAUSE: Nanos = 100 * MILLISECOND;

/// Refused topics of one subscriber.
#[derive(Debug, Default)]
pub(crate) struct RefusedTopics {
    /// Topics refused when they were last reported again.
    seen: usize,
    /// Time of the report, once there is room.
    due: Option<Nanos>,
}

impl RefusedTopics {
    /// Whether topics are to be reported again now; otherwise the time of the next look, if there
    /// has to be one.
    pub(crate) fn look(&mut self, topics: &TopicSelection, now: Nanos) -> Result<(), Nanos> {
        let refused = topics.refused();
        if refused == self.seen {
            return Err(Nanos::MAX);
        }
        if !topics.has_room() {
            self.due = None;
            return Err(now.saturating_add(PAUSE));
        }
        let due = *self.due.get_or_insert(now.saturating_add(PAUSE));
        if due > now {
            return Err(due);
        }
        *self = Self { seen: refused, due: None };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_transport::TopicPattern;

    #[test]
    fn topics_are_reported_again_once_there_is_room() {
        let pattern = TopicPattern::wildcard("a.*").expect("a pattern");
        let topics = TopicSelection::of_patterns(vec![pattern], 1);
        let mut refused = RefusedTopics::default();
        assert_eq!(refused.look(&topics, 0), Err(Nanos::MAX), "nothing was refused");
        let mut first = topics.admission();
        assert!(first.admit("a.1") && !first.admit("a.2"));
        assert_eq!(refused.look(&topics, 0), Err(PAUSE), "there is no room");
        drop(first);
        assert_eq!(refused.look(&topics, 5), Err(5 + PAUSE));
        assert_eq!(refused.look(&topics, 5 + PAUSE), Ok(()));
        assert_eq!(refused.look(&topics, 6 + PAUSE), Err(Nanos::MAX), "once");
        topics.refuse();
        assert_eq!(refused.look(&topics, 7 + PAUSE), Err(7 + 2 * PAUSE), "refused anew");
    }
}
