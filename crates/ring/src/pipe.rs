//! Pipes: one writer, one reader, any values; and channels, which also wait.
//!
//! A pipe is the fastest way to hand values from one thread to another. It never blocks, takes no
//! lock and makes no system call. Values lie in blocks of a cache line, each with its own flag,
//! so the line that a reader looks at is the line that brings the values:
//!
//! ```text
//!   writer   write write write flush ----------> publishes all of them at once
//!            says Asleep if the reader sleeps:   then the writer's thread owes it one signal
//!   reader   read read read, nothing there ----> marked asleep in the same step; waits for
//!                                                the signal, however that comes
//! ```
//!
//! A [`bounded`] pipe is a circle of blocks; an [`unbounded`] one is a chain of chunks, of which
//! emptied ones return to the writer, so that a warm pipe allocates nothing.
//!
//! A pipe with a [signal](crate::signal) and a way of waiting is a [`channel`]. Any number of pipes
//! into one reader are a [`fan_in`]; from one writer to several readers leads one pipe each.
//!
//! ```
//! use lanecast_ring::pipe::{self, Peer};
//!
//! let (mut writer, mut reader) = pipe::unbounded();
//! writer.write_part("Dear reader,");
//! assert_eq!(writer.flush(), Peer::Awake);
//! assert_eq!(reader.read(), None); // The message is not complete. The reader sleeps now.
//! writer.write("yours, the writer");
//! assert_eq!(writer.flush(), Peer::Asleep); // Whoever gets this wakes the reader.
//! assert_eq!(reader.read(), Some("Dear reader,"));
//! assert_eq!(reader.read(), Some("yours, the writer"));
//! ```

mod block;
mod channel;
mod chunk;
mod error;
mod fan_in;
mod parts;
mod place;
mod reader;
mod receiver;
mod sender;
mod shared;
mod writer;

pub use channel::{Capacity, channel, fan_in};
pub use error::{CapacityError, Closed, Full, RecvTimeoutError, TryRecvError, TrySendError};
pub use fan_in::FanIn;
pub use reader::Reader;
pub use receiver::Receiver;
pub use sender::Sender;
pub use writer::Writer;

use block::Block;
use chunk::Chunk;
use lanecast_os::barrier;
use place::Place;
use shared::{Room, Shared};

/// What a flush finds out about the reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a reader that sleeps must be woken, by whatever signal it waits for"]
pub enum Peer {
    /// It is awake and will see what was flushed.
    Awake,
    /// It found nothing and waits: the caller owes it one signal. No other flush says so before
    /// it sleeps again.
    Asleep,
    /// It is no more: what is written from now on is only dropped with the pipe.
    Gone,
}

/// The kind of a [`Writer`] that never lacks room.
#[derive(Clone, Copy, Debug)]
pub enum Unbounded {}

/// The kind of a [`Writer`] that may lack room.
#[derive(Clone, Copy, Debug)]
pub enum Bounded {}

/// A pipe with room for `capacity` messages at any time, rounded up to whole blocks
/// ([`Writer::capacity`] says how many that is). Room is given back by the block, so a few more
/// may fit.
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

/// A pipe that grows as needed, and in which a reader that keeps up causes no allocation.
pub fn unbounded<T>() -> (Writer<T, Unbounded>, Reader<T>) {
    chain()
}

fn chain<T, K>() -> (Writer<T, K>, Reader<T>) {
    let blocks = if cfg!(loom) { 1 } else { (CHUNK_BYTES / Block::<T>::BYTES).clamp(8, 1024) };
    ends(Chunk::new(blocks), Room::Chain { blocks })
}

/// A chunk of a chain is about this long: half of a core's first cache.
const CHUNK_BYTES: usize = 1 << 15;
/// A reader gives back at most so many blocks of a circle at once.
const RELEASE_MAX: usize = 64;

/// The number of blocks that hold `capacity` messages whatever the reader holds back.
fn circle<T>(capacity: usize) -> Result<(usize, Room), CapacityError> {
    if capacity == 0 {
        return Err(CapacityError::Zero);
    }
    let values = Block::<T>::VALUES;
    let needed = capacity.div_ceil(values);
    let release = (needed / 8).clamp(1, RELEASE_MAX);
    // The reader holds back what it has not given back yet, and the block that it is in.
    let too_large = CapacityError::TooLarge { asked: capacity, size: size_of::<T>() };
    let blocks = needed.checked_add(release).ok_or(too_large)?;
    let total = blocks.checked_mul(values).ok_or(too_large)?;
    let room = Room::Circle {
        total: total as u64,
        release: (release * values) as u64,
        capacity: (needed * values) as u64,
    };
    Ok((blocks, room))
}

fn ends<T, K>(chunk: Chunk<T>, room: Room) -> (Writer<T, K>, Reader<T>) {
    // Without it flushes pay for a fence each.
    barrier::register();
    let start = Place::new(chunk);
    let shared = Shared::new(start, room);
    (Writer::new(start, lanecast_base::sync::Arc::clone(&shared)), Reader::new(start, shared))
}

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;
