//! Views come and go as members do.

use super::world::{MILLISECOND, SECOND, Seen, Trap, World};
use crate::{Departure, MemberId, Order, SendError, ViewId};
use lanecast_wire::group::views::{
    BallotEntry, MemberState, NextMember, OldView, ParticipantEntry, TargetEntry,
};
use lanecast_wire::group::{GroupFrame, GroupKind, group_hash};

#[test]
fn a_member_alone_shows_its_view_after_the_join_timeout() {
    let mut world = World::new();
    let alone = world.start();
    assert_eq!(world.send(alone, Order::Sender), Err(SendError::NoView));
    world.run_for(999 * MILLISECOND);
    assert!(world.views(alone).is_empty());
    world.run_for(2 * MILLISECOND);
    let views = world.views(alone);
    let [(view, change)] = views[..] else { panic!("one view, not {views:?}") };
    assert_eq!((view.members.len(), change.joined.len(), change.left.len()), (1, 1, 0));
    assert_eq!(world.send(alone, Order::Total), Ok(0));
}

#[test]
fn members_that_start_at_once_find_one_view_with_few_frames() {
    for members in [2, 3, 10, 50] {
        let mut world = World::new();
        for _ in 0..members {
            world.start();
        }
        let time = world.settle(3 * SECOND);
        for index in 0..members {
            assert_eq!(world.views(index).len(), 1, "{members} members: one view only");
            let sent = &world.processes[index].sent;
            let frames = sent.values().sum::<usize>();
            assert!(frames <= 20, "member {index} of {members} sent {sent:?} in {time} ns");
        }
    }
}

#[test]
fn a_joiner_comes_behind_the_members() {
    let mut world = World::group(3);
    let before = world.view(0).clone();
    world.start();
    let time = world.settle(2 * SECOND);
    assert!(time < 300 * MILLISECOND, "{time} ns");
    assert_eq!(world.view(0).members[..3], before.members);
    assert_eq!(world.views(3).len(), 1);
    world.check();
}

#[test]
fn a_member_leaves_and_all_have_its_messages() {
    for leaver in 0..3 {
        let mut world = World::group(3);
        for _ in 0..5 {
            world.send(leaver, Order::Total).expect("sent");
        }
        world.call(leaver, |member, now, out| member.leave(now, out));
        assert_eq!(world.send(leaver, Order::Sender), Err(SendError::HasLeft));
        let time = world.settle(SECOND);
        assert!(time < 200 * MILLISECOND, "{time} ns");
        world.run_for(SECOND);
        assert!(matches!(world.processes[leaver].seen.last(), Some(Seen::Left)));
        let id = world.id(leaver);
        for index in world.running() {
            let (view, change) = *world.views(index).last().expect("a view");
            assert_eq!(view.members.len(), 2);
            assert!(change.left.iter().all(|(info, why)| (info.id, *why) == (id, Departure::Left)));
            let seen = &world.processes[index].seen;
            let messages = seen.iter().filter(|seen| matches!(seen, Seen::Message(..))).count();
            assert_eq!(messages, 5, "member {index}: {seen:?}");
        }
        world.check();
    }
}

#[test]
fn all_may_leave_at_once() {
    let mut world = World::group(4);
    for index in 0..4 {
        world.call(index, |member, now, out| member.leave(now, out));
    }
    world.run_for(3 * SECOND);
    assert!(world.running().is_empty(), "{:?}", world.running());
    world.check();
}

#[test]
fn a_crash_that_is_told_changes_the_view_at_once() {
    for victim in 0..4 {
        let mut world = World::group(4);
        world.end(victim);
        let time = world.settle(3 * SECOND);
        assert!(time < 100 * MILLISECOND, "{time} ns");
        let id = world.id(victim);
        let survivor = world.running()[0];
        let (_, change) = *world.views(survivor).last().expect("a view");
        assert_eq!(
            change.left.iter().map(|(info, why)| (info.id, *why)).collect::<Vec<_>>(),
            [(id, Departure::Crashed)]
        );
        world.check();
    }
}

#[test]
fn a_silent_member_is_gone_after_the_hang_timeout_at_the_latest() {
    for victim in 0..4 {
        let mut world = World::group(4);
        world.stop(victim);
        let time = world.settle(4 * SECOND);
        assert!(time > 500 * MILLISECOND && time < 2_500 * MILLISECOND, "{time} ns");
        world.check();
        // It runs again, finds itself excluded, and comes back.
        world.go_on(victim);
        let time = world.settle(4 * SECOND);
        assert!(time < SECOND, "back after {time} ns");
        world.check();
    }
}

