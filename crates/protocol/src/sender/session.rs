//! State of one session, shared by the parts of the sender: its topics, send window, receivers and
//! connections, the queue of control frames, and flow control over them.

use super::config::{Distribution, Pacing, SenderSettings};
use super::connections::Connections;
use super::control_queue::{self, ControlQueue};
use super::counters::SenderCounters;
use super::departed::{Departed, DepartedReceivers};
use super::heartbeat_timer::HeartbeatTimer;
use super::packetizer::Packetizer;
use super::parity_encoder::{self, ParityEncoder};
use super::plan::Planned;
use super::receiver_state::{Peer, ReceiverState};
use super::uncounted::Uncounted;
use super::window::Window;
use crate::round_trip::RoundTrip;
use crate::sequence::{before, earlier, later};
use crate::{MICROSECOND, Nanos};
use lanecast_transport::{Departure, DepartureReason, Membership, Progress};
use lanecast_wire::net::{
    DATAGRAM_MIN, EjectBody, FEC_DATAGRAM_MAX, FRAME_MAX, FrameWriter, Kind, flag,
};
use std::collections::BTreeMap;

/// Shortest time from the last data to the first heartbeat.
const FIRST_HEARTBEAT_MIN: Nanos = 50 * MICROSECOND;

/// Longest datagram: the longest UDP payload, rounded down to the window's alignment.
const DATAGRAM_MAX: usize = 65_504;
/// Fewest of the longest datagrams that the window holds.
const WINDOW_DATAGRAMS_MIN: usize = 8;
/// A message may take the window's size divided by this.
const LONGEST_PART: usize = 4;

/// State of one session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) settings: SenderSettings,
    pub(super) packetizer: Packetizer,
    /// Topic names by number, and numbers by name.
    pub(super) names: Vec<Box<str>>,
    pub(super) numbers: BTreeMap<Box<str>, u32>,
    pub(super) receivers: Vec<ReceiverState>,
    pub(super) departed: DepartedReceivers,
    /// The receivers as the publisher's subscribers, and the number of them so far.
    pub(super) membership: Membership,
    pub(super) subscribers: u64,
    /// Topic and length of the last message refused, until an event tells of the room.
    pub(super) refused: Option<(u32, usize)>,
    /// Number of joins and departures so far.
    pub(super) membership_changes: u64,
    pub(super) connections: Connections,
    pub(super) control: ControlQueue,
    /// Parity of the datagrams.
    pub(super) parity: Option<Box<ParityEncoder>>,
    /// Handed out by `next_transmit`, and not confirmed as sent.
    pub(super) planned: Option<Planned>,
    /// Next sequence to send to the group.
    pub(super) sent: u64,
    /// Sequence that the deciding receiver has read up to; `None` if no receiver decides.
    consumed: Option<u64>,
    /// Sequence up to which the group may be sent to; `None`: no limit.
    group_limit: Option<u64>,
    /// A message was refused for want of room since `consumed` last changed.
    pub(super) was_refused: bool,
    /// Time at which new data was sent last.
    pub(super) data_sent_at: Nanos,
    /// Heartbeats to the group; unicast receivers have timers of their own.
    pub(super) group_heartbeat: HeartbeatTimer,
    /// Longest round trip that a receiver has reported.
    round_trip: Option<Nanos>,
    pub(super) closed: bool,
    /// Time of the last call of `on_time`.
    polled_at: Nanos,
    pub(super) counters: SenderCounters,
    /// Messages that reports of completion do not count.
    pub(super) uncounted: Uncounted,
}

impl Session {
    /// Creates a session whose datagrams and messages fit its window.
    pub(super) fn new(mut settings: SenderSettings, now: Nanos) -> Self {
        let longest = match settings.distribution {
            Distribution::Stream => FRAME_MAX,
            Distribution::Multicast(_) | Distribution::Unicast => DATAGRAM_MAX,
        };
        let datagram = settings.datagram_bytes.clamp(DATAGRAM_MIN, longest);
        // Several of the longest datagrams must fit: one is open while others wait for the
        // receivers.
        let bytes = settings.window_bytes.clamp(datagram * WINDOW_DATAGRAMS_MIN, 1 << 40);
        let window = Window::new(bytes, settings.first_sequence);
        let window = window.with_envelope(settings.envelope_bytes);
        // A message needs all its room at once: near the window's size it might never find it.
        let longest = settings.longest_message.min(window.bytes.len() / LONGEST_PART);
        settings.datagram_bytes = datagram;
        let has_parity = settings.distribution != Distribution::Stream;
        let fec = settings.fec.filter(|_| has_parity && datagram <= FEC_DATAGRAM_MAX);
        let parity = fec.map(|fec| Box::new(ParityEncoder::new(fec)));
        // Parity frames keep to the limit, so the datagrams that they protect are shorter.
        let room = if parity.is_some() { parity_encoder::OVERHEAD } else { 0 };
        let packetizer = Packetizer::new(window, settings.session, datagram - room, longest);
        Self {
            packetizer,
            names: Vec::new(),
            numbers: BTreeMap::new(),
            receivers: Vec::new(),
            departed: DepartedReceivers::default(),
            membership: Membership::default(),
            subscribers: 0,
            refused: None,
            membership_changes: 0,
            connections: Connections::default(),
            control: ControlQueue::default(),
            parity,
            planned: None,
            sent: settings.first_sequence,
            consumed: None,
            group_limit: None,
            was_refused: false,
            data_sent_at: now,
            group_heartbeat: HeartbeatTimer::new(now, settings.heartbeat),
            round_trip: None,
            closed: false,
            polled_at: now,
            counters: SenderCounters::default(),
            uncounted: Uncounted::default(),
            settings,
        }
    }

