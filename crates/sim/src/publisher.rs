//! Simulated publisher process: session, socket and load.

use crate::connection::whole;
use crate::fabric::{ActorId, Event, Fabric, WakeTimer};
use crate::history::What;
use crate::network::{Socket, address};
use crate::payload::Payloads;
use crate::rng::SimRng;
use crate::roster::Roster;
use crate::scenario::{Load, PUBLISHER, Scenario};
use crate::tails::Tails;
use crate::traffic::Traffic;
use crate::truth::{TopicTruth, Truth};
use crate::violation::{Verdict, Violation};
use lanecast_protocol::sender::{Distribution, Sender, SenderSettings, StageError};
use lanecast_protocol::{MICROSECOND, Nanos};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// Socket.
const SOCKET: Socket = 50;
/// Most datagrams in the socket while the process is suspended.
const INBOX_MAX: usize = 1_000;
/// Pause before a retry under back-pressure.
const RETRY: Nanos = 100 * MICROSECOND;
/// Polls of the socket for each poll of the session's events.
const EVENTS_EVERY: u64 = 16;
/// Number of refusals after which a batch is cut short.
const REFUSALS_MAX: u32 = 3;

/// Simulated publisher process.
#[derive(Debug)]
pub struct Publisher {
    settings: SenderSettings,
    /// The session, while the process lives.
    pub sender: Option<Sender>,
    /// Index of the session.
    pub session: usize,
    /// Start of the session.
    pub began: Nanos,
    /// Traffic of the session's socket.
    pub traffic: Traffic,
    tails: Tails,
    /// Number of refused messages.
    pub refusals: u64,
    load: Load,
    left: u64,
    burst: u64,
    refused: u32,
    suspended: bool,
    inbox: VecDeque<(SocketAddr, Rc<[u8]>)>,
    connections: Vec<usize>,
    /// Number within the session, by topic.
    numbers: Vec<Option<u32>>,
    timer: WakeTimer,
    rng: SimRng,
    /// Subscribers, by the session's events.
    pub roster: Roster,
    polls: u64,
}

impl Publisher {
    /// Creates a process with its first session.
    pub fn new(scenario: &Scenario, now: Nanos, rng: SimRng) -> Self {
        let settings = scenario.sender.clone();
        let load = scenario.load;
        Self {
            sender: Some(Sender::new(settings.clone(), now)),
            settings,
            session: 0,
            began: now,
            traffic: Traffic::default(),
            tails: Tails::default(),
            refusals: 0,
            load,
            left: load.messages,
            burst: load.burst,
            refused: 0,
            suspended: false,
            inbox: VecDeque::new(),
            connections: Vec::new(),
            numbers: vec![None; scenario.topics.len()],
            timer: WakeTimer::default(),
            rng,
            roster: Roster::default(),
            polls: 0,
        }
    }

    /// Address.
    pub fn address() -> SocketAddr {
        address(PUBLISHER, SOCKET)
    }

    /// Ground truth of a session of `scenario` before the first message.
    pub fn truth(scenario: &Scenario, session: u64) -> Truth {
        let topic = |(number, (sizes, _)): (usize, &(_, Nanos))| {
            let speech = Payloads::new(session, number as u32, *sizes);
            TopicTruth::new(format!("topic {number}"), speech)
        };
        let topics = scenario.topics.iter().enumerate().map(topic).collect();
        Truth { session, topics, is_closed: false }
    }

    /// Whether it runs and its session is open.
    pub const fn is_there(&self) -> bool {
        self.sender.is_some() && !self.suspended
    }

    /// Whether it has published everything.
    pub const fn has_said_all(&self) -> bool {
        self.left == 0
    }

    /// Crashes the process.
    pub fn crash(&mut self, fabric: &mut Fabric) -> Vec<usize> {
        self.sender = None;
        self.inbox.clear();
        self.suspended = false;
        for number in &self.connections {
            fabric.connections[*number].is_broken = true;
        }
        std::mem::take(&mut self.connections)
    }

    /// Restarts the process with another session.
    pub fn restart(&mut self, fabric: &mut Fabric, session: usize, truth: &Truth) -> bool {
        if self.sender.is_some() {
            return false;
        }
        let settings = SenderSettings {
            session: truth.session,
            cookie_key: [self.rng.any(), 1],
            ..self.settings.clone()
        };
        self.sender = Some(Sender::new(settings, fabric.now));
        (self.session, self.began) = (session, fabric.now);
        self.numbers.fill(None);
        (self.traffic, self.roster) = (Traffic::default(), Roster::default());
        self.tails.forget();
        true
    }

