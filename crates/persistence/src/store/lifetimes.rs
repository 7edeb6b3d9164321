//! Lifetimes of registrations: receivers that are away for too long count no longer.
//!
//! They count by the time for which the store was up, which its driver's clock tells and nothing
//! sets back. Not by the time of day: a jump of that by years would end the registrations of
//! receivers that are there; and since an idle store writes nothing, it cannot tell after a restart
//! how long it was down, so that one which is restarted each night would keep a dead receiver for
//! good. Records say for how long a receiver was away. What a crash takes of that is less than a
//! [step](Lifetimes::step).

use super::receivers::UP_AT_START;
use super::stream::Stream;
use crate::Nanos;
use crate::log::{LogFull, StoreLog};

/// Longest time between two looks at the receivers, in nanoseconds; and the most that one pause of
/// the driver counts, as on a host that was suspended.
const LOOK_MAX: u64 = 60_000_000_000;
/// Most time away that is not written, in nanoseconds.
const STEP_MAX: u64 = 60 * LOOK_MAX;

/// The time for which the store was up, and when it looks at its receivers.
#[derive(Clone, Debug)]
pub(super) struct Lifetimes {
    /// Nanoseconds for which a receiver may be away; `None` if it does not matter, and no time
    /// passes.
    lifetime: Option<u64>,
    /// Nanoseconds since the start, from [`UP_AT_START`] on.
    up: u64,
    /// The driver's last time.
    last: Option<Nanos>,
    /// Time of the next look.
    look_at: u64,
}

impl Lifetimes {
    pub(super) const fn new(lifetime: Option<u64>) -> Self {
        Self { lifetime, up: UP_AT_START, last: None, look_at: 0 }
    }

    /// Time at which a receiver is heard of now.
    pub(super) const fn heard(&self) -> u64 {
        self.up
    }

    /// Time between two looks.
    fn interval(lifetime: u64) -> u64 {
        (lifetime / 16).clamp(1, LOOK_MAX)
    }

    /// Change of the time away from which on it is written anew.
    fn step(lifetime: u64) -> u64 {
        (lifetime / 8).clamp(1, STEP_MAX)
    }

    fn pass(&mut self, now: Nanos) {
        let elapsed = now.saturating_sub(self.last.unwrap_or(now));
        self.last = Some(now);
        if self.lifetime.is_some() {
            self.up += elapsed.min(LOOK_MAX);
        }
    }

    /// Writes what is due.
    pub(super) fn tend(
        &mut self,
        streams: &mut [Stream],
        now: Nanos,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        self.pass(now);
        let Some(lifetime) = self.lifetime.filter(|_| self.up >= self.look_at) else {
            return Ok(());
        };
        self.write(streams, Some(lifetime), Self::step(lifetime), log)?;
        self.look_at = self.up + Self::interval(lifetime);
        Ok(())
    }

    /// Writes for how long receivers are away, since the store ends.
    pub(super) fn end(
        &mut self,
        streams: &mut [Stream],
        now: Nanos,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        self.pass(now);
        let Some(lifetime) = self.lifetime else { return Ok(()) };
        self.write(streams, None, Self::interval(lifetime), log)
    }

    /// Writes for how long receivers are away where that has changed by at least `step`. With a
    /// `lifetime` those expire that were away for longer.
    fn write(
        &self,
        streams: &mut [Stream],
        lifetime: Option<u64>,
        step: u64,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        for it in streams {
            for registered in it.receivers.due(self.up, lifetime, step) {
                it.receivers.write(it.number, registered, log)?;
            }
        }
        Ok(())
    }
}
