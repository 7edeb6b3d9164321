//! The streams of all members of the view, as this member receives them.

use super::ack_schedule::AckSchedule;
use super::acks::Acks;
use super::closed_ways::ClosedWays;
use super::lane::{Complete, Lane};
use super::link::Link;
use super::repair_budget::RepairBudget;
use super::sources::Sources;
use super::total_order::TotalOrder;
use crate::Nanos;
use crate::event::Order;
use crate::outlet::Outlet;
use lanecast_wire::group::{DataFlags, order_runs};

/// Runs of missing frames in one round of requests.
const RUNS_ASKED: usize = 16;
/// Frames looked at for one request of another member.
const LONGEST_ANSWER: u64 = 4_096;

/// Streams of the view's members, by rank.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    pub(super) lanes: Vec<Lane>,
    acks: Acks,
    order: TotalOrder,
    budget: RepairBudget,
    me: usize,
    longest_message: usize,
    sources: Sources,
    ways: ClosedWays,
    /// Messages are delivered; not before this member has the group's state.
    delivering: bool,
    /// The streams are cut for a change of the view.
    frozen: bool,
    /// Frames wait that were not read yet.
    pub(super) has_backlog: bool,
    ack: AckSchedule,
    gap_due: Nanos,
}

impl Streams {
    pub(crate) fn new(longest_message: usize) -> Self {
        Self {
            lanes: Vec::new(),
            acks: Acks::default(),
            order: TotalOrder::default(),
            budget: RepairBudget::new(),
            me: 0,
            longest_message,
            sources: Sources::default(),
            ways: ClosedWays::default(),
            delivering: false,
            frozen: false,
            has_backlog: false,
            ack: AckSchedule::new(),
            gap_due: Nanos::MAX,
        }
    }

    /// Begins a view: streams begin at `firsts`, each with room for `capacity` bytes.
    pub(crate) fn install(&mut self, me: usize, firsts: &[u64], share: usize, capacity: usize) {
        self.me = me;
        self.lanes.truncate(firsts.len());
        self.lanes.resize_with(firsts.len(), Lane::new);
        for (lane, &first) in self.lanes.iter_mut().zip(firsts) {
            lane.reset(first, capacity);
        }
        self.acks.reset(me, firsts);
        self.order.reset();
        self.sources.reset(me, firsts.len());
        self.ways.reset(firsts.len());
        self.frozen = false;
        self.ack.reset(share);
        self.gap_due = Nanos::MAX;
    }

    /// This member's own stream.
    #[inline]
    pub(crate) fn own(&self) -> &Lane {
        &self.lanes[self.me]
    }

    /// This member's rank.
    pub(crate) const fn rank(&self) -> usize {
        self.me
    }

    /// Whether this member's ring has room for a frame of `length`.
    pub(crate) fn has_room(&self, length: usize) -> bool {
        self.own().retained.has_room(length)
    }

    /// All other members have this member's frames below this sequence.
    #[inline]
    pub(crate) fn own_acknowledged(&self) -> u64 {
        self.acks.others(self.me).min(self.own().next)
    }

    /// Rank of the member that has acknowledged least of this member's stream.
    pub(crate) fn slowest(&self) -> usize {
        self.acks.slowest(self.me).unwrap_or(self.me)
    }

    /// Next expected sequences by rank; this member's own next sequence for itself.
    pub(crate) fn vector(&self) -> Vec<u64> {
        self.lanes.iter().map(|lane| lane.next).collect()
    }

