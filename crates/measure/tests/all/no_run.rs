//! Runs of the tests' transports: always empty, because no experiment takes any.

use lanecast_transport::{Event, Run};

/// An empty run.
pub(crate) struct NoRun;

impl Run for NoRun {
    type Events<'r> = std::iter::Empty<Event<'r>>;

    fn iter(&self) -> Self::Events<'_> {
        std::iter::empty()
    }
}
