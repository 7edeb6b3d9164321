//! Small scopes of groups, explored exhaustively.

use lanecast_sim::group::explore::{Explored, Scope, explore};

/// Nothing happens, until budgets are added.
const QUIET: Scope = Scope {
    members: 3,
    messages: 0,
    losses: 0,
    crashes: 0,
    partitions: 0,
    late: 0,
    ticks: 4,
    states: 20_000,
};

#[track_caller]
fn explores(scope: Scope) -> Explored {
    let explored = explore(scope).unwrap_or_else(|violation| panic!("{scope:?}: {violation}"));
    println!("{scope:?}: {explored:?}");
    assert!(explored.ends > 0 && explored.changes > 0, "{explored:?}");
    explored
}

#[test]
fn a_crash_at_any_moment_of_two_messages() {
    let explored = explores(Scope { messages: 2, crashes: 1, ..QUIET });
    assert!(explored.is_complete, "{explored:?}");
}

#[test]
fn a_partition_at_any_moment_of_a_message() {
    explores(Scope { messages: 1, partitions: 1, states: 10_000, ..QUIET });
}

#[test]
fn any_lost_frame_of_a_view_change() {
    let explored = explores(Scope { messages: 1, crashes: 1, losses: 1, ..QUIET });
    assert!(explored.is_complete, "{explored:?}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn larger_scopes() {
    let long = Scope { states: 300_000, ticks: 8, messages: 2, ..QUIET };
    explores(Scope { crashes: 1, losses: 1, late: 1, ..long });
    explores(Scope { partitions: 1, losses: 1, late: 1, ..long });
    explores(Scope { crashes: 1, partitions: 1, ..long });
}