    /// Adds a topic.
    pub fn add_topic(&mut self, topic: usize, truth: &mut Truth) -> Verdict {
        let Some(sender) = &mut self.sender else { return Ok(()) };
        let topic_truth = &mut truth.topics[topic];
        let number = sender.add_topic(&topic_truth.name);
        let number = number.map_err(|error| Violation(format!("no topic: {error}")))?;
        topic_truth.exists = true;
        self.numbers[topic] = Some(number);
        Ok(())
    }

    /// Publishes the next burst.
    pub fn publish(&mut self, fabric: &mut Fabric, truth: &mut Truth) -> Verdict {
        if self.left == 0 || self.suspended || self.sender.is_none() {
            // Tries again later.
            if self.left > 0 {
                fabric.after(100 * RETRY, Event::Publishes);
            }
            return Ok(());
        }
        let batch = self.rng.percent(self.load.batches);
        let count = if batch { self.rng.within(2..=self.load.batch) } else { 1 };
        let topics: Vec<usize> =
            (0..self.numbers.len()).filter(|t| self.numbers[*t].is_some()).collect();
        if topics.is_empty() {
            fabric.after(10 * RETRY, Event::Publishes);
            return Ok(());
        }
        let chosen: Vec<usize> =
            (0..count.min(self.left)).map(|_| self.rng.pick(&topics)).collect();
        let said = self.commit(fabric, truth, &chosen)?;
        self.left -= said;
        self.burst = self.burst.saturating_sub(1);
        let ends = self.burst == 0 || self.left == 0;
        if said > 0 && (ends || self.rng.percent(self.load.flushes)) {
            self.flush();
        }
        let wait = if said == 0 {
            RETRY
        } else if ends {
            self.burst = self.load.burst;
            self.load.pause / 2 + self.rng.up_to(self.load.pause)
        } else {
            self.rng.up_to(5 * MICROSECOND)
        };
        fabric.after(wait.max(100), Event::Publishes);
        self.poll(fabric)
    }

    /// Publishes one more message on each topic; false if the window is full.
    pub fn publish_last(&mut self, fabric: &mut Fabric, truth: &mut Truth) -> Verdict<bool> {
        for topic in 0..self.numbers.len() {
            if self.numbers[topic].is_none() || truth.topics[topic].has_last {
                continue;
            }
            if self.commit(fabric, truth, &[topic])? == 0 {
                self.poll(fabric)?;
                return Ok(false);
            }
            truth.topics[topic].has_last = true;
        }
        self.flush();
        self.poll(fabric)?;
        Ok(true)
    }

    fn flush(&mut self) {
        if let Some(sender) = &mut self.sender {
            sender.flush();
        }
    }

    /// Publishes a batch as far as there is room; returns the number of messages.
    fn commit(&mut self, fabric: &mut Fabric, truth: &mut Truth, chosen: &[usize]) -> Verdict<u64> {
        let Some(sender) = &mut self.sender else { return Ok(0) };
        let mut staged = Vec::new();
        let mut counts = vec![0; self.numbers.len()];
        for topic in chosen.iter().copied() {
            let Some(number) = self.numbers[topic] else { continue };
            let speech = truth.topics[topic].speech;
            let message = truth.topics[topic].published() + counts[topic];
            match sender.stage(number, speech.length(message)) {
                Ok(bytes) => speech.write(message, bytes),
                Err(StageError::WindowFull) => {
                    self.refusals += 1;
                    self.refused += 1;
                    sender.probe(fabric.now);
                    break;
                }
                Err(error) => return Err(Violation(format!("refused: {error}"))),
            }
            counts[topic] += 1;
            staged.push(topic);
        }
        if staged.len() < chosen.len() && self.refused < REFUSALS_MAX {
            sender.unstage();
            return Ok(0);
        }
        self.refused = 0;
        for topic in &staged {
            counts[*topic] -= 1;
            truth.topics[*topic].goes_on.push(counts[*topic] > 0);
            let number = truth.topics[*topic].published() - 1;
            let what = What::Publishes { topic: *topic as u32, number, bytes: 0 };
            fabric.note(SOCKET, what);
        }
        let published = sender.publish();
        crate::ensure!(published == staged.len(), "{published} published of {}", staged.len());
        Ok(published as u64)
    }

