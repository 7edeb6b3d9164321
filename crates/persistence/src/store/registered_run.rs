//! The runs that requests of registered publishers name.

use lanecast_wire::store::{Ballot, StoreFrame};

/// The run of a request that only a registered publisher sends.
pub(super) const fn registered_run(frame: &StoreFrame<'_>) -> Option<Ballot> {
    match frame {
        StoreFrame::Query { ballot, .. }
        | StoreFrame::Resend { ballot, .. }
        | StoreFrame::Elsewhere { ballot, .. }
        | StoreFrame::Reconfigure { ballot, .. } => Some(*ballot),
        _ => None,
    }
}
