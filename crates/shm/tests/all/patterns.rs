//! Subscriptions by pattern that match more topics than they may have: those that found no room are
//! joined when there is some.

use lanecast_os::event::wait_readable;
use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber, Visibility};
use lanecast_transport::{
    Event, Publish, Subscribe, TopicId, TopicPattern, TopicSelection, Transport,
};
use lanecast_wire::shm::{RING_LIVE_OFFSET, RingLive};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(visibility: Visibility, directory: &Path) -> Domain {
    let directory = directory.to_owned();
    let settings = DomainSettings { visibility, directory, ..DomainSettings::default() };
    Domain::open(settings).expect("a domain")
}

/// Reads until the subscriber was told of that, or until `is_done`.
fn wait(subscriber: &mut Subscriber, until: &str, is_done: impl Fn() -> bool) {
    let start = Instant::now();
    let mut told = Vec::new();
    while !is_done() && !told.iter().any(|word| word == until) {
        assert!(start.elapsed() < PATIENCE, "{until}: {told:?}");
        told.extend(read(subscriber, false));
        subscriber.wait_at_most(0, Duration::from_millis(10));
    }
}

fn selection(topics_max: usize) -> TopicSelection {
    let pattern = TopicPattern::wildcard("a.*").expect("a pattern");
    TopicSelection::of_patterns(vec![pattern], topics_max)
}

fn word(event: &Event<'_>) -> String {
    match event {
        Event::Joined(stream) => format!("joined {}", stream.topic),
        Event::Message(message) => format!("{} #{}", message.stream().topic, message.number()),
        Event::Left(stream, _) => format!("left {}", stream.topic),
        other => format!("{other:?}"),
    }
}

/// All events until none comes, by polls or by runs.
fn read(subscriber: &mut Subscriber, by_runs: bool) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let before = told.len();
        if by_runs {
            let run = subscriber.take(64);
            told.extend((&run).into_iter().map(|event| word(&event)));
        } else {
            subscriber.poll(64, |event| told.push(word(&event)));
        }
        // Sessions that are joined by an empty poll are told by the next.
        if told.len() == before && !subscriber.has_events() {
            return told;
        }
    }
}

fn send(publisher: &mut Publisher, topic: TopicId) {
    publisher.try_send_on(topic, b"x").expect("there is room");
}

#[test]
fn a_session_that_found_no_room_is_joined_when_there_is_some() {
    let directory = tempfile::tempdir().expect("a directory");
    for visibility in [Visibility::Host, Visibility::Process] {
        for by_runs in [false, true] {
            let domain = open(visibility, directory.path());
            let topics = selection(1);
            let mut subscriber = domain.subscriber_of(&topics).expect("a subscriber");
            let first = domain.publisher("a.1").expect("a publisher");
            assert_eq!(read(&mut subscriber, by_runs), ["joined a.1"]);
            let second = domain.publisher("a.2").expect("a publisher");
            assert_eq!(read(&mut subscriber, by_runs), [""; 0]);
            assert_eq!((second.subscribers(), topics.refused()), (0, 1));
            drop(first);
            assert_eq!(read(&mut subscriber, by_runs), ["left a.1", "joined a.2"]);
            assert_eq!(second.subscribers(), 1);
        }
    }
}

/// The conductor joins the sessions of other processes; here it does so for those of this one.
#[test]
fn a_session_of_another_process_that_found_no_room_is_joined_when_there_is_some() {
    let directory = tempfile::tempdir().expect("a directory");
    let directory = directory.path().to_owned();
    let settings = DomainSettings { directory, local_join: false, ..DomainSettings::default() };
    let domain = Domain::open(settings).expect("a domain");
    let topics = selection(1);
    let mut subscriber = domain.subscriber_of(&topics).expect("a subscriber");
    let first = domain.publisher("a.1").expect("a publisher");
    wait(&mut subscriber, "joined a.1", || false);
    let _second = domain.publisher("a.2").expect("a publisher");
    wait(&mut subscriber, "nothing", || topics.refused() > 0);
    drop(first);
    wait(&mut subscriber, "joined a.2", || false);
    assert_eq!(topics.refused(), 1, "it is counted once");
}

