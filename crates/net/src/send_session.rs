//! A publisher's session: the sending state machine of `lanecast-protocol` and its sockets.
//!
//! Driven by one thread at a time, the owner's or the conductor's, under the lock of
//! [`Biased`](lanecast_os::biased::Biased). A message is staged in the window by a claim,
//! published by a commit, and sent at once unless `send_batching` keeps it for company.

use crate::conductor_waker::ConductorWaker;
use crate::counters::{PublisherCounters, PublisherStatus};
use crate::datagram_socket::DatagramSocket;
use crate::error::claim_error;
use crate::multicast_loopback::MulticastLoopback;
use crate::poller::{Descriptor, Poller};
use crate::room_event::RoomEvent;
use crate::send_batching::{BatchDecision, FULL_PACKED_STREAM_BYTES, SendBatching};
use crate::tcp_sender::{self, TcpSender};
use crate::telemetry::{CounterFile, Telemetry};
use lanecast_base::clock::Clock;
use lanecast_base::sync::Ordering;
use lanecast_base::{WaitStep, WaitStrategy, Waiter, spin};
use lanecast_os::udp::GsoBatch;
use lanecast_protocol::rng::Rng;
use lanecast_protocol::sender::{Sender, StageError, TopicError};
use lanecast_protocol::{MICROSECOND, Nanos};
use lanecast_transport::{ClaimError, PublisherEvent, TopicId};
use lanecast_wire::net::{Frame, item_bytes, other_version};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longest interval between two reads of receivers' control frames while commits are sent.
const RECEIVE_INTERVAL: Nanos = 4 * MICROSECOND;
/// The most control datagrams that are read at a time.
const RECEIVES_MAX: usize = 16;
/// Longest sleep while waiting for receivers: the conductor may read their frames instead.
const NAP: Duration = Duration::from_millis(1);
/// The longest read of datagrams: a GRO run.
const BUFFER_BYTES: usize = 64 << 10;

/// Sockets that messages leave by.
#[derive(Debug)]
pub(crate) enum SendTransport {
    /// Datagrams to each receiver, or to a group whose loopback is controlled.
    Udp(DatagramSocket, Option<MulticastLoopback>),
    Tcp(TcpSender),
}

/// A publisher's session.
#[derive(Debug)]
pub(crate) struct SendSession {
    pub(crate) sender: Sender,
    transport: SendTransport,
    clock: Clock,
    batching: SendBatching,
    /// Commits wake the conductor instead of sending.
    background: bool,
    waker: Arc<ConductorWaker>,
    /// Time of the last read of control frames.
    last_receive: Nanos,
    /// Time of the next try to send what a card did not take.
    unsent_due: Nanos,
    buffer: Box<[u8]>,
    /// Artificial loss: per mille, and its random numbers.
    loss: (u32, Rng),
    /// Sends that the system refused; repairs bring the datagrams back.
    refused: u64,
    wait: WaitStrategy,
    /// Bytes that are staged.
    staged: usize,
    status: Arc<PublisherStatus>,
    pub(crate) counter_file: CounterFile<PublisherCounters>,
    pub(crate) telemetry: Option<Telemetry>,
    poller: Poller,
    /// The publisher's descriptor.
    pub(crate) room_event: RoomEvent,
}

impl SendSession {
    pub(crate) fn new(
        sender: Sender,
        transport: SendTransport,
        background: bool,
        waker: Arc<ConductorWaker>,
        loss: (u32, Rng),
        wait: WaitStrategy,
        status: Arc<PublisherStatus>,
    ) -> Self {
        let batching = SendBatching::new();
        let (buffer_bytes, batching) = match transport {
            SendTransport::Udp(..) => (BUFFER_BYTES, batching),
            SendTransport::Tcp(_) => {
                (tcp_sender::READ_BYTES, batching.packing_up_to(FULL_PACKED_STREAM_BYTES))
            }
        };
        Self {
            sender,
            transport,
            clock: Clock::host(),
            batching,
            background,
            waker,
            last_receive: 0,
            unsent_due: Nanos::MAX,
            buffer: vec![0; buffer_bytes].into_boxed_slice(),
            loss,
            refused: 0,
            wait,
            staged: 0,
            status,
            counter_file: CounterFile::disabled(),
            telemetry: None,
            poller: Poller::default(),
            room_event: RoomEvent::default(),
        }
    }

    /// Stages a message in the window, if there is room.
    #[inline(always)]
    pub(crate) fn stage(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
        if let Err(refused) = self.sender.stage(topic.0, len) {
            self.find_room(refused, |sender| sender.stage(topic.0, len).map(drop))?;
        }
        self.staged += item_bytes(len);
        self.room_event.on_claimed();
        Ok(())
    }