#[test]
fn parted_sides_go_on_and_merge() {
    for sides in [2_u32, 3] {
        let mut world = World::group(6);
        for index in 0..6 {
            world.processes[index].side = index as u32 % sides;
        }
        world.run_for(4 * SECOND);
        for index in 0..6 {
            assert_eq!(world.view(index).members.len(), 6 / sides as usize, "member {index}");
            world.send(index, Order::Total).expect("sent");
        }
        world.run_for(100 * MILLISECOND);
        for process in &mut world.processes {
            process.side = 0;
        }
        let time = world.settle(3 * SECOND);
        assert!(time < SECOND, "{time} ns");
        assert!(world.views(0).last().expect("a view").1.merged);
        world.check();
    }
}

#[test]
fn a_coordinator_may_die_at_every_step_of_a_round() {
    let leader_kinds = [GroupKind::Prepare, GroupKind::Cut, GroupKind::Install];
    for (kind, receivers) in
        leader_kinds.into_iter().flat_map(|kind| (0..4).map(move |n| (kind, n)))
    {
        for ends_are_told in [true, false] {
            let mut world = World::group(4);
            world.ends_are_told = ends_are_told;
            let coordinator = world.coordinator(0);
            for index in 0..4 {
                world.send(index, Order::Total).expect("sent");
            }
            world.trap = Some(Trap { member: coordinator, kind, receivers });
            world.start();
            let case = format!("{kind:?} to {receivers}, told: {ends_are_told}");
            world.run_until(world.now + 2 * SECOND, |world| world.trap.is_none());
            assert!(world.trap.is_none(), "{case}: no such frame");
            let time = world.settle(6 * SECOND);
            assert!(time < if ends_are_told { SECOND } else { 4 * SECOND }, "{case}: {time} ns");
            world.check();
        }
    }
}

#[test]
fn survivors_have_all_that_one_of_them_has_of_a_dead_sender() {
    for receivers in 0..4 {
        let mut world = World::group(5);
        let sender = world.coordinator(0);
        let id = world.id(sender);
        world.send(sender, Order::Sender).expect("sent");
        world.trap = Some(Trap { member: sender, kind: GroupKind::Data, receivers });
        world.send(sender, Order::Sender).expect("sent");
        world.settle(SECOND);
        world.run_for(SECOND);
        for index in world.running() {
            let is_its = |seen: &&Seen| matches!(seen, Seen::Message((from, _), _) if *from == id);
            let messages = world.processes[index].seen.iter().filter(is_its).count();
            assert_eq!(messages, 1 + usize::from(receivers > 0), "member {index}");
        }
        world.check();
    }
}

#[test]
fn suspicion_is_an_event_before_the_view() {
    let mut world = World::group(3);
    let victim = (world.coordinator(0) + 1) % 3;
    world.stop(victim);
    world.settle(4 * SECOND);
    let id = world.id(victim);
    for index in world.running() {
        let seen = &world.processes[index].seen;
        let is_suspicion =
            |seen: &Seen| matches!(seen, Seen::Suspected(who, Departure::Silent) if *who == id);
        let suspicion = seen.iter().position(is_suspicion);
        let view = seen.iter().rposition(|seen| matches!(seen, Seen::View(..)));
        assert!(suspicion.is_some() && suspicion < view, "member {index}: {seen:?}");
    }
}

#[test]
fn a_member_that_returns_before_the_view_changes_misses_nothing() {
    let mut returned = 0;
    for offset in (180..240).step_by(2) {
        let mut world = World::group(2);
        world.processes[1].side = 1;
        for _ in 0..3 {
            world.send(1, Order::Sender).expect("sent");
        }
        let suspects = |world: &World| {
            world.processes[0].seen.iter().any(|seen| matches!(seen, Seen::Suspected(..)))
        };
        assert!(world.run_until(world.now + 3 * SECOND, suspects));
        world.run_for(offset * MILLISECOND);
        world.processes[1].side = 0;
        // Suspected, it answers at once.
        let member = world.id(1).0;
        let mut suspicion = Vec::new();
        let envelope = (group_hash("group"), world.id(0).0, 1);
        GroupFrame::Suspect { member, reason: 3 }.write(envelope, &mut suspicion);
        world.call(1, |member, now, out| member.on_frame(now, &suspicion, out));
        world.settle(3 * SECOND);
        world.run_for(SECOND);
        if world.views(0).len() == 1 && world.views(1).len() == 1 {
            returned += 1;
            let is_message = |seen: &&Seen| matches!(seen, Seen::Message(..));
            let messages = world.processes[0].seen.iter().filter(is_message).count();
            assert_eq!(messages, 3, "{offset} ms after the suspicion");
        }
        world.check();
    }
    assert!(returned > 0, "no return came before the change");
}

