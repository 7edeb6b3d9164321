//! One session, as a subscriber has it.

use crate::Kind;
mod telling;

use crate::channel::Channel;
use crate::counters::SubscriberCounters;
use crate::hand::Item;
use crate::place::Place;
use crate::settings::nanos;
use crate::streams::frames;
use crate::telemetry::Board;
use lanecast_os::udp::UdpSocket;
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::{Delivery, Phase, Receiver, ReceiverSettings};
use lanecast_transport::{CloseReason, SessionId, Stream, TopicId};
use lanecast_wire::net::Frame;
use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

/// Where a session comes from, as resolution tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) kind: Kind,
    /// The session's number.
    pub(crate) session: u64,
    /// The publisher's control address.
    pub(crate) address: SocketAddr,
    /// The group of [`Kind::Rm`].
    pub(crate) group: Option<SocketAddr>,
    pub(crate) pid: u32,
}

/// For people.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, session, address, .. } = self;
        match self.group {
            Some(group) => write!(f, "{kind}:{address}:{group}:{session:016x}"),
            None => write!(f, "{kind}:{address}:{session:016x}"),
        }
    }
}

/// A session's state machine, and its connection if it has one.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its number within the subscriber.
    index: u32,
    source: Source,
    receiver: Receiver,
    channel: Option<Channel>,
    /// How far what is in the application's hand goes.
    mark: u64,
    /// The publisher has closed, or let the subscriber go.
    is_ended: bool,
    board: Board<SubscriberCounters>,
    /// How many topics it is joined to.
    joined: u64,
    /// The first topic that it has joined, by its slot, and whether there were others.
    first: Option<(u32, bool)>,
}

impl Session {
    pub(crate) fn open(
        place: &Place,
        index: u32,
        source: &Source,
        topics: &[&str],
        seed: u64,
        now: Nanos,
    ) -> io::Result<Self> {
        let channel = match source.kind {
            Kind::Tcp => Some(Channel::open(place, source.address, now)?),
            Kind::Rm | Kind::Ru => None,
        };
        let settings = &place.settings;
        let receiver = Receiver::new(
            ReceiverSettings {
                receiver: seed.max(1),
                window_datagrams: place.window_datagrams,
                reorder_bytes_max: settings.window_bytes,
                recovery: nanos(settings.recovery),
                liveness: nanos(settings.liveness),
                tag: settings.tag,
                late_join: settings.late_join,
                stream: source.kind == Kind::Tcp,
                longest_message_max: settings.window_bytes.max(1 << 20),
                multicast: source.kind == Kind::Rm,
                seed,
                ..ReceiverSettings::default()
            },
            source.session,
            source.address,
            topics,
            now,
        );
        let board = place.telemetry.subscriber(source);
        Ok(Self {
            index,
            source: *source,
            receiver,
            channel,
            mark: 0,
            is_ended: false,
            board,
            joined: 0,
            first: None,
        })
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

    /// Whether frames of a datagram from there may be this session's.
    #[inline]
    pub(crate) fn hears(&self, from: SocketAddr) -> bool {
        from == self.source.address
    }

    /// Whether the publisher has not let it in yet.
    pub(crate) fn is_joining(&self) -> bool {
        self.receiver.phase() == Phase::Joining
    }

    /// Whether it waits for something on the subscriber's own socket.
    pub(crate) fn is_unsettled(&self) -> bool {
        self.source.kind == Kind::Ru || self.receiver.phase() == Phase::Joining
    }

    pub(crate) fn want(&mut self, topic: &str) {
        self.receiver.subscribe(topic);
    }

    #[inline]
    pub(crate) fn on_frame(
        &mut self,
        now: Nanos,
        frame: &Frame<'_>,
        at: usize,
        news: &mut Vec<Delivery>,
    ) {
        self.receiver.on_frame(now, frame, at, news);
    }

    /// Takes in the whole frames of a stream; gives how many bytes they took.
    pub(crate) fn on_stream(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        news: &mut Vec<Delivery>,
    ) -> usize {
        let origin = bytes.as_ptr() as usize;
        let receiver = &mut self.receiver;
        let number = self.source.session;
        let taken = frames(bytes, |frame| {
            if frame.session == number {
                receiver.on_frame(now, frame, frame.body.as_ptr() as usize - origin, news);
            }
        });
        taken.unwrap_or_else(|_| {
            self.break_off(now);
            bytes.len()
        })
    }

    /// Moves what one frame brought behind the other items.
    #[inline]
    pub(crate) fn hand_over(&mut self, news: &mut Vec<Delivery>, items: &mut VecDeque<Item>) {
        for delivery in news.drain(..) {
            let stream = match &delivery {
                Delivery::Joined { slot } => Some(self.stream(*slot)),
                Delivery::Lost { .. } | Delivery::Left { .. } => {
                    self.note(&delivery);
                    let over = |why| matches!(why, CloseReason::Closed | CloseReason::Evicted);
                    self.is_ended |= matches!(delivery, Delivery::Left { why, .. } if over(why));
                    None
                }
                _ => None,
            };
            items.push_back(Item { session: self.index, delivery, stream });
        }
    }

    fn stream(&mut self, slot: u32) -> Arc<Stream> {
        let topic = self.receiver.topic(slot);
        self.board.add_topic(topic.name());
        self.joined += 1;
        let (first, several) = self.first.unwrap_or((slot, false));
        self.first = Some((first, several || first != slot));
        Arc::new(Stream {
            session: SessionId(self.source.session),
            topic: topic.name().to_owned(),
            topic_id: TopicId(topic.number().unwrap_or_default()),
            pid: self.source.pid,
            source: self.source.to_string(),
        })
    }

    /// What was handed over so far is in the application's hand.
    #[inline]
    pub(crate) fn mark(&mut self) {
        self.mark = self.receiver.delivered_to();
    }

    /// The application is done with all that it had in hand, and that is `everything` if nothing
    /// was laid ready since.
    #[inline]
    pub(crate) fn has_been_read(&mut self, everything: bool) {
        if everything {
            self.receiver.consumed_all();
        } else {
            self.receiver.consumed_to(self.mark);
        }
    }

    #[inline]
    pub(crate) fn on_time(&mut self, now: Nanos, news: &mut Vec<Delivery>) {
        if self.receiver.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.receiver.on_time(now, news);
        }
        self.look_after_channel(now);
    }

