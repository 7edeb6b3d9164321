//! Lifetimes of registrations: receivers that are away for too long count no longer.

use super::stream::Stream;
use crate::log::{LogFull, StoreLog};

/// Longest time between two looks at the receivers, in nanoseconds.
const LOOK_MAX: u64 = 60_000_000_000;

/// When the store looks at its receivers. Receivers that it heard of are written anew now and then,
/// so that a store that starts again knows since when each is away.
#[derive(Clone, Debug)]
pub(super) struct Lifetimes {
    /// Nanoseconds for which a receiver may be away; `None` if it does not matter.
    lifetime: Option<u64>,
    /// Time of the next look, in nanoseconds since 1970.
    look_at: u64,
}

impl Lifetimes {
    pub(super) const fn new(lifetime: Option<u64>) -> Self {
        Self { lifetime, look_at: 0 }
    }

    /// Time at which a receiver is heard of now; 0 if that does not matter.
    pub(super) fn heard(&self, log: &impl StoreLog) -> u64 {
        self.lifetime.map_or(0, |_| log.unix_ns())
    }

    /// Writes what is due.
    pub(super) fn tend(
        &mut self,
        streams: &mut [Stream],
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let Some(lifetime) = self.lifetime.filter(|_| log.unix_ns() >= self.look_at) else {
            return Ok(());
        };
        let unix_ns = log.unix_ns();
        for it in streams {
            for registered in it.receivers.due(unix_ns, lifetime) {
                it.receivers.write(it.number, registered, log)?;
            }
        }
        self.look_at = unix_ns + (lifetime / 16).min(LOOK_MAX);
        Ok(())
    }
}
