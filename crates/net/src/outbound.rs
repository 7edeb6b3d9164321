//! A publisher's side of its session: the state machine and its sockets.

mod telling;

use crate::cork::{Cork, Verdict};
use crate::counters::PublisherCounters;
use crate::echo::Echo;
use crate::presence::{Attention, Descriptor};
use crate::streams::Streams;
use crate::tally::Tally;
use crate::telemetry::Board;
use crate::watch::Watch;
use lanecast_base::clock::Clock;
use lanecast_base::sync::Ordering;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use lanecast_os::udp::{Run, UdpSocket};
use lanecast_protocol::Nanos;
use lanecast_protocol::rng::Rng;
use lanecast_protocol::sender::{Sender, StageError};
use lanecast_transport::{BackPressureReason, ClaimError, TopicId};
use lanecast_wire::net::{Frame, item_bytes};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The longest time between two looks at what receivers say, while commits are being sent.
const LISTEN_EVERY: Nanos = 4_000;
/// The most datagrams from receivers that are taken in at a time.
const LISTEN_MAX: usize = 16;
/// The longest sleep while waiting for receivers: the conductor may hear them instead.
const NAP: Duration = Duration::from_millis(1);
/// The longest that the kernel may hand over at once.
const BUFFER_BYTES: usize = 64 << 10;

/// How the bytes leave.
#[derive(Debug)]
pub(crate) enum Way {
    /// To each receiver alone, or to a group.
    Datagrams(Arc<UdpSocket>, Option<Echo>),
    Streams(Streams),
}

/// A session as its publisher and the conductor drive it, one at a time.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) sender: Sender,
    way: Way,
    clock: Clock,
    cork: Cork,
    /// Whether commits leave the sending to a thread in the background.
    hands_off: bool,
    attention: Arc<Attention>,
    listened: Nanos,
    buffer: Box<[u8]>,
    segmentation: bool,
    /// Artificial loss: per mille, and its chance.
    loss: (u32, Rng),
    /// Datagrams that the system refused to send; repairs bring them back.
    pub(crate) refused: u64,
    wait: WaitStrategy,
    /// How many bytes are staged.
    staged: usize,
    tally: Arc<Tally>,
    pub(crate) board: Board<PublisherCounters>,
    watch: Watch,
}

impl Outbound {
    pub(crate) fn new(
        sender: Sender,
        way: Way,
        hands_off: bool,
        attention: Arc<Attention>,
        loss: (u32, Rng),
        wait: WaitStrategy,
        tally: Arc<Tally>,
    ) -> Self {
        Self {
            sender,
            way,
            clock: Clock::host(),
            cork: Cork::new(),
            hands_off,
            attention,
            listened: 0,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            segmentation: lanecast_os::udp::segmentation_works(),
            loss,
            refused: 0,
            wait,
            staged: 0,
            tally,
            board: Board::silent(),
            watch: Watch::default(),
        }
    }

    /// Takes room for a message, if there is some.
    #[inline(always)]
    pub(crate) fn stage(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        match self.sender.stage(topic.0, len) {
            Ok(_) => {}
            Err(StageError::WindowFull) => {
                self.tally.back_pressured.fetch_add(1, Ordering::Relaxed);
                self.make_room();
                self.sender.stage(topic.0, len).map_err(refusal)?;
            }
            Err(refused) => return Err(refusal(refused)),
        }
        self.staged += item_bytes(len);
        Ok(())
    }

    /// Gives the room of all that is staged back.
    pub(crate) fn unstage(&mut self) {
        self.sender.unstage();
        self.staged = 0;
    }

    /// Takes room for a message, waiting for it.
    #[inline]
    pub(crate) fn stage_waiting(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        match self.stage(topic, len) {
            Err(ClaimError::BackPressured(_)) => self.wait_for_room(topic, len),
            other => other,
        }
    }

