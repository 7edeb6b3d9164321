//! One way, flat out without loss: the sending thread packs numbered messages and never exceeds the
//! receiver's buffer.

use super::end::SocketEnd;
use super::packing::Load;
use super::result::{Received, Sent};
use super::settings::{Progress, Settings, SocketBaselineError};
use crate::monitor::RunMonitor;
use lanecast_base::spin;
use lanecast_base::sync::Ordering;
use std::io;
use std::time::{Duration, Instant};

/// Duration of the warm-up.
const WARM_UP: Duration = Duration::from_millis(50);
/// Time without arrivals after which the rest counts as lost.
const PATIENCE: Duration = Duration::from_secs(2);
/// Spin pauses between two checks of the receiver's count.
const PAUSES: u32 = 4;
/// The number of a message is its first word.
const WORD: usize = 8;
/// First number of measured messages; lower numbers are the warm-up's.
const FIRST: u64 = 1 << 32;

/// The sending thread.
pub(super) fn send<E: SocketEnd>(
    settings: &Settings,
    load: Load,
    end: &E,
    monitor: &mut RunMonitor,
    progress: &Progress,
) -> Result<Sent, SocketBaselineError> {
    monitor.pin()?;
    let most = load.piece_bytes() / load.size;
    // A small room is not to be filled by one piece.
    let together = most.min(usize::try_from(end.window() / 2).unwrap_or(most)).max(1);
    let mut flow = Flow { settings, end, progress, piece: vec![0; together * load.size], sent: 0 };
    let refused = |source| settings.refused(source);
    flow.part(0, WARM_UP).map_err(refused)?;
    flow.settle();
    progress.accounted.store(0, Ordering::Relaxed);
    monitor.count_from_here();
    monitor.raise();
    let start = flow.part(FIRST, settings.time).map_err(refused)?;
    let messages = flow.sent;
    flow.settle();
    Ok(Sent { messages, start, ..Sent::default() })
}

struct Flow<'a, E> {
    settings: &'a Settings,
    end: &'a E,
    progress: &'a Progress,
    /// Messages that are handed over together.
    piece: Vec<u8>,
    /// Messages of this part.
    sent: u64,
}

impl<E: SocketEnd> Flow<'_, E> {
    /// Sends messages with numbers from `first` on for `time`; returns the start.
    fn part(&mut self, first: u64, time: Duration) -> io::Result<u64> {
        let clock = self.settings.clock;
        let size = self.settings.size;
        let together = (self.piece.len() / size) as u64;
        let allowed = self.end.window().saturating_sub(together);
        let start = clock.ticks_ordered();
        let end = start + clock.from_ns(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 4));
        self.sent = 0;
        while clock.ticks() < end && self.wait_for_room(allowed) {
            for (message, number) in self.piece.chunks_exact_mut(size).zip(first + self.sent..) {
                message[..WORD].copy_from_slice(&number.to_le_bytes());
            }
            let mut rest = self.piece.as_slice();
            while !rest.is_empty() {
                let taken = self.end.send(rest)?;
                rest = &rest[taken..];
                if taken == 0 && self.progress.is_stopped() {
                    return Ok(start);
                }
            }
            self.sent += together;
        }
        Ok(start)
    }

    /// Waits until the receiver has space for another piece; false if that fails.
    #[inline]
    fn wait_for_room(&self, allowed: u64) -> bool {
        if self.under_way() <= allowed {
            return true;
        }
        self.wait_until(|under_way| under_way <= allowed)
    }

    /// Waits until all has arrived, or nothing for [`PATIENCE`].
    fn settle(&self) {
        self.wait_until(|under_way| under_way == 0);
    }

    fn under_way(&self) -> u64 {
        self.sent.saturating_sub(self.progress.accounted.load(Ordering::Relaxed))
    }

    fn wait_until(&self, is_met: impl Fn(u64) -> bool) -> bool {
        let (mut before, mut until) = (u64::MAX, Instant::now() + PATIENCE);
        loop {
            let under_way = self.under_way();
            if is_met(under_way) {
                return true;
            }
            if under_way != before {
                (before, until) = (under_way, Instant::now() + PATIENCE);
            } else if self.progress.is_stopped() || Instant::now() > until {
                return false;
            }
            spin(PAUSES);
        }
    }
}

/// The receiving thread.
pub(super) fn receive<E: SocketEnd>(
    settings: &Settings,
    end: &mut E,
    monitor: &mut RunMonitor,
    progress: &Progress,
) -> Result<Received, SocketBaselineError> {
    monitor.pin()?;
    monitor.raise();
    let (clock, size) = (settings.clock, settings.size);
    let mut received = Received::default();
    while !progress.is_over() {
        let came = end.receive(|bytes| {
            let (mut next, mut measured) = (0, 0);
            for message in bytes.chunks_exact(size) {
                let Some(word) = message.first_chunk::<WORD>() else { continue };
                let number = u64::from_le_bytes(*word);
                measured += u64::from(number >= FIRST);
                next = number + 1;
            }
            received.messages += measured;
            // Missing messages before the last one are lost, and no longer in flight.
            let accounted = if next > FIRST { next - FIRST } else { next };
            progress.accounted.store(accounted, Ordering::Relaxed);
        });
        if came.map_err(|source| settings.refused(source))? {
            received.end = clock.ticks_ordered();
        }
    }
    Ok(received)
}
