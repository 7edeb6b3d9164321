//! Local joins: publishers and subscribers of one process join at once, with or without files, and
//! leave none behind.

use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_os::DirectoryWatch;
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy, Subscriber, Visibility, inspect};
use lanecast_transport::{
    CloseReason, Event, LossReason, Publish, SessionId, Subscribe, Transport,
};
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

const LONG: Duration = Duration::from_secs(30);

fn settings(visibility: Visibility, directory: &Path) -> DomainSettings {
    DomainSettings {
        visibility,
        directory: directory.to_owned(),
        window_bytes: 64 << 10,
        ..DomainSettings::default()
    }
}

fn open(visibility: Visibility, directory: &Path) -> Domain {
    Domain::open(settings(visibility, directory)).expect("a domain")
}

/// Events of one poll, in a few words each.
fn poll(subscriber: &mut Subscriber) -> Vec<String> {
    let mut told = Vec::new();
    subscriber.poll(64, |event| {
        told.push(match event {
            Event::Joined(stream) => format!("joined {}", stream.source),
            Event::Message(message) => String::from_utf8_lossy(message.bytes()).into_owned(),
            Event::Lost(gap) => {
                format!("lost {}+{}: {}", gap.first, gap.count, gap.why.describe())
            }
            Event::Left(stream, why) => format!("left {}: {why}", stream.source),
            other => format!("{other:?}"),
        });
    });
    told
}

/// Conductors of other processes look at a session again: its first topic may not have been theirs.
#[test]
fn a_later_topic_is_told_by_the_name_of_its_session() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Host, directory.path());
    let mut publisher = domain.publisher("first").expect("a publisher");
    let watch = DirectoryWatch::new(directory.path()).expect("a watch");
    publisher.add_topic("second").expect("a topic");
    let mut names = Vec::new();
    assert!(!watch.wait(Duration::ZERO, |name| names.push(name.to_owned())));
    assert_eq!(names, [format!("{}.ring", publisher.session()).as_str()]);
}

/// The join needs neither the conductor nor a second poll, in either order of opening.
#[test]
fn both_are_joined_when_the_second_one_is_made() {
    let directory = tempfile::tempdir().expect("a directory");
    for visibility in [Visibility::Host, Visibility::Process] {
        let path = directory.path().join(format!("{visibility:?}"));
        // Two handles on one domain: as two parts of a program would have them.
        let (ours, theirs) = (open(visibility, &path), open(visibility, &path));
        let mut early = ours.subscriber(&["t"]).expect("a subscriber");
        let mut publisher = theirs.publisher("t").expect("a publisher");
        let mut late = ours.subscriber(&["t"]).expect("a subscriber");
        assert_eq!(publisher.subscribers(), 2, "{visibility:?}");
        let joined = format!("joined thread:{}", publisher.session());
        publisher.send(b"one").expect("room");
        for subscriber in [&mut early, &mut late] {
            assert_eq!(poll(subscriber), [joined.as_str(), "one"], "{visibility:?}");
        }
        drop(publisher.close(Duration::ZERO));
        let left = joined.replace("joined", "left") + ": closed";
        for subscriber in [&mut early, &mut late] {
            assert_eq!(poll(subscriber), [left.as_str()], "{visibility:?}");
            assert_eq!(subscriber.streams(), 0, "{visibility:?}");
        }
    }
}

#[test]
fn a_topic_added_later_is_met_at_once() {
    let domain = open(Visibility::Process, Path::new("later"));
    let mut publisher = domain.publisher("first").expect("a publisher");
    let mut subscriber = domain.subscriber(&["second"]).expect("a subscriber");
    assert!(poll(&mut subscriber).is_empty());
    let second = publisher.add_topic("second").expect("a topic");
    publisher.send(b"unwanted").expect("room");
    publisher.send_on(second, b"wanted").expect("room");
    let joined = format!("joined thread:{}", publisher.session());
    assert_eq!(poll(&mut subscriber), [joined.as_str(), "wanted"]);
}

#[test]
fn other_domains_and_other_visibilities_are_not_joined() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("domain");
    let publisher = open(Visibility::Process, &path).publisher("t").expect("a publisher");
    let other = directory.path().join("other");
    for domain in [open(Visibility::Process, &other), open(Visibility::Host, &path)] {
        let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
        assert!(poll(&mut subscriber).is_empty());
    }
    assert_eq!(publisher.subscribers(), 0);
}

/// Domains are compared by canonical path.
#[test]
fn a_directory_by_another_name_is_the_same_domain() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("domain");
    let publisher = open(Visibility::Host, &path).publisher("t").expect("a publisher");
    let again = open(Visibility::Host, &directory.path().join("domain/../domain/."));
    let mut subscriber = again.subscriber(&["t"]).expect("a subscriber");
    assert_eq!(poll(&mut subscriber), [format!("joined thread:{}", publisher.session())]);
}

