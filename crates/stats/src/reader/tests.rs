use super::*;
use crate::{CounterLayout, CounterOwner, Counters, Loss, LossCause};
use lanecast_wire::stats::STATS_VERSION;

/// A temporary directory, removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Self {
        let name = format!("lanecast-stats-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn only(&self) -> PathBuf {
        let mut found = list_files(&self.0).unwrap();
        assert_eq!(found.len(), 1);
        found.remove(0)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn counters_and_distinct_errors_are_read_from_outside() {
    let directory = Directory::new("errors");
    let plan = CounterLayout::process(&["one", "two"], 0);
    let counters = Counters::create(&directory.0, 0o600, &plan).unwrap();
    counters.add(1, 41);
    counters.add(1, 1);
    counters.set(0, 7);
    counters.error("disk on fire");
    counters.error("disk on fire");
    (0..40).for_each(|number| counters.error(&format!("error {number}")));
    let path = directory.only();
    let report = read_file(&path).unwrap();
    assert!(report.is_alive);
    assert_eq!((report.process, report.role), (Identity::own(), Role::Process));
    assert_eq!(report.counters[1], CounterReport { label: "two".into(), value: 42 });
    assert_eq!((report.value("one"), report.value("three")), (Some(7), None));
    assert_eq!((report.errors[0].text.as_str(), report.errors[0].count), ("disk on fire", 2));
    assert_eq!(report.errors.len(), 32);
    assert_eq!((report.errors[31].text.as_str(), report.errors[31].count), ("other errors", 10));
    counters.loss(&loss(1));
    assert_eq!(read_file(&path).unwrap().losses, [], "there is no room for any");
    std::fs::write(directory.0.join("x.stats"), b"nonsense").unwrap();
    assert!(read_file(&directory.0.join("x.stats")).is_err());
    drop(counters);
    assert!(!path.exists());
}

#[test]
fn other_versions_are_refused_in_words() {
    let directory = Directory::new("versions");
    let counters = Counters::create(&directory.0, 0o600, &CounterLayout::process(&["one"], 0));
    let counters = counters.unwrap();
    let genuine = std::fs::read(directory.only()).unwrap();
    let copy = directory.0.join("other.stats");
    let read_as = |version: u32| {
        let mut bytes = genuine.clone();
        let at = std::mem::offset_of!(StatsHeader, version);
        bytes[at..at + 4].copy_from_slice(&version.to_le_bytes());
        std::fs::write(&copy, bytes).unwrap();
        read_file(&copy)
    };
    for version in [STATS_VERSION - 1, STATS_VERSION + 1] {
        let error = read_as(version).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        let words = format!(
            "the counters are of version {version}, this program reads version {STATS_VERSION}: "
        );
        assert!(error.to_string().starts_with(&words), "{error}");
        assert!(error.to_string().ends_with("use one version"), "{error}");
    }
    assert!(read_as(STATS_VERSION).is_ok());
    drop(counters);
}

#[test]
fn a_session_says_what_it_is() {
    let directory = Directory::new("session");
    let owner = CounterOwner {
        role: Role::Subscriber,
        session: 0xfeed,
        transport: "rm",
        address: "10.0.0.7:4000",
        group: "239.192.71.2:14400",
    };
    let plan = CounterLayout::session(&["messages"], owner);
    let counters = Counters::create(&directory.0, 0o600, &plan).unwrap();
    counters.add_topic("prices");
    counters.add_topic("größen");
    counters.error("there is no room for it");
    let report = read_file(&directory.only()).unwrap();
    assert_eq!((report.role, report.session), (Role::Subscriber, 0xfeed));
    assert_eq!((report.transport.as_str(), report.address.as_str()), ("rm", "10.0.0.7:4000"));
    assert_eq!(report.group, "239.192.71.2:14400");
    assert_eq!(report.topics, ["prices", "größen"]);
    assert!(report.opened_unix_ns > 0 && report.errors.is_empty());
    (0..1000).for_each(|number| counters.add_topic(&format!("topic {number}")));
    let topics = read_file(&directory.only()).unwrap().topics;
    assert!(topics.len() > 100 && topics.len() < 1000, "{}", topics.len());
}

fn loss(first: u64) -> Loss<'static> {
    Loss {
        source: "ru:10.0.0.7:4000:000000000000feed",
        topic: "",
        session: 0xfeed,
        unix_ns: 5,
        after_ns: 6,
        first,
        count: Some(3),
        end: LossOutcome::Repaired,
    }
}

