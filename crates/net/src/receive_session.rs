//! One session of a subscriber: the receiving state machine of `lanecast-protocol`, its TCP
//! connection if it has one, and its counters file.
//!
//! Owned by `ReceiveSessions`. Frames go in, deliveries and control frames come out.

use crate::context::NetContext;
use crate::counters::SubscriberCounters;
use crate::datagram_socket::DatagramSocket;
use crate::delivery_queue::QueuedDelivery;
use crate::lingering_close::ClosingConnections;
use crate::ready_streams::ReadyStreams;
use crate::settings::{DeliverySettings, nanos};
use crate::source::{Source, TransportKind};
use crate::tcp_receiver::TcpReceiver;
use crate::telemetry::CounterFile;
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{Delivery, GapEnd, GapRecord, Phase, Receiver, ReceiverSettings};
use lanecast_stats::{Loss, LossCause, LossOutcome, unix_ns};
use lanecast_transport::{AdmittedTopics, CloseReason, LossReason, SessionId, Stream, TopicId};
use lanecast_wire::net::Frame;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Least limit of a message's length: a publisher's window may be larger than the subscriber's.
const LONGEST_MESSAGE_MIN: usize = 1 << 20;

/// A session's state machine and its resources.
#[derive(Debug)]
pub(crate) struct ReceiveSession {
    /// Index in the subscriber.
    index: u32,
    source: Source,
    receiver: Receiver,
    tcp: Option<TcpReceiver>,
    /// Position up to which deliveries are in the owner's queue.
    delivered: u64,
    /// The publisher has closed, or evicted the subscriber.
    is_ended: bool,
    counter_file: CounterFile<SubscriberCounters>,
    /// Number of joined topics.
    joined: u64,
    /// Slot of the first joined topic, and whether another topic was joined as well.
    first: Option<(u32, bool)>,
    /// Topics that patterns have brought.
    admitted: AdmittedTopics,
}

/// Result of a read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamRead {
    /// Bytes came.
    Bytes,
    /// Nothing came.
    Nothing,
    /// The connection has ended: the session connects anew, at a time that is due earlier than any
    /// that was known before.
    Broken,
}

impl ReceiveSession {
    pub(crate) fn open(
        context: &NetContext,
        index: u32,
        source: &Source,
        (topics, mut admitted, delivery): (&[&str], AdmittedTopics, DeliverySettings),
        (receiver, seed): (u64, u64),
        now: Nanos,
    ) -> io::Result<Self> {
        let tcp = match source.kind {
            TransportKind::Tcp => Some(TcpReceiver::open(context, source.address, now)?),
            TransportKind::Rm | TransportKind::Ru => None,
        };
        let settings = &context.settings;
        let receiver = Receiver::new(
            ReceiverSettings {
                // Zero names no receiver.
                receiver: receiver.max(1),
                window_datagrams: context.window_datagrams,
                reorder_bytes_max: settings.window_bytes,
                recovery: nanos(settings.recovery),
                give_up_after: delivery.give_up_after.map(nanos),
                order: delivery.order,
                liveness: nanos(settings.liveness),
                tag: settings.tag,
                late_join: settings.late_join,
                // TCP repairs its losses itself: a gap in a stream was skipped, and no NAK asks for
                // it.
                stream: source.kind == TransportKind::Tcp,
                longest_message_max: settings.window_bytes.max(LONGEST_MESSAGE_MIN),
                multicast: source.kind == TransportKind::Rm,
                seed,
                ..ReceiverSettings::default()
            },
            source.session,
            source.address,
            topics,
            now,
        );
        let counter_file = context.telemetry.subscriber(source);
        // The caller has found room for them.
        topics.iter().for_each(|topic| _ = admitted.admit(topic));
        Ok(Self {
            index,
            source: *source,
            receiver,
            tcp,
            delivered: 0,
            is_ended: false,
            counter_file,
            joined: 0,
            first: None,
            admitted,
        })
    }

    pub(crate) const fn source(&self) -> &Source {
        &self.source
    }

    pub(crate) fn is(&self, source: &Source) -> bool {
        self.source.session == source.session
    }

    pub(crate) const fn number(&self) -> u64 {
        self.source.session
    }

    pub(crate) const fn group(&self) -> Option<SocketAddr> {
        self.source.group
    }

