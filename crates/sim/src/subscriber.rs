//! Simulated subscriber process: receivers, socket, and a slow application.

use crate::checked_receiver::CheckedReceiver;
use crate::connection::Connection;
use crate::fabric::{ActorId, Event, Fabric, WakeTimer};
use crate::history::What;
use crate::ledger::Ledger;
use crate::network::{Host, Socket, address};
use crate::rng::SimRng;
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
    pub checked_receivers: Vec<CheckedReceiver>,
    /// Closed receivers.
    pub past: Vec<CheckedReceiver>,
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
    timer: WakeTimer,
    rng: SimRng,
    datagram_bytes: usize,
}

impl Subscriber {
    /// Creates a process that does not run yet.
    pub fn new(number: usize, plan: Plan, datagram_bytes: usize, rng: SimRng) -> Self {
        Self {
            number,
            topics: plan.topics.clone(),
            plan,
            checked_receivers: Vec::new(),
            past: Vec::new(),
            traffic: Traffic::default(),
            running: false,
            suspended: None,
            stalled: false,
            resigned: false,
            inbox: VecDeque::new(),
            inbox_bytes: 0,
            busy: None,
            timer: WakeTimer::default(),
            rng,
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
    pub fn checked(&self, session: usize) -> Option<&CheckedReceiver> {
        self.checked_receivers
            .iter()
            .find(|checked| checked.session == session && checked.left.is_none())
    }

    /// All receivers.
    pub fn all(&self) -> impl Iterator<Item = &CheckedReceiver> {
        self.past.iter().chain(&self.checked_receivers)
    }

    /// Starts the process.
    pub fn start(&mut self, fabric: &mut Fabric, group: Option<SocketAddr>) {
        if !self.running {
            self.running = true;
            self.resigned = false;
            if let Some(group) = group {
                fabric.network.add(group, self.host(), self.socket());
            }
        }
    }

    /// Crashes the process.
    pub fn crash(&mut self, fabric: &mut Fabric) {
        fabric.network.close(self.host(), self.socket());
        for checked in &self.checked_receivers {
            if let Some(connection) = checked.connection {
                fabric.connections[connection].is_broken = true;
                fabric.after(MILLISECOND, Event::Resets(connection));
            }
        }
        self.past.append(&mut self.checked_receivers);
        self.inbox.clear();
        self.inbox_bytes = 0;
        (self.running, self.suspended, self.stalled, self.busy) = (false, None, false, None);
    }

    /// Leaves all sessions.
    pub fn leave(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        self.resigned = true;
        self.checked_receivers.iter_mut().for_each(|checked| checked.receiver.leave());
        self.poll(fabric, truths)
    }

    /// Subscribes to all topics.
    pub fn subscribe_all(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        let all = truths.first().map_or(0, |truth| truth.topics.len());
        for topic in (0..all).filter(|topic| !self.topics.contains(topic)).collect::<Vec<_>>() {
            self.topics.push(topic);
            for checked in &mut self.checked_receivers {
                let truth = &truths[checked.session].topics[topic];
                checked.receiver.subscribe(&truth.name);
                let oldest = if checked.is_late { 0 } else { truth.published() };
                checked.ledgers.push(Ledger::new(topic, oldest, self.plan.receiver.order));
            }
        }
        self.poll(fabric, truths)
    }

    /// Suspends the process.
    pub fn suspend(&mut self, now: Nanos) {
        if self.running {
            self.suspended.get_or_insert(now);
        }
    }

    /// Resumes the process, which polls the time or its socket first.
    pub fn resume(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        let Some(since) = self.suspended.take() else { return Ok(()) };
        let absence = fabric.now - since;
        self.checked_receivers.iter_mut().for_each(|checked| checked.absence += absence);
        if self.rng.percent(50) {
            self.pass(fabric, truths)?;
        }
        self.poll(fabric, truths)
    }

    /// Stops or resumes the application's reading.
    pub fn set_stalled(&mut self, stalled: bool, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        self.stalled = stalled;
        self.poll(fabric, truths)
    }

    /// Handles the announcement of a session.
    pub fn on_announced(
        &mut self,
        fabric: &mut Fabric,
        truths: &[Truth],
        session: usize,
        source: SocketAddr,
        late: bool,
    ) -> Verdict {
        if !self.is_attached() || self.suspended.is_some() || self.checked(session).is_some() {
            return Ok(());
        }
        let truth = &truths[session];
        if let Some(mut checked) = self.take_revived(fabric.now, session) {
            self.subscribe_rest(&mut checked, truth);
            if self.plan.receiver.stream {
                checked.receiver.disconnected();
                checked.connection = Some(self.connect(fabric, session));
            }
            self.checked_receivers.push(checked);
            return self.poll(fabric, truths);
        }
        let receiver = self.rng.any();
        let settings =
            ReceiverSettings { receiver, seed: self.rng.any(), ..self.plan.receiver.clone() };
        let names: Vec<&str> =
            self.topics.iter().map(|topic| truth.topics[*topic].name.as_str()).collect();
        let began = fabric.now;
        let receiver = Receiver::new(settings.clone(), truth.session, source, &names, began);
        let is_late = late && settings.late_join;
        let mut checked =
            CheckedReceiver::new(receiver, settings, (session, truth), self.socket(), began);
        checked.is_late = is_late;
        checked.log = self.plan.logs.then(Vec::new);
        let oldest = |topic: usize| if is_late { 0 } else { truth.topics[topic].published() };
        let order = self.plan.receiver.order;
        let ledgers = self.topics.iter().map(|topic| Ledger::new(*topic, oldest(*topic), order));
        checked.ledgers = ledgers.collect();
        if self.plan.receiver.stream {
            checked.receiver.disconnected();
            checked.connection = Some(self.connect(fabric, session));
        }
        self.checked_receivers.push(checked);
        self.poll(fabric, truths)
    }

    /// Revives the last receiver of a session, if possible.
    fn take_revived(&mut self, now: Nanos, session: usize) -> Option<CheckedReceiver> {
        let last = self.past.iter().rposition(|checked| checked.session == session)?;
        self.past[last].revive(now).then(|| self.past.remove(last))
    }

    /// Subscribes to topics that were added meanwhile.
    fn subscribe_rest(&self, checked: &mut CheckedReceiver, truth: &Truth) {
        for topic in &self.topics {
            if checked.ledgers.iter().all(|ledger| ledger.topic() != *topic) {
                let truth = &truth.topics[*topic];
                checked.receiver.subscribe(&truth.name);
                let oldest = if checked.is_late { 0 } else { truth.published() };
                checked.ledgers.push(Ledger::new(*topic, oldest, self.plan.receiver.order));
            }
        }
    }

    fn connect(&self, fabric: &mut Fabric, session: usize) -> usize {
        let number = fabric.connections.len();
        fabric.connections.push(Connection::new(self.number, session));
        let way = fabric.network.conditions(self.host(), PUBLISHER).delay;
        let back = fabric.network.conditions(PUBLISHER, self.host()).delay;
        fabric.after(2 * way + back, Event::Connects(number));
        number
    }

    /// A connection is established.
    pub fn connected(&mut self, fabric: &mut Fabric, truths: &[Truth], number: usize) -> Verdict {
        let now = fabric.now;
        let ours = |checked: &&mut CheckedReceiver| checked.connection == Some(number);
        if let Some(checked) = self.checked_receivers.iter_mut().find(ours) {
            checked.receiver.reconnected(now);
        }
        self.poll(fabric, truths)
    }

    /// A connection is broken, or could not be made: tries again later.
    pub fn disconnected(&mut self, fabric: &mut Fabric, number: usize) {
        let Some(at) = self.checked_receivers.iter().position(|h| h.connection == Some(number))
        else {
            return;
        };
        let checked = &mut self.checked_receivers[at];
        checked.receiver.disconnected();
        if checked.receiver.phase() != Phase::Closed {
            let again = fabric.connections.len();
            fabric.connections.push(Connection::new(self.number, checked.session));
            checked.connection = Some(again);
            fabric.after(RETRY, Event::Connects(again));
        }
    }

    /// Breaks all connections.
    pub fn break_off(&mut self, fabric: &mut Fabric) {
        let broken: Vec<usize> =
            self.checked_receivers.iter().filter_map(|h| h.connection).collect();
        for number in broken {
            if fabric.connections[number].is_live() {
                self.break_one(fabric, number);
            }
        }
    }

    fn break_one(&mut self, fabric: &mut Fabric, number: usize) {
        fabric.connections[number].is_broken = true;
        self.disconnected(fabric, number);
        // The publisher may notice at once, later, or by the receiver's next connection.
        let notices = self.rng.pick(&[0, 5, 100]);
        if self.rng.percent(80) {
            fabric.after(notices * MILLISECOND, Event::Resets(number));
        }
    }

    /// A datagram arrives.
    pub fn arrive(&mut self, fabric: &mut Fabric, truths: &[Truth], bytes: Rc<[u8]>) -> Verdict {
        if !self.running {
            return Ok(());
        }
        if self.inbox_bytes + bytes.len() > self.plan.socket_bytes {
            fabric.note(self.socket(), What::Overflows);
            return Ok(());
        }
        self.inbox_bytes += bytes.len();
        self.inbox.push_back(bytes);
        self.poll(fabric, truths)
    }

    /// Polls if the wake-up timer is due.
    pub fn wake(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        if self.timer.is_due(fabric.now) { self.poll(fabric, truths) } else { Ok(()) }
    }

    /// Does everything that is due.
    pub fn poll(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        if !self.running || self.suspended.is_some() {
            return Ok(());
        }
        self.finish_reading(fabric.now);
        while self.can_take(fabric.now)
            && let Some(bytes) = self.inbox.pop_front()
        {
            self.inbox_bytes -= bytes.len();
            for at in 0..self.checked_receivers.len() {
                self.take(fabric, truths, at, &bytes)?;
            }
        }
        for at in 0..self.checked_receivers.len() {
            self.take_stream(fabric, truths, at)?;
        }
        self.pass(fabric, truths)?;
        self.send_frames(fabric)?;
        self.part(fabric);
        self.set_timer(fabric);
        Ok(())
    }

    /// Whether the application accepts datagrams now.
    fn can_take(&self, now: Nanos) -> bool {
        !self.plan.reads_inline || self.stalled || self.busy.is_none_or(|until| until <= now)
    }

    fn finish_reading(&mut self, now: Nanos) {
        if !self.stalled && self.busy.is_none_or(|until| until <= now) {
            self.busy = None;
            self.checked_receivers.iter_mut().for_each(CheckedReceiver::read_all);
        }
    }

    fn take(&mut self, fabric: &mut Fabric, truths: &[Truth], at: usize, bytes: &[u8]) -> Verdict {
        let checked = &mut self.checked_receivers[at];
        let deliveries = checked.take(fabric, &truths[checked.session], bytes)?;
        if deliveries > 0 && (self.plan.pace > 0 || self.stalled) {
            let from = self.busy.unwrap_or(0).max(fabric.now);
            self.busy = Some(from + self.plan.pace);
        }
        self.finish_reading(fabric.now);
        Ok(())
    }

    fn take_stream(&mut self, fabric: &mut Fabric, truths: &[Truth], at: usize) -> Verdict {
        let Some(number) = self.checked_receivers[at].connection else { return Ok(()) };
        while self.can_take(fabric.now) && fabric.connections[number].is_live() {
            let now = fabric.now;
            let connection = &mut fabric.connections[number];
            if let Some(frame) = connection.down.take_frame() {
                self.take(fabric, truths, at, &frame)?;
                continue;
            }
            if connection.down.next_at().is_none_or(|next| next > now) {
                break;
            }
            if connection.down.read(now, READ_MAX) {
                let back = fabric.network.conditions(self.host(), PUBLISHER).delay;
                fabric.after(back, Event::Flows(number, false));
            }
        }
        Ok(())
    }

    fn pass(&mut self, fabric: &mut Fabric, truths: &[Truth]) -> Verdict {
        for checked in &mut self.checked_receivers {
            checked.pass(fabric, &truths[checked.session])?;
        }
        let now = fabric.now;
        let is_silent =
            |h: &&CheckedReceiver| h.receiver.stream_timeout_at().is_some_and(|at| at <= now);
        let silent = self.checked_receivers.iter().filter(is_silent).filter_map(|h| h.connection);
        for number in silent.collect::<Vec<_>>() {
            self.break_one(fabric, number);
        }
        self.finish_reading(fabric.now);
        Ok(())
    }

    /// Sends the receivers' frames.
    fn send_frames(&mut self, fabric: &mut Fabric) -> Verdict {
        let mut buffer = [0; 1_472];
        let longest = self.datagram_bytes.min(buffer.len());
        let place = (self.host(), self.socket());
        for checked in &mut self.checked_receivers {
            while let Some(length) =
                checked.receiver.next_transmit(fabric.now, &mut buffer[..longest])
            {
                let bytes = &buffer[..length];
                self.traffic.count(bytes, longest)?;
                checked.on_sent(bytes);
                match checked.connection {
                    Some(number) => fabric.stream_up(number, place.0, bytes),
                    None => fabric.send(place, checked.receiver.source(), bytes),
                }
            }
        }
        Ok(())
    }

    /// Removes receivers that are done.
    fn part(&mut self, fabric: &mut Fabric) {
        while let Some(at) = self.checked_receivers.iter().position(CheckedReceiver::is_done) {
            let checked = self.checked_receivers.remove(at);
            if let Some(number) = checked.connection {
                // Written bytes arrive before the reset.
                fabric.after(SECOND, Event::Resets(number));
            }
            self.resigned |=
                matches!(checked.left, Some((_, CloseReason::Evicted | CloseReason::Closed)));
            self.past.push(checked);
        }
    }

    fn set_timer(&mut self, fabric: &mut Fabric) {
        let deadlines = self.checked_receivers.iter().filter_map(|h| h.receiver.next_deadline());
        let busy = self.busy.filter(|_| !self.stalled);
        if let Some(at) = deadlines.chain(busy).min() {
            fabric.wake(ActorId::Subscriber(self.number), &mut self.timer, at);
        }
    }

    /// Address.
    pub fn address(&self) -> SocketAddr {
        address(self.host(), self.socket())
    }
}