#[test]
fn a_topic_that_found_no_room_is_joined_when_there_is_some() {
    let directory = tempfile::tempdir().expect("a directory");
    for by_runs in [false, true] {
        let domain = open(Visibility::Host, directory.path());
        let mut subscriber = domain.subscriber_of(&selection(2)).expect("a subscriber");
        let first = domain.publisher("a.1").expect("a publisher");
        assert_eq!(read(&mut subscriber, by_runs), ["joined a.1"]);
        let mut second = domain.publisher("a.2").expect("a publisher");
        let third = second.add_topic("a.3").expect("a topic");
        assert_eq!(read(&mut subscriber, by_runs), ["joined a.2"]);
        // More than the numbers that a message in the ring tells apart.
        for _ in 0..1 << 17 {
            send(&mut second, third);
            assert_eq!(read(&mut subscriber, by_runs), [""; 0]);
        }
        drop(first);
        assert_eq!(read(&mut subscriber, by_runs), ["left a.1", "joined a.3"]);
        assert_eq!(subscriber.streams(), 2);
        send(&mut second, third);
        send(&mut second, TopicId(0));
        assert_eq!(read(&mut subscriber, by_runs), ["a.3 #131072", "a.2 #0"]);
        drop(second);
        assert_eq!(read(&mut subscriber, by_runs), ["left a.2", "left a.3"]);
        assert_eq!(subscriber.streams(), 0);
    }
}

/// Notes the events of one take.
fn take(subscriber: &mut Subscriber, told: &mut Vec<String>) {
    let run = subscriber.take(64);
    told.extend((&run).into_iter().map(|event| word(&event)));
}

/// Sleeps on the descriptor and takes, until the last event is `until`.
fn sleep(subscriber: &mut Subscriber, until: &str) {
    let mut told = Vec::new();
    while told.last().is_none_or(|word| word != until) {
        let descriptor = subscriber.wakeup().expect("a descriptor");
        let readable = wait_readable([descriptor], Some(PATIENCE));
        assert_eq!(readable, [true], "asleep before {until}, after {told:?}");
        take(subscriber, &mut told);
    }
}

/// Takes until the descriptor is unreadable.
fn exhaust(subscriber: &mut Subscriber) {
    let start = Instant::now();
    loop {
        take(subscriber, &mut Vec::new());
        let descriptor = subscriber.wakeup().expect("a descriptor");
        if wait_readable([descriptor], Some(Duration::from_millis(20))) == [false] {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "it stays readable");
    }
}

/// Room that the end of one session makes wakes a loop that sleeps on its descriptor, for a topic
/// of another one.
#[test]
fn a_loop_of_runs_on_the_descriptor_joins_what_found_no_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Process, directory.path());
    for end_first in [false, true] {
        let mut subscriber = domain.subscriber_of(&selection(2)).expect("a subscriber");
        let mut sessions = ["a.1", "a.2"].map(|topic| domain.publisher(topic).expect("one"));
        exhaust(&mut subscriber);
        assert_eq!(subscriber.streams(), 2);
        if end_first {
            sessions.reverse();
        }
        let [mut stays, ends] = sessions;
        stays.add_topic("a.3").expect("a topic");
        exhaust(&mut subscriber);
        drop(ends);
        sleep(&mut subscriber, "joined a.3");
    }
}

/// Room that is made elsewhere: a selection is shared with other subscribers.
#[test]
fn room_that_others_make_wakes_the_subscriber() {
    let directory = tempfile::tempdir().expect("a directory");
    for visibility in [Visibility::Host, Visibility::Process] {
        let (domain, topics) = (open(visibility, directory.path()), selection(2));
        let mut elsewhere = topics.admission();
        assert!(elsewhere.admit("a.9"));
        let mut subscriber = domain.subscriber_of(&topics).expect("a subscriber");
        let mut publisher = domain.publisher("a.1").expect("a publisher");
        publisher.add_topic("a.2").expect("a topic");
        exhaust(&mut subscriber);
        assert_eq!((subscriber.streams(), topics.refused()), (1, 1));
        drop(elsewhere);
        sleep(&mut subscriber, "joined a.2");
        // A session without room for any of its topics.
        let mut elsewhere = topics.admission();
        drop(publisher);
        sleep(&mut subscriber, "left a.2");
        exhaust(&mut subscriber);
        assert!(elsewhere.admit("a.8") && elsewhere.admit("a.9"));
        let _publisher = domain.publisher("a.1").expect("a publisher");
        exhaust(&mut subscriber);
        drop(elsewhere);
        sleep(&mut subscriber, "joined a.1");
    }
}