    /// Whether a datagram from `address` may belong to the session. None is of a connection: any
    /// program on the publisher's host may have its port for datagrams, and TLS covers none.
    #[inline]
    pub(crate) fn is_from(&self, address: SocketAddr) -> bool {
        self.source.kind != TransportKind::Tcp && address == self.source.address
    }

    /// Whether the publisher has not accepted the join yet.
    pub(crate) fn is_joining(&self) -> bool {
        self.receiver.phase() == Phase::Joining
    }

    /// Whether the session expects datagrams at the subscriber's own socket.
    pub(crate) fn uses_own_socket(&self) -> bool {
        self.source.kind == TransportKind::Ru || self.is_joining()
    }

    /// Asks the publisher for another topic; false if a pattern brings it, and has no room for it.
    pub(crate) fn add_topic(&mut self, topic: &str) -> bool {
        let has_room = self.receiver.has_topic(topic) || self.admitted.admit(topic);
        if has_room {
            self.receiver.subscribe(topic);
        }
        has_room
    }

    /// The publisher's frames stay unread from now on, or are read again.
    pub(crate) fn set_paused(&mut self, is_paused: bool, now: Nanos) {
        self.receiver.set_paused(is_paused, now);
    }

    /// Passes a frame to the state machine; its body lies at `at` in the read buffer.
    #[inline]
    pub(crate) fn on_frame(
        &mut self,
        now: Nanos,
        frame: &Frame<'_>,
        at: usize,
        deliveries: &mut Vec<Delivery>,
    ) {
        self.receiver.on_frame(now, frame, at, deliveries);
    }

