//! Messages between two members: in order, acknowledged, repaired, bounded; one pair of streams per
//! member.

use super::assembly::Assembly;
use super::link::Link;
use super::retention::Retention;
use crate::Nanos;
use crate::error::SendError;
use crate::event::Event;
use crate::outlet::Outlet;
use crate::settings::GroupSettings;
use crate::view::MemberId;
use lanecast_wire::group::DataFlags;

/// Header bytes of a direct frame.
const DIRECT_HEAD: usize = 32;
/// Received bytes after which an acknowledgement is sent.
const ACK_BYTES: usize = 64 << 10;
/// Longest delay of an acknowledgement.
const ACK_DELAY: Nanos = 20_000_000;
/// First interval after which the oldest frames are sent again.
const FIRST_REPEAT: Nanos = 60_000_000;
const LONGEST_REPEAT: Nanos = 400_000_000;
/// Shortest time between two repeats that acknowledgements ask for.
const SHORTEST_REPEAT: Nanos = 2_000_000;
/// Frames sent again at once.
const REPEATED: u64 = 16;
/// Bytes of a pair's ring at most.
const MOST_BYTES: usize = 1 << 20;
/// Retry after a refusal by the transport.
const RETRY: Nanos = 1_000_000;

/// Messages to one member.
#[derive(Clone, Debug, Default)]
struct Outgoing {
    retained: Retention,
    next: u64,
    /// Taken by the transport.
    sent: u64,
    acknowledged: u64,
    repeated: Nanos,
    interval: Nanos,
}

/// Messages from one member.
#[derive(Clone, Debug, Default)]
struct Incoming {
    /// Frames that arrived ahead of the expected one.
    ahead: Retention,
    next: u64,
    assembly: Assembly,
    unacknowledged: usize,
}

#[derive(Clone, Debug)]
struct Pair {
    with: MemberId,
    /// Epoch in which both began; frames from before are of an earlier pair of streams.
    since: u64,
    outgoing: Outgoing,
    incoming: Incoming,
    ack_due: Nanos,
    repeat_due: Nanos,
    /// A send was refused.
    refused: bool,
}

impl Pair {
    fn new(with: MemberId, since: u64, ring: usize) -> Self {
        let mut outgoing = Outgoing { interval: FIRST_REPEAT, ..Outgoing::default() };
        let mut incoming = Incoming::default();
        outgoing.retained.reset(ring);
        incoming.ahead.reset(ring);
        Self {
            with,
            since,
            outgoing,
            incoming,
            ack_due: Nanos::MAX,
            repeat_due: Nanos::MAX,
            refused: false,
        }
    }

    fn due(&self) -> Nanos {
        self.ack_due.min(self.repeat_due)
    }
}

/// The messages between this member and each other one.
#[derive(Clone, Debug)]
pub(crate) struct Directs {
    pairs: Vec<Pair>,
    ring: usize,
    fragment: usize,
    longest: usize,
    due: Nanos,
}

impl Directs {
    pub(crate) fn new(settings: &GroupSettings) -> Self {
        let ring = settings.window.min(MOST_BYTES).max(4 * settings.longest_frame);
        let fragment = settings.longest_frame.saturating_sub(DIRECT_HEAD).max(1);
        // Half of the ring in whole fragments: the longest message always finds room in time.
        let fragments = ring / 2 / Retention::charge(fragment);
        let longest = settings.longest_message.min(fragments.max(1) * fragment);
        Self { pairs: Vec::new(), ring, fragment, longest, due: Nanos::MAX }
    }

    /// Begins a view: the streams with members that stayed go on, all others begin.
    pub(crate) fn install(&mut self, epoch: u64, members: &[MemberId], stayed: &[bool]) {
        let mut former = core::mem::take(&mut self.pairs);
        for (rank, &member) in members.iter().enumerate() {
            let stayed = stayed.get(rank).copied().unwrap_or(false);
            let at = former.iter().position(|pair| pair.with == member).filter(|_| stayed);
            self.pairs.push(match at {
                Some(at) => former.swap_remove(at),
                None => Pair::new(member, epoch, self.ring),
            });
        }
    }

