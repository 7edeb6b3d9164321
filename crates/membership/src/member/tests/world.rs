//! Members in one simulated time, joined by a wire that loses nothing but what a test takes away.

use crate::{
    Departure, Event, GroupSettings, Member, MemberId, MemberInfo, Nanos, Order, Outlet, SendError,
    View, ViewChange, ViewId,
};
use lanecast_wire::group::GroupKind;
use std::collections::BTreeMap;

pub(super) const MILLISECOND: Nanos = 1_000_000;
pub(super) const SECOND: Nanos = 1_000 * MILLISECOND;
/// Time of a frame on the wire.
const LATENCY: Nanos = 50_000;
/// A message: its sender and sequence.
type Said = (MemberId, u64);

/// An event that the application of a member saw.
#[derive(Clone, Debug)]
pub(super) enum Seen {
    View(View, ViewChange),
    Message(Said, Order),
    Suspected(MemberId, Departure),
    OtherVersion(u8),
    Writable,
    Left,
}

/// A member, and what it saw and sent.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) member: Member,
    pub(super) seen: Vec<Seen>,
    pub(super) is_running: bool,
    /// Frames sent, by kind.
    pub(super) sent: BTreeMap<u8, usize>,
    /// Members that it asked for a sign of life.
    pub(super) probed: Vec<MemberId>,
    /// Frames that arrived while it stood still.
    held: Vec<Vec<u8>>,
    /// Members with the same number hear each other.
    pub(super) side: u32,
    /// Members that it has no stream of.
    pub(super) unheard: Vec<usize>,
    /// Kinds of frames that are lost on the way to it.
    pub(super) lost: Vec<GroupKind>,
}

/// Ends a member once it has sent a frame of this kind to so many of the others.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trap {
    pub(super) member: usize,
    pub(super) kind: GroupKind,
    pub(super) receivers: usize,
}

/// Members and the wire between them.
#[derive(Debug)]
pub(super) struct World {
    pub(super) now: Nanos,
    pub(super) processes: Vec<Process>,
    wire: BTreeMap<(Nanos, u64), (usize, Vec<u8>)>,
    count: u64,
    pub(super) trap: Option<Trap>,
    /// Most members of the group.
    pub(super) most_members: usize,
    /// Whether the end of a process is told to the others, as by its operating system.
    pub(super) ends_are_told: bool,
}

/// Frames and events of one call.
#[derive(Default)]
pub(super) struct Spoken {
    frames: Vec<(Option<MemberId>, Vec<u8>)>,
    seen: Vec<Seen>,
    probes: Vec<MemberId>,
}

impl Outlet for Spoken {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.frames.push((None, [head, body].concat()));
        true
    }

    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.frames.push((Some(to), [head, body].concat()));
        true
    }

    fn probe(&mut self, to: MemberId) {
        self.probes.push(to);
    }

    fn event(&mut self, event: Event<'_>) {
        self.seen.push(match event {
            Event::View(view, change) => Seen::View(view.clone(), change.clone()),
            Event::Message { from, sequence, order, .. } => Seen::Message((from, sequence), order),
            Event::Suspected(member, why) => Seen::Suspected(member.id, why),
            Event::OtherVersion { version } => Seen::OtherVersion(version),
            Event::Writable => Seen::Writable,
            Event::Left => Seen::Left,
            _ => return,
        });
    }
}

impl World {
    pub(super) fn new() -> Self {
        Self {
            now: SECOND,
            processes: Vec::new(),
            wire: BTreeMap::new(),
            count: 0,
            trap: None,
            most_members: GroupSettings::default().most_members,
            ends_are_told: true,
        }
    }

    /// Members that start at once and have found each other.
    pub(super) fn group(members: usize) -> Self {
        let mut world = Self::new();
        for _ in 0..members {
            world.start();
        }
        world.run_for(2 * SECOND);
        world.assert_one_view();
        world
    }

    /// Starts a member with a name of its own; its index.
    pub(super) fn start(&mut self) -> usize {
        let index = self.processes.len();
        self.start_named(&format!("m{index}"), 1)
    }

