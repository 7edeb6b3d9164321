//! What all actors act in: time, what will happen, the network, connections, and the record.

use crate::agenda::Agenda;
use crate::connection::Connection;
use crate::dice::Dice;
use crate::fault::Fault;
use crate::history::{History, What};
use crate::network::{Fate, Host, Network, Socket, address};
use crate::scenario::{PUBLISHER, host};
use lanecast_protocol::Nanos;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

/// How many notes a failure's report shows.
const NOTES: usize = 160;

/// Somebody who acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// The publisher.
    Publisher,
    /// A subscriber, by number.
    Subscriber(usize),
}

/// Something that will happen.
#[derive(Clone, Debug)]
pub enum Event {
    /// A datagram arrives at a socket.
    Arrives {
        /// Who sent it.
        from: SocketAddr,
        /// Where to.
        to: Socket,
        /// What it says.
        bytes: Rc<[u8]>,
    },
    /// Somebody has something to do.
    Wakes(Who),
    /// The publisher has something to say.
    Publishes,
    /// The publisher adds a topic.
    Adds(usize),
    /// Subscribers hear where the session is.
    Announces,
    /// Something goes wrong, or is mended.
    Befalls(Fault),
    /// A connection, by number, is there.
    Connects(usize),
    /// The publisher's end of a connection notices that it is broken.
    Resets(usize),
    /// Something comes through a connection: down to the subscriber, or up.
    Flows(usize, bool),
}

/// What all actors act in.
#[derive(Debug)]
pub struct Medium {
    /// The time.
    pub now: Nanos,
    /// What will happen.
    pub agenda: Agenda<Event>,
    /// The way of datagrams.
    pub network: Network,
    /// The way of streams; a connection's link is its place here.
    pub connections: Vec<Connection>,
    /// What happened last.
    pub history: History,
    /// Until when a direction is cut.
    pub cuts: BTreeMap<(Host, Host), Nanos>,
    /// The chance of streams.
    pub dice: Dice,
}

/// When an actor is woken next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alarm(Option<Nanos>);

impl Alarm {
    /// Whether it rings; it has to be set anew then.
    pub fn rings(&mut self, now: Nanos) -> bool {
        let rings = self.0 == Some(now);
        if rings {
            self.0 = None;
        }
        rings
    }
}

impl Medium {
    /// Nothing has happened.
    pub fn new(network: Network, dice: Dice) -> Self {
        Self {
            // Not zero, which some fields of frames keep for "none".
            now: 1_000_000,
            agenda: Agenda::new(),
            network,
            connections: Vec::new(),
            history: History::new(NOTES),
            cuts: BTreeMap::new(),
            dice,
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
        let (agenda, history) = (&mut self.agenda, &mut self.history);
        self.network.send(now, host, to, bytes.len(), |to, fate| match fate {
            Fate::Arrives(at) => {
                agenda.enter(at, Event::Arrives { from, to, bytes: bytes.clone() })
            }
            lost => history.note(now, to, What::Loses(lost)),
        });
    }

    /// Writes a frame towards the publisher.
    pub fn stream_up(&mut self, number: usize, from: Host, bytes: &[u8]) {
        let (now, weather) = (self.now, self.network.weather(from, PUBLISHER));
        let cut = self.cut_until(from, PUBLISHER);
        if let Some(what) = What::sends(address(PUBLISHER, number as Socket), bytes) {
            self.history.note(now, 100 + self.connections[number].subscriber as Socket, what);
        }
        let connection = &mut self.connections[number];
        if !connection.is_live() {
            return;
        }
        let at = connection.up.write_all(now, bytes, &weather, &mut self.dice).max(cut);
        connection.up.delay_until(cut);
        self.agenda.enter(at, Event::Flows(number, false));
    }

    /// Writes towards the subscriber what there is room for; says how much that is.
    pub fn stream_down(&mut self, number: usize, bytes: &[u8]) -> usize {
        let to = host(self.connections[number].subscriber);
        let (now, weather) = (self.now, self.network.weather(PUBLISHER, to));
        let cut = self.cut_until(PUBLISHER, to);
        let connection = &mut self.connections[number];
        let (written, at) = connection.down.write(now, bytes, &weather, &mut self.dice);
        connection.down.delay_until(cut);
        if written > 0 {
            self.agenda.enter(at.max(cut), Event::Flows(number, true));
        }
        written
    }

    /// Until when nothing passes in a direction; 0 if something does.
    fn cut_until(&self, from: Host, to: Host) -> Nanos {
        self.cuts.get(&(from, to)).copied().unwrap_or(0)
    }

    /// Wakes an actor at a time, unless its alarm rings earlier anyway.
    pub fn wake(&mut self, who: Who, alarm: &mut Alarm, at: Nanos) {
        // A duty cycle takes some time, so nothing can be due for ever without time passing.
        let at = at.max(self.now + 1_000);
        if alarm.0.is_none_or(|set| at < set) {
            alarm.0 = Some(at);
            self.agenda.enter(at, Event::Wakes(who));
        }
    }

    /// Lets something happen after a while.
    pub fn after(&mut self, wait: Nanos, event: Event) {
        self.agenda.enter(self.now + wait, event);
    }

    /// Notes what happened at a socket.
    pub fn note(&mut self, socket: Socket, what: What) {
        self.history.note(self.now, socket, what);
    }
}
