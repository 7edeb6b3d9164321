//! Publishers whose list of stores is another than that of the run before: the stores that hold the
//! stream decide.

use crate::cluster::Cluster;
use crate::parts::{NOW, Outlet, SESSION};
use lanecast_persistence::{GroupRule, Source, SourceSettings, StoreGroups};
use lanecast_wire::store::{Ballot, Grouping, Members, Run, StoreFrame, StoreState};

const FIVE: [&str; 5] = ["a", "b", "c", "d", "e"];

/// A stream with ten stable messages that `deaf` has not got.
#[track_caller]
fn stream(names: &[&str], list: &[&str], deaf: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(names);
    cluster.publish(list);
    cluster.run(5);
    deaf.iter().for_each(|name| cluster.stop(name));
    cluster.send(10, deaf);
    cluster.run(5);
    assert_eq!(cluster.stable.len(), 10);
    cluster
}

#[test]
fn two_of_three_stores_that_are_left_lose_nothing() {
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &["a"]);
    // The one that lacks the messages is no quorum of the three.
    cluster.start("a");
    cluster.stop("b");
    cluster.publish(&["a", "b"]);
    cluster.assert_waits([&["b"], &[], &["c"], &[]]);
    cluster.start("b");
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b"]);
    // From here on the third one is not needed, nor asked for.
    cluster.stop("c");
    cluster.publish(&["a", "b"]);
    cluster.assert_lives();
}

#[test]
fn three_of_five_stores_that_are_left_lose_nothing() {
    let mut cluster = stream(&FIVE, &FIVE, &["a", "b"]);
    for name in ["a", "b"] {
        cluster.start(name);
    }
    cluster.stop("c");
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_waits([&["c"], &[], &["d", "e"], &[]]);
    cluster.start("c");
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b", "c"]);
    for name in ["c", "d", "e"] {
        cluster.stop(name);
    }
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
}

#[test]
fn one_of_three_stores_that_is_left_waits_for_the_others() {
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &["a"]);
    cluster.start("a");
    cluster.publish(&["a"]);
    cluster.assert_waits([&[], &[], &["b", "c"], &[]]);
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
}

#[test]
fn a_renamed_store_is_a_newcomer_that_copies_what_it_lacks() {
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &["b"]);
    cluster.start("b");
    cluster.stop("c");
    cluster.publish(&["a", "b", "d"]);
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b", "d"]);
    // It counts, and has everything.
    cluster.stop("a");
    cluster.publish(&["a", "b", "d"]);
    cluster.assert_lives();
}

#[test]
fn one_store_becomes_three() {
    let mut cluster = stream(&FIVE, &["a"], &[]);
    cluster.stop("b");
    cluster.stop("c");
    cluster.publish(&["a", "b", "c"]);
    // A message has to be on two of three disks.
    cluster.assert_waits([&["b", "c"], &[], &[], &[]]);
    cluster.start("b");
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b"]);
    cluster.start("c");
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b", "c"]);
    cluster.stop("a");
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
}

/// Too many at once are waited for, one after the other are not.
#[test]
fn stores_are_replaced_as_long_as_a_quorum_stays() {
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &["a"]);
    cluster.start("a");
    cluster.publish(&["a", "d", "e"]);
    cluster.assert_waits([&[], &[], &["b", "c"], &["d", "e"]]);
    cluster.publish(&["a", "b", "d"]);
    cluster.assert_lives();
    cluster.publish(&["a", "d", "e"]);
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "d", "e"]);
    // All at once, while the old ones are named as well.
    cluster.publish(&["a", "d", "e", "b", "c"]);
    cluster.assert_lives();
    for name in ["d", "e"] {
        cluster.stop(name);
    }
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b", "c"]);
}

#[test]
fn newcomers_and_wiped_stores_never_outvote_what_is_left() {
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &[]);
    cluster.wipe("b");
    cluster.wipe("c");
    cluster.publish(&FIVE);
    cluster.assert_waits([&[], &["b", "c"], &[], &["d", "e"]]);
    // Nor with a store that is away.
    let mut cluster = stream(&FIVE, &["a", "b", "c"], &["c"]);
    cluster.start("c");
    cluster.wipe("b");
    cluster.stop("a");
    cluster.publish(&FIVE);
    cluster.assert_waits([&["a"], &["b"], &[], &["d", "e"]]);
    cluster.start("a");
    cluster.assert_lives();
    assert_eq!(cluster.members(), FIVE);
}

/// A message may have been stable on the only store of a group.
#[test]
fn groups_decide_as_they_were_recorded() {
    let mut cluster = Cluster::new(&FIVE);
    cluster.publish_with(&[&["a", "b", "c"], &["d"]], GroupRule::Any);
    cluster.run(5);
    for name in ["a", "b", "c"] {
        cluster.stop(name);
    }
    cluster.send(10, &[]);
    cluster.run(5);
    assert_eq!(cluster.stable.len(), 10);
    for name in ["a", "b", "c"] {
        cluster.start(name);
    }
    for groups in [&[&["a", "b", "c"][..]][..], &[&["a"], &["b", "c"]], &[&["a", "b", "c", "e"]]] {
        cluster.publish_with(groups, GroupRule::Any);
        cluster.run(60);
        assert!(!cluster.is_registered());
        assert_eq!(cluster.waiting().map(|it| it[2].clone()), Some(vec!["d".to_owned()]));
    }
    // The same stores in one group.
    cluster.publish(&["a", "b", "c", "d"]);
    cluster.assert_lives();
    cluster.stop("d");
    cluster.publish(&["a", "b", "c"]);
    cluster.assert_lives();
    assert_eq!(cluster.members(), ["a", "b", "c"]);
}