#[test]
fn other_versions_are_told_once_each() {
    let mut world = World::group(1);
    for version in [9, 9, 0, 9, 255, 0, 64] {
        let mut frame = vec![version; 24];
        frame[1] = 1;
        world.call(0, |member, now, out| member.on_frame(now, &frame, out));
    }
    let told = world.processes[0].seen.iter().filter_map(|seen| match seen {
        Seen::OtherVersion(version) => Some(*version),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [9, 0, 255, 64], "each once, also in turns");
}

#[test]
fn a_participant_may_die_at_every_step_of_a_round() {
    for kind in [GroupKind::Flushed, GroupKind::Ready] {
        for receivers in [0, 1] {
            for ends_are_told in [true, false] {
                let mut world = World::group(4);
                world.ends_are_told = ends_are_told;
                let coordinator = world.coordinator(0);
                let victim = (0..4).find(|index| *index != coordinator).expect("another");
                world.trap = Some(Trap { member: victim, kind, receivers });
                world.start();
                world.run_until(world.now + 2 * SECOND, |world| world.trap.is_none());
                assert!(world.trap.is_none(), "{kind:?}: no such frame");
                let time = world.settle(6 * SECOND);
                assert!(
                    time < if ends_are_told { SECOND } else { 4 * SECOND },
                    "{kind:?}: {time} ns"
                );
                world.check();
            }
        }
    }
}

#[test]
fn a_member_may_leave_or_come_while_a_round_runs() {
    for kind in [GroupKind::Prepare, GroupKind::Flushed, GroupKind::Cut, GroupKind::Ready] {
        for leaver in 0..4 {
            let mut world = World::group(4);
            world.start();
            let was_sent = |world: &World| {
                world
                    .processes
                    .iter()
                    .filter_map(|process| process.sent.get(&(kind as u8)))
                    .sum::<usize>()
            };
            let before = was_sent(&world);
            assert!(world.run_until(world.now + SECOND, |world| was_sent(world) > before));
            world.call(leaver, |member, now, out| member.leave(now, out));
            world.start();
            let time = world.settle(4 * SECOND);
            assert!(time < SECOND, "{kind:?}, {leaver}: {time} ns");
            world.check();
        }
    }
}

/// Several members start at once; one of them heard only some of the others, before these installed
/// a view.
#[test]
fn a_leader_that_does_not_know_a_view_takes_no_member_out_of_it() {
    let mut world = World::group(3);
    let (own, view) = (world.id(1), world.view(1).id);
    let ballot = BallotEntry { round: 9.into(), leader: 999.into() };
    let heartbeats = |world: &World| world.processes[1].sent[&(GroupKind::Heartbeat as u8)];
    for (known, is_refused) in [(ViewId { epoch: 0, coordinator: own }, true), (view, false)] {
        let entry = |id: u64, view: ViewId| ParticipantEntry {
            id: id.into(),
            view: view.into(),
            leaving: 0,
            reserved: [0; 7],
        };
        let seeking = ViewId { epoch: 0, coordinator: MemberId(999) };
        let participants = [entry(999, seeking), entry(own.0, known)];
        let mut prepare = Vec::new();
        GroupFrame::Prepare { ballot, epoch: 9, participants: &participants }
            .write((group_hash("group"), 999, 0), &mut prepare);
        let before = heartbeats(&world);
        world.call(1, |member, now, out| member.on_frame(now, &prepare, out));
        let refusals = world.processes[1].sent.get(&(GroupKind::Refuse as u8));
        assert_eq!(refusals, Some(&1), "only a leader that does not know the view is refused");
        assert_eq!(heartbeats(&world) - before, usize::from(is_refused), "the view is shown");
        let sent = world.send(1, Order::Sender);
        assert_eq!(sent.is_ok(), is_refused, "{sent:?}");
    }
}

/// A leader goes on to its next round before all have installed the view of the last one.
#[test]
fn a_member_that_left_a_round_for_a_view_says_so() {
    let leader = MemberId(999);
    let mut world = World::group(3);
    let (own, view) = (world.id(1), world.view(1).clone());
    let ballot = |round: u64| BallotEntry { round: round.into(), leader: leader.0.into() };
    let next = ViewId { epoch: 9, coordinator: leader };
    let hear = |world: &mut World, frame: GroupFrame<'_>, epoch| {
        let mut bytes = Vec::new();
        frame.write((group_hash("group"), leader.0, epoch), &mut bytes);
        world.call(1, |member, now, out| member.on_frame(now, &bytes, out));
    };
    let entry = |id: MemberId, view: ViewId| ParticipantEntry {
        id: id.0.into(),
        view: view.into(),
        leaving: 0,
        reserved: [0; 7],
    };
    let seeking = ViewId { epoch: 0, coordinator: leader };
    let prepare = |world: &mut World, round| {
        let participants = [entry(leader, seeking), entry(own, view.id)];
        let (ballot, participants) = (ballot(round), &participants[..]);
        hear(world, GroupFrame::Prepare { ballot, epoch: round, participants }, 0);
    };
    let sent = |world: &World, kind: GroupKind| {
        world.processes[1].sent.get(&(kind as u8)).copied().unwrap_or_default()
    };
    prepare(&mut world, 9);
    let old = |id: MemberId, old_view| NextMember {
        id: id.0,
        incarnation: 1,
        first: 0,
        port: 0,
        old_view,
        name: "m",
    };
    let target = |end: u64| TargetEntry { end: end.into(), holder: own.0.into() };
    let targets = [target(0); 3];
    let views = vec![
        OldView { view: seeking.into(), targets: &targets[..1] },
        OldView { view: view.id.into(), targets: &targets },
    ];
    let members = vec![old(leader, 0), old(own, 1)];
    hear(&mut world, GroupFrame::Cut { ballot: ballot(9), view: next.into(), members, views }, 0);
    let flushed = sent(&world, GroupKind::Flushed);
    prepare(&mut world, 10);
    assert_eq!(sent(&world, GroupKind::Flushed), flushed + 1, "it takes part");
    let heartbeat = GroupFrame::Heartbeat {
        coordinator: leader.0,
        incarnation: 1,
        port: 0,
        state: MemberState::Member,
        name: "m",
        vector: &[],
    };
    hear(&mut world, heartbeat, 9);
    assert_eq!(world.view(1).id, next);
    let answers = |world: &World| sent(world, GroupKind::Flushed) + sent(world, GroupKind::Refuse);
    let before = answers(&world);
    prepare(&mut world, 10);
    assert_eq!(answers(&world), before + 1);
}

