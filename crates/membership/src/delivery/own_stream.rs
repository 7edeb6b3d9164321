//! Sending to all: fragments, credit, order lists, and what to do if the transport or the members
//! are slow.

use super::credit::Credit;
use super::link::Link;
use super::retention::Retention;
use super::streams::Streams;
use super::total_order::LONGEST_LIST;
use crate::Nanos;
use crate::error::SendError;
use crate::event::{Event, Order};
use crate::outlet::Outlet;
use crate::settings::GroupSettings;
use crate::view::MemberId;
use lanecast_wire::group::DataFlags;

/// Header bytes of a data frame.
const DATA_HEAD: usize = 32;
/// Time without progress after which the last frame is sent again, so that members notice what they
/// lack.
const FIRST_PROBE: Nanos = 40_000_000;
const LONGEST_PROBE: Nanos = 200_000_000;
/// Retry after a refusal by the transport.
const RETRY: Nanos = 1_000_000;

/// A message that is too long for the credit: a copy, sent in fragments as credit allows.
#[derive(Clone, Debug)]
struct LongMessage {
    bytes: Vec<u8>,
    offset: usize,
    flags: u16,
    /// The sequence that the application was told.
    number: u64,
}

/// This member's own stream.
#[derive(Clone, Debug)]
pub(crate) struct OwnStream {
    credit: Credit,
    window: usize,
    fragment: usize,
    longest_message: usize,
    /// Frames below were taken by the transport.
    sent: u64,
    long: Option<LongMessage>,
    /// A long message that began anew in a later view: the sequence that the application was told,
    /// and the real one.
    renumbered: Option<(u64, u64)>,
    /// Bytes that a refused send needs; 0: it needs no credit.
    refused: Option<usize>,
    /// Start of the time without credit, and the member that was slowest then.
    blocked: Option<(Nanos, MemberId)>,
    retry_due: Nanos,
    probe_due: Nanos,
    probe_interval: Nanos,
    list: Vec<u8>,
}

impl OwnStream {
    pub(crate) fn new(settings: &GroupSettings) -> Self {
        Self {
            credit: Credit::default(),
            window: settings.window,
            fragment: settings.longest_frame.saturating_sub(DATA_HEAD).max(1),
            longest_message: settings.longest_message,
            sent: 0,
            long: None,
            renumbered: None,
            refused: None,
            blocked: None,
            retry_due: Nanos::MAX,
            probe_due: Nanos::MAX,
            probe_interval: FIRST_PROBE,
            list: Vec::new(),
        }
    }

    /// Bytes of all members that may be under way.
    pub(crate) const fn window(&self) -> usize {
        self.window
    }

    /// Bytes of a ring that holds any sender's credit in a view of `members`: half more for order
    /// lists, for the ring's unused end, and for frames that arrived out of order.
    pub(crate) fn ring_bytes(&self, members: usize) -> usize {
        let share = Credit::share(self.window, members);
        share + share / 2 + 2 * Retention::charge(self.fragment)
    }

    /// Begins a view. A long message begins anew, as no member has the whole of it.
    pub(crate) fn install(&mut self, streams: &Streams, members: usize) {
        self.credit.reset(self.window, members);
        self.sent = streams.own().next;
        (self.probe_due, self.probe_interval) = (Nanos::MAX, FIRST_PROBE);
        if let Some(long) = &mut self.long {
            long.offset = 0;
        }
    }

    /// Own sequence up to which all members have everything.
    pub(crate) fn stable(&self, streams: &Streams) -> u64 {
        let acknowledged = streams.own_acknowledged();
        // A message that has begun anew is told by its first number, and is not stable before its
        // end.
        let long = self.long.as_ref().map_or(u64::MAX, |long| long.number);
        let renumbered = match self.renumbered {
            Some((told, real)) if acknowledged <= real => told,
            _ => u64::MAX,
        };
        acknowledged.min(long).min(renumbered)
    }

    fn room(&self, streams: &Streams, charge: usize) -> bool {
        let used = streams.own().retained.used();
        used + charge <= self.credit.limit() || used == 0
    }

