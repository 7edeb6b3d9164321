//! Simulated subscriber process: receivers, socket, and a slow application.

use crate::connection::Connection;
use crate::dice::Dice;
use crate::hearing::Hearing;
use crate::history::What;
use crate::ledger::Ledger;
use crate::medium::{Alarm, Event, Medium, Who};
use crate::network::{Host, Socket, address};
use crate::scenario::{PUBLISHER, Plan, host};
use crate::traffic::Traffic;
use crate::truth::Truth;
use crate::violation::Verdict;
use lanecast_protocol::receiver::{Phase, Receiver, ReceiverSettings};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_transport::CloseReason;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;

/// Pause before reconnecting.
const RETRY: Nanos = 20 * MILLISECOND;
/// Bytes read from a connection at a time.
const READ_MAX: usize = 1 << 15;

/// Simulated subscriber process.
#[derive(Debug)]
pub struct Subscriber {
    number: usize,
    /// Part of the scenario.
    pub plan: Plan,
    /// Subscribed topics.
    pub topics: Vec<usize>,
    /// Receivers, the oldest session first.
    pub hearings: Vec<Hearing>,
    /// Closed receivers.
    pub past: Vec<Hearing>,
    /// Traffic sent.
    pub traffic: Traffic,
    running: bool,
    suspended: Option<Nanos>,
    stalled: bool,
    /// The subscriber does not join again: it left, or was ejected.
    resigned: bool,
    inbox: VecDeque<Rc<[u8]>>,
    inbox_bytes: usize,
    /// Time until which the application reads.
    busy: Option<Nanos>,
    alarm: Alarm,
    dice: Dice,
    datagram_bytes: usize,
}

impl Subscriber {
    /// Creates a process that does not run yet.
    pub fn new(number: usize, plan: Plan, datagram_bytes: usize, dice: Dice) -> Self {
        Self {
            number,
            topics: plan.topics.clone(),
            plan,
            hearings: Vec::new(),
            past: Vec::new(),
            traffic: Traffic::default(),
            running: false,
            suspended: None,
            stalled: false,
            resigned: false,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            busy: None,
            alarm: Alarm::default(),
            dice,
            datagram_bytes,
        }
    }

    /// Host.
    pub const fn host(&self) -> Host {
        host(self.number)
    }

    /// Socket.
    pub const fn socket(&self) -> Socket {
        100 + self.number as Socket
    }

    /// Whether it runs and may join.
    pub const fn is_attached(&self) -> bool {
        self.running && !self.resigned
    }

    /// The receiver of a session that is not over.
    pub fn hearing(&self, session: usize) -> Option<&Hearing> {
        self.hearings.iter().find(|hearing| hearing.session == session && hearing.left.is_none())
    }

    /// All receivers.
    pub fn all(&self) -> impl Iterator<Item = &Hearing> {
        self.past.iter().chain(&self.hearings)
    }

    /// Starts the process.
    pub fn start(&mut self, medium: &mut Medium, group: Option<SocketAddr>) {
        if !self.running {
            self.running = true;
            self.resigned = false;
            if let Some(group) = group {
                medium.network.enter(group, self.host(), self.socket());
            }
        }
    }

    /// Crashes the process.
    pub fn crash(&mut self, medium: &mut Medium) {
        medium.network.close(self.host(), self.socket());
        for hearing in &self.hearings {
            if let Some(connection) = hearing.connection {
                medium.connections[connection].is_broken = true;
                medium.after(MILLISECOND, Event::Resets(connection));
            }
        }
        self.past.append(&mut self.hearings);
        self.inbox.clear();
        self.inbox_bytes = 0;
        (self.running, self.suspended, self.stalled, self.busy) = (false, None, false, None);
    }

    /// Leaves all sessions.
    pub fn leave(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        self.resigned = true;
        self.hearings.iter_mut().for_each(|hearing| hearing.receiver.leave());
        self.go_on(medium, truths)
    }

    /// Subscribes to all topics.
    pub fn want_all(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        let all = truths.first().map_or(0, |truth| truth.topics.len());
        for topic in (0..all).filter(|topic| !self.topics.contains(topic)).collect::<Vec<_>>() {
            self.topics.push(topic);
            for hearing in &mut self.hearings {
                let truth = &truths[hearing.session].topics[topic];
                hearing.receiver.subscribe(&truth.name);
                let oldest = if hearing.is_late { 0 } else { truth.published() };
                hearing.ledgers.push(Ledger::new(topic, oldest));
            }
        }
        self.go_on(medium, truths)
    }

    /// Suspends the process.
    pub fn suspend(&mut self, now: Nanos) {
        if self.running {
            self.suspended.get_or_insert(now);
        }
    }

    /// Resumes the process, which polls the time or its socket first.
    pub fn resume(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        let Some(since) = self.suspended.take() else { return Ok(()) };
        let absence = medium.now - since;
        self.hearings.iter_mut().for_each(|hearing| hearing.absence += absence);
        if self.dice.percent(50) {
            self.pass(medium, truths)?;
        }
        self.go_on(medium, truths)
    }

