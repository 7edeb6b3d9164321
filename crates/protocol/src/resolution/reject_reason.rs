//! Reasons why a resolver daemon closes a connection.

use super::session_constants::SILENCE;
use crate::SECOND;
use lanecast_wire::net::{VERSION, refusal_flag};

/// Reason why a resolver daemon closes or refuses a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// The client reads too slowly.
    #[error("it reads too slowly: let it subscribe to fewer topics, or read sooner")]
    SlowConsumer,
    /// The daemon has no room for another client or topic.
    #[error("there is no room for more: raise the daemon's limits, or start another daemon")]
    Full,
    /// The client sent a malformed frame, or one that is not for a daemon.
    #[error("it sent no valid frame for a resolver daemon: is it lanecast?")]
    Malformed,
    /// The client sends frames of this version, which is not the daemon's.
    #[error(
        "it sends frames of version {0}, this daemon reads version {VERSION}: give both hosts the \
         same version of lanecast"
    )]
    OtherVersion(u8),
    /// The client has more topics than one client may.
    #[error("it has more topics than one client may have: raise the daemon's limit")]
    TooManyTopics,
    /// The client was silent for too long.
    #[error("nothing was heard from it for {} s", SILENCE / SECOND)]
    Silent,
    /// The same resolver has connected again.
    #[error("the same program has connected again")]
    Replaced,
}

impl RejectReason {
    /// Reasons that an Eject can say: a client of another version reads no flags.
    const ALL: [Self; 6] = [
        Self::SlowConsumer,
        Self::Full,
        Self::Malformed,
        Self::TooManyTopics,
        Self::Silent,
        Self::Replaced,
    ];

    /// Flags of the Eject with this reason.
    pub(crate) const fn flag(self) -> u16 {
        match self {
            Self::SlowConsumer => refusal_flag::STALLED,
            Self::Full => refusal_flag::CROWDED,
            Self::Malformed | Self::OtherVersion(_) => refusal_flag::MALFORMED,
            Self::TooManyTopics => refusal_flag::EXCESS,
            Self::Silent => refusal_flag::SILENT,
            Self::Replaced => refusal_flag::REPLACED,
        }
    }

    /// Reason in the flags of an Eject.
    pub(crate) fn from_flag(flag: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.flag() == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_distinct() {
        for refusal in RejectReason::ALL {
            assert_eq!(RejectReason::from_flag(refusal.flag()), Some(refusal));
        }
        assert_eq!(RejectReason::from_flag(0), None);
    }
}
