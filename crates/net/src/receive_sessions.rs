//! All sessions of one subscriber: their state machines, and the sockets that feed them.
//!
//! Driven by one thread at a time, the owner's or the conductor's, under the lock of
//! [`Biased`](lanecast_os::biased::Biased). The owner reads straight into its delivery queue; the
//! conductor copies deliveries into `ready`, where the owner finds them at its next poll; of an
//! owner that is too far behind the sockets stay unread.

use crate::admission::{Admission, JoinLimiter};
use crate::context::NetContext;
use crate::counters::SubscriberCounters;
use crate::datagram_socket::DatagramSocket;
use crate::delivery_queue::{DeliveryQueue, QueuedDelivery};
use crate::dormant_sessions::DormantSessions;
use crate::gap::GapReport;
use crate::owner_state::OwnerState;
use crate::peer_socket::PeerKind;
use crate::poller::Descriptor;
use crate::ready_deliveries::ReadyDeliveries;
use crate::ready_streams::ReadyStreams;
use crate::receive_session::{ReceiveSession, StreamRead};
use crate::receive_sockets::ReceiveSockets;
use crate::reporting::Reporting;
use crate::session_opener::SessionOpener;
use crate::settings::DeliverySettings;
use crate::source::{Source, TransportKind};
use crate::tcp_receiver::{self, TcpReceiver};
use crate::telemetry::UnreadableDatagrams;
use lanecast_os::process;
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::Delivery;
use lanecast_protocol::rng::Rng;
use lanecast_transport::{SessionId, TopicSelection};
use lanecast_wire::net::Frame;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Reads of datagrams between two of connections, where there are both.
const STREAMS_TURN: u32 = 2;
/// Reads with a result between two checks of the deadlines.
const DEADLINE_INTERVAL: u32 = 64;
/// The most reads of the conductor in one duty cycle.
const BACKGROUND_READS: usize = 64;
const CONTROL_BYTES: usize = 1400;

/// All sessions of one subscriber.
#[derive(Debug)]
pub(crate) struct ReceiveSessions {
    context: Arc<NetContext>,
    opener: SessionOpener,
    sockets: ReceiveSockets,
    sessions: Vec<ReceiveSession>,
    /// Connections with something to read, of those that are registered.
    ready_streams: ReadyStreams,
    /// The number of sessions with a connection, and whether some have to be read unasked.
    streams: usize,
    has_unasked: bool,
    /// The session that is first to be read unasked.
    turn: usize,
    dormant: DormantSessions,
    /// Sessions that have ended so far.
    ended: u64,
    limiter: JoinLimiter,
    /// Deliveries that the conductor received for the owner.
    ready: ReadyDeliveries,
    /// The sockets stay unread until the owner has consumed more.
    is_paused: bool,
    /// Deliveries of one frame; empty between frames.
    deliveries: Vec<Delivery>,
    /// Control frames to publishers are written here.
    control: Box<[u8]>,
    /// The conductor's read buffer.
    background_buffer: Box<[u8]>,
    deadline: Nanos,
    /// Counts what may change the sockets or the deadline.
    changes: u64,
    reads: u32,
    rng: Rng,
    owner_state: Arc<OwnerState>,
    reporting: Reporting,
    /// Only the conductor reads the sockets.
    background: bool,
    unreadable: UnreadableDatagrams,
    /// The subscriber is gone.
    has_left: bool,
}

impl ReceiveSessions {
    pub(crate) fn new(
        context: Arc<NetContext>,
        topics: TopicSelection,
        (except, delivery): (Option<SessionId>, DeliverySettings),
        socket: DatagramSocket,
        rng: Rng,
        owner_state: Arc<OwnerState>,
    ) -> Self {
        let background = context.settings.receives_in_background();
        Self {
            context,
            opener: SessionOpener::new(topics, except, delivery),
            sockets: ReceiveSockets::new(socket),
            sessions: Vec::new(),
            ready_streams: ReadyStreams::default(),
            streams: 0,
            has_unasked: false,
            turn: 0,
            dormant: DormantSessions::default(),
            ended: 0,
            limiter: JoinLimiter::new(),
            ready: ReadyDeliveries::default(),
            is_paused: false,
            deliveries: Vec::new(),
            control: vec![0; CONTROL_BYTES].into_boxed_slice(),
            background_buffer: Box::default(),
            deadline: Nanos::MAX,
            changes: 0,
            reads: 0,
            rng,
            owner_state,
            reporting: Reporting::new(),
            background,
            unreadable: UnreadableDatagrams::default(),
            has_left: false,
        }
    }

