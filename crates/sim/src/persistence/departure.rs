//! A receiver of a run that takes part in its topic, leaves it or has left it.

/// A receiver's place in its topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Departure {
    /// The receiver takes part.
    #[default]
    None,
    /// Each of its lives gives up the registration, until enough stores have confirmed it.
    Leaving {
        /// A later life begins anew.
        returns: bool,
    },
    /// The receiver has left for good; these stores have confirmed it.
    Gone(Vec<usize>),
}
