//! What both ends of a connection between a resolver and a daemon keep to.

use crate::{Nanos, SECOND};
use lanecast_wire::net::refusal_flag;

/// Whoever has said nothing for this long says that it is there.
pub(crate) const KEEPALIVE: Nanos = SECOND;
/// A connection that brings nothing for this long is closed.
pub(crate) const SILENCE: Nanos = 5 * SECOND;
/// A daemon that has just started answers no `SYNC`: its clients are still coming back.
pub(crate) const SETTLE: Nanos = 5 * SECOND;
/// The longest pause before a client connects again: well below [`SETTLE`].
pub(crate) const PAUSE_MAX: Nanos = 2 * SECOND;

/// Why a daemon ends a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RejectReason {
    /// The client takes in too slowly what it asked for.
    #[error("it reads too slowly what it asked for: let it want fewer topics, or read sooner")]
    Stalled,
    /// There is no place for another client, or for another name of anybody's.
    #[error("there is no place for more: raise the daemon's limits, or start another daemon")]
    Crowded,
    /// What the client sent is no frame, or none for a daemon.
    #[error("it sent what is no frame for a resolver daemon: is it lanecast, of this version?")]
    Malformed,
    /// The client has more names than one may have.
    #[error("it has more topics than one client may have: raise the daemon's limit")]
    Excess,
    /// Nothing was heard for too long.
    #[error("nothing was heard from it for {} s", SILENCE / SECOND)]
    Silent,
    /// The same resolver has come by another connection.
    #[error("the same program has connected anew")]
    Replaced,
}

impl RejectReason {
    const ALL: [Self; 6] =
        [Self::Stalled, Self::Crowded, Self::Malformed, Self::Excess, Self::Silent, Self::Replaced];

    /// The flags of the Eject that tells it.
    pub(crate) const fn flag(self) -> u16 {
        match self {
            Self::Stalled => refusal_flag::STALLED,
            Self::Crowded => refusal_flag::CROWDED,
            Self::Malformed => refusal_flag::MALFORMED,
            Self::Excess => refusal_flag::EXCESS,
            Self::Silent => refusal_flag::SILENT,
            Self::Replaced => refusal_flag::REPLACED,
        }
    }

    /// What the flags of an Eject tell.
    pub(crate) fn from_flag(flag: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.flag() == flag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_told_apart() {
        for refusal in RejectReason::ALL {
            assert_eq!(RejectReason::from_flag(refusal.flag()), Some(refusal));
        }
        assert_eq!(RejectReason::from_flag(0), None);
    }
}
