//! Context of one call: the time, the way out, and the counters.

use super::lane::Complete;
use crate::Nanos;
use crate::counters::GroupCounters;
use crate::event::{Event, Order};
use crate::outlet::Outlet;
use crate::view::MemberId;
use lanecast_wire::group::{DataFlags, GroupKind, Header, TO_ALL, head};

/// Fields that all frames of this member share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    pub(crate) group: u32,
    pub(crate) sender: MemberId,
    pub(crate) epoch: u64,
}

/// The way out, for the length of one call.
#[derive(Debug)]
pub(crate) struct Link<'a, O> {
    pub(crate) now: Nanos,
    pub(crate) envelope: Envelope,
    /// Members of the view by rank.
    pub(crate) members: &'a [MemberId],
    pub(crate) counters: &'a mut GroupCounters,
    /// Time of the next duty.
    pub(crate) due: &'a mut Nanos,
    pub(crate) out: &'a mut O,
}

impl<O> Link<'_, O> {
    /// There is a duty at this time.
    #[inline]
    pub(crate) fn wake(&mut self, at: Nanos) {
        *self.due = at.min(*self.due);
    }

    #[inline]
    pub(crate) fn note_retained(&mut self, bytes: usize) {
        self.counters.highest_retained = self.counters.highest_retained.max(bytes);
    }
}

impl<O: Outlet> Link<'_, O> {
    fn header(&self, kind: GroupKind, flags: u16) -> Header {
        let Envelope { group, sender, epoch } = self.envelope;
        Header { kind, flags, group, sender: sender.0, epoch }
    }

    /// Hands a message to the application.
    #[inline]
    pub(crate) fn message(&mut self, rank: usize, sequence: u64, order: Order, bytes: &[u8]) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes += bytes.len() as u64;
        self.out.event(Event::Message { from: self.members[rank], sequence, order, bytes });
    }

    pub(crate) fn complete(&mut self, rank: usize, message: Complete<'_>) {
        self.message(rank, message.sequence, message.order, message.bytes);
    }

    /// A frame of this member's stream.
    #[inline]
    pub(crate) fn data(&mut self, sequence: u64, flags: DataFlags, body: &[u8]) -> bool {
        let head: [u8; 32] = head(self.header(GroupKind::Data, flags.0), &[(sequence, 8)]);
        self.out.broadcast(&head, body)
    }

    /// This member's vector of `members` sequences.
    pub(crate) fn ack(&mut self, members: usize, vector: &[u8]) -> bool {
        let head: [u8; 26] = head(self.header(GroupKind::Ack, 0), &[(members as u64, 2)]);
        let sent = self.out.broadcast(&head, vector);
        self.counters.acks += u64::from(sent);
        sent
    }

    /// Sends a frame to one member, or to all.
    fn one_or_all(&mut self, to: usize, to_all: bool, head: &[u8], body: &[u8]) -> bool {
        if to_all {
            self.out.broadcast(head, body)
        } else {
            self.out.direct(self.members[to], head, body)
        }
    }

    /// Asks a member for `count` frames of another's stream, or its own.
    pub(crate) fn want(
        &mut self,
        (from, to_all): (usize, bool),
        origin: usize,
        first: u64,
        count: u32,
    ) -> bool {
        let origin = self.members[origin].0;
        let fields = [(origin, 8), (first, 8), (u64::from(count), 4)];
        let flags = if to_all { TO_ALL } else { 0 };
        let head: [u8; 44] = head(self.header(GroupKind::Want, flags), &fields);
        let sent = self.one_or_all(from, to_all, &head, &[]);
        self.counters.wants += u64::from(sent);
        self.counters.wanted += if sent { u64::from(count) } else { 0 };
        sent
    }

    /// Sends a frame again.
    pub(crate) fn repair(
        &mut self,
        (to, to_all): (usize, bool),
        origin: usize,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
    ) -> bool {
        let fields = [(self.members[origin].0, 8), (sequence, 8), (u64::from(flags.0), 2)];
        let way = if to_all { TO_ALL } else { 0 };
        let head: [u8; 42] = head(self.header(GroupKind::Repair, way), &fields);
        self.one_or_all(to, to_all, &head, body)
    }

    /// A fragment of a message to one member.
    pub(crate) fn direct(
        &mut self,
        to: MemberId,
        sequence: u64,
        flags: DataFlags,
        body: &[u8],
    ) -> bool {
        let head: [u8; 32] = head(self.header(GroupKind::Direct, flags.0), &[(sequence, 8)]);
        self.out.direct(to, &head, body)
    }

    /// The next sequence expected of another's messages to this member.
    pub(crate) fn direct_ack(&mut self, to: MemberId, next: u64) -> bool {
        let head: [u8; 32] = head(self.header(GroupKind::DirectAck, 0), &[(next, 8)]);
        self.out.direct(to, &head, &[])
    }

    /// A piece of a state.
    pub(crate) fn state(&mut self, to: MemberId, offset: u64, total: u64, piece: &[u8]) -> bool {
        let head: [u8; 40] = head(self.header(GroupKind::State, 0), &[(offset, 8), (total, 8)]);
        self.out.direct(to, &head, piece)
    }

    /// The bytes of a state that are here; none asks for one.
    pub(crate) fn state_ack(&mut self, to: MemberId, offset: u64) -> bool {
        let head: [u8; 32] = head(self.header(GroupKind::StateAck, 0), &[(offset, 8)]);
        self.out.direct(to, &head, &[])
    }
}
