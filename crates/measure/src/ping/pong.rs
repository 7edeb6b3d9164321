//! The pong's side: sends every message back as it is, in the thread that receives it.

use super::hooks::{Ended, Notice};
use super::message_sender::MessageSender;
use super::result::{PongResult, Traffic};
use super::settings::{PingError, Topics};
use super::stamp::Stamp;
use crate::conditions::Setup;
use crate::monitor::RunMonitor;
use crate::pinning::{Pinning, PinningError};
use crate::touch::Touch;
use lanecast_base::Waiter;
use lanecast_transport::{
    ClaimError, CloseReason, Event, Publish, SessionId, Stream, Subscribe, Transport,
};
use std::fmt;
use std::time::{Duration, Instant};

/// Messages between two checks of the stop flag.
const BATCH: usize = 256;
/// Initial size of the copy buffer.
const USUAL: usize = 4096;
/// Time limit for the ping to subscribe before the first answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Interval of checks of the stop flag meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Parameters of a pong.
#[derive(Clone, Debug)]
pub struct PongSettings {
    /// The topics.
    pub topics: Topics,
    /// Whether messages are copied by the thread-safe call instead of being written in place.
    pub generic: bool,
    /// CPU of the thread, from the first ping on.
    pub place: Pinning,
    /// End when all pings have left.
    pub once: bool,
    /// Time limit at the end for pings to read everything.
    pub linger: Duration,
    /// Whether the thread polls its publisher's events while nothing comes, so that a publisher
    /// that keeps its way warm does it there.
    pub polls_publisher: bool,
    /// Conditions known before the run.
    pub setup: Setup,
}

/// Callbacks of a pong.
pub struct PongHooks<'a, S> {
    /// Ends the run as soon as it is true.
    pub stop: &'a dyn Fn() -> bool,
    /// Number of messages the subscriber received by retransmission, if its transport counts them.
    pub recovered: fn(&mut S) -> Option<u64>,
    /// Receives notices.
    pub notify: &'a mut dyn FnMut(Notice<'_>),
}

impl<S> fmt::Debug for PongHooks<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PongHooks").finish_non_exhaustive()
    }
}

/// Sends messages back until `stop` is true, or all pings have left if that was asked for.
///
/// # Errors
/// If the transport refuses, or the CPU asked for cannot be taken.
pub fn pong<C: Transport>(
    transport: &C,
    settings: &PongSettings,
    hooks: PongHooks<'_, C::Subscriber>,
) -> Result<PongResult, PingError> {
    let mut monitor =
        RunMonitor::new(transport.name(), settings.setup, Touch::Whole, settings.place);
    let topics = &settings.topics;
    // The subscriber first: a ping starts as soon as it sees the publisher.
    let subscriber = transport.subscriber(&[&topics.ping]);
    let mut subscriber = subscriber.map_err(|error| PingError::Open(Box::new(error)))?;
    let publisher = transport.publisher(&topics.pong).map_err(|e| PingError::Open(Box::new(e)))?;
    let mut responder = Responder {
        outlet: MessageSender::new(publisher, settings.generic, USUAL),
        waiter: Waiter::new(settings.setup.wait),
        all: Traffic::default(),
        streams: Vec::new(),
        answered: 0,
        most_at_once: 0,
        back_pressured: 0,
        state: State::Alone,
        has_settled: false,
        failed: None,
        stop: hooks.stop,
        notify: hooks.notify,
    };
    while !(hooks.stop)() && responder.failed.is_none() {
        responder.settle();
        let before = responder.answered;
        let work = subscriber.poll(BATCH, |event| match event {
            Event::Message(message) => responder.answer(message.bytes(), message.stream().session),
            other => responder.on_event(&other, &mut monitor),
        });
        responder.most_at_once = responder.most_at_once.max(responder.answered - before);
        if responder.state == State::FirstStamped {
            responder.state = State::Measured;
            monitor.count_from_here();
            monitor.raise();
        }
        if settings.once
            && !responder.streams.is_empty()
            && responder.streams.iter().all(|s| s.is_over)
        {
            break;
        }
        if work == 0 && settings.polls_publisher {
            responder.outlet.poll_events();
        }
        match responder.has_settled {
            true => subscriber.wait(work),
            false => subscriber.wait_at_most(work, LOOK_EVERY),
        }
    }
    responder.finish(settings, (hooks.recovered)(&mut subscriber), monitor)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
enum State {
    /// No ping is known to have subscribed.
    Alone,
    WarmingUp,
    /// The first measured message has come.
    FirstStamped,
    Measured,
}

/// Counts of one ping.
#[derive(Debug)]
struct Counted {
    session: SessionId,
    traffic: Traffic,
    is_over: bool,
}

/// Sends messages back and counts them.
struct Responder<'a, P> {
    outlet: MessageSender<P>,
    waiter: Waiter,
    all: Traffic,
    streams: Vec<Counted>,
    answered: u64,
    most_at_once: u64,
    back_pressured: u64,
    state: State,
    /// The publisher has waited for a subscriber, and need not wait at the first answer.
    has_settled: bool,
    failed: Option<PingError>,
    stop: &'a dyn Fn() -> bool,
    notify: &'a mut dyn FnMut(Notice<'_>),
}

