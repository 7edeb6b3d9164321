//! One member of a group test: the phases of a run, from looking for the others to the table.

use super::config::{GroupConfig, TransportKind};
use super::interval::IntervalSample;
use super::payload::{self, Data};
use super::reception::{Reception, nanoseconds};
use super::result::{Blocking, GroupResult, MemberResult};
use super::roster::{News, Roster};
use super::run_error::GroupError;
use super::status::{Phase, Status, short};
use super::transport::{GroupEvent, GroupTransport, SendRefusal, SenderId};
use std::time::{Duration, Instant};

/// Interval of statuses while members wait for each other, and while they measure.
const STATUS_WAITING: Duration = Duration::from_millis(100);
const STATUS_RUNNING: Duration = Duration::from_millis(500);
/// A member that was silent for this time before the test is none.
const JOINING_SILENCE: Duration = Duration::from_secs(3);
/// Time without messages after which what a dead sender, or one over bare datagrams, has sent
/// counts as lost.
const SETTLING: Duration = Duration::from_secs(2);
/// The same for messages of the warm-up.
const WARM_UP_SETTLING: Duration = Duration::from_millis(500);
/// Longest stay for members that have not said yet that they have all results.
const LINGER: Duration = Duration::from_secs(3);
/// Stay of a member that does not fit to the others: several statuses.
const REFUSAL_STAY: Duration = Duration::from_millis(500);
/// Messages sent, and received, between two looks at the clock.
const SEND_AT_ONCE: usize = 64;
const RECEIVE_AT_ONCE: usize = 256;
/// Longest wait; the transport wakes earlier.
const NAP: Duration = Duration::from_millis(10);
/// Receiving with a processing delay comes back to the clock after this time.
const PROCESSING_AT_ONCE: Duration = Duration::from_millis(20);

/// Settings of one member.
#[derive(Clone, Debug)]
pub struct MemberSettings {
    /// Random for each start.
    pub id: u64,
    /// Name in the tables, cut to 64 bytes.
    pub name: String,
    /// Whether it sends; it receives in any case.
    pub is_sender: bool,
    /// Longest wait for the other members.
    pub join_timeout: Duration,
    /// Time after which a silent member is given up, and a run in which nothing arrives ends.
    pub patience: Duration,
}

