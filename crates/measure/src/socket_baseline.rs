//! The socket baseline: speed of the system's own sockets between two threads of this process, over
//! the loopback interface. No protocol can be faster than its sockets, so figures of network
//! transports are compared with these.
//!
//! Each case has two threads: one sends (and times the answers of round trips), the other one
//! receives (and sends back). The calling thread only waits for them.

mod case;
mod datagrams;
mod end;
mod one_way;
mod result;
mod rounds;
mod stream;

pub use case::{Case, Experiment, SocketKind, Way};
pub use result::SocketBaseline;

use crate::conditions::Setup;
use crate::monitor::RunMonitor;
use crate::ping::STAMP;
use crate::pinning::{Pinning, PinningError};
use crate::priority::PriorityChange;
use crate::touch::Touch;
use case::Load;
use datagrams::Datagrams;
use end::SocketEnd;
use lanecast_base::Size;
use lanecast_base::clock::Clock;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;
use stream::Stream;
use thiserror::Error;

/// Polling interval of the calling thread.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// The longest message: what one datagram holds.
pub const LONGEST: usize = lanecast_os::udp::GSO_BYTES_MAX;

/// Parameters of a case.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The case.
    pub case: Case,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Round trips: messages a second.
    pub rate: u64,
    /// Round trips: number of measured messages.
    pub messages: u64,
    /// Round trips: number of warm-up messages, at the same rate.
    pub warmup: u64,
    /// One way: duration of the measured part, after a short warm-up.
    pub time: Duration,
    /// Length of a datagram of packed messages, in bytes; a longer message has its own datagram.
    pub datagram_bytes: usize,
    /// CPU of the sending thread.
    pub sender: Pinning,
    /// CPU of the receiving thread.
    pub receiver: Pinning,
    /// Change of the process's priority.
    pub raise: PriorityChange,
    /// Clock that all times are read from.
    pub clock: Clock,
}

/// Errors of the socket baseline.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SocketBaselineError {
    /// A message is too small for its times, or too long for a datagram.
    #[error("-m {size} does not do: take {STAMP} to {LONGEST} bytes")]
    Size {
        /// The length asked for.
        size: usize,
    },
    /// No rate or no messages.
    #[error("-r 0 and -n 0 are no schedule: take 1 or more")]
    Nothing,
    /// The sockets.
    #[error("{socket} over the loopback interface does not work")]
    Sockets {
        /// Kind of the sockets.
        socket: SocketKind,
        /// Error of the system.
        source: io::Error,
    },
    /// A thread's CPU.
    #[error(transparent)]
    Pinning(#[from] PinningError),
    /// A thread cannot be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
    /// The stop flag was raised.
    #[error("interrupted")]
    Stopped,
}

/// Measures one case. The calling thread polls `stop`, which ends the case with an error.
///
/// # Errors
/// If the settings do not fit together, or the system refuses.
pub fn run(
    settings: &Settings,
    stop: &dyn Fn() -> bool,
) -> Result<SocketBaseline, SocketBaselineError> {
    if !(STAMP..=LONGEST).contains(&settings.size) {
        return Err(SocketBaselineError::Size { size: settings.size });
    }
    if settings.rate == 0 || settings.messages == 0 {
        return Err(SocketBaselineError::Nothing);
    }
    let load = Load::of(settings);
    let refused = |source| settings.refused(source);
    match settings.case.socket {
        SocketKind::Udp => over(settings, load, Datagrams::pair(load).map_err(refused)?, stop),
        SocketKind::Multicast => {
            over(settings, load, Datagrams::groups(load).map_err(refused)?, stop)
        }
        SocketKind::Tcp => over(settings, load, Stream::pair(load).map_err(refused)?, stop),
    }
}

/// Progress of the case, shared by both threads.
#[derive(Debug, Default)]
struct Progress {
    /// Messages received or known to be lost. A count only: no data is published through it, so
    /// `Relaxed` suffices.
    accounted: AtomicU64,
    /// The sender has ended.
    is_off: AtomicBool,
    /// The calling thread stops the case.
    is_stopped: AtomicBool,
}

impl Progress {
    fn is_over(&self) -> bool {
        self.is_off.load(Ordering::Relaxed) || self.is_stopped.load(Ordering::Relaxed)
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

fn over<E: SocketEnd>(
    settings: &Settings,
    load: Load,
    (mut near, mut far): (E, E),
    stop: &dyn Fn() -> bool,
) -> Result<SocketBaseline, SocketBaselineError> {
    let progress = Progress::default();
    let window = Size(far.room_bytes() as u64);
    let send = || -> Result<_, SocketBaselineError> {
        let mut monitor = settings.monitor(settings.sender, window);
        let done = match settings.case.experiment {
            Experiment::RoundTrip => rounds::ping(settings, &mut near, &mut monitor, &progress),
            Experiment::OneWay => one_way::send(settings, load, &near, &mut monitor, &progress),
        };
        progress.is_off.store(true, Ordering::Relaxed);
        Ok((done?, monitor.conditions(None)))
    };
    let receive = || -> Result<_, SocketBaselineError> {
        let mut monitor = settings.monitor(settings.receiver, window);
        let done = match settings.case.experiment {
            Experiment::RoundTrip => rounds::pong(settings, &mut far, &mut monitor, &progress),
            Experiment::OneWay => one_way::receive(settings, &mut far, &mut monitor, &progress),
        };
        // After a failure of the receiver, the sender must not wait for it.
        progress.is_stopped.fetch_or(done.is_err(), Ordering::Relaxed);
        Ok((done?, monitor.conditions(None)))
    };
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = Builder::new().name("floor-receiver".into()).spawn_scoped(scope, receive);
        let receiving = receiving.map_err(SocketBaselineError::Thread)?;
        let sending = Builder::new().name("floor-sender".into()).spawn_scoped(scope, send);
        progress.is_stopped.fetch_or(sending.is_err(), Ordering::Relaxed);
        let sending = sending.map_err(SocketBaselineError::Thread)?;
        while !(sending.is_finished() && receiving.is_finished()) {
            if stop() {
                progress.is_stopped.store(true, Ordering::Relaxed);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Ok::<_, SocketBaselineError>((joined(sending), joined(receiving)))
    })?;
    if stop() {
        return Err(SocketBaselineError::Stopped);
    }
    let ((received, receiver), (sent, conditions)) = (received?, sent?);
    Ok(SocketBaseline::new(settings, load, sent, received, receiver, conditions))
}

/// Result of a thread.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

impl Settings {
    fn refused(&self, source: io::Error) -> SocketBaselineError {
        SocketBaselineError::Sockets { socket: self.case.socket, source }
    }

    fn monitor(&self, place: Pinning, window: Size) -> RunMonitor {
        let Self { case, raise, clock, .. } = *self;
        let setup = Setup { wait: case.wait, window, raise, clock };
        RunMonitor::new(case.socket.name(), setup, Touch::Header, place)
    }
}

#[cfg(test)]
mod tests;