    /// Makes another connection in place of one that is broken, or silent for too long.
    #[inline]
    fn look_after_channel(&mut self, now: Nanos) {
        let Some(channel) = &mut self.channel else { return };
        if channel.retry(now, self.receiver.liveness()) {
            self.receiver.reconnected(now);
        }
        let is_silent = self.receiver.stream_timeout_at().is_some_and(|at| at <= now);
        if is_silent && channel.has_bytes() {
            self.receiver.bytes_arrived(now);
        } else if is_silent || channel.is_overdue(now) {
            self.break_off(now);
        }
        let is_refused = self.channel.as_ref().is_some_and(Channel::is_refused);
        self.receiver.set_connection_refused(is_refused);
    }

    /// The publisher, which seemed to be dead, is heard of again: goes on where the session was.
    /// False, and nothing happens, if that is not the same session, or was never joined.
    ///
    /// # Errors
    /// If its connection cannot be had; it is found again with the next advertisement.
    pub(crate) fn revive(
        &mut self,
        place: &Place,
        source: &Source,
        now: Nanos,
    ) -> io::Result<bool> {
        let same = (source.session, source.address, source.group);
        if same != (self.source.session, self.source.address, self.source.group)
            || source.kind != self.source.kind
            || !self.receiver.can_be_revived()
        {
            return Ok(false);
        }
        if source.kind == Kind::Tcp {
            self.channel = Some(Channel::open(place, source.address, now)?);
        }
        self.receiver.revive(now);
        self.receiver.reconnected(now);
        Ok(true)
    }

    /// Whether it may go on should its publisher be heard of again.
    pub(crate) fn may_be_revived(&self) -> bool {
        !self.is_ended && self.receiver.can_be_revived()
    }

    /// Sends what there is to say to the publisher.
    #[inline]
    pub(crate) fn answer(&mut self, now: Nanos, own: &UdpSocket, control: &mut [u8]) {
        while let Some(length) = self.receiver.next_transmit(now, control) {
            match &mut self.channel {
                Some(channel) => channel.write(&control[..length]),
                // What the system does not take is lost on the way, and asked for again.
                None => drop(own.send_to(&control[..length], self.source.address)),
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let channel = self.channel.as_ref().and_then(Channel::next_deadline);
        match (self.receiver.next_deadline(), channel) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    /// Whether nothing will come of it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.receiver.is_done()
    }

    /// Whether the publisher may be heard again once it is over.
    pub(crate) const fn may_come_back(&self) -> bool {
        !self.is_ended
    }

    pub(crate) fn leave(&mut self) {
        self.receiver.leave();
    }

    pub(crate) const fn channel(&self) -> Option<&Channel> {
        self.channel.as_ref()
    }

    /// Reads from the session's connection, behind what was left of the last frame.
    pub(crate) fn read_channel(&mut self, now: Nanos, buffer: &mut [u8]) -> Option<usize> {
        let channel = self.channel.as_mut()?;
        match channel.read(now, buffer) {
            Ok(length) => {
                if length.is_some() {
                    self.receiver.bytes_arrived(now);
                }
                length
            }
            Err(_) => {
                self.break_off(now);
                None
            }
        }
    }

    pub(crate) fn keep_partial(&mut self, bytes: &[u8]) {
        if let Some(channel) = &mut self.channel {
            channel.keep_partial(bytes);
        }
    }

    fn break_off(&mut self, now: Nanos) {
        if let Some(channel) = &mut self.channel {
            channel.break_off(now);
            self.receiver.disconnected();
        }
    }
}