impl<P: Publish> Responder<'_, P> {
    #[inline(always)]
    fn answer(&mut self, bytes: &[u8], session: SessionId) {
        self.of(session).received += 1;
        self.all.received += 1;
        if self.state < State::Measured {
            self.prepare(bytes);
        }
        loop {
            match self.outlet.try_send(bytes.len(), |answer| answer.copy_from_slice(bytes)) {
                Ok(()) => {
                    self.answered += 1;
                    return;
                }
                Err(ClaimError::BackPressured(_)) => {
                    self.back_pressured += 1;
                    if (self.stop)() {
                        return;
                    }
                    self.waiter.wait(0);
                }
                Err(error) => {
                    self.failed.get_or_insert(PingError::Refused(error));
                    return;
                }
            }
        }
    }

    /// Waits for what a publisher has to wait for once there is a subscriber, before a message has
    /// come: where stores keep the messages that takes a while, which is no part of a round trip.
    #[inline(always)]
    fn settle(&mut self) {
        if !self.has_settled && self.outlet.has_subscriber() {
            self.has_settled = self.outlet.wait_for_subscriber(LOOK_EVERY);
        }
    }

    /// Waits for a subscriber before the first answer, and detects the first measured message.
    #[cold]
    #[inline(never)]
    fn prepare(&mut self, bytes: &[u8]) {
        if self.state == State::Alone {
            self.state = State::WarmingUp;
            let until = Instant::now() + PATIENCE;
            while !(self.stop)()
                && !self.outlet.wait_for_subscriber(LOOK_EVERY)
                && Instant::now() < until
            {}
        }
        if Stamp::read(bytes).is_some_and(|stamp| stamp.actual != 0) {
            self.state = State::FirstStamped;
        }
    }

    #[inline(always)]
    fn of(&mut self, session: SessionId) -> &mut Traffic {
        let at = self.streams.iter().rposition(|stream| stream.session == session);
        let at = at.unwrap_or_else(|| {
            let traffic = Traffic::default();
            self.streams.push(Counted { session, traffic, is_over: false });
            self.streams.len() - 1
        });
        &mut self.streams[at].traffic
    }

    /// Handles events other than messages.
    #[cold]
    #[inline(never)]
    fn on_event(&mut self, event: &Event<'_>, monitor: &mut RunMonitor) {
        match event {
            Event::Joined(stream) => self.join(stream, monitor),
            Event::Lost(gap) => {
                let count = gap.count;
                let traffic = self.of(gap.stream.session);
                traffic.reported_lost = traffic.reported_lost.saturating_add(count);
                self.all.reported_lost = self.all.reported_lost.saturating_add(count);
                (self.notify)(Notice::Lost(gap));
            }
            Event::Left(stream, why) => self.leave(stream, *why),
            _ => {}
        }
    }

    fn join(&mut self, stream: &Stream, monitor: &mut RunMonitor) {
        let is_first = self.streams.is_empty();
        self.of(stream.session);
        if is_first && let Err(error) = monitor.pin() {
            self.failed = Some(PinningError::into(error));
        }
        self.state = State::Alone;
        (self.notify)(Notice::Joined(stream));
    }

    fn leave(&mut self, stream: &Stream, why: CloseReason) {
        let traffic = self.of(stream.session).clone();
        let most_at_once = Some(self.most_at_once);
        (self.notify)(Notice::Left(&Ended { stream, why, traffic: &traffic, most_at_once }));
        let left = self.streams.iter_mut().filter(|counted| counted.session == stream.session);
        left.for_each(|counted| counted.is_over = true);
    }

    fn finish(
        mut self,
        settings: &PongSettings,
        recovered: Option<u64>,
        monitor: RunMonitor,
    ) -> Result<PongResult, PingError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let conditions = monitor.conditions(None);
        self.outlet.close(settings.linger);
        Ok(PongResult {
            topics: settings.topics.clone(),
            traffic: Traffic { recovered, ..self.all },
            answered: self.answered,
            most_at_once: self.most_at_once,
            back_pressured: self.back_pressured,
            generic: settings.generic,
            persistence: None,
            io_fallback: None,
            conditions,
        })
    }
}