/// The publisher dies between any two frames of a change, and comes back with either list.
#[test]
fn a_change_of_the_list_may_end_at_any_step() {
    let lists: [(&[&str], &[&str]); 4] = [
        (&["a", "b", "c"], &["a", "b"]),
        (&["a"], &["a", "b", "c"]),
        (&["a", "b", "c"], &["a", "b", "d"]),
        (&["a", "b"], &["a", "b", "c", "d"]),
    ];
    for (old, new) in lists {
        for (steps, next) in (0..400).flat_map(|steps| [(steps, old), (steps, new)]) {
            let mut cluster = stream(&FIVE, old, &[]);
            cluster.publish(new);
            let mut has_sent = false;
            for _ in 0..steps {
                if cluster.is_registered() && !has_sent {
                    has_sent = true;
                    cluster.send(5, &["a"]);
                }
                if !cluster.deliver() {
                    cluster.tick();
                }
            }
            cluster.publish(next);
            // A list that lacks stores of a change that has begun may have to wait.
            cluster.run(30);
            if cluster.is_registered() {
                cluster.assert_lives();
            }
            let mut all = [old, new].concat();
            all.sort_unstable();
            all.dedup();
            cluster.publish(&all);
            cluster.assert_lives();
        }
    }
}

#[test]
fn a_donor_may_die_at_every_step_of_a_beginning() {
    let mut has_waited = false;
    for steps in 0..150 {
        for is_frozen in [false, true] {
            // The first store alone has the last messages: they were never told to be stable.
            let mut cluster = stream(&FIVE, &["a", "b", "c"], &[]);
            cluster.send(10, &["b", "c"]);
            cluster.publish(&["a", "b", "c"]);
            for _ in 0..steps {
                if !cluster.deliver() {
                    cluster.tick();
                }
            }
            if is_frozen {
                cluster.freeze("a")
            } else {
                cluster.stop("a")
            }
            has_waited |= !cluster.is_registered();
            cluster.assert_lives();
            cluster.start("a");
            cluster.assert_lives();
        }
    }
    assert!(has_waited, "all steps came after the registration");
}

/// Members of an earlier build tell no groups: each of them may have decided alone.
#[test]
fn members_without_groups_are_all_needed_by_another_list() {
    let mut cluster = Cluster::with_members_of_an_earlier_build(&["a", "b", "c"]);
    cluster.publish(&["a", "b"]);
    cluster.assert_waits([&[], &[], &["c"], &[]]);
    cluster.publish(&["a", "b", "c"]);
    cluster.stop("b");
    cluster.assert_lives();
    cluster.start("b");
    cluster.run(20);
    cluster.publish(&["a", "b"]);
    cluster.assert_lives();
}

#[test]
fn stores_forget_the_sessions_of_former_runs() {
    let mut cluster = Cluster::new(&["a", "b", "c"]);
    for _ in 0..50 {
        cluster.publish(&["a", "b", "c"]);
        cluster.run(5);
        assert!(cluster.is_registered());
    }
    for is_started_again in [false, true] {
        if is_started_again {
            cluster.stop("a");
            cluster.start("a");
        }
        assert_eq!(cluster.sessions("a"), 1, "started again: {is_started_again}");
    }
}

/// A run that was never registered may have begun to change the members at a few stores.
#[test]
fn the_members_of_the_latest_run_count_whatever_their_version() {
    let stores = StoreGroups::new(vec![vec!["a", "b", "c"]], GroupRule::Any).expect("groups");
    let mut source = Source::new(SourceSettings::new(stores), SESSION, 0, NOW);
    let mut out = Outlet::default();
    source.tick(NOW, &mut out);
    let answer = |epoch, version, names: [&str; 3]| {
        let ballot = Ballot { epoch, session: 9 };
        let stores = names.map(|name| (name.to_owned(), 5)).to_vec();
        let grouping = Grouping { rule: GroupRule::Any, groups: vec![Some(0); 3] };
        let members = Members { version, ..Members::first(stores, vec![grouping]) };
        let (promised, log, runs) = (ballot, ballot, vec![Run { ballot, start: 0 }]);
        StoreState { incarnation: 5, promised, log, members, runs, ..StoreState::default() }
    };
    let abandoned = StoreFrame::State(answer(3, 7, ["a", "d", "e"]));
    source.on_frame(0, &abandoned, NOW, &mut out);
    assert_eq!(source.members().version, 7);
    let latest = StoreFrame::State(answer(4, 2, ["a", "b", "c"]));
    source.on_frame(1, &latest, NOW, &mut out);
    assert_eq!(source.members().version, 2);
}