    /// The sessions are the share of a receive thread, `index` of `count` shares.
    pub(crate) fn into_share(mut self, index: u32, count: u32) -> Self {
        self.opener.set_share(index, count);
        self
    }

    /// The receive thread with this index serves the sessions from now on; `None`: the conductor.
    pub(crate) fn set_thread(&mut self, thread: Option<usize>) {
        self.reporting.set_receive_thread(thread.map_or(0, |index| index as u64 + 1));
    }

    /// Joins a publisher of `topic`, or asks a joined one for the topic. The requests leave with
    /// [`send_control`](Self::send_control), so that many topics share one.
    ///
    /// # Errors
    /// If the system has no sockets or no random number for it.
    pub(crate) fn join(
        &mut self,
        source: &Source,
        topic: &str,
        now: Nanos,
    ) -> std::io::Result<Admission> {
        // Not an error: discovery reports topics of all the program's subscribers.
        // Found while the subscriber left: the publisher would wait for a receiver that is gone.
        if self.has_left || !self.opener.selects(source, topic) {
            return Ok(Admission::Joined);
        }
        let known = self.sessions.iter_mut().find(|session| session.is(source));
        if let Some(session) = known {
            if !session.add_topic(topic) {
                return Ok(self.refuse_topic());
            }
        } else {
            if !self.opener.topics().takes(topic) {
                self.opener.topics().refuse();
                return Ok(self.refuse_topic());
            }
            let (context, sockets) = (&self.context, &self.sockets);
            let admission = self.limiter.admit(context, sockets, &self.sessions, source, now);
            if admission != Admission::Joined {
                return Ok(admission);
            }
            // The group comes before the session: its first datagrams may follow the Join at once.
            self.sockets.join(&self.context, source)?;
            let session = match self.dormant.revive(&self.context, source, now)? {
                Some(mut session) => {
                    let _ = session.add_topic(topic);
                    session
                }
                None => {
                    // Of the system's: a publisher learns the number, and it is all that proves the
                    // receiver when it comes back. It must not tell those of other sessions.
                    let random = (process::random()?, process::random()?);
                    self.opener.open(&self.context, source, topic, random, now)?
                }
            };
            self.sessions.push(session);
            // Beside groups the own socket brings little, and a second one costs reads.
            let sessions = &self.sessions;
            let are_unicast = sessions.iter().all(|it| it.source().kind == TransportKind::Ru);
            self.sockets.own.seek_peer(are_unicast.then_some(PeerKind::Host));
            self.update_pause(now);
            self.changes += 1;
            self.reporting.start(&self.sessions, now);
        }
        Ok(Admission::Joined)
    }

    /// A pattern has as many topics as it may have. The conductor has discovery report the topic
    /// again when there is room.
    #[cold]
    fn refuse_topic(&self) -> Admission {
        self.context.telemetry.error(&self.opener.topics().refusal());
        Admission::Joined
    }

    /// Whether the session is joined, or being joined.
    pub(crate) fn has_session(&self, source: &Source) -> bool {
        self.sessions.iter().any(|session| session.is(source))
    }

    /// Fills the owner's empty queue: from `ready`, or else by one read of the sockets, of all of
    /// them for an owner that its descriptor has woken. Returns whether there may be more to read.
    #[inline]
    pub(crate) fn refill(&mut self, now: Nanos, queue: &mut DeliveryQueue, all: bool) -> bool {
        if all {
            self.sockets.look_at_own();
        }
        let may_have_more = self.fetch(now, queue);
        self.mark_delivered();
        may_have_more
    }

    /// All deliveries so far have gone to the owner.
    #[inline]
    pub(crate) fn mark_delivered(&mut self) {
        self.sessions.iter_mut().for_each(ReceiveSession::mark_delivered);
    }

