//! The publisher's experiment: its highest rate, or a schedule for latencies.
//!
//! In order: open, wait for subscribers, pin the thread, warm up, send the measured part, report
//! the result, linger, close. All steps run in the calling thread.

use crate::conditions::Setup;
use crate::flags::Flags;
use crate::linear::LinearShape;
use crate::monitor::RunMonitor;
use crate::outcome::{PublisherResult, rate};
use crate::pacing::{Bursts, FlatOut};
use crate::pinning::{Pinning, PinningError};
use crate::record::{self, FILLED, HIGHEST_NUMBER, STAMPED, TIMESTAMPED, WARM_UP};
use crate::recorder::Recorder;
use crate::sender::{Copying, InPlace, MessageFormat, RoundRobin, Run, SendError, SendPath, Task};
use crate::touch::Touch;
use lanecast_transport::{ClaimError, Publish, Shared, TopicId, Transport};
use std::error::Error;
use std::fmt;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Rates (messages a second) from here on mean flat out.
pub const FLAT_OUT_RATE: u64 = 999_999_999;

/// Interval of checks of the stop flag while waiting for subscribers.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Parameters of a publisher.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topics: messages go to each in turn, and are numbered on each by itself.
    pub topics: Vec<String>,
    /// The length of each message, in bytes.
    pub size: usize,
    /// Number of measured messages.
    pub messages: u64,
    /// Messages a second; 0, or [`FLAT_OUT_RATE`] and more, for as many as possible.
    pub rate: u64,
    /// Time limit of a flat-out run, checked every 65,536 messages.
    pub time: Option<Duration>,
    /// Messages due together (1 or more), at the same average rate.
    pub burst: u64,
    /// Number of warm-up messages.
    pub warmup: u64,
    /// Messages a second of the warm-up; 0 as for `rate`.
    pub warmup_rate: u64,
    /// Modes of sending.
    pub flags: Flags,
    /// Part of each message that is written.
    pub touch: Touch,
    /// CPU of the thread.
    pub place: Pinning,
    /// Condition for the first message.
    pub arrival: Arrival,
    /// Time limit, after the last message, for subscribers to read everything.
    pub linger: Duration,
    /// Shape of the histogram of sending calls, if requested.
    pub calls: Option<LinearShape>,
    /// Conditions known before the run.
    pub setup: Setup,
}

/// Condition for the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// After a fixed time, in which subscribers join.
    Pause(Duration),
    /// After this number of subscribers has joined, without a time limit.
    Subscribers(usize),
}

/// Errors of a publisher.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublisherError {
    /// The messages are too small for what they are to carry.
    #[error("-m {size} has no room for timestamps: take -m {STAMPED} or more, or leave out flag 1")]
    TooSmallForTimestamps {
        /// The length asked for.
        size: usize,
    },
    /// The messages are longer than the transport's longest.
    #[error("-m {size} is too long: at most {longest} bytes with this window (see --window)")]
    TooLong {
        /// The length asked for.
        size: usize,
        /// The transport's longest.
        longest: usize,
    },
    /// There is no topic.
    #[error("-t names no topic")]
    NoTopic,
    /// No messages at a time.
    #[error("--burst 0 sends nothing: 1 is even spacing")]
    EmptyBurst,
    /// Bursts without a schedule.
    #[error("--burst {burst} needs a rate: set -r, or leave out --burst to send flat out")]
    BurstWithoutRate {
        /// Requested burst.
        burst: u64,
    },
    /// More messages than a message's number can count.
    #[error("-n and -w together are more than {HIGHEST_NUMBER} messages")]
    TooMany,
    /// The transport made no publisher.
    #[error("cannot publish")]
    Open(#[source] Box<dyn Error + Send + Sync>),
    /// The thread's CPU.
    #[error(transparent)]
    Pinning(#[from] PinningError),
    /// A message was refused.
    #[error("sent {sent} of {of} messages, then: {error}")]
    Refused {
        /// Messages sent of this part (warm-up or measured part).
        sent: u64,
        /// Messages of that part.
        of: u64,
        /// Why the next one was refused.
        error: ClaimError,
    },
    /// The stop flag was raised before there were as many subscribers as asked for.
    #[error("stopped while waiting for subscribers: {joined} of {wanted} were there")]
    NoSubscriber {
        /// Number of subscribers.
        joined: usize,
        /// Requested number.
        wanted: usize,
    },
}

/// Callbacks of the experiment.
pub struct Hooks<'a, P> {
    /// Ends the run early as soon as it is true.
    pub stop: &'a dyn Fn() -> bool,
    /// Number of times the window was full so far, if the transport counts that.
    pub back_pressured: &'a dyn Fn(&P) -> Option<u64>,
    /// Given the result before the publisher lingers and closes.
    pub announce: &'a mut dyn FnMut(&PublisherResult),
}