    /// Stops or resumes the application's reading.
    pub fn set_stalled(&mut self, stalled: bool, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        self.stalled = stalled;
        self.go_on(medium, truths)
    }

    /// Handles the announcement of a session.
    pub fn hear_of(
        &mut self,
        medium: &mut Medium,
        truths: &[Truth],
        session: usize,
        source: SocketAddr,
        late: bool,
    ) -> Verdict {
        if !self.is_attached() || self.suspended.is_some() || self.hearing(session).is_some() {
            return Ok(());
        }
        let truth = &truths[session];
        if let Some(mut hearing) = self.take_revived(medium.now, session) {
            self.want_rest(&mut hearing, truth);
            if self.plan.receiver.stream {
                hearing.receiver.disconnected();
                hearing.connection = Some(self.connect(medium, session));
            }
            self.hearings.push(hearing);
            return self.go_on(medium, truths);
        }
        let receiver = self.dice.any();
        let settings =
            ReceiverSettings { receiver, seed: self.dice.any(), ..self.plan.receiver.clone() };
        let names: Vec<&str> =
            self.topics.iter().map(|topic| truth.topics[*topic].name.as_str()).collect();
        let began = medium.now;
        let receiver = Receiver::new(settings.clone(), truth.session, source, &names, began);
        let is_late = late && settings.late_join;
        let mut hearing = Hearing::new(receiver, settings, (session, truth), self.socket(), began);
        hearing.is_late = is_late;
        let oldest = |topic: usize| if is_late { 0 } else { truth.topics[topic].published() };
        let ledgers = self.topics.iter().map(|topic| Ledger::new(*topic, oldest(*topic)));
        hearing.ledgers = ledgers.collect();
        if self.plan.receiver.stream {
            hearing.receiver.disconnected();
            hearing.connection = Some(self.connect(medium, session));
        }
        self.hearings.push(hearing);
        self.go_on(medium, truths)
    }

    /// Revives the last receiver of a session, if possible.
    fn take_revived(&mut self, now: Nanos, session: usize) -> Option<Hearing> {
        let last = self.past.iter().rposition(|hearing| hearing.session == session)?;
        self.past[last].revive(now).then(|| self.past.remove(last))
    }

    /// Subscribes to topics that were added meanwhile.
    fn want_rest(&self, hearing: &mut Hearing, truth: &Truth) {
        for topic in &self.topics {
            if hearing.ledgers.iter().all(|ledger| ledger.topic() != *topic) {
                let truth = &truth.topics[*topic];
                hearing.receiver.subscribe(&truth.name);
                let oldest = if hearing.is_late { 0 } else { truth.published() };
                hearing.ledgers.push(Ledger::new(*topic, oldest));
            }
        }
    }

    fn connect(&self, medium: &mut Medium, session: usize) -> usize {
        let number = medium.connections.len();
        medium.connections.push(Connection::new(self.number, session));
        let way = medium.network.weather(self.host(), PUBLISHER).delay;
        let back = medium.network.weather(PUBLISHER, self.host()).delay;
        medium.after(2 * way + back, Event::Connects(number));
        number
    }

    /// A connection is established.
    pub fn connected(&mut self, medium: &mut Medium, truths: &[Truth], number: usize) -> Verdict {
        let now = medium.now;
        let ours = |hearing: &&mut Hearing| hearing.connection == Some(number);
        if let Some(hearing) = self.hearings.iter_mut().find(ours) {
            hearing.receiver.reconnected(now);
        }
        self.go_on(medium, truths)
    }

    /// A connection is broken, or could not be made: tries again later.
    pub fn disconnected(&mut self, medium: &mut Medium, number: usize) {
        let Some(at) = self.hearings.iter().position(|h| h.connection == Some(number)) else {
            return;
        };
        let hearing = &mut self.hearings[at];
        hearing.receiver.disconnected();
        if hearing.receiver.phase() != Phase::Closed {
            let again = medium.connections.len();
            medium.connections.push(Connection::new(self.number, hearing.session));
            hearing.connection = Some(again);
            medium.after(RETRY, Event::Connects(again));
        }
    }

    /// Breaks all connections.
    pub fn break_off(&mut self, medium: &mut Medium) {
        let broken: Vec<usize> = self.hearings.iter().filter_map(|h| h.connection).collect();
        for number in broken {
            if medium.connections[number].is_live() {
                self.break_one(medium, number);
            }
        }
    }

    fn break_one(&mut self, medium: &mut Medium, number: usize) {
        medium.connections[number].is_broken = true;
        self.disconnected(medium, number);
        // The publisher may notice at once, later, or by the receiver's next connection.
        let notices = self.dice.pick(&[0, 5, 100]);
        if self.dice.percent(80) {
            medium.after(notices * MILLISECOND, Event::Resets(number));
        }
    }

    /// A datagram arrives.
    pub fn arrive(&mut self, medium: &mut Medium, truths: &[Truth], bytes: Rc<[u8]>) -> Verdict {
        if !self.running {
            return Ok(());
        }
        if self.inbox_bytes + bytes.len() > self.plan.socket_bytes {
            medium.note(self.socket(), What::Overflows);
            return Ok(());
        }
        self.inbox_bytes += bytes.len();
        self.inbox.push_back(bytes);
        self.go_on(medium, truths)
    }