    /// Sends a message; returns its sequence, that of its last fragment.
    pub(crate) fn send<O: Outlet>(
        &mut self,
        bytes: &[u8],
        order: Order,
        streams: &mut Streams,
        link: &mut Link<'_, O>,
    ) -> Result<u64, SendError> {
        if bytes.len() > self.longest_message {
            return Err(SendError::TooLong { length: bytes.len(), most: self.longest_message });
        }
        if !self.flush(streams, link) {
            return Err(self.refuse_by_transport(link));
        }
        let fragments = bytes.len().div_ceil(self.fragment).max(1);
        let last = bytes.len() - (fragments - 1) * self.fragment;
        let fragment = Retention::charge(self.fragment);
        let charge = (fragments - 1) * fragment + Retention::charge(last);
        let is_long = fragments > 1 && charge > self.credit.limit() / 2;
        let needed = if is_long { fragment } else { charge };
        if self.long.is_some() || !self.room(streams, needed) {
            return Err(self.refuse_by_credit(needed, streams, link));
        }
        let agreed = if order == Order::Total { DataFlags::AGREED } else { 0 };
        let number = streams.own().next + fragments as u64 - 1;
        if is_long {
            self.long =
                Some(LongMessage { bytes: bytes.to_vec(), offset: 0, flags: agreed, number });
            self.send_long(streams, link);
            if self.long.as_ref().is_some_and(|long| long.offset == 0) {
                self.long = None;
                return Err(self.refuse_by_transport(link));
            }
        } else if !self.send_now(bytes, agreed, streams, link) {
            return Err(self.refuse_by_transport(link));
        }
        link.counters.sent += 1;
        link.counters.sent_bytes += bytes.len() as u64;
        if self.blocked.is_some() {
            self.unblock(link);
        }
        self.refused = None;
        Ok(number)
    }

    /// Sends all fragments of a message for which there is credit. False: the transport refused the
    /// first.
    #[inline]
    fn send_now<O: Outlet>(
        &mut self,
        bytes: &[u8],
        agreed: u16,
        streams: &mut Streams,
        link: &mut Link<'_, O>,
    ) -> bool {
        // Own messages are delivered from the caller's bytes, unless an earlier one waits for its
        // turn.
        let at_once = agreed == 0 && streams.delivers_own_at_once();
        let mut offset = 0;
        loop {
            let end = bytes.len().min(offset + self.fragment);
            let flags = fragment_flags(agreed, offset, end, bytes.len());
            let body = &bytes[offset..end];
            let sequence = streams.own().next;
            if self.sent == sequence && link.data(sequence, flags, body) {
                self.sent += 1;
            } else if offset == 0 {
                return false;
            } else {
                // The rest is on record and follows when the transport has room.
                self.retry(link);
            }
            let appended = streams.append(flags, body, at_once, link);
            debug_assert!(appended, "the ring holds more than the credit");
            // By frames, as repairs are.
            self.credit.on_sent();
            if end == bytes.len() {
                break;
            }
            offset = end;
        }
        self.expect_acks(streams, link);
        if at_once {
            let sequence = streams.own().next - 1;
            link.message(streams.rank(), sequence, Order::Sender, bytes);
        }
        true
    }

    /// Sends the long message on, as far as credit and transport allow.
    fn send_long<O: Outlet>(&mut self, streams: &mut Streams, link: &mut Link<'_, O>) {
        while let Some(long) = &self.long {
            let end = long.bytes.len().min(long.offset + self.fragment);
            if !self.room(streams, Retention::charge(end - long.offset)) {
                return;
            }
            let flags = fragment_flags(long.flags, long.offset, end, long.bytes.len());
            let body = &long.bytes[long.offset..end];
            let sequence = streams.own().next;
            if self.sent != sequence || !link.data(sequence, flags, body) {
                return self.retry(link);
            }
            if !streams.append(flags, body, false, link) {
                debug_assert!(false, "the ring holds more than the credit");
                return;
            }
            self.sent += 1;
            self.credit.on_sent();
            self.expect_acks(streams, link);
            if let Some(long) = &mut self.long {
                long.offset = end;
                if end == long.bytes.len() {
                    if long.number != sequence {
                        let told = self.renumbered.map_or(long.number, |(told, _)| told);
                        self.renumbered = Some((told, sequence));
                    }
                    self.long = None;
                }
            }
        }
    }

