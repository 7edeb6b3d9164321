//! A session's memory inside the model checker.

use crate::arming;
use crate::memory::Memory;
use crate::slot_events::SlotEvents;
use lanecast_base::sync::{AtomicU32, AtomicU64, Ordering};
use lanecast_base::{CacheFlush, Position};
use lanecast_os::event::ArmedEvent;
use lanecast_wire::shm::{FRAME_ALIGN, FRAME_HEADER, FrameHeader, GateLive, RingLive, Slot};
use loom::cell::UnsafeCell;
use loom::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Number of the one pipe that the writer can open.
pub(super) const PIPE: u64 = 1;

/// A ring of any number of frames with eight bytes of body each.
///
/// The writer needs a free frame's header behind the newest message, so a ring of n frames
/// holds n - 1 messages.
pub(super) struct Model {
    ring: RingLive,
    gate: GateLive,
    slots: Vec<Slot>,
    counts: Vec<AtomicU64>,
    headers: Vec<FrameHeader>,
    pub(super) bodies: Bodies,
    pub(super) events: std::sync::Arc<SlotEvents>,
    /// The descriptor of a reader in another process, which has the pipe [`PIPE`].
    pub(super) pipe: std::sync::Arc<ArmedEvent>,
    /// Sleepers: a change of any wake word wakes all, and each then checks its own word.
    sleeping: Mutex<()>,
    waking: Condvar,
}

/// The bodies of the frames.
#[derive(Clone)]
pub(super) struct Bodies {
    plain: Arc<Vec<UnsafeCell<u64>>>,
    /// For the test that reads bytes while they are overwritten.
    torn: Arc<Vec<AtomicU64>>,
}

/// A body is 8 bytes behind a header of 8: every message is one frame of 16.
fn index(at: Position, frames: usize) -> usize {
    (at.get() / FRAME_ALIGN) as usize % frames
}

impl Bodies {
    fn new(frames: usize) -> Self {
        Self {
            plain: Arc::new((0..frames).map(|_| UnsafeCell::new(0)).collect()),
            torn: Arc::new((0..frames).map(|_| AtomicU64::new(0)).collect()),
        }
    }

    /// Writes the body of the frame at `at`.
    pub(super) fn write(&self, at: Position, number: u64) {
        let index = index(at, self.plain.len());
        // SAFETY: loom checks that no other thread reads or writes it at the same time.
        self.plain[index].with_mut(|body| unsafe { *body = number });
        self.torn[index].store(number, Ordering::Relaxed);
    }

    /// Reads the body that starts at `body`.
    pub(super) fn read(&self, body: Position) -> u64 {
        let index = index(body.minus(FRAME_HEADER), self.plain.len());
        // SAFETY: loom checks that no other thread writes it at the same time.
        self.plain[index].with(|body| unsafe { *body })
    }

    /// Writes a body that a reader may be reading.
    pub(super) fn garble(&self, at: Position, number: u64) {
        self.torn[index(at, self.torn.len())].store(number, Ordering::Relaxed);
    }

    /// Reads a body that may be overwritten at the same time.
    pub(super) fn glimpse(&self, body: Position) -> u64 {
        self.torn[index(body.minus(FRAME_HEADER), self.torn.len())].load(Ordering::Relaxed)
    }
}

impl Model {
    pub(super) fn new(frames: usize, slots: usize) -> Self {
        let header = || FrameHeader { commit: AtomicU32::new(0), topic: AtomicU32::new(0) };
        Self {
            ring: RingLive::new(),
            gate: GateLive::new(),
            slots: (0..slots).map(|_| Slot::new()).collect(),
            counts: vec![AtomicU64::new(0)],
            headers: (0..frames).map(|_| header()).collect(),
            bodies: Bodies::new(frames),
            events: std::sync::Arc::default(),
            pipe: std::sync::Arc::new(ArmedEvent::new().unwrap()),
            sleeping: Mutex::new(()),
            waking: Condvar::new(),
        }
    }
}

impl Model {
    /// The position after the newest message.
    pub(super) fn head(&self) -> u64 {
        self.ring.head.load(Ordering::Relaxed)
    }
}

impl Memory for Arc<Model> {
    fn window(&self) -> u64 {
        self.headers.len() as u64 * FRAME_ALIGN
    }

    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn ring(&self) -> &RingLive {
        &self.ring
    }

    fn gate(&self) -> &GateLive {
        &self.gate
    }

    fn slot(&self, index: usize) -> &Slot {
        &self.slots[index]
    }

    fn topics_max(&self) -> u32 {
        self.counts.len() as u32
    }

    fn count(&self, topic: u32) -> &AtomicU64 {
        &self.counts[topic as usize]
    }

    fn frame(&self, at: Position) -> &FrameHeader {
        &self.headers[index(at, self.headers.len())]
    }

    fn prefetch(&self, _at: Position) {}

    fn prefetch_for_writing(&self, _at: Position) {}

    fn flush(&self, _: &CacheFlush, _: Position, _: Position) {}

    fn heavy_fence(&self) -> bool {
        lanecast_base::sync::heavy_fence(|| {});
        true
    }

    fn sleep(&self, word: &AtomicU32, expected: u32, _limit: Duration) {
        let mut sleeping = self.sleeping.lock().unwrap();
        // Relaxed: the kernel's read of a futex word does not synchronise either.
        while word.load(Ordering::Relaxed) == expected {
            sleeping = self.waking.wait(sleeping).unwrap();
        }
    }

    fn wake(&self, _word: &AtomicU32) {
        let _sleeping = self.sleeping.lock().unwrap();
        self.waking.notify_all();
    }

    fn wake_slot(&self, index: usize) {
        arming::wake_subscriber(self, index, &self.events, |number| {
            number == PIPE && {
                self.pipe.signal();
                true
            }
        });
    }
}
