//! A ping of two threads: the calling one sends, another one receives.

use super::Done;
use super::replies::Replies;
use super::sender::{Part, Sender, Sent};
use super::settings::{Hooks, Notice, PingError, Settings};
use crate::conditions::Conditions;
use crate::monitor::RunMonitor;
use crate::pacing::Pace;
use crate::pinning::PinningError;
use crate::touch::Touch;
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use lanecast_transport::{Publish, Subscribe};
use std::thread::Builder;
use std::time::{Duration, Instant};

/// Messages between two looks at whether it is over.
const BATCH: usize = 256;
/// Between two looks of the sending thread while it waits for the other one.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// What the threads know of each other. Counts only: nothing is handed over through it.
#[derive(Debug, Default)]
struct Shared {
    /// Messages that came back or are known not to.
    accounted: AtomicU64,
    has_joined: AtomicBool,
    /// The pong is gone, or the receiving thread has failed.
    is_over: AtomicBool,
    /// The measured part has begun.
    is_measured: AtomicBool,
    /// The sending thread wants no more.
    is_off: AtomicBool,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// What the receiving thread came to.
struct Received<'a> {
    answers: Replies<'a>,
    recovered: Option<u64>,
    conditions: Conditions,
}

pub(super) fn run<'a, P: Publish, S: Subscribe>(
    settings: &Settings,
    mut sender: Sender<'a, P>,
    subscriber: S,
    answers: Replies<'a>,
    watch: &mut RunMonitor,
    hooks: &Hooks<'a, S>,
) -> Result<Done<'a, P>, PingError> {
    let shared = Shared::default();
    let (recovered, notify) = (hooks.recovered, hooks.notify);
    let transport = watch.transport();
    let receive = || receive(settings, transport, subscriber, answers, &shared, recovered);
    let (sent, received) = std::thread::scope(|scope| {
        let receiving = Builder::new().name("receiver".into()).spawn_scoped(scope, receive)?;
        let sent = send(settings, &mut sender, watch, &shared, notify);
        shared.is_off.store(true, Ordering::Relaxed);
        let received = receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok::<_, std::io::Error>((sent, received))
    })?;
    let Received { answers, recovered, conditions } = received?;
    let (warmup, measured) = sent?;
    Ok(Done { sender, answers, warmup, measured, recovered, receiver: Some(conditions) })
}

/// The sending thread: both parts.
fn send<P: Publish>(
    settings: &Settings,
    sender: &mut Sender<'_, P>,
    watch: &mut RunMonitor,
    shared: &Shared,
    notify: &(dyn Fn(Notice<'_>) + Sync),
) -> Result<(Sent, Sent), PingError> {
    while !(sender.wait_for_subscriber(LOOK_EVERY) && shared.has_joined.load(Ordering::Relaxed)) {
        if shared.is_over() || (sender.stop)() {
            return Err(PingError::NoSubscriber);
        }
    }
    watch.take_place()?;
    watch.probe.look();
    notify(Notice::WarmingUp);
    let warmup = send_part(sender, Part::warmup(settings), shared)?;
    watch.probe.note(warmup.longest_gap_ns);
    linger(settings, sender, shared);
    let part = Part::measured(settings);
    notify(Notice::Measuring(part.expected()));
    watch.count_from_here();
    watch.raise();
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

/// Waits for the answers that are still missing.
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
    mut answers: Replies<'a>,
    shared: &Shared,
    recovered: fn(&mut S) -> Option<u64>,
) -> Result<Received<'a>, PinningError> {
    let mut watch = RunMonitor::new(transport, settings.setup, Touch::Header, settings.receiver);
    let (mut is_placed, mut is_raised) = (false, false);
    while !shared.is_off.load(Ordering::Relaxed) {
        let work = subscriber.poll(BATCH, |event| answers.take(&event));
        if work > 0 {
            shared.accounted.store(answers.accounted(), Ordering::Relaxed);
            shared.is_over.store(answers.is_over(), Ordering::Relaxed);
            if !is_placed && answers.has_joined() {
                is_placed = true;
                if let Err(error) = watch.take_place() {
                    shared.is_over.store(true, Ordering::Relaxed);
                    return Err(error);
                }
                shared.has_joined.store(true, Ordering::Relaxed);
            }
        }
        if !is_raised && shared.is_measured.load(Ordering::Relaxed) {
            is_raised = true;
            watch.count_from_here();
            watch.raise();
        }
        subscriber.wait(work);
    }
    let recovered = recovered(&mut subscriber);
    Ok(Received { answers, recovered, conditions: watch.conditions(None) })
}
