//! The surroundings of a call.

use crate::Nanos;
use crate::delivery::Delivery;
use crate::liveness::Liveness;

/// The time, and the parts of a member that a round works on.
#[derive(Debug)]
pub(crate) struct Call<'a, O> {
    pub(crate) now: Nanos,
    pub(crate) liveness: &'a mut Liveness,
    pub(crate) delivery: &'a mut Delivery,
    pub(crate) out: &'a mut O,
}