impl<P> fmt::Debug for Hooks<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}

/// Runs the experiment over `transport`.
///
/// # Errors
/// If the settings do not fit together, the transport refuses, or a message is refused.
pub fn run<C: Transport>(
    transport: &C,
    settings: &Settings,
    hooks: Hooks<'_, C::Publisher>,
) -> Result<PublisherResult, PublisherError> {
    settings.check()?;
    let mut monitor =
        RunMonitor::new(transport.name(), settings.setup, settings.touch, settings.place);
    let (mut publisher, topics) = open(transport, &settings.topics)?;
    let longest = publisher.longest_message();
    if settings.size > longest {
        return Err(PublisherError::TooLong { size: settings.size, longest });
    }
    await_subscribers(&mut publisher, settings.arrival, hooks.stop)?;
    monitor.pin()?;
    // Before the warm-up, so that nothing comes between that and the measured part.
    monitor.probe.look();
    let identity = Identity {
        session: publisher.session().to_string(),
        source: publisher.source().to_owned(),
    };
    let (generic, line) = (settings.flags.generic, (settings, monitor, identity, hooks));
    if topics.len() > 1 || settings.calls.is_some() {
        experiment(RoundRobin::new(publisher, topics, settings.calls, generic), line)
    } else if generic {
        experiment(Copying(Shared::new(publisher)), line)
    } else {
        experiment(InPlace(publisher), line)
    }
}

/// A publisher of all `topics`, and their numbers.
fn open<C: Transport>(
    transport: &C,
    topics: &[String],
) -> Result<(C::Publisher, Vec<TopicId>), PublisherError> {
    let [first, others @ ..] = topics else { return Err(PublisherError::NoTopic) };
    let failed = |error: Box<dyn Error + Send + Sync>| PublisherError::Open(error);
    let mut publisher = transport.publisher(first).map_err(|error| failed(Box::new(error)))?;
    let mut numbers = vec![TopicId::FIRST];
    for topic in others {
        numbers.push(publisher.add_topic(topic).map_err(|error| failed(Box::new(error)))?);
    }
    Ok((publisher, numbers))
}

impl Settings {
    fn check(&self) -> Result<(), PublisherError> {
        if self.flags.timestamp && self.size < STAMPED {
            return Err(PublisherError::TooSmallForTimestamps { size: self.size });
        }
        if self.burst == 0 {
            return Err(PublisherError::EmptyBurst);
        }
        if self.burst > 1 && is_flat_out(self.rate) {
            return Err(PublisherError::BurstWithoutRate { burst: self.burst });
        }
        match self.messages.checked_add(self.warmup) {
            Some(total) if total <= HIGHEST_NUMBER => Ok(()),
            _ => Err(PublisherError::TooMany),
        }
    }

    /// End of a run without a schedule.
    fn end(&self) -> Option<Instant> {
        self.time.filter(|_| is_flat_out(self.rate)).map(|time| Instant::now() + time)
    }

    fn filled(&self) -> u64 {
        match self.touch {
            Touch::Whole => FILLED,
            Touch::Header => 0,
        }
    }
}

/// Whether `rate` means as many messages as possible.
pub const fn is_flat_out(rate: u64) -> bool {
    rate == 0 || rate >= FLAT_OUT_RATE
}

/// Session and source of the publisher, for the result.
struct Identity {
    session: String,
    source: String,
}