    #[cold]
    fn wait_for_room(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        let mut waiter = Waiter::new(self.wait);
        loop {
            self.pause(&mut waiter);
            self.make_room();
            match self.sender.stage(topic.0, len) {
                Ok(_) => break,
                Err(StageError::WindowFull) => {}
                Err(refused) => return Err(refusal(refused)),
            }
        }
        self.staged += item_bytes(len);
        let now = self.now();
        self.cork.waited(now);
        Ok(())
    }

    fn pause(&mut self, waiter: &mut Waiter) {
        match waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            WaitStep::Park => self.sleep(NAP),
        }
    }

    /// Looks after the session, with nothing staged, while the application is `blocked`.
    #[cold]
    pub(crate) fn attend_while(&mut self, mut blocked: impl FnMut() -> bool) {
        let mut waiter = Waiter::new(self.wait);
        while blocked() {
            self.pause(&mut waiter);
            self.flush();
        }
    }

    /// The window is full: sends all there is, and asks receivers how far they are.
    #[cold]
    fn make_room(&mut self) {
        // Without the staged part of a batch, which is nobody's yet.
        if self.staged == 0 {
            self.sender.flush();
        }
        let now = self.now();
        self.sender.probe(now);
        self.drive(now);
        self.cork.emptied();
        self.cork.waited(self.clock.ns(self.clock.ticks()));
    }

    /// Sends all there is, and asks receivers how far they are.
    pub(crate) fn ask(&mut self) {
        let now = self.now();
        self.sender.probe(now);
        self.flush();
    }

    /// Ends the session; what receivers still miss is repaired by whoever stands in.
    pub(crate) fn close(&mut self) {
        let now = self.now();
        self.sender.close(now);
        self.flush();
    }

    /// Whether nobody waits for anything: neither for messages, nor to hear why there are none.
    pub(crate) fn is_settled(&self) -> bool {
        self.sender.receivers() == 0 && !self.sender.has_rejected_connections()
    }

    /// Sleeps until receivers say something, at most `limit` and not for long.
    pub(crate) fn sleep(&mut self, limit: Duration) {
        let mut descriptors = Vec::new();
        self.descriptors(&mut descriptors);
        self.watch.sleep(&descriptors, limit.min(NAP));
    }

    #[inline(always)]
    pub(crate) fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Publishes what is staged, and sends it if it is time.
    #[inline(always)]
    pub(crate) fn publish(&mut self) -> usize {
        let count = self.sender.publish();
        let bytes = std::mem::take(&mut self.staged);
        if self.cork.is_corked() {
            let clock = self.clock;
            match self.cork.keep(bytes, || clock.ns(clock.ticks())) {
                Verdict::Keep => {}
                Verdict::Send => self.send_packed(),
                Verdict::Flush => {
                    self.sender.flush();
                    self.send_packed();
                }
            }
        } else {
            self.send_now();
        }
        count
    }

    #[cold]
    #[inline(never)]
    fn send_packed(&mut self) {
        let now = self.now();
        self.drive(now);
        self.cork.emptied();
        self.cork.waited(self.clock.ns(self.clock.ticks()));
        if !self.cork.is_corked() {
            self.tally.corked.store(false, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn send_now(&mut self) {
        if self.hands_off {
            self.attention.call();
            return;
        }
        self.sender.flush();
        let committed = self.now();
        self.transmit(committed);
        let now = self.now();
        if self.cork.sent_alone(committed, now) {
            // Someone must send the rest should the application stop in the middle of its stream.
            self.tally.corked.store(true, Ordering::Relaxed);
            self.attention.remind();
        } else {
            self.attention.nudge();
        }
        if now.wrapping_sub(self.listened) > LISTEN_EVERY {
            self.drive(now);
            // Or the time that this took would pass for a pause of the application.
            self.cork.waited(self.clock.ns(self.clock.ticks()));
        }
    }

    /// Sends what is open, too: the application says so, or has gone away.
    pub(crate) fn flush(&mut self) {
        self.sender.flush();
        let now = self.now();
        self.drive(now);
        self.cork.emptied();
    }

    /// As [`flush`](Self::flush), by whoever stands in for the owner.
    pub(crate) fn stand_in(&mut self) -> Nanos {
        // Or what comes next, perhaps much later, would wait for company.
        self.cork.uncork();
        self.tally.corked.store(false, Ordering::Relaxed);
        self.flush();
        self.sender.next_deadline().unwrap_or(Nanos::MAX).min(self.board.due())
    }

    /// One turn: hears what receivers say, does what is due, sends what may be sent.
    pub(crate) fn drive(&mut self, now: Nanos) -> usize {
        self.listened = now;
        let heard = self.listen(now);
        if self.sender.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.sender.on_time(now);
        }
        self.tally.receivers.store(self.sender.joined(), Ordering::Relaxed);
        if self.board.is_due(now) {
            self.tell(now);
        }
        heard + self.transmit(now)
    }

    fn listen(&mut self, now: Nanos) -> usize {
        match &mut self.way {
            Way::Streams(streams) => streams.listen(&mut self.sender, now, &mut self.buffer),
            Way::Datagrams(socket, echo) => {
                let mut heard = 0;
                while heard < LISTEN_MAX
                    && let Ok(Some((length, from))) = socket.receive(&mut self.buffer)
                {
                    let mut rest = &self.buffer[..length];
                    while let Some((frame, after)) = Frame::split(rest) {
                        self.sender.on_frame(now, from, &frame);
                        rest = after;
                    }
                    heard += 1;
                }
                if let Some(echo) = echo {
                    echo.follow(&self.sender, socket);
                }
                heard
            }
        }
    }

    /// Sends what may be sent; returns how many system calls that took.
    fn transmit(&mut self, now: Nanos) -> usize {
        let socket = match &mut self.way {
            Way::Streams(streams) => return streams.transmit(&mut self.sender, now),
            Way::Datagrams(socket, _) => socket,
        };
        let mut calls = 0;
        while let Some(transmit) = self.sender.next_transmit(now) {
            calls += 1;
            let lost = self.loss.0 > 0 && self.loss.1.below(1000) < u64::from(self.loss.0);
            let sent = if lost {
                Ok(())
            } else if transmit.bytes.len() <= transmit.segment {
                socket.send_to(transmit.bytes, transmit.to)
            } else {
                send_run(socket, transmit.bytes, transmit.segment, transmit.to, self.segmentation)
            };
            match sent {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Gone, refused or too long: to the receivers it is loss, and is repaired as such.
                Err(_) => self.refused += 1,
            }
            self.sender.transmitted(now);
        }
        calls
    }

    /// What the conductor watches while the owner is away.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        match &self.way {
            Way::Datagrams(socket, _) => {
                into.push((Descriptor::Udp(Arc::clone(socket)), false));
            }
            Way::Streams(streams) => streams.descriptors(into),
        }
    }
}