/// A subscriber whose every poll and take has a message still joins topics that found no room.
#[test]
fn a_busy_subscriber_joins_what_found_no_room() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Process, directory.path());
    for by_runs in [false, true] {
        let mut subscriber = domain.subscriber_of(&selection(2)).expect("a subscriber");
        let first = domain.publisher("a.1").expect("a publisher");
        let mut second = domain.publisher("a.2").expect("a publisher");
        let joined = read(&mut subscriber, by_runs);
        assert_eq!(joined.len(), 2, "{joined:?}");
        second.add_topic("a.3").expect("a topic");
        send(&mut second, TopicId(0));
        assert_eq!(read(&mut subscriber, by_runs), ["a.2 #0"]);
        drop(first);
        let mut told = Vec::new();
        while told.last().is_none_or(|word| word != "joined a.3") {
            assert!(told.len() < 100, "{told:?}");
            let before = told.len();
            send(&mut second, TopicId(0));
            if by_runs {
                take(&mut subscriber, &mut told);
            } else {
                subscriber.poll(1, |event| told.push(word(&event)));
            }
            assert!(told.len() > before, "an empty one");
        }
    }
}

/// The head of a publisher's ring, as the publisher stores it behind each message.
struct Head(File);

impl Head {
    const PLACE: u64 = (RING_LIVE_OFFSET + offset_of!(RingLive, head)) as u64;

    fn of(directory: &Path, publisher: &Publisher) -> Self {
        let ring = directory.join(format!("{}.ring", publisher.session()));
        Self(File::options().read(true).write(true).open(ring).expect("a ring"))
    }

    fn load(&self) -> [u8; 8] {
        let mut head = [0; 8];
        self.0.read_exact_at(&mut head, Self::PLACE).expect("read");
        head
    }

    fn store(&self, head: [u8; 8]) {
        self.0.write_all_at(&head, Self::PLACE).expect("written");
    }
}

/// A publisher that stands still between the stores of a commit word and of the head leaves the
/// number of the next message open: topics that find room then are joined when it goes on.
#[test]
fn a_topic_whose_next_number_is_not_known_leaves_the_subscriber_asleep() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Host, directory.path());
    let mut subscriber = domain.subscriber_of(&selection(2)).expect("a subscriber");
    let first = domain.publisher("a.1").expect("a publisher");
    let mut second = domain.publisher("a.2").expect("a publisher");
    exhaust(&mut subscriber);
    let third = second.add_topic("a.3").expect("a topic");
    exhaust(&mut subscriber);
    let head = Head::of(directory.path(), &second);
    let before = head.load();
    send(&mut second, third);
    exhaust(&mut subscriber);
    let after = head.load();
    head.store(before);
    drop(first);
    exhaust(&mut subscriber);
    assert_eq!(subscriber.streams(), 1);
    head.store(after);
    assert!(subscriber.has_events(), "the number is known");
    assert_eq!(read(&mut subscriber, true), ["joined a.3"]);
    send(&mut second, third);
    sleep(&mut subscriber, "a.3 #1");
}

/// A refusal of long ago, whose topic has gone since, wakes no subscriber.
#[test]
fn a_refusal_of_long_ago_wakes_no_subscriber() {
    let directory = tempfile::tempdir().expect("a directory");
    let domain = open(Visibility::Host, directory.path());
    let topics = selection(1);
    let mut subscriber = domain.subscriber_of(&topics).expect("a subscriber");
    let first = domain.publisher("a.1").expect("a publisher");
    drop(domain.publisher("a.2").expect("a publisher"));
    drop(first);
    exhaust(&mut subscriber);
    assert_eq!((subscriber.streams(), topics.refused()), (0, 1));
    // Longer than from one scan of the directory to the next.
    let descriptor = subscriber.wakeup().expect("a descriptor");
    let readable = wait_readable([descriptor], Some(Duration::from_millis(1_500)));
    assert_eq!(readable, [false], "nothing has changed");
}
