//! Copy bandwidth from CPU to CPU: the bound of any transport whose messages are written and read
//! whole.
//!
//! ```text
//!   private block --copy--> chunk | chunk | ... (shared ring) --copy--> private block
//!        writer's CPU          written up to / read up to            reader's CPU
//! ```
//!
//! The private blocks stay in the first-level caches, so the shared ring is what is measured.

use std::cell::UnsafeCell;
use std::hint;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

use rivals_kit::{Clock, Line, placement};

use super::arguments::OneWayArgs;

/// Larger than the second-level caches: lines that have left the writer for the shared third level
/// are read faster than lines it still holds (24 against 20 GB/s for a ring of 1 MiB).
const RING: usize = 16 << 20;
const CHUNK: usize = 16 << 10;
const CHUNKS: u64 = (RING / CHUNK) as u64;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Alone<T>(T);

#[derive(Debug)]
struct Ring {
    /// The chunk at `n % CHUNKS` is the writer's while `written - read` leaves room for chunk
    /// `n`, and the reader's from `written > n` until `read > n`.
    bytes: UnsafeCell<Box<[u8]>>,
    /// Chunks written; the writer's.
    written: Alone<AtomicU64>,
    /// Chunks read; the reader's.
    read: Alone<AtomicU64>,
    /// Set when nothing more will be written.
    over: Alone<AtomicBool>,
}

// SAFETY: a chunk is touched only by the side that the two counts say owns it, and ownership
// passes by release and acquire.
unsafe impl Sync for Ring {}

impl Ring {
    fn new() -> Self {
        Self {
            bytes: UnsafeCell::new(vec![1; RING].into_boxed_slice()),
            written: Alone::default(),
            read: Alone::default(),
            over: Alone::default(),
        }
    }

    fn chunk(&self, index: u64) -> *mut u8 {
        let offset = (index % CHUNKS) as usize * CHUNK;
        // SAFETY: the box itself is never replaced, so reading its pointer races with nothing.
        let start = unsafe { (*self.bytes.get()).as_mut_ptr() };
        // SAFETY: `offset` is below the ring's length.
        unsafe { start.add(offset) }
    }

    /// Copies one block in, once there is room for it.
    fn put(&self, index: u64, block: &[u8; CHUNK]) {
        // PAIRS(copy-read): room is only there when the reader is done with the chunk.
        while index - self.read.0.load(Ordering::Acquire) >= CHUNKS {
            hint::spin_loop();
        }
        // SAFETY: the chunk is the writer's, and the block is private.
        unsafe { ptr::copy_nonoverlapping(block.as_ptr(), self.chunk(index), CHUNK) };
        // PAIRS(copy-written): the bytes are there before the count says so.
        self.written.0.store(index + 1, Ordering::Release);
    }

    /// Copies one block out; false when nothing more will come.
    fn take(&self, index: u64, block: &mut [u8; CHUNK]) -> bool {
        // PAIRS(copy-written): the bytes of a counted chunk can be read.
        while self.written.0.load(Ordering::Acquire) <= index {
            // PAIRS(copy-over): the last count is seen with the end.
            if self.over.0.load(Ordering::Acquire)
                && self.written.0.load(Ordering::Acquire) <= index
            {
                return false;
            }
            hint::spin_loop();
        }
        // SAFETY: the chunk is the reader's, and the block is private.
        unsafe { ptr::copy_nonoverlapping(self.chunk(index), block.as_mut_ptr(), CHUNK) };
        // PAIRS(copy-read): the bytes have been read before the room is given back.
        self.read.0.store(index + 1, Ordering::Release);
        true
    }
}

/// Measures bytes per second through the ring.
///
/// # Errors
///
/// When a CPU cannot be used.
pub fn measure(arguments: &OneWayArgs) -> Result<Line> {
    let clock = Clock::host();
    let ring = Ring::new();
    let (bytes_per_s, read) = thread::scope(|scope| {
        let reader = scope.spawn(|| read(arguments, &ring));
        let bytes_per_s = write(arguments, &ring, clock);
        // PAIRS(copy-over): everything written is seen before the end.
        ring.over.0.store(true, Ordering::Release);
        (bytes_per_s, reader.join())
    });
    let chunks = read.map_err(|_| anyhow!("reader panicked"))??;
    let mut line = Line::default();
    line.add("bytes", chunks * CHUNK as u64);
    line.add("bytes_per_s", format_args!("{:.0}", bytes_per_s?));
    line.add("ring_bytes", RING);
    line.add("chunk_bytes", CHUNK);
    Ok(line)
}

/// Writes for the warm-up, then for the measured time; the reader gates, so the writer's bytes
/// are the reader's but for one ring.
fn write(arguments: &OneWayArgs, ring: &Ring, clock: Clock) -> Result<f64> {
    placement::pin(arguments.from_cpu)?;
    let block = Box::new([7_u8; CHUNK]);
    let mut index = 0;
    let mut fill = |duration_ms: u64| {
        let (from, first) = (clock.ticks(), index);
        let end = from + clock.from_ns(duration_ms * 1_000_000);
        while clock.ticks() < end {
            ring.put(index, &block);
            index += 1;
        }
        let bytes = (index - first) as f64 * CHUNK as f64;
        bytes * 1e9 / clock.ns(clock.ticks() - from) as f64
    };
    fill(arguments.warmup_ms);
    Ok(fill(arguments.duration_ms))
}

fn read(arguments: &OneWayArgs, ring: &Ring) -> Result<u64> {
    placement::pin(arguments.to_cpu)?;
    let mut block = Box::new([0_u8; CHUNK]);
    let mut index = 0;
    while ring.take(index, &mut block) {
        index += 1;
        hint::black_box(&mut block);
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_is_taken_in_order() {
        let ring = Ring::new();
        let count = CHUNKS * 3 + 5;
        thread::scope(|scope| {
            scope.spawn(|| {
                for index in 0..count {
                    ring.put(index, &[index as u8; CHUNK]);
                }
                // PAIRS(copy-over): as in the measured writer.
                ring.over.0.store(true, Ordering::Release);
            });
            let mut block = [0; CHUNK];
            for index in 0..count {
                assert!(ring.take(index, &mut block));
                assert!(block.iter().all(|byte| *byte == index as u8), "chunk {index}");
            }
            assert!(!ring.take(count, &mut block));
        });
    }
}
