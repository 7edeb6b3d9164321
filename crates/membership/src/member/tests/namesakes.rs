//! Members of one name: a restarted one, whatever its clock says, and two that live.

use super::world::{MILLISECOND, SECOND, Seen, World};
use crate::{Departure, MemberId, Nanos};
use lanecast_wire::group::views::MemberState;
use lanecast_wire::group::{GroupFrame, group_hash};

/// Clock of the member that dies.
const CLOCK: u64 = 100;

fn names(world: &World) -> Vec<&str> {
    let running = world.running();
    running.iter().map(|&index| &*world.processes[index].member.me().name).collect()
}

/// Views that the members' applications saw, in all.
fn view_count(world: &World) -> usize {
    (0..world.processes.len()).map(|index| world.views(index).len()).sum()
}

/// All are in one view, and stay in it.
#[track_caller]
fn assert_settled(world: &mut World, case: &str) {
    world.assert_one_view();
    let mut names: Vec<_> = names(world).into_iter().map(str::to_owned).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{case}: {names:?}");
    let views = view_count(world);
    world.run_for(10 * SECOND);
    assert_eq!(view_count(world), views, "{case}: the view changes without a cause");
    world.assert_one_view();
    world.check();
}

/// Ends the member `x`, and starts it again after `pause` by a clock that shows `clock`.
fn restart(world: &mut World, x: usize, clock: u64, pause: Nanos) -> usize {
    world.end(x);
    world.run_for(pause);
    world.start_named("x", clock)
}

/// A member called `x` shows itself to `by`.
fn show_x(world: &mut World, by: usize, id: MemberId, incarnation: u64, state: MemberState) {
    let (coordinator, vector, name) = (id.0, &[][..], "x");
    let frame = GroupFrame::Heartbeat { coordinator, incarnation, port: 0, state, name, vector };
    let mut bytes = Vec::new();
    frame.write((group_hash("group"), id.0, 0), &mut bytes);
    world.call(by, |member, now, out| member.on_frame(now, &bytes, out));
}

/// A group of three, and in it a member `x`.
fn group_with_x(is_first: bool) -> (World, usize) {
    let mut world = World::new();
    let x = if is_first { Some(world.start_named("x", CLOCK)) } else { None };
    world.run_for(if is_first { 2 * SECOND } else { 0 });
    world.start();
    world.start();
    let x = x.unwrap_or_else(|| world.start_named("x", CLOCK));
    world.run_for(2 * SECOND);
    world.assert_one_view();
    (world, x)
}

#[test]
fn a_member_that_restarts_with_an_earlier_clock_comes_back_to_stay() {
    for clock in [0, CLOCK - 1, CLOCK, CLOCK + 1] {
        for is_first in [true, false] {
            for (ends_are_told, within) in [(true, 2 * SECOND), (false, 6 * SECOND)] {
                for pause in [0, 50 * MILLISECOND, 700 * MILLISECOND, 5 * SECOND] {
                    let case = format!("{clock} after {pause} ns, told: {ends_are_told}");
                    let (mut world, x) = group_with_x(is_first);
                    world.ends_are_told = ends_are_told;
                    let again = restart(&mut world, x, clock, pause);
                    world.run_for(within);
                    assert!(world.view(0).members.len() == 3, "{case}: {:?}", world.view(0));
                    assert!(world.running().contains(&again), "{case}: the living one ended");
                    assert_settled(&mut world, &case);
                }
            }
        }
    }
}

#[test]
fn a_member_that_restarts_again_and_again_comes_back_to_stay() {
    let (mut world, mut x) = group_with_x(false);
    for clock in [90, 95, 95, 10, 200, 100, 0] {
        x = restart(&mut world, x, clock, 100 * MILLISECOND);
        world.settle(3 * SECOND);
        assert!(world.running().contains(&x), "{clock}: the living one ended");
    }
    assert_settled(&mut world, "after the last");
}

#[test]
fn of_two_living_members_of_a_name_the_later_stays() {
    for (clock, later_stays) in [(CLOCK - 1, false), (CLOCK + 1, true)] {
        for is_first in [true, false] {
            let (mut world, x) = group_with_x(is_first);
            let before = view_count(&world);
            let other = world.start_named("x", clock);
            world.run_for(3 * SECOND);
            let (stays, ends) = if later_stays { (other, x) } else { (x, other) };
            assert!(matches!(world.processes[ends].seen.last(), Some(Seen::Left)), "{clock}");
            assert!(world.running().contains(&stays), "{clock}");
            assert_settled(&mut world, "two that live");
            // One view of the three that stay, besides those that the two show alone.
            let most = before + if later_stays { 3 } else { 0 };
            assert!(view_count(&world) <= most, "{} views, {most} expected", view_count(&world));
        }
    }
}

