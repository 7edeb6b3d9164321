//! A ping of two threads: the calling one sends, another one receives.

use super::finished_run::FinishedRun;
use super::hooks::{Hooks, Notice};
use super::replies::Replies;
use super::sender::{Part, Sender, Sent};
use super::settings::{PingError, Settings};
use crate::conditions::Conditions;
use crate::monitor::RunMonitor;
use crate::pacing::Pace;
use crate::pinning::PinningError;
use crate::touch::Touch;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use lanecast_transport::{Publish, Subscribe};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Messages between two checks for the end.
const BATCH: usize = 256;
/// Polling interval of the sending thread while it waits for the other one.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// State shared by the threads. Counts and flags only: no data is published through it, so
/// `Relaxed` suffices.
#[derive(Debug, Default)]
struct Shared {
    /// Messages that came back or were reported lost.
    accounted: AtomicU64,
    has_joined: AtomicBool,
    /// The pong is gone, or the receiving thread has failed.
    is_over: AtomicBool,
    /// The measured part has begun.
    is_measured: AtomicBool,
    /// The sending thread has ended.
    is_off: AtomicBool,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// Result of the receiving thread.
struct Received<'a> {
    replies: Replies<'a>,
    recovered: Option<u64>,
    conditions: Conditions,
}

pub(super) fn run<'a, P: Publish, S: Subscribe>(
    settings: &Settings,
    mut sender: Sender<'a, P>,
    subscriber: S,
    replies: Replies<'a>,
    monitor: &mut RunMonitor,
    hooks: &Hooks<'a, S>,
) -> Result<FinishedRun<'a, P>, PingError> {
    let shared = Shared::default();
    let (recovered, notify) = (hooks.recovered, hooks.notify);
    let transport = monitor.transport();
    let receive = || receive(settings, transport, subscriber, replies, &shared, recovered);
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = Builder::new().name("receiver".into()).spawn_scoped(scope, receive)?;
        let sent = send(settings, &mut sender, monitor, &shared, notify);
        shared.is_off.store(true, Ordering::Relaxed);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, std::io::Error>((sent, received))
    })?;
    let Received { replies, recovered, conditions } = received?;
    let (warmup, measured) = sent?;
    Ok(FinishedRun { sender, replies, warmup, measured, recovered, receiver: Some(conditions) })
}

/// The sending thread: both parts.
fn send<P: Publish>(
    settings: &Settings,
    sender: &mut Sender<'_, P>,
    monitor: &mut RunMonitor,
    shared: &Shared,
    notify: &(dyn Fn(Notice<'_>) + Sync),
) -> Result<(Sent, Sent), PingError> {
    while !(sender.wait_for_subscriber(LOOK_EVERY) && shared.has_joined.load(Ordering::Relaxed)) {
        if shared.is_over() || (sender.stop)() {
            return Err(PingError::NoSubscriber);
        }
    }
    monitor.pin()?;
    monitor.probe.look();
    notify(Notice::WarmingUp);
    let warmup = send_part(sender, Part::warmup(settings), shared)?;
    monitor.probe.note(warmup.longest_gap_ns);
    linger(settings, sender, shared);
    let part = Part::measured(settings);
    notify(Notice::Measuring(part.expected()));
    monitor.count_from_here();
    monitor.raise();
    shared.is_measured.store(true, Ordering::Relaxed);
    let measured = send_part(sender, part, shared)?;
    linger(settings, sender, shared);
    Ok((warmup, measured))
}

fn send_part<P: Publish>(
    sender: &mut Sender<'_, P>,
    part: Part,
    shared: &Shared,
) -> Result<Sent, PingError> {
    let (before, pressed) = (sender.total, sender.back_pressured);
    let clock = sender.clock;
    let stop = sender.stop;
    let stop = || shared.is_over() || stop();
    let mut most_in_flight = 0;
    let (mut pace, start) = part.pace(clock);
    'part: while let Some(burst) = pace.next_burst(|| clock.ticks(), &stop) {
        for slot in burst {
            if !sender.send(slot.due.unwrap_or_default(), part.stamped, || !shared.is_over())? {
                break 'part;
            }
            let accounted = shared.accounted.load(Ordering::Relaxed);
            most_in_flight = most_in_flight.max(sender.total.saturating_sub(accounted));
        }
    }
    let duration_ns = clock.ns(clock.ticks_ordered().wrapping_sub(start));
    Ok(Sent {
        messages: sender.total - before,
        duration_ns,
        largest_burst: pace.largest_burst(),
        most_in_flight,
        back_pressured: sender.back_pressured - pressed,
        longest_gap_ns: pace.longest_gap().map(|ticks| clock.ns(ticks)),
    })
}

/// Waits for missing answers.
fn linger<P: Publish>(settings: &Settings, sender: &Sender<'_, P>, shared: &Shared) {
    let until = Instant::now() + settings.linger;
    while sender.total > shared.accounted.load(Ordering::Relaxed)
        && !shared.is_over()
        && !(sender.stop)()
        && Instant::now() < until
    {
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The receiving thread.
fn receive<'a, S: Subscribe>(
    settings: &Settings,
    transport: &'static str,
    mut subscriber: S,
    mut replies: Replies<'a>,
    shared: &Shared,
    recovered: fn(&mut S) -> Option<u64>,
) -> Result<Received<'a>, PinningError> {
    let mut monitor = RunMonitor::new(transport, settings.setup, Touch::Header, settings.receiver);
    let (mut is_placed, mut is_raised) = (false, false);
    while !shared.is_off.load(Ordering::Relaxed) {
        let work = subscriber.poll(BATCH, |event| replies.take(&event));
        if work > 0 {
            shared.accounted.store(replies.accounted(), Ordering::Relaxed);
            shared.is_over.store(replies.is_over(), Ordering::Relaxed);
            if !is_placed && replies.has_joined() {
                is_placed = true;
                if let Err(error) = monitor.pin() {
                    shared.is_over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                shared.has_joined.store(true, Ordering::Relaxed);
            }
        }
        if !is_raised && shared.is_measured.load(Ordering::Relaxed) {
            is_raised = true;
            monitor.count_from_here();
            monitor.raise();
        }
        subscriber.wait(work);
    }
    let recovered = recovered(&mut subscriber);
    Ok(Received { replies, recovered, conditions: monitor.conditions(None) })
}