/// News of a run.
#[derive(Debug)]
pub enum Progress<'a> {
    /// A member was found.
    Found {
        /// The name.
        name: &'a str,
        /// Members that are here.
        here: usize,
        /// `num_members`.
        wanted: usize,
    },
    /// All are ready: messages are sent from now on.
    Started,
    /// `log_interval` messages were received.
    Received(&'a IntervalSample),
    /// `log_interval` messages were sent.
    Sent(u64),
    /// A member has left, died or fallen silent.
    Gone {
        /// The name.
        name: &'a str,
        /// The way it went.
        why: &'a str,
    },
    /// A program that is no member of this test tries to join it.
    Stranger(&'a str),
    /// This member has its own result, and waits for those of the others.
    Finished(&'a MemberResult),
}

/// One member, on one thread.
#[derive(Debug)]
pub struct Member<'a, T> {
    config: &'a GroupConfig,
    transport: T,
    roster: Roster,
    reception: Reception,
    /// This member's own state, as the others get it.
    status: Status,
    join_timeout: Duration,
    patience: Duration,
    /// When the current phase began.
    since: Instant,
    status_due: Instant,
    /// The message to be sent next, if it is written already.
    message: Vec<u8>,
    is_written: bool,
    warm_ups_sent: u64,
    send_due: Instant,
    blocked_since: Option<Instant>,
    blocked: Blocking,
    /// Messages from outside the poll handler.
    inbox: Vec<(SenderId, Status)>,
    left: Vec<(SenderId, String)>,
    buffer: Vec<u8>,
}

impl<'a, T: GroupTransport> Member<'a, T> {
    /// A member of the test that `config` describes, over `transport`.
    ///
    /// # Errors
    /// If messages of this size do not go over the transport.
    pub fn new(
        config: &'a GroupConfig,
        settings: &MemberSettings,
        transport: T,
    ) -> Result<Self, GroupError> {
        let (size, longest) = (config.msg_size, transport.longest_message());
        if size > longest {
            let transport = config.transport.name();
            return Err(GroupError::TooLong { size, transport, longest });
        }
        let now = Instant::now();
        let status = Status {
            id: settings.id,
            name: short(&settings.name),
            is_sender: settings.is_sender,
            config: config.agreed(),
            phase: Phase::Joining,
            sent: 0,
            result: None,
        };
        Ok(Self {
            config,
            transport,
            roster: Roster::default(),
            reception: Reception::new(config, now),
            status,
            join_timeout: settings.join_timeout,
            patience: settings.patience,
            since: now,
            status_due: now,
            message: vec![0; size],
            is_written: false,
            warm_ups_sent: 0,
            send_due: now,
            blocked_since: None,
            blocked: Blocking::default(),
            inbox: Vec::new(),
            left: Vec::new(),
            buffer: Vec::new(),
        })
    }

    /// Runs the test: waits for all members, sends and receives, and exchanges results. `stop` ends
    /// it early; `progress` is told what happens.
    ///
    /// All waits are bounded: by `join_timeout` before the start, and after it by `patience`
    /// without a message or a sign of life.
    ///
    /// # Errors
    /// If the members are too few, too many or not of one configuration, if one dies before the
    /// start, if the transport fails, or if it was stopped. A member that dies later, and messages
    /// that do not arrive, are in the result.
    pub fn run(
        &mut self,
        stop: &dyn Fn() -> bool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<GroupResult, GroupError> {
        self.since = Instant::now();
        loop {
            if stop() {
                return Err(GroupError::Stopped);
            }
            let now = Instant::now();
            let mut work = self.send_status(now)?;
            work += self.send(now, progress)?;
            work += self.receive(now)?;
            self.tell(now, progress);
            if self.advance(now, progress)? {
                return Ok(self.table());
            }
            if work == 0 {
                let next = self.status_due.saturating_duration_since(now);
                self.transport.wait(next.min(NAP));
            }
        }
    }

    /// Samples of the run, one for each `log_interval` received messages.
    pub fn samples(&self) -> &[IntervalSample] {
        &self.reception.samples
    }

    /// Stays in the group until `stop`, so that it can be inspected.
    ///
    /// # Errors
    /// If the transport fails.
    pub fn stay(&mut self, stop: &dyn Fn() -> bool) -> Result<(), GroupError> {
        while !stop() {
            let now = Instant::now();
            if self.send_status(now)? + self.receive(now)? == 0 {
                self.transport.wait(NAP);
            }
            self.inbox.clear();
            self.left.clear();
        }
        Ok(())
    }

    /// Gives the transport back.
    pub fn into_transport(self) -> T {
        self.transport
    }

    /// The transport's counters.
    pub fn counters(&self) -> Vec<(String, u64)> {
        self.transport.counters()
    }

    fn send_status(&mut self, now: Instant) -> Result<usize, GroupError> {
        if now < self.status_due {
            return Ok(0);
        }
        self.status.write(&mut self.buffer);
        match self.transport.try_send(&self.buffer) {
            Ok(()) => {
                let running = self.status.phase == Phase::Running;
                self.status_due = now + if running { STATUS_RUNNING } else { STATUS_WAITING };
                Ok(1)
            }
            // It is still due, and goes with what it says then.
            Err(SendRefusal::Full) => Ok(0),
            Err(SendRefusal::Failed(error)) => Err(error.into()),
        }
    }

    /// Sends messages of the warm-up or of the run, as long as there is room.
    fn send(
        &mut self,
        now: Instant,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<usize, GroupError> {
        let is_warm_up = self.status.phase == Phase::Ready && self.is_warming();
        if !self.status.is_sender || !(is_warm_up || self.status.phase == Phase::Running) {
            return Ok(0);
        }
        let mut work = 0;
        for _ in 0..SEND_AT_ONCE {
            let number = if is_warm_up { self.warm_ups_sent } else { self.status.sent };
            let count = if is_warm_up { self.config.warmup } else { self.config.num_msgs };
            if number == count || (!self.config.interval.is_zero() && now < self.send_due) {
                break;
            }
            if !self.is_written {
                let data = Data { is_warm_up, sender: self.status.id, number };
                self.reception.payload().write(data, &mut self.message);
                self.is_written = true;
            }
            match self.transport.try_send(&self.message) {
                Ok(()) => self.count_sent(now, is_warm_up, progress),
                Err(SendRefusal::Full) => {
                    self.blocked_since.get_or_insert(now);
                    break;
                }
                Err(SendRefusal::Failed(error)) => return Err(error.into()),
            }
            work += 1;
        }
        Ok(work)
    }

    fn count_sent(
        &mut self,
        now: Instant,
        is_warm_up: bool,
        progress: &mut dyn FnMut(Progress<'_>),
    ) {
        self.is_written = false;
        self.send_due = (self.send_due + self.config.interval).max(now);
        let blocked = self.blocked_since.take();
        if is_warm_up {
            self.warm_ups_sent += 1;
            return;
        }
        if let Some(since) = blocked {
            self.blocked.count += 1;
            self.blocked.ns += nanoseconds(now.duration_since(since));
        }
        self.status.sent += 1;
        if self.status.sent.is_multiple_of(self.config.log_interval) {
            progress(Progress::Sent(self.status.sent));
        }
        if self.status.sent == self.config.num_msgs {
            self.status_due = now;
        }
    }

    /// Polls the transport and takes what it hands over.
    fn receive(&mut self, now: Instant) -> Result<usize, GroupError> {
        let delay = self.config.processing_delay;
        let limit = match delay.is_zero() {
            true => RECEIVE_AT_ONCE,
            false => (PROCESSING_AT_ONCE.as_nanos() / delay.as_nanos()) as usize,
        };
        let limit = limit.clamp(1, RECEIVE_AT_ONCE);
        let Self { transport, reception, inbox, left, roster, .. } = self;
        let mut last_sender = None;
        let before = (reception.received, reception.warm_ups);
        let is_open = matches!(self.status.phase, Phase::Ready | Phase::Warm | Phase::Running);
        let work = transport.poll(limit, &mut |event| match event {
            GroupEvent::Message { from, bytes } if bytes.first() == Some(&payload::STATUS) => {
                inbox.extend(Status::read(bytes).map(|status| (from, status)));
            }
            // What arrives later than the result is too late.
            GroupEvent::Message { from, bytes } if is_open => {
                let sender = reception.take(from, bytes);
                if sender.is_some() && sender != last_sender {
                    last_sender = sender;
                    roster.hear_data(now, sender.unwrap_or_default());
                }
            }
            GroupEvent::Message { .. } => {}
            GroupEvent::Left { from, why } => left.push((from, why)),
        })?;
        if (self.reception.received, self.reception.warm_ups) != before {
            self.reception.touch();
        }
        Ok(work)
    }

    /// Takes statuses and departures, and tells what is new.
    fn tell(&mut self, now: Instant, progress: &mut dyn FnMut(Progress<'_>)) {
        for sample in self.reception.untold.drain(..) {
            progress(Progress::Received(&sample));
        }
        let (is_open, wanted) = (self.status.phase == Phase::Joining, self.config.num_members);
        for (from, status) in std::mem::take(&mut self.inbox) {
            if status.id == self.status.id {
                continue;
            }
            let name = status.name.clone();
            match self.roster.hear(now, from, status, is_open) {
                News::Arrival => {
                    self.status_due = now;
                    let here = self.roster.peers.len() + 1;
                    progress(Progress::Found { name: &name, here, wanted });
                }
                News::Update => {}
                News::Stranger => progress(Progress::Stranger(&name)),
            }
        }
        for (from, why) in std::mem::take(&mut self.left) {
            let is_over = self.status.phase == Phase::Complete;
            if let Some(name) = self.roster.leave(from, &why).filter(|_| !is_over) {
                progress(Progress::Gone { name: &name, why: &why });
            }
        }
    }

    /// Goes on to the next phase if it can; true at the end.
    fn advance(
        &mut self,
        now: Instant,
        progress: &mut dyn FnMut(Progress<'_>),
    ) -> Result<bool, GroupError> {
        match self.status.phase {
            Phase::Joining => self.join(now)?,
            Phase::Ready if !self.is_warming() => self.await_start(now)?,
            Phase::Ready if self.config.warmup > 0 => {
                if self.is_warm(now) {
                    self.enter(Phase::Warm, now);
                }
                self.check_alive(now)?;
            }
            Phase::Ready => self.start(now, progress),
            Phase::Warm if self.roster.all_reached(Phase::Warm) => self.start(now, progress),
            Phase::Warm => self.await_start(now)?,
            Phase::Running => self.look_for_end(now, progress),
            Phase::Finished => {
                self.give_up(now, progress);
                if self.roster.living().all(|peer| peer.status.result.is_some()) {
                    self.enter(Phase::Complete, now);
                }
            }
            Phase::Complete => {
                self.roster.give_up_silent(now, self.patience);
                let is_over = self.roster.all_reached(Phase::Complete);
                if is_over || now.duration_since(self.since) > LINGER {
                    // The others may still wait for this.
                    self.status_due = now;
                    self.send_status(now)?;
                    self.receive(now)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.status.phase = phase;
        self.since = now;
        self.status_due = now;
    }

    fn join(&mut self, now: Instant) -> Result<(), GroupError> {
        self.roster.forget_gone(now, JOINING_SILENCE);
        if let Err(error) = self.roster.check(&self.status) {
            self.say_goodbye(now)?;
            return Err(error);
        }
        // The others would have waited for this member.
        if self.roster.peers.iter().any(|peer| peer.status.phase >= Phase::Running) {
            return Err(GroupError::Late);
        }
        let (here, wanted) = (self.roster.peers.len() + 1, self.config.num_members);
        if here == wanted {
            let own = self.status.is_sender.then_some(self.status.id);
            let senders = self.roster.peers.iter().filter(|peer| peer.status.is_sender);
            let ids: Vec<u64> = senders.map(|peer| peer.status.id).chain(own).collect();
            self.reception.expect(ids.into_iter());
            self.enter(Phase::Ready, now);
        } else if now.duration_since(self.since) > self.join_timeout {
            let names = self.roster.names(&self.status.name);
            let seconds = self.join_timeout.as_secs();
            return Err(GroupError::TooFew { here, wanted, seconds, names });
        }
        Ok(())
    }

    /// Shows this member's status to the others for a while, so that they refuse in their turn.
    fn say_goodbye(&mut self, now: Instant) -> Result<(), GroupError> {
        while now.elapsed() < REFUSAL_STAY {
            let now = Instant::now();
            if self.send_status(now)? + self.receive(now)? == 0 {
                self.transport.wait(NAP);
            }
        }
        Ok(())
    }

    /// Whether all have found each other, so that the warm-up can be sent.
    fn is_warming(&self) -> bool {
        self.roster.all_reached(Phase::Ready)
    }

    fn is_warm(&self, now: Instant) -> bool {
        let senders = self.config.num_senders as u64;
        let is_sent = !self.status.is_sender || self.warm_ups_sent == self.config.warmup;
        let is_received = self.reception.warm_ups >= self.config.warmup.saturating_mul(senders);
        let quiet = now.saturating_duration_since(self.reception.progress.max(self.since));
        let is_bare = self.config.transport == TransportKind::Udp;
        let limit = if is_bare { WARM_UP_SETTLING } else { self.patience };
        is_sent && (is_received || quiet > limit)
    }

    /// Waits for the others before the start, for no longer than `join_timeout`.
    fn await_start(&mut self, now: Instant) -> Result<(), GroupError> {
        self.check_alive(now)?;
        if now.duration_since(self.since) > self.join_timeout {
            let late = self.roster.living().find(|peer| peer.status.phase < self.status.phase);
            let name = late.map_or_else(String::new, |peer| peer.status.name.clone());
            let why = format!("was not ready within {} s", self.join_timeout.as_secs());
            return Err(GroupError::DiedBeforeStart { name, why });
        }
        Ok(())
    }

    fn check_alive(&mut self, now: Instant) -> Result<(), GroupError> {
        self.roster.give_up_silent(now, self.patience);
        let gone = self.roster.first_gone();
        gone.map_or(Ok(()), |(name, why)| {
            Err(GroupError::DiedBeforeStart { name: name.to_owned(), why: why.to_owned() })
        })
    }

    fn start(&mut self, now: Instant, progress: &mut dyn FnMut(Progress<'_>)) {
        self.enter(Phase::Running, now);
        self.is_written = false;
        self.send_due = now;
        self.reception.progress = now;
        progress(Progress::Started);
    }

    fn give_up(&mut self, now: Instant, progress: &mut dyn FnMut(Progress<'_>)) {
        if let Some(name) = self.roster.give_up_silent(now, self.patience) {
            let why = format!("was silent for {} s", self.patience.as_secs_f64());
            progress(Progress::Gone { name: &name, why: &why });
        }
    }

    /// Time without messages after which missing ones will not come.
    fn settling(&self) -> Duration {
        if self.config.transport == TransportKind::Udp { SETTLING } else { self.patience }
    }

    /// Ends the run when everything is there, or nothing more will come.
    fn look_for_end(&mut self, now: Instant, progress: &mut dyn FnMut(Progress<'_>)) {
        self.give_up(now, progress);
        let is_sent = !self.status.is_sender || self.status.sent == self.config.num_msgs;
        let is_whole = is_sent && self.reception.received == self.config.expected();
        let quiet = now.saturating_duration_since(self.reception.progress);
        let senders = || self.roster.peers.iter().filter(|peer| peer.status.is_sender);
        let dead = senders().find(|peer| peer.gone.is_some());
        let has_died = |id| senders().any(|peer| peer.gone.is_some() && peer.status.id == id);
        let are_through = is_sent
            && senders().filter(|peer| peer.gone.is_none()).all(|peer| {
                peer.status.sent == self.config.num_msgs || peer.status.phase > Phase::Running
            });
        let ended = if is_whole {
            None
        } else if let Some(peer) = dead
            && quiet > SETTLING
            && is_sent
            && self.reception.is_whole(|id| !has_died(id))
        {
            let why = peer.gone.as_deref().unwrap_or_default();
            Some(format!("{} {why}", peer.status.name))
        } else if are_through && dead.is_none() && quiet > self.settling() {
            None
        } else if quiet > self.patience {
            Some(format!("no message arrived for {} s", self.patience.as_secs_f64()))
        } else {
            return;
        };
        if let Some(since) = self.blocked_since.take() {
            self.blocked.count += 1;
            self.blocked.ns += nanoseconds(now.duration_since(since));
        }
        let result = MemberResult {
            id: format!("{:016x}", self.status.id),
            name: self.status.name.clone(),
            is_sender: self.status.is_sender,
            sent: self.status.sent,
            blocked: self.blocked,
            ended,
            ..self.reception.result(has_died)
        };
        progress(Progress::Finished(&result));
        self.status.result = Some(result);
        self.enter(Phase::Finished, now);
    }

    /// The table of all results.
    fn table(&self) -> GroupResult {
        let others = self.roster.peers.iter().filter_map(|peer| peer.status.result.clone());
        let results = others.chain(self.status.result.clone()).collect();
        let missing = self.roster.peers.iter().filter(|peer| peer.status.result.is_none());
        let missing = missing.map(|peer| {
            let why = peer.gone.as_deref().unwrap_or("gave no result");
            format!("{} {why}", peer.status.name)
        });
        GroupResult::new(self.config, results, missing.collect())
    }
}