    /// Checks that `count` messages of `bytes` bytes in all have room on the first topic, which
    /// stays when the open datagram is sent.
    pub(crate) fn try_reserve(&mut self, count: usize, bytes: usize) -> Result<(), ClaimError> {
        let reserve = |sender: &mut Sender| sender.reserve(TopicId::FIRST.0, count, bytes);
        if let Err(refused) = reserve(&mut self.sender) {
            self.find_room(refused, reserve)?;
        }
        self.room_event.on_claimed();
        Ok(())
    }

    /// Has `stage` look for room again, which was `refused`. Apart from the claims that find room
    /// at once: theirs is the path of messages.
    #[cold]
    fn find_room(
        &mut self,
        refused: StageError,
        stage: impl FnOnce(&mut Sender) -> Result<(), StageError>,
    ) -> Result<(), ClaimError> {
        if refused != StageError::WindowFull {
            return Err(claim_error(refused));
        }
        // Unread status frames may free room: one turn is worth a try before back-pressure.
        self.status.back_pressured.fetch_add(1, Ordering::Relaxed);
        self.make_room();
        if let Err(refused) = stage(&mut self.sender) {
            let retained = self.sender.retain_from();
            // The conductor takes the session over while the owner sleeps. A parked one sleeps on
            // sockets that it was given before, and has to be woken for it.
            if refused == StageError::WindowFull && self.room_event.on_refused(retained) {
                self.waker.wake();
            }
            return Err(claim_error(refused));
        }
        self.sender.subscribers().forget_refusal();
        Ok(())
    }

    /// Aborts all that is staged.
    pub(crate) fn unstage(&mut self) {
        self.sender.unstage();
        self.staged = 0;
    }