    #[inline]
    fn fetch(&mut self, now: Nanos, queue: &mut DeliveryQueue) -> bool {
        // Older than anything in the sockets: order within a session depends on it.
        if !self.ready.is_empty() {
            self.ready.move_to(&mut queue.deliveries);
            return true;
        }
        if self.background {
            return false;
        }
        if self.is_paused {
            self.update_pause(now);
        }
        let has_read = self.read_once(now, &mut queue.buffer, &mut queue.deliveries);
        // Unread bytes in the sockets may hold the heartbeat that a deadline waits for: deadlines
        // are checked when the sockets are empty, and now and then under load.
        if self.deadline <= now && (!has_read || self.reads.is_multiple_of(DEADLINE_INTERVAL)) {
            self.on_time(now, &mut queue.deliveries);
        }
        // Deliveries go to the handler first; the end of the poll sends control frames after them.
        let has_worked = has_read || self.deadline <= now;
        self.changes += u64::from(has_worked);
        if queue.is_empty() && has_worked {
            self.send_control(now);
        }
        has_worked
    }

    /// Ends a poll: reports consumption if the queue `is_empty`, and sends control frames.
    pub(crate) fn finish_poll(&mut self, now: Nanos, is_empty: bool) {
        if is_empty {
            self.report_consumption(self.ready.is_empty());
        }
        self.send_control(now);
    }

    /// The handler has had `everything`, or else all up to the last mark; publishers learn of it
    /// with the next control frames.
    #[inline]
    pub(crate) fn report_consumption(&mut self, everything: bool) {
        self.sessions.iter_mut().for_each(|session| session.mark_consumed(everything));
    }

    /// Receives while the owner is elsewhere; called by the conductor. Returns the deadline of
    /// the next call, and whether there are new deliveries. A descriptor that watches what this has
    /// changed is replaced.
    pub(crate) fn drive_for_owner(&mut self, now: Nanos) -> (Nanos, bool) {
        let changes = self.changes();
        // Allocated at the first use: many owners never leave their sockets to the conductor.
        if self.background_buffer.is_empty() {
            self.background_buffer = tcp_receiver::read_buffer();
        }
        let mut buffer = std::mem::take(&mut self.background_buffer);
        let before = self.ready.len();
        self.read_for_owner(now, &mut buffer);
        self.check_deadlines(now);
        self.background_buffer = buffer;
        if self.changes() != changes {
            self.owner_state.replace_descriptor();
        }
        (self.deadline, self.ready.len() > before)
    }

    /// Reads the sockets in place of the owner; returns whether they had something.
    pub(crate) fn read_for_owner(&mut self, now: Nanos, buffer: &mut [u8]) -> bool {
        let (mut queued, mut reads) = (VecDeque::new(), 0);
        self.update_pause(now);
        self.sockets.look_at_own();
        while reads < BACKGROUND_READS
            && !self.is_behind()
            && self.read_once(now, buffer, &mut queued)
        {
            self.ready.add(&mut queued, buffer);
            reads += 1;
        }
        self.changes += reads as u64;
        reads > 0
    }

    /// Does what is due, and sends control frames; behind
    /// [`read_for_owner`](Self::read_for_owner).
    pub(crate) fn check_deadlines(&mut self, now: Nanos) {
        let mut queued = VecDeque::new();
        self.changes += u64::from(self.deadline <= now);
        self.on_time(now, &mut queued);
        // Only deliveries of a frame that is being read lie in a buffer.
        self.ready.add(&mut queued, &[]);
        self.send_control(now);
    }

    /// Deliveries of the reads in place of the owner.
    pub(crate) const fn ready(&mut self) -> &mut ReadyDeliveries {
        &mut self.ready
    }

    /// Whether the owner is so far behind that the sockets stay unread. What a publisher sends
    /// meanwhile waits there; the system drops the rest, or stops the publisher's connection.
    pub(crate) fn is_behind(&self) -> bool {
        self.ready.is_full(self.context.settings.window_bytes, self.sessions.len())
    }

    /// Has the sessions wait while the owner is too far behind.
    fn update_pause(&mut self, now: Nanos) {
        let is_paused = self.is_behind();
        if is_paused || self.is_paused {
            self.sessions.iter_mut().for_each(|session| session.set_paused(is_paused, now));
        }
        if is_paused != self.is_paused {
            (self.is_paused, self.deadline) = (is_paused, now);
        }
    }

