//! Small scopes of publishers and stores, explored exhaustively.

use lanecast_sim::persistence::explore::{StoreScope, StoresExplored, explore};

/// Nothing happens, until budgets are added.
const QUIET: StoreScope = StoreScope {
    stores: 3,
    lists: [0; 2],
    messages: 0,
    failing: None,
    store_crashes: 0,
    wipes: 0,
    publisher_crashes: 0,
    ticks: 2,
    saves_idle: true,
    states: 5_000,
};

#[track_caller]
fn explores(scope: StoreScope) -> StoresExplored {
    let explored = explore(scope).unwrap_or_else(|violation| panic!("{scope:?}: {violation}"));
    let StoresExplored { states, ends, drained, ref outcomes, is_complete } = explored;
    let found = outcomes.len();
    println!("{scope:?}: {states} states, {ends} ends, {found} outcomes, complete: {is_complete}");
    assert!(ends > 0 && drained > 0, "{scope:?}");
    explored
}

/// Any one store of three crashes, or loses its data, at any moment: each scope is complete.
#[track_caller]
fn explores_any_store(scope: StoreScope) {
    for store in 0..scope.stores {
        let explored = explores(StoreScope { failing: Some(store), ..scope });
        assert!(explored.is_complete, "{} states are too few", scope.states);
        // A single store that fails keeps nothing from becoming stable.
        assert_eq!(explored.drained, explored.ends);
    }
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
fn a_store_of_three_that_crashes_at_any_moment_of_a_message() {
    let one = StoreScope { messages: 1, ticks: 1, states: 100_000, ..QUIET };
    explores_any_store(StoreScope { store_crashes: 1, ..one });
}

#[test]
fn a_store_of_three_that_loses_its_data_at_any_moment_of_a_message() {
    let one = StoreScope { messages: 1, ticks: 1, states: 100_000, ..QUIET };
    explores_any_store(StoreScope { wipes: 1, ..one });
}

/// Orders that are left out make no end impossible.
#[test]
fn savings_leave_out_no_outcome() {
    let small = StoreScope { ticks: 1, messages: 1, states: 300_000, ..QUIET };
    let failing = Some(1);
    for scope in [
        StoreScope { stores: 3, failing, store_crashes: 1, ..small },
        StoreScope { stores: 2, failing, wipes: 1, ..small },
        StoreScope { stores: 2, publisher_crashes: 1, ..small },
    ] {
        saves_without_loss(scope);
    }
}

#[track_caller]
fn saves_without_loss(scope: StoreScope) {
    let saving = explores(scope);
    let whole = explores(StoreScope { saves_idle: false, ..scope });
    assert!(saving.is_complete && whole.is_complete);
    assert_eq!(saving.outcomes, whole.outcomes, "{scope:?}");
    assert!(saving.states < whole.states && saving.outcomes.len() > 1, "{scope:?}");
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn savings_leave_out_no_outcome_of_two_faults() {
    let one = StoreScope { stores: 2, messages: 1, ticks: 1, states: 20_000_000, ..QUIET };
    let faults = StoreScope { store_crashes: 1, publisher_crashes: 1, ..one };
    saves_without_loss(StoreScope { failing: Some(1), ..faults });
}

/// The first states of a scope that `make test-long` explores completely.
#[test]
fn thousands_of_orders_in_which_a_publisher_of_three_stores_crashes() {
    let explored = explores(StoreScope { messages: 1, publisher_crashes: 1, ..QUIET });
    assert_eq!(explored.states, QUIET.states);
}

/// The publisher crashes at any moment of a message, and the next one names two stores where there
/// was one: also while it changes the members.
#[test]
fn one_store_becomes_two_in_every_order_of_events() {
    let one = StoreScope { stores: 2, messages: 1, ticks: 1, states: 300_000, ..QUIET };
    let lists = [0b01, 0b11];
    assert!(explores(StoreScope { lists, publisher_crashes: 1, ..one }).is_complete);
    // The change itself ends at any moment, and begins again.
    explores(StoreScope { lists, messages: 0, publisher_crashes: 2, ..one });
}

/// One of three stores is left out, or replaced.
#[test]
fn a_store_of_three_is_left_out_or_replaced() {
    let one = StoreScope { messages: 1, ticks: 1, states: 100_000, publisher_crashes: 1, ..QUIET };
    explores(StoreScope { lists: [0b111, 0b011], ..one });
    explores(StoreScope { stores: 4, lists: [0b0111, 0b1011], ..one });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn lists_of_stores_that_change_in_larger_scopes() {
    let one = StoreScope { messages: 1, ticks: 1, states: 5_000_000, ..QUIET };
    let two = StoreScope { stores: 2, lists: [0b01, 0b11], ..one };
    assert!(explores(StoreScope { publisher_crashes: 1, ..two }).is_complete);
    explores(StoreScope { publisher_crashes: 2, ..two });
    explores(StoreScope { lists: [0b111, 0b011], publisher_crashes: 2, ..one });
    explores(StoreScope { stores: 4, lists: [0b0111, 0b1011], publisher_crashes: 2, ..one });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_store_of_three_that_crashes_at_any_moment_of_two_messages() {
    let two = StoreScope { messages: 2, states: 10_000_000, ..QUIET };
    explores_any_store(StoreScope { store_crashes: 1, ..two });
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn a_store_of_three_that_loses_its_data_at_any_moment_of_two_messages() {
    let two = StoreScope { messages: 2, states: 10_000_000, ..QUIET };
    explores_any_store(StoreScope { wipes: 1, ..two });
}

/// 3.6 million states.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_publisher_of_three_stores_that_crashes_at_any_moment_of_a_message() {
    let one = StoreScope { messages: 1, ticks: 1, states: 10_000_000, ..QUIET };
    let explored = explores(StoreScope { publisher_crashes: 1, ..one });
    assert!(explored.is_complete && explored.drained == explored.ends);
}

/// A store of three loses its data, and the publisher crashes, each at any moment of a message: the
/// next publisher goes on behind what was stable, whichever stores answer it first. The first five
/// million states for each store: the scopes are larger, and are not explored to their ends.
#[test]
#[ignore = "takes minutes: make test-long"]
fn millions_of_orders_in_which_a_store_of_three_is_wiped_and_its_publisher_crashes() {
    let one = StoreScope { messages: 1, ticks: 1, states: 5_000_000, ..QUIET };
    for store in 0..one.stores {
        let failing = Some(store);
        let explored = explores(StoreScope { failing, wipes: 1, publisher_crashes: 1, ..one });
        assert_eq!(explored.drained, explored.ends);
    }
}

/// 33 million states.
#[test]
#[ignore = "takes minutes: make test-long"]
fn a_publisher_of_three_stores_that_crashes_at_any_moment_of_two_messages() {
    let two = StoreScope { messages: 2, ticks: 1, states: 50_000_000, ..QUIET };
    let explored = explores(StoreScope { publisher_crashes: 1, ..two });
    assert!(explored.is_complete && explored.drained == explored.ends);
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn larger_scopes_of_stores() {
    let two = StoreScope { messages: 2, states: 3_000_000, ticks: 1, ..QUIET };
    explores(StoreScope { stores: 2, publisher_crashes: 1, ..two });
    let long = StoreScope { messages: 2, states: 300_000, ticks: 3, ..QUIET };
    explores(StoreScope { store_crashes: 1, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 1, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 2, publisher_crashes: 1, ..long });
    explores(StoreScope { wipes: 1, store_crashes: 1, ..long });
}