    pub(super) fn start_named(&mut self, name: &str, incarnation: u64) -> usize {
        let index = self.processes.len();
        // Ids in another order than that of starting.
        let id = MemberId(100 + (index as u64 * 37) % 101);
        let info = MemberInfo { id, incarnation, port: 0, name: name.to_owned() };
        let most_members = self.most_members;
        let settings = GroupSettings { window: 64 << 10, most_members, ..GroupSettings::default() };
        let member = Member::new(settings, info, "group", index as u64 * 977, self.now);
        self.processes.push(Process {
            member: member.expect("settings that agree"),
            seen: Vec::new(),
            is_running: true,
            sent: BTreeMap::new(),
            probed: Vec::new(),
            held: Vec::new(),
            side: 0,
            unheard: Vec::new(),
            lost: Vec::new(),
        });
        index
    }

    pub(super) fn id(&self, index: usize) -> MemberId {
        self.processes[index].member.me().id
    }

    fn index(&self, id: MemberId) -> Option<usize> {
        (0..self.processes.len()).find(|&index| self.id(index) == id)
    }

    pub(super) fn view(&self, index: usize) -> &View {
        self.processes[index].member.view()
    }

    /// Members that run and have not left.
    pub(super) fn running(&self) -> Vec<usize> {
        let has_left = |process: &Process| matches!(process.seen.last(), Some(Seen::Left));
        let runs = |&index: &usize| {
            let process = &self.processes[index];
            process.is_running && !has_left(process)
        };
        (0..self.processes.len()).filter(runs).collect()
    }

    /// The index of the coordinator of a member's view.
    pub(super) fn coordinator(&self, of: usize) -> usize {
        self.index(self.view(of).id.coordinator).expect("a member of this world")
    }

