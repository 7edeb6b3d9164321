//! Members, and the frames between them.

use crate::Nanos;
use crate::delivery::{Delivery, Origins};
use crate::event::{Event, Order};
use crate::outlet::Outlet;
use crate::settings::GroupSettings;
use crate::view::{MemberId, MemberInfo, View, ViewId};
use lanecast_wire::group::GroupFrame;

pub(super) const MILLISECOND: Nanos = 1_000_000;

/// An event, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Seen {
    Message { from: u64, sequence: u64, order: Order, bytes: Vec<u8> },
    Direct { from: u64, bytes: Vec<u8> },
    StateRequested { to: u64, token: u64 },
    State(Vec<u8>),
    StateLost,
    Writable,
}

/// Takes what a member says.
#[derive(Debug, Default)]
pub(super) struct Said {
    pub(super) frames: Vec<(Option<MemberId>, Vec<u8>)>,
    pub(super) seen: Vec<Seen>,
    /// The transport has no room.
    pub(super) full: bool,
    /// Ways to single members stay closed.
    pub(super) is_closed: bool,
}

impl Outlet for Said {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        if !self.full {
            self.frames.push((None, [head, body].concat()));
        }
        !self.full
    }

    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        let is_sent = !self.full && !self.is_closed;
        if is_sent {
            self.frames.push((Some(to), [head, body].concat()));
        }
        is_sent
    }

    fn event(&mut self, event: Event<'_>) {
        self.seen.push(match event {
            Event::Message { from, sequence, order, bytes } => {
                Seen::Message { from: from.0, sequence, order, bytes: bytes.to_vec() }
            }
            Event::Direct { from, bytes } => Seen::Direct { from: from.0, bytes: bytes.to_vec() },
            Event::StateRequested { to, token } => Seen::StateRequested { to: to.0, token },
            Event::State(bytes) => Seen::State(bytes.to_vec()),
            Event::StateLost => Seen::StateLost,
            Event::Writable => Seen::Writable,
            other => panic!("not an event of delivery: {other:?}"),
        });
    }
}

/// Seeded chance.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) const fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

/// A member and what it said.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: u64,
    pub(super) delivery: Delivery,
    pub(super) said: Said,
    pub(super) alive: bool,
}

/// Members with the ids 1, 2, ...; the frames under way.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) now: Nanos,
    pub(super) nodes: Vec<Node>,
    /// Index of the receiver, and the frame.
    pub(super) under_way: Vec<(usize, Vec<u8>)>,
    pub(super) dice: Dice,
    /// Chances in a hundred.
    pub(super) lost: u64,
    pub(super) doubled: u64,
    pub(super) reordered: u64,
}

pub(super) fn settings() -> GroupSettings {
    GroupSettings { longest_frame: 512, window: 64 << 10, ..GroupSettings::default() }
}

pub(super) fn view(epoch: u64, ids: &[u64]) -> View {
    let member =
        |&id: &u64| MemberInfo { id: MemberId(id), incarnation: id, port: 0, name: String::new() };
    let id = ViewId { epoch, coordinator: MemberId(ids[0]) };
    View { id, members: ids.iter().map(member).collect() }
}

impl Network {
    /// Members in one view of epoch 1.
    pub(super) fn new(members: u64, settings: &GroupSettings, seed: u64) -> Self {
        let node = |id| Node {
            id,
            delivery: Delivery::new(settings, MemberId(id), 7),
            said: Said::default(),
            alive: true,
        };
        let mut network = Self {
            now: 0,
            nodes: (1..=members).map(node).collect(),
            under_way: Vec::new(),
            dice: Dice::new(seed),
            lost: 0,
            doubled: 0,
            reordered: 0,
        };
        let ids: Vec<_> = (1..=members).collect();
        for at in 0..ids.len() {
            network.install(at, &view(1, &ids), &vec![0; ids.len()], &[]);
        }
        network
    }

    pub(super) fn install(&mut self, at: usize, view: &View, firsts: &[u64], stayed: &[bool]) {
        let Node { delivery, said, .. } = &mut self.nodes[at];
        let is_founding = stayed.iter().all(|stays| !stays);
        delivery.install(self.now, view, firsts, Origins { stayed, is_founding }, said);
        self.collect();
    }

    pub(super) fn send(
        &mut self,
        at: usize,
        bytes: &[u8],
        order: Order,
    ) -> Result<u64, crate::SendError> {
        let Node { delivery, said, .. } = &mut self.nodes[at];
        let sent = delivery.try_send(self.now, bytes, order, said);
        self.collect();
        sent
    }

    pub(super) fn send_to(
        &mut self,
        at: usize,
        to: u64,
        bytes: &[u8],
    ) -> Result<u64, crate::SendError> {
        let Node { delivery, said, .. } = &mut self.nodes[at];
        let sent = delivery.try_send_to(self.now, MemberId(to), bytes, said);
        self.collect();
        sent
    }

