//! The socket baseline: speed of the system's own sockets between two threads of this process, over
//! the loopback interface. No protocol can be faster than its sockets, so figures of network
//! transports are compared with these.
//!
//! A [`Side`] is one end of round trips by itself: the other one is in another process, and may be
//! in another network.
//!
//! Each case has two threads: one sends (and times the answers of round trips), the other one
//! receives (and sends back). The calling thread only waits for them.

mod case;
mod datagrams;
mod end;
mod one_way;
mod packing;
mod result;
mod rounds;
mod settings;
mod side;
mod stream;

pub use case::{Case, Experiment, SocketKind, Way};
pub use result::SocketBaseline;
pub use settings::{LONGEST, Progress, Settings, SocketBaselineError};
pub use side::{Role, Side};

use crate::ping::STAMP;
use datagrams::Datagrams;
use end::SocketEnd;
use lanecast_base::Size;
use lanecast_base::sync::Ordering;
use packing::Load;
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;
use stream::Stream;

/// Polling interval of the calling thread.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Measures one case. The calling thread polls `stop`, which ends the case with an error.
///
/// # Errors
/// If the settings do not fit together, or the system refuses.
pub fn run(
    settings: &Settings,
    stop: &dyn Fn() -> bool,
) -> Result<SocketBaseline, SocketBaselineError> {
    let load = checked_load(settings)?;
    let refused = |source| settings.refused(source);
    match settings.case.socket {
        SocketKind::Udp => over(settings, load, Datagrams::pair(load).map_err(refused)?, stop),
        SocketKind::Multicast => {
            over(settings, load, Datagrams::groups(load).map_err(refused)?, stop)
        }
        SocketKind::Tcp => over(settings, load, Stream::pair(load).map_err(refused)?, stop),
    }
}

fn checked_load(settings: &Settings) -> Result<Load, SocketBaselineError> {
    if !(STAMP..=LONGEST).contains(&settings.size) {
        return Err(SocketBaselineError::Size { size: settings.size });
    }
    if settings.rate == 0 || settings.messages == 0 {
        return Err(SocketBaselineError::Nothing);
    }
    Ok(Load::of(settings))
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
    Ok(SocketBaseline::new(settings, load, sent, received, Some(receiver), conditions))
}

/// Result of a thread.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

#[cfg(test)]
mod tests;
