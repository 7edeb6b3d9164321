//! Groups that have no room for all.

use super::world::{SECOND, World};

/// Members that run in each view, of those that are in one.
fn sizes(world: &World) -> Vec<usize> {
    world.running().iter().map(|&index| world.view(index).members.len()).collect()
}

#[test]
fn a_full_group_rests_while_others_would_join() {
    // Ids below and above those of the members.
    for before in 0..3 {
        let mut world = World::new();
        world.most_members = 2;
        let pair = [world.start(), world.start()];
        world.settle(3 * SECOND);
        for _ in 0..before {
            let index = world.start();
            world.end(index);
        }
        let candidate = world.start();
        world.run_for(10 * SECOND);
        for index in pair {
            let views = world.views(index).len();
            assert!(views <= 2, "member {index} saw {views} views");
            assert_eq!(world.view(index), world.view(pair[0]));
            assert!(world.view(index).contains(world.id(pair[0])));
            assert!(world.view(index).contains(world.id(pair[1])));
        }
        assert_eq!(world.view(candidate).members.len(), 1, "it has a view of its own");
        // Room for it.
        world.end(pair[1]);
        world.settle(3 * SECOND);
        world.check();
    }
}

#[test]
fn views_that_do_not_fit_as_a_whole_stay_apart() {
    for members in 3..7 {
        let mut world = World::new();
        world.most_members = members / 2 + 1;
        for _ in 0..members {
            world.start();
        }
        world.run_for(10 * SECOND);
        let views: Vec<_> = (0..members).map(|index| world.views(index).len()).collect();
        let before = sizes(&world);
        assert!(before.iter().all(|&size| size <= world.most_members), "{before:?}");
        world.run_for(10 * SECOND);
        let later: Vec<_> = (0..members).map(|index| world.views(index).len()).collect();
        assert_eq!(later, views, "{members} members are at rest");
        world.check();
    }
}

#[test]
fn parted_members_of_a_full_group_find_each_other_again() {
    let mut world = World::new();
    world.most_members = 4;
    for _ in 0..4 {
        world.start();
    }
    world.settle(3 * SECOND);
    for index in 0..4 {
        world.processes[index].side = index as u32 % 2;
    }
    world.run_for(4 * SECOND);
    world.processes.iter_mut().for_each(|process| process.side = 0);
    world.settle(3 * SECOND);
    world.check();
}
