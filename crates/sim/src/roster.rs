//! Roster of a publisher's subscribers: checks the events of the publisher.

use crate::ensure;
use crate::violation::{Verdict, Violation};
use lanecast_protocol::sender::{Pacing, Sender, SenderSettings};
use lanecast_transport::{DepartureReason, PublisherEvent, SubscriberId};
use std::collections::BTreeMap;

/// Subscribers of one session, by what the publisher was told of them.
#[derive(Debug, Default)]
pub struct Roster {
    /// Ids, and whether the subscriber is still there.
    subscribers: BTreeMap<SubscriberId, bool>,
    /// Departures by reason, in the order of [`REASONS`].
    left: [u64; REASONS.len()],
}

/// Reasons that a sender gives.
const REASONS: [DepartureReason; 4] = [
    DepartureReason::Left,
    DepartureReason::Died,
    DepartureReason::TimedOut,
    DepartureReason::Evicted,
];

impl Roster {
    /// Polls the sender's events: each receiver joins once and leaves once, for a reason that the
    /// sender has counted too; those that are there are the sender's receivers.
    pub fn poll(&mut self, sender: &mut Sender, settings: &SenderSettings) -> Verdict {
        let mut verdict = Ok(());
        sender.subscribers().poll_events(|event| {
            let noted = match event {
                PublisherEvent::SubscriberJoined(info) => self.join(info.id),
                PublisherEvent::SubscriberLeft(info, reason) => self.leave(info.id, reason),
                PublisherEvent::Writable => Ok(()),
                other => Err(Violation(format!("an unknown event: {other:?}"))),
            };
            verdict = std::mem::replace(&mut verdict, Ok(())).and(noted);
        });
        verdict?;
        let present = self.subscribers.values().filter(|is_there| **is_there).count();
        let receivers = sender.receivers();
        ensure!(present == receivers, "{present} subscribers are there, but {receivers} receivers");
        let counts = sender.counters();
        let [left, died, timed_out, evicted] = self.left;
        // A receiver without a topic is no subscriber, but counts as a receiver.
        ensure!(left <= counts.left, "{left} left, but only {} did", counts.left);
        let gone = died + timed_out;
        ensure!(gone <= counts.died, "{gone} died or timed out of {}", counts.died);
        ensure!(evicted == counts.ejected, "{evicted} evicted of {}", counts.ejected);
        let evicts = matches!(settings.pacing, Pacing::SlowestOrEject(_));
        ensure!(evicts || evicted == 0, "evicted under {:?}", settings.pacing);
        Ok(())
    }

    /// Number of subscribers so far, and of departures for [`DepartureReason::TimedOut`].
    pub fn totals(&self) -> (u64, u64) {
        (self.subscribers.len() as u64, self.left[2])
    }

    fn join(&mut self, id: SubscriberId) -> Verdict {
        ensure!(self.subscribers.insert(id, true).is_none(), "subscriber {id} joined twice");
        Ok(())
    }

    fn leave(&mut self, id: SubscriberId, reason: DepartureReason) -> Verdict {
        let was_there = self.subscribers.insert(id, false);
        ensure!(was_there == Some(true), "subscriber {id} left, but it was {was_there:?}");
        let at = REASONS.iter().position(|known| *known == reason);
        let at = at.ok_or_else(|| Violation(format!("it left for {reason:?}, which cannot be")))?;
        self.left[at] += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_events_are_noticed() {
        let (id, left) = (SubscriberId(1), DepartureReason::Left);
        let mut roster = Roster::default();
        assert!(roster.leave(id, left).is_err(), "it never joined");
        let mut roster = Roster::default();
        roster.join(id).expect("new");
        assert!(roster.join(id).is_err(), "twice");
        roster.leave(id, left).expect("it was there");
        assert!(roster.leave(id, left).is_err(), "twice");
        assert!(roster.join(id).is_err(), "an id is never used again");
        let mut roster = Roster::default();
        roster.join(id).expect("new");
        assert!(roster.leave(id, DepartureReason::Damaged).is_err(), "not between hosts");
        let mut sender = Sender::new(SenderSettings::default(), 0);
        let mut roster = Roster::default();
        roster.join(id).expect("new");
        assert!(
            roster.poll(&mut sender, &SenderSettings::default()).is_err(),
            "no receiver is there"
        );
    }
}
