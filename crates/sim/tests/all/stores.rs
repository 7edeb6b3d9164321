//! Many runs of publishers, stores and receivers, each from its seed; `SEED=n` and `SEEDS=a..b`
//! choose others.

use crate::seeds::{SLICE, run_all, seeds};
use lanecast_sim::persistence::outcome::StoreOutcome;
use lanecast_sim::persistence::scenario::StoreScenario;
use lanecast_sim::persistence::tamper::StoreTamper;
use lanecast_sim::persistence::world::World;
use lanecast_sim::persistence::world::runs::{run, run_full_disks, run_lists};
use lanecast_wire::store::StoreKind;
use std::io::Write;

#[test]
fn what_was_stable_is_kept() {
    let seeds = seeds(0..2_000);
    let all = seeds.end - seeds.start >= 2_000;
    let total = run_all(seeds, run, StoreOutcome::add);
    println!("{total:?}");
    // Runs without events prove nothing.
    if all {
        let many = [total.stable, total.frames, total.lost, total.handed_out];
        assert!(many.iter().all(|count| *count > 10_000), "{total:?}");
        let some = [total.store_crashes, total.publisher_crashes, total.inherited];
        assert!(some.iter().all(|count| *count > 250) && total.wipes > 200, "{total:?}");
        assert!(total.discarded > 300 && total.caught_up > 300, "{total:?}");
        let few = [total.superseded, total.healed_wipes, total.trims, total.resumed];
        assert!(total.departures > 500 && total.partial_departures > 50, "{total:?}");
        assert!(few.iter().all(|count| *count > 50), "{total:?}");
    }
}

/// Publishers and receivers name other stores, in other groups, whenever they start.
#[test]
fn what_was_stable_is_kept_whatever_stores_are_named() {
    let usual = 0..500;
    let seeds = seeds(usual.clone());
    let all = seeds == usual;
    let total = run_all(seeds, run_lists, StoreOutcome::add);
    println!("{total:?}");
    if all {
        let many = [total.stable, total.frames, total.handed_out];
        assert!(many.iter().all(|count| *count > 10_000), "{total:?}");
        let some = [total.other_lists, total.members_changed, total.store_crashes];
        assert!(some.iter().all(|count| *count > 250), "{total:?}");
    }
}

/// A stream that no disk has room for holds up none that is on the disks.
#[test]
fn what_was_stable_is_handed_out_from_full_disks() {
    let usual = 0..100;
    let seeds = seeds(usual.clone());
    let all = seeds == usual;
    let total = run_all(seeds, run_full_disks, StoreOutcome::add);
    assert!(!all || total.full_disks > 30, "{total:?}");
}

/// Stores hold little, so that publishers stop and go on.
#[test]
fn what_receivers_that_pace_have_not_consumed_is_kept() {
    let usual = 0..300;
    let seeds = seeds(usual.clone());
    let all = seeds == usual;
    let run = |seed| World::new(StoreScenario::draw_paced(seed), StoreTamper::Nothing).run();
    let total = run_all(seeds, run, StoreOutcome::add);
    println!("{total:?}");
    if all {
        assert!(total.handed_out > 10_000 && total.trims > 20, "{total:?}");
        assert!(total.departures > 100, "{total:?}");
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn what_was_stable_is_kept_for_long() {
    let (seeds, mut total) = (seeds(2_000..100_000), StoreOutcome::default());
    for first in seeds.clone().step_by(SLICE) {
        let end = seeds.end.min(first + SLICE as u64);
        total.add(&run_all(first..end, run, StoreOutcome::add));
        // Not `println!`, which the test harness shows only for failures.
        _ = writeln!(std::io::stderr(), "stores of seeds {}..{end} keep all", seeds.start);
    }
    println!("{total:?}");
}

/// Runs seeds with a defect until the oracle finds it.
#[track_caller]
fn finds(tamper: StoreTamper, words: &str) {
    // Other oracles may notice the defect in an earlier seed.
    let is_found = |seed| {
        let failure = World::new(StoreScenario::draw(seed), tamper).run().err();
        failure.is_some_and(|failure| failure.to_string().contains(words))
    };
    assert!((0..1_000).any(is_found), "{tamper:?} was not found");
}

#[test]
fn defects_of_stores_are_found() {
    finds(StoreTamper::LieOfDisk, "stable");
    finds(StoreTamper::ForgetPromises, "stable");
    finds(StoreTamper::KeepIncarnation, "stable");
}

#[test]
fn frames_that_never_arrive_are_found() {
    for kind in [StoreKind::Open, StoreKind::Begin, StoreKind::Resend, StoreKind::Fetch] {
        finds(StoreTamper::Swallow(kind), "stable");
    }
    // A receiver that leaves waits for its stores.
    finds(StoreTamper::Swallow(StoreKind::Detach), "Leaving");
}
