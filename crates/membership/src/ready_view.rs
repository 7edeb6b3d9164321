//! The view that a member is ready for: everything before the Cut is here, the Install is not.

use crate::ballot::Ballot;
use crate::participation::NextView;
use crate::view::{MemberId, View};

/// The view of the latest Cut that this member is ready for.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadyView {
    pub(crate) next: Option<NextView>,
    /// The highest epoch of a view that this member was ready for and has gone beyond.
    given_up_epoch: u64,
}

impl ReadyView {
    /// The highest epoch that this member is or was ready for.
    pub(crate) fn epoch(&self) -> u64 {
        self.next.as_ref().map_or(0, |next| next.view.id.epoch).max(self.given_up_epoch)
    }

    /// Whether it is the view of that round.
    pub(crate) fn is_of(&self, ballot: Ballot) -> bool {
        self.next.as_ref().is_some_and(|next| next.ballot == ballot)
    }

    /// The view, if `member` is in it.
    pub(crate) fn with(&self, member: MemberId) -> Option<&View> {
        self.next.as_ref().map(|next| &next.view).filter(|view| view.contains(member))
    }

    /// Goes beyond the view, to which this member does not come back.
    pub(crate) fn give_up(&mut self) {
        if let Some(next) = self.next.take() {
            self.given_up_epoch = next.view.id.epoch;
        }
    }
}
