//! A group of resolvers on a network that loses frames and falls apart, by a seed.

use super::{events, resolver};
use crate::split;
use lanecast_protocol::resolution::{Resolver, ResolverEvent};
use lanecast_protocol::rng::Rng;
use lanecast_protocol::{MICROSECOND, Nanos};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;

/// Time of arrival, number, sender, destination, and the frame.
type Flight = (Nanos, u64, usize, usize, Vec<u8>);

pub(super) struct Network {
    pub(super) now: Nanos,
    pub(super) resolvers: Vec<Resolver>,
    /// Topics found by each resolver, by session.
    pub(super) found: Vec<BTreeMap<u64, BTreeSet<String>>>,
    /// Loss rate, per mille.
    pub(super) lost: u64,
    /// Partition of each resolver: frames reach only the same partition.
    pub(super) parts: Vec<u32>,
    rng: Rng,
    flying: BinaryHeap<Reverse<Flight>>,
    frames: u64,
}

impl Network {
    pub(super) fn new(count: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let now = rng.next_u64() >> 8;
        let resolvers = (0..count).map(|_| resolver(rng.next_u64(), now)).collect();
        Self {
            now,
            resolvers,
            found: vec![BTreeMap::new(); count],
            lost: 0,
            parts: vec![0; count],
            rng,
            flying: BinaryHeap::new(),
            frames: 0,
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Nanos) {
        self.run_until(time, |_| false);
    }

    /// Lets time pass until something holds; gives whether it did.
    pub(super) fn run_until(&mut self, time: Nanos, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + time;
        loop {
            (0..self.resolvers.len()).for_each(|index| self.transmit(index));
            if holds(self) {
                return true;
            }
            let arrival = self.flying.peek().map(|Reverse((at, ..))| *at);
            let deadlines = self.resolvers.iter().filter_map(Resolver::next_deadline);
            let next = deadlines.chain(arrival).min().unwrap_or(end);
            if next >= end {
                self.now = end;
                return false;
            }
            self.now = self.now.max(next);
            self.arrive();
        }
    }

    fn transmit(&mut self, from: usize) {
        let mut buffer = [0; 1_472];
        while let Some(length) = self.resolvers[from].next_transmit(self.now, &mut buffer) {
            // The sender hears itself as well.
            for to in 0..self.resolvers.len() {
                let is_lost = self.rng.below(1_000) < self.lost;
                if is_lost || self.parts[from] != self.parts[to] {
                    continue;
                }
                let at = self.now + 20 * MICROSECOND + self.rng.below(100 * MICROSECOND);
                self.frames += 1;
                let flight = (at, self.frames, from, to, buffer[..length].to_vec());
                self.flying.push(Reverse(flight));
            }
        }
        self.note(from);
    }

    fn arrive(&mut self) {
        while self.flying.peek().is_some_and(|Reverse((at, ..))| *at <= self.now) {
            let Some(Reverse((_, _, from, to, bytes))) = self.flying.pop() else { return };
            self.resolvers[to].on_frame(self.now, address(from), &split(&bytes));
            self.note(to);
        }
    }

    fn note(&mut self, index: usize) {
        for event in events(&mut self.resolvers[index]) {
            match event {
                ResolverEvent::Found { announcement, topic } => {
                    let topics = self.found[index].entry(announcement.session).or_default();
                    topics.insert(topic.to_string());
                }
                ResolverEvent::Gone { session } => drop(self.found[index].remove(&session)),
            }
        }
    }

    /// Resolver `index` gives a session up.
    pub(super) fn lose(&mut self, index: usize, session: u64) {
        self.note(index);
        self.found[index].remove(&session);
        self.resolvers[index].session_lost(self.now, session);
    }
}

pub(super) fn address(index: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, index as u8 + 1], 14_390))
}
