//! Who listens.

use super::member::{Member, Peer};
use super::{EVENTS_MAX, Sender, SenderEvent};
use crate::sequence::before;
use std::net::SocketAddr;

impl Sender {
    /// How many receivers are joined that want a topic of this session.
    pub fn receivers(&self) -> usize {
        self.members.iter().filter(|member| member.counts()).count()
    }

    /// How often a receiver has come or gone.
    pub const fn membership_changes(&self) -> u64 {
        self.membership_changes
    }

    /// Where the receivers are, but those on connections. They stay where they were let in.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.members.iter().filter_map(|member| match member.peer {
            Peer::Address(address) => Some(address),
            Peer::Link(_) => None,
        })
    }

    /// How many of them have shown that they know where their topics begin: what is published from
    /// now on reaches so many.
    pub fn joined(&self) -> usize {
        self.members.iter().filter(|member| member.counts() && member.is_told).count()
    }

    /// Whether every receiver has said that it has read everything published.
    pub fn is_drained(&self) -> bool {
        let visible = self.packer.visible();
        let mut counted = self.members.iter().filter(|member| member.counts());
        let open = self.packer.has_open();
        counted.all(|member| !open && !before(member.consumed, visible))
    }

    /// How many receivers that were in have not read everything, and are not waited for.
    pub fn left_behind(&self) -> usize {
        self.behind.count(self.counters.messages)
    }

    /// A receiver that has not left is let go.
    pub(super) fn leave_behind(&mut self, at: usize) -> Member {
        let visible = self.packer.visible();
        let member = &self.members[at];
        let consumed_all = !self.packer.has_open() && !before(member.consumed, visible);
        if member.counts() {
            let published = (self.counters.messages, self.counters.unwanted);
            self.behind.note(member.receiver, consumed_all, published);
        }
        self.remove(at)
    }

    /// Whether messages on the topic go anywhere.
    pub fn is_wanted(&self, topic: u32) -> bool {
        self.packer.is_wanted(topic)
    }

    /// What happened to receivers, oldest first.
    pub fn next_event(&mut self) -> Option<SenderEvent> {
        self.events.pop_front()
    }

    pub(super) fn tell(&mut self, event: SenderEvent) {
        if self.events.len() == EVENTS_MAX {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