    /// Sends a message to the member at `rank`; returns its sequence.
    pub(crate) fn send<O: Outlet>(
        &mut self,
        rank: usize,
        bytes: &[u8],
        link: &mut Link<'_, O>,
    ) -> Result<u64, SendError> {
        if bytes.len() > self.longest {
            return Err(SendError::TooLong { length: bytes.len(), most: self.longest });
        }
        let (fragment, ring) = (self.fragment, self.ring);
        let pair = &mut self.pairs[rank];
        let outgoing = &pair.outgoing;
        let fragments = bytes.len().div_ceil(fragment).max(1);
        // One more entry's lines may stay unused at the ring's end.
        let charge = (fragments + 1) * Retention::charge(fragment.min(bytes.len()));
        if outgoing.retained.used() > 0 && outgoing.retained.used() + charge > ring {
            pair.refused = true;
            return Err(SendError::NoCredit(pair.with));
        }
        if !pair.flush(link) {
            pair.refused = true;
            return Err(SendError::Transport);
        }
        for at in 0..fragments {
            let body = &bytes[at * fragment..bytes.len().min((at + 1) * fragment)];
            let first = if at == 0 { DataFlags::FIRST } else { 0 };
            let last = if at + 1 == fragments { DataFlags::LAST } else { 0 };
            let (sequence, flags) = (pair.outgoing.next, DataFlags(first | last));
            if pair.outgoing.sent == sequence && link.direct(pair.with, sequence, flags, body) {
                pair.outgoing.sent += 1;
            } else if at == 0 {
                pair.refused = true;
                self.due = self.due.min(pair.schedule(link));
                return Err(SendError::Transport);
            }
            let kept = pair.outgoing.retained.insert(sequence, flags.0, body);
            debug_assert!(kept, "there is room for all fragments");
            pair.outgoing.next += 1;
        }
        self.due = self.due.min(pair.schedule(link));
        link.counters.sent_direct += 1;
        Ok(pair.outgoing.next - 1)
    }

    /// Sends a message to this member itself, which has it at once.
    pub(crate) fn send_to_self<O: Outlet>(
        &mut self,
        rank: usize,
        bytes: &[u8],
        link: &mut Link<'_, O>,
    ) -> Result<u64, SendError> {
        if bytes.len() > self.longest {
            return Err(SendError::TooLong { length: bytes.len(), most: self.longest });
        }
        let pair = &mut self.pairs[rank];
        pair.outgoing.next += 1;
        link.counters.sent_direct += 1;
        link.counters.delivered_direct += 1;
        link.out.event(Event::Direct { from: pair.with, bytes });
        Ok(pair.outgoing.next - 1)
    }

    /// A fragment from the member at `rank`, sent in `epoch`.
    pub(crate) fn receive<O: Outlet>(
        &mut self,
        rank: usize,
        epoch: u64,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
        link: &mut Link<'_, O>,
    ) {
        let pair = &mut self.pairs[rank];
        if epoch < pair.since || epoch > link.envelope.epoch {
            link.counters.other_view += 1;
            return;
        }
        let incoming = &mut pair.incoming;
        if sequence < incoming.next {
            link.counters.duplicates += 1;
            pair.ack_due = link.now;
        } else if sequence > incoming.next {
            if !incoming.ahead.contains(sequence) {
                incoming.ahead.insert(sequence, flags.0, body);
            }
            // The acknowledgement says which frame is missing.
            pair.ack_due = link.now;
        } else {
            let with = pair.with;
            let longest = self.longest;
            incoming.take(with, longest, (sequence, flags, body), link);
            incoming.take_ahead(with, longest, link);
            if incoming.unacknowledged >= ACK_BYTES {
                pair.ack_due = link.now;
            } else {
                pair.ack_due = pair.ack_due.min(link.now.saturating_add(ACK_DELAY));
            }
        }
        self.due = self.due.min(pair.ack_due);
        link.wake(pair.ack_due);
    }

    /// The member at `rank` expects this sequence next.
    pub(crate) fn on_ack<O: Outlet>(
        &mut self,
        rank: usize,
        epoch: u64,
        next: u64,
        link: &mut Link<'_, O>,
    ) {
        let pair = &mut self.pairs[rank];
        let outgoing = &mut pair.outgoing;
        if epoch < pair.since || epoch > link.envelope.epoch || next > outgoing.next {
            return;
        }
        if next > outgoing.acknowledged {
            outgoing.acknowledged = next;
            outgoing.sent = outgoing.sent.max(next);
            outgoing.retained.free_below(next);
            outgoing.interval = FIRST_REPEAT;
            pair.repeat_due = if next == outgoing.next {
                Nanos::MAX
            } else {
                link.now.saturating_add(FIRST_REPEAT)
            };
            if core::mem::take(&mut pair.refused) {
                link.out.event(Event::Writable);
            }
        } else if next == outgoing.acknowledged
            && next < outgoing.sent
            && link.now >= outgoing.repeated.saturating_add(SHORTEST_REPEAT)
        {
            pair.repeat(link);
        }
        self.due = self.due.min(pair.repeat_due);
        link.wake(pair.repeat_due);
    }