#[test]
fn the_log_keeps_the_latest_losses() {
    let directory = Directory::new("losses");
    let counters = Counters::create(&directory.0, 0o600, &CounterLayout::process(&[], 4)).unwrap();
    (0..9).for_each(|first| counters.loss(&loss(first)));
    let topic = "x".repeat(200);
    let reported = LossOutcome::Reported(LossCause::Gone);
    counters.loss(&Loss { topic: &topic, count: None, end: reported, ..loss(9) });
    let losses = read_file(&directory.only()).unwrap().losses;
    let numbers: Vec<_> = losses.iter().map(|loss| (loss.number, loss.first)).collect();
    assert_eq!(numbers, [(7, 6), (8, 7), (9, 8), (10, 9)]);
    let (first, last) = (&losses[0], &losses[3]);
    assert_eq!((first.source.as_str(), first.topic.as_str()), (loss(0).source, ""));
    assert_eq!((first.unix_ns, first.after_ns, first.count), (5, 6, Some(3)));
    assert_eq!((last.end, last.count, last.topic.len()), (reported, None, LOSS_TOPIC_MAX));
}

#[test]
fn sums_outlast_the_log() {
    let directory = Directory::new("sums");
    let counters = Counters::create(&directory.0, 0o600, &CounterLayout::process(&[], 2)).unwrap();
    for number in 1..=100 {
        counters.loss(&Loss { unix_ns: 1_000 - number, after_ns: number, ..loss(number) });
    }
    let late = Loss { unix_ns: 7, end: LossOutcome::Late, ..loss(0) };
    let given_up = Loss { end: LossOutcome::GivenUp(LossCause::GaveUp), ..late };
    let reported = LossOutcome::Reported(LossCause::Gone);
    let lost = Loss { topic: "prices", unix_ns: 8, count: None, end: reported, ..late };
    for loss in [late, given_up, lost, Loss { count: Some(4), unix_ns: 9, ..lost }] {
        counters.loss(&loss);
    }
    let report = read_file(&directory.only()).unwrap();
    assert_eq!(report.losses.len(), 2);
    let count = |count, first_unix_ns, last_unix_ns, longest_ns| LossCount {
        count,
        first_unix_ns,
        last_unix_ns,
        longest_ns,
    };
    let (session, source) = (0xfeed, loss(0).source.to_owned());
    let datagrams = LossTotals {
        session,
        source: source.clone(),
        late: count(3, 7, 7, 6),
        repaired: count(300, 900, 999, 100),
        given_up: count(3, 7, 7, 6),
        ..LossTotals::default()
    };
    let (topic, reported) = ("prices".to_owned(), count(4, 8, 9, 6));
    let messages = LossTotals { session, source, topic, reported, ..LossTotals::default() };
    assert_eq!(report.loss_totals, [datagrams, messages]);
}

#[test]
fn a_new_session_takes_the_sums_whose_last_loss_is_the_oldest() {
    let directory = Directory::new("bounded");
    let counters = Counters::create(&directory.0, 0o600, &CounterLayout::process(&[], 1)).unwrap();
    let of = |session, unix_ns| Loss { session, unix_ns, ..loss(1) };
    (1..=64).for_each(|session| counters.loss(&of(session, session)));
    counters.loss(&of(1, 100));
    counters.loss(&of(99, 101));
    let totals = read_file(&directory.only()).unwrap().loss_totals;
    assert_eq!(totals.len(), 64);
    let sessions: Vec<_> = totals.iter().map(|total| total.session).collect();
    assert_eq!((sessions[0], sessions[1], sessions[63]), (1, 3, 99));
    assert_eq!((totals[0].repaired.count, totals[63].repaired.count), (6, 3));
}

#[test]
fn counts_add_up() {
    let mut sum = LossCount::default();
    assert!(!sum.is_some());
    let one = LossCount { count: 2, first_unix_ns: 5, last_unix_ns: 9, longest_ns: 3 };
    for other in [LossCount::default(), one, LossCount { first_unix_ns: 4, longest_ns: 8, ..one }] {
        sum.add(&other);
    }
    assert_eq!(sum, LossCount { count: 4, first_unix_ns: 4, last_unix_ns: 9, longest_ns: 8 });
}

#[test]
fn damage_is_no_loss() {
    let directory = Directory::new("damage");
    let counters = Counters::create(&directory.0, 0o600, &CounterLayout::process(&[], 2)).unwrap();
    counters.loss(&loss(1));
    counters.loss(&loss(2));
    let path = directory.only();
    let file = File::options().write(true).open(&path).unwrap();
    let shape = Shape { counters: 0, errors: 32, losses: 2, totals: 64 };
    let what = shape.losses_offset() + offset_of!(LossEntry, what);
    file.write_all_at(&77_u32.to_le_bytes(), what as u64).unwrap();
    file.write_all_at(&u32::MAX.to_le_bytes(), TOPICS_OFFSET as u64).unwrap();
    let report = read_file(&path).unwrap();
    assert_eq!(report.losses.iter().map(|loss| loss.first).collect::<Vec<_>>(), [2]);
    assert_eq!(report.topics, [""; 0]);
}