    /// Stages a message in the window, waiting for room.
    #[inline]
    pub(crate) fn stage_blocking(&mut self, topic: TopicId, len: usize) -> Result<(), ClaimError> {
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
                // Still full: the slowest receiver that decides has not reported since.
                Err(StageError::WindowFull) => {}
                Err(refused) => return Err(claim_error(refused)),
            }
        }
        self.sender.subscribers().forget_refusal();
        self.staged += item_bytes(len);
        self.room_event.on_claimed();
        let now = self.now();
        self.batching.restart_clock(now);
        Ok(())
    }

    fn pause(&mut self, waiter: &mut Waiter) {
        match waiter.next_step() {
            WaitStep::Spin(pauses) => spin(pauses),
            WaitStep::Yield => std::thread::yield_now(),
            // Only control frames of receivers make room, and they end the sleep.
            WaitStep::Park => self.sleep(NAP),
        }
    }

    /// Drives the session, with nothing staged, while the application is `blocked`.
    #[cold]
    pub(crate) fn drive_while_blocked(&mut self, mut blocked: impl FnMut() -> bool) {
        let mut waiter = Waiter::new(self.wait);
        while blocked() {
            self.pause(&mut waiter);
            self.flush();
        }
    }

    /// Sends all that is published, and asks receivers for their positions: the window is full.
    #[cold]
    fn make_room(&mut self) {
        // A batch that is being staged stays open: its messages are not published yet.
        if self.staged == 0 {
            self.sender.flush();
        }
        let now = self.now();
        self.sender.probe(now);
        self.drive(now);
        self.batching.emptied();
        self.batching.restart_clock(self.now());
    }

    /// Sends all that is published, and asks receivers for their positions.
    pub(crate) fn probe(&mut self) {
        let now = self.now();
        self.sender.probe(now);
        self.flush();
    }

    /// Gives pending events to `handler`, after reading what receivers have sent; returns their
    /// number.
    pub(crate) fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.drive_if_idle();
        self.sender.subscribers().poll_events(handler)
    }

    /// Reads what receivers have sent, and sends what is due, for an owner that has not done so for
    /// a while.
    pub(crate) fn drive_if_idle(&mut self) {
        let now = self.now();
        // Not at every call: a read is a system call, and the program may poll in a loop.
        if now.wrapping_sub(self.last_receive) > RECEIVE_INTERVAL {
            if self.sender.subscribers().was_refused() {
                self.make_room();
            } else {
                // A program that polls counts as active: the conductor sends no batch for it.
                self.flush();
            }
            self.wake_conductor();
        }
    }

    /// Wakes a parked conductor, which sleeps on the sockets and deadlines from before the owner
    /// drove the session.
    pub(crate) fn wake_conductor(&self) {
        self.waker.wake_soon_if_parked();
    }

    /// Closes the session. The conductor sends the repairs that receivers still ask for.
    pub(crate) fn close(&mut self) {
        let now = self.now();
        self.sender.close(now);
        self.flush();
    }

    /// Whether the closed session has ended for all receivers.
    pub(crate) fn is_finished(&self) -> bool {
        self.sender.is_finished()
    }

    /// Sleeps until control frames come, at most `limit` and not longer than [`NAP`].
    pub(crate) fn sleep(&mut self, limit: Duration) {
        let mut descriptors = Vec::new();
        self.descriptors(&mut descriptors);
        self.poller.sleep(&descriptors, limit.min(NAP));
    }

    #[inline(always)]
    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Publishes all that is staged, and sends it unless it is batched.
    #[inline(always)]
    pub(crate) fn publish(&mut self) -> usize {
        let count = self.sender.publish();
        // Zero means that no batch is open: `make_room` then may close the datagram.
        let bytes = std::mem::take(&mut self.staged);
        if self.batching.is_batching() {
            let clock = self.clock;
            match self.batching.on_commit(bytes, || clock.ns(clock.ticks())) {
                BatchDecision::Keep if self.batching.is_packing() => self.watch_batch(),
                BatchDecision::Keep => {}
                BatchDecision::Send => self.send_batch(),
                BatchDecision::Flush => {
                    self.sender.flush();
                    self.send_batch();
                }
            }
        } else {
            self.send_now();
        }
        count
    }

    /// Publishes `bytes` on the first topic as a message that reports do not count, if there is
    /// room.
    pub(crate) fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        // Its datagrams have no other messages.
        self.sender.flush();
        self.stage(TopicId::FIRST, bytes.len())?;
        self.sender.staged().copy_from_slice(bytes);
        self.sender.publish_uncounted();
        self.staged = 0;
        self.flush();
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn send_batch(&mut self) {
        let now = self.now();
        self.drive(now);
        self.batching.emptied();
        self.batching.restart_clock(self.now());
        if !self.batching.is_batching() {
            self.status.is_batching.store(false, Ordering::Relaxed);
        }
    }

    #[inline(never)]
    fn send_now(&mut self) {
        // The conductor sends then; the commit only has to be seen by it.
        if self.background {
            self.waker.wake_if_parked();
            return;
        }
        self.sender.flush();
        // Read before and after the system call: the pause between two sends tells a stream from
        // single messages, however long a send takes.
        let committed = self.now();
        self.transmit(committed);
        let now = self.now();
        if self.batching.sent_alone(committed, now) {
            // The conductor flushes the batch should the application stop inside its stream.
            self.status.is_batching.store(true, Ordering::Relaxed);
            self.waker.wake_soon();
        } else {
            // A parked conductor sleeps towards a deadline from before this message.
            self.waker.wake_soon_if_parked();
        }
        // Not at every commit: a read is a system call on the path of messages.
        if now.wrapping_sub(self.last_receive) > RECEIVE_INTERVAL {
            self.drive(now);
            // The time that this took must not count as a pause of the application.
            self.batching.restart_clock(self.now());
        }
    }

    /// Sends all that is published, batched messages included.
    pub(crate) fn flush(&mut self) {
        self.sender.flush();
        let now = self.now();
        self.drive(now);
        self.batching.emptied();
    }

    /// Packs the commits that follow, until [`send_packed`](Self::send_packed).
    pub(crate) fn pack(&mut self) {
        // Commits cost no system call then: the conductor sends.
        if self.background {
            return;
        }
        self.batching.pack();
        self.status.is_packing.store(true, Ordering::Relaxed);
        self.watch_batch();
    }

    /// Lets the conductor flush the batch should the application never do so.
    #[inline]
    fn watch_batch(&self) {
        // It has stepped in since, and the batch goes on.
        if !self.status.is_batching.load(Ordering::Relaxed) {
            self.status.is_batching.store(true, Ordering::Relaxed);
            self.waker.wake_soon_if_parked();
        }
    }

    /// Sends the commits that were packed.
    pub(crate) fn send_packed(&mut self) {
        if self.batching.is_packing() {
            self.batching.stop();
            self.status.is_packing.store(false, Ordering::Relaxed);
            self.sender.flush();
            self.send_batch();
        }
    }

    /// Flushes for an owner that is elsewhere; called by the conductor. Returns the deadline of
    /// the next call.
    pub(crate) fn drive_for_owner(&mut self) -> Nanos {
        // The owner's next commit may come much later: it must not be kept for company. One that
        // packs has said that more follow: it may have lost its CPU for a moment.
        if !self.batching.is_packing() {
            self.batching.stop();
        }
        self.status.is_batching.store(false, Ordering::Relaxed);
        // The caches to keep warm are those of the owner's CPU; and a stand-in that is inside every
        // 100 µs would hold up the message that the frames are for.
        self.sender.suspend_warming(!self.background);
        self.flush();
        if self.unsent_due != Nanos::MAX {
            // The deadline sees to it.
            self.status.is_batching.store(false, Ordering::Relaxed);
        }
        let handshakes = match &self.transport {
            SendTransport::Udp(..) => None,
            SendTransport::Tcp(tcp) => tcp.next_deadline(),
        };
        let due = self.sender.next_deadline().into_iter().chain(handshakes);
        let due = due.chain([self.counter_file.due(), self.unsent_due]).min().unwrap_or(Nanos::MAX);
        self.sender.suspend_warming(false);
        due
    }

    /// One turn: reads control frames, runs timers, sends what may be sent.
    fn drive(&mut self, now: Nanos) {
        self.last_receive = now;
        self.receive(now);
        // Timers after the read: a frame that has just come may be the sign of life they wait for.
        if self.sender.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.sender.on_time(now);
        }
        self.status.receivers.store(self.sender.joined(), Ordering::Relaxed);
        if self.counter_file.is_due(now) {
            self.update_counter_file(now);
        }
        self.transmit(now);
        self.unsent_due = match &mut self.transport {
            SendTransport::Udp(socket, _) => socket.send_rest(now),
            SendTransport::Tcp(_) => Nanos::MAX,
        };
        if self.unsent_due != Nanos::MAX {
            // The owner's next call may come much later.
            self.watch_batch();
        }
        // Last: what was sent may be overwritten if no receiver decides.
        self.room_event.on_driven(self.sender.retain_from());
    }

    fn receive(&mut self, now: Nanos) {
        match &mut self.transport {
            SendTransport::Tcp(tcp) => tcp.receive(&mut self.sender, now, &mut self.buffer),
            SendTransport::Udp(socket, loopback) => {
                socket.look_at_all();
                // Bounded: a flood of control frames must not keep the session from sending.
                for _ in 0..RECEIVES_MAX {
                    let Ok(Some((length, from))) = socket.receive(&mut self.buffer) else { break };
                    let mut rest = &self.buffer[..length];
                    // One read may bring a GRO run of datagrams; bytes after a damaged frame are
                    // dropped.
                    while let Some((frame, after)) = Frame::split(rest) {
                        self.sender.on_frame(now, from, &frame);
                        rest = after;
                    }
                    if let Some(version) = other_version(rest)
                        && let Some(telemetry) = &self.telemetry
                    {
                        telemetry.other_version(from.ip(), version);
                    }
                }
                // Before anything is sent to receivers that have just joined.
                if let Some(loopback) = loopback {
                    loopback.update(&self.sender, socket);
                }
            }
        }
    }

    /// Sends what may be sent.
    fn transmit(&mut self, now: Nanos) {
        let socket = match &mut self.transport {
            SendTransport::Tcp(tcp) => return tcp.transmit(&mut self.sender, now),
            SendTransport::Udp(socket, _) => socket,
        };
        while let Some(transmit) = self.sender.next_transmit(now) {
            // Artificial loss counts as sent: receivers then have to ask for a repair.
            let is_lost = self.loss.0 > 0 && self.loss.1.below(1000) < u64::from(self.loss.0);
            let sent = if is_lost {
                Ok(())
            } else if transmit.bytes.len() <= transmit.segment {
                socket.send_to(transmit.bytes, transmit.to)
            } else {
                let run = GsoBatch {
                    bytes: transmit.bytes,
                    segment: transmit.segment,
                    to: Some(transmit.to),
                };
                socket.send_run(run)
            };
            match sent {
                Ok(()) => {}
                // Not marked as transmitted: the next turn gets the same datagrams again.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // Refused or too long: a loss to the receivers, repaired as such.
                Err(_) => self.refused += 1,
            }
            self.sender.transmitted(now);
        }
    }

    /// Adds the sockets to sleep on, and whether to wait for room to write.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        match &self.transport {
            SendTransport::Udp(socket, _) => socket.descriptors(into),
            SendTransport::Tcp(tcp) => tcp.descriptors(into),
        }
    }

    /// Adds a topic; returns the same number for the same name.
    pub(crate) fn add_topic(&mut self, name: &str) -> Result<u32, TopicError> {
        let before = self.sender.topics();
        let number = self.sender.add_topic(name)?;
        // A known name keeps its number, and its line in the counters file.
        if self.sender.topics() > before {
            self.counter_file.add_topic(name);
        }
        Ok(number)
    }

    /// The session's counters.
    pub(crate) fn counters(&self) -> PublisherCounters {
        PublisherCounters {
            sent: *self.sender.counters(),
            topics: self.sender.topics() as u64,
            receivers: self.sender.joined() as u64,
            back_pressured: self.status.back_pressured.load(Ordering::Relaxed),
            refused: self.refused,
        }
    }

    #[cold]
    fn update_counter_file(&mut self, now: Nanos) {
        let counters = self.counters();
        self.counter_file.update(now, &counters);
    }
}
