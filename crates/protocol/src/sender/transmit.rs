//! What goes out next: answers, then repairs, then data.

use super::member::Peer;
use super::window::Run;
use super::{Distribution, Sender, Transmit};
use crate::Nanos;
use crate::sequence::{before, later};
use std::net::SocketAddr;

/// What was given out to be sent.
#[derive(Debug)]
pub(super) enum Planned {
    Answer,
    Repair { at: usize, alone: bool, to: SocketAddr, run: Run },
    Group { to: SocketAddr, run: Run },
    Member { at: usize, to: SocketAddr, run: Run },
}

impl Sender {
    /// What to send now, if there is anything; the same again until
    /// [`transmitted`](Self::transmitted) is called, unless something more urgent comes up.
    pub fn next_transmit(&mut self, now: Nanos) -> Option<Transmit<'_>> {
        self.peeked = self.plan(now);
        match self.peeked.as_ref()? {
            Planned::Answer => {
                let (to, bytes) = self.answers.front()?;
                Some(Transmit { to, bytes, segment: bytes.len() })
            }
            Planned::Repair { to, run, .. }
            | Planned::Group { to, run }
            | Planned::Member { to, run, .. } => {
                let bytes = &self.packer.window.bytes[run.bytes.clone()];
                Some(Transmit { to: *to, bytes, segment: run.segment })
            }
        }
    }

    fn plan(&mut self, now: Nanos) -> Option<Planned> {
        if self.answers.front().is_some() {
            return Some(Planned::Answer);
        }
        if let Some(repair) = self.plan_repair(now) {
            return Some(repair);
        }
        // Looking for repairs may have found something to answer.
        if self.answers.front().is_some() {
            return Some(Planned::Answer);
        }
        if !self.has_rate(now) {
            return None;
        }
        match self.settings.distribution {
            Distribution::Multicast(to) => self.plan_group(to),
            Distribution::Unicast => self.plan_members(),
            Distribution::Stream => None,
        }
    }

    /// Whether the data rate lets data out.
    pub(super) fn has_rate(&mut self, now: Nanos) -> bool {
        self.data_rate.as_mut().is_none_or(|rate| rate.is_ready(now))
    }

    fn plan_group(&mut self, to: SocketAddr) -> Option<Planned> {
        let end = self.group_end();
        if !before(self.sent, end) {
            return None;
        }
        let run = self.packer.window.run(self.sent, end, |_| true);
        self.packer.window.stamp(&run, 0, 0);
        Some(Planned::Group { to, run })
    }

    fn plan_members(&mut self) -> Option<Planned> {
        let count = self.members.len();
        for step in 0..count {
            let at = (self.data_turn + step) % count;
            let Peer::Address(to) = self.members[at].peer else { continue };
            if let Some(run) = self.plan_member(at) {
                return Some(Planned::Member { at, to, run });
            }
        }
        None
    }

    /// The next run for a receiver that is sent to alone; passes over what it does not want.
    pub(super) fn plan_member(&mut self, at: usize) -> Option<Run> {
        let visible = self.packer.visible();
        let window = &self.packer.window;
        let member = &mut self.members[at];
        // What was overwritten before it could be sent is lost to it, and it will see that.
        if before(member.cursor, window.oldest()) {
            member.pass(window.oldest());
        }
        let begin = member.cursor;
        while before(member.cursor, visible)
            && !window.is_wanted(member.cursor, |topic| member.wants(topic))
        {
            member.skip();
        }
        if member.cursor != begin {
            self.refresh_gates();
        }
        let member = &self.members[at];
        let end = self.member_end(member);
        if !before(member.cursor, end) {
            return None;
        }
        let window = &self.packer.window;
        let wanted = |sequence| window.is_wanted(sequence, |topic| member.wants(topic));
        let run = window.run(member.cursor, end, wanted);
        let skipped = member.skipped;
        self.packer.window.stamp(&run, 0, skipped);
        Some(run)
    }

    /// What [`next_transmit`](Self::next_transmit) gave last is on its way.
    pub fn transmitted(&mut self, now: Nanos) {
        match self.peeked.take() {
            None => {}
            Some(Planned::Answer) => self.answers.pop(),
            Some(Planned::Repair { at, alone, run, .. }) => self.repaired(now, at, alone, &run),
            Some(Planned::Group { run, .. }) => {
                self.sent = run.end();
                self.group_beat = self.first_beat(now);
                self.note_sent(&run);
            }
            Some(Planned::Member { at, run, .. }) => {
                self.data_turn = at + 1;
                self.pass(now, at, &run);
            }
        }
    }

    /// A run is on its way to one receiver.
    pub(super) fn pass(&mut self, now: Nanos, at: usize, run: &Run) {
        let beat = self.first_beat(now);
        if let Some(member) = self.members.get_mut(at) {
            member.pass(run.end());
            member.beat = beat;
        }
        self.sent = later(self.sent, run.end());
        self.note_sent(run);
    }

    fn note_sent(&mut self, run: &Run) {
        self.counters.datagrams += run.count as u64;
        self.counters.bytes += run.bytes.len() as u64;
        if let Some(rate) = &mut self.data_rate {
            rate.take(run.bytes.len());
        }
    }

    /// Whether something published has not been sent yet.
    pub fn has_data_to_send(&self) -> bool {
        let (visible, open) = (self.packer.visible(), self.packer.has_open());
        if self.is_group() {
            return open || before(self.sent, visible);
        }
        let mut counted = self.members.iter().filter(|member| member.counts());
        counted.any(|member| open || before(member.cursor, visible))
    }
}