    /// A datagram arrives.
    pub fn arrive(&mut self, fabric: &mut Fabric, from: SocketAddr, bytes: Rc<[u8]>) -> Verdict {
        if self.sender.is_some() && self.inbox.len() < INBOX_MAX {
            self.inbox.push_back((from, bytes));
        }
        self.poll(fabric)
    }

    /// Accepts a connection; false if the process does not run.
    pub fn accept(&mut self, fabric: &mut Fabric, number: usize) -> bool {
        let Some(sender) = self.sender.as_mut().filter(|_| !self.suspended) else { return false };
        let from = address(crate::scenario::host(fabric.connections[number].subscriber), SOCKET);
        sender.connect(fabric.now, number as u64, from);
        self.connections.push(number);
        true
    }

    /// A connection is found broken.
    pub fn reset(&mut self, number: usize) {
        if self.connections.contains(&number) {
            self.connections.retain(|known| *known != number);
            if let Some(sender) = &mut self.sender {
                sender.disconnect(number as u64);
            }
        }
    }

    /// Suspends the process.
    pub fn suspend(&mut self) {
        self.suspended = true;
        self.tails.forget();
    }

    /// Resumes the process, which polls the time or its socket first.
    pub fn resume(&mut self, fabric: &mut Fabric) -> Verdict {
        if std::mem::take(&mut self.suspended)
            && self.rng.percent(50)
            && let Some(sender) = &mut self.sender
        {
            sender.on_time(fabric.now);
        }
        self.poll(fabric)
    }

    /// Polls if the wake-up timer is due.
    pub fn wake(&mut self, fabric: &mut Fabric) -> Verdict {
        if self.timer.is_due(fabric.now) { self.poll(fabric) } else { Ok(()) }
    }

    /// Does everything that is due.
    pub fn poll(&mut self, fabric: &mut Fabric) -> Verdict {
        let Some(sender) = self.sender.as_mut().filter(|_| !self.suspended) else {
            return Ok(());
        };
        while let Some((from, bytes)) = self.inbox.pop_front() {
            if let Some(frame) = whole(&bytes) {
                fabric.note(SOCKET, What::hears(&frame));
                sender.on_frame(fabric.now, from, &frame);
            }
        }
        for number in &self.connections {
            hear_stream(sender, fabric, *number);
        }
        while let Some(link) = sender.overdue_connection(fabric.now) {
            sender.disconnect(link);
            self.connections.retain(|known| *known as u64 != link);
            fabric.connections[link as usize].is_broken = true;
        }
        sender.on_time(fabric.now);
        // Now and then, so that receivers come and go in between.
        self.polls += 1;
        if self.polls.is_multiple_of(EVENTS_EVERY) {
            self.roster.poll(sender, &self.settings)?;
        }
        let is_heard = sender.receivers() > 0;
        if !is_heard {
            self.tails.forget();
        }
        while let Some(transmit) = sender.next_transmit(fabric.now) {
            for datagram in transmit.bytes.chunks(transmit.segment) {
                self.traffic.count(datagram, self.settings.datagram_bytes)?;
                if is_heard {
                    self.tails.sends(fabric.now, transmit.to, datagram)?;
                }
                fabric.send((PUBLISHER, SOCKET), transmit.to, datagram);
            }
            sender.transmitted(fabric.now);
        }
        if self.settings.distribution == Distribution::Stream {
            for number in &self.connections {
                speak_stream(sender, fabric, *number);
            }
        }
        if let Some(at) = sender.next_deadline() {
            fabric.wake(ActorId::Publisher, &mut self.timer, at);
        }
        Ok(())
    }
}

/// Handles the frames of a connection.
fn hear_stream(sender: &mut Sender, fabric: &mut Fabric, number: usize) {
    let now = fabric.now;
    let up = &mut fabric.connections[number].up;
    up.read(now, usize::MAX);
    while let Some(bytes) = fabric.connections[number].up.take_frame() {
        if let Some(frame) = whole(&bytes) {
            fabric.note(SOCKET, What::hears(&frame));
            sender.on_stream_frame(now, number as u64, &frame);
        }
    }
}

/// Writes to a connection as far as it has room.
fn speak_stream(sender: &mut Sender, fabric: &mut Fabric, number: usize) {
    if fabric.connections[number].is_broken {
        return; // It has not noticed, and its socket's buffer is full.
    }
    loop {
        let bytes = sender.stream_bytes(fabric.now, number as u64);
        if bytes.is_empty() {
            return;
        }
        let (wanted, written) = (bytes.len(), fabric.stream_down(number, bytes));
        sender.stream_written(fabric.now, number as u64, written);
        if written < wanted {
            return;
        }
    }
}