    /// Sends what is due; returns the time of the next duty.
    pub(crate) fn on_tick<O: Outlet>(&mut self, link: &mut Link<'_, O>) -> Nanos {
        if self.due > link.now {
            return self.due;
        }
        for pair in &mut self.pairs {
            if pair.ack_due <= link.now {
                let sent = link.direct_ack(pair.with, pair.incoming.next);
                pair.ack_due = if sent { Nanos::MAX } else { link.now.saturating_add(RETRY) };
                pair.incoming.unacknowledged = 0;
            }
            if pair.repeat_due <= link.now {
                pair.on_repeat_due(link);
            }
        }
        self.due = self.pairs.iter().map(Pair::due).min().unwrap_or(Nanos::MAX);
        self.due
    }
}

impl Incoming {
    fn take<O: Outlet>(
        &mut self,
        from: MemberId,
        longest: usize,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
        link: &mut Link<'_, O>,
    ) {
        self.next += 1;
        self.unacknowledged += Retention::charge(body.len());
        let parts = (flags.begins(), flags.ends());
        if let Some(bytes) = self.assembly.add(parts, sequence, body, longest) {
            link.counters.delivered_direct += 1;
            link.out.event(Event::Direct { from, bytes });
        }
    }

    fn take_ahead<O: Outlet>(&mut self, from: MemberId, longest: usize, link: &mut Link<'_, O>) {
        if self.ahead.used() == 0 {
            return;
        }
        let ahead = core::mem::take(&mut self.ahead);
        while let Some(entry) = ahead.get(self.next) {
            self.take(from, longest, (entry.sequence, DataFlags(entry.flags), entry.body), link);
        }
        self.ahead = ahead;
        self.ahead.free_below(self.next);
    }
}

impl Pair {
    /// Hands over frames that the transport refused. False: some are left.
    fn flush<O: Outlet>(&mut self, link: &mut Link<'_, O>) -> bool {
        let outgoing = &mut self.outgoing;
        while let Some(entry) = outgoing.retained.get(outgoing.sent) {
            if !link.direct(self.with, entry.sequence, DataFlags(entry.flags), entry.body) {
                return false;
            }
            outgoing.sent += 1;
        }
        true
    }

    /// Sets the time of the next repeat; returns it.
    fn schedule<O>(&mut self, link: &mut Link<'_, O>) -> Nanos {
        let refused = self.refused || self.outgoing.sent < self.outgoing.next;
        let interval = if refused { RETRY } else { self.outgoing.interval };
        self.repeat_due = self.repeat_due.min(link.now.saturating_add(interval));
        link.wake(self.repeat_due);
        self.repeat_due
    }

    fn on_repeat_due<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        if self.outgoing.sent < self.outgoing.next {
            self.flush(link);
        } else if self.outgoing.acknowledged < self.outgoing.next {
            self.outgoing.interval = (2 * self.outgoing.interval).min(LONGEST_REPEAT);
            self.repeat(link);
        }
        let outgoing = &self.outgoing;
        self.repeat_due = if outgoing.sent < outgoing.next {
            link.now.saturating_add(RETRY)
        } else if outgoing.acknowledged < outgoing.next {
            link.now.saturating_add(outgoing.interval)
        } else {
            Nanos::MAX
        };
        if outgoing.sent == outgoing.next && core::mem::take(&mut self.refused) {
            link.out.event(Event::Writable);
        }
    }

    /// Sends the oldest frames again.
    fn repeat<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        let outgoing = &mut self.outgoing;
        outgoing.repeated = link.now;
        let end = outgoing.sent.min(outgoing.acknowledged + REPEATED);
        for entry in (outgoing.acknowledged..end).filter_map(|at| outgoing.retained.get(at)) {
            if !link.direct(self.with, entry.sequence, DataFlags(entry.flags), entry.body) {
                break;
            }
            link.counters.repairs_sent += 1;
        }
    }
}
