//! A publisher's session towards any number of receivers.
//!
//! Messages are laid out as datagrams in the send window (`packetizer`, `window`), from which the
//! `scheduler` sends them: to a multicast group, to each receiver, or on connections. Receivers
//! join by a `handshake`, report their progress (`status`), which flow control uses (`session`),
//! and request missing datagrams (`repair`), or rebuild them from `parity`. `heartbeats` fill the
//! pauses and announce the end.
//!
//! A sender belongs to one thread, which passes it received frames and the time, and sends what it
//! hands out.

mod config;
mod connections;
mod control_queue;
mod counters;
mod departed;
mod error;
mod handshake;
mod heartbeat_timer;
mod heartbeats;
mod keep_warm;
mod layout;
mod missing;
mod open_block;
mod packetizer;
mod parity;
mod parity_encoder;
mod plan;
mod receiver_state;
mod repair;
mod scheduler;
mod session;
mod status;
mod subscribers;
mod token_bucket;
mod uncounted;
mod window;

pub use config::{Distribution, Pacing, SenderSettings};
pub use connections::UNJOINED_MAX;
pub use counters::SenderCounters;
pub use error::{StageError, TopicError};
pub use plan::Transmit;
pub use subscribers::Subscribers;

use crate::Nanos;
use handshake::Handshake;
use heartbeats::Heartbeats;
use lanecast_wire::net::{Frame, Kind, NAME_MAX};
use plan::{ParityOf, Planned};
use receiver_state::Peer;
use repair::Repairs;
use scheduler::Scheduler;
use session::Session;
use std::net::SocketAddr;

/// A publisher's session.
#[derive(Debug)]
pub struct Sender {
    session: Session,
    handshake: Handshake,
    repairs: Repairs,
    heartbeats: Heartbeats,
    scheduler: Scheduler,
}

impl Sender {
    /// Creates a session without topics and receivers.
    pub fn new(settings: SenderSettings, now: Nanos) -> Self {
        let session = Session::new(settings, now);
        Self {
            handshake: Handshake::new(session.settings.cookie_key, now),
            repairs: Repairs::new(&session, now),
            heartbeats: Heartbeats::new(session.settings.keep_warm),
            scheduler: Scheduler::new(session.settings.data_rate, now),
            session,
        }
    }

