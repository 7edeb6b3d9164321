//! Simulated fabric of all actors: clock, event queue, network, connections and history.

use crate::connection::Connection;
use crate::event_queue::EventQueue;
use crate::fault::Fault;
use crate::history::{History, What};
use crate::network::{Fate, Host, Network, Socket, address};
use crate::rng::SimRng;
use crate::scenario::{PUBLISHER, host};
use lanecast_protocol::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// Number of history records in a failure's report.
const NOTES: usize = 160;

/// An actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActorId {
    /// The publisher.
    Publisher,
    /// A subscriber, by number.
    Subscriber(usize),
}

/// Future event.
#[derive(Clone, Debug)]
pub enum Event {
    /// A datagram arrives at a socket.
    Arrives {
        /// Sender's socket.
        from: SocketAddr,
        /// Destination.
        to: Socket,
        /// Bytes of the datagram.
        bytes: Rc<[u8]>,
    },
    /// An actor is due.
    Wakes(ActorId),
    /// The publisher publishes.
    Publishes,
    /// The publisher adds a topic.
    Adds(usize),
    /// The session is announced to subscribers.
    Announces,
    /// A fault begins or ends.
    Befalls(Fault),
    /// A connection, by number, is established.
    Connects(usize),
    /// The publisher's end of a connection notices that it is broken.
    Resets(usize),
    /// Bytes arrive on a connection: down to the subscriber, or up.
    Flows(usize, bool),
}

/// Simulated fabric.
#[derive(Debug)]
pub struct Fabric {
    /// Clock.
    pub now: Nanos,
    /// Future events.
    pub events: EventQueue<Event>,
    /// Network of datagrams.
    pub network: Network,
    /// Connections; a connection's number is its index.
    pub connections: Vec<Connection>,
    /// Latest events.
    pub history: History,
    /// Time until which a direction is cut.
    pub cuts: BTreeMap<(Host, Host), Nanos>,
    /// Random numbers of streams.
    pub rng: SimRng,
}

/// Wake-up timer of an actor.
#[derive(Clone, Copy, Debug, Default)]
pub struct WakeTimer(Option<Nanos>);

impl WakeTimer {
    /// Whether the timer is due; it is cleared then.
    pub fn is_due(&mut self, now: Nanos) -> bool {
        let rings = self.0 == Some(now);
        if rings {
            self.0 = None;
        }
        rings
    }
}

impl Fabric {
    /// Creates a fabric without events.
    pub fn new(network: Network, rng: SimRng) -> Self {
        Self {
            // Not zero, which stands for "none" in some frame fields.
            now: 1_000_000,
            events: EventQueue::new(),
            network,
            connections: Vec::new(),
            history: History::new(NOTES),
            cuts: BTreeMap::new(),
            rng,
        }
    }

    /// Sends a datagram.
    pub fn send(&mut self, (host, socket): (Host, Socket), to: SocketAddr, bytes: &[u8]) {
        let now = self.now;
        if let Some(what) = What::sends(to, bytes) {
            self.history.note(now, socket, what);
        }
        let bytes: Rc<[u8]> = bytes.into();
        let from = address(host, socket);
        let (events, history) = (&mut self.events, &mut self.history);
        self.network.send(now, host, to, bytes.len(), |to, fate| match fate {
            Fate::Arrives(at) => events.add(at, Event::Arrives { from, to, bytes: bytes.clone() }),
            lost => history.note(now, to, What::Loses(lost)),
        });
    }

    /// Writes a frame towards the publisher.
    pub fn stream_up(&mut self, number: usize, from: Host, bytes: &[u8]) {
        let (now, conditions) = (self.now, self.network.conditions(from, PUBLISHER));
        let cut = self.cut_until(from, PUBLISHER);
        if let Some(what) = What::sends(address(PUBLISHER, number as Socket), bytes) {
            self.history.note(now, 100 + self.connections[number].subscriber as Socket, what);
        }
        let connection = &mut self.connections[number];
        if !connection.is_live() {
            return;
        }
        let at = connection.up.write_all(now, bytes, &conditions, &mut self.rng).max(cut);
        connection.up.delay_until(cut);
        self.events.add(at, Event::Flows(number, false));
    }

    /// Writes towards the subscriber as far as there is room; returns the number of bytes.
    pub fn stream_down(&mut self, number: usize, bytes: &[u8]) -> usize {
        let to = host(self.connections[number].subscriber);
        let (now, conditions) = (self.now, self.network.conditions(PUBLISHER, to));
        let cut = self.cut_until(PUBLISHER, to);
        let connection = &mut self.connections[number];
        let (written, at) = connection.down.write(now, bytes, &conditions, &mut self.rng);
        connection.down.delay_until(cut);
        if written > 0 {
            self.events.add(at.max(cut), Event::Flows(number, true));
        }
        written
    }

    /// Time until which a direction is cut; 0 if it is open.
    fn cut_until(&self, from: Host, to: Host) -> Nanos {
        self.cuts.get(&(from, to)).copied().unwrap_or(0)
    }

    /// Wakes an actor at a time, unless its timer is due earlier.
    pub fn wake(&mut self, who: ActorId, timer: &mut WakeTimer, at: Nanos) {
        // A duty cycle takes time: a deadline that stays in the past must not stop the clock.
        let at = at.max(self.now + 1_000);
        if timer.0.is_none_or(|set| at < set) {
            timer.0 = Some(at);
            self.events.add(at, Event::Wakes(who));
        }
    }

    /// Adds an event after `wait`.
    pub fn after(&mut self, wait: Nanos, event: Event) {
        self.events.add(self.now + wait, event);
    }

    /// Records an event at a socket.
    pub fn note(&mut self, socket: Socket, what: What) {
        self.history.note(self.now, socket, what);
    }
}
