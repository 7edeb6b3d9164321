//! Delivery mode of a subscription.

/// Delivery mode of a subscription, kept apart from it so that matching touches little memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeliveryMode {
    /// The query is in progress.
    pub(crate) is_catching_up: bool,
    pub(crate) is_conflated: bool,
    pub(crate) out_of_focus: bool,
    pub(crate) deltas: bool,
}

impl DeliveryMode {
    /// Whether the previous version of a record must be matched as well.
    pub(crate) fn needs_previous(self) -> bool {
        self.out_of_focus || self.deltas
    }
}
