//! Many runs of groups, each from its seed; `SEED=n` and `SEEDS=a..b` choose others.

use crate::seeds::{SLICE, run_all, seeds};
use lanecast_membership::GroupSettings;
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_sim::group::run::{self, GroupOutcome, run_scenario};
use lanecast_sim::group::scenario::GroupScenario;
use lanecast_sim::group::tamper::Tamper;
use std::io::Write;
use std::ops::Range;

#[test]
fn groups_keep_every_promise() {
    let seeds = seeds(0..2_000);
    let all = seeds.end - seeds.start >= 2_000;
    let total = run_all(seeds, run::run, GroupOutcome::add);
    println!("{total:?}");
    // Runs without events prove nothing.
    if all {
        let much = [total.views, total.delivered, total.direct, total.frames, total.lost];
        assert!(much.iter().all(|count| *count > 5_000), "{total:?}");
        let some = [total.states, total.crashes, total.hangs, total.partitions, total.leaves];
        assert!(some.iter().all(|count| *count > 100), "{total:?}");
        assert!(total.refused_frames > 1_000 && total.refused_sends > 1_000, "{total:?}");
        assert!(total.gentle > 200 && total.answers > 1_000, "{total:?}");
    }
}

#[test]
#[ignore = "takes minutes: make test-long"]
fn groups_keep_every_promise_for_long() {
    let (seeds, mut total) = (seeds(2_000..100_000), GroupOutcome::default());
    for first in seeds.clone().step_by(SLICE) {
        let end = seeds.end.min(first + SLICE as u64);
        total.add(&run_all(first..end, run::run, GroupOutcome::add));
        total.add(&run_all(first..end, run::run_namesakes, GroupOutcome::add));
        total.add(&run_all(first..end, run::run_missing_links, GroupOutcome::add));
        // Not `println!`, which the test harness shows only for failures.
        _ = writeln!(
            std::io::stderr(),
            "groups of seeds {}..{end} keep every promise",
            seeds.start
        );
    }
    println!("{total:?}");
}

/// One member of each name stays, and no view changes any more.
#[test]
fn of_members_with_one_name_one_stays_whatever_its_clock() {
    let seeds = seeds(0..500);
    let all = seeds.end - seeds.start >= 500;
    let total = run_all(seeds, run::run_namesakes, GroupOutcome::add);
    println!("{total:?}");
    if all {
        assert!(total.early > 300 && total.replaced > 100, "{total:?}");
    }
}

/// Views stay agreed on while members do not hear each other, and soon after the links are there
/// all come together.
#[test]
fn members_whose_links_are_late_or_break_one_way_come_together() {
    let total = run_all(seeds(0..1_000), run::run_missing_links, GroupOutcome::add);
    println!("{total:?}");
}

#[test]
fn fifty_members_that_start_at_once_are_soon_in_one_view() {
    for seed in 0..3 {
        let (frames, elapsed) = run::crowd(seed, 50).unwrap();
        println!("{frames:.1} frames a member, {} ms", elapsed / 1_000_000);
        assert!(elapsed <= 3 * SECOND, "one view after {elapsed} ns");
        assert!(frames <= 20.0, "{frames} frames a member");
    }
}

#[test]
fn eight_members_that_leave_at_once_do_not_wait_for_each_other() {
    for seed in 0..100 {
        let took = run::exodus(seed, 8).unwrap();
        assert!(took <= 5 * MILLISECOND, "seed {seed}: {took} ns");
    }
}

/// The signal of the system, the time in which changes are gathered, and a few round trips: no
/// timeout of a round may be part of it.
#[test]
fn a_crash_under_load_is_over_soon_at_all_survivors() {
    const LOOK: Nanos = 10 * MILLISECOND;
    let seeds = seeds(0..2_000);
    let add = |longest: &mut Nanos, took: &Nanos| *longest = (*longest).max(*took);
    let longest = run_all(seeds, |seed| run::crash_under_load(seed, LOOK), add);
    println!("the longest change of the view: {longest} ns");
    let most = 2 * LOOK + GroupSettings::default().gather + 5 * MILLISECOND;
    assert!(longest <= most, "{longest} ns");
}

/// Losses hold up all that follows on a stream, for seconds at times: those that live are never
/// missing in a view.
#[test]
fn members_on_streams_with_loss_do_not_take_each_other_for_gone() {
    for (loss, seeds, answers) in [(10_000, 0..10, 1), (50_000, 0..20, 100)] {
        let mut total = GroupOutcome::default();
        for seed in seeds {
            let scenario = GroupScenario::on_streams(seed, loss);
            let outcome = run_scenario(scenario, Tamper::None);
            total.add(&outcome.unwrap_or_else(|failure| panic!("{failure}")));
        }
        println!("{loss} of a million: {total:?}");
        // Silences that were long enough to prove something.
        assert!(total.answers >= answers, "{total:?}");
    }
}

/// Runs seeds with a defect until the oracle finds it.
#[track_caller]
fn finds(tamper: Tamper, words: &[&str]) {
    finds_in(0..300, tamper, words);
}

#[track_caller]
fn finds_in(mut seeds: Range<u64>, tamper: Tamper, words: &[&str]) {
    let failure = seeds.find_map(|seed| run_scenario(GroupScenario::draw(seed), tamper).err());
    let failure = failure.unwrap_or_else(|| panic!("{tamper:?} was not found"));
    let text = failure.violation.to_string();
    println!("{tamper:?}: seed {}, {text}", failure.seed);
    assert!(words.iter().any(|words| text.contains(words)), "{tamper:?}: {text}");
}

#[test]
fn defects_of_delivery_are_found() {
    finds(Tamper::Reverse, &["not message"]);
    finds(Tamper::Repeat, &["not message", "never sent", "delivered a message of"]);
    finds(Tamper::Omit(0), &["not message", "delivered", "not all"]);
    finds(Tamper::Corrupt, &["not message"]);
    finds(Tamper::SkipFlush, &["but", "without"]);
}

#[test]
fn defects_of_the_protocol_are_found() {
    let (heartbeat, repair, prepare, install) = (1, 5, 8, 12);
    finds(Tamper::Swallow(heartbeat), &["not one view of all"]);
    finds(Tamper::Swallow(repair), &["not "]);
    finds(Tamper::Swallow(prepare), &["not one view of all"]);
    // Heartbeats of the new view replace most of them: few seeds need one.
    finds_in(1_300..2_000, Tamper::Swallow(install), &["not one view of all"]);
}