/// Other processes see a subscriber regardless of the kind of join.
#[test]
fn a_locally_joined_subscriber_is_visible_to_inspection() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Host, directory.path());
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    publisher.send(b"one").expect("room");
    assert_eq!(poll(&mut subscriber).len(), 2);
    assert!(publisher.drain(LONG).is_complete());
    let report = || inspect(directory.path()).expect("a look").remove(0).expect("a session");
    let [seen] = &report().subscribers[..] else { panic!("one subscriber") };
    assert!(seen.is_alive && !seen.is_evicted);
    assert_eq!((seen.process.pid, seen.messages, seen.lag_bytes), (std::process::id(), 1, 0));
    drop(subscriber);
    assert!(report().subscribers.is_empty());
}

/// No directory is created, read or needed.
#[test]
fn within_a_process_there_are_no_files() {
    let domain = open(Visibility::Process, Path::new("/proc/none/such"));
    assert_eq!(domain.name(), "thread");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    publisher.send(b"one").expect("room");
    assert_eq!(publisher.source(), format!("thread:{}", publisher.session()));
    assert_eq!(poll(&mut subscriber).last().map(String::as_str), Some("one"));
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Process, &directory.path().join("domain"));
    let ends = (domain.publisher("t"), domain.subscriber(&["t"]));
    assert!(ends.0.is_ok() && ends.1.is_ok());
    assert_eq!(directory.path().read_dir().expect("a directory").count(), 0);
}

/// The memory lives as long as the subscriber reads it.
#[test]
fn messages_outlive_the_publisher() {
    let domain = open(Visibility::Process, Path::new("outlived"));
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    let mut publisher = domain.publisher("t").expect("a publisher");
    publisher.send(b"last words").expect("room");
    drop((publisher, domain));
    let told = poll(&mut subscriber);
    assert!(told[0].starts_with("joined") && told[2].ends_with(": closed"), "{told:?}");
    assert_eq!((told.len(), told[1].as_str()), (3, "last words"));
}

/// Even without a conductor: a subscriber without a slot joins once one is released.
#[test]
fn a_released_slot_is_leased_by_a_waiting_subscriber() {
    let mut settings = settings(Visibility::Process, Path::new("crowded"));
    settings.subscribers_max = 1;
    let domain = Domain::open(settings).expect("a domain");
    let publisher = domain.publisher("t").expect("a publisher");
    let mut first = domain.subscriber(&["t"]).expect("a subscriber");
    let mut second = domain.subscriber(&["t"]).expect("a subscriber");
    assert_eq!((poll(&mut first).len(), poll(&mut second).len()), (1, 0));
    drop(first);
    assert_eq!(poll(&mut second).len(), 1);
    assert_eq!(publisher.subscribers(), 1);
}

/// The next owner of a slot takes the words of the last one.
#[test]
fn subscribers_that_have_read_all_are_counted_though_their_slot_is_taken_again() {
    let mut settings = settings(Visibility::Process, Path::new("taken again"));
    settings.subscribers_max = 1;
    let domain = Domain::open(settings).expect("a domain");
    for late in [0, 1] {
        let mut publisher = domain.publisher("t").expect("a publisher");
        let mut first = domain.subscriber(&["t"]).expect("a subscriber");
        publisher.send(b"read").expect("room");
        assert_eq!(poll(&mut first).len(), 2);
        drop(first);
        let mut second = domain.subscriber(&["t"]).expect("a subscriber");
        for _ in 0..late {
            publisher.send(b"after the first one").expect("room");
        }
        poll(&mut second);
        let report = publisher.close(LONG);
        assert_eq!((report.complete(), report.is_complete()), (2 - late, true), "{report}");
    }
}

#[test]
fn an_evicted_subscriber_is_told_and_can_rejoin() {
    let mut settings = settings(Visibility::Process, Path::new("evicted"));
    settings.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(5));
    let domain = Domain::open(settings).expect("a domain");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let mut subscriber = domain.subscriber(&["t"]).expect("a subscriber");
    let joined = poll(&mut subscriber);
    let (start, mut published) = (Instant::now(), 0);
    while publisher.subscribers() > 0 {
        assert!(start.elapsed() < LONG, "it is evicted");
        published += u64::from(publisher.try_send(&[0; 8000]).is_ok());
    }
    let told = poll(&mut subscriber);
    let lost = format!("lost 0+{published}: {}", LossReason::Evicted.describe());
    let left = format!("left {}: {}", publisher.source(), CloseReason::Evicted);
    assert_eq!(told[told.len() - 2..], [lost, left]);
    assert!(poll(&mut subscriber).is_empty(), "it does not come back by itself");
    subscriber.rejoin();
    assert_eq!(poll(&mut subscriber), joined);
    subscriber.rejoin();
    publisher.send(b"again").expect("room");
    assert_eq!(poll(&mut subscriber), ["again"], "and not twice");
}

