//! A run of events of a durable subscriber, which stay valid until the run is dropped.

use crate::held_events::HeldEvents;
use lanecast_persistence::{Nanos, Receiver, ReceiverEvent};
use std::cell::Cell;

/// A run of events, returned by [`DurableSubscriber::take`](crate::DurableSubscriber::take).
///
/// As with [`lanecast_transport::Run`], the events borrow from the run, so that several can be held
/// at once, and only its drop consumes them, up to the last one that an iterator yielded. Events
/// that were not yielded come again, with the next take or poll.
#[must_use = "a run that is dropped at once consumes nothing"]
#[derive(Debug)]
pub struct DurableRun<'a> {
    held: &'a mut HeldEvents,
    /// Learns what was consumed, unless the program says so itself.
    receiver: Option<&'a mut Receiver>,
    now: Nanos,
    limit: usize,
    /// Most events that an iterator has yielded.
    yielded: Cell<usize>,
}

impl<'a> DurableRun<'a> {
    pub(crate) const fn new(
        held: &'a mut HeldEvents,
        receiver: Option<&'a mut Receiver>,
        now: Nanos,
        limit: usize,
    ) -> Self {
        Self { held, receiver, now, limit, yielded: Cell::new(0) }
    }

    /// The events, from the first one on; each call starts again.
    pub const fn iter(&self) -> DurableEvents<'_> {
        DurableEvents { held: self.held, limit: self.limit, next: 0, yielded: &self.yielded }
    }
}

impl<'r> IntoIterator for &'r DurableRun<'_> {
    type Item = ReceiverEvent<'r>;
    type IntoIter = DurableEvents<'r>;

    fn into_iter(self) -> DurableEvents<'r> {
        self.iter()
    }
}

impl Drop for DurableRun<'_> {
    fn drop(&mut self) {
        let count = self.yielded.get();
        if let Some(receiver) = &mut self.receiver {
            for (source, next) in (0..count).filter_map(|index| self.held.position_after(index)) {
                receiver.consumed(source, next, self.now);
            }
        }
        self.held.advance(count);
    }
}

/// Iterator over the events of a run. One that is forgotten has yielded nothing.
#[derive(Debug)]
pub struct DurableEvents<'r> {
    held: &'r HeldEvents,
    limit: usize,
    next: usize,
    yielded: &'r Cell<usize>,
}

impl<'r> Iterator for DurableEvents<'r> {
    type Item = ReceiverEvent<'r>;

    fn next(&mut self) -> Option<ReceiverEvent<'r>> {
        let event = self.held.get(self.next).filter(|_| self.next < self.limit)?;
        self.next += 1;
        Some(event)
    }
}

impl Drop for DurableEvents<'_> {
    fn drop(&mut self) {
        self.yielded.set(self.yielded.get().max(self.next));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_persistence::{GroupRule, ReceiverOutlet, ReceiverSettings, StoreGroups};
    use lanecast_wire::store::{
        Ballot, Members, Run, STORE_NUMBER_MAX, StoreFrame, StoreOffer, StoreState,
    };

    const SOURCE: u64 = 7;

    /// The events of a receiver, held, and what it has asked and told its store.
    #[derive(Default)]
    struct Outlet {
        held: HeldEvents,
        token: u64,
        /// Sequences before which all was reported as consumed.
        reported: Vec<u64>,
    }

    impl ReceiverOutlet for Outlet {
        fn request(&mut self, _: usize, _: u64, frame: &StoreFrame<'_>) {
            match frame {
                StoreFrame::Attach { token, .. } => self.token = *token,
                StoreFrame::Consumed(report) => self.reported.push(report.consumption.next),
                _ => {}
            }
        }

        fn event(&mut self, event: ReceiverEvent<'_>) {
            self.held.push(event);
        }
    }

    /// The store answers with a log whose runs begin at these sequences, each with a session.
    fn offer(receiver: &mut Receiver, starts: &[u64], now: Nanos, out: &mut Outlet) {
        receiver.tick(now, out);
        let run = |(epoch, start): (u64, &u64)| {
            let ballot = Ballot { epoch, session: epoch };
            Run { ballot, start: *start }
        };
        let runs: Vec<Run> = (1..).zip(starts).map(run).collect();
        let last = *runs.last().expect("a run");
        let (log, next) = (last.ballot, last.start);
        let members = Members::without_groups(1, vec![("a".into(), 5)]);
        let state = StoreState {
            incarnation: 5,
            promised: log,
            log,
            next,
            members,
            runs,
            ..StoreState::default()
        };
        let (token, is_live, has_left, consumption, number) = (out.token, true, false, None, 0);
        let (since, until) = (0, STORE_NUMBER_MAX);
        let offer = StoreOffer {
            token,
            is_live,
            has_left,
            consumption,
            is_expired: false,
            life: 0,
            number,
            since,
            until,
            state,
        };
        receiver.on_frame(0, SOURCE, &StoreFrame::Offer(offer), now, out);
        let streams = StoreFrame::Streams { incarnation: 5, token, count: 1 };
        receiver.on_frame(0, 0, &streams, now, out);
    }

    #[test]
    fn a_message_that_is_discarded_behind_it_acknowledges_none_of_the_next_run() {
        let stores = StoreGroups::new(vec![vec!["a"]], GroupRule::Any).expect("groups");
        let settings = ReceiverSettings::new(stores);
        let (retry, mut out) = (settings.retry, Outlet::default());
        let mut receiver = Receiver::new(settings, 1, 0);
        offer(&mut receiver, &[0], 1, &mut out);
        (0..10).for_each(|number| receiver.on_live(1, number, b"body", 1, &mut out));
        let count = out.held.len();
        let run = DurableRun::new(&mut out.held, Some(&mut receiver), 1, count);
        assert_eq!(run.iter().count(), count);
        drop(run);
        // One message more, of which the next run knows nothing, nor of the five before it.
        receiver.on_live(1, 10, b"body", 1, &mut out);
        offer(&mut receiver, &[0, 5], 1 + 2 * retry, &mut out);
        (0..20).for_each(|number| receiver.on_live(2, number, b"other", 1, &mut out));
        assert_eq!(receiver.next(SOURCE), Some(25));
        let run = DurableRun::new(&mut out.held, Some(&mut receiver), 1 + 2 * retry, 1);
        let first = run.iter().next();
        assert!(matches!(first, Some(ReceiverEvent::Message(it)) if it.sequence() == 10));
        drop(run);
        assert_eq!(out.held.consumed(SOURCE, 11), 5, "if the program says so itself");
        out.reported.clear();
        receiver.tick(1 + 4 * retry, &mut out);
        assert_eq!(out.reported, [5]);
        // All of them.
        let count = out.held.len();
        let run = DurableRun::new(&mut out.held, Some(&mut receiver), 1 + 4 * retry, count);
        assert_eq!(run.iter().count(), count);
        drop(run);
        receiver.tick(1 + 6 * retry, &mut out);
        assert_eq!(out.reported.last(), Some(&25));
    }
}
