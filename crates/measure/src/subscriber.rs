//! The subscriber's experiment: counts what arrives, checks its order, measures its latency.
//!
//! All of it in the calling thread, which takes its CPU when the first stream begins. The clock
//! is read once per stamped message, and otherwise only when there is nothing to read.

use crate::conditions::Setup;
use crate::linear::{Linear, LinearShape};
use crate::monitor::RunMonitor;
use crate::outcome::{Figures, StreamResult, SubscriberResult, rate};
use crate::pinning::{Pinning, PinningError};
use crate::stream_stats::StreamStats;
use crate::touch::Touch;
use lanecast_transport::{
    CloseReason, Event, Gap, Message, SessionId, Stream, Subscribe, TopicId, Transport,
};
use std::error::Error;
use std::hint::black_box;
use thiserror::Error;

/// Messages between two looks at the stop flag.
const BATCH: usize = 256;

/// What a subscriber is to do.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topics.
    pub topics: Vec<String>,
    /// Where the thread runs from the first stream's beginning on.
    pub place: Pinning,
    /// Look at counts and order only: no latencies, no spinning.
    pub fast: bool,
    /// Count latencies in this histogram, too.
    pub linear: Option<LinearShape>,
    /// Empty iterations per message, as work that the reader has to do.
    pub spin: u64,
    /// How much of each message is read.
    pub touch: Touch,
    /// End with the first publisher whose streams have ended.
    pub once: bool,
    /// What is known of the run already.
    pub setup: Setup,
}

/// What happened, told as it happens.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A publisher is there.
    Joined(&'a Stream),
    /// Messages are lost.
    Lost(&'a Gap<'a>),
    /// A stream ended: what came of it.
    Left(&'a StreamResult),
    /// The run ends while the stream goes on: what came of it so far.
    Stopped(&'a StreamResult),
}

/// Why a subscriber's run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SubscriberError {
    /// The transport made no subscriber.
    #[error("cannot subscribe")]
    Open(#[source] Box<dyn Error + Send + Sync>),
    /// The thread's CPU.
    #[error(transparent)]
    Pinning(#[from] PinningError),
}

/// Runs the experiment over `transport` until `stop` is true, or a stream ends if that was asked
/// for. `notify` is called in between, by the measured thread; `recovered` is asked, at the end,
/// how many messages came by retransmission.
///
/// # Errors
/// If the transport refuses, or the CPU asked for cannot be taken.
pub fn run<C: Transport>(
    transport: &C,
    settings: &Settings,
    recovered: fn(&mut C::Subscriber) -> Option<u64>,
    stop: &dyn Fn() -> bool,
    notify: &mut dyn FnMut(Notice<'_>),
) -> Result<SubscriberResult, SubscriberError> {
    let topics: Vec<&str> = settings.topics.iter().map(String::as_str).collect();
    let watch = RunMonitor::new(transport.name(), settings.setup, settings.touch, settings.place);
    let subscriber =
        transport.subscriber(&topics).map_err(|error| SubscriberError::Open(Box::new(error)))?;
    let reader = Reader {
        spin: settings.spin,
        linear: settings.linear.filter(|_| !settings.fast),
        is_warming_up: true,
        current: 0,
        session: SessionId(0),
        topic: TopicId::FIRST,
        tallies: Vec::new(),
        ended: Vec::new(),
        watch,
        failed: None,
        notify,
    };
    let run = (settings, recovered, stop);
    match (settings.fast, settings.touch) {
        (true, Touch::Header) => reader.read_all::<true, false, _>(subscriber, run),
        (true, Touch::Whole) => reader.read_all::<true, true, _>(subscriber, run),
        (false, Touch::Header) => reader.read_all::<false, false, _>(subscriber, run),
        (false, Touch::Whole) => reader.read_all::<false, true, _>(subscriber, run),
    }
}

/// What is to be done, who is asked for recovered messages, and when it is over.
type Run<'a, S> = (&'a Settings, fn(&mut S) -> Option<u64>, &'a dyn Fn() -> bool);

struct Reader<'a> {
    spin: u64,
    linear: Option<LinearShape>,
    /// Whether no measured message has come yet.
    is_warming_up: bool,
    /// The stream of the latest message, as an index; it is that topic of that publisher's run.
    current: usize,
    session: SessionId,
    topic: TopicId,
    tallies: Vec<StreamStats>,
    /// Why each stream ended, by the same index.
    ended: Vec<Option<CloseReason>>,
    watch: RunMonitor,
    failed: Option<PinningError>,
    notify: &'a mut dyn FnMut(Notice<'_>),
}

impl Reader<'_> {
    fn read_all<const FAST: bool, const WHOLE: bool, S: Subscribe>(
        mut self,
        mut subscriber: S,
        (settings, recovered, stop): Run<'_, S>,
    ) -> Result<SubscriberResult, SubscriberError> {
        while !stop() && self.failed.is_none() {
            let work = subscriber.poll(BATCH, |event| match event {
                Event::Message(message) => self.read::<FAST, WHOLE>(&message),
                other => self.turn(&other),
            });
            if work == 0 {
                self.tallies.iter_mut().for_each(StreamStats::note_time);
            }
            if self.is_warming_up {
                self.warm_up(work);
            }
            if settings.once && self.a_session_is_over() {
                break;
            }
            subscriber.wait(work);
        }
        if let Some(error) = self.failed.take() {
            return Err(error.into());
        }
        let recovered = recovered(&mut subscriber);
        // What comes now takes its time: publishers need not wait for it.
        drop(subscriber);
        Ok(self.finish(settings, recovered))
    }

    /// Whether all streams have ended that a publisher had.
    fn a_session_is_over(&self) -> bool {
        let streams = || self.tallies.iter().zip(&self.ended);
        streams().filter(|(_, why)| why.is_some()).any(|(ended, _)| {
            let session = ended.stream.session;
            streams().all(|(tally, why)| tally.stream.session != session || why.is_some())
        })
    }

    #[inline(always)]
    fn read<const FAST: bool, const WHOLE: bool>(&mut self, message: &Message<'_>) {
        let stream = message.stream();
        let is_other = stream.session != self.session || stream.topic_id != self.topic;
        if is_other || self.tallies.is_empty() {
            self.switch_to(stream);
        }
        let bytes = message.bytes();
        let tally = &mut self.tallies[self.current];
        let word = tally.count(bytes);
        if !FAST {
            if let Some(word) = word {
                tally.time(bytes, word);
            }
            for iteration in 0..self.spin {
                black_box(iteration);
            }
        }
        if WHOLE {
            tally.read_whole(bytes, word);
        }
    }

    /// Everything that is no message.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, event: &Event<'_>) {
        match event {
            Event::Joined(stream) => {
                if self.tallies.is_empty() {
                    self.begin();
                }
                self.switch_to(stream);
                (self.notify)(Notice::Joined(stream));
            }
            Event::Lost(gap) => {
                self.switch_to(gap.stream);
                let tally = &mut self.tallies[self.current];
                tally.told_lost = tally.told_lost.saturating_add(gap.count.unwrap_or(1));
                (self.notify)(Notice::Lost(gap));
            }
            Event::Left(stream, why) => {
                self.switch_to(stream);
                self.tallies[self.current].note_time();
                self.ended[self.current] = Some(*why);
                let result = stream_result(&self.tallies[self.current], Some(*why));
                (self.notify)(Notice::Left(&result));
            }
            _ => {}
        }
    }

    /// Takes the CPU, as soon as there is something to measure.
    fn begin(&mut self) {
        if let Err(error) = self.watch.take_place() {
            self.failed = Some(error);
        }
    }

    /// Between messages of the warm-up there is time to watch the thread; with the first
    /// measured one, that ends.
    #[cold]
    #[inline(never)]
    fn warm_up(&mut self, work: usize) {
        if self.tallies.iter().any(StreamStats::is_measured) {
            self.is_warming_up = false;
            self.watch.raise();
        } else if work == 0 && !self.tallies.is_empty() {
            self.watch.probe.glance();
        }
    }

    #[cold]
    #[inline(never)]
    fn switch_to(&mut self, stream: &Stream) {
        (self.session, self.topic) = (stream.session, stream.topic_id);
        let is_it =
            |known: &Stream| (known.session, known.topic_id) == (stream.session, stream.topic_id);
        let known = self.tallies.iter().position(|tally| is_it(&tally.stream));
        self.current = known.unwrap_or_else(|| {
            self.tallies.push(StreamStats::new(stream.clone(), self.watch.clock(), self.linear));
            self.ended.push(None);
            self.tallies.len() - 1
        });
    }

    fn finish(mut self, settings: &Settings, recovered: Option<u64>) -> SubscriberResult {
        self.tallies.iter_mut().for_each(StreamStats::note_time);
        let mut streams = Vec::with_capacity(self.tallies.len());
        for (tally, why) in self.tallies.iter().zip(&self.ended) {
            let result = stream_result(tally, *why);
            if why.is_none() {
                (self.notify)(Notice::Stopped(&result));
            }
            streams.push(result);
        }
        SubscriberResult {
            figures: sum(&self.tallies),
            recovered,
            linear: self.linear.map(|shape| {
                let mut linear = Linear::new(shape);
                self.tallies.iter().filter_map(|t| t.linear.as_ref()).for_each(|l| linear.merge(l));
                linear.result()
            }),
            fast: settings.fast,
            spin: settings.spin,
            streams,
            conditions: self.watch.conditions(None),
        }
    }
}