    /// Reads once, from a socket that has something; returns whether one had. Deliveries point into
    /// the buffer, which the next read overwrites.
    ///
    /// Each socket is first in turn: one that is never empty must not hide the others.
    fn read_once(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        queued: &mut VecDeque<QueuedDelivery>,
    ) -> bool {
        self.reads = self.reads.wrapping_add(1);
        if self.sockets.own_is_first(self.reads) && self.read_own(now, buffer, queued) {
            return true;
        }
        let uses_own = self.sessions.iter().any(ReceiveSession::uses_own_socket);
        if self.streams > 0
            && (uses_own || !self.sockets.groups.is_empty())
            && self.reads.is_multiple_of(STREAMS_TURN)
            && self.read_streams(now, buffer, queued)
        {
            return true;
        }
        if let Some((length, from)) = self.sockets.read_groups(buffer) {
            self.on_datagrams(now, buffer, length, from, queued);
            return true;
        }
        let own_is_due = uses_own || self.sockets.own_is_due(self.reads);
        own_is_due && self.read_own(now, buffer, queued)
            || self.streams > 0 && self.read_streams(now, buffer, queued)
    }

    fn read_own(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        queued: &mut VecDeque<QueuedDelivery>,
    ) -> bool {
        let Some((length, from)) = self.sockets.read_own(buffer) else { return false };
        self.on_datagrams(now, buffer, length, from, queued);
        true
    }

    /// Reads a connection that has something: one that is not registered, or the next of those that
    /// the system names.
    fn read_streams(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        queued: &mut VecDeque<QueuedDelivery>,
    ) -> bool {
        if self.has_unasked && self.read_unasked(now, buffer, queued) {
            return true;
        }
        let mut has_looked = false;
        loop {
            let Some(number) = self.ready_streams.next() else {
                if has_looked {
                    return false;
                }
                has_looked = true;
                self.ready_streams.look();
                continue;
            };
            let at = self.sessions.iter().position(|session| session.number() == number);
            if at.is_some_and(|at| self.read_stream(at, now, buffer, queued)) {
                return true;
            }
        }
    }

    /// Reads the connections that are not registered: a single one, or new ones.
    fn read_unasked(
        &mut self,
        now: Nanos,
        buffer: &mut [u8],
        queued: &mut VecDeque<QueuedDelivery>,
    ) -> bool {
        let count = self.sessions.len();
        for step in 0..count {
            let at = (self.turn + step) % count;
            if self.sessions[at].is_read_unasked() && self.read_stream(at, now, buffer, queued) {
                self.turn = at + 1;
                return true;
            }
        }
        // Nothing is left in them: from here on the system tells. A single connection is read at
        // the price of being asked for.
        if self.streams > 1 {
            let ready = &mut self.ready_streams;
            self.sessions.iter_mut().for_each(|session| session.register(ready));
            self.has_unasked = self.sessions.iter().any(ReceiveSession::is_read_unasked);
        }
        false
    }

    fn read_stream(
        &mut self,
        at: usize,
        now: Nanos,
        buffer: &mut [u8],
        queued: &mut VecDeque<QueuedDelivery>,
    ) -> bool {
        let (session, is_idle) = (&mut self.sessions[at], self.ready_streams.take_idle());
        match session.read_tcp(now, (buffer, is_idle), &mut self.deliveries) {
            StreamRead::Bytes => {
                session.queue_deliveries(&mut self.deliveries, queued);
                return true;
            }
            StreamRead::Nothing => {}
            // Not by the next deadline, which may be far: the reconnect sets an earlier one.
            StreamRead::Broken => self.deadline = now,
        }
        false
    }

    /// Passes each frame of a datagram, or of a GRO run of datagrams, to its session.
    #[inline]
    fn on_datagrams(
        &mut self,
        now: Nanos,
        buffer: &[u8],
        length: usize,
        from: SocketAddr,
        queued: &mut VecDeque<QueuedDelivery>,
    ) {
        let loss = self.context.settings.artificial_loss;
        let mut rest = &buffer[..length];
        while let Some((frame, after)) = Frame::split(rest) {
            let is_lost = loss > 0 && self.rng.below(1000) < u64::from(loss);
            if !is_lost {
                let at = length - after.len() - frame.body.len();
                let mut sessions = self.sessions.iter_mut();
                if let Some(session) =
                    // The address is checked too: a host that knows the number could inject
                    // messages otherwise.
                    sessions.find(|it| it.number() == frame.session && it.is_from(from))
                {
                    session.on_frame(now, &frame, at, &mut self.deliveries);
                    session.queue_deliveries(&mut self.deliveries, queued);
                }
            }
            rest = after;
        }
        if !rest.is_empty() {
            let (from, telemetry) = (from.ip(), &self.context.telemetry);
            let is_known = || self.sessions.iter().any(|it| it.source().address.ip() == from);
            self.unreadable.refuse(rest, from, is_known, telemetry);
        }
    }

