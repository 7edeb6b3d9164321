//! Part of the protocols that a scenario stresses; drawn conditions depend on it.

/// Part of the protocols that a run stresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Focus {
    /// None: everything is drawn.
    Anything,
    /// Topics that publishers add, and subscribers ask for, in the middle of a session whose
    /// datagrams change their order.
    LateTopics,
    /// Subscribers that lose their connection, or are out of reach for longer than the liveness,
    /// and resume.
    Resumption,
}
