//! Members that leave while frames are lost.

use super::world::{MILLISECOND, SECOND, Seen, World};
use crate::{Nanos, Order};
use lanecast_wire::group::GroupKind;

fn leave(world: &mut World, index: usize) {
    world.call(index, |member, now, out| member.leave(now, out));
}

fn has_left(world: &World, index: usize) -> bool {
    matches!(world.processes[index].seen.last(), Some(Seen::Left))
}

/// Waits until a member has left; the time since `start`.
#[track_caller]
fn time_to_leave(world: &mut World, index: usize, start: Nanos) -> Nanos {
    let is_gone = world.run_until(start + 4 * SECOND, |world| has_left(world, index));
    assert!(is_gone, "member {index} does not leave");
    world.now - start
}

/// Members that lead no round, unless the others have left.
fn followers(world: &World) -> Vec<usize> {
    let coordinator = world.coordinator(0);
    (0..4).filter(|&index| index != coordinator).collect()
}

#[test]
fn a_leaver_that_missed_the_install_leaves_when_the_view_moves_on() {
    let mut world = World::group(4);
    let followers = followers(&world);
    let (first, second) = (followers[0], followers[1]);
    for index in 0..4 {
        world.send(index, Order::Total).expect("sent");
    }
    let start = world.now;
    let readies =
        |world: &World| world.processes[first].sent.get(&(GroupKind::Ready as u8)).copied();
    let before = readies(&world);
    leave(&mut world, first);
    assert!(world.run_until(start + SECOND, |world| readies(world) != before));
    world.processes[first].side = 1;
    world.run_for(MILLISECOND);
    leave(&mut world, second);
    world.run_for(59 * MILLISECOND);
    assert!(has_left(&world, second), "the others have gone on");
    world.processes[first].side = 0;
    let start = world.now;
    let time = time_to_leave(&mut world, first, start);
    assert!(time < 300 * MILLISECOND, "{time} ns");
    assert!(world.processes[first].member.was_agreed());
    let is_message = |seen: &&Seen| matches!(seen, Seen::Message(..));
    let messages = world.processes[first].seen.iter().filter(is_message).count();
    assert_eq!(messages, 4, "the last view is delivered");
    world.settle(SECOND);
    world.check();
}

#[test]
fn a_leaver_that_was_left_behind_leaves_when_it_hears_of_it() {
    let mut world = World::group(4);
    let leaver = followers(&world)[0];
    let start = world.now;
    leave(&mut world, leaver);
    // The Leave is on its way, no answer in the round will be.
    world.processes[leaver].side = 1;
    world.run_for(600 * MILLISECOND);
    assert!(!has_left(&world, leaver) && world.view(followers(&world)[1]).members.len() == 3);
    world.processes[leaver].side = 0;
    let time = time_to_leave(&mut world, leaver, start);
    assert!(time < 750 * MILLISECOND, "{time} ns");
    assert!(world.processes[leaver].member.was_agreed());
    world.settle(SECOND);
    world.check();
}

#[test]
fn two_that_leave_do_not_wait_for_a_lost_frame() {
    let mut world = World::group(2);
    world.processes[1].side = 1;
    leave(&mut world, 0);
    world.processes[1].side = 0;
    let start = world.now;
    leave(&mut world, 1);
    // Member 0 hears that, and what it says next is lost.
    world.processes[1].side = 1;
    world.run_for(MILLISECOND / 2);
    world.processes[1].side = 0;
    assert!(time_to_leave(&mut world, 0, start) < 10 * MILLISECOND);
    let time = time_to_leave(&mut world, 1, start);
    assert!(time < 100 * MILLISECOND, "{time} ns");
    assert!(world.processes[0].member.was_agreed() && world.processes[1].member.was_agreed());
}

#[test]
fn a_member_alone_leaves_at_once() {
    let mut world = World::group(1);
    leave(&mut world, 0);
    assert!(has_left(&world, 0) && world.processes[0].member.was_agreed());
}

#[test]
fn a_member_that_leaves_without_an_answer_says_so() {
    let mut world = World::group(2);
    world.stop(1);
    world.ends_are_told = false;
    let start = world.now;
    leave(&mut world, 0);
    assert!(time_to_leave(&mut world, 0, start) > 500 * MILLISECOND);
    assert!(!world.processes[0].member.was_agreed());
}

/// Members of which one has no stream of the first, though all are in one view.
fn with_a_late_stream(members: usize) -> (World, usize) {
    let mut world = World::new();
    for _ in 0..members {
        world.start();
    }
    let late = (0..members).max_by_key(|&index| world.id(index)).expect("a member");
    let first = (late + 1) % members;
    world.processes[late].unheard.push(first);
    assert!(world.run_until(world.now + 2 * SECOND, World::is_one_view), "one view");
    (world, late)
}

