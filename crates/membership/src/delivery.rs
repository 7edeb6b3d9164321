//! Messages of a view: every member delivers the same, in order, though frames are lost, doubled
//! and reordered.
//!
//! [`Streams`] receives all members' frames, keeps them until every member has them, and repairs;
//! [`OwnStream`] sends within the credit that the others' acknowledgements give; [`Directs`]
//! carries messages to one member and [`StateTransfers`] the state for a joiner. [`Delivery`] is
//! the member's way to all of them, and knows whether the view is changing: then streams are cut
//! where all survivors can meet, and sending waits.
//!
//! A change of the view: `hold`, perhaps `pursue` until `has_reached`, then `finish` and `install`;
//! or `resume`.

mod ack_schedule;
mod acks;
mod assembly;
mod closed_ways;
mod context;
mod credit;
mod directs;
mod early;
mod gap;
mod lane;
mod link;
mod own_stream;
mod repair_budget;
mod retention;
mod sources;
mod state;
mod streams;
#[cfg(test)]
mod tests;
mod total_order;

use self::context::Context;
use self::directs::Directs;
use self::early::EarlyFrames;
use self::own_stream::OwnStream;
use self::state::StateTransfers;
use self::streams::Streams;
use crate::Nanos;
use crate::counters::GroupCounters;
use crate::error::{SendError, StateError};
use crate::event::Order;
use crate::outlet::Outlet;
use crate::settings::GroupSettings;
use crate::view::{MemberId, View};
use lanecast_wire::group::DataFlags;

/// Fields of a frame of someone's stream: sequence, flags, body.
pub(crate) type Frame<'a> = (u64, DataFlags, &'a [u8]);

/// Former views of the members of a view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origins<'a> {
    /// Whether each member comes from this member's own former view, by rank.
    pub(crate) stayed: &'a [bool],
    /// Whether none of them has been in a view before.
    pub(crate) is_founding: bool,
}

/// Whether messages are sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No view is installed.
    NoView,
    Open,
    /// The view is changing.
    Held,
}

/// Delivery of messages in the views of one member.
#[derive(Clone, Debug)]
pub(crate) struct Delivery {
    phase: Phase,
    context: Context,
    streams: Streams,
    own: OwnStream,
    directs: Directs,
    state: StateTransfers,
    early: EarlyFrames,
}

impl Delivery {
    pub(crate) fn new(settings: &GroupSettings, me: MemberId, group: u32) -> Self {
        Self {
            phase: Phase::NoView,
            context: Context::new(me, group),
            streams: Streams::new(settings.longest_message),
            own: OwnStream::new(settings),
            directs: Directs::new(settings),
            state: StateTransfers::new(settings),
            early: EarlyFrames::default(),
        }
    }

    /// Begins a view that holds this member, after `finish` and the event `View`. `firsts`: each
    /// member's first sequence, by rank.
    pub(crate) fn install<O: Outlet>(
        &mut self,
        now: Nanos,
        view: &View,
        firsts: &[u64],
        origins: Origins<'_>,
        out: &mut O,
    ) {
        let members = view.members.len();
        debug_assert_eq!(firsts.len(), members, "one first sequence for each member");
        let Some(rank) = view.rank(self.context.envelope.sender) else {
            debug_assert!(false, "a view without this member");
            return;
        };
        self.context.install(now, view);
        let share = credit::Credit::share(self.own.window(), members);
        self.streams.install(rank, firsts, share, self.own.ring_bytes(members));
        self.own.install(&self.streams, members);
        self.directs.install(view.id.epoch, &self.context.members, origins.stayed);
        self.phase = Phase::Open;
        let early = core::mem::take(&mut self.early);
        let link = &mut self.context.link(now, out);
        if self.state.install(rank == 0 && origins.is_founding, rank, link) {
            self.streams.begin_delivery(link);
        } else {
            self.streams.hold_delivery();
        }
        self.own.go_on(&mut self.streams, link);
        self.early = early.release(view.id.epoch, |from, sequence, flags, body| {
            self.on_data(now, from, view.id.epoch, (sequence, flags, body), out);
        });
    }

