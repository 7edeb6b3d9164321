//! One member's answers to leaders from outside, whose frames come in any order.

use super::world::{MILLISECOND, SECOND, Seen, World};
use crate::{MemberId, Order, ViewId};
use lanecast_wire::group::views::{
    BallotEntry, MemberState, NextMember, OldView, ParticipantEntry, TargetEntry,
};
use lanecast_wire::group::{DataFlags, GroupFrame, GroupKind, group_hash};

/// The member that answers, of three in one view.
const MEMBER: usize = 1;
/// Another of them.
const OTHER: usize = 2;

/// A leader without a process, which seeks a view.
#[derive(Clone, Copy, Debug)]
struct Leader {
    id: MemberId,
    /// Number of its round, and epoch of the view that it is about.
    round: u64,
}

impl Leader {
    const fn new(id: u64, round: u64) -> Self {
        Self { id: MemberId(id), round }
    }

    fn ballot(self) -> BallotEntry {
        BallotEntry { round: self.round.into(), leader: self.id.0.into() }
    }

    const fn next(self) -> ViewId {
        ViewId { epoch: self.round, coordinator: self.id }
    }

    const fn own_view(self) -> ViewId {
        ViewId { epoch: 0, coordinator: self.id }
    }

    fn prepare(self, world: &mut World, epoch: u64) {
        let entry = |id: MemberId, view: ViewId| ParticipantEntry {
            id: id.0.into(),
            view: view.into(),
            leaving: 0,
            reserved: [0; 7],
        };
        let own = entry(world.id(MEMBER), world.view(MEMBER).id);
        let participants = &[entry(self.id, self.own_view()), own][..];
        hear(world, self.id, 0, GroupFrame::Prepare { ballot: self.ballot(), epoch, participants });
    }

    /// A Cut of itself and of `listed`, with `frames` of the other's stream.
    fn cut(self, world: &mut World, listed: Option<usize>, frames: u64) {
        let view = world.view(MEMBER).clone();
        let other = view.rank(world.id(OTHER)).unwrap_or_default();
        let target = |end: u64| TargetEntry { end: end.into(), holder: world.id(OTHER).0.into() };
        let mut targets = [target(0); 3];
        targets[other] = target(frames);
        let member = |id: MemberId, old_view| NextMember {
            id: id.0,
            incarnation: 1,
            first: 0,
            port: 0,
            old_view,
            name: "leader",
        };
        let listed = listed.map(|listed| member(world.id(listed), 1));
        let members = std::iter::once(member(self.id, 0)).chain(listed).collect();
        let views = vec![
            OldView { view: self.own_view().into(), targets: &targets[..1] },
            OldView { view: view.id.into(), targets: &targets },
        ];
        let (ballot, view) = (self.ballot(), self.next().into());
        hear(world, self.id, 0, GroupFrame::Cut { ballot, view, members, views });
    }
}

fn hear(world: &mut World, from: MemberId, epoch: u64, frame: GroupFrame<'_>) {
    let mut bytes = Vec::new();
    frame.write((group_hash("group"), from.0, epoch), &mut bytes);
    world.call(MEMBER, |member, now, out| member.on_frame(now, &bytes, out));
}

fn sent(world: &World, kind: GroupKind) -> usize {
    world.processes[MEMBER].sent.get(&(kind as u8)).copied().unwrap_or_default()
}

/// Three in one view, which have sent nothing yet that counts.
fn three() -> World {
    let mut world = World::group(3);
    world.processes[MEMBER].sent.clear();
    world
}