    /// Adds a topic and returns its number: 0, 1, 2 and so on; the same number for the same name.
    ///
    /// # Errors
    /// See [`TopicError`].
    pub fn add_topic(&mut self, name: &str) -> Result<u32, TopicError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(TopicError::Name);
        }
        let session = &mut self.session;
        if let Some(number) = session.numbers.get(name) {
            return Ok(*number);
        }
        let max = session.settings.topics_max;
        if session.names.len() >= max {
            return Err(TopicError::TooMany { max });
        }
        // Topics are never removed: numbers stay dense, and index the tables directly.
        let number = session.names.len() as u32;
        session.names.push(name.into());
        session.numbers.insert(name.into(), number);
        // A group may have receivers that the sender does not know yet, and a late joiner reads
        // from the window: both need messages written before a subscription is known.
        let always = session.is_multicast() || session.settings.late_join;
        session.packetizer.add_topic(always);
        handshake::on_topic_added(session, number);
        Ok(number)
    }

    /// Number of topics.
    pub fn topics(&self) -> usize {
        self.session.names.len()
    }

    /// Adds a message of `len` bytes to the batch; the caller writes it. Receivers get it after
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`StageError`].
    #[inline(always)]
    pub fn stage(&mut self, topic: u32, len: usize) -> Result<&mut [u8], StageError> {
        if self.session.packetizer.stage_in_block(topic, len) {
            return Ok(self.session.packetizer.staged());
        }
        self.stage_in_new_block(topic, len)
    }

    // Not inlined: the fast path of `stage` stays small.
    #[inline(never)]
    fn stage_in_new_block(&mut self, topic: u32, len: usize) -> Result<&mut [u8], StageError> {
        let session = &mut self.session;
        if session.closed {
            return Err(StageError::Closed);
        }
        let retain_from = session.retain_from();
        match session.packetizer.stage(topic, len, retain_from) {
            Ok(()) => Ok(session.packetizer.staged()),
            Err(error) => Err(refuse(session, error, (topic, len))),
        }
    }

    /// Checks that `count` messages on `topic` of `bytes` bytes in all have room. With nothing
    /// staged it stays until something is, also if [`flush`](Self::flush) closes the open datagram,
    /// unless a receiver that was dropped comes back.
    ///
    /// # Errors
    /// See [`StageError`].
    pub fn reserve(&mut self, topic: u32, count: usize, bytes: usize) -> Result<(), StageError> {
        let session = &mut self.session;
        if session.closed {
            return Err(StageError::Closed);
        }
        let longest = session.packetizer.longest();
        if count <= 1 && bytes > longest {
            return Err(StageError::TooLong { longest });
        }
        let retain_from = session.retain_from();
        let room = session.packetizer.has_room_for(topic, (count, bytes), retain_from);
        room.map_err(|error| refuse(session, error, (topic, bytes.min(longest))))
    }

    /// First sequence that the window has to keep, `None` if it may overwrite all. Once it has
    /// changed, a refused message may find room.
    pub fn retain_from(&self) -> Option<u64> {
        self.session.retain_from()
    }

    /// The bytes of the message staged last; empty without one.
    #[inline(always)]
    pub fn staged(&mut self) -> &mut [u8] {
        self.session.packetizer.staged()
    }

    /// As [`staged`](Self::staged), read-only.
    #[inline]
    pub fn staged_bytes(&self) -> &[u8] {
        self.session.packetizer.staged_bytes()
    }

    /// Publishes all staged messages as one batch; returns how many.
    #[inline(always)]
    pub fn publish(&mut self) -> usize {
        let messages = self.session.packetizer.publish();
        self.session.counters.messages += messages as u64;
        let unsubscribed = self.session.packetizer.take_unsubscribed();
        if unsubscribed > 0 {
            self.session.counters.unsubscribed += unsubscribed as u64;
        }
        messages
    }

    /// Publishes all staged messages, which reports of completion do not count, in datagrams of
    /// their own; the caller has called [`flush`](Self::flush) before it staged them.
    pub fn publish_uncounted(&mut self) -> usize {
        debug_assert!(!self.session.packetizer.has_open(), "flushed");
        let first = self.session.packetizer.visible();
        let messages = self.publish();
        self.flush();
        self.session.uncounted.add(first, self.session.packetizer.visible(), messages as u64);
        messages
    }

    /// Discards all staged messages.
    pub fn unstage(&mut self) {
        self.session.packetizer.unstage();
    }

    /// Longest message, in bytes.
    pub const fn longest_message(&self) -> usize {
        self.session.packetizer.longest()
    }

    /// Closes the open datagram, so that published messages can be sent; if messages are staged,
    /// after their batch.
    #[inline]
    pub fn flush(&mut self) {
        self.session.packetizer.flush();
    }

    /// Handles a frame that came in at the data socket.
    pub fn on_frame(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        match frame.kind {
            Kind::Nak if frame.session == self.session.settings.session => {
                repair::on_nak(&mut self.session, now, from, frame);
            }
            _ => self.on_control(now, Peer::Address(from), frame),
        }
    }

    /// Handles a frame that came in on a connection.
    pub fn on_stream_frame(&mut self, now: Nanos, connection: u64, frame: &Frame<'_>) {
        let Some(known) = self.session.connections.get(connection) else { return };
        match frame.kind {
            // Streams lose no frames: only skipped datagrams are missing.
            Kind::Nak => self.session.counters.malformed += 1,
            kind => {
                // A rejected receiver may join again by the same connection.
                known.is_rejected &= kind != Kind::Join;
                self.on_control(now, Peer::Connection(connection), frame);
            }
        }
    }

    fn on_control(&mut self, now: Nanos, from: Peer, frame: &Frame<'_>) {
        let session = &mut self.session;
        if frame.session != session.settings.session {
            session.counters.malformed += 1;
            return;
        }
        match frame.kind {
            Kind::Join => self.handshake.on_join(session, now, from, frame),
            Kind::Status => status::on_status(session, now, from, frame),
            Kind::Leave => status::on_leave(session, from, frame),
            _ => session.counters.malformed += 1,
        }
    }

    /// Does everything that is due.
    pub fn on_time(&mut self, now: Nanos) {
        // Refills the bucket: otherwise the deadline of data that only lacks a connection would
        // stay in the past.
        self.scheduler.has_rate(now);
        self.session.extend_deadlines(now);
        self.session.remove_dead(now);
        self.session.eject_stalled(now);
        self.heartbeats.send_due(&mut self.session, &mut self.scheduler, now);
    }

    /// Latest time of the next call of [`on_time`](Self::on_time) and
    /// [`next_transmit`](Self::next_transmit).
    pub fn next_deadline(&self) -> Option<Nanos> {
        let due = [
            self.heartbeats.due(&self.session),
            self.session.receivers_due(),
            self.session.awaits_until(),
            self.repairs.due(&self.session),
            self.scheduler.due(&self.session),
            self.scheduler.parity_due(&self.session),
            self.unjoined_due().map(|(_, due)| due),
        ];
        due.into_iter().flatten().min()
    }

    /// The next datagrams to send: control frames, then repairs, then new data. Calls before
    /// [`transmitted`](Self::transmitted) return the same ones, or more urgent ones.
    pub fn next_transmit(&mut self, now: Nanos) -> Option<Transmit<'_>> {
        self.session.planned = self.plan(now);
        match self.session.planned.as_ref()? {
            Planned::Control => {
                let (to, bytes) = self.session.control.front()?;
                Some(Transmit { to, bytes, segment: bytes.len() })
            }
            Planned::Parity { to, .. } => {
                let bytes = &self.session.parity.as_ref()?.frame[..];
                Some(Transmit { to: *to, bytes, segment: bytes.len() })
            }
            Planned::Repair { to, run, .. }
            | Planned::Group { to, run }
            | Planned::Unicast { to, run, .. } => {
                let bytes = &self.session.packetizer.window.bytes[run.bytes.clone()];
                Some(Transmit { to: *to, bytes, segment: run.segment })
            }
        }
    }

    fn plan(&mut self, now: Nanos) -> Option<Planned> {
        let session = &mut self.session;
        if session.control.front().is_some() {
            return Some(Planned::Control);
        }
        if let Some(repair) = self.repairs.plan(session, now) {
            return Some(repair);
        }
        // Planning repairs may have queued control frames.
        if session.control.front().is_some() {
            return Some(Planned::Control);
        }
        self.scheduler.plan(session, now)
    }

    /// The datagrams of the last [`next_transmit`](Self::next_transmit) were sent.
    pub fn transmitted(&mut self, now: Nanos) {
        let session = &mut self.session;
        match session.planned.take() {
            None => {}
            Some(Planned::Control) => session.control.pop(),
            Some(Planned::Repair { at, alone, run, .. }) => {
                self.repairs.sent(session, now, (at, alone), &run);
            }
            Some(Planned::Parity { of, .. }) => {
                let bytes = session.parity.as_ref().map_or(0, |parity| parity.frame.len());
                match of {
                    ParityOf::Answer { at, first } => {
                        self.repairs.sent_parity(session, now, (at, first), bytes);
                    }
                    _ => self.scheduler.sent_parity(session, of, bytes),
                }
            }
            Some(Planned::Group { run, .. }) => self.scheduler.sent_to_group(session, now, &run),
            Some(Planned::Unicast { at, run, .. }) => {
                self.scheduler.end_turn(at);
                self.scheduler.sent_to_receiver(session, now, at, &run);
            }
        }
    }

    /// Adds a connection from `from` under the caller's number. Its receiver is admitted by a Join.
    pub fn connect(&mut self, now: Nanos, connection: u64, from: SocketAddr) {
        let most = self.session.settings.receivers_max + UNJOINED_MAX;
        self.session.connections.add(now, (connection, from), most);
    }

    /// Removes a connection. Its receiver stays joined until the liveness timeout.
    pub fn disconnect(&mut self, connection: u64) {
        self.session.connections.remove(connection);
    }

    /// A connection that should be closed: without a receiver for longer than the liveness.
    pub fn overdue_connection(&self, now: Nanos) -> Option<u64> {
        let (connection, due) = self.unjoined_due()?;
        (now >= due).then_some(connection)
    }

    /// Connections without a receiver, the oldest first.
    pub fn unjoined_connections(&self) -> impl Iterator<Item = u64> {
        self.session.connections.unjoined()
    }

    fn unjoined_due(&self) -> Option<(u64, Nanos)> {
        let (connection, since) = self.session.connections.longest_unjoined()?;
        Some((connection, since.saturating_add(self.session.settings.liveness)))
    }

    /// Whether a rejected receiver's connection is still open: it closes it after reading why.
    pub fn has_rejected_connections(&self) -> bool {
        self.session.connections.has_rejected()
    }

    /// Bytes to write to a connection now: whole frames, or the rest of one.
    pub fn stream_bytes(&mut self, now: Nanos, connection: u64) -> &[u8] {
        let Some(known) = self.session.connections.get(connection) else { return &[] };
        known.planned = None;
        let is_pending = !known.rest().is_empty();
        if is_pending || self.session.settings.distribution != Distribution::Stream {
            return self.session.connections.get(connection).map_or(&[], |known| known.rest());
        }
        if !self.scheduler.has_rate(now) {
            return &[];
        }
        let Some(at) = self.receiver_on(connection) else { return &[] };
        let Some(run) = scheduler::plan_receiver(&mut self.session, at) else { return &[] };
        let bytes = run.bytes.clone();
        if let Some(known) = self.session.connections.get(connection) {
            known.planned = Some(run);
        }
        &self.session.packetizer.window.bytes[bytes]
    }

    /// The connection took the first `bytes` of the last [`stream_bytes`](Self::stream_bytes).
    pub fn stream_written(&mut self, now: Nanos, connection: u64, bytes: usize) {
        let Some(known) = self.session.connections.get(connection) else { return };
        let Some(mut run) = known.planned.take() else {
            known.advance(bytes);
            return;
        };
        let bytes = bytes.min(run.bytes.len());
        // Nothing of the run has left: the next call plans it anew.
        if bytes == 0 {
            return;
        }
        // Keeps a copy of the rest of a partly written frame, so that the window may overwrite it.
        // All frames of a run but the last are equally long.
        let frames = bytes.div_ceil(run.segment);
        let end = (run.bytes.start + frames * run.segment).min(run.bytes.end);
        known.keep(&self.session.packetizer.window.bytes[run.bytes.start + bytes..end]);
        run.count = frames;
        run.bytes.end = end;
        if let Some(at) = self.receiver_on(connection) {
            self.scheduler.sent_to_receiver(&mut self.session, now, at, &run);
        }
    }

    fn receiver_on(&self, connection: u64) -> Option<usize> {
        let peer = Peer::Connection(connection);
        self.session.receivers.iter().position(|receiver| receiver.peer == peer)
    }

    /// Requests a status from all receivers, at most once per two round trips.
    pub fn probe(&mut self, now: Nanos) {
        self.heartbeats.probe(&mut self.session, now);
    }

    /// Sends no frames that keep the way warm until this is taken back: for a thread whose caches
    /// are not those of the thread that sends messages.
    pub const fn suspend_warming(&mut self, is_suspended: bool) {
        self.heartbeats.suspend_warming(is_suspended);
    }

    /// Publishes nothing more. Published messages are still sent and repaired, and the end is
    /// announced until [`is_finished`](Self::is_finished).
    pub fn close(&mut self, now: Nanos) {
        let session = &mut self.session;
        if session.closed {
            return;
        }
        session.packetizer.unstage();
        session.packetizer.flush();
        session.closed = true;
        let heartbeat = session.first_heartbeat(now).at_once(now);
        session.group_heartbeat = heartbeat;
        session.receivers.iter_mut().for_each(|receiver| receiver.heartbeat = heartbeat);
    }

    /// Whether the session is closed and needed no longer: all receivers have left or died, the end
    /// was announced several times, and receivers that died had the liveness to come back: a
    /// receiver whose frames are lost may still hear the sender.
    pub fn is_finished(&self) -> bool {
        self.heartbeats.is_over(&self.session) && !self.session.connections.has_rejected()
    }

    /// Counts so far.
    pub const fn counters(&self) -> &SenderCounters {
        &self.session.counters
    }

    /// Number of joined receivers that are subscribed to a topic of this session.
    pub fn receivers(&self) -> usize {
        self.session.receiver_count()
    }

    /// Number of receivers that have confirmed where their topics begin: messages published from
    /// now on reach them.
    pub fn joined(&self) -> usize {
        let joined = self.session.receivers.iter().filter(|known| known.counts());
        joined.filter(|known| known.knows_topics).count()
    }

    /// Number of joins and departures so far; a change invalidates [`addresses`](Self::addresses).
    pub const fn membership_changes(&self) -> u64 {
        self.session.membership_changes
    }

    /// Addresses of the receivers, except those on connections.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.session.receivers.iter().filter_map(|receiver| match receiver.peer {
            Peer::Address(address) => Some(address),
            Peer::Connection(_) => None,
        })
    }

    /// Whether every receiver has reported that it has read everything published.
    pub fn is_drained(&self) -> bool {
        let mut counted = self.session.receivers.iter().filter(|receiver| receiver.counts());
        counted.all(|receiver| self.session.has_read_all(receiver))
    }

    /// The subscribers: events, and the report on what they have read.
    pub const fn subscribers(&mut self) -> Subscribers<'_> {
        Subscribers::new(&mut self.session)
    }

    /// Whether published messages were not sent yet.
    pub fn has_data_to_send(&self) -> bool {
        scheduler::has_data_to_send(&self.session)
    }
}

/// Counts a refusal; `of` is a message that has no room until the session tells of some.
fn refuse(session: &mut Session, error: StageError, of: (u32, usize)) -> StageError {
    if error == StageError::WindowFull {
        session.counters.window_full += 1;
        session.was_refused = true;
        session.refused = Some(of);
    }
    error
}

#[cfg(test)]
mod tests;
