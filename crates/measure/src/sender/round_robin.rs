//! Messages to several topics in turn, and timed calls: a separate loop, so that the other loops
//! have no branches for them.

use super::{MessageFormat, Run, SendError, SendPath, Task, count_late, run_since, write};
use crate::linear::{Linear, LinearResult, LinearShape};
use crate::pacing::{Pace, Slot};
use crate::record::WARM_UP;
use lanecast_transport::{Claim, ClaimError, Publish, Shared, TopicId};
use std::time::Duration;

/// A publisher that sends to its topics in turn.
#[derive(Debug)]
pub(crate) struct RoundRobin<P> {
    way: Way<P>,
    topics: Vec<TopicId>,
    /// Times of calls, if they are counted.
    calls: Option<Linear>,
    buffer: Vec<u8>,
}

/// Use of the publisher: in place or by copying.
#[derive(Debug)]
enum Way<P> {
    InPlace(P),
    Copying(Shared<P>),
}

impl<P: Publish> RoundRobin<P> {
    pub(crate) fn new(
        publisher: P,
        topics: Vec<TopicId>,
        calls: Option<LinearShape>,
        generic: bool,
    ) -> Self {
        let way = match generic {
            true => Way::Copying(Shared::new(publisher)),
            false => Way::InPlace(publisher),
        };
        Self { way, topics, calls: calls.map(Linear::new), buffer: Vec::new() }
    }

    /// Sends one message; returns its delay behind the schedule in ticks. A call is timed from
    /// before the claim to after the commit, with the writing between, or around the copy.
    fn send_one(&mut self, slot: Slot, format: &MessageFormat) -> Result<Option<u64>, ClaimError> {
        let (number, count) = (format.first + slot.index, self.topics.len() as u64);
        let topic = self.topics[(number % count) as usize];
        // Each topic counts for itself.
        let format = MessageFormat { first: 0, ..*format };
        let slot = Slot { index: number / count, due: slot.due };
        let clock = format.clock;
        let (start, late) = match &mut self.way {
            Way::InPlace(publisher) => {
                let start = clock.ticks();
                let mut claim = match format.non_blocking {
                    true => publisher.try_claim_on(topic, format.size)?,
                    false => publisher.claim_on(topic, format.size)?,
                };
                let late = written(&mut claim, slot, &format);
                claim.commit();
                (start, late)
            }
            Way::Copying(publisher) => {
                let late = written(&mut self.buffer, slot, &format);
                let start = clock.ticks();
                match format.non_blocking {
                    true => publisher.try_send_on(topic, &self.buffer)?,
                    false => publisher.lock().send_on(topic, &self.buffer)?,
                }
                (start, late)
            }
        };
        if let Some(calls) = self.calls.as_mut().filter(|_| format.kind & WARM_UP == 0) {
            calls.record(clock.ns(clock.ticks().saturating_sub(start)));
        }
        Ok(late)
    }
}

impl<P: Publish> SendPath for RoundRobin<P> {
    type Publisher = P;

    fn send_all<T: Pace>(
        &mut self,
        task: Task<'_>,
        pace: impl FnOnce(u64) -> T,
    ) -> Result<Run, SendError> {
        let Task { format, stop, lateness } = task;
        self.buffer.resize(format.size, 0);
        let start = format.clock.ticks_ordered();
        let mut pace = pace(start);
        while let Some(burst) = pace.next_burst(|| format.clock.ticks(), stop) {
            for slot in burst {
                let refused = |error| SendError { sent: slot.index, error };
                let late = self.send_one(slot, &format).map_err(refused)?;
                count_late(late, &format, lateness);
            }
        }
        Ok(run_since(start, &pace, &format))
    }

    fn with_publisher<R>(&self, question: impl FnOnce(&P) -> R) -> R {
        match &self.way {
            Way::InPlace(publisher) => question(publisher),
            Way::Copying(publisher) => question(&publisher.lock()),
        }
    }

    fn calls(&self) -> Option<LinearResult> {
        self.calls.as_ref().map(Linear::result)
    }

    fn close(self, linger: Duration) -> bool {
        match self.way {
            Way::InPlace(publisher) => publisher.close(linger).is_complete(),
            Way::Copying(publisher) => {
                publisher.into_inner().is_ok_and(|publisher| publisher.close(linger).is_complete())
            }
        }
    }
}

/// Writes a message as its form says.
fn written(bytes: &mut [u8], slot: Slot, format: &MessageFormat) -> Option<u64> {
    match (format.is_stamped(), format.is_filled()) {
        (false, false) => write::<false, false>(bytes, slot, format),
        (false, true) => write::<false, true>(bytes, slot, format),
        (true, false) => write::<true, false>(bytes, slot, format),
        (true, true) => write::<true, true>(bytes, slot, format),
    }
}
