//! Latency of one publisher with a constant rate, in simulated time: the delay from the due time of
//! each message to its delivery, without interference by a real processor.
//!
//! Conditions are set, not drawn: the delay caused by a loss can be separated from the delay caused
//! by a suspended actor.

use crate::connection::whole;
use crate::event_queue::EventQueue;
use crate::link::LinkConditions;
use crate::network::{Host, Network, Socket, address, group_address, owner};
use crate::rng::SimRng;
use lanecast_protocol::fec::FecSettings;
use lanecast_protocol::receiver::{self, Delivery, Receiver};
use lanecast_protocol::sender::{self, Distribution, Sender};
use lanecast_protocol::{Nanos, SECOND};
use lanecast_wire::net::{FrameHeader, Items, Kind, flag};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// Number of the session.
const SESSION: u64 = 7;
/// Host and socket of the publisher; subscribers have the next ones.
const PUBLISHER: (Host, Socket) = (1, 50);
/// Time of the first message: all subscribers have joined by then.
pub const BEGIN: Nanos = 20 * SECOND;
/// Time after the last message in which deliveries count.
const PATIENCE: Nanos = 5 * SECOND;
/// Length of a message, which begins with its number.
const MESSAGE: usize = 24;
/// A duty cycle takes time: a deadline that stays in the past must not stop the clock.
const TURN_MIN: Nanos = 1_000;

/// Configuration of a latency run.
#[derive(Clone, Copy, Debug)]
pub struct LatencyScenario {
    /// Seed.
    pub seed: u64,
    /// Multicast instead of unicast.
    pub is_group: bool,
    /// Number of subscribers.
    pub subscribers: usize,
    /// Parity of the session.
    pub fec: Option<FecSettings>,
    /// Conditions in both directions.
    pub conditions: LinkConditions,
    /// Number of messages.
    pub messages: u64,
    /// Interval of messages.
    pub interval: Nanos,
    /// Number of first messages that do not count.
    pub uncounted: u64,
    /// Polling of the actors.
    pub polling: PollingSchedule,
}

/// Polling schedule of an actor.
#[derive(Clone, Copy, Debug)]
pub struct PollingSchedule {
    /// Polling interval; 0: at once.
    pub turn: Nanos,
    /// Time that the actor runs, ...
    pub awake: Nanos,
    /// ... and that it is suspended after that, until `until`.
    pub asleep: Nanos,
    /// End of the suspensions.
    pub until: Nanos,
    /// Most datagrams in the socket; more are lost.
    pub room: usize,
}

impl PollingSchedule {
    /// Polls continuously.
    pub const ATTENTIVE: Self = Self { turn: 0, awake: 0, asleep: 0, until: 0, room: 4_096 };

    /// Time at which work due `at` is done.
    fn seen(&self, at: Nanos, actor: usize) -> Nanos {
        let at = if self.turn > 0 { at.next_multiple_of(self.turn) } else { at };
        if at >= self.until {
            return at;
        }
        let round = self.awake + self.asleep;
        // Actors are suspended at different times.
        let phase = (at + actor as u64 * round * 3 / 7) % round;
        if phase < self.awake { at } else { (at + round - phase).min(self.until) }
    }
}

/// Results of a latency run.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Delay of each counted delivery, from the message's due time.
    pub delays: Vec<Nanos>,
    /// Number of datagrams sent again.
    pub repairs: u64,
    /// Number of data datagrams sent for the first time.
    pub datagrams: u64,
    /// Number of parity frames, in answers to NAKs or not.
    pub parity: u64,
    /// Number of NAKs.
    pub naks: u64,
    /// Number of messages reported as lost.
    pub lost: u64,
}

impl Latencies {
    /// Delay that `share` of the messages do not exceed.
    ///
    /// # Panics
    /// If no message was delivered.
    pub fn percentile(&self, share: f64) -> Nanos {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        let at = (delays.len() as f64 * share).ceil() as usize;
        delays[at.clamp(1, delays.len()) - 1]
    }
}

#[derive(Debug)]
enum Event {
    Arrives { actor: usize, from: SocketAddr, bytes: Rc<[u8]> },
    Acts(usize),
}

