//! Links that are missing: members that others do not hear.

use super::world::{MILLISECOND, SECOND, World};
use crate::{MemberId, Nanos, Order};
use lanecast_wire::group::views::MemberState;
use lanecast_wire::group::{GroupFrame, group_hash};

/// Pause between two looks at a world.
const LOOK: Nanos = 10 * MILLISECOND;

/// Parts of a hundred of the sends in the next time that these members may not make.
fn refused(world: &mut World, members: &[usize], time: Nanos) -> usize {
    let (mut tries, mut refused) = (0, 0);
    for _ in 0..time / LOOK {
        world.run_for(LOOK);
        for &index in members {
            tries += 1;
            refused += usize::from(world.send(index, Order::Sender).is_err());
        }
    }
    100 * refused / tries
}

/// Members in one view, and another one that hears none of them.
fn with_a_deaf_one(members: usize, deaf: usize) -> (World, Vec<usize>) {
    let mut world = World::new();
    (0..=members).for_each(|_| _ = world.start());
    let others: Vec<_> = (0..=members).filter(|&index| index != deaf).collect();
    world.processes[deaf].unheard.clone_from(&others);
    (world, others)
}

#[test]
fn a_stranger_that_hears_none_does_not_hold_up_the_others() {
    for members in [2, 3, 5] {
        for deaf in 0..=members {
            let (mut world, others) = with_a_deaf_one(members, deaf);
            world.run_for(5 * SECOND);
            let case = format!("{deaf} beside {members}");
            let refused = refused(&mut world, &others, 20 * SECOND);
            assert!(refused < 25, "{case}: {refused} %");
            let view = world.view(others[0]);
            assert_eq!(view.members.len(), members, "{case}: {view:?}");
            assert!(others.iter().all(|&index| world.view(index) == view), "{case}");
            world.processes[deaf].unheard.clear();
            world.settle(3 * SECOND);
            world.check();
        }
    }
}

/// A member of the view hears the others no more: its links broke one way.
#[test]
fn a_former_member_that_hears_none_does_not_hold_up_the_others() {
    for deaf in 0..4 {
        let mut world = World::group(4);
        let others: Vec<_> = (0..4).filter(|&index| index != deaf).collect();
        world.processes[deaf].unheard.clone_from(&others);
        world.run_for(20 * SECOND);
        let refused = refused(&mut world, &others, 20 * SECOND);
        assert!(refused < 25, "{deaf}: {refused} %");
        world.processes[deaf].unheard.clear();
        world.settle(3 * SECOND);
        world.check();
    }
}

/// Two members that do not hear each other, or no more, and a third one that both hear.
fn with_a_common_one(common: usize, have_met: bool) -> World {
    let mut world = World::new();
    (0..3).for_each(|_| _ = world.start());
    world.run_for(if have_met { 2 * SECOND } else { 0 });
    let (one, other) = ((common + 1) % 3, (common + 2) % 3);
    world.processes[one].unheard.push(other);
    world.processes[other].unheard.push(one);
    world
}

#[test]
fn leaders_that_do_not_hear_each_other_do_not_take_a_common_member_from_one_another() {
    for (common, have_met) in (0..3).flat_map(|common| [(common, false), (common, true)]) {
        let mut world = with_a_common_one(common, have_met);
        world.run_for(10 * SECOND);
        let before = world.views(common).len();
        let refused = refused(&mut world, &[0, 1, 2], 20 * SECOND);
        let views = world.views(common).len() - before;
        let case = format!("{common}, have met: {have_met}");
        assert!(views < 16, "{case}: {views} views in 20 s");
        assert!(refused < 15, "{case}: {refused} %");
        world.processes.iter_mut().for_each(|process| process.unheard.clear());
        world.settle(3 * SECOND);
        world.check();
    }
}

/// A member of the view has installed a later one, whose coordinator is not heard here.
#[test]
fn a_member_that_went_over_to_an_unheard_coordinator_is_gone() {
    let mut world = World::group(3);
    let (away, id) = (2, world.id(2));
    world.stop(away);
    let mut frame = Vec::new();
    let (coordinator, state) = (999, MemberState::Member);
    GroupFrame::Heartbeat { coordinator, incarnation: 1, port: 0, state, name: "m2", vector: &[] }
        .write((group_hash("group"), id.0, 9), &mut frame);
    let heard = |world: &mut World, time: Nanos| {
        for _ in 0..time / (100 * MILLISECOND) {
            for index in [0, 1] {
                world.call(index, |member, now, out| member.on_frame(now, &frame, out));
            }
            world.run_for(100 * MILLISECOND);
        }
    };
    heard(&mut world, 2 * SECOND);
    for index in [0, 1] {
        let view = world.view(index);
        let members: Vec<MemberId> = view.members.iter().map(|member| member.id).collect();
        assert_eq!(members, [world.id(0), world.id(1)], "member {index}");
        assert!(world.send(index, Order::Sender).is_ok());
    }
    let views = world.views(0).len();
    heard(&mut world, 5 * SECOND);
    assert_eq!(world.views(0).len(), views, "it is left alone");
}