    #[cold]
    fn on_time(&mut self, now: Nanos, queued: &mut VecDeque<QueuedDelivery>) {
        if self.reporting.due() <= now {
            self.reporting.update(&mut self.sessions, &self.sockets, now);
        }
        for session in &mut self.sessions {
            session.on_time(now, &mut self.deliveries);
            session.queue_deliveries(&mut self.deliveries, queued);
        }
    }

    /// Sends the sessions' control frames, and removes sessions that have ended.
    #[inline]
    pub(crate) fn send_control(&mut self, now: Nanos) {
        let mut deadline = Nanos::MAX;
        let mut has_ended = false;
        (self.streams, self.has_unasked) = (0, false);
        for session in &mut self.sessions {
            self.streams += usize::from(session.tcp().is_some());
            self.has_unasked |= session.is_read_unasked();
            session.send_control(now, &mut self.sockets.own, &mut self.control);
            deadline = deadline.min(session.next_deadline().unwrap_or(Nanos::MAX));
            has_ended |= session.is_over();
            if session.has_gap_backlog() {
                self.reporting.hurry();
            }
        }
        let deadline = deadline.min(self.reporting.due()).min(self.sockets.own.send_rest(now));
        self.changes += u64::from(deadline != self.deadline);
        self.deadline = deadline;
        if has_ended {
            self.remove_ended(now);
        }
    }

    #[cold]
    fn remove_ended(&mut self, now: Nanos) {
        // Discovery forgets them: publishers that are still advertised are found anew.
        for session in self.sessions.iter().filter(|it| it.is_over() && it.may_come_back()) {
            self.owner_state.add_lost(session.number());
        }
        // Before the sessions go: their last gaps would remain unlogged.
        self.reporting.collect_gaps(&mut self.sessions, now);
        for session in self.sessions.extract_if(.., |session| session.is_over()) {
            self.ended += 1;
            let gone =
                if session.may_be_revived() { self.dormant.keep(session) } else { Some(session) };
            if let Some(mut session) = gone {
                session.close(now, &self.context.closing);
                self.reporting.add_past(&session);
            }
        }
        // Their sockets are not to be waited for any more, and may stay open for a while.
        self.changes += 1;
        let sessions = &self.sessions;
        let dropped =
            self.sockets.leave(|group| sessions.iter().any(|it| it.group() == Some(group)));
        self.reporting.add_past_drops(dropped);
    }

    /// Leaves all sessions.
    pub(crate) fn leave(&mut self, now: Nanos) {
        self.has_left = true;
        self.sessions.iter_mut().for_each(ReceiveSession::leave);
        self.send_control(now);
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// A number that changes whenever the [sockets](Self::descriptors) or the
    /// [deadline](Self::next_deadline) may have changed.
    pub(crate) fn changes(&self) -> u64 {
        self.changes + self.sockets.own.opened()
    }

    /// Adds the sockets to sleep on, and whether to wait for room to write.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        self.sockets.descriptors(into);
        let connections = self.sessions.iter().filter_map(ReceiveSession::tcp);
        into.extend(connections.filter_map(TcpReceiver::descriptor));
    }

    /// Counters over all sessions, ended ones included.
    pub(crate) fn counters(&self) -> SubscriberCounters {
        self.reporting.counters(self.sessions.iter().chain(self.dormant.iter()), &self.sockets)
    }

    /// The oldest unread gap report. Reports are kept from the first call on.
    pub(crate) fn next_gap(&mut self, now: Nanos) -> Option<GapReport> {
        self.reporting.next_gap(&mut self.sessions, now)
    }

    pub(crate) fn record_error(&self, text: &str) {
        self.context.telemetry.error(text);
    }

    /// Discovery has to find the session anew.
    pub(crate) fn report_lost(&mut self, session: u64) {
        self.owner_state.add_lost(session);
    }

    /// Number of sessions that have ended so far.
    pub(crate) const fn ended(&self) -> u64 {
        self.ended
    }

    /// All sessions: joined, being joined, or kept in case their publishers come back.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.sessions.iter().chain(self.dormant.iter()).map(ReceiveSession::number)
    }
}