#[test]
fn two_members_of_a_name_meet_when_a_partition_heals() {
    for clock in [CLOCK - 1, CLOCK, CLOCK + 1] {
        for (side, other_side) in [(0, 1), (1, 0)] {
            let (mut world, x) = group_with_x(false);
            world.processes[x].side = side;
            world.processes[0].side = side;
            world.processes[1].side = other_side;
            world.run_for(4 * SECOND);
            let other = world.start_named("x", clock);
            world.processes[other].side = other_side;
            world.run_for(4 * SECOND);
            world.processes.iter_mut().for_each(|process| process.side = 0);
            world.run_for(5 * SECOND);
            assert_eq!(world.running().len(), 3);
            let is_later = (clock, world.id(other)) > (CLOCK, world.id(x));
            assert!(world.running().contains(if is_later { &other } else { &x }), "{clock}");
            assert_settled(&mut world, "healed");
        }
    }
}

#[test]
fn a_member_that_hangs_takes_its_name_back_if_it_is_the_later_one() {
    for clock in [CLOCK - 1, CLOCK + 1] {
        let (mut world, x) = group_with_x(false);
        world.stop(x);
        world.run_for(4 * SECOND);
        let other = world.start_named("x", clock);
        world.run_for(3 * SECOND);
        assert!(world.view(0).contains(world.id(other)), "{clock}");
        world.go_on(x);
        world.run_for(5 * SECOND);
        let stays = if clock > CLOCK { other } else { x };
        assert!(world.running().contains(&stays) && world.running().len() == 3, "{clock}");
        assert_settled(&mut world, "awake again");
    }
}

/// Late or forged: the member is asked for by no more than one sender's moment.
#[test]
fn late_frames_of_a_later_incarnation_end_no_member() {
    let (mut world, x) = group_with_x(false);
    let dead = world.id(x);
    let again = restart(&mut world, x, CLOCK - 1, 100 * MILLISECOND);
    for _ in 0..4 {
        show_x(&mut world, again, dead, CLOCK, MemberState::Member);
        world.run_for(100 * MILLISECOND);
    }
    show_x(&mut world, again, MemberId(7), u64::MAX, MemberState::Seeking);
    world.run_for(10 * SECOND);
    assert!(world.running().contains(&again), "the living one ended");
    assert_settled(&mut world, "late frames");
}

#[test]
fn a_forged_successor_parts_a_member_for_a_while_only() {
    let (mut world, x) = group_with_x(true);
    for index in 0..3 {
        show_x(&mut world, index, MemberId(7), u64::MAX, MemberState::Seeking);
    }
    world.run_for(8 * SECOND);
    assert!(world.running().contains(&x) && world.running().len() == 3);
    assert_settled(&mut world, "the forged one is silent");
}

#[test]
fn a_later_incarnation_that_leaves_ends_no_member() {
    let (mut world, x) = group_with_x(false);
    for _ in 0..20 {
        show_x(&mut world, x, MemberId(7), u64::MAX, MemberState::Leaving);
        world.run_for(100 * MILLISECOND);
    }
    assert!(world.running().contains(&x));
    assert_settled(&mut world, "the other has left");
}

#[test]
fn frames_that_waited_to_be_read_are_no_sign_of_a_later_incarnation() {
    let (mut world, x) = group_with_x(false);
    for is_behind in [true, false] {
        for _ in 0..20 {
            world.call(x, |member, now, _| member.set_backlog(now, is_behind));
            show_x(&mut world, x, MemberId(7), u64::MAX, MemberState::Member);
            world.run_for(100 * MILLISECOND);
        }
        assert_eq!(world.running().contains(&x), is_behind);
    }
}

#[test]
fn a_member_that_leaves_is_not_replaced() {
    for leaver_is_first in [true, false] {
        let (mut world, x) = group_with_x(leaver_is_first);
        let id = world.id(x);
        world.call(x, |member, now, out| member.leave(now, out));
        world.start_named("x", CLOCK + 1);
        world.settle(3 * SECOND);
        let other = (0..3).find(|index| *index != x).expect("another");
        let views = world.views(other);
        let mut left = views.iter().flat_map(|(_, change)| &change.left);
        let left = left.find(|(member, _)| member.id == id).expect("it is gone");
        assert_eq!(left.1, Departure::Left);
        assert_settled(&mut world, "it left");
    }
}