/// A handler that panics has got its event; the next poll reports all further ones.
#[test]
fn a_panic_at_the_end_of_one_topic_does_not_lose_the_others_events() {
    let mut settings = settings(Visibility::Process, Path::new("panics at the end"));
    settings.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(5));
    let domain = Domain::open(settings).expect("a domain");
    let mut publisher = domain.publisher("t").expect("a publisher");
    let other = publisher.add_topic("u").expect("a topic");
    let quiet = publisher.add_topic("v").expect("a topic");
    publisher.send_on(quiet, b"before").expect("room");
    let mut subscriber = domain.subscriber(&["t", "u", "v"]).expect("a subscriber");
    assert_eq!(poll(&mut subscriber).len(), 3);
    publisher.send_on(other, b"one").expect("room");
    publisher.send_on(other, b"two").expect("room");
    let start = Instant::now();
    while publisher.subscribers() > 0 {
        assert!(start.elapsed() < LONG, "it is evicted");
        let _ = publisher.try_send(&[0; 8000]);
    }
    let mut told = Vec::new();
    while subscriber.streams() > 0 {
        assert!(start.elapsed() < LONG, "{told:?}");
        let end = || {
            subscriber.poll(64, |event| {
                told.push(match event {
                    Event::Lost(gap) if gap.stream.topic == "u" => {
                        format!("lost u {}+{}", gap.first, gap.count)
                    }
                    Event::Lost(gap) => format!("lost {}", gap.stream.topic),
                    Event::Left(stream, _) => format!("left {}", stream.topic),
                    _ => return,
                });
                // `resume_unwind` skips the panic hook and its backtrace.
                std::panic::resume_unwind(Box::new(()));
            });
        };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(end));
    }
    assert_eq!(told, ["lost t", "lost u 0+2", "left t", "left u", "left v"], "v lost none");
}

/// Publishers open and close on some threads, subscribers on others: each pair joins once, and the
/// conductor, which sees the same sessions in the directory, joins none of them again.
#[test]
fn under_churn_each_pair_joins_once() {
    const PUBLISHERS: usize = 3;
    const ROUNDS: usize = if cfg!(debug_assertions) { 40 } else { 200 };
    let directory = tempfile::tempdir().expect("a directory");
    for visibility in [Visibility::Host, Visibility::Process] {
        let path = directory.path().join(format!("{visibility:?}"));
        let domain = open(visibility, &path);
        let stay = [0, 1].map(|_| domain.subscriber(&["t"]).expect("a subscriber"));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let readers = stay.map(|stay| scope.spawn(|| lives(stay, PUBLISHERS * ROUNDS)));
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let mut short = domain.subscriber(&["t"]).expect("a subscriber");
                    short.poll(64, |_| {});
                }
            });
            let publishers =
                [(); PUBLISHERS].map(|()| scope.spawn(|| come_and_go(&domain, ROUNDS)));
            let ended_well = publishers.map(|publisher| publisher.join().is_ok());
            over.store(true, Ordering::Relaxed);
            assert_eq!(ended_well, [true; PUBLISHERS]);
            for reader in readers {
                let lives = reader.join().expect("a reader");
                let odd = lives.values().find(|told| *told != "joined thread,read,left");
                assert_eq!(odd, None);
                assert_eq!(lives.len(), PUBLISHERS * ROUNDS);
            }
        });
        let mut late = domain.subscriber(&["t"]).expect("a subscriber");
        assert!(poll(&mut late).is_empty(), "no publisher is left");
    }
}

fn come_and_go(domain: &Domain, rounds: usize) {
    for _ in 0..rounds {
        let mut publisher = domain.publisher("t").expect("a publisher");
        assert!(publisher.subscribers() >= 2, "those who stay are there at once");
        publisher.send(b"hello").expect("room");
    }
}

/// Events of each session, until `sessions` of them have left.
fn lives(mut subscriber: Subscriber, sessions: usize) -> HashMap<SessionId, String> {
    let (mut lives, mut left, start) = (HashMap::<_, String>::new(), 0, Instant::now());
    while left < sessions {
        assert!(start.elapsed() < LONG, "{left} of {sessions} have left");
        let work = subscriber.poll(64, |event| match event {
            Event::Joined(stream) => {
                let door = stream.source.split(':').next().unwrap_or_default();
                *lives.entry(stream.session).or_default() += &format!("joined {door},");
            }
            Event::Message(message) => {
                *lives.entry(message.stream().session).or_default() += "read,";
            }
            Event::Left(stream, _) => {
                *lives.entry(stream.session).or_default() += "left";
                left += 1;
            }
            other => panic!("{other:?}"),
        });
        subscriber.wait(work);
    }
    lives
}
