//! Streams: each connection has its place in the window, and frames of its own in between.

use super::member::Peer;
use super::window::Run;
use super::{Distribution, Sender};
use crate::Nanos;
use lanecast_wire::net::{Frame, Kind};

/// The most bytes of control frames that may wait for a connection.
const PENDING_MAX: usize = 1 << 18;

/// So many connections may be without a receiver, beside those that have one.
pub const UNJOINED_MAX: usize = 64;

/// A connection.
#[derive(Debug)]
struct Link {
    link: u64,
    /// Since when it has been without a receiver.
    unjoined: Option<Nanos>,
    /// The rest of a frame that was begun, then control frames.
    pending: Vec<u8>,
    written: usize,
    /// What was given out to be written.
    planned: Option<Run>,
    /// Its receiver was told that it is not in: it hangs up when it has heard that.
    parting: bool,
}

/// The connections.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: Vec<Link>,
}

impl Links {
    fn get(&mut self, link: u64) -> Option<&mut Link> {
        self.links.iter_mut().find(|known| known.link == link)
    }

    /// Adds a frame for a connection; false if it is gone or takes nothing any more.
    pub(super) fn push(&mut self, link: u64, frame: &[u8]) -> bool {
        let Some(link) = self.get(link) else { return false };
        let room = link.pending.len() + frame.len() <= PENDING_MAX;
        if room {
            link.pending.extend_from_slice(frame);
        }
        room
    }

    /// A receiver is in by this connection.
    pub(super) fn join(&mut self, link: u64) {
        self.get(link).into_iter().for_each(|known| known.unjoined = None);
    }

    /// The receiver of a connection is gone, or has come by another.
    pub(super) fn unjoin(&mut self, link: u64, now: Nanos) {
        self.get(link).into_iter().for_each(|known| _ = known.unjoined.get_or_insert(now));
    }

    /// The connection that has been without a receiver for longest, and since when.
    fn longest_unjoined(&self) -> Option<(u64, Nanos)> {
        let unjoined = self.links.iter().filter_map(|known| Some((known.link, known.unjoined?)));
        unjoined.min_by_key(|(_, since)| *since)
    }

    /// The receiver of a connection is being told that it is not in.
    pub(super) fn part(&mut self, link: u64) {
        if let Some(link) = self.get(link) {
            link.parting = true;
        }
    }
}

impl Link {
    /// What waits, without what was written.
    fn rest(&self) -> &[u8] {
        &self.pending[self.written..]
    }

    fn advance(&mut self, bytes: usize) {
        self.written = (self.written + bytes).min(self.pending.len());
        if self.written == self.pending.len() {
            self.pending.clear();
            self.written = 0;
        }
    }
}

impl Sender {
    /// A connection is there; `link` is its name from now on. Its receiver is let in by a Join.
    pub fn connect(&mut self, now: Nanos, link: u64) {
        let most = self.settings.receivers_max + UNJOINED_MAX;
        if self.links.get(link).is_none() && self.links.links.len() < most {
            let (pending, planned, unjoined) = (Vec::new(), None, Some(now));
            let (written, parting) = (0, false);
            self.links.links.push(Link { link, unjoined, pending, written, planned, parting });
        }
    }

    /// A connection that is to be closed: for the liveness it has been without a receiver.
    pub fn overdue_connection(&self, now: Nanos) -> Option<u64> {
        let (link, since) = self.links.longest_unjoined()?;
        (now >= since.saturating_add(self.settings.liveness)).then_some(link)
    }

    /// The connections without a receiver, the oldest first.
    pub fn unjoined_connections(&self) -> impl Iterator<Item = u64> {
        let unjoined = self.links.links.iter().filter(|known| known.unjoined.is_some());
        unjoined.map(|known| known.link)
    }

    /// When a connection is overdue at the earliest.
    pub(super) fn links_due(&self) -> Option<Nanos> {
        let (_, since) = self.links.longest_unjoined()?;
        Some(since.saturating_add(self.settings.liveness))
    }

    /// A connection is gone. Its receiver keeps its place for as long as receivers may be silent.
    pub fn disconnect(&mut self, link: u64) {
        self.links.links.retain(|known| known.link != link);
    }

    /// Whether no connection is left open for its receiver to hear that it is not in.
    pub fn has_rejected_connections(&self) -> bool {
        self.links.links.iter().any(|known| known.parting)
    }

    /// Bytes to be written to a connection now: whole frames, or the rest of one.
    pub fn stream_bytes(&mut self, now: Nanos, link: u64) -> &[u8] {
        let Some(known) = self.links.get(link) else { return &[] };
        known.planned = None;
        let waits = !known.rest().is_empty();
        if waits || self.settings.distribution != Distribution::Stream {
            return self.links.get(link).map_or(&[], |known| known.rest());
        }
        if !self.has_rate(now) {
            return &[];
        }
        let Some(at) = self.members.iter().position(|member| member.peer == Peer::Link(link))
        else {
            return &[];
        };
        let Some(run) = self.plan_member(at) else { return &[] };
        let bytes = run.bytes.clone();
        if let Some(known) = self.links.get(link) {
            known.planned = Some(run);
        }
        &self.packer.window.bytes[bytes]
    }

    /// The connection took the first `bytes` of what [`stream_bytes`](Self::stream_bytes) gave.
    pub fn stream_written(&mut self, now: Nanos, link: u64, bytes: usize) {
        let Some(known) = self.links.get(link) else { return };
        let Some(mut run) = known.planned.take() else {
            known.advance(bytes);
            return;
        };
        let bytes = bytes.min(run.bytes.len());
        if bytes == 0 {
            return;
        }
        // All frames of a run are equally long but the last: the rest of one that was begun is
        // kept apart, so that the window need not wait for it.
        let frames = bytes.div_ceil(run.segment);
        let end = (run.bytes.start + frames * run.segment).min(run.bytes.end);
        let rest = &self.packer.window.bytes[run.bytes.start + bytes..end];
        known.pending.extend_from_slice(rest);
        run.count = frames;
        run.bytes.end = end;
        let at = self.members.iter().position(|member| member.peer == Peer::Link(link));
        if let Some(at) = at {
            self.pass(now, at, &run);
        }
    }

    /// A frame came in on a connection.
    pub fn on_stream_frame(&mut self, now: Nanos, link: u64, frame: &Frame<'_>) {
        if self.links.get(link).is_none() {
            return;
        }
        match frame.kind {
            // It tries again.
            Kind::Join => {
                self.links.get(link).into_iter().for_each(|known| known.parting = false);
                self.on_any_frame(now, Peer::Link(link), frame);
            }
            // On a stream nothing is missing but what was skipped on purpose.
            Kind::Nak => self.counters.malformed += 1,
            _ => self.on_any_frame(now, Peer::Link(link), frame),
        }
    }
}
