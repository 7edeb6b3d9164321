//! A publisher's subscribers over time: the state behind events and completion, for transports.

use crate::completion::{Completion, IncompleteReason};
use crate::publisher_event::{DepartureReason, PublisherEvent, SubscriberId, SubscriberInfo};
use std::collections::VecDeque;

/// Most departures kept for [`Membership::completion`].
const DEPARTED_MAX: usize = 256;
/// Most subscribers kept that joined and left between two polls.
const UNSEEN_MAX: usize = 256;

/// The subscribers of a publisher: present ones, departed ones, and the events that are pending.
///
/// Events are derived from this state when the publisher polls. So a program that never polls pays
/// for joins and departures only, and memory stays bounded: a subscriber whose `SubscriberJoined`
/// was given stays until its `SubscriberLeft` was given too; of those that joined and left
/// between two polls the latest 256 are kept, and older ones appear in no event.
#[derive(Debug, Default)]
pub struct Membership {
    present: Vec<Member>,
    /// Departures whose events are pending, oldest first.
    pending: VecDeque<(Member, DepartureReason)>,
    departed: VecDeque<Departed>,
    /// Departures that had not read everything, beyond [`DEPARTED_MAX`].
    omitted: usize,
}

#[derive(Debug)]
struct Member {
    info: SubscriberInfo,
    /// `SubscriberJoined` was given.
    is_announced: bool,
}

/// The state in which a subscriber departed.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// The reason.
    pub reason: DepartureReason,
    /// Progress of the subscriber at its departure.
    pub progress: Progress,
}

/// Progress of a departed subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Everything, up to this end of the stream: a position, or a number of messages.
    ReadAllOf(u64),
    /// Not everything published by then.
    Behind,
    /// Some messages were lost on the way.
    Lost,
    /// The transport does not know.
    Unknown,
}

#[derive(Debug)]
struct Departed {
    info: SubscriberInfo,
    departure: Departure,
}

impl Departed {
    /// Why the subscriber has not read everything; `is_all`: as for [`Membership::completion`].
    fn incomplete_reason(&self, is_all: &impl Fn(u64) -> bool) -> Option<IncompleteReason> {
        let Departure { reason, progress } = self.departure;
        match progress {
            Progress::Lost => Some(IncompleteReason::LostMessages),
            Progress::ReadAllOf(read) if is_all(read) => None,
            // Messages published after it left were not meant for it.
            Progress::ReadAllOf(_) | Progress::Unknown if reason == DepartureReason::Left => None,
            _ => Some(IncompleteReason::Departed(reason)),
        }
    }

    /// Whether the subscriber makes a completion incomplete, or may do so after further messages.
    const fn counts(&self) -> bool {
        let Departure { reason, progress } = self.departure;
        matches!(progress, Progress::Lost) || !matches!(reason, DepartureReason::Left)
    }
}

impl Membership {
    /// A subscriber has joined.
    pub fn join(&mut self, info: SubscriberInfo) {
        self.present.push(Member { info, is_announced: false });
    }

    /// The present subscriber with that id.
    pub fn get(&self, id: SubscriberId) -> Option<&SubscriberInfo> {
        self.present.iter().map(|member| &member.info).find(|info| info.id == id)
    }

    /// A subscriber has departed; no effect if it is not present.
    pub fn depart(&mut self, id: SubscriberId, departure: Departure) {
        let Some(at) = self.present.iter().position(|member| member.info.id == id) else { return };
        let member = self.present.remove(at);
        self.remember(Departed { info: member.info.clone(), departure });
        if !member.is_announced {
            let unseen = self.pending.iter().filter(|(member, _)| !member.is_announced);
            if unseen.count() >= UNSEEN_MAX
                && let Some(oldest) = self.pending.iter().position(|(it, _)| !it.is_announced)
            {
                self.pending.remove(oldest);
            }
        }
        self.pending.push_back((member, departure.reason));
    }

    fn remember(&mut self, departed: Departed) {
        if self.departed.len() >= DEPARTED_MAX {
            // Subscribers that left by themselves go first: completion does not depend on them.
            if let Some(at) = self.departed.iter().position(|known| !known.counts()) {
                self.departed.remove(at);
            } else {
                self.omitted += usize::from(departed.counts());
                return;
            }
        }
        self.departed.push_back(departed);
    }

    /// Forgets a departure: the subscriber has come back, and has missed nothing. Returns false if
    /// it is not remembered.
    pub fn forget(&mut self, id: SubscriberId) -> bool {
        let at = self.departed.iter().position(|known| known.info.id == id);
        at.is_some_and(|at| self.departed.remove(at).is_some())
    }

    /// Gives the pending events to `handler`; returns their number.
    ///
    /// Departures come first, in their order, each preceded by the subscriber's `SubscriberJoined`
    /// if that was not given yet; then the subscribers that are new and present.
    pub fn poll(&mut self, mut handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        let mut events = 0;
        while let Some((member, reason)) = self.pending.front_mut() {
            events += 1;
            // Marked and removed first: a handler that panics has got its event.
            if !std::mem::replace(&mut member.is_announced, true) {
                handler(PublisherEvent::SubscriberJoined(&member.info));
                continue;
            }
            let reason = *reason;
            if let Some((member, _)) = self.pending.pop_front() {
                handler(PublisherEvent::SubscriberLeft(&member.info, reason));
            }
        }
        for member in self.present.iter_mut().filter(|member| !member.is_announced) {
            member.is_announced = true;
            events += 1;
            handler(PublisherEvent::SubscriberJoined(&member.info));
        }
        events
    }

