//! Parts that all SOW topics share.

use crate::topic::durable_store::DurableStore;
use crate::topic::views::Views;

/// The views over SOW topics, and the storage of durable ones.
#[derive(Debug, Default)]
pub(crate) struct SowContext {
    pub(crate) views: Views,
    /// `None` without durable topics.
    pub(crate) store: Option<DurableStore>,
    /// Topics and views that were deleted from disk at the start, as configured.
    pub(crate) forgotten: Vec<Box<str>>,
}
