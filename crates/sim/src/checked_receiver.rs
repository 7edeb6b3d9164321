//! One receiver of a subscriber, with the ledgers that check its deliveries.

use crate::connection::whole;
use crate::ensure;
use crate::fabric::Fabric;
use crate::history::What;
use crate::ledger::Ledger;
use crate::network::Socket;
use crate::truth::{TopicTruth, Truth};
use crate::violation::Verdict;
use lanecast_protocol::receiver::{Delivery, GapEnd, Phase, Receiver, ReceiverSettings};
use lanecast_protocol::{MICROSECOND, Nanos};
use lanecast_transport::{CloseReason, LossReason};
use lanecast_wire::net::{Frame, FrameHeader, Items, Kind, flag};

/// Largest delay of the end of a gap: the duty cycle.
const TARDY: Nanos = 100 * MICROSECOND;

/// A delivery of a receiver, as its log keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Logged {
    /// A topic was joined.
    Joined,
    /// A message: its number and its bytes.
    Message(u64, Box<[u8]>),
    /// Lost messages: the first number, and how many.
    Lost(u64, u64),
    /// A topic's stream has ended.
    Left(CloseReason),
}

/// A receiver and its ledgers.
#[derive(Debug)]
pub struct CheckedReceiver {
    /// Deliveries of all topics and their times, if they are to be kept.
    pub log: Option<Vec<(Nanos, Logged)>>,
    /// The receiver.
    pub receiver: Receiver,
    /// Index of the session.
    pub session: usize,
    /// Ledgers, by slot.
    pub ledgers: Vec<Ledger>,
    /// Connection.
    pub connection: Option<usize>,
    /// Time and reason of the end.
    pub left: Option<(Nanos, CloseReason)>,
    /// Number of revivals.
    pub revivals: u64,
    settings: ReceiverSettings,
    socket: Socket,
    began: Nanos,
    /// Number of messages at the start, by topic.
    published: Vec<u64>,
    /// Additional age of gaps: the process was suspended.
    pub absence: Nanos,
    /// Whether it may begin with earlier messages.
    pub is_late: bool,
    /// Whether the session is source-paced, which allows skipped messages.
    may_skip: bool,
    /// The application has unread deliveries.
    is_fed: bool,
    out: Vec<Delivery>,
}

impl CheckedReceiver {
    /// Creates a receiver that starts to join session number `session`.
    pub fn new(
        receiver: Receiver,
        settings: ReceiverSettings,
        (session, truth): (usize, &Truth),
        socket: Socket,
        began: Nanos,
    ) -> Self {
        Self {
            log: None,
            receiver,
            session,
            ledgers: Vec::new(),
            connection: None,
            left: None,
            revivals: 0,
            is_late: false,
            may_skip: settings.stream,
            settings,
            socket,
            began,
            published: truth.topics.iter().map(TopicTruth::published).collect(),
            absence: 0,
            is_fed: false,
            out: Vec::new(),
        }
    }

    /// The application has read all deliveries.
    pub fn read_all(&mut self) {
        if std::mem::take(&mut self.is_fed) {
            self.receiver.consumed_all();
        }
    }

    /// Revives the session if possible; returns whether it was.
    pub fn revive(&mut self, now: Nanos) -> bool {
        let revives = self.receiver.revive(now);
        if revives {
            self.left = None;
            self.revivals += 1;
        }
        revives
    }

    /// Whether the receiver is done.
    pub fn is_done(&self) -> bool {
        self.receiver.phase() == Phase::Closed && self.receiver.next_deadline().is_none()
    }

    /// State in words.
    pub fn state(&self) -> String {
        let Self { receiver, session, left, .. } = self;
        let due = receiver.next_deadline();
        let ledgers: Vec<_> = self.ledgers.iter().map(Ledger::state).collect();
        let phase = receiver.phase();
        format!("session {session} {phase:?} {left:?}, due {due:?}, {}", ledgers.join(" "))
    }

    /// Whether every topic of the session was joined.
    pub fn has_joined(&self, truth: &Truth) -> bool {
        let exists = |ledger: &&Ledger| truth.topics[ledger.topic()].exists;
        self.receiver.phase() == Phase::Live
            && self.ledgers.iter().filter(exists).all(Ledger::is_joined)
    }

    /// Whether every published message was delivered or reported as lost.
    pub fn is_whole(&self, truth: &Truth) -> bool {
        self.has_joined(truth)
            && self.ledgers.iter().filter(|l| l.is_joined()).all(|l| l.is_whole(truth))
    }

    /// Handles a frame; returns the number of deliveries.
    pub fn take(&mut self, fabric: &mut Fabric, truth: &Truth, bytes: &[u8]) -> Verdict<usize> {
        let Some(frame) = whole(bytes) else { return Ok(0) };
        if frame.session != truth.session {
            return Ok(0);
        }
        fabric.note(self.socket, What::hears(&frame));
        let at = size_of::<FrameHeader>();
        self.receiver.on_frame(fabric.now, &frame, at, &mut self.out);
        self.account(fabric, truth, bytes)
    }

    /// Records a frame that is sent. With a Join or a resumption, all topics begin at the position
    /// of the receiver, even those subscribed to later.
    pub fn on_sent(&mut self, bytes: &[u8]) {
        let joins = |frame: Frame<'_>| frame.kind == Kind::Join && frame.flags & flag::FURTHER == 0;
        if whole(bytes).is_some_and(joins) {
            let published = &self.published;
            self.ledgers.iter_mut().for_each(|l| l.reach_back(published[l.topic()]));
        }
    }