    /// As the sequencer: gives all messages that wait a place.
    pub(crate) fn send_order_lists<O: Outlet>(
        &mut self,
        streams: &mut Streams,
        link: &mut Link<'_, O>,
    ) {
        while streams.unordered() > 0 {
            let runs = streams.order_mut().unordered();
            let runs = &runs[..runs.len().min(LONGEST_LIST)];
            self.list.clear();
            for run in runs {
                self.list.extend_from_slice(&run.rank.to_le_bytes());
                self.list.extend_from_slice(&run.count.to_le_bytes());
            }
            let count = runs.len();
            let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST | DataFlags::ORDER_LIST);
            let sequence = streams.own().next;
            if !streams.has_room(self.list.len()) {
                return self.retry(link);
            }
            // Even if the transport refuses it: the list is on record and follows.
            if self.sent == sequence && link.data(sequence, flags, &self.list) {
                self.sent += 1;
            } else {
                self.retry(link);
            }
            streams.order_mut().on_list_sent(count);
            streams.append(flags, &self.list, false, link);
            link.counters.order_lists += 1;
            self.expect_acks(streams, link);
        }
    }

    /// Hands over frames that the transport refused. False: some are left.
    #[inline]
    fn flush<O: Outlet>(&mut self, streams: &Streams, link: &mut Link<'_, O>) -> bool {
        while self.sent < streams.own().next {
            if let Some(entry) = streams.own().retained.get(self.sent)
                && !link.data(entry.sequence, DataFlags(entry.flags), entry.body)
            {
                self.retry(link);
                return false;
            }
            self.sent += 1;
        }
        true
    }

    fn retry<O>(&mut self, link: &mut Link<'_, O>) {
        self.retry_due = link.now.saturating_add(RETRY);
        link.wake(self.retry_due);
    }

    #[inline]
    fn expect_acks<O>(&mut self, streams: &Streams, link: &mut Link<'_, O>) {
        if self.probe_due == Nanos::MAX && streams.own_acknowledged() < streams.own().next {
            self.probe_due = link.now.saturating_add(self.probe_interval);
            link.wake(self.probe_due);
        }
    }

    #[cold]
    fn refuse_by_transport<O>(&mut self, link: &mut Link<'_, O>) -> SendError {
        self.refused = Some(self.refused.unwrap_or(0));
        self.retry(link);
        SendError::Transport
    }

    #[cold]
    fn refuse_by_credit<O>(
        &mut self,
        needed: usize,
        streams: &Streams,
        link: &mut Link<'_, O>,
    ) -> SendError {
        let slowest = link.members[streams.slowest()];
        self.refused = Some(needed);
        self.credit.on_refused();
        if self.blocked.is_none() {
            self.blocked = Some((link.now, slowest));
            link.counters.on_blocked(slowest, 1, 0);
        }
        SendError::NoCredit(slowest)
    }

    /// A send was refused since the view changes, or there is none yet.
    pub(crate) fn refuse_for_change(&mut self) {
        self.refused = Some(self.refused.unwrap_or(0));
    }

    fn unblock<O>(&mut self, link: &mut Link<'_, O>) {
        if let Some((since, by)) = self.blocked.take() {
            link.counters.on_blocked(by, 0, link.now.saturating_sub(since));
        }
    }

    /// Whether something waits for credit, which also comes back when own messages are delivered.
    #[inline]
    pub(crate) fn waits_for_credit(&self) -> bool {
        self.long.is_some() || self.refused.is_some_and(|needed| needed > 0)
    }

    /// All others have more than before, or the transport may have room: sends what waits, and
    /// tells the application if a refused send has room now.
    pub(crate) fn go_on<O: Outlet>(&mut self, streams: &mut Streams, link: &mut Link<'_, O>) {
        if !self.flush(streams, link) {
            return;
        }
        self.send_long(streams, link);
        if let Some(needed) = self.refused
            && self.long.is_none()
            && self.room(streams, needed)
        {
            self.refused = None;
            self.unblock(link);
            link.out.event(Event::Writable);
        }
    }

    /// All others have more of this stream than before.
    pub(crate) fn on_progress<O>(&mut self, streams: &Streams, link: &mut Link<'_, O>) {
        self.probe_interval = FIRST_PROBE;
        self.probe_due = Nanos::MAX;
        self.expect_acks(streams, link);
    }

    /// Frames of this stream were repaired.
    pub(crate) fn on_repairs(&mut self, count: u64) {
        (0..count).for_each(|_| self.credit.on_repair());
    }

    /// Memory is short: less may be under way.
    pub(crate) fn on_memory_pressure(&mut self) {
        self.credit.halve();
    }

    /// Sends what is due if `open`; returns the time of the next duty.
    pub(crate) fn on_tick<O: Outlet>(
        &mut self,
        open: bool,
        streams: &mut Streams,
        link: &mut Link<'_, O>,
    ) -> Nanos {
        self.credit.adapt(link.now);
        if self.retry_due <= link.now {
            self.retry_due = Nanos::MAX;
            if open {
                self.go_on(streams, link);
            } else {
                self.flush(streams, link);
            }
        }
        if open {
            self.send_order_lists(streams, link);
            if self.waits_for_credit() {
                self.go_on(streams, link);
            }
        }
        if self.probe_due <= link.now {
            self.probe(streams, link);
        }
        self.retry_due.min(self.probe_due)
    }

    /// Sends the last frame again: members that lack it or others notice, the rest acknowledge.
    fn probe<O: Outlet>(&mut self, streams: &Streams, link: &mut Link<'_, O>) {
        if streams.own_acknowledged() >= streams.own().next {
            self.probe_due = Nanos::MAX;
            return;
        }
        if let Some(entry) = streams.own().retained.get(self.sent.saturating_sub(1)) {
            link.data(entry.sequence, DataFlags(entry.flags), entry.body);
            link.counters.probes += 1;
        }
        self.probe_interval = (2 * self.probe_interval).min(LONGEST_PROBE);
        self.probe_due = link.now.saturating_add(self.probe_interval);
    }

    /// Bytes that may be under way.
    #[cfg(test)]
    pub(crate) const fn limit(&self) -> usize {
        self.credit.limit()
    }
}

const fn fragment_flags(agreed: u16, offset: usize, end: usize, length: usize) -> DataFlags {
    let first = if offset == 0 { DataFlags::FIRST } else { 0 };
    let last = if end == length { DataFlags::LAST } else { 0 };
    DataFlags(agreed | first | last)
}