fn stream_result(tally: &StreamStats, why: Option<CloseReason>) -> StreamResult {
    StreamResult {
        topic: tally.stream.topic.clone(),
        session: tally.stream.session.to_string(),
        source: tally.stream.source.clone(),
        ended: why.map(CloseReason::describe),
        figures: sum(std::slice::from_ref(tally)),
    }
}

/// The figures of streams together. The time is from the first measured message of any of them
/// to the last of any.
fn sum(tallies: &[StreamStats]) -> Figures {
    let total =
        |count: fn(&StreamStats) -> u64| tallies.iter().map(count).fold(0, u64::saturating_add);
    let measured = total(|tally| tally.received - tally.warm_up());
    let spans = || tallies.iter().filter_map(StreamStats::span);
    let first = spans().map(|(first, _)| first).min();
    let last = spans().map(|(_, last)| last).max();
    let duration_ns =
        first.zip(last).map_or(0, |(first, last)| tallies[0].clock.ns(last.saturating_sub(first)));
    let mut latency = crate::latency::LatencyRecorder::default();
    tallies.iter().for_each(|tally| latency.merge(&tally.latency));
    Figures {
        received: total(|tally| tally.received),
        warmup: total(StreamStats::warm_up),
        lost: total(|tally| tally.lost),
        told_lost: total(|tally| tally.told_lost),
        duplicated: total(|tally| tally.duplicated),
        damaged: total(|tally| tally.damaged),
        unchecked: total(|tally| tally.unchecked),
        first_number: tallies.iter().filter_map(|tally| tally.first_number).min(),
        duration_ns,
        // The first message starts the time, so it is not one that was carried in it.
        rate: rate(measured.saturating_sub(1), duration_ns),
        latency: latency.latency(),
    }
}
