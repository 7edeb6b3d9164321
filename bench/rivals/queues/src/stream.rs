//! Messages from producing to consuming threads, flat out.
//!
//! ```text
//!   thread 0: pin | wait for all | warm up | wait for all | clock, send ..., clock
//!   thread 1: pin | wait for all | warm up | wait for all | clock, receive ..., clock
//!   rate = messages / (last end - first start)
//! ```
//!
//! The time is taken inside the measured threads: one that only watched them would be starved.

use std::ops::Range;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use rivals_kit::{Clock, Line, placement};

use crate::idle::Idle;
use crate::load::Load;
use crate::tally::{END, Tally, Verdict, lane};

/// Silence after which a message that was sent counts as lost.
const SILENCE_LIMIT: Duration = Duration::from_secs(3);

/// The end of one producer.
pub trait Feed: Send {
    /// Sends every value and makes all of them visible.
    fn send(&mut self, values: Range<u64>);

    /// Wakes this many consumers that would sleep for ever; called once, after all was sent.
    fn end(&mut self, _consumers: usize) {}
}

/// The end of one consumer.
pub trait Drain: Send {
    /// Receives until the tally is complete, or all is over and nothing is left.
    fn receive(&mut self, tally: &mut Tally, over: &Over);
}

/// A library set up for a load.
pub struct Stream {
    /// One for each producer.
    pub feeds: Vec<Box<dyn Feed>>,
    /// One for each consumer.
    pub drains: Vec<Box<dyn Drain>>,
}

/// Producers that have not sent everything yet.
#[derive(Debug)]
pub struct Over(AtomicUsize);

impl Over {
    /// Whether all has been sent: what is not there now will not come.
    pub fn is(&self) -> bool {
        // PAIRS(queues-over): whatever was sent before the end is seen after it.
        self.0.load(Ordering::Acquire) == 0
    }

    /// One producer has sent everything; true for the last one.
    fn one_less(&self) -> bool {
        // PAIRS(queues-over): release here, acquire in `is`.
        self.0.fetch_sub(1, Ordering::AcqRel) == 1
    }
}

/// Sends values one at a time.
pub fn each(put: impl FnMut(u64) + Send + 'static) -> Box<dyn Feed> {
    Box::new(Each(put, |_: usize| ()))
}

/// Sends values one at a time, and at the end something to each consumer.
#[cfg(feature = "kanal")]
pub fn each_until(
    put: impl FnMut(u64) + Send + 'static,
    end: impl FnMut(usize) + Send + 'static,
) -> Box<dyn Feed> {
    Box::new(Each(put, end))
}

/// Sends values in runs of `batch`.
pub fn runs(batch: u64, put: impl FnMut(Range<u64>) + Send + 'static) -> Box<dyn Feed> {
    Box::new(Runs(batch, put))
}

/// Receives values that are taken one at a time, without sleeping.
pub fn polled(
    idle: Idle,
    mut take: impl FnMut() -> Option<u64> + Send + 'static,
) -> Box<dyn Drain> {
    drained(idle, move |tally| {
        let Some(value) = take() else { return false };
        tally.one(value);
        true
    })
}

/// Receives what `drain` hands to the tally; it tells whether there was anything.
pub fn drained(
    idle: Idle,
    drain: impl FnMut(&mut Tally) -> bool + Send + 'static,
) -> Box<dyn Drain> {
    Box::new(Drained(idle, drain))
}

/// Receives values one at a time from a library that sleeps when there is none.
pub fn blocking(take: impl FnMut() -> u64 + Send + 'static) -> Box<dyn Drain> {
    Box::new(Blocking(take))
}

struct Each<P, E>(P, E);
struct Runs<P>(u64, P);
struct Drained<D>(Idle, D);
struct Blocking<T>(T);

impl<P: FnMut(u64) + Send, E: FnMut(usize) + Send> Feed for Each<P, E> {
    fn send(&mut self, values: Range<u64>) {
        values.for_each(&mut self.0);
    }

    fn end(&mut self, consumers: usize) {
        (self.1)(consumers);
    }
}

impl<P: FnMut(Range<u64>) + Send> Feed for Runs<P> {
    fn send(&mut self, values: Range<u64>) {
        let mut from = values.start;
        while from < values.end {
            let to = values.end.min(from + self.0);
            (self.1)(from..to);
            from = to;
        }
    }
}

impl<D: FnMut(&mut Tally) -> bool + Send> Drain for Drained<D> {
    fn receive(&mut self, tally: &mut Tally, over: &Over) {
        let Self(idle, drain) = self;
        while !tally.is_complete() {
            if drain(tally) {
                idle.busy();
            } else if over.is() {
                return self.receive_rest(tally);
            } else {
                idle.again();
            }
        }
    }
}