/// Socket of an actor, and its next poll.
#[derive(Debug, Default)]
struct Actor {
    inbox: VecDeque<(SocketAddr, Rc<[u8]>)>,
    timer: Option<Nanos>,
}

struct Run {
    scenario: LatencyScenario,
    now: Nanos,
    events: EventQueue<Event>,
    network: Network,
    /// The publisher's is first.
    actors: Vec<Actor>,
    sender: Sender,
    receivers: Vec<Receiver>,
    out: Vec<Delivery>,
    said: u64,
    waits: Latencies,
}

impl LatencyScenario {
    /// Publishes and delivers everything; deliveries later than some seconds after the last message
    /// do not count.
    pub fn run(&self) -> Latencies {
        let mut run = Run::new(*self);
        let end = BEGIN + self.messages * self.interval + PATIENCE;
        let all = (self.messages - self.uncounted) as usize * self.subscribers;
        while run.waits.delays.len() < all
            && let Some((at, event)) = run.events.take()
            && at <= end
        {
            run.now = at;
            run.handle(event);
        }
        run.waits
    }
}

impl Run {
    fn new(scenario: LatencyScenario) -> Self {
        let group = group_address(1);
        let distribution =
            if scenario.is_group { Distribution::Multicast(group) } else { Distribution::Unicast };
        let liveness = 60 * SECOND;
        let settings = sender::SenderSettings {
            session: SESSION,
            distribution,
            liveness,
            fec: scenario.fec,
            cookie_key: [scenario.seed, 1],
            ..sender::SenderSettings::default()
        };
        let mut network = Network::new(scenario.conditions, SimRng::new(scenario.seed));
        let mut sender = Sender::new(settings, 1);
        // A single name is always valid.
        let _first = sender.add_topic("scenario");
        let source = address(PUBLISHER.0, PUBLISHER.1);
        let receivers = (1..=scenario.subscribers).map(|actor| {
            network.add(group, PUBLISHER.0 + actor as Host, PUBLISHER.1 + actor as Socket);
            let settings = receiver::ReceiverSettings {
                receiver: actor as u64,
                liveness,
                recovery: liveness,
                multicast: scenario.is_group,
                seed: scenario.seed ^ actor as u64,
                ..receiver::ReceiverSettings::default()
            };
            Receiver::new(settings, SESSION, source, &["scenario"], 1)
        });
        let receivers = receivers.collect();
        let mut events = EventQueue::new();
        (0..=scenario.subscribers).for_each(|actor| events.add(1, Event::Acts(actor)));
        let actor = || Actor { timer: Some(1), ..Actor::default() };
        let actors = std::iter::repeat_with(actor).take(scenario.subscribers + 1).collect();
        let (out, waits) = (Vec::new(), Latencies::default());
        Self { scenario, now: 1, events, network, actors, sender, receivers, out, said: 0, waits }
    }

