//! Small scopes of publishers and stores, explored exhaustively.

use lanecast_sim::persistence::explore::{StoreScope, StoresExplored, explore};

/// Nothing happens, until budgets are added.
const QUIET: StoreScope = StoreScope {
    stores: 3,
    messages: 0,
    store_crashes: 0,
    wipes: 0,
    publisher_crashes: 0,
    ticks: 2,
    states: 5_000,
};

#[track_caller]
fn explores(scope: StoreScope) -> StoresExplored {
    let explored = explore(scope).unwrap_or_else(|violation| panic!("{scope:?}: {violation}"));
    println!("{scope:?}: {explored:?}");
    assert!(explored.ends > 0 && explored.drained > 0, "{explored:?}");
    explored
}

/// One message, requests that are repeated once, and any one fault at any moment.
#[test]
fn every_order_of_events_at_one_and_two_stores() {
    let small = StoreScope { ticks: 1, messages: 1, states: 60_000, ..QUIET };
    for stores in [1, 2] {
        let crash = StoreScope { stores, store_crashes: 1, ..small };
        let wipe = StoreScope { stores, wipes: 1, ..small };
        assert!(explores(crash).is_complete && explores(wipe).is_complete);
    }
    let publisher = explores(StoreScope { stores: 1, publisher_crashes: 1, ..small });
    assert!(publisher.is_complete);
}

#[test]
fn a_store_that_crashes_at_any_moment_of_a_message() {
    explores(StoreScope { messages: 1, store_crashes: 1, ..QUIET });
}

#[test]
fn a_publisher_that_crashes_at_any_moment_of_a_message() {
    explores(StoreScope { messages: 1, publisher_crashes: 1, ..QUIET });
}

#[test]
fn a_store_that_loses_its_data_at_any_moment_of_a_message() {
    explores(StoreScope { messages: 1, wipes: 1, ..QUIET });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn larger_scopes_of_stores() {
    let one = StoreScope { messages: 1, states: 3_000_000, ticks: 1, ..QUIET };
    explores(StoreScope { stores: 2, publisher_crashes: 1, ..one });
    explores(StoreScope { store_crashes: 1, ..one });
    explores(StoreScope { wipes: 1, ..one });
    let long = StoreScope { messages: 2, states: 300_000, ticks: 3, ..QUIET };
    explores(StoreScope { store_crashes: 1, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 1, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 2, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 1, store_crashes: 1, ..long });
}