impl<D: FnMut(&mut Tally) -> bool> Drained<D> {
    /// Reads the rest after the last message was sent. A consumer that shares the values is done
    /// when nothing is there; one that sees all may still have to wait for consumers before it, for
    /// a limited time.
    #[cold]
    fn receive_rest(&mut self, tally: &mut Tally) {
        let Self(idle, drain) = self;
        let mut heard = Instant::now();
        while !tally.is_complete() {
            if drain(tally) {
                heard = Instant::now();
            } else if tally.left().is_none() || heard.elapsed() > SILENCE_LIMIT {
                return;
            } else {
                idle.again();
            }
        }
    }
}

impl<T: FnMut() -> u64 + Send> Drain for Blocking<T> {
    fn receive(&mut self, tally: &mut Tally, _over: &Over) {
        while !tally.is_complete() {
            let value = (self.0)();
            if value == END {
                return;
            }
            tally.one(value);
        }
    }
}

/// Ticks at the beginning and at the end of what one thread did.
type Span = Range<u64>;

/// Measures one run.
///
/// # Errors
///
/// When a CPU cannot be used, or the library panics.
pub fn run(stream: Stream, load: &Load) -> Result<Line> {
    // Tried here, because a thread that fails would leave the others waiting for it.
    placement::pin(load.producer_cpu)?;
    placement::pin(load.consumer_cpu)?;
    let clock = Clock::host();
    let producers = stream.feeds.len();
    let gate = Barrier::new(producers + stream.drains.len());
    let overs = [(); 2].map(|()| Over(AtomicUsize::new(producers)));
    let (spans, tallies) = thread::scope(|scope| -> Result<(Vec<Span>, Vec<Tally>)> {
        let (gate, overs) = (&gate, &overs);
        let consumers = stream.drains.len();
        let feeds = stream.feeds.into_iter().enumerate();
        let feeds: Vec<_> = feeds
            .map(|(index, feed)| {
                scope.spawn(move || produce(feed, index, consumers, load, (gate, overs)))
            })
            .collect();
        let drains = stream.drains.into_iter().enumerate();
        let drains: Vec<_> = drains
            .map(|(index, drain)| scope.spawn(move || consume(drain, index, load, (gate, overs))))
            .collect();
        let mut spans = feeds.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
        let seen = drains.into_iter().map(joined).collect::<Result<Vec<_>>>()?;
        let (seen_spans, tallies): (Vec<_>, Vec<_>) = seen.into_iter().unzip();
        spans.extend(seen_spans);
        Ok((spans, tallies))
    })?;
    let lanes: Vec<_> = (0..producers).map(|index| part(load, index, 1)).collect();
    Ok(describe(&Verdict::of(&tallies, &lanes), &spans, clock))
}

fn joined<T>(handle: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    handle.join().map_err(|_| anyhow!("a measured thread panicked"))?
}

/// The values of one producer in the warm-up (0) or in the measured part (1).
fn part(load: &Load, producer: usize, part: usize) -> Range<u64> {
    let [warmup, measured] = load.parts();
    lane(producer, [0..warmup, warmup..warmup + measured][part].clone())
}

fn produce(
    mut feed: Box<dyn Feed>,
    index: usize,
    consumers: usize,
    load: &Load,
    (gate, overs): (&Barrier, &[Over; 2]),
) -> Result<Span> {
    placement::pin(load.cpu_of_producer(index))?;
    let mut span = 0..0;
    for (number, over) in overs.iter().enumerate() {
        gate.wait();
        let start = Clock::host().ticks();
        feed.send(part(load, index, number));
        if over.one_less() {
            feed.end(consumers);
        }
        span = start..Clock::host().ticks();
    }
    Ok(span)
}

fn consume(
    mut drain: Box<dyn Drain>,
    index: usize,
    load: &Load,
    (gate, overs): (&Barrier, &[Over; 2]),
) -> Result<(Span, Tally)> {
    placement::pin(load.cpu_of_consumer(index))?;
    let mut seen = (0..0, Tally::of_some());
    for (number, over) in overs.iter().enumerate() {
        let mut tally =
            if load.is_shared() { Tally::of_some() } else { Tally::of_all(part(load, 0, number)) };
        gate.wait();
        let start = Clock::host().ticks();
        drain.receive(&mut tally, over);
        seen = (start..Clock::host().ticks(), tally);
    }
    Ok(seen)
}

fn describe(verdict: &Verdict, spans: &[Span], clock: Clock) -> Line {
    let start = spans.iter().map(|span| span.start).min().unwrap_or_default();
    let end = spans.iter().map(|span| span.end).max().unwrap_or_default();
    let duration_ns = clock.ns(end - start).max(1) as f64;
    let mut line = Line::default();
    line.add("received", verdict.received);
    line.add("lost", verdict.lost);
    line.add("damaged", verdict.damaged);
    line.add("duration_ns", format_args!("{duration_ns:.0}"));
    line.add("rate", format_args!("{:.0}", verdict.received as f64 * 1e9 / duration_ns));
    line.add("warmup_lost", 0);
    line.add_clock(clock);
    line
}