    /// Due time of a message.
    const fn due(&self, number: u64) -> Nanos {
        BEGIN + number * self.scenario.interval
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives { actor, from, bytes } => {
                let inbox = &mut self.actors[actor].inbox;
                if inbox.len() < self.scenario.polling.room {
                    inbox.push_back((from, bytes));
                }
                self.wake(actor, self.now);
            }
            Event::Acts(actor) if self.actors[actor].timer == Some(self.now) => {
                self.actors[actor].timer = None;
                match actor {
                    0 => self.publish(),
                    _ => self.subscribe(actor),
                }
            }
            Event::Acts(_) => {}
        }
    }

    /// Makes the actor poll at that time or earlier.
    fn wake(&mut self, actor: usize, at: Nanos) {
        let at = self.scenario.polling.seen(at, actor);
        if self.actors[actor].timer.is_none_or(|set| at < set) {
            self.actors[actor].timer = Some(at);
            self.events.add(at, Event::Acts(actor));
        }
    }

    fn publish(&mut self) {
        while let Some((from, bytes)) = self.actors[0].inbox.pop_front() {
            if let Some(frame) = whole(&bytes) {
                self.waits.naks += u64::from(frame.kind == Kind::Nak);
                self.sender.on_frame(self.now, from, &frame);
            }
        }
        if self.sender.next_deadline().is_some_and(|due| due <= self.now) {
            self.sender.on_time(self.now);
        }
        while self.said < self.scenario.messages && self.due(self.said) <= self.now {
            let Ok(bytes) = self.sender.stage(0, MESSAGE) else {
                self.sender.probe(self.now);
                break;
            };
            bytes[..8].copy_from_slice(&self.said.to_le_bytes());
            self.sender.publish();
            self.sender.flush();
            self.said += 1;
        }
        while let Some(transmit) = self.sender.next_transmit(self.now) {
            for datagram in transmit.bytes.chunks(transmit.segment) {
                if let Some(frame) = whole(datagram) {
                    let again = frame.flags & flag::AGAIN != 0;
                    self.waits.repairs += u64::from(frame.kind == Kind::Data && again);
                    self.waits.datagrams += u64::from(frame.kind == Kind::Data && !again);
                    self.waits.parity += u64::from(frame.kind == Kind::Parity);
                }
                send((&mut self.network, &mut self.events), self.now, 0, transmit.to, datagram);
            }
            self.sender.transmitted(self.now);
        }
        let more = (self.said < self.scenario.messages).then(|| self.due(self.said));
        let soon = self.now + TURN_MIN;
        if let Some(at) = self.sender.next_deadline().into_iter().chain(more).min() {
            self.wake(0, at.max(soon));
        }
    }

    fn subscribe(&mut self, actor: usize) {
        while let Some((_, bytes)) = self.actors[actor].inbox.pop_front() {
            if let Some(frame) = whole(&bytes) {
                let receiver = &mut self.receivers[actor - 1];
                receiver.on_frame(self.now, &frame, size_of::<FrameHeader>(), &mut self.out);
                self.record(&bytes);
            }
        }
        let (now, receiver) = (self.now, &mut self.receivers[actor - 1]);
        if receiver.next_deadline().is_some_and(|due| due <= now) {
            receiver.on_time(now, &mut self.out);
        }
        receiver.consumed_all();
        let mut buffer = [0; 1_400];
        while let Some(length) = receiver.next_transmit(now, &mut buffer) {
            let to = address(PUBLISHER.0, PUBLISHER.1);
            send((&mut self.network, &mut self.events), now, actor, to, &buffer[..length]);
        }
        let due = receiver.next_deadline();
        self.record(&[]);
        due.into_iter().for_each(|at| self.wake(actor, at.max(now + TURN_MIN)));
    }

    /// Records deliveries.
    fn record(&mut self, buffer: &[u8]) {
        for delivery in std::mem::take(&mut self.out) {
            match delivery {
                Delivery::Borrowed { start, end, .. } => {
                    self.read(&buffer[start as usize..end as usize]);
                }
                Delivery::Owned { items, .. } => self.read(&items),
                Delivery::Lost { count, .. } => self.waits.lost += count,
                Delivery::Joined { .. } | Delivery::Message { .. } | Delivery::Left { .. } => {}
            }
        }
    }

    fn read(&mut self, items: &[u8]) {
        for item in Items::new(items) {
            let Some((number, _)) = item.bytes.split_first_chunk() else { continue };
            let number = u64::from_le_bytes(*number);
            if number >= self.scenario.uncounted {
                self.waits.delays.push(self.now - self.due(number));
            }
        }
    }
}

fn send(
    (network, events): (&mut Network, &mut EventQueue<Event>),
    now: Nanos,
    actor: usize,
    to: SocketAddr,
    bytes: &[u8],
) {
    let from = address(PUBLISHER.0 + actor as Host, PUBLISHER.1 + actor as Socket);
    let (host, copy): (_, Rc<[u8]>) = (owner(from).map_or(0, |(host, _)| host), bytes.into());
    network.send(now, host, to, bytes.len(), |socket, fate| {
        if let crate::network::Fate::Arrives(at) = fate {
            let actor = usize::from(socket - PUBLISHER.1);
            events.add(at, Event::Arrives { actor, from, bytes: Rc::clone(&copy) });
        }
    });
}