#[test]
fn a_leaver_without_a_stream_of_another_is_told_that_all_leave() {
    let (mut world, late) = with_a_late_stream(4);
    let start = world.now;
    for index in 0..4 {
        leave(&mut world, index);
    }
    let time = time_to_leave(&mut world, late, start);
    assert!(time < 100 * MILLISECOND, "{time} ns");
    assert!((0..4).all(|index| world.processes[index].member.was_agreed()));
}

#[test]
fn a_leader_that_leaves_begins_no_other_round() {
    let mut world = World::group(4);
    let (leader, follower) = (world.coordinator(0), followers(&world)[0]);
    let prepares = |world: &World| {
        world.processes[leader].sent.get(&(GroupKind::Prepare as u8)).copied().unwrap_or_default()
    };
    let before = prepares(&world);
    world.start();
    assert!(world.run_until(world.now + SECOND, |world| prepares(world) > before));
    let start = world.now;
    leave(&mut world, leader);
    let before = prepares(&world);
    // The round fails: another member is to lead the next one.
    world.end(follower);
    let time = time_to_leave(&mut world, leader, start);
    assert_eq!(prepares(&world), before, "it leads again");
    assert!(time < 100 * MILLISECOND, "{time} ns");
    assert!(world.processes[leader].member.was_agreed());
    world.settle(SECOND);
    world.check();
}

#[test]
fn a_leaver_that_was_not_run_does_not_give_the_others_up() {
    let mut world = World::group(2);
    world.ends_are_told = false;
    let start = world.now;
    leave(&mut world, 0);
    world.stop(0);
    world.run_for(3 * SECOND);
    world.go_on(0);
    time_to_leave(&mut world, 0, start + 3 * SECOND);
    assert!(world.processes[0].member.was_agreed());
}

/// The answers of its round lie unread.
#[test]
fn a_leader_that_leaves_after_a_pause_accuses_none() {
    let mut world = World::group(2);
    world.ends_are_told = false;
    let joiner = world.start();
    let leads = |world: &World| {
        world.processes[0].sent.contains_key(&(GroupKind::Prepare as u8))
            && world.processes[joiner].sent.contains_key(&(GroupKind::Flushed as u8))
    };
    assert!(world.run_until(world.now + 2 * SECOND, leads), "it begins a round");
    let before = world.processes[0].sent.get(&(GroupKind::Suspect as u8)).copied();
    world.stop(0);
    world.run_for(600 * MILLISECOND);
    leave(&mut world, 0);
    world.go_on(0);
    let start = world.now;
    time_to_leave(&mut world, 0, start);
    assert_eq!(world.processes[0].sent.get(&(GroupKind::Suspect as u8)).copied(), before);
    assert!(world.processes[0].member.was_agreed());
}

/// A member that is ready for its first view with another has no other in its own view yet.
#[test]
fn a_leaver_that_is_ready_for_a_view_waits_until_it_is_out_of_it() {
    for is_seeking in [true, false] {
        let mut world = World::group(1);
        let leaver = world.start();
        if !is_seeking {
            world.processes[leaver].side = 1;
            world.run_for(2 * SECOND);
            assert_eq!(world.views(leaver).len(), 1);
            world.processes[leaver].side = 0;
        }
        let is_ready =
            |world: &World| world.processes[leaver].sent.contains_key(&(GroupKind::Ready as u8));
        assert!(world.run_until(world.now + SECOND, is_ready), "it comes in");
        let start = world.now;
        leave(&mut world, leaver);
        let time = time_to_leave(&mut world, leaver, start);
        assert!(time < 100 * MILLISECOND, "{time} ns");
        assert!(world.processes[leaver].member.was_agreed());
        let views = world.views(0).len();
        assert!(!world.view(0).contains(world.id(leaver)), "the other has a view without it");
        world.run_for(SECOND);
        assert_eq!(world.views(0).len(), views, "no later view has it");
        world.check();
    }
}

/// The other dies before it installs the view that the leaver is ready for.
#[test]
fn a_leaver_that_is_ready_for_a_view_of_a_silent_member_says_so() {
    let mut world = World::group(1);
    world.ends_are_told = false;
    let leaver = world.start();
    let is_ready =
        |world: &World| world.processes[leaver].sent.contains_key(&(GroupKind::Ready as u8));
    assert!(world.run_until(world.now + SECOND, is_ready), "it comes in");
    world.stop(0);
    let start = world.now;
    leave(&mut world, leaver);
    let time = time_to_leave(&mut world, leaver, start);
    assert!((SECOND..4 * SECOND).contains(&time), "{time} ns");
    assert!(!world.processes[leaver].member.was_agreed());
}
