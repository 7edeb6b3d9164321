//! Silence that is none: members that live are not given up for want of frames.

use super::world::{MILLISECOND, SECOND, Seen, World};
use crate::{Departure, MemberId, Nanos, Order, SendError};
use lanecast_wire::group::{DataFlags, GroupFrame, group_hash};

/// A frame of a member of the first view.
fn frame_of(id: MemberId, frame: &GroupFrame<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame.write((group_hash("group"), id.0, 1), &mut bytes);
    bytes
}

fn hear(world: &mut World, index: usize, bytes: &[u8]) {
    world.call(index, |member, now, out| member.on_frame(now, bytes, out));
}

fn is_suspected(world: &World, index: usize) -> bool {
    world.processes[index].seen.iter().any(|seen| matches!(seen, Seen::Suspected(..)))
}

/// Two members; the second one stands still, and its frames are the test's.
fn pair() -> World {
    let mut world = World::group(2);
    world.stop(1);
    world
}

/// A member whose heartbeats are held up sends messages all the time, and others call it silent.
fn survives_accusations(why: Departure) -> bool {
    let mut world = pair();
    let id = world.id(1);
    let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST);
    for sequence in 0..40 {
        let accused = GroupFrame::Suspect { member: id.0, reason: why.number() };
        hear(&mut world, 0, &frame_of(MemberId(999), &accused));
        hear(&mut world, 0, &frame_of(id, &GroupFrame::Data { sequence, flags, body: b"x" }));
        world.run_for(60 * MILLISECOND);
    }
    world.view(0).contains(id)
}

#[test]
fn messages_outweigh_the_word_of_others() {
    assert!(survives_accusations(Departure::Silent));
    assert!(survives_accusations(Departure::Unresponsive));
    assert!(survives_accusations(Departure::Crashed));
}

/// A stream of TCP stands still for 210 ms after many a loss.
#[test]
fn the_word_of_others_is_no_proof_of_a_short_silence() {
    let mut world = pair();
    let id = world.id(1);
    let accused = GroupFrame::Suspect { member: id.0, reason: Departure::Silent.number() };
    hear(&mut world, 0, &frame_of(MemberId(999), &accused));
    world.run_for(450 * MILLISECOND);
    assert!(world.view(0).contains(id) && is_suspected(&world, 0));
    world.run_for(400 * MILLISECOND);
    assert!(!world.view(0).contains(id), "silent for long enough");
}

#[test]
fn a_crash_that_another_member_saw_is_verified_at_once() {
    let mut world = pair();
    let id = world.id(1);
    let accused = GroupFrame::Suspect { member: id.0, reason: Departure::Crashed.number() };
    hear(&mut world, 0, &frame_of(MemberId(999), &accused));
    world.run_for(350 * MILLISECOND);
    assert!(!world.view(0).contains(id));
}

#[test]
fn silence_is_not_judged_while_frames_wait_to_be_read() {
    let mut world = pair();
    let id = world.id(1);
    let backlog = |world: &mut World, has_backlog| {
        world.call(0, |member, now, _| member.set_backlog(now, has_backlog));
    };
    backlog(&mut world, true);
    world.run_for(1_900 * MILLISECOND);
    assert!(!is_suspected(&world, 0), "the frames may be signs of life");
    // One of them was.
    let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST);
    hear(&mut world, 0, &frame_of(id, &GroupFrame::Data { sequence: 0, flags, body: b"x" }));
    backlog(&mut world, false);
    world.run_for(100 * MILLISECOND);
    assert!(!is_suspected(&world, 0));
    world.run_for(2 * SECOND);
    assert!(is_suspected(&world, 0), "silence with nothing to read");
}

#[test]
fn a_member_that_never_reads_all_judges_at_last() {
    let mut world = pair();
    let id = world.id(1);
    world.call(0, |member, now, _| member.set_backlog(now, true));
    world.run_for(2_500 * MILLISECOND);
    assert!(!world.view(0).contains(id));
}

#[test]
fn a_member_that_answers_probes_is_waited_for_but_not_for_ever() {
    let mut world = pair();
    let id = world.id(1);
    let began = world.now;
    let mut answered: Nanos = 0;
    while world.view(0).contains(id) {
        world.run_for(20 * MILLISECOND);
        if !std::mem::take(&mut world.processes[0].probed).is_empty() {
            answered += 1;
            world.call(0, |member, now, _| member.on_answer(now, id));
        }
        assert!(world.now < began + 20 * SECOND, "it holds up the group");
    }
    let took = world.now - began;
    assert!((8 * SECOND..11 * SECOND).contains(&took), "{took} ns, {answered} answers");
    assert!(answered > 50, "{answered}");
}

#[test]
fn silent_members_are_probed_before_they_are_suspected() {
    let mut world = pair();
    assert!(world.run_until(world.now + 3 * SECOND, |world| is_suspected(world, 0)));
    let probes = world.processes[0].probed.len();
    assert!((2..25).contains(&probes), "{probes}");
}

/// A participant whose frames are held up answers probes: the round waits for it, for a while.
#[test]
fn a_round_waits_for_a_participant_that_answers_probes() {
    for answers in [true, false] {
        let mut world = World::group(3);
        let leader = world.coordinator(0);
        let blocked = (leader + 1) % 3;
        let id = world.id(blocked);
        let leaver = (leader + 2) % 3;
        world.stop(blocked);
        world.call(leaver, |member, now, out| member.leave(now, out));
        let began = world.now;
        while world.now < began + 1_500 * MILLISECOND && world.view(leader).contains(id) {
            world.run_for(20 * MILLISECOND);
            let probed = std::mem::take(&mut world.processes[leader].probed);
            if answers && probed.contains(&id) {
                world.call(leader, |member, now, _| member.on_answer(now, id));
            }
        }
        assert_eq!(world.view(leader).contains(id), answers);
        if answers {
            world.go_on(blocked);
            let has_changed = |world: &World| world.views(leader).len() == 2;
            assert!(world.run_until(world.now + SECOND, has_changed), "without the leaver");
            assert!(world.view(leader).contains(id));
        }
    }
}

#[test]
fn room_is_told_after_a_send_without_a_view() {
    let mut world = World::new();
    let alone = world.start();
    assert_eq!(world.send(alone, Order::Sender), Err(SendError::NoView));
    world.run_for(2 * SECOND);
    let seen = &world.processes[alone].seen;
    assert!(matches!(seen[..], [Seen::View(..), Seen::Writable]), "{seen:?}");
    assert_eq!(world.send(alone, Order::Sender), Ok(0));
}
