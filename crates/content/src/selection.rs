//! Events of the transport, as a filter sees them.

use lanecast_transport::Message;

/// An event of the transport, as the filter sees it.
#[derive(Debug)]
pub(crate) enum Selection<'a> {
    /// A matching message, as subscribers see it.
    Message(Message<'a>),
    /// A message without interest.
    Skipped,
    /// Another event, for [`Negotiations::note`](crate::negotiation::Negotiations::note).
    Other,
}
