//! Signals: wake-ups of one thread by others.
//!
//! A signal carries its number only. Sending a pending one again has no effect, any number of
//! signals costs at most one wake-up, and a signal to an awake thread costs no system call. Three
//! implementations share one interface:
//!
//! | | signals | from | to wait beside sockets | cost of signalling an awake thread |
//! |---|---|---|---|---|
//! | [`Semaphore`] | 1 | one thread, as a rule | no | one atomic operation |
//! | [`PollSet`] | 63 | any threads | no | one atomic operation |
//! | [`SocketSignal`] | 256 | any threads | yes | two atomic operations |
//!
//! ```
//! use lanecast_ring::signal::{PollSet, Signal, Signals};
//! use std::time::Duration;
//!
//! let mut waiter = PollSet::new();
//! let (three, five) = (waiter.bind(3)?, waiter.bind(5)?);
//! std::thread::spawn(move || {
//!     five.signal();
//!     three.signal();
//!     three.signal();
//! })
//! .join()
//! .expect("it does not panic");
//! let numbers: Vec<usize> = waiter.poll(Duration::from_secs(1)).iter().collect();
//! assert_eq!(numbers, [3, 5]);
//! assert!(waiter.check().is_empty());
//! # Ok::<(), lanecast_ring::signal::NoSuchSignal>(())
//! ```

mod interface;
mod numbers;
mod pollset;
mod semaphore;
mod socket;

pub(crate) use interface::Deadline;
#[cfg(all(test, not(loom)))]
pub(crate) use interface::WAKES;
pub use interface::{NoSuchSignal, Signal, Signals};
pub use numbers::{Numbers, SignalSet};
pub use pollset::{PollSet, PollSetSignal};
pub use semaphore::{Semaphore, SemaphoreSignal};
pub use socket::{SocketSignal, SocketSignalSender};

#[cfg(all(test, loom))]
mod loom;
#[cfg(all(test, not(loom)))]
mod tests;
