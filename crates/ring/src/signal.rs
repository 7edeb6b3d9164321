//! Signals: how one thread tells another that there is something to do.
//!
//! A signal carries nothing but its number. Sending one that is pending already changes nothing,
//! and any number of signals costs at most one wake-up; sending one to a thread that is awake
//! costs no system call. Three ways to send and wait, behind one interface, so that generic code
//! never knows which it has:
//!
//! | | signals | from | to wait beside sockets | cost of signalling somebody awake |
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
#[cfg(test)]
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
