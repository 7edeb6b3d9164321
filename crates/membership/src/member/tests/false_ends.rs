//! Members that live, and whose ends another is told of: by a forged end of a stream, say.

use super::world::{SECOND, World};
use crate::Departure;

/// Tells a member of the end of another, which lives, and lets them settle.
#[track_caller]
fn settles(members: usize, (told, of): (usize, usize), why: Departure) {
    let mut world = World::group(members);
    let id = world.id(of);
    world.call(told, |member, now, out| member.on_peer_gone(now, id, why, out));
    world.run_for(5 * SECOND);
    world.assert_one_view();
    let epoch = world.view(told).id.epoch;
    world.run_for(20 * SECOND);
    world.assert_one_view();
    assert_eq!(world.view(told).id.epoch, epoch, "{told} of {members}, told of {of}: {why:?}");
    world.check();
}

#[test]
fn a_false_word_of_an_end_costs_changes_of_the_view_and_no_member() {
    for members in [2, 3, 5] {
        for (told, of) in (0..members).flat_map(|told| (0..members).map(move |of| (told, of))) {
            if told != of {
                settles(members, (told, of), Departure::Left);
                settles(members, (told, of), Departure::Crashed);
            }
        }
    }
}
