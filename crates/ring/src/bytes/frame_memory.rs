//! Memory of a lane, and the layout of frames in it.
//!
//! The cursors alone decide which end may access which bytes. Under the model checker every access
//! is recorded, so that an unordered one is reported as a race.

use crate::producer_lane::ProducerLane;
use core::ops::Deref;
use core::ptr::NonNull;
use std::collections::TryReserveError;

/// The byte ring that one producer writes.
pub(super) type ByteLane = ProducerLane<FrameMemory>;

/// Size of a frame's header: the message's length.
const HEADER: usize = 8;
/// Length field of a padding frame, which fills the rest of the ring.
const PADDING: u64 = u64::MAX;
/// Alignment of frames.
const ALIGN: usize = 8;

/// A ring of bytes; their number is a power of two.
pub(super) struct FrameMemory {
    frames: Frames,
}

impl FrameMemory {
    /// A ring of `capacity` bytes, all of them resident.
    pub(super) fn new(capacity: usize) -> Result<Self, TryReserveError> {
        let mut words = Vec::new();
        words.try_reserve_exact(capacity / ALIGN)?;
        words.resize(capacity / ALIGN, 0);
        let frames = Frames {
            #[cfg(loom)]
            watched: leak(words.iter().map(|_| ::loom::cell::UnsafeCell::new(())).collect()),
            words: leak(words.into_boxed_slice()),
        };
        Ok(Self { frames })
    }

    /// The address of the frames, for an end that holds it itself.
    pub(super) const fn frames(&self) -> Frames {
        self.frames
    }
}

fn leak<T>(values: Box<[T]>) -> NonNull<[T]> {
    NonNull::from(Box::leak(values))
}

impl Deref for FrameMemory {
    type Target = Frames;
    #[inline(always)]
    fn deref(&self) -> &Frames {
        &self.frames
    }
}

impl Drop for FrameMemory {
    fn drop(&mut self) {
        // SAFETY: `new` leaked them from boxes, and no end is left.
        unsafe {
            #[cfg(loom)]
            drop(Box::from_raw(self.frames.watched.as_ptr()));
            drop(Box::from_raw(self.frames.words.as_ptr()));
        }
    }
}

/// The address of a ring of bytes, valid while it lives: a copy saves a producer the way through
/// its lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frames {
    words: NonNull<[u64]>,
    #[cfg(loom)]
    watched: NonNull<[::loom::cell::UnsafeCell<()>]>,
}

// SAFETY: plain bytes; the cursors order every access.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

/// Positions of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameSpan {
    /// Start of the frame.
    pub(super) start: u64,
    /// Start of the next frame.
    pub(super) end: u64,
}

/// Frame at a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Padding: the next frame starts at the beginning of the ring, at this position.
    Padding(u64),
    /// A message of this length; the next frame starts at `end`.
    Message { len: usize, end: u64 },
}

impl Frames {
    pub(super) const fn capacity(&self) -> usize {
        self.words.len() * ALIGN
    }

    /// Longest message: with the padding before it, it fits at any position.
    pub(super) const fn longest(&self) -> usize {
        self.capacity() / 2 - HEADER
    }

    /// Frame of a message of `len` bytes (at most the longest) written at `at`.
    #[inline(always)]
    pub(super) fn place(&self, at: u64, len: usize) -> FrameSpan {
        let frame = frame_bytes(len);
        let rest = self.capacity() - self.offset(at);
        let start = if frame <= rest { at } else { at + rest as u64 };
        FrameSpan { start, end: start + frame as u64 }
    }

    /// Writes a padding frame at `at`.
    #[cold]
    pub(super) fn pad(&self, at: u64) {
        self.set_word(at, PADDING);
    }

    /// Writes the header of a frame at `start`; returns the `len` bytes of its message, to be
    /// written.
    #[inline(always)]
    pub(super) fn begin(&self, start: u64, len: usize) -> NonNull<[u8]> {
        self.set_word(start, len as u64);
        #[cfg(loom)]
        self.note(start, HEADER + len, true);
        NonNull::slice_from_raw_parts(self.bytes(start), len)
    }

    /// The frame at `at`, which the producer has published.
    #[inline(always)]
    pub(super) fn frame(&self, at: u64) -> Frame {
        #[cfg(loom)]
        self.note(at, ALIGN, false);
        // SAFETY: within the ring; published and not yet released, so the producer does not write
        // it.
        let len = unsafe { self.word(at).read() };
        if len == PADDING {
            return Frame::Padding(at + (self.capacity() - self.offset(at)) as u64);
        }
        let len = len as usize;
        Frame::Message { len, end: at + frame_bytes(len) as u64 }
    }

    /// The `len` bytes of the message whose frame starts at `start`, to be read.
    #[inline(always)]
    pub(super) fn body(&self, start: u64, len: usize) -> NonNull<[u8]> {
        #[cfg(loom)]
        self.note(start, HEADER + len, false);
        NonNull::slice_from_raw_parts(self.bytes(start), len)
    }

    #[inline(always)]
    fn offset(&self, at: u64) -> usize {
        at as usize & (self.capacity() - 1)
    }

    #[inline(always)]
    fn word(&self, at: u64) -> NonNull<u64> {
        // SAFETY: the offset is within the words.
        unsafe { self.words.cast::<u64>().add(self.offset(at) / ALIGN) }
    }

    /// Address of the message whose frame starts at `start`.
    #[inline(always)]
    fn bytes(&self, start: u64) -> NonNull<u8> {
        // SAFETY: a frame lies within the ring as a whole, so its message does.
        unsafe { self.word(start).cast::<u8>().add(HEADER) }
    }

    #[inline(always)]
    fn set_word(&self, at: u64, value: u64) {
        #[cfg(loom)]
        self.note(at, ALIGN, true);
        // SAFETY: within the ring; the one producer writes what every consumer has released.
        unsafe { self.word(at).write(value) }
    }

    /// Records an access to `len` bytes from `at` on for the model checker.
    #[cfg(loom)]
    fn note(&self, at: u64, len: usize, writes: bool) {
        let first = self.offset(at) / ALIGN;
        // SAFETY: valid while the ring lives.
        for cell in unsafe { &self.watched.as_ref()[first..first + len.div_ceil(ALIGN)] } {
            if writes {
                cell.with_mut(|_| ());
            } else {
                cell.with(|_| ());
            }
        }
    }
}

/// Length of the frame of a message of `len` bytes.
#[inline(always)]
const fn frame_bytes(len: usize) -> usize {
    HEADER + len.next_multiple_of(ALIGN)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_longest_message_fits_wherever_it_begins() {
        let memory = FrameMemory::new(64).unwrap();
        assert_eq!(memory.longest(), 24);
        for at in (0..256).step_by(8) {
            let place = memory.place(at, memory.longest());
            assert!(place.end - at <= 64, "{at}: {place:?}");
            assert_eq!(place.start / 64, (place.end - 1) / 64, "{at}: split");
        }
    }

    #[test]
    fn a_frame_that_does_not_fit_starts_at_the_beginning() {
        let memory = FrameMemory::new(64).unwrap();
        assert_eq!(memory.place(56, 0), FrameSpan { start: 56, end: 64 });
        assert_eq!(memory.place(56, 1), FrameSpan { start: 64, end: 80 });
        memory.pad(56);
        assert_eq!(memory.frame(56), Frame::Padding(64));
        memory.begin(64, 9);
        assert_eq!(memory.frame(64), Frame::Message { len: 9, end: 88 });
    }
}