    pub(super) const fn is_multicast(&self) -> bool {
        matches!(self.settings.distribution, Distribution::Multicast(_))
    }

    /// Number of joined receivers that are subscribed to a topic.
    pub(super) fn receiver_count(&self) -> usize {
        self.receivers.iter().filter(|receiver| receiver.counts()).count()
    }

    /// Writes a frame of this session, no longer than a datagram.
    pub(super) fn frame(
        &self,
        kind: (Kind, u16),
        sequence: u64,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Vec<u8> {
        let session = self.settings.session;
        control_queue::compose(kind, (session, sequence), self.settings.datagram_bytes, fill)
    }

    /// Queues a control frame.
    pub(super) fn send_control(&mut self, to: Peer, frame: Vec<u8>) {
        match to {
            Peer::Address(to) => {
                self.control.push(to, frame);
                self.counters.control_dropped = self.control.dropped;
            }
            Peer::Connection(number) => {
                if !self.connections.push(number, &frame) {
                    self.counters.control_dropped += 1;
                }
            }
        }
    }

    /// Whether no control frame waits where one to the receiver would have to.
    pub(super) fn has_room_at_once(&mut self, at: usize) -> bool {
        match self.receivers[at].peer {
            Peer::Address(_) => self.control.front().is_none(),
            Peer::Connection(number) => {
                let connection = self.connections.get(number);
                connection.is_some_and(|connection| connection.rest().is_empty())
            }
        }
    }

    /// Index of a receiver, if it is joined from this address. Answers an unknown one with Eject.
    pub(super) fn find(&mut self, receiver: u64, from: Peer) -> Option<usize> {
        // The address is compared too: a third host must not move a receiver's position by its
        // number.
        match self.receivers.iter().position(|known| known.receiver == receiver) {
            Some(at) if self.receivers[at].peer == from => Some(at),
            Some(_) => {
                self.counters.unknown_receivers += 1;
                None
            }
            None => {
                self.counters.unknown_receivers += 1;
                // A receiver that was removed learns it so, and joins again with RESUME.
                self.reject(from, receiver, flag::STRANGER);
                None
            }
        }
    }

    /// Tells a receiver that it is not, or no longer, joined.
    pub(super) fn reject(&mut self, to: Peer, receiver: u64, why: u16) {
        let frame = self.frame((Kind::Eject, why), self.packetizer.visible(), |writer| {
            let _fits = writer.add(&EjectBody { receiver: receiver.into() });
        });
        self.send_control(to, frame);
        if let Peer::Connection(number) = to
            && let Some(connection) = self.connections.get(number)
        {
            // The owner keeps the connection open until the receiver has read the reason.
            connection.is_rejected = true;
        }
    }

    /// Removes a receiver that left.
    pub(super) fn remove_left(&mut self, at: usize) {
        self.remove(at, DepartureReason::Left);
        self.counters.left += 1;
    }

    /// Removes a receiver, and remembers what it has not read.
    pub(super) fn remove(&mut self, at: usize, reason: DepartureReason) -> ReceiverState {
        self.note_departure(at, reason);
        let removed = self.receivers.remove(at);
        if let Peer::Connection(number) = removed.peer {
            // The connection may join again; its time without a receiver begins now.
            self.connections.unjoin(number, self.polled_at);
        }
        self.membership_changes += 1;
        // The plan refers to receivers by index.
        self.planned = None;
        // One receiver fewer: the shares of the others grow.
        self.share_repair_budget();
        if !self.is_multicast() && !self.settings.late_join {
            // Messages on a topic are written only while a receiver is subscribed.
            for subscription in &removed.subscriptions {
                let topic = subscription.topic;
                let is_subscribed = self.receivers.iter().any(|known| known.is_subscribed(topic));
                self.packetizer.set_subscribed(topic, is_subscribed);
            }
        }
        self.refresh_limits();
        self.refresh_round_trip();
        removed
    }

    /// Notes the departure of a receiver, and remembers one that may come back.
    fn note_departure(&mut self, at: usize, reason: DepartureReason) {
        let known = &self.receivers[at];
        // Without a topic it had nothing to read, and can have lost nothing.
        let Some(subscriber) = known.subscriber else { return };
        let progress = if known.has_lost {
            Progress::Lost
        } else if self.has_read_all(known) {
            Progress::ReadAllOf(self.counted_messages())
        } else {
            Progress::Behind
        };
        if reason != DepartureReason::Left {
            let (receiver, has_lost) = (known.receiver, known.has_lost);
            let unsubscribed = self.counters.unsubscribed;
            let awaited_until = match reason {
                DepartureReason::TimedOut => self.polled_at.saturating_add(self.settings.liveness),
                _ => 0,
            };
            self.departed.add(Departed {
                receiver,
                subscriber,
                unsubscribed,
                has_lost,
                awaited_until,
            });
        }
        self.membership.depart(subscriber, Departure { reason, progress });
    }

    /// Whether the receiver has reported that it has read everything published.
    pub(super) fn has_read_all(&self, receiver: &ReceiverState) -> bool {
        let packetizer = &self.packetizer;
        let end = self.uncounted.counted_end(packetizer.visible());
        !packetizer.has_open() && !before(receiver.consumed, end)
    }

    /// Number of published messages that reports count.
    pub(super) const fn counted_messages(&self) -> u64 {
        self.counters.messages - self.uncounted.messages
    }

    /// Recomputes what flow control allows, from the receivers' reports.
    pub(super) fn refresh_limits(&mut self) {
        let pacing = self.settings.pacing;
        let consumed = decide(pacing, &self.receivers, |receiver| receiver.consumed);
        if consumed != self.consumed {
            // Progress: a message may find room now, so the refusal proves nothing any more.
            self.was_refused = false;
        }
        self.consumed = consumed;
        self.group_limit = decide(pacing, &self.receivers, |receiver| receiver.limit);
    }

    /// First sequence that must not be overwritten; `None` if all may be.
    #[inline]
    pub(super) fn retain_from(&self) -> Option<u64> {
        match self.settings.distribution {
            // Data that the group was not sent yet stays, even if no receiver decides.
            Distribution::Multicast(_) => {
                Some(self.consumed.map_or(self.sent, |consumed| earlier(consumed, self.sent)))
            }
            // Without a receiver nothing is retained: unicast datagrams have no destination then.
            Distribution::Unicast | Distribution::Stream => self.consumed,
        }
    }

    /// Sequence up to which the group may be sent to.
    pub(super) fn group_end(&self) -> u64 {
        let visible = self.packetizer.visible();
        self.group_limit.map_or(visible, |limit| earlier(limit, visible))
    }

    /// Sequence up to which a unicast receiver may be sent to.
    pub(super) fn receiver_end(&self, receiver: &ReceiverState) -> u64 {
        let visible = self.packetizer.visible();
        match self.settings.pacing {
            // Unpaced: a receiver that is too slow loses datagrams, and asks for repairs.
            Pacing::None => visible,
            _ => earlier(receiver.limit, visible),
        }
    }

    /// Whether flow control holds the sender back.
    pub(super) fn is_blocked(&self) -> bool {
        let visible = self.packetizer.visible();
        let blocked = match self.settings.distribution {
            Distribution::Multicast(_) => {
                before(self.sent, visible) && !before(self.sent, self.group_end())
            }
            Distribution::Unicast | Distribution::Stream => self.receivers.iter().any(|receiver| {
                let cursor = receiver.cursor;
                before(cursor, visible) && !before(cursor, self.receiver_end(receiver))
            }),
        };
        // A refused claim also counts: everything may be sent, and the window still full of unread
        // data.
        self.was_refused || blocked
    }

    /// Extends the receivers' deadlines by the time in which this process did not run: a pause
    /// between two polls of more than half the liveness is this side's, not the receivers',
    /// silence.
    pub(super) fn extend_deadlines(&mut self, now: Nanos) {
        let pause = now.saturating_sub(self.polled_at);
        self.polled_at = self.polled_at.max(now);
        let absence = pause.saturating_sub(self.settings.liveness / 2);
        if absence == 0 {
            return;
        }
        for known in &mut self.receivers {
            // At most to the present: later extensions must not make a receiver immortal.
            known.heard_at = known.heard_at.saturating_add(absence).min(known.heard_at.max(now));
            known.blocking_since =
                known.blocking_since.map(|since| since.saturating_add(absence).min(now));
        }
    }

    /// Removes receivers that were silent for longer than the liveness.
    pub(super) fn remove_dead(&mut self, now: Nanos) {
        let liveness = self.settings.liveness;
        let is_dead = |known: &ReceiverState| now.saturating_sub(known.heard_at) > liveness;
        while let Some(at) = self.receivers.iter().position(is_dead) {
            self.counters.died += 1;
            self.remove(at, DepartureReason::TimedOut);
        }
    }

    /// Ejects receivers that held the sender back for too long, under that pacing.
    pub(super) fn eject_stalled(&mut self, now: Nanos) {
        let Pacing::SlowestOrEject(patience) = self.settings.pacing else { return };
        // Only the slowest can be at fault, and only while it really holds the sender back.
        let slowest = if self.is_blocked() { self.consumed } else { None };
        let visible = self.packetizer.visible();
        // Backwards: ejecting one moves those after it.
        for at in (0..self.receivers.len()).rev() {
            let known = &mut self.receivers[at];
            let is_behind = known.counts() && before(known.consumed, visible);
            if !is_behind || slowest != Some(known.consumed) {
                // Not at fault now: its patience begins anew the next time.
                known.blocking_since = None;
            } else if now.saturating_sub(*known.blocking_since.get_or_insert(now)) >= patience {
                let removed = self.remove(at, DepartureReason::Evicted);
                let ReceiverState { peer, receiver, .. } = removed;
                self.counters.ejected += 1;
                self.reject(peer, receiver, flag::STALLED);
            }
        }
    }

    /// Time until which the closed session waits for receivers that died and may come back.
    pub(super) fn awaits_until(&self) -> Option<Nanos> {
        let until = self.closed.then(|| self.departed.awaited_until());
        until.filter(|until| self.polled_at < *until)
    }

    /// Earliest time at which a receiver dies or is ejected.
    pub(super) fn receivers_due(&self) -> Option<Nanos> {
        let patience = match self.settings.pacing {
            Pacing::SlowestOrEject(patience) => patience,
            _ => Nanos::MAX,
        };
        let due = self.receivers.iter().map(|known| {
            let ejected =
                known.blocking_since.map_or(Nanos::MAX, |since| since.saturating_add(patience));
            let dead = known.heard_at.saturating_add(self.settings.liveness).saturating_add(1);
            ejected.min(dead)
        });
        due.min()
    }

    /// Bytes per second for all repairs.
    pub(super) fn repair_rate(&self) -> u64 {
        let link = self.settings.data_rate.unwrap_or(self.settings.link_rate);
        // In 128 bits: a rate of bytes times a percentage may overflow.
        (u128::from(link) * u128::from(self.settings.repair_share) / 100) as u64
    }

    /// Gives each receiver an equal share of the repair budget.
    pub(super) fn share_repair_budget(&mut self) {
        // Equal shares: one lossy receiver cannot use up the repairs of the others.
        let share = self.repair_rate() / self.receivers.len().max(1) as u64;
        self.receivers.iter_mut().for_each(|receiver| receiver.missing.share.set_rate(share));
    }

    /// Recomputes the longest of the receivers' round trips.
    pub(super) fn refresh_round_trip(&mut self) {
        self.round_trip = self.receivers.iter().filter_map(|receiver| receiver.round_trip).max();
    }

    pub(super) const fn has_round_trip(&self) -> bool {
        self.round_trip.is_some()
    }

    /// Longest reported round trip, or an assumption.
    pub(super) fn round_trip(&self) -> Nanos {
        self.round_trip.unwrap_or(RoundTrip::UNKNOWN)
    }

    /// Timer of the heartbeats after data: the first one probes whether the tail has arrived.
    pub(super) fn first_heartbeat(&self, now: Nanos) -> HeartbeatTimer {
        let wait = (2 * self.round_trip()).max(FIRST_HEARTBEAT_MIN);
        HeartbeatTimer::new(now, wait.min(self.settings.heartbeat))
    }
}

/// Whether the receiver takes part in flow control.
fn takes_part(pacing: Pacing, receiver: &ReceiverState) -> bool {
    receiver.counts()
        && match pacing {
            Pacing::Slowest | Pacing::SlowestOrEject(_) | Pacing::Fastest => true,
            Pacing::Tagged(tag) => receiver.tag == tag,
            Pacing::None => false,
        }
}

/// The sequence that decides for all: the earliest, or with [`Pacing::Fastest`] the latest.
fn decide(
    pacing: Pacing,
    receivers: &[ReceiverState],
    sequence: impl Fn(&ReceiverState) -> u64,
) -> Option<u64> {
    let sequences = receivers.iter().filter(|known| takes_part(pacing, known)).map(sequence);
    if pacing == Pacing::Fastest { sequences.reduce(later) } else { sequences.reduce(earlier) }
}