/// A member is ready for a view that its leader installs; a later leader cuts the old view further
/// on, and dies.
#[test]
fn a_member_that_went_beyond_a_view_does_not_install_it() {
    for leader_tells in [true, false] {
        let mut world = three();
        let (old, other) = (world.view(MEMBER).id, world.id(OTHER));
        let (first, second, third) =
            (Leader::new(999, 9), Leader::new(998, 10), Leader::new(997, 12));
        first.prepare(&mut world, 9);
        first.cut(&mut world, Some(MEMBER), 0);
        assert_eq!(sent(&world, GroupKind::Ready), 1);
        second.prepare(&mut world, 10);
        second.cut(&mut world, Some(MEMBER), 2);
        let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST);
        hear(&mut world, other, old.epoch, GroupFrame::Data { sequence: 0, flags, body: b"a" });
        let is_its = |seen: &Seen| matches!(seen, Seen::Message((from, _), _) if *from == other);
        assert!(world.processes[MEMBER].seen.iter().any(is_its), "the application has it");
        assert_eq!(sent(&world, GroupKind::Ready), 1, "one frame is missing");
        if leader_tells {
            third.prepare(&mut world, 12);
            let (ballot, view) = (first.ballot(), first.next().into());
            hear(&mut world, third.id, 0, GroupFrame::Install { ballot, view });
        } else {
            world.run_for(800 * MILLISECOND);
            let heartbeat = GroupFrame::Heartbeat {
                coordinator: first.id.0,
                incarnation: 1,
                port: 0,
                state: MemberState::Member,
                name: "first",
                vector: &[],
            };
            hear(&mut world, first.id, 9, heartbeat);
        }
        assert_ne!(world.view(MEMBER).id, first.next(), "leader tells: {leader_tells}");
        // It is never ready for that epoch again.
        let (refusals, flushed) =
            (sent(&world, GroupKind::Refuse), sent(&world, GroupKind::Flushed));
        Leader::new(996, 13).prepare(&mut world, 9);
        assert_eq!(sent(&world, GroupKind::Refuse), refusals + 1);
        assert_eq!(sent(&world, GroupKind::Flushed), flushed);
    }
}

#[test]
fn a_cut_of_a_round_that_was_given_up_is_refused() {
    let mut world = three();
    let leader = Leader::new(999, 9);
    leader.prepare(&mut world, 9);
    assert_eq!(sent(&world, GroupKind::Flushed), 1);
    world.run_for(SECOND);
    leader.cut(&mut world, Some(MEMBER), 0);
    assert_eq!((sent(&world, GroupKind::Refuse), sent(&world, GroupKind::Ready)), (1, 0));
    // A later promise, to another leader.
    let later = Leader::new(998, 10);
    later.prepare(&mut world, 10);
    leader.cut(&mut world, Some(MEMBER), 0);
    assert_eq!(sent(&world, GroupKind::Refuse), 2);
    // All hear a Cut, those that are not in the round, too.
    leader.cut(&mut world, Some(OTHER), 0);
    Leader::new(997, 11).cut(&mut world, Some(OTHER), 0);
    Leader::new(996, 8).cut(&mut world, None, 0);
    assert_eq!(sent(&world, GroupKind::Refuse), 2);
    // Once more, after the view is installed.
    later.cut(&mut world, Some(MEMBER), 0);
    let (ballot, view) = (later.ballot(), later.next().into());
    hear(&mut world, later.id, 0, GroupFrame::Install { ballot, view });
    assert_eq!(world.view(MEMBER).id, later.next());
    later.cut(&mut world, None, 0);
    assert_eq!(sent(&world, GroupKind::Refuse), 2);
}

/// The only one that lacks a message, and cannot get it, is the leader.
#[test]
fn a_leader_that_cannot_get_what_it_lacks_lets_another_lead() {
    let mut world = World::group(3);
    let leader = world.coordinator(0);
    world.processes[leader].lost = vec![GroupKind::Data, GroupKind::Repair];
    world.send((leader + 1) % 3, Order::Sender).expect("sent");
    let joiner = world.start();
    let is_in = |world: &World| !world.views(joiner).is_empty();
    assert!(world.run_until(world.now + 3 * SECOND, is_in), "a new member comes in");
    let time = world.settle(4 * SECOND);
    assert!(time < 3 * SECOND, "{time} ns");
    world.check();
}
