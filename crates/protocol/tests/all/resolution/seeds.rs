//! Properties that hold for any seed.

use super::network::Network;
use super::*;
use crate::announcement;
use lanecast_protocol::resolution::ResolverCounters;
use lanecast_protocol::rng::Rng;
use lanecast_protocol::{MILLISECOND, SECOND};
use std::collections::{BTreeMap, BTreeSet};

/// Range of `few` seeds, or many more in long tests.
fn seeds(few: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("LONG_TESTS").is_some() { few * 200 } else { few }
}

/// Patterns that a resolver may have.
const PATTERNS: [&str; 3] = ["topic *", "*1", "topic 2*"];

/// A network, and what its resolvers publish and want.
struct Population {
    network: Network,
    /// Sessions of each topic.
    published: BTreeMap<String, BTreeSet<u64>>,
    /// Topics that each resolver subscribes to.
    wanted: Vec<BTreeSet<String>>,
    /// Topics of each resolver's pattern.
    selected: Vec<Option<TopicSelection>>,
}

impl Population {
    /// Each resolver publishes a session of its own topics, and wants some of everybody's; some
    /// want those of a pattern as well.
    fn new(count: usize, topics: usize, seed: u64) -> Self {
        let mut it = Self {
            network: Network::new(count, seed),
            published: BTreeMap::new(),
            wanted: vec![BTreeSet::new(); count],
            selected: vec![None; count],
        };
        let mut rng = Rng::new(seed ^ 0xbeef);
        for index in 0..count {
            let (resolver, session) = (&mut it.network.resolvers[index], index as u64 + 1);
            for topic in 0..topics {
                let name = format!("topic {}", topic + rng.below(3) as usize);
                resolver.publish(announcement(session), &name).expect("a name");
                it.published.entry(name).or_default().insert(session);
                let name = format!("topic {}", rng.below(topics as u64));
                resolver.subscribe(&name).expect("a name");
                it.wanted[index].insert(name);
            }
            if let Some(pattern) = PATTERNS.get(rng.below(6) as usize) {
                let selected = selection(&[pattern], 1_000);
                resolver.subscribe_pattern(1, &selected);
                it.selected[index] = Some(selected);
            }
        }
        it
    }

    /// A network that has been in parts, and heals now.
    fn healed(seed: u64, lost: u64) -> Self {
        let mut rng = Rng::new(seed);
        let mut it = Self::new(2 + rng.below(6) as usize, 5, seed);
        it.network.lost = lost;
        it.network.parts.iter_mut().for_each(|part| *part = rng.below(3) as u32);
        it.network.run(rng.below(70 * SECOND));
        it.network.parts.fill(0);
        it
    }

    /// Lets time pass until everybody has found all that is published of what it wants; gives
    /// whether it has.
    fn resolves_within(&mut self, time: Nanos) -> bool {
        let Self { network, published, wanted, selected } = self;
        network.run_until(time, |network| {
            network.found.iter().zip(wanted.iter().zip(&*selected)).all(|(found, wants)| {
                let (wanted, selected) = wants;
                let matches = |name: &str| selected.as_ref().is_some_and(|it| it.takes(name));
                let mut asked =
                    published.iter().filter(|(name, _)| wanted.contains(*name) || matches(name));
                asked.all(|(name, sessions)| {
                    sessions.iter().all(|session| {
                        found.get(session).is_some_and(|topics| topics.contains(name))
                    })
                })
            })
        })
    }
}

#[test]
fn any_partition_heals_within_the_longest_interval() {
    for seed in seeds(100) {
        let mut it = Population::healed(seed, 0);
        assert!(it.resolves_within(10 * SECOND + MILLISECOND), "seed {seed}");
    }
}

#[test]
fn any_network_resolves_under_loss() {
    for seed in seeds(100) {
        let mut it = Population::healed(seed, 1 + seed * 7 % 300);
        assert!(it.resolves_within(120 * SECOND), "seed {seed}");
    }
}

#[test]
fn sources_that_the_transports_gave_up_are_found_again() {
    for seed in seeds(50) {
        let mut rng = Rng::new(seed);
        let mut it = Population::new(2 + rng.below(4) as usize, 5, seed);
        assert!(it.resolves_within(10 * SECOND), "seed {seed}");
        it.network.run(rng.below(20 * SECOND));
        let count = it.network.resolvers.len();
        for (index, session) in (0..count).flat_map(|i| (0..count).map(move |s| (i, s as u64 + 1)))
        {
            it.network.lose(index, session);
        }
        it.network.lost = 100;
        assert!(it.resolves_within(40 * SECOND), "seed {seed}");
    }
}

#[test]
fn sources_that_left_are_not_found() {
    for seed in seeds(50) {
        let mut it = Population::new(5, 5, seed);
        assert!(it.resolves_within(10 * SECOND), "seed {seed}");
        it.network.lost = 100;
        it.network.resolvers[0].unpublish(1);
        for sessions in it.published.values_mut() {
            sessions.remove(&1);
        }
        it.network.run(SECOND);
        let left = it.network.found.iter().filter(|found| found.contains_key(&1)).count();
        assert!(left <= 1, "seed {seed}: {left}");
        assert!(it.resolves_within(0), "seed {seed}");
    }
}

#[test]
fn ten_thousand_topics_resolve_within_a_second() {
    let mut network = Network::new(3, 1);
    for topic in 0..10_000 {
        let name = format!("market/europe/instrument/{topic:06}");
        let announcement = announcement(1 + topic % 10);
        network.resolvers[0].publish(announcement, &name).expect("a name");
        network.resolvers[1].subscribe(&name).expect("a name");
    }
    let has_all = |index: usize| {
        move |it: &Network| it.found[index].values().map(|t| t.len()).sum::<usize>() == 10_000
    };
    let start = network.now;
    assert!(network.run_until(SECOND, has_all(1)));
    println!("all at once: {} ms", (network.now - start) / MILLISECOND);

    network.run(100 * SECOND);
    for topic in 0..10_000 {
        let name = format!("market/europe/instrument/{topic:06}");
        network.resolvers[2].subscribe(&name).expect("a name");
    }
    let start = network.now;
    assert!(network.run_until(SECOND, has_all(2)));
    println!("a late subscriber: {} ms", (network.now - start) / MILLISECOND);
}

#[test]
fn the_budget_holds_whatever_is_asked() {
    let mut it = resolver(1, SECOND);
    for topic in 0..50_000 {
        it.publish(announcement(SESSION), &format!("topic {topic}")).expect("a name");
        it.subscribe(&format!("wanted {topic}")).expect("a name");
    }
    let (mut now, mut bytes) = (SECOND, 0);
    let mut buffer = [0; 1_472];
    while now < 3 * SECOND {
        while let Some(length) = it.next_transmit(now, &mut buffer) {
            bytes += length;
        }
        let deadline = it.next_deadline().expect("there is more");
        assert!(deadline > now, "no resolver spins");
        now = deadline;
    }
    assert!((1_000_000..=8_100_000).contains(&bytes), "{bytes}");
    let ResolverCounters { adverts, queries, .. } = *it.counters();
    assert!(adverts > 100 && queries > 100, "neither starves: {adverts}, {queries}");
}