    /// Polls if the wake-up timer is due.
    pub fn wake(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        if self.alarm.rings(medium.now) { self.go_on(medium, truths) } else { Ok(()) }
    }

    /// Does everything that is due.
    pub fn go_on(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        if !self.running || self.suspended.is_some() {
            return Ok(());
        }
        self.finish_reading(medium.now);
        while self.can_take(medium.now)
            && let Some(bytes) = self.inbox.pop_front()
        {
            self.inbox_bytes -= bytes.len();
            for at in 0..self.hearings.len() {
                self.take(medium, truths, at, &bytes)?;
            }
        }
        for at in 0..self.hearings.len() {
            self.take_stream(medium, truths, at)?;
        }
        self.pass(medium, truths)?;
        self.speak(medium)?;
        self.part(medium);
        self.set_alarm(medium);
        Ok(())
    }

    /// Whether the application accepts datagrams now.
    fn can_take(&self, now: Nanos) -> bool {
        !self.plan.reads_inline || self.stalled || self.busy.is_none_or(|until| until <= now)
    }

    fn finish_reading(&mut self, now: Nanos) {
        if !self.stalled && self.busy.is_none_or(|until| until <= now) {
            self.busy = None;
            self.hearings.iter_mut().for_each(Hearing::read_all);
        }
    }

    fn take(&mut self, medium: &mut Medium, truths: &[Truth], at: usize, bytes: &[u8]) -> Verdict {
        let hearing = &mut self.hearings[at];
        let deliveries = hearing.take(medium, &truths[hearing.session], bytes)?;
        if deliveries > 0 && (self.plan.pace > 0 || self.stalled) {
            let from = self.busy.unwrap_or(0).max(medium.now);
            self.busy = Some(from + self.plan.pace);
        }
        self.finish_reading(medium.now);
        Ok(())
    }

    fn take_stream(&mut self, medium: &mut Medium, truths: &[Truth], at: usize) -> Verdict {
        let Some(number) = self.hearings[at].connection else { return Ok(()) };
        while self.can_take(medium.now) && medium.connections[number].is_live() {
            let now = medium.now;
            let connection = &mut medium.connections[number];
            if let Some(frame) = connection.down.take_frame() {
                self.take(medium, truths, at, &frame)?;
                continue;
            }
            if connection.down.next_at().is_none_or(|next| next > now) {
                break;
            }
            if connection.down.read(now, READ_MAX) {
                let back = medium.network.weather(self.host(), PUBLISHER).delay;
                medium.after(back, Event::Flows(number, false));
            }
        }
        Ok(())
    }

    fn pass(&mut self, medium: &mut Medium, truths: &[Truth]) -> Verdict {
        for hearing in &mut self.hearings {
            hearing.pass(medium, &truths[hearing.session])?;
        }
        let now = medium.now;
        let is_silent = |h: &&Hearing| h.receiver.stream_timeout_at().is_some_and(|at| at <= now);
        let silent = self.hearings.iter().filter(is_silent).filter_map(|h| h.connection);
        for number in silent.collect::<Vec<_>>() {
            self.break_one(medium, number);
        }
        self.finish_reading(medium.now);
        Ok(())
    }

    /// Sends the receivers' frames.
    fn speak(&mut self, medium: &mut Medium) -> Verdict {
        let mut buffer = [0; 1_472];
        let longest = self.datagram_bytes.min(buffer.len());
        let place = (self.host(), self.socket());
        for hearing in &mut self.hearings {
            while let Some(length) =
                hearing.receiver.next_transmit(medium.now, &mut buffer[..longest])
            {
                let bytes = &buffer[..length];
                self.traffic.count(bytes, longest)?;
                hearing.speaks(bytes);
                match hearing.connection {
                    Some(number) => medium.stream_up(number, place.0, bytes),
                    None => medium.send(place, hearing.receiver.source(), bytes),
                }
            }
        }
        Ok(())
    }

    /// Removes receivers that are done.
    fn part(&mut self, medium: &mut Medium) {
        while let Some(at) = self.hearings.iter().position(Hearing::is_done) {
            let hearing = self.hearings.remove(at);
            if let Some(number) = hearing.connection {
                // Written bytes arrive before the reset.
                medium.after(SECOND, Event::Resets(number));
            }
            self.resigned |=
                matches!(hearing.left, Some((_, CloseReason::Evicted | CloseReason::Closed)));
            self.past.push(hearing);
        }
    }

    fn set_alarm(&mut self, medium: &mut Medium) {
        let deadlines = self.hearings.iter().filter_map(|h| h.receiver.next_deadline());
        let busy = self.busy.filter(|_| !self.stalled);
        if let Some(at) = deadlines.chain(busy).min() {
            medium.wake(Who::Subscriber(self.number), &mut self.alarm, at);
        }
    }

    /// Address.
    pub fn address(&self) -> SocketAddr {
        address(self.host(), self.socket())
    }
}