    /// Puts what was said under way, or not, or twice.
    pub(super) fn collect(&mut self) {
        for at in 0..self.nodes.len() {
            for (to, frame) in core::mem::take(&mut self.nodes[at].said.frames) {
                if !self.nodes[at].alive {
                    continue;
                }
                for other in 0..self.nodes.len() {
                    if other == at || to.is_some_and(|to| to.0 != self.nodes[other].id) {
                        continue;
                    }
                    if self.dice.below(100) < self.lost {
                        continue;
                    }
                    if self.dice.below(100) < self.doubled {
                        self.under_way.push((other, frame.clone()));
                    }
                    self.under_way.push((other, frame.clone()));
                }
            }
        }
    }

    /// Delivers one frame; none is left: false.
    pub(super) fn step(&mut self) -> bool {
        if self.under_way.is_empty() {
            return false;
        }
        let count = self.under_way.len() as u64;
        let reorder = self.dice.below(100) < self.reordered;
        let at = if reorder { self.dice.below(count.min(50)) as usize } else { 0 };
        let (to, frame) = self.under_way.remove(at);
        self.now += 1_000;
        if self.nodes[to].alive {
            let Node { delivery, said, .. } = &mut self.nodes[to];
            dispatch(delivery, self.now, &frame, said);
            self.collect();
        }
        true
    }

    /// Does the duties that are due.
    pub(super) fn tick(&mut self) {
        for node in self.nodes.iter_mut().filter(|node| node.alive) {
            if node.delivery.next_tick() <= self.now {
                node.delivery.on_tick(self.now, &mut node.said);
                assert!(node.delivery.next_tick() > self.now, "a duty is left undone");
            }
        }
        self.collect();
    }

    /// Delivers frames, and lets `time` pass.
    pub(super) fn run(&mut self, time: Nanos) {
        let end = self.now + time;
        while self.now < end {
            self.tick();
            if !self.step() {
                let alive = self.nodes.iter().filter(|node| node.alive);
                let next = alive.map(|node| node.delivery.next_tick()).min().unwrap_or(end);
                self.now = next.clamp(self.now + 1, end);
            }
        }
    }

    /// All members hear all vectors, as from heartbeats.
    pub(super) fn heartbeats(&mut self) {
        for from in 0..self.nodes.len() {
            let (id, vector) = (self.nodes[from].id, self.nodes[from].delivery.vector());
            for node in self.nodes.iter_mut().filter(|node| node.alive) {
                let vector = vector.iter().copied();
                node.delivery.on_vector(self.now, MemberId(id), 1, vector, &mut node.said);
            }
        }
    }

    /// Messages that a member has delivered.
    pub(super) fn messages(&self, at: usize) -> Vec<(u64, u64, Order)> {
        let message = |seen: &Seen| match seen {
            Seen::Message { from, sequence, order, .. } => Some((*from, *sequence, *order)),
            _ => None,
        };
        self.nodes[at].said.seen.iter().filter_map(message).collect()
    }

    /// Messages in total order that a member has delivered.
    pub(super) fn agreed(&self, at: usize) -> Vec<(u64, u64)> {
        let messages = self.messages(at).into_iter();
        messages
            .filter(|m| m.2 == Order::Total)
            .map(|(from, sequence, _)| (from, sequence))
            .collect()
    }

    /// Sequences of one sender that a member has delivered.
    pub(super) fn of(&self, at: usize, from: u64) -> Vec<u64> {
        self.messages(at).into_iter().filter(|m| m.0 == from).map(|m| m.1).collect()
    }
}

/// Gives a frame to a member's delivery, as `Member` does.
pub(super) fn dispatch(delivery: &mut Delivery, now: Nanos, frame: &[u8], out: &mut impl Outlet) {
    let (header, frame) = GroupFrame::read(frame).expect("a frame");
    let (from, epoch) = (MemberId(header.sender), header.epoch);
    match frame {
        GroupFrame::Data { sequence, flags, body } => {
            delivery.on_data(now, from, epoch, (sequence, flags, body), out);
        }
        GroupFrame::Ack { vector } => {
            let vector = vector.iter().map(|expected| expected.get());
            delivery.on_vector(now, from, epoch, vector, out);
        }
        GroupFrame::Want { origin, first, count, to_all } => {
            let want = (first, count, to_all);
            delivery.on_want(now, (from, epoch), MemberId(origin), want, out);
        }
        GroupFrame::Repair { origin, sequence, flags, body, to_all } => {
            let repair = ((sequence, flags, body), to_all);
            delivery.on_repair(now, (from, epoch), MemberId(origin), repair, out);
        }
        GroupFrame::Direct { sequence, flags, body } => {
            delivery.on_direct(now, from, epoch, (sequence, flags, body), out);
        }
        GroupFrame::DirectAck { next } => delivery.on_direct_ack(now, from, epoch, next, out),
        GroupFrame::State { offset, total, bytes } => {
            delivery.on_state(now, from, epoch, (offset, total, bytes), out);
        }
        GroupFrame::StateAck { offset } => delivery.on_state_ack(now, from, epoch, offset, out),
        frame => panic!("not a frame of delivery: {frame:?}"),
    }
}