fn send_run(
    socket: &UdpSocket,
    bytes: &[u8],
    segment: usize,
    to: std::net::SocketAddr,
    segmentation: bool,
) -> io::Result<()> {
    const AT_ONCE: usize = 64;
    let run = |bytes| Run { bytes, segment, to: Some(to) };
    if segmentation {
        return socket.send_runs(&[run(bytes)]).map(drop);
    }
    let mut runs = [run(&bytes[..0]); AT_ONCE];
    let mut chunks = bytes.chunks(segment);
    loop {
        let filled = runs.iter_mut().zip(&mut chunks).map(|(run, chunk)| run.bytes = chunk).count();
        if filled == 0 {
            return Ok(());
        }
        let mut sent = 0;
        while sent < filled {
            match socket.send_runs(&runs[sent..filled]) {
                Ok(count) => sent += count,
                // Part of the run is on its way: the rest counts as lost rather than go twice.
                Err(error) if sent > 0 && error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn refusal(refused: StageError) -> ClaimError {
    match refused {
        StageError::WindowFull => ClaimError::BackPressured(BackPressureReason::WindowFull),
        StageError::TooLong { longest } => ClaimError::TooLong { longest },
        StageError::NoSuchTopic => ClaimError::NoSuchTopic,
        StageError::Closed => ClaimError::Closed,
    }
}
