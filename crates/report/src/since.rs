//! The start of a latency: actual or intended time of sending.

/// The start of a latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// The time a message was sent, as in the source documents.
    Actual,
    /// The time it was due: includes the delay of a sender that was late.
    #[default]
    Intended,
}

impl Since {
    pub(crate) const BOTH: [Self; 2] = [Self::Actual, Self::Intended];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Actual => "actual",
            Self::Intended => "intended",
        }
    }

    /// The path of this latency distribution, of the subscriber whose members begin with `prefix`.
    pub(crate) fn path(self, prefix: &str) -> String {
        format!("{prefix}latency.{}", self.name())
    }
}