    /// Calls a member and carries what it has to say.
    pub(super) fn call<T>(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Member, Nanos, &mut Spoken) -> T,
    ) -> T {
        let mut spoken = Spoken::default();
        let result = call(&mut self.processes[index].member, self.now, &mut spoken);
        self.processes[index].seen.extend(spoken.seen);
        self.processes[index].probed.extend(spoken.probes);
        for (to, frame) in spoken.frames {
            self.carry(index, to, &frame);
        }
        result
    }

    fn carry(&mut self, from: usize, to: Option<MemberId>, frame: &[u8]) {
        let kind = frame[1];
        *self.processes[from].sent.entry(kind).or_default() += 1;
        let mut receivers = self.processes.len();
        if let Some(trap) = self.trap
            && (trap.member, trap.kind as u8) == (from, kind)
        {
            receivers = trap.receivers;
        }
        let hears = |index: &usize| {
            let process = &self.processes[*index];
            *index != from
                && process.side == self.processes[from].side
                && !process.unheard.contains(&from)
                && process.lost.iter().all(|&lost| lost as u8 != kind)
                && to.is_none_or(|to| self.id(*index) == to)
        };
        let all: Vec<_> = (0..self.processes.len()).filter(hears).collect();
        if !self.processes[from].is_running {
            return;
        }
        for &index in all.iter().take(receivers) {
            self.count += 1;
            self.wire.insert((self.now + LATENCY, self.count), (index, frame.to_vec()));
        }
        if receivers < self.processes.len() {
            self.trap = None;
            self.end(from);
        }
    }

    /// Ends a member's process.
    pub(super) fn end(&mut self, index: usize) {
        self.processes[index].is_running = false;
        if self.ends_are_told {
            let id = self.id(index);
            for other in self.running() {
                if self.processes[other].side == self.processes[index].side {
                    self.call(other, |member, now, out| {
                        member.on_peer_gone(now, id, Departure::Crashed, out);
                    });
                }
            }
        }
    }

    /// Lets a member stand still, as a stopped process; frames wait for it.
    pub(super) fn stop(&mut self, index: usize) {
        self.processes[index].is_running = false;
    }

    /// Lets a stopped member run again.
    pub(super) fn go_on(&mut self, index: usize) {
        self.processes[index].is_running = true;
        for frame in std::mem::take(&mut self.processes[index].held) {
            self.call(index, |member, now, out| member.on_frame(now, &frame, out));
        }
    }

    pub(super) fn send(&mut self, index: usize, order: Order) -> Result<u64, SendError> {
        self.call(index, |member, now, out| member.try_send(now, b"message", order, out))
    }

    /// Lets time pass.
    pub(super) fn run_for(&mut self, time: Nanos) {
        let end = self.now + time;
        self.run_until(end, |_| false);
    }

    /// Lets time pass until it is so, at most until `end`; whether it is so.
    pub(super) fn run_until(&mut self, end: Nanos, is_so: impl Fn(&Self) -> bool) -> bool {
        let mut ticks_at_once = 0;
        loop {
            if is_so(self) {
                return true;
            }
            let tick = |process: &Process| process.is_running.then(|| process.member.next_tick());
            let ticks = self.processes.iter().map(tick);
            let (due, index) = (0..)
                .zip(ticks)
                .filter_map(|(index, due)| Some((due?, index)))
                .min()
                .unwrap_or((Nanos::MAX, 0));
            let arrival = self.wire.first_key_value().map_or(Nanos::MAX, |(&(at, _), _)| at);
            let next = due.min(arrival).max(self.now);
            if next > end {
                self.now = end;
                return is_so(self);
            }
            ticks_at_once = if next > self.now { 0 } else { ticks_at_once + 1 };
            assert!(ticks_at_once < 100_000, "time stands still at {next}");
            self.now = next;
            if arrival <= due {
                let (_, (to, frame)) = self.wire.pop_first().expect("a frame");
                if self.processes[to].is_running {
                    self.call(to, |member, now, out| member.on_frame(now, &frame, out));
                } else {
                    self.processes[to].held.push(frame);
                }
            } else {
                self.call(index, |member, now, out| member.on_tick(now, out));
            }
        }
    }

    /// Whether all that run are in one view, and no others.
    pub(super) fn is_one_view(&self) -> bool {
        let running = self.running();
        let Some(&first) = running.first() else { return true };
        let view = self.view(first);
        view.id.epoch > 0
            && view.members.len() == running.len()
            && running
                .iter()
                .all(|&index| self.view(index) == view && view.contains(self.id(index)))
    }

    #[track_caller]
    pub(super) fn assert_one_view(&self) {
        let views: Vec<_> = self.running().iter().map(|&index| self.view(index)).collect();
        assert!(self.is_one_view(), "one view of all, not {views:#?}");
    }

    /// Waits for one view of all that run; the time that it took.
    #[track_caller]
    pub(super) fn settle(&mut self, within: Nanos) -> Nanos {
        let start = self.now;
        if !self.run_until(start + within, Self::is_one_view) {
            self.assert_one_view();
        }
        self.now - start
    }

    /// Views that a member's application saw.
    pub(super) fn views(&self, index: usize) -> Vec<(&View, &ViewChange)> {
        let seen = self.processes[index].seen.iter();
        seen.filter_map(|seen| match seen {
            Seen::View(view, change) => Some((view, change)),
            _ => None,
        })
        .collect()
    }

    /// Checks virtual synchrony: members that made the same step saw the same messages before it;
    /// each sender's messages are in order.
    #[track_caller]
    pub(super) fn check(&self) {
        type Step = (usize, Vec<Said>, Vec<Said>);
        let mut steps: BTreeMap<(ViewId, ViewId), Step> = BTreeMap::new();
        for (index, process) in self.processes.iter().enumerate() {
            let (mut from, mut set, mut order) = (None, Vec::new(), Vec::new());
            let mut latest: BTreeMap<MemberId, u64> = BTreeMap::new();
            for seen in &process.seen {
                match seen {
                    Seen::Message(said, in_order) => {
                        let before = latest.insert(said.0, said.1);
                        assert!(
                            before.is_none_or(|before| before < said.1),
                            "member {index}: {said:?} after {before:?}"
                        );
                        set.push(*said);
                        if *in_order == Order::Total {
                            order.push(*said);
                        }
                    }
                    Seen::View(view, _) => {
                        assert_eq!(view.members[0].id, view.id.coordinator);
                        let own = process.member.me().id;
                        assert!(view.contains(own), "member {index} is not in its view");
                        if let Some(from) = from.replace(view.id) {
                            assert!(from.epoch < view.id.epoch, "epochs grow");
                            set.sort_unstable();
                            let mine =
                                (index, std::mem::take(&mut set), std::mem::take(&mut order));
                            let known =
                                steps.entry((from, view.id)).or_insert_with(|| mine.clone());
                            let who = (known.0, index);
                            assert_eq!(
                                (&known.1, &known.2),
                                (&mine.1, &mine.2),
                                "members {who:?} from {from} to {}",
                                view.id
                            );
                        }
                        set.clear();
                        order.clear();
                    }
                    _ => {}
                }
            }
        }
    }
}
