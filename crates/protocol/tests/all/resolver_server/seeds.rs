//! Everybody comes, goes, breaks and heals by chance; when that is over, all know the truth.

use super::cluster::Cluster;
use crate::announcement;
use lanecast_protocol::rng::Rng;
use lanecast_protocol::{MILLISECOND, SECOND};
use lanecast_transport::{TopicPattern, TopicSelection};
use std::collections::{BTreeMap, BTreeSet};

const DAEMONS: usize = 2;
const MEMBERS: usize = 4;

/// Publications and subscriptions of the members.
#[derive(Default)]
struct Truth {
    sessions: Vec<BTreeMap<u64, BTreeSet<String>>>,
    wants: Vec<BTreeSet<String>>,
    /// Whether each member has the pattern of that number.
    patterns: Vec<[bool; 2]>,
}

/// Patterns, one without a prefix.
const PATTERNS: [&str; 2] = ["topic *", "*1"];

impl Truth {
    fn wants(&self, member: usize, topic: &str) -> bool {
        let patterns = PATTERNS.iter().zip(self.patterns[member]).filter(|(_, has)| *has);
        let matches = |pattern: &str| pattern == PATTERNS[0] || topic.ends_with('1');
        self.wants[member].contains(topic) || patterns.into_iter().any(|(it, _)| matches(it))
    }

    fn expected(&self, member: usize) -> BTreeMap<u64, BTreeSet<String>> {
        let sessions = self.sessions.iter().flatten();
        let wanted = sessions.map(|(session, topics)| {
            let wanted = topics.iter().filter(|topic| self.wants(member, topic));
            (*session, wanted.cloned().collect::<BTreeSet<_>>())
        });
        wanted.filter(|(_, topics)| !topics.is_empty()).collect()
    }
}

fn step(cluster: &mut Cluster, truth: &mut Truth, rng: &mut Rng) {
    let member = rng.below(MEMBERS as u64) as usize;
    let daemon = rng.below(DAEMONS as u64) as usize;
    let topic = format!("topic {}", rng.below(6));
    let session = 1 + rng.below(3) + 10 * truth.sessions[member].len() as u64;
    let now = cluster.now;
    match rng.below(14) {
        0 if cluster.daemons[daemon].is_some() => cluster.kill(daemon),
        0 | 1 if cluster.daemons[daemon].is_none() => cluster.start(daemon),
        2 => cluster.members[member].cut[daemon] ^= true,
        3..6 => {
            let own = &mut truth.sessions[member];
            let reused = own.keys().next_back().copied().filter(|_| rng.below(2) == 0);
            let session = reused.unwrap_or((rng.next_u64() << 8) | session);
            own.entry(session).or_default().insert(topic.clone());
            cluster.members[member]
                .resolver
                .publish(announcement(session), &topic)
                .expect("a name");
        }
        6 => {
            if let Some((session, _)) = truth.sessions[member].pop_first() {
                cluster.members[member].resolver.unpublish(session);
            }
        }
        7..9 if truth.wants[member].insert(topic.clone()) => {
            cluster.members[member].resolver.subscribe(&topic).expect("a name");
        }
        9 if truth.wants[member].remove(&topic) => {
            cluster.members[member].resolver.unsubscribe(&topic);
            for topics in cluster.members[member].found.values_mut() {
                topics.retain(|topic| truth.wants(member, topic));
            }
        }
        12 | 13 => {
            let number = rng.below(2) as usize;
            truth.patterns[member][number] ^= true;
            let resolver = &mut cluster.members[member].resolver;
            if truth.patterns[member][number] {
                let pattern = TopicPattern::wildcard(PATTERNS[number]).expect("a pattern");
                let selection = TopicSelection::of_patterns(vec![pattern], 1_000);
                resolver.subscribe_pattern(number as u64, &selection);
            } else {
                resolver.unsubscribe_pattern(number as u64);
                for topics in cluster.members[member].found.values_mut() {
                    topics.retain(|topic| truth.wants(member, topic));
                }
            }
        }
        10 => {
            let known = cluster.members[member].found.keys().next().copied();
            known.into_iter().for_each(|session| cluster.members[member].lose(now, session));
        }
        11 if rng.below(4) == 0 => {
            cluster.replace(member);
            truth.sessions[member].clear();
            truth.wants[member].clear();
            truth.patterns[member] = [false; 2];
        }
        _ => {}
    }
}

fn play(seed: u64) {
    let mut rng = Rng::new(seed);
    let mut cluster = Cluster::new(DAEMONS, MEMBERS, rng.next_u64());
    let mut truth = Truth {
        sessions: vec![BTreeMap::new(); MEMBERS],
        wants: vec![BTreeSet::new(); MEMBERS],
        patterns: vec![[false; 2]; MEMBERS],
    };
    for _ in 0..60 {
        step(&mut cluster, &mut truth, &mut rng);
        let pause = [MILLISECOND, 100 * MILLISECOND, 3 * SECOND][rng.below(3) as usize];
        cluster.run(rng.below(pause));
    }
    // One daemon is enough, as long as everybody reaches it.
    for daemon in 0..DAEMONS {
        if cluster.daemons[daemon].is_none() && (daemon == 0 || rng.below(2) == 0) {
            cluster.start(daemon);
        }
    }
    for member in &mut cluster.members {
        member.cut[0] = false;
        member.cut[1] &= rng.below(2) == 0;
    }
    cluster.run(15 * SECOND);
    let missing = |cluster: &Cluster| {
        (0..MEMBERS).any(|index| {
            let found = &cluster.members[index].found;
            truth.expected(index).iter().any(|(session, topics)| {
                !found.get(session).is_some_and(|known| known.is_superset(topics))
            })
        })
    };
    assert!(!missing(&cluster), "seed {seed}: a publication was not found");
    for member in &mut cluster.members {
        member.cut[1] = false;
    }
    if cluster.daemons[1].is_none() {
        cluster.start(1);
    }
    cluster.run(80 * SECOND);
    for (index, member) in cluster.members.iter_mut().enumerate() {
        member.found.retain(|_, topics| !topics.is_empty());
        assert_eq!(member.found, truth.expected(index), "seed {seed}, member {index}");
    }
}

#[test]
fn in_the_end_everybody_knows_the_truth() {
    let count = if std::env::var_os("LONG_TESTS").is_some() { 10_000 } else { 300 };

    (0..count).for_each(play);
}
