//! Channels: pipes with a signal and a wait strategy.

use super::build::{bounded, chain};
use super::error::CapacityError;
use super::fan_in::FanIn;
use super::peer::Bounded;
use super::reader::Reader;
use super::receiver::Receiver;
use super::sender::Sender;
use super::writer::Writer;
use crate::signal::{PollSet, PollSetSignal, Semaphore, Signals};
use lanecast_base::WaitStrategy;

/// Capacity of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// This many messages, rounded up as for [`bounded`]: senders wait for space.
    Bounded(usize),
    /// Any number: senders never wait.
    Unbounded,
}

/// A channel from one thread to another: a pipe, a [`Semaphore`], and a wait strategy.
///
/// # Errors
/// If the capacity is 0, or does not fit into memory.
///
/// ```
/// use lanecast_base::WaitStrategy;
/// use lanecast_ring::pipe::{self, Capacity, Closed};
/// let (mut sender, mut receiver) = pipe::channel(Capacity::Bounded(64), WaitStrategy::SpinPark)?;
/// let thread = std::thread::spawn(move || sender.send_all(0..1000));
/// assert!((0..1000).all(|number| receiver.recv() == Ok(number)));
/// assert_eq!(receiver.recv(), Err(Closed(())));
/// thread.join().expect("it does not panic")?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn channel<T>(
    capacity: Capacity,
    wait: WaitStrategy,
) -> Result<(Sender<T>, Receiver<T>), CapacityError> {
    let (writer, reader) = pipe(capacity)?;
    let semaphore = Semaphore::new();
    let sender = Sender::new(writer, semaphore.sender(), wait);
    Ok((sender, Receiver::new(reader, semaphore, wait)))
}

/// `senders` channels into one receiver, which serves them in turns and sleeps on a [`PollSet`]:
/// any number of senders wakes it once.
///
/// # Errors
/// If the capacity (of each) is 0, or does not fit into memory.
///
/// ```
/// use lanecast_base::WaitStrategy;
/// use lanecast_ring::pipe::{self, Capacity};
/// let (senders, mut receiver) = pipe::fan_in(100, Capacity::Unbounded, WaitStrategy::Park)?;
/// let thread = std::thread::spawn(move || {
///     for (number, mut sender) in senders.into_iter().enumerate() {
///         sender.send(number).expect("the receiver is there");
///     }
/// });
/// let mut sum = 0;
/// while let Ok((sender, number)) = receiver.recv() {
///     assert_eq!(sender, number);
///     sum += number;
/// }
/// assert_eq!(sum, 4950);
/// thread.join().expect("it does not panic");
/// # Ok::<(), pipe::CapacityError>(())
/// ```
#[expect(clippy::type_complexity, reason = "two ends, one of them many")]
pub fn fan_in<T>(
    senders: usize,
    capacity: Capacity,
    wait: WaitStrategy,
) -> Result<(Vec<Sender<T, PollSetSignal>>, FanIn<T>), CapacityError> {
    let signals = PollSet::new();
    let (mut ends, mut readers) = (Vec::new(), Vec::new());
    for number in 0..senders {
        let (writer, reader) = pipe(capacity)?;
        let signal = signals.bind(number % PollSet::COUNT).expect("it is below the count");
        ends.push(Sender::new(writer, signal, wait));
        readers.push(reader);
    }
    Ok((ends, FanIn::new(readers, signals, wait)))
}

fn pipe<T>(capacity: Capacity) -> Result<(Writer<T, Bounded>, Reader<T>), CapacityError> {
    match capacity {
        Capacity::Bounded(capacity) => bounded(capacity),
        Capacity::Unbounded => Ok(chain()),
    }
}
