//! The steps by which a descriptor is armed and becomes readable.
//!
//! Taken by the owner of an end, after an empty poll or a refused claim, and by the wake-up thread
//! or a publisher, after a futex word has changed. They stand apart from the ends so that loom
//! explores the same code.

use crate::memory::Memory;
use crate::ring_writer::RingWriter;
use crate::slot_events::SlotEvents;
use lanecast_base::Position;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::event::ArmedEvent;
use lanecast_wire::shm::GateLive;

/// Value of a futex word up to which its changes are handled. Written by the wake-up thread alone.
#[derive(Debug, Default)]
pub(crate) struct SeenValue(AtomicU32);

impl SeenValue {
    /// The value to sleep on: of the last [`take_change`](Self::take_change).
    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Whether `word` has changed since the last call.
    pub(crate) fn take_change(&self, word: &AtomicU32) -> bool {
        // Relaxed, both: the event orders what follows, see `ArmedEvent::notify`.
        let value = word.load(Ordering::Relaxed);
        let has_changed = value != self.get();
        self.0.store(value, Ordering::Relaxed);
        has_changed
    }
}

/// Wakes the subscriber in slot `index`, whose wake word has changed: by its descriptor in this
/// process, by the pipe of its descriptor in another, or by the word. `signal_pipe` is told the
/// pipe's number; 0 if there is none.
pub(crate) fn wake_subscriber<M: Memory>(
    memory: &M,
    index: usize,
    events: &SlotEvents,
    signal_pipe: impl FnOnce(u64) -> bool,
) {
    let slot = memory.slot(index);
    // Relaxed: if it is this owner's number that is missed, the word wakes it; the last owner's is
    // gone, see PAIRS(announced).
    let pipe = slot.pipe.load(Ordering::Relaxed);
    if signal_pipe(pipe) {
        return;
    }
    // The descriptor first: its owner waits, the thread that sleeps on the word need not exist.
    events.notify(index);
    memory.wake(&slot.wake);
}

/// Makes the descriptor readable if its end is armed, after one of the end's words has changed;
/// `gate` is that of the session if the end is its publisher.
pub(crate) fn notify(event: &ArmedEvent, gate: Option<&GateLive>) {
    if let Some(gate) = gate {
        // Spares subscribers the system call at every step until the next refused claim. An end
        // that arms at the same time is seen by the event below, which is signalled then.
        gate.publisher_waits.store(0, Ordering::Relaxed);
    }
    event.notify();
}

/// Whether a subscriber's descriptor has to be armed after an empty poll. Publishers of other
/// processes signal one with a pipe without disarming it.
pub(crate) fn has_to_arm(event: &ArmedEvent, has_pipe: bool) -> bool {
    !event.is_armed() || has_pipe && event.clear()
}

/// Arms a subscriber's descriptor after an empty poll: `announce` tells all writers, `fence` is a
/// heavy one, and `has_news` looks at what came before the announcement.
pub(crate) fn arm_subscriber(
    event: &ArmedEvent,
    announce: impl FnOnce(),
    fence: impl FnOnce(),
    has_news: impl FnOnce() -> bool,
) {
    event.clear_and_arm();
    announce();
    fence();
    if has_news() {
        event.notify();
    }
}

/// Arms a publisher's descriptor after a claim up to `end` found no space; returns whether there is
/// space now. `wake_thread` is told whether readers are sure to see the announcement, and makes the
/// wake-up thread look.
pub(crate) fn arm_publisher<M: Memory>(
    event: &ArmedEvent,
    writer: &mut RingWriter<M>,
    wake_thread: impl FnOnce(bool),
    end: Position,
) -> bool {
    event.clear_and_arm();
    let is_covered = writer.announce_wait();
    wake_thread(is_covered);
    writer.has_space(end)
}
