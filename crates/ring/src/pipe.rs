//! Pipes: one writer, one reader, any values; and channels, which also wait.
//!
//! A pipe is the fastest way to pass values from one thread to another. It never blocks, takes no
//! lock and makes no system call. Values lie in blocks of a cache line, each with its own flag,
//! so the line that a reader polls is the line with the values:
//!
//! ```text
//!   writer   write write write flush ----------> publishes all of them at once
//!            says Asleep if the reader sleeps:   then the writer's thread owes it one signal
//!   reader   read read read, nothing there ----> marked asleep in the same step; waits for
//!                                                the signal, however that comes
//! ```
//!
//! A [`bounded`] pipe is a ring of blocks; an [`unbounded`] one is a chain of chunks, and empty
//! chunks return to the writer, so that a warm pipe allocates nothing.
//!
//! A pipe with a [signal](crate::signal) and a wait strategy is a [`channel`]. Any number of pipes
//! into one reader are a [`fan_in`]; one writer needs a pipe for each of several readers.
//!
//! ```
//! use lanecast_ring::pipe::{self, Peer};
//!
//! let (mut writer, mut reader) = pipe::unbounded();
//! writer.write_part("Dear reader,");
//! assert_eq!(writer.flush(), Peer::Awake);
//! assert_eq!(reader.read(), None); // The message is not complete. The reader sleeps now.
//! writer.write("yours, the writer");
//! assert_eq!(writer.flush(), Peer::Asleep); // The writer must wake the reader.
//! assert_eq!(reader.read(), Some("Dear reader,"));
//! assert_eq!(reader.read(), Some("yours, the writer"));
//! ```

mod block;
mod build;
mod channel;
mod chunk;
mod error;
mod fan_in;
mod parts;
mod peer;
mod pipe_position;
mod reader;
mod receiver;
mod sender;
mod shared;
mod writer;

pub use build::{bounded, unbounded};
pub use channel::{Capacity, channel, fan_in};
pub use error::{CapacityError, Closed, Full, RecvTimeoutError, TryRecvError, TrySendError};
pub use fan_in::FanIn;
pub use peer::{Bounded, Peer, Unbounded};
pub use reader::Reader;
pub use receiver::Receiver;
pub use sender::Sender;
pub use writer::Writer;

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;