    /// Handles the time.
    pub fn pass(&mut self, fabric: &mut Fabric, truth: &Truth) -> Verdict<usize> {
        self.receiver.on_time(fabric.now, &mut self.out);
        self.account(fabric, truth, &[])
    }

    fn keep(&mut self, now: Nanos, delivered: impl FnOnce() -> Logged) {
        if let Some(log) = &mut self.log {
            log.push((now, delivered()));
        }
    }

    /// Checks deliveries against the published messages.
    fn account(&mut self, fabric: &mut Fabric, truth: &Truth, buffer: &[u8]) -> Verdict<usize> {
        let out = std::mem::take(&mut self.out);
        self.is_fed |= !out.is_empty();
        for delivery in &out {
            match delivery {
                Delivery::Joined { slot } => {
                    fabric.note(self.socket, What::Joins { slot: *slot });
                    self.keep(fabric.now, || Logged::Joined);
                    self.ledgers[*slot as usize].join(truth)?;
                }
                Delivery::Borrowed { slot, first, start, end } => {
                    let items = &buffer[*start as usize..*end as usize];
                    self.read_items(fabric, truth, *slot, (*first, items))?;
                }
                Delivery::Owned { slot, first, items } => {
                    self.read_items(fabric, truth, *slot, (*first, items))?;
                }
                Delivery::Message { slot, number, bytes } => {
                    self.read(fabric, truth, (*slot, *number, bytes, None))?;
                }
                Delivery::Lost { slot, first, count, why } => {
                    let (slot, first, count) = (*slot, *first, *count);
                    fabric.note(self.socket, What::Loss { slot, first, count });
                    self.keep(fabric.now, || Logged::Lost(first, count));
                    self.check_reason(fabric.now, *why)?;
                    self.ledgers[slot as usize].lose(truth, first, count)?;
                }
                Delivery::Left { slot, why } => {
                    self.keep(fabric.now, || Logged::Left(*why));
                    let told = format!("{why:?}");
                    fabric.note(self.socket, What::Leaves { slot: *slot, why: told });
                    self.ledgers[*slot as usize].leave(truth, *why == CloseReason::Closed)?;
                }
            }
        }
        if let Some(why) = self.receiver.close_reason().filter(|_| self.left.is_none()) {
            self.left = Some((fabric.now, why));
        }
        self.check_bounds()?;
        let count = out.len();
        self.out = out;
        self.out.clear();
        Ok(count)
    }

    fn read_items(
        &mut self,
        fabric: &mut Fabric,
        truth: &Truth,
        slot: u32,
        (first, items): (u64, &[u8]),
    ) -> Verdict {
        for (number, item) in (first..).zip(Items::new(items)) {
            ensure!(item.flags.is_whole(), "a piece is handed on as a message");
            let goes_on = Some(item.flags.goes_on());
            self.read(fabric, truth, (slot, number, item.bytes, goes_on))?;
        }
        Ok(())
    }

    fn read(
        &mut self,
        fabric: &mut Fabric,
        truth: &Truth,
        (slot, number, bytes, more): (u32, u64, &[u8], Option<bool>),
    ) -> Verdict {
        fabric.note(self.socket, What::Reads { slot, number, bytes: bytes.len() });
        self.keep(fabric.now, || Logged::Message(number, bytes.into()));
        self.ledgers[slot as usize].read_message(truth, (number, bytes), more)
    }

    /// Time after which a gap is given up.
    fn patience(&self) -> Nanos {
        let Self { settings, .. } = self;
        settings.give_up_after.map_or(settings.recovery, |after| after.min(settings.recovery))
    }

    /// Checks that the reason of a loss is possible.
    fn check_reason(&self, now: Nanos, why: LossReason) -> Verdict {
        let old_enough = now >= self.began + self.patience();
        let broken_off = self.receiver.phase() == Phase::Closed;
        let possible = match why {
            LossReason::GaveUp => old_enough || broken_off,
            LossReason::Gone => !self.settings.stream,
            LossReason::Skipped => self.may_skip,
            LossReason::Evicted => broken_off,
            _ => false,
        };
        ensure!(possible, "lost because of {why:?}, which cannot be");
        Ok(())
    }

    /// Checks the reorder buffer's limit, whole batches, and the age of gaps.
    fn check_bounds(&mut self) -> Verdict {
        let (kept, most) = (self.receiver.reorder_bytes(), self.settings.reorder_bytes_max);
        ensure!(kept <= most, "{kept} bytes wait: {most} were allowed");
        let cramped = self.receiver.counters().overflowed > 0 || most < 100_000;
        let amid = self.ledgers.iter().find(|ledger| ledger.is_amid_batch());
        if let Some(ledger) = amid.filter(|_| !cramped) {
            let (topic, read) = (ledger.topic(), ledger.read());
            ensure!(false, "half a batch on topic {topic}, after {read} messages");
        }
        while let Some(gap) = self.receiver.next_gap_record() {
            // History has the recovery time.
            let is_late = self.settings.late_join;
            let most = if is_late { self.settings.recovery } else { self.patience() };
            let most = most + self.absence + TARDY;
            let over = gap.after <= most;
            ensure!(over, "a gap lasted {} ns, not {most}: {gap:?}", gap.after);
            let gave_up = gap.end == GapEnd::Lost(LossReason::GaveUp);
            let early = gap.after < self.patience();
            let broken_off = self.receiver.phase() == Phase::Closed;
            ensure!(!gave_up || !early || broken_off, "given up too early: {gap:?}");
        }
        Ok(())
    }
}