    /// Sequences that this member acknowledges, by rank, and its own next one. Messages that wait
    /// for the state are lost here if the view changes: they are not held for certain.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = u64> {
        let (me, delivering) = (self.me, self.delivering);
        let lanes = self.lanes.iter().enumerate();
        lanes.map(move |(rank, lane)| lane.acknowledged(delivering || rank == me))
    }

    /// This member's own next sequence.
    pub(crate) fn next_own(&self) -> u64 {
        self.lanes.get(self.me).map_or(0, |lane| lane.next)
    }

    /// First sequence, by rank, of which the application has not seen a whole message.
    pub(crate) fn seen(&self) -> impl ExactSizeIterator<Item = u64> {
        self.lanes.iter().map(Lane::seen)
    }

    /// Takes a frame of another member, from itself or from a member that keeps it.
    #[inline]
    pub(crate) fn receive<O: Outlet>(
        &mut self,
        rank: usize,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
        link: &mut Link<'_, O>,
    ) {
        let lane = &mut self.lanes[rank];
        if !self.delivering || !flags.is_plain() || !lane.expects(sequence) {
            return self.receive_aside(rank, (sequence, flags, body), link);
        }
        // Nothing is kept that all others have already: in a group of two, no frame is ever copied.
        let others = self.acks.others(rank);
        if others <= sequence && !lane.keep(others, (sequence, flags, body)) {
            link.counters.no_room += 1;
            return self.miss(rank, sequence, link);
        }
        link.message(rank, sequence, Order::Sender, body);
        lane.pass(link.now, body.len());
        link.note_retained(lane.retained.used());
        if lane.gap.heard() > lane.next && lane.retained.contains(lane.next) {
            self.proceed(rank, link);
        }
        self.ack.on_received(self.lanes[rank].unacknowledged, link);
    }

    /// Frames that are not simply the next ones.
    fn receive_aside<O: Outlet>(
        &mut self,
        rank: usize,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
        link: &mut Link<'_, O>,
    ) {
        let lane = &mut self.lanes[rank];
        if sequence < lane.next || lane.retained.contains(sequence) {
            link.counters.duplicates += 1;
            // Its sender believes that it is missing here: an acknowledgement was lost.
            return self.ack.hurry(link);
        }
        let expected = sequence == lane.next;
        let kept = if expected {
            lane.keep(self.acks.others(rank), (sequence, flags, body))
        } else {
            lane.keep_ahead(sequence, flags, body)
        };
        link.counters.no_room += u64::from(!kept);
        if !expected || !kept {
            self.miss(rank, sequence, link);
        }
        link.note_retained(self.lanes[rank].retained.used());
        self.proceed(rank, link);
        self.ack.on_received(self.lanes[rank].unacknowledged, link);
    }

    /// Asks at once for a hole that a frame shows for the first time.
    fn miss<O: Outlet>(&mut self, rank: usize, sequence: u64, link: &mut Link<'_, O>) {
        let lane = &mut self.lanes[rank];
        let hole = lane.gap.on_ahead(link.now, lane.next, sequence);
        self.note_gap(rank, link);
        let Some((first, end)) = hole else { return };
        if !self.frozen
            && let Some(source) = self.sources.choose(rank, self.lanes[rank].gap.tries)
        {
            let count = (end - first).min(u64::from(u32::MAX)) as u32;
            let is_first = source == self.sources.first(rank);
            self.ways.send(source, link.now, |to_all| {
                (is_first || !to_all) && link.want((source, to_all), rank, first, count)
            });
        }
    }

    fn note_gap<O>(&mut self, rank: usize, link: &mut Link<'_, O>) {
        let due = self.lanes[rank].gap.due;
        self.gap_due = self.gap_due.min(due);
        link.wake(due);
    }

    /// Appends a frame of this member. False: there is no room for it.
    pub(crate) fn append<O: Outlet>(
        &mut self,
        flags: DataFlags,
        body: &[u8],
        delivered: bool,
        link: &mut Link<'_, O>,
    ) -> bool {
        let lane = &mut self.lanes[self.me];
        let sequence = lane.next;
        let others = self.acks.others(self.me);
        let needed = !delivered || others <= sequence;
        if needed && !lane.keep(others, (sequence, flags, body)) {
            return false;
        }
        link.note_retained(lane.retained.used());
        if delivered {
            lane.pass(link.now, body.len());
        } else {
            self.proceed(self.me, link);
        }
        true
    }

    /// Whether own messages in the order of their sender are delivered as soon as they are sent.
    #[inline]
    pub(crate) fn delivers_own_at_once(&self) -> bool {
        self.delivering && self.own().delivered == self.own().next
    }

    /// Accepts and delivers all that is here of a stream.
    fn proceed<O: Outlet>(&mut self, rank: usize, link: &mut Link<'_, O>) {
        let Self { lanes, order, .. } = self;
        let sequencer = self.me == 0;
        lanes[rank].accept(link.now, |flags, body| {
            if flags.is_order_list() {
                // Only the sequencer's lists count.
                if rank == 0 && !order.has_room() {
                    return false;
                }
                order.on_list(order_runs(if rank == 0 { body } else { &[] }));
            } else if sequencer && flags.begins() && flags.is_agreed() {
                order.on_message(rank);
            }
            true
        });
        if self.unordered() > 0 {
            link.wake(link.now);
        }
        if self.delivering {
            self.deliver(rank, link);
        }
    }

    fn deliver<O: Outlet>(&mut self, rank: usize, link: &mut Link<'_, O>) {
        let (lane, longest) = (&mut self.lanes[rank], self.longest_message);
        if !lane.is_granted() {
            lane.deliver(false, longest, |message| link.complete(rank, message));
        }
        if !self.order.is_empty() {
            let take = |rank, message: Complete<'_>| link.complete(rank, message);
            self.order.deliver(&mut self.lanes, longest, &self.acks, take);
        }
        self.lanes[rank].free(self.acks.others(rank));
    }

    /// Delivers from now on: all that waits, first.
    pub(crate) fn begin_delivery<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        let waits =
            |rank: usize| rank != self.me && self.lanes[rank].delivered < self.lanes[rank].next;
        if (0..self.lanes.len()).any(waits) {
            // Frames that were not acknowledged until now.
            self.ack.hurry(link);
        }
        self.delivering = true;
        for rank in 0..self.lanes.len() {
            self.proceed(rank, link);
        }
    }

    /// Frames below these sequences, by rank, exist: another member has them.
    pub(crate) fn expect<O>(&mut self, received: &[u64], link: &mut Link<'_, O>) {
        for (rank, &received) in received.iter().enumerate() {
            let lane = &mut self.lanes[rank];
            let known = received.min(lane.limit);
            if rank != self.me && lane.gap.on_word(link.now, lane.next, known, false) {
                self.note_gap(rank, link);
            }
        }
    }

    /// Keeps messages until `begin_delivery`.
    pub(crate) const fn hold_delivery(&mut self) {
        self.delivering = false;
    }

    /// Messages below these sequences, by rank, are part of the state that the application has.
    pub(crate) fn skip(&mut self, seen: &[u64]) {
        for (lane, &seen) in self.lanes.iter_mut().zip(seen) {
            lane.skip_below = seen;
        }
    }

    /// Total order: the sequencer's part.
    pub(crate) const fn order_mut(&mut self) -> &mut TotalOrder {
        &mut self.order
    }

    /// Whether this member has to send an order list, now or at the next tick.
    pub(crate) fn unordered(&self) -> usize {
        if self.frozen || self.me != 0 { 0 } else { self.order.unordered_messages() }
    }

    /// Takes a member's vector. True: all others have more of this member's stream than before.
    pub(crate) fn on_vector<O: Outlet>(
        &mut self,
        member: usize,
        vector: impl Iterator<Item = u64>,
        link: &mut Link<'_, O>,
    ) -> bool {
        let mut progress = false;
        for (sender, expected) in vector.enumerate().take(self.lanes.len()) {
            let lane = &mut self.lanes[sender];
            if sender == self.me {
                // More than was sent cannot have arrived.
                if expected > lane.next {
                    continue;
                }
            } else if lane.gap.on_word(
                link.now,
                lane.next,
                expected.min(lane.limit),
                sender == member,
            ) {
                self.note_gap(sender, link);
            }
            if self.acks.on_ack(member, sender, expected) {
                self.lanes[sender].free(self.acks.others(sender));
                progress |= sender == self.me;
            }
        }
        progress
    }

    fn send_ack<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        let (me, delivering) = (self.me, self.delivering);
        self.ack.send(&mut self.lanes, |rank| delivering || rank == me, link);
    }

    /// Time of the next duty.
    pub(crate) fn due(&self) -> Nanos {
        self.ack.due(self.has_backlog).min(self.gap_due)
    }

    /// Sends what is due.
    pub(crate) fn on_tick<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        if self.ack.due(self.has_backlog) <= link.now {
            self.send_ack(link);
        }
        if self.gap_due <= link.now {
            // A list for which there was no room.
            if !self.lanes.is_empty() {
                self.proceed(0, link);
            }
            for rank in 0..self.lanes.len() {
                let lane = &mut self.lanes[rank];
                if lane.gap.due > link.now {
                    continue;
                }
                // Frames that another member has may be among those that wait.
                if self.has_backlog && !self.frozen && lane.gap.is_hearsay(lane.next) {
                    lane.gap.defer(link.now);
                } else {
                    self.ask(rank, link);
                }
            }
            self.gap_due = self.lanes.iter().map(|lane| lane.gap.due).min().unwrap_or(Nanos::MAX);
        }
    }

    /// Asks for all known holes of a stream.
    fn ask<O: Outlet>(&mut self, rank: usize, link: &mut Link<'_, O>) {
        let lane = &mut self.lanes[rank];
        let source = self.sources.choose(rank, lane.gap.tries);
        if lane.next >= lane.gap.heard().min(lane.limit) {
            return lane.gap.postpone();
        }
        if let Some(source) = source {
            // Only that one answers what all are asked.
            let is_first = source == self.sources.first(rank);
            for (first, count) in lane.missing().take(RUNS_ASKED) {
                self.ways.send(source, link.now, |to_all| {
                    (is_first || !to_all) && link.want((source, to_all), rank, first, count)
                });
            }
        }
        lane.gap.on_asked(link.now, lane.next);
    }

    /// Whether this member is the one that answers if all are asked for frames of `origin`.
    pub(crate) fn is_asked_first(&self, origin: usize) -> bool {
        self.sources.first(origin) == self.me
    }

    /// Whether a frame of a stream is here, or was.
    pub(crate) fn has(&self, rank: usize, sequence: u64) -> bool {
        let lane = &self.lanes[rank];
        sequence < lane.next || lane.retained.contains(sequence)
    }

    /// Sends frames again that another member lacks; `to_all`: it has asked all, for want of a way.
    pub(crate) fn on_want<O: Outlet>(
        &mut self,
        asker: usize,
        origin: usize,
        (first, count, to_all): (u64, u32, bool),
        link: &mut Link<'_, O>,
    ) -> u64 {
        let retained = &self.lanes[origin].retained;
        let end = first.saturating_add(u64::from(count).min(LONGEST_ANSWER));
        let mut sent = 0;
        for entry in (first..end).filter_map(|sequence| retained.get(sequence)) {
            if !self.budget.take(link.now, entry.body.len()) {
                link.counters.repairs_limited += 1;
                break;
            }
            let frame = (entry.sequence, DataFlags(entry.flags), entry.body);
            let now = link.now;
            let mut send = |to_all| link.repair((asker, to_all), origin, frame);
            let is_sent =
                if to_all { send(false) || send(true) } else { self.ways.send(asker, now, send) };
            if !is_sent {
                break;
            }
            sent += 1;
        }
        link.counters.repairs_sent += sent;
        sent
    }

    /// Cuts all streams where they are.
    pub(crate) fn freeze(&mut self) {
        self.frozen = true;
        for lane in &mut self.lanes {
            lane.limit = lane.next;
            lane.gap.postpone();
        }
    }

    /// Goes on to `targets`, asking `holders` for what is missing.
    pub(crate) fn pursue<O: Outlet>(
        &mut self,
        targets: &[u64],
        holders: &[Option<usize>],
        link: &mut Link<'_, O>,
    ) {
        for rank in 0..self.lanes.len() {
            let lane = &mut self.lanes[rank];
            lane.limit = targets.get(rank).copied().unwrap_or(lane.next).max(lane.next);
            self.sources.set_holder(rank, holders.get(rank).copied().flatten());
            self.proceed(rank, link);
            let lane = &mut self.lanes[rank];
            if rank != self.me && lane.gap.on_word(link.now, lane.next, lane.limit, true) {
                lane.gap.hurry(link.now);
                self.ask(rank, link);
                self.note_gap(rank, link);
            }
        }
    }

    /// Whether all frames before `targets` are here.
    pub(crate) fn has_reached(&self, targets: &[u64]) -> bool {
        self.lanes.iter().zip(targets).all(|(lane, &target)| lane.next >= target)
    }

    /// Goes on without a change of the view.
    pub(crate) fn resume<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        self.frozen = false;
        self.sources.forget_holders();
        for rank in 0..self.lanes.len() {
            self.lanes[rank].limit = u64::MAX;
            self.proceed(rank, link);
            let lane = &mut self.lanes[rank];
            if rank != self.me && lane.gap.heard() > lane.next {
                lane.gap.hurry(link.now);
                self.note_gap(rank, link);
            }
        }
    }

    /// Delivers all that waits for its turn, at the end of the view.
    pub(crate) fn finish<O: Outlet>(&mut self, link: &mut Link<'_, O>) {
        if self.delivering {
            let take = |rank, message: Complete<'_>| link.complete(rank, message);
            self.order.finish(&mut self.lanes, self.longest_message, &self.acks, take);
        }
    }

    /// Whether a member is asked for missing frames.
    pub(crate) fn on_gone(&mut self, rank: usize, is_gone: bool) {
        self.sources.on_gone(rank, is_gone);
    }
}
