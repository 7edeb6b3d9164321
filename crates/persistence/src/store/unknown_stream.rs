//! The answer to a request about a stream that a store does not keep.

use lanecast_wire::store::{StoreFrame, StoreState};

/// The answer of the store with the data `incarnation`, if the request has one.
pub(super) fn answer_of_none(
    frame: &StoreFrame<'_>,
    incarnation: u64,
) -> Option<StoreFrame<'static>> {
    match *frame {
        StoreFrame::Query { .. } => {
            Some(StoreFrame::State(StoreState { incarnation, ..StoreState::default() }))
        }
        // There is no registration that could end.
        StoreFrame::Detach { receiver, life } => Some(StoreFrame::Detached { receiver, life }),
        _ => None,
    }
}
