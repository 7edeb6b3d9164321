//! Properties that hold for any seed.

use super::network::{Network, address};
use super::*;
use crate::SECOND;
use std::collections::BTreeSet;

/// Range of `few` seeds, or many more in long tests.
fn seeds(few: u64) -> std::ops::Range<u64> {
    0..if std::env::var_os("LONG_TESTS").is_some() { few * 200 } else { few }
}

/// Patterns that a resolver may have.
const PATTERNS: [&str; 3] = ["topic *", "*1", "topic 2*"];

/// Each resolver publishes a session of its own topics, and wants some of everybody's; some want
/// those of a pattern as well.
fn populated(count: usize, topics: usize, seed: u64) -> Network {
    let mut network = Network::new(count, seed);
    let mut rng = Rng::new(seed ^ 0xbeef);
    for index in 0..count {
        for topic in 0..topics {
            let name = format!("topic {}", topic + rng.below(3) as usize);
            let announcement = announcement(index as u64 + 1);
            network.resolvers[index].publish(announcement, &name).expect("a name");
            let name = format!("topic {}", rng.below(topics as u64));
            network.resolvers[index].subscribe(&name).expect("a name");
        }
        if let Some(pattern) = PATTERNS.get(rng.below(6) as usize) {
            network.resolvers[index].subscribe_pattern(1, &selection(&[pattern], 1_000));
        }
    }
    network
}

/// Whether everybody has found all that is published of what it wants.
fn is_resolved(network: &Network) -> bool {
    let published: BTreeSet<_> = network
        .resolvers
        .iter()
        .flat_map(|resolver| resolver.state.publications.beginning_with("").cloned())
        .collect();
    network.resolvers.iter().zip(&network.found).all(|(resolver, found)| {
        let matching = published.iter().filter(|name| resolver.state.patterns.take(name));
        resolver.state.subscriptions.names().chain(matching.cloned()).all(|name| {
            let publishers =
                network.resolvers.iter().flat_map(|other| other.state.publications.of(&name));
            publishers
                .map(|announcement| announcement.session)
                .all(|session| found.get(&session).is_some_and(|topics| topics.contains(&*name)))
        })
    })
}

/// A network that has been in parts, and heals now.
fn healed(seed: u64, lost: u64) -> Network {
    let mut rng = Rng::new(seed);
    let mut network = populated(2 + rng.below(6) as usize, 5, seed);
    network.lost = lost;
    network.parts.iter_mut().for_each(|part| *part = rng.below(3) as u32);
    network.run(rng.below(70 * SECOND));
    network.parts.fill(0);
    network
}

#[test]
fn any_partition_heals_within_the_longest_interval() {
    for seed in seeds(100) {
        let mut network = healed(seed, 0);
        assert!(network.run_until(10 * SECOND + MILLISECOND, is_resolved), "seed {seed}");
    }
}

#[test]
fn any_network_resolves_under_loss() {
    for seed in seeds(100) {
        let mut network = healed(seed, 1 + seed * 7 % 300);
        assert!(network.run_until(120 * SECOND, is_resolved), "seed {seed}");
    }
}

#[test]
fn sources_that_the_transports_gave_up_are_found_again() {
    for seed in seeds(50) {
        let mut rng = Rng::new(seed);
        let mut network = populated(2 + rng.below(4) as usize, 5, seed);
        assert!(network.run_until(10 * SECOND, is_resolved), "seed {seed}");
        network.run(rng.below(20 * SECOND));
        let count = network.resolvers.len();
        for (index, session) in (0..count).flat_map(|i| (0..count).map(move |s| (i, s as u64 + 1)))
        {
            network.lose(index, session);
        }
        network.lost = 100;
        assert!(network.run_until(40 * SECOND, is_resolved), "seed {seed}");
    }
}

#[test]
fn sources_that_left_are_not_found() {
    for seed in seeds(50) {
        let mut network = populated(5, 5, seed);
        assert!(network.run_until(10 * SECOND, is_resolved), "seed {seed}");
        network.lost = 100;
        network.resolvers[0].unpublish(1);
        network.run(SECOND);
        let left = network.found.iter().filter(|found| found.contains_key(&1)).count();
        assert!(left <= 1, "seed {seed}: {left}");
        assert!(is_resolved(&network), "seed {seed}");
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

#[test]
fn hostile_frames_neither_panic_nor_grow() {
    let mut rng = Rng::new(11);
    let settings = ResolverSettings { resolver: 1, topics_max: 100, ..ResolverSettings::default() };
    let mut it = Resolver::new(settings, 0);
    it.subscribe("a").expect("a name");
    it.publish(announcement(SESSION), "b").expect("a name");
    let mut found = 0;
    for round in 0..100_000 {
        let mut buffer = [0; 512];
        let kind = if round % 2 == 0 { Kind::Advert } else { Kind::Query };
        let mut writer = FrameWriter::new(&mut buffer, kind, 0, rng.next_u64(), 0);
        match kind {
            Kind::Advert => {
                let flags = (rng.below(40) == 0).into();
                let mut entry = announcement(rng.below(300)).entry(flags);
                entry.transport = rng.below(5) as u8;
                let mut open = writer.add_entry(entry, 1).expect("room");
                let name = ["a", "b", "c"][rng.below(3) as usize];
                assert!(writer.add_entry_name(&mut open, name));
            }
            _ => assert!(writer.add_name("b") && writer.add_name("a")),
        }
        let length = writer.finish();
        for _ in 0..rng.below(4) {
            let at = 24 + rng.below(length as u64 - 24) as usize;
            buffer[at] = rng.next_u64() as u8;
        }
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        let now = round * MILLISECOND;
        it.on_frame(now, address(2), &frame);
        found += events(&mut it).len();
        let mut buffer = [0; DATAGRAM_MIN];
        while it.next_transmit(now, &mut buffer).is_some() {}
    }
    let ResolverCounters { overflowed, malformed, frames: heard, adverts, .. } = *it.counters();
    assert!(found > 0 && overflowed > 0 && malformed > 0 && heard == 100_000);
    assert!((1_000..=20_000).contains(&adverts), "at most one per 5 ms: {adverts}");
    let kept = it.state.subscriptions.publishers("a").map(|(_, publishers)| publishers.len());
    assert!(kept.is_some_and(|kept| kept <= 100), "{kept:?}");
}
