//! Questions to other stores: how far receivers have come that tell this one nothing.
//!
//! A store that was away has old positions of receivers, which may have consumed messages at the
//! other stores and left. It would keep these messages for them, and copy none behind a gap. A
//! position is the receiver's own word, so one store that has it on its disk is enough; only the
//! word of the receiver's last life counts.

use super::receivers::Receivers;
use crate::Nanos;
use lanecast_wire::store::{Members, Run, StoreFrame};

/// Intervals of requests from one question to the next.
const INTERVALS: u64 = 10;

/// Questions about one stream. Nothing changes while no receiver is registered.
#[derive(Clone, Debug, Default)]
pub(super) struct PositionQuestions {
    /// When to look for receivers again.
    at: Nanos,
    /// Number of questions; also the token of the last one.
    asked: u64,
    /// The last one is not answered.
    is_awaited: bool,
    /// The member that is asked, among the others.
    place: usize,
    /// Messages cannot be copied before receivers have come further: also those are asked for that
    /// were heard of.
    is_urgent: bool,
}

impl PositionQuestions {
    /// Copying waits for receivers.
    pub(super) const fn hurry(&mut self) {
        (self.at, self.is_urgent) = (0, true);
    }

    /// The first receiver to ask for, if that is due: one that lacks messages before `next`.
    pub(super) fn due(
        &mut self,
        receivers: &mut Receivers,
        (runs, next): (&[Run], u64),
        now: Nanos,
        interval: Nanos,
    ) -> Option<u64> {
        if receivers.len() == 0 || now < self.at {
            return None;
        }
        self.at = now + INTERVALS * interval;
        let is_silent = !std::mem::take(&mut self.is_urgent);
        let first = receivers.lagging(0, runs, next, is_silent);
        receivers.expect_word();
        if first.is_some() {
            self.place += 1;
        }
        first
    }

    /// The question for receivers from `receiver` on, and the member that is asked; `None` if the
    /// store with the data `own` is the only one.
    pub(super) fn ask<'a>(
        &mut self,
        members: &'a Members,
        own: u64,
        receiver: u64,
    ) -> Option<(&'a str, StoreFrame<'static>)> {
        let others = || members.stores.iter().filter(|(_, incarnation)| *incarnation != own);
        let place = self.place.checked_rem(others().count())?;
        let (name, _) = others().nth(place)?;
        self.asked += 1;
        self.is_awaited = true;
        Some((name, StoreFrame::FetchPositions { token: self.asked, receiver }))
    }

    /// Whether an answer is the one that is awaited, for the first time.
    pub(super) fn is_answered(&mut self, token: u64) -> bool {
        token == self.asked && std::mem::take(&mut self.is_awaited)
    }
}
