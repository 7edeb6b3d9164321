//! Creates pipes: bounded ones as a ring of blocks, unbounded ones as a chain of chunks.

use super::block::Block;
use super::chunk::Chunk;
use super::error::CapacityError;
use super::peer::{Bounded, Unbounded};
use super::pipe_position::PipePosition;
use super::reader::Reader;
use super::shared::{PipeLayout, Shared};
use super::writer::Writer;
use lanecast_base::sync::Arc;
use lanecast_os::barrier;

/// A pipe with space for `capacity` messages at any time, rounded up to whole blocks (see
/// [`Writer::capacity`]). Space is released by the block, so a few more may fit.
///
/// # Errors
/// If the capacity is 0, or does not fit into memory.
///
/// ```
/// use lanecast_ring::pipe::{self, Full, Peer};
/// let (mut writer, mut reader) = pipe::bounded(100)?;
/// while writer.try_write("again").is_ok() {}
/// assert_eq!(writer.try_write("and again"), Err(Full("and again")));
/// assert_eq!(writer.flush(), Peer::Awake);
/// assert!(reader.drain(usize::MAX, drop) >= 100);
/// writer.try_write("and again")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn bounded<T>(capacity: usize) -> Result<(Writer<T, Bounded>, Reader<T>), CapacityError> {
    let (blocks, room) = circle::<T>(capacity)?;
    let too_large = CapacityError::TooLarge { asked: capacity, size: size_of::<T>() };
    let chunk = Chunk::try_new(blocks).ok_or(too_large)?;
    chunk.close_circle();
    Ok(ends(chunk, room))
}

/// A pipe that grows as needed, without allocations while the reader keeps up.
pub fn unbounded<T>() -> (Writer<T, Unbounded>, Reader<T>) {
    chain()
}

pub(super) fn chain<T, K>() -> (Writer<T, K>, Reader<T>) {
    let blocks = if cfg!(loom) { 1 } else { (CHUNK_BYTES / Block::<T>::BYTES).clamp(8, 1024) };
    ends(Chunk::new(blocks), PipeLayout::Chain { blocks })
}

/// Approximate size of a chunk of a chain: half of a core's L1 cache.
const CHUNK_BYTES: usize = 1 << 15;
/// Most blocks of a ring that a reader releases at once.
const RELEASE_MAX: usize = 64;

/// Number of blocks that hold `capacity` messages in addition to the reader's unreleased ones.
fn circle<T>(capacity: usize) -> Result<(usize, PipeLayout), CapacityError> {
    if capacity == 0 {
        return Err(CapacityError::Zero);
    }
    let values = Block::<T>::VALUES;
    let needed = capacity.div_ceil(values);
    let release = (needed / 8).clamp(1, RELEASE_MAX);
    // Unreleased are the blocks since the last release, and the one being read.
    let too_large = CapacityError::TooLarge { asked: capacity, size: size_of::<T>() };
    let blocks = needed.checked_add(release).ok_or(too_large)?;
    let total = blocks.checked_mul(values).ok_or(too_large)?;
    let room = PipeLayout::Ring {
        total: total as u64,
        release: (release * values) as u64,
        capacity: (needed * values) as u64,
    };
    Ok((blocks, room))
}

fn ends<T, K>(chunk: Chunk<T>, room: PipeLayout) -> (Writer<T, K>, Reader<T>) {
    // Without registration each flush costs a fence.
    barrier::register();
    let start = PipePosition::new(chunk);
    let shared = Shared::new(start, room);
    (Writer::new(start, Arc::clone(&shared)), Reader::new(start, shared))
}