    /// A frame of its sender's stream.
    #[inline]
    pub(crate) fn on_data<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        frame: Frame<'_>,
        out: &mut O,
    ) {
        if epoch > self.context.envelope.epoch {
            self.context.counters.other_view += u64::from(!self.early.keep(from, epoch, frame));
            return;
        }
        let Some(rank) = self.context.rank(from, epoch) else { return };
        self.receive(now, rank, frame, out);
    }

    #[inline]
    fn receive<O: Outlet>(&mut self, now: Nanos, rank: usize, frame: Frame<'_>, out: &mut O) {
        if rank == self.streams.rank() {
            // Its own stream, echoed or forged.
            return;
        }
        let link = &mut self.context.link(now, out);
        self.streams.receive(rank, frame, link);
        self.state.take(&mut self.streams, link);
        if self.streams.unordered() >= total_order::LONGEST_LIST {
            self.own.send_order_lists(&mut self.streams, link);
        }
        if self.own.waits_for_credit() && self.phase == Phase::Open {
            self.own.go_on(&mut self.streams, link);
        }
    }

    /// A frame of `origin`, sent again by `from`, perhaps to all.
    pub(crate) fn on_repair<O: Outlet>(
        &mut self,
        now: Nanos,
        (from, epoch): (MemberId, u64),
        origin: MemberId,
        (frame, to_all): (Frame<'_>, bool),
        out: &mut O,
    ) {
        if self.context.rank(from, epoch).is_some()
            && let Some(rank) = self.context.rank(origin, epoch)
            // One that another lacks is no sign that an acknowledgement was lost.
            && !(to_all && self.streams.has(rank, frame.0))
        {
            self.context.counters.repairs_received += 1;
            self.receive(now, rank, frame, out);
        }
    }

    /// A member's vector, from an acknowledgement or a heartbeat: by rank, the next sequence it
    /// expects.
    pub(crate) fn on_vector<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        vector: impl Iterator<Item = u64>,
        out: &mut O,
    ) {
        let Some(rank) = self.context.rank(from, epoch) else { return };
        if rank == self.streams.rank() {
            return;
        }
        let link = &mut self.context.link(now, out);
        if self.streams.on_vector(rank, vector, link) {
            self.own.on_progress(&self.streams, link);
            if self.phase == Phase::Open {
                self.own.go_on(&mut self.streams, link);
            }
        }
    }

    /// A member asks for `count` frames of `origin`, from `first` on; `to_all`: it asks all.
    pub(crate) fn on_want<O: Outlet>(
        &mut self,
        now: Nanos,
        (from, epoch): (MemberId, u64),
        origin: MemberId,
        (first, count, to_all): (u64, u32, bool),
        out: &mut O,
    ) {
        let Some(asker) = self.context.rank(from, epoch) else { return };
        let Some(origin) = self.context.rank(origin, epoch) else { return };
        if asker == self.streams.rank() || to_all && !self.streams.is_asked_first(origin) {
            return;
        }
        let link = &mut self.context.link(now, out);
        let repairs = self.streams.on_want(asker, origin, (first, count, to_all), link);
        if origin == self.streams.rank() {
            self.own.on_repairs(repairs);
        }
    }

    /// A fragment of a message to this member alone.
    pub(crate) fn on_direct<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        frame: Frame<'_>,
        out: &mut O,
    ) {
        if let Some(rank) = self.context.rank_of(from).filter(|&rank| rank != self.streams.rank()) {
            self.directs.receive(rank, epoch, frame, &mut self.context.link(now, out));
        }
    }

    /// A member expects this sequence of this one's messages to it.
    pub(crate) fn on_direct_ack<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        next: u64,
        out: &mut O,
    ) {
        if let Some(rank) = self.context.rank_of(from) {
            self.directs.on_ack(rank, epoch, next, &mut self.context.link(now, out));
        }
    }

    /// A piece of the group's state: offset, whole length, bytes.
    pub(crate) fn on_state<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        piece: (u64, u64, &[u8]),
        out: &mut O,
    ) {
        let Some(rank) = self.context.rank(from, epoch) else { return };
        let link = &mut self.context.link(now, out);
        self.state.on_piece(rank, piece, &mut self.streams, link);
        if self.own.waits_for_credit() && self.phase == Phase::Open {
            self.own.go_on(&mut self.streams, link);
        }
    }

    /// A joiner has so many bytes of its state; none: it asks for one.
    pub(crate) fn on_state_ack<O: Outlet>(
        &mut self,
        now: Nanos,
        from: MemberId,
        epoch: u64,
        offset: u64,
        out: &mut O,
    ) {
        // A state as of now would miss what the change of the view still brings.
        if self.phase == Phase::Open && self.context.rank(from, epoch).is_some() {
            let link = &mut self.context.link(now, out);
            self.state.on_ack(from, offset, link);
        }
    }

    /// Next sequences that this member acknowledges, by rank; its own next one for itself.
    pub(crate) fn acknowledged(&self) -> impl Iterator<Item = u64> {
        self.streams.acknowledged()
    }

    /// Next sequences that this member expects, by rank; its own next one for itself.
    pub(crate) fn vector(&self) -> Vec<u64> {
        self.streams.vector()
    }

    /// This member's own next sequence.
    pub(crate) fn next_sequence(&self) -> u64 {
        self.streams.next_own()
    }

    /// Cuts the streams for a change of the view: nothing is sent or received, so that the vector
    /// stays.
    pub(crate) fn hold(&mut self) {
        if self.phase != Phase::NoView {
            self.phase = Phase::Held;
            self.streams.freeze();
        }
    }

    /// Receives up to `targets`, by rank; `holders` have everything up to there.
    pub(crate) fn pursue<O: Outlet>(
        &mut self,
        now: Nanos,
        targets: &[u64],
        holders: &[MemberId],
        out: &mut O,
    ) {
        let holders: Vec<_> = holders.iter().map(|&holder| self.context.rank_of(holder)).collect();
        let link = &mut self.context.link(now, out);
        self.streams.pursue(targets, &holders, link);
        self.state.take(&mut self.streams, link);
    }

    /// Whether everything before `targets` is here.
    pub(crate) fn has_reached(&self, targets: &[u64]) -> bool {
        self.streams.has_reached(targets)
    }

    /// Ends the view: delivers what waits for its turn, in the same order at all members that
    /// reached the same targets.
    pub(crate) fn finish<O: Outlet>(&mut self, now: Nanos, out: &mut O) {
        self.phase = Phase::Held;
        self.streams.finish(&mut self.context.link(now, out));
    }

    /// The change of the view was given up: all goes on.
    pub(crate) fn resume<O: Outlet>(&mut self, now: Nanos, out: &mut O) {
        if self.phase != Phase::Held {
            return;
        }
        self.phase = Phase::Open;
        let link = &mut self.context.link(now, out);
        self.streams.resume(link);
        self.state.take(&mut self.streams, link);
        self.own.go_on(&mut self.streams, link);
        link.wake(now);
    }

    /// A member does not answer any more: others are asked in its place.
    pub(crate) fn peer_gone(&mut self, member: MemberId) {
        if let Some(rank) = self.context.rank_of(member) {
            self.streams.on_gone(rank, true);
        }
    }

    /// A member that was taken for gone answers again.
    pub(crate) fn peer_back(&mut self, member: MemberId) {
        if let Some(rank) = self.context.rank_of(member) {
            self.streams.on_gone(rank, false);
        }
    }

    /// Sends to all members; returns the message's sequence, that of its last fragment.
    #[inline]
    pub(crate) fn try_send<O: Outlet>(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        order: Order,
        out: &mut O,
    ) -> Result<u64, SendError> {
        match self.phase {
            Phase::Open => {}
            Phase::NoView | Phase::Held => {
                self.own.refuse_for_change();
                let has_view = self.phase == Phase::Held;
                return Err(if has_view { SendError::Changing } else { SendError::NoView });
            }
        }
        let link = &mut self.context.link(now, out);
        let sent = self.own.send(bytes, order, &mut self.streams, link);
        if self.streams.unordered() >= total_order::LONGEST_LIST {
            self.own.send_order_lists(&mut self.streams, link);
        }
        sent
    }

    /// Sends to one member; returns the message's sequence among those to this member.
    pub(crate) fn try_send_to<O: Outlet>(
        &mut self,
        now: Nanos,
        to: MemberId,
        bytes: &[u8],
        out: &mut O,
    ) -> Result<u64, SendError> {
        if self.phase == Phase::NoView {
            return Err(SendError::NoView);
        }
        let Some(rank) = self.context.rank_of(to) else {
            return Err(SendError::NotAMember(to));
        };
        let own = rank == self.streams.rank();
        let link = &mut self.context.link(now, out);
        if own {
            self.directs.send_to_self(rank, bytes, link)
        } else {
            self.directs.send(rank, bytes, link)
        }
    }

    /// The application's answer to `Event::StateRequested`.
    pub(crate) fn provide_state<O: Outlet>(
        &mut self,
        now: Nanos,
        token: u64,
        bytes: Vec<u8>,
        out: &mut O,
    ) -> Result<(), StateError> {
        self.state.provide(token, bytes, &self.streams, &mut self.context.link(now, out))
    }

    /// Own sequence up to which all members of the view have everything.
    pub(crate) fn stable(&self) -> u64 {
        if self.phase == Phase::NoView { 0 } else { self.own.stable(&self.streams) }
    }

    /// Memory is short: fewer bytes may be under way.
    pub(crate) fn on_memory_pressure(&mut self) {
        self.own.on_memory_pressure();
    }

    /// Frames wait that were not read yet, or all were.
    #[inline]
    pub(crate) fn set_backlog(&mut self, has_backlog: bool) {
        if core::mem::replace(&mut self.streams.has_backlog, has_backlog) && !has_backlog {
            // The acknowledgement of all that was read.
            self.context.due = self.context.due.min(self.streams.due());
        }
    }

    /// Does what is due.
    pub(crate) fn on_tick<O: Outlet>(&mut self, now: Nanos, out: &mut O) {
        if now < self.context.due || self.phase == Phase::NoView {
            return;
        }
        let link = &mut self.context.link(now, out);
        self.streams.on_tick(link);
        let own = self.own.on_tick(self.phase == Phase::Open, &mut self.streams, link);
        let directs = self.directs.on_tick(link);
        let state = self.state.on_tick(self.streams.rank(), link);
        self.context.due = self.streams.due().min(own).min(directs).min(state);
    }

    /// When `on_tick` has something to do; `Nanos::MAX`: not before the next call of another
    /// function.
    #[inline]
    pub(crate) const fn next_tick(&self) -> Nanos {
        self.context.due
    }

    pub(crate) const fn counters(&self) -> &GroupCounters {
        &self.context.counters
    }
}
