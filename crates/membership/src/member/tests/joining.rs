//! Members that join while they are not run.

use super::world::{SECOND, World};

/// A member that joins a group of two and is not run for three seconds before it has a stream.
#[test]
fn a_joiner_that_was_not_run_founds_no_group_of_its_own() {
    for hears_later in [false, true] {
        let mut world = World::group(2);
        let joiner = world.start();
        world.processes[joiner].side = 1;
        if hears_later {
            world.run_for(SECOND / 2);
        }
        world.stop(joiner);
        world.run_for(3 * SECOND);
        world.processes[joiner].side = 0;
        world.go_on(joiner);
        let time = world.settle(2 * SECOND);
        assert!(time < SECOND / 2, "{time} ns");
        assert_eq!(world.views(joiner).len(), 1, "hears later: {hears_later}");
        assert_eq!(world.view(joiner).members.len(), 3);
        world.check();
    }
}

#[test]
fn a_member_alone_that_was_not_run_shows_its_view_later_by_as_much() {
    let mut world = World::new();
    let alone = world.start();
    world.stop(alone);
    world.run_for(3 * SECOND);
    world.go_on(alone);
    world.run_for(SECOND - 1);
    assert!(world.views(alone).is_empty());
    world.run_for(SECOND / 2);
    assert_eq!(world.views(alone).len(), 1);
}
