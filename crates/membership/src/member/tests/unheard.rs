//! Links that are missing: members that others do not hear.

use super::world::{MILLISECOND, SECOND, World};
use crate::{Nanos, Order};

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