fn await_subscribers<P: Publish>(
    publisher: &mut P,
    arrival: Arrival,
    stop: &dyn Fn() -> bool,
) -> Result<(), PublisherError> {
    match arrival {
        Arrival::Pause(pause) => {
            let start = Instant::now();
            while !stop() && start.elapsed() < pause {
                std::thread::sleep(LOOK_EVERY.min(pause.saturating_sub(start.elapsed())));
            }
        }
        Arrival::Subscribers(wanted) => {
            while !publisher.wait_for_subscribers(wanted, LOOK_EVERY) {
                if stop() {
                    let joined = publisher.subscribers();
                    return Err(PublisherError::NoSubscriber { joined, wanted });
                }
            }
        }
    }
    Ok(())
}

/// Parameters, monitor, identity and callbacks of an experiment.
type Load<'a, 'hooks, P> = (&'a Settings, RunMonitor, Identity, Hooks<'hooks, P>);

/// Warm-up, measured part, result, end.
fn experiment<L: SendPath>(
    mut line: L,
    (settings, mut monitor, identity, hooks): Load<'_, '_, L::Publisher>,
) -> Result<PublisherResult, PublisherError> {
    let mut lateness = Recorder::new();
    let clock = monitor.clock();
    let filled = settings.filled();
    let kind = WARM_UP | filled;
    let format = MessageFormat { size: settings.size, first: 0, kind, non_blocking: false, clock };
    let (rate_asked, messages) = (settings.warmup_rate, settings.warmup);
    let task = Task { format, stop: hooks.stop, lateness: &mut lateness };
    let warmed = send(&mut line, task, rate_asked, 1, messages)?;
    monitor.probe.note(warmed.longest_gap_ns);

    let stamped = if settings.flags.timestamp { TIMESTAMPED } else { 0 };
    let measured = MessageFormat {
        first: record::number(warmed.sent),
        kind: stamped | filled,
        non_blocking: settings.flags.non_blocking,
        ..format
    };
    let subscribers_at_start = line.with_publisher(Publish::subscribers);
    let pressed_before = line.with_publisher(hooks.back_pressured);
    monitor.count_from_here();
    let end = settings.end();
    let is_over = || end.is_some_and(|end| Instant::now() >= end);
    let stop = || (hooks.stop)() || is_over();
    monitor.raise();
    let task = Task { format: measured, stop: &stop, lateness: &mut lateness };
    let run = send(&mut line, task, settings.rate, settings.burst, settings.messages)?;
    let interrupted = run.sent < settings.messages && !is_over();
    let pressed_after = line.with_publisher(hooks.back_pressured);
    let subscribers_at_end = line.with_publisher(Publish::subscribers);
    let mut conditions = monitor.conditions(run.longest_gap_ns);
    conditions.interference.doubt_shared_cpus(subscribers_at_start + 1, conditions.cpus.online);

    let mut result = PublisherResult {
        topic: settings.topics.join(","),
        session: identity.session,
        source: identity.source,
        size: settings.size,
        sent: run.sent,
        warmup: warmed.sent,
        interrupted,
        duration_ns: run.duration_ns,
        rate: rate(run.sent, run.duration_ns),
        rate_asked: settings.rate,
        burst: settings.burst,
        largest_burst: run.largest_burst,
        back_pressured: pressed_after
            .zip(pressed_before)
            .map(|(after, before)| after.saturating_sub(before)),
        subscribers_at_start,
        subscribers_at_end,
        drained: None,
        lateness: lateness.distribution(),
        calls: line.calls(),
        persistence: None,
        conditions,
    };
    (hooks.announce)(&result);
    result.drained = Some(line.close(settings.linger));
    Ok(result)
}

fn send<L: SendPath>(
    line: &mut L,
    task: Task<'_>,
    rate: u64,
    burst: u64,
    messages: u64,
) -> Result<Run, PublisherError> {
    let sent = if is_flat_out(rate) {
        line.send_all(task, |_| FlatOut::new(messages))
    } else {
        let second = task.format.clock.from_ns(1_000_000_000);
        line.send_all(task, |start| Bursts::new(rate, burst, messages, start, second))
    };
    sent.map_err(|SendError { sent, error }| PublisherError::Refused { sent, of: messages, error })
}