    /// Report on the departed subscribers; the transport adds the present ones. `is_all`: whether
    /// a subscriber that has read [up to there](Progress::ReadAllOf) has read everything.
    pub fn completion(&self, is_all: impl Fn(u64) -> bool) -> Completion {
        let mut completion = Completion::default();
        for known in &self.departed {
            match (known.incomplete_reason(&is_all), known.departure.progress) {
                (Some(reason), _) => completion.add_incomplete(known.info.clone(), reason),
                (None, Progress::ReadAllOf(read)) if is_all(read) => completion.add_complete(1),
                (None, _) => {}
            }
        }
        completion.add_omitted(self.omitted);
        completion
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(id: u64) -> SubscriberInfo {
        SubscriberInfo { id: SubscriberId(id), address: format!("at {id}"), pid: None, name: None }
    }

    fn departure(reason: DepartureReason, read: Option<u64>) -> Departure {
        Departure { reason, progress: read.map_or(Progress::Behind, Progress::ReadAllOf) }
    }

    fn poll(membership: &mut Membership) -> Vec<String> {
        let mut events = Vec::new();
        let count = membership.poll(|event| {
            events.push(match event {
                PublisherEvent::SubscriberJoined(info) => format!("+{}", info.id.0),
                PublisherEvent::SubscriberLeft(info, reason) => format!("-{} {reason}", info.id.0),
                PublisherEvent::Writable => unreachable!("not of this state"),
            });
        });
        assert_eq!(count, events.len());
        events
    }

    #[test]
    fn each_subscriber_joins_and_leaves_once() {
        let mut membership = Membership::default();
        membership.join(info(1));
        membership.join(info(2));
        membership.depart(SubscriberId(1), departure(DepartureReason::Died, None));
        membership.depart(SubscriberId(1), departure(DepartureReason::Left, None));
        assert_eq!(poll(&mut membership), ["+1", "-1 died", "+2"]);
        assert_eq!(poll(&mut membership), [""; 0]);
        membership.join(info(3));
        membership.depart(SubscriberId(2), departure(DepartureReason::Evicted, None));
        assert_eq!(poll(&mut membership), ["-2 evicted", "+3"]);
    }

    #[test]
    fn a_handler_that_panics_has_got_its_event() {
        let mut membership = Membership::default();
        membership.join(info(1));
        membership.join(info(2));
        membership.depart(SubscriberId(1), departure(DepartureReason::Left, None));
        for _ in 0..3 {
            let poll = || membership.poll(|_| std::panic::resume_unwind(Box::new(())));
            assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
        }
        assert_eq!(poll(&mut membership), [""; 0]);
    }

    #[test]
    fn a_program_that_never_polls_keeps_a_bounded_history() {
        let mut membership = Membership::default();
        membership.join(info(0));
        assert_eq!(poll(&mut membership), ["+0"]);
        membership.depart(SubscriberId(0), departure(DepartureReason::Left, None));
        for id in 1..=10_000 {
            membership.join(info(id));
            membership.depart(SubscriberId(id), departure(DepartureReason::Died, None));
        }
        assert!(membership.pending.len() <= UNSEEN_MAX + 1 && membership.departed.len() <= 256);
        let completion = membership.completion(|read| read == 0);
        assert_eq!(completion.incomplete().len() + completion.omitted(), 10_000);
        let events = poll(&mut membership);
        assert_eq!(events.len(), 1 + 2 * UNSEEN_MAX);
        assert_eq!(events[0], "-0 left", "its Joined was given, so its Left is never dropped");
        assert_eq!(events.last().map(String::as_str), Some("-10000 died"));
    }

    #[test]
    fn completion_goes_by_what_was_read_until_the_end() {
        let mut membership = Membership::default();
        (1..=8).for_each(|id| membership.join(info(id)));
        let read = |reason| departure(reason, Some(10));
        membership.depart(SubscriberId(1), read(DepartureReason::Left));
        membership.depart(SubscriberId(2), read(DepartureReason::Died));
        membership.depart(SubscriberId(3), departure(DepartureReason::Left, None));
        membership.depart(SubscriberId(4), departure(DepartureReason::TimedOut, None));
        membership.depart(SubscriberId(5), departure(DepartureReason::TimedOut, None));
        let (left, died) = (DepartureReason::Left, DepartureReason::Died);
        let ends = [(left, Progress::Lost), (left, Progress::Unknown), (died, Progress::Unknown)];
        for (id, (reason, progress)) in (6..).zip(ends) {
            membership.depart(SubscriberId(id), Departure { reason, progress });
        }
        assert!(membership.forget(SubscriberId(5)) && !membership.forget(SubscriberId(5)));
        let ids = |end| {
            let report = membership.completion(|read| read == end);
            let ids = report.incomplete().iter().map(|it| it.subscriber.id.0).collect::<Vec<_>>();
            (report.complete(), ids)
        };
        assert_eq!(ids(10), (2, vec![3, 4, 6, 8]));
        assert_eq!(ids(11), (0, vec![2, 3, 4, 6, 8]), "a dead one has not read the last message");
    }
}
