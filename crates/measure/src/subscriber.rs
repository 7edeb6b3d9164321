//! The subscriber's experiment: counts what arrives, checks its order, measures its latency.
//!
//! All steps run in the calling thread, which is pinned when the first stream begins. The clock is
//! read once per stamped message, and otherwise only when there is nothing to read.

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

/// Messages between two checks of the stop flag.
const BATCH: usize = 256;

/// Parameters of a subscriber.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The topics.
    pub topics: Vec<String>,
    /// CPU of the thread, from the first stream on.
    pub place: Pinning,
    /// Look at counts and order only: no latencies, no spinning.
    pub fast: bool,
    /// Count latencies in this histogram, too.
    pub linear: Option<LinearShape>,
    /// Empty iterations per message, as work that the reader has to do.
    pub spin: u64,
    /// Part of each message that is read.
    pub touch: Touch,
    /// Messages come in order of arrival: one behind a later one is no fault.
    pub unordered: bool,
    /// End with the first publisher whose streams have ended.
    pub once: bool,
    /// Conditions known before the run.
    pub setup: Setup,
}

/// A notice about the progress of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A publisher is there.
    Joined(&'a Stream),
    /// Messages are lost.
    Lost(&'a Gap<'a>),
    /// A stream ended, with its result.
    Left(&'a StreamResult),
    /// The run ends before the stream, with its result so far.
    Stopped(&'a StreamResult),
}

/// Errors of a subscriber.
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

/// Runs the experiment over `transport` until `stop` is true, or a stream ends if requested. The
/// measured thread calls `notify`; `recovered` returns, at the end, the number of messages received
/// by retransmission.
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
    let monitor = RunMonitor::new(transport.name(), settings.setup, settings.touch, settings.place);
    let subscriber =
        transport.subscriber(&topics).map_err(|error| SubscriberError::Open(Box::new(error)))?;
    let reader = Reader {
        spin: settings.spin,
        linear: settings.linear.filter(|_| !settings.fast),
        unordered: settings.unordered,
        is_warming_up: true,
        current: 0,
        session: SessionId(0),
        topic: TopicId::FIRST,
        stats: Vec::new(),
        ended: Vec::new(),
        monitor,
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

/// Parameters, counter of retransmissions, and stop flag of a run.
type Run<'a, S> = (&'a Settings, fn(&mut S) -> Option<u64>, &'a dyn Fn() -> bool);

struct Reader<'a> {
    spin: u64,
    linear: Option<LinearShape>,
    unordered: bool,
    /// Whether no measured message has come yet.
    is_warming_up: bool,
    /// Index of the latest message's stream, and its session and topic.
    current: usize,
    session: SessionId,
    topic: TopicId,
    stats: Vec<StreamStats>,
    /// Why each stream ended, by the same index.
    ended: Vec<Option<CloseReason>>,
    monitor: RunMonitor,
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
                other => self.on_event(&other),
            });
            if work == 0 {
                self.stats.iter_mut().for_each(StreamStats::note_time);
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
        // The sums below take long: publishers must not wait for them.
        drop(subscriber);
        Ok(self.finish(settings, recovered))
    }

    /// Whether all streams of some publisher have ended.
    fn a_session_is_over(&self) -> bool {
        let streams = || self.stats.iter().zip(&self.ended);
        streams().filter(|(_, why)| why.is_some()).any(|(ended, _)| {
            let session = ended.stream.session;
            streams().all(|(tally, why)| tally.stream.session != session || why.is_some())
        })
    }

    #[inline(always)]
    fn read<const FAST: bool, const WHOLE: bool>(&mut self, message: &Message<'_>) {
        let stream = message.stream();
        let is_other = stream.session != self.session || stream.topic_id != self.topic;
        if is_other || self.stats.is_empty() {
            self.switch_to(stream);
        }
        let bytes = message.bytes();
        let tally = &mut self.stats[self.current];
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

    /// Handles events other than messages.
    #[cold]
    #[inline(never)]
    fn on_event(&mut self, event: &Event<'_>) {
        match event {
            Event::Joined(stream) => {
                if self.stats.is_empty() {
                    self.begin();
                }
                self.join(stream);
                (self.notify)(Notice::Joined(stream));
            }
            Event::Lost(gap) => {
                self.switch_to(gap.stream);
                let tally = &mut self.stats[self.current];
                tally.reported_lost = tally.reported_lost.saturating_add(gap.count);
                (self.notify)(Notice::Lost(gap));
            }
            Event::Left(stream, why) => {
                self.switch_to(stream);
                self.stats[self.current].note_time();
                self.ended[self.current] = Some(*why);
                let result = stream_result(&self.stats[self.current], Some(*why));
                (self.notify)(Notice::Left(&result));
            }
            _ => {}
        }
    }

    /// Pins the thread when the first stream begins.
    fn begin(&mut self) {
        if let Err(error) = self.monitor.pin() {
            self.failed = Some(error);
        }
    }

    /// Watches the thread between warm-up messages; the first measured message ends that.
    #[cold]
    #[inline(never)]
    fn warm_up(&mut self, work: usize) {
        if self.stats.iter().any(StreamStats::is_measured) {
            self.is_warming_up = false;
            self.monitor.raise();
        } else if work == 0 && !self.stats.is_empty() {
            self.monitor.probe.glance();
        }
    }

    /// Begins to count a stream. One that had ended is that of a publisher which has started again
    /// under its stable id: it counts its messages anew.
    fn join(&mut self, stream: &Stream) {
        match self.find(stream).filter(|index| self.ended[*index].is_none()) {
            Some(_) => self.switch_to(stream),
            None => self.add(stream),
        }
    }

    #[cold]
    #[inline(never)]
    fn switch_to(&mut self, stream: &Stream) {
        match self.find(stream) {
            Some(index) => {
                (self.session, self.topic) = (stream.session, stream.topic_id);
                self.current = index;
            }
            None => self.add(stream),
        }
    }

    /// Index of the latest stream with this session and topic.
    fn find(&self, stream: &Stream) -> Option<usize> {
        let id = (stream.session, stream.topic_id);
        self.stats.iter().rposition(|it| (it.stream.session, it.stream.topic_id) == id)
    }

    fn add(&mut self, stream: &Stream) {
        let stats = StreamStats::new(stream.clone(), self.monitor.clock(), self.linear);
        self.stats.push(if self.unordered { stats.in_order_of_arrival() } else { stats });
        self.ended.push(None);
        (self.session, self.topic) = (stream.session, stream.topic_id);
        self.current = self.stats.len() - 1;
    }

    fn finish(mut self, settings: &Settings, recovered: Option<u64>) -> SubscriberResult {
        self.stats.iter_mut().for_each(StreamStats::note_time);
        let mut streams = Vec::with_capacity(self.stats.len());
        for (tally, why) in self.stats.iter().zip(&self.ended) {
            let result = stream_result(tally, *why);
            if why.is_none() {
                (self.notify)(Notice::Stopped(&result));
            }
            streams.push(result);
        }
        SubscriberResult {
            figures: sum(&self.stats),
            recovered,
            linear: self.linear.map(|shape| {
                let mut linear = Linear::new(shape);
                self.stats.iter().filter_map(|t| t.linear.as_ref()).for_each(|l| linear.merge(l));
                linear.result()
            }),
            fast: settings.fast,
            spin: settings.spin,
            streams,
            conditions: self.monitor.conditions(None),
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

/// Sums the figures of streams, over the time from the first measured message of any to the last of
/// any.
fn sum(stats: &[StreamStats]) -> Figures {
    let total =
        |count: fn(&StreamStats) -> u64| stats.iter().map(count).fold(0, u64::saturating_add);
    let measured = total(|tally| tally.received - tally.warm_up());
    let spans = || stats.iter().filter_map(StreamStats::span);
    let first = spans().map(|(first, _)| first).min();
    let last = spans().map(|(_, last)| last).max();
    let duration_ns =
        first.zip(last).map_or(0, |(first, last)| stats[0].clock.ns(last.saturating_sub(first)));
    let mut latency = crate::latency::LatencyRecorder::default();
    stats.iter().for_each(|tally| latency.merge(&tally.latency));
    Figures {
        received: total(|tally| tally.received),
        warmup: total(StreamStats::warm_up),
        lost: total(|tally| tally.lost),
        reported_lost: total(|tally| tally.reported_lost),
        duplicated: total(|tally| tally.duplicated),
        damaged: total(|tally| tally.damaged),
        unchecked: total(|tally| tally.unchecked),
        first_number: stats.iter().filter_map(|tally| tally.first_number).min(),
        duration_ns,
        // The first message starts the time, so its transfer is not within it.
        rate: rate(measured.saturating_sub(1), duration_ns),
        latency: latency.latency(),
    }
}
