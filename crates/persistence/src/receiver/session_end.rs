//! The end of a publisher's session: how a receiver learns of it, and when it is told.

use super::offers::Offers;
use crate::quorum::StoreGroups;
use lanecast_wire::store::Ballot;

/// Questions after which a publisher is gone that its stores have not heard of since they started:
/// one that lives repeats its requests to each of them all the time.
const UNHEARD_QUESTIONS: u64 = 100;

/// The end of the session of the run that a stream follows.
#[derive(Clone, Debug, Default)]
pub(super) struct SessionEnd {
    /// The session has ended, and that was not told yet: the first question whose answers tell
    /// whether anything of it is missing.
    asked: Option<u64>,
    /// Sequence of the next message when it was told.
    told_at: Option<u64>,
    /// The question since which so few members have heard of the publisher that it may be gone.
    unheard: Option<u64>,
}

impl SessionEnd {
    /// The session has ended: told when the answers to question `token` confirm that nothing is
    /// missing.
    pub(super) const fn on_left(&mut self, token: u64) {
        self.asked = Some(token);
    }

    /// The session lives: only this receiver's connection to it had ended.
    pub(super) const fn on_live(&mut self) {
        (self.asked, self.told_at) = (None, None);
    }

    /// The session goes on without this receiver: from now on the stores tell its end.
    pub(super) const fn on_cut_off(&mut self) {
        self.unheard = None;
    }

    /// The first question whose answers tell whether anything of it is missing, if it has ended and
    /// that was not told yet.
    pub(super) const fn asked(&self) -> Option<u64> {
        self.asked
    }

    /// The end is told, in front of message `next`.
    pub(super) const fn on_told(&mut self, next: u64) {
        (self.asked, self.told_at) = (None, Some(next));
    }

    /// A store that was away came back with messages behind the end that was told: it is told again
    /// behind them.
    pub(super) fn move_behind(&mut self, next: u64, token: u64) {
        if self.told_at.is_some_and(|told_at| next > told_at) {
            (self.asked, self.told_at) = (Some(token), None);
        }
    }

    /// Whether the stores tell that it has ended, by the answers to the question `token` and those
    /// before: one has seen its publisher leave, or none that started after its end has heard of it
    /// for long. `answered` has the last question that a member has answered.
    pub(super) fn is_seen(
        &mut self,
        offers: &Offers,
        stores: &StoreGroups,
        run: Ballot,
        token: u64,
        answered: impl Fn(&str, u64) -> u64,
    ) -> bool {
        if !offers.is_unheard(stores, run, |_, _| true) {
            self.unheard = None;
            return false;
        }
        let since = *self.unheard.get_or_insert(token);
        let is_silent =
            |name: &str, incarnation| answered(name, incarnation) >= since + UNHEARD_QUESTIONS;
        offers.has_left(stores, run) || offers.is_unheard(stores, run, is_silent)
    }
}