#[test]
fn an_epoch_that_could_wrap_changes_nothing() {
    let mut world = World::group(2);
    let (view, other) = (world.view(0).clone(), world.id(1).0);
    let promised = BallotEntry { round: u64::MAX.into(), leader: other.into() };
    let participants = &[][..];
    for (frame, epoch) in [
        (GroupFrame::Prepare { ballot: promised, epoch: u64::MAX, participants }, 1),
        (GroupFrame::Prepare { ballot: promised, epoch: 5, participants }, u64::MAX),
    ] {
        let mut bytes = Vec::new();
        frame.write((group_hash("group"), other, epoch), &mut bytes);
        world.call(0, |member, now, out| member.on_frame(now, &bytes, out));
    }
    assert_eq!(world.processes[0].member.foreign_frames(), 2);
    world.end(1);
    world.settle(3 * SECOND);
    assert_eq!(world.view(0).id.epoch, view.id.epoch + 1);
}

#[test]
fn a_later_incarnation_of_a_name_replaces_the_earlier_one() {
    let mut world = World::group(3);
    let later = world.start_named("m1", 2);
    let time = world.settle(3 * SECOND);
    assert!(time < SECOND, "{time} ns");
    assert!(matches!(world.processes[1].seen.last(), Some(Seen::Left)));
    assert!(world.view(0).contains(world.id(later)));
    world.check();
}

#[test]
fn nothing_is_sent_in_vain_by_members_at_rest() {
    let mut world = World::group(4);
    world.run_for(SECOND);
    let sent = |world: &World| -> usize {
        world.processes.iter().flat_map(|process| process.sent.values()).sum()
    };
    let before = sent(&world);
    world.run_for(10 * SECOND);
    let frames = sent(&world) - before;
    assert!(frames <= 4 * 101, "{frames} frames of 4 members in 100 heartbeats");
    assert_eq!(world.views(0).len(), 1);
}