    /// Reads once from the TCP connection; `is_idle`: the subscriber's last read found nothing.
    pub(crate) fn read_tcp(
        &mut self,
        now: Nanos,
        (buffer, is_idle): (&mut [u8], bool),
        deliveries: &mut Vec<Delivery>,
    ) -> StreamRead {
        let Some(tcp) = &mut self.tcp else { return StreamRead::Nothing };
        let bytes = match tcp.read(now, buffer, is_idle) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return StreamRead::Nothing,
            Err(error) => {
                self.fail(now, &error);
                return StreamRead::Broken;
            }
        };
        let (receiver, number) = (&mut self.receiver, self.source.session);
        // Any bytes are a sign of life, also those of an incomplete frame.
        receiver.bytes_arrived(now);
        let origin = bytes.as_ptr() as usize;
        let split = tcp.split(bytes, |frame| {
            // A connection carries one session: frames of another are ignored.
            if frame.session == number {
                receiver.on_frame(now, frame, frame.body.as_ptr() as usize - origin, deliveries);
            }
        });
        // Without a valid header the start of the next frame is unknown: only a new connection
        // helps.
        if let Err(error) = split {
            self.fail(now, &error);
        }
        StreamRead::Bytes
    }

    /// Whether the session's connection has to be read unasked.
    pub(crate) fn is_read_unasked(&self) -> bool {
        self.tcp.as_ref().is_some_and(TcpReceiver::is_read_unasked)
    }

    /// Has the system name the session's connection when it is readable.
    pub(crate) fn register(&mut self, ready: &mut ReadyStreams) {
        let number = self.number();
        if let Some(tcp) = self.tcp.as_mut().filter(|tcp| tcp.is_read_unasked()) {
            tcp.register(ready, number);
        }
    }

    /// Appends the deliveries of one frame to the subscriber's queue.
    #[inline]
    pub(crate) fn queue_deliveries(
        &mut self,
        deliveries: &mut Vec<Delivery>,
        queue: &mut VecDeque<QueuedDelivery>,
    ) {
        for delivery in deliveries.drain(..) {
            // The owner handles deliveries later, without this session: the stream goes along.
            let stream = match &delivery {
                Delivery::Joined { slot } => Some(self.stream(*slot)),
                Delivery::Lost { .. } | Delivery::Left { .. } => {
                    self.record_end(&delivery);
                    None
                }
                _ => None,
            };
            queue.push_back(QueuedDelivery { session: self.index, delivery, stream });
        }
    }

    /// The stream of a topic that has just been joined.
    fn stream(&mut self, slot: u32) -> Arc<Stream> {
        let topic = self.receiver.topic(slot);
        self.counter_file.add_topic(topic.name());
        self.joined += 1;
        let (first, several) = self.first.unwrap_or((slot, false));
        self.first = Some((first, several || first != slot));
        Arc::new(Stream {
            session: SessionId(self.source.session),
            topic: Stream::visible_topic(topic.name()).to_owned(),
            topic_id: TopicId(topic.number().unwrap_or_default()),
            pid: self.source.pid,
            source: self.source.to_string(),
        })
    }

    /// Logs lost messages, and counts ended streams.
    #[cold]
    fn record_end(&mut self, delivery: &Delivery) {
        match delivery {
            Delivery::Lost { slot, first, count, why } if self.counter_file.logs_losses() => {
                self.counter_file.loss(&Loss {
                    source: &self.source.to_string(),
                    topic: self.receiver.topic(*slot).name(),
                    session: self.source.session,
                    unix_ns: unix_ns(),
                    after_ns: 0,
                    first: *first,
                    count: Some(*count),
                    end: LossOutcome::Reported(loss_reason(*why)),
                });
            }
            Delivery::Left { why, .. } => {
                self.joined = self.joined.saturating_sub(1);
                // Only these two are final: after a timeout the publisher may be advertised again.
                self.is_ended |= matches!(why, CloseReason::Closed | CloseReason::Evicted);
            }
            _ => {}
        }
    }

    /// All deliveries so far are in the owner's queue.
    #[inline]
    pub(crate) fn mark_delivered(&mut self) {
        self.delivered = self.receiver.delivered_to();
    }

    /// The owner's handler has had its whole queue, and with it `everything` unless the conductor
    /// has queued more since.
    #[inline]
    pub(crate) fn mark_consumed(&mut self, everything: bool) {
        if everything {
            self.receiver.consumed_all();
        } else {
            // Deliveries that the conductor has received since are still unread.
            self.receiver.consumed_to(self.delivered);
        }
    }

    #[inline]
    pub(crate) fn on_time(&mut self, now: Nanos, deliveries: &mut Vec<Delivery>) {
        if self.receiver.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.receiver.on_time(now, deliveries);
        }
        self.maintain_connection(now);
    }

    /// Replaces a TCP connection that is broken, or silent for too long.
    #[inline]
    fn maintain_connection(&mut self, now: Nanos) {
        let Some(tcp) = &mut self.tcp else { return };
        // The state machine joins anew by the new connection, at the position that it has reached.
        if tcp.reconnect(now, self.receiver.liveness()) {
            self.receiver.reconnected(now);
        }
        let is_silent = self.receiver.stream_timeout_at().is_some_and(|at| at <= now);
        if is_silent && tcp.has_bytes() {
            // The subscriber is late, not the publisher.
            self.receiver.bytes_arrived(now);
        } else if is_silent || tcp.connect_timed_out(now) {
            self.disconnect(now);
        }
        let is_refused = self.tcp.as_ref().is_some_and(TcpReceiver::is_refused);
        self.receiver.set_connection_refused(is_refused);
    }

    /// Resumes a session that timed out, as its publisher is advertised again. Returns false, and
    /// changes nothing, if `source` is another session or this one was never joined.
    ///
    /// # Errors
    /// If the system has no connection for it; the next advertisement finds it again.
    pub(crate) fn revive(
        &mut self,
        context: &NetContext,
        source: &Source,
        now: Nanos,
    ) -> io::Result<bool> {
        // An equal session number at another address may be forged: that one is joined as a
        // stranger.
        let same = (source.session, source.address, source.group);
        if same != (self.source.session, self.source.address, self.source.group)
            || source.kind != self.source.kind
            || !self.receiver.can_be_revived()
        {
            return Ok(false);
        }
        if source.kind == TransportKind::Tcp {
            // Before any change of state: after an error the session is as dormant as before.
            self.tcp = Some(TcpReceiver::open(context, source.address, now)?);
        }
        self.receiver.revive(now);
        self.receiver.reconnected(now);
        Ok(true)
    }

    /// Whether the session can resume if its publisher is advertised again.
    pub(crate) fn may_be_revived(&self) -> bool {
        !self.is_ended && self.receiver.can_be_revived()
    }

    /// Sends the control frames that are due.
    #[inline]
    pub(crate) fn send_control(&mut self, now: Nanos, own: &mut DatagramSocket, buffer: &mut [u8]) {
        while let Some(length) = self.receiver.next_transmit(now, buffer) {
            match &mut self.tcp {
                Some(tcp) => tcp.write(&buffer[..length]),
                // A frame that the system refuses counts as lost on the way.
                None => drop(own.send_to(&buffer[..length], self.source.address)),
            }
        }
        // Last: the frames carry the acknowledgement along.
        if let Some(tcp) = &mut self.tcp {
            tcp.finish_read();
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let tcp = self.tcp.as_ref().and_then(TcpReceiver::next_deadline);
        match (self.receiver.next_deadline(), tcp) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether nothing more will come.
    pub(crate) fn is_over(&self) -> bool {
        self.receiver.is_done()
    }

    /// Whether an ended session's publisher may be heard again.
    pub(crate) const fn may_come_back(&self) -> bool {
        !self.is_ended
    }

    pub(crate) fn leave(&mut self) {
        self.receiver.leave();
    }

    /// Closes the connection of a session that is over, behind its last frames.
    pub(crate) fn close(&mut self, now: Nanos, closing: &ClosingConnections) {
        if let Some((stream, unsent)) = self.tcp.take().and_then(TcpReceiver::into_stream) {
            closing.add(now, stream, &unsent);
        }
    }

    pub(crate) const fn tcp(&self) -> Option<&TcpReceiver> {
        self.tcp.as_ref()
    }

    #[cold]
    fn fail(&mut self, now: Nanos, error: &io::Error) {
        if let Some(tcp) = &mut self.tcp {
            tcp.fail(now, error);
            self.receiver.disconnected();
        }
    }

    fn disconnect(&mut self, now: Nanos) {
        if let Some(tcp) = &mut self.tcp {
            tcp.disconnect(now);
            self.receiver.disconnected();
        }
    }

    /// The session's counters, without the drops of its socket.
    pub(crate) fn counters(&self) -> SubscriberCounters {
        SubscriberCounters {
            received: *self.receiver.counters(),
            topics: self.joined,
            missing: self.receiver.missing(),
            kernel_drops: 0,
            receive_thread: 0,
        }
    }

    pub(crate) fn update_counter_file(
        &mut self,
        now: Nanos,
        kernel_drops: u64,
        receive_thread: u64,
    ) {
        let counters = SubscriberCounters { kernel_drops, receive_thread, ..self.counters() };
        self.counter_file.update(now, &counters);
    }

    /// Whether the session has a counters file, or logs losses.
    pub(crate) const fn is_reported(&self) -> bool {
        self.counter_file.due() != Nanos::MAX || self.counter_file.logs_losses()
    }

    /// Whether gap records have to be read soon.
    #[inline]
    pub(crate) fn has_gap_backlog(&self) -> bool {
        self.receiver.has_gap_backlog()
    }

    /// The oldest unread gap record. Recovered and lost gaps are logged.
    pub(crate) fn next_gap(&mut self, now: Nanos) -> Option<GapRecord> {
        let record = self.receiver.next_gap_record()?;
        let end = match record.end {
            GapEnd::Open => return Some(record),
            GapEnd::Late => LossOutcome::Late,
            GapEnd::Repaired => LossOutcome::Repaired,
            GapEnd::Rebuilt => LossOutcome::Rebuilt,
            GapEnd::Lost(why) => LossOutcome::GivenUp(loss_reason(why)),
        };
        if self.counter_file.logs_losses() {
            self.counter_file.loss(&Loss {
                source: &self.source.to_string(),
                topic: self.topic_of_datagrams(),
                session: self.source.session,
                // The record has a time of the monotonic clock, the log needs one of the calendar.
                unix_ns: unix_ns().saturating_sub(now.saturating_sub(record.noticed)),
                after_ns: record.after,
                first: record.first,
                count: Some(record.count),
                end,
            });
        }
        Some(record)
    }

    /// The topic of every datagram, or nothing: a group's datagrams may be of any topic, others
    /// are only of joined ones.
    fn topic_of_datagrams(&self) -> &str {
        match self.first {
            Some((slot, false)) if self.source.kind != TransportKind::Rm => {
                self.receiver.topic(slot).name()
            }
            _ => "",
        }
    }
}

const fn loss_reason(why: LossReason) -> LossCause {
    match why {
        LossReason::GaveUp => LossCause::GaveUp,
        LossReason::Gone => LossCause::Gone,
        LossReason::Skipped => LossCause::Skipped,
        LossReason::Evicted => LossCause::Evicted,
        // `Damaged`, and reasons that only other transports give.
        _ => LossCause::Damaged,
    }
}
