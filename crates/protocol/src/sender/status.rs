//! What receivers say about themselves.

use super::member::Peer;
use super::{Sender, SenderEvent};
use crate::Nanos;
use crate::round_trip::RoundTrip;
use crate::sequence::{ahead, before, later};
use lanecast_wire::net::{EchoBody, Frame, Kind, LeaveBody, StatusBody, flag};
use std::net::SocketAddr;

/// A receiver never takes more than this many datagrams beyond what it has read.
const LIMIT_MAX: u64 = 1 << 32;

impl Sender {
    /// A frame came in at the socket that data goes out from.
    pub fn on_frame(&mut self, now: Nanos, from: SocketAddr, frame: &Frame<'_>) {
        match frame.kind {
            Kind::Nak if frame.session == self.settings.session => self.on_nak(now, from, frame),
            _ => self.on_any_frame(now, Peer::Address(from), frame),
        }
    }

    /// A frame that may come by any way.
    pub(super) fn on_any_frame(&mut self, now: Nanos, from: Peer, frame: &Frame<'_>) {
        if frame.session != self.settings.session {
            self.counters.malformed += 1;
            return;
        }
        match frame.kind {
            Kind::Join => self.on_join(now, from, frame),
            Kind::Status => self.on_status(now, from, frame),
            Kind::Leave => self.on_leave(from, frame),
            _ => self.counters.malformed += 1,
        }
    }

    /// The member that this is, if it comes from where the member is.
    pub(super) fn member(&mut self, receiver: u64, from: Peer) -> Option<usize> {
        let is_it = |member: &super::member::Member| member.receiver == receiver;
        match self.members.iter().position(is_it) {
            Some(at) if self.members[at].peer == from => Some(at),
            Some(_) => {
                self.counters.strangers += 1;
                None
            }
            None => {
                self.counters.strangers += 1;
                self.refuse(from, receiver, flag::STRANGER);
                None
            }
        }
    }

    fn on_status(&mut self, now: Nanos, from: Peer, frame: &Frame<'_>) {
        let Some((body, _)) = StatusBody::split(frame.body) else {
            self.counters.malformed += 1;
            return;
        };
        let Some(at) = self.member(body.receiver.get(), from) else { return };
        let member = &mut self.members[at];
        let read = frame.sequence;
        // Not what was sent to the group: a receiver may begin behind that.
        if before(self.packer.visible(), read) {
            self.counters.malformed += 1;
            return;
        }
        member.heard = now;
        member.missing.done(body.received.get());
        member.confirmed = true;
        // It may have said this before it heard of the topics that it was told of last.
        member.is_told = body.topics.get() as usize >= member.wants.len();
        member.tag = body.tag.get();
        if body.lost.get() > 0 && !std::mem::replace(&mut member.has_lost, true) {
            self.behind.note_loss();
        }
        let member = &mut self.members[at];
        if before(member.consumed, read) {
            member.consumed = read;
            member.holds_since = None;
        }
        let limit = body.limit.get();
        // No absurd promise, and none is taken back: a late status says less than one before it.
        if (0..=LIMIT_MAX as i64).contains(&ahead(limit, read)) {
            member.limit = later(member.limit, limit);
        }
        if !matches!(self.settings.distribution, super::Distribution::Multicast(_)) {
            if before(member.cursor, read) {
                // It was told how far the session is, and has given up what is kept no more.
                member.pass(read);
                self.peeked = None;
            }
            self.members[at].settle();
        }
        let told = Nanos::from(body.round_trip.get());
        if told > 0 {
            self.members[at].round_trip = Some(told.min(RoundTrip::PATIENCE_MAX));
            self.refresh_round_trip();
        }
        self.refresh_gates();
        if body.echo.get() != 0 {
            self.echo(from, body);
        }
    }

    /// Looks for the longest of the receivers' round trips.
    pub(super) fn refresh_round_trip(&mut self) {
        self.round_trip = self.members.iter().filter_map(|member| member.round_trip).max();
    }

    fn echo(&mut self, to: Peer, status: &StatusBody) {
        let body = EchoBody { receiver: status.receiver, echo: status.echo };
        let frame = self.frame((Kind::Echo, 0), self.packer.visible(), |writer| {
            let _fits = writer.add(&body);
        });
        self.answer(to, frame);
    }

    fn on_leave(&mut self, from: Peer, frame: &Frame<'_>) {
        let Some((body, _)) = LeaveBody::split(frame.body) else {
            self.counters.malformed += 1;
            return;
        };
        let receiver = body.receiver.get();
        let is_it =
            |member: &super::member::Member| member.receiver == receiver && member.peer == from;
        if let Some(at) = self.members.iter().position(is_it) {
            self.leaves(at);
        }
    }

    /// A member has left.
    pub(super) fn leaves(&mut self, at: usize) {
        let receiver = self.remove(at).receiver;
        self.counters.left += 1;
        self.tell(SenderEvent::Left { receiver });
    }
}
