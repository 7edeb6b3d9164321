//! Messages to several topics in turn, and calls that are timed: a loop of its own, so that the
//! others decide nothing for each message.

use super::{MessageFormat, Run, SendError, SendPath, Task, count_late, run_since, write};
use crate::linear::{Linear, LinearResult, LinearShape};
use crate::pacing::{Pace, Slot};
use crate::record::WARM_UP;
use lanecast_transport::{Claim, ClaimError, Publish, Shared, TopicId};
use std::time::Duration;

/// A publisher whose topics have their turns.
#[derive(Debug)]
pub(crate) struct RoundRobin<P> {
    way: Way<P>,
    topics: Vec<TopicId>,
    /// Times of calls, if they are counted.
    calls: Option<Linear>,
    buffer: Vec<u8>,
}

/// How messages get into the publisher.
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

    /// Sends one message; gives by how many ticks it was late. A call is timed from before the
    /// claim to after the commit, with what is written between the two, or around the copy.
    fn send_one(&mut self, slot: Slot, form: &MessageFormat) -> Result<Option<u64>, ClaimError> {
        let (number, count) = (form.first + slot.index, self.topics.len() as u64);
        let topic = self.topics[(number % count) as usize];
        // Each topic counts for itself.
        let form = MessageFormat { first: 0, ..*form };
        let slot = Slot { index: number / count, due: slot.due };
        let clock = form.clock;
        let (start, late) = match &mut self.way {
            Way::InPlace(publisher) => {
                let start = clock.ticks();
                let mut claim = match form.non_blocking {
                    true => publisher.try_claim_on(topic, form.size)?,
                    false => publisher.claim_on(topic, form.size)?,
                };
                let late = written(&mut claim, slot, &form);
                claim.commit();
                (start, late)
            }
            Way::Copying(publisher) => {
                let late = written(&mut self.buffer, slot, &form);
                let start = clock.ticks();
                match form.non_blocking {
                    true => publisher.offer_on(topic, &self.buffer)?,
                    false => publisher.lock().send_on(topic, &self.buffer)?,
                }
                (start, late)
            }
        };
        if let Some(calls) = self.calls.as_mut().filter(|_| form.kind & WARM_UP == 0) {
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
        let Task { form, stop, lateness } = task;
        self.buffer.resize(form.size, 0);
        let start = form.clock.ticks_ordered();
        let mut pace = pace(start);
        while let Some(burst) = pace.next_burst(|| form.clock.ticks(), stop) {
            for slot in burst {
                let refused = |error| SendError { sent: slot.index, error };
                let late = self.send_one(slot, &form).map_err(refused)?;
                count_late(late, &form, lateness);
            }
        }
        Ok(run_since(start, &pace, &form))
    }

    fn ask<R>(&self, question: impl FnOnce(&P) -> R) -> R {
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
            Way::InPlace(publisher) => publisher.close(linger),
            Way::Copying(publisher) => {
                publisher.into_inner().is_ok_and(|publisher| publisher.close(linger))
            }
        }
    }
}

/// Writes a message as its form says.
fn written(bytes: &mut [u8], slot: Slot, form: &MessageFormat) -> Option<u64> {
    match (form.is_stamped(), form.is_filled()) {
        (false, false) => write::<false, false>(bytes, slot, form),
        (false, true) => write::<false, true>(bytes, slot, form),
        (true, false) => write::<true, false>(bytes, slot, form),
        (true, true) => write::<true, true>(bytes, slot, form),
    }
}
