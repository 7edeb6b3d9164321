//! Persistence over any transport: stores, publishers and durable subscribers keep their promises
//! whatever carries their frames.
//!
//! Each case runs its stores on threads of their own, with their data in a temporary directory.

use crate::Body;
use crate::record::PATIENCE;
use lanecast_store::{
    Acknowledgement, DurableOptions, DurableSubscriber, GroupRule, Pacing, PersistentOptions,
    PersistentPublisher, ReceiverEvent, ReceiverStart, SourceEvent, StoreGroups, StoreOptions,
    StoreServer,
};
use lanecast_transport::{Publish, Transport};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TOPIC: &str = "orders";
const SOURCE: u64 = 7;
/// Longest sleep of a loop that also looks whether it is done.
const NAP: Duration = Duration::from_millis(5);

/// Stores on threads of their own; each may be down.
struct Stores<T> {
    transport: T,
    directory: TempDir,
    running: Vec<Option<RunningStore>>,
}

/// A store's thread; it ends when the sender is dropped.
type RunningStore = (Sender<()>, JoinHandle<()>);

impl<T> Stores<T>
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    fn new(transport: &T, count: usize) -> Self {
        let directory = TempDir::new().expect("a directory");
        let running = (0..count).map(|_| None).collect();
        let mut stores = Self { transport: transport.clone(), directory, running };
        (0..count).for_each(|index| stores.start(index));
        stores
    }

    fn name(index: usize) -> String {
        format!("store-{index}")
    }

    fn start(&mut self, index: usize) {
        let name = Self::name(index);
        let (transport, path) = (self.transport.clone(), self.directory.path().join(&name));
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let mut options = StoreOptions::default();
            options.journal.segment_bytes = 1 << 20;
            let mut store = StoreServer::open(transport, &name, &path, options).expect("a store");
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let work = store.poll().expect("a working disk");
                store.wait_at_most(work, NAP);
            }
            store.close().expect("closed");
        };
        self.running[index] = Some((stop, thread::spawn(run)));
    }

    fn stop(&mut self, index: usize) {
        let (stop, thread) = self.running[index].take().expect("a running store");
        drop(stop);
        thread.join().expect("the store ended well");
    }

    fn groups(&self) -> StoreGroups {
        let names = (0..self.running.len()).map(Self::name).collect();
        StoreGroups::new(vec![names], GroupRule::Any).expect("groups")
    }

    fn publisher(&self) -> Publisher<T> {
        self.publisher_with(|_| {})
    }

    fn publisher_with(&self, change: impl FnOnce(&mut PersistentOptions)) -> Publisher<T> {
        let mut options = PersistentOptions::new(self.groups());
        change(&mut options);
        let opened = PersistentPublisher::open(&self.transport, TOPIC, SOURCE, options);
        Publisher { publisher: opened.expect("a publisher"), events: Vec::new() }
    }

    fn reader(&self, session: u64) -> Reader<T> {
        self.reader_with(session, |_| {})
    }

    fn reader_with(&self, session: u64, change: impl FnOnce(&mut DurableOptions)) -> Reader<T> {
        let mut options = DurableOptions::new(self.groups());
        change(&mut options);
        let opened = DurableSubscriber::open(self.transport.clone(), TOPIC, session, options);
        Reader {
            subscriber: opened.expect("a subscriber"),
            longest: 0,
            joined: None,
            next: 0,
            recovered: 0,
            events: Vec::new(),
        }
    }
}

impl<T> Drop for Stores<T> {
    fn drop(&mut self) {
        for (stop, thread) in self.running.drain(..).flatten() {
            drop(stop);
            // A case that failed is told of, and not of its stores.
            _ = thread.join();
        }
    }
}

struct Publisher<T: Transport> {
    publisher: PersistentPublisher<T>,
    events: Vec<SourceEvent>,
}

impl<T: Transport> Publisher<T> {
    /// Sends the messages up to `end`, each with the body of its sequence.
    #[track_caller]
    fn send_until(&mut self, end: u64, longest: usize) {
        self.until("registered", |it| it.publisher.is_registered());
        while self.publisher.next() < end {
            let body = Body::new(self.publisher.next(), longest).bytes();
            self.until("accepted", |it| it.publisher.try_send(&body).is_ok());
        }
    }

    #[track_caller]
    fn until_stable(&mut self) {
        self.until("all is stable", |it| it.publisher.stable() == it.publisher.next());
    }

    #[track_caller]
    fn until(&mut self, wanted: &str, mut is_done: impl FnMut(&mut Self) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(self) {
            assert!(Instant::now() < deadline, "in vain: {wanted}: {:?}", self.events);
            let events = &mut self.events;
            let work = self.publisher.poll(|event| events.push(event));
            self.publisher.wait_at_most(work, NAP);
        }
    }
}

/// A subscriber, whose messages are checked as they come.
struct Reader<T: Transport> {
    subscriber: DurableSubscriber<T>,
    /// Longest body of the messages that come, to check them.
    longest: usize,
    /// Sequence with which the stream began.
    joined: Option<u64>,
    next: u64,
    recovered: u64,
    events: Vec<String>,
}

impl<T: Transport> Reader<T> {
    fn poll(&mut self) -> usize {
        let Self { subscriber, longest, joined, next, recovered, events } = self;
        subscriber.poll(64, |event| match event {
            ReceiverEvent::Message(message) => {
                assert_eq!((message.source(), message.sequence()), (SOURCE, *next), "{events:?}");
                assert!(joined.is_some(), "a message before Joined");
                Body::new(*next, *longest).check(message.bytes());
                *next += 1;
                *recovered += u64::from(message.is_recovered());
            }
            ReceiverEvent::Joined { source: SOURCE, next: first, .. } => {
                assert_eq!(joined.replace(first), None, "a stream joins once");
                *next = first;
                events.push(format!("{event:?}"));
            }
            other => events.push(format!("{other:?}")),
        })
    }

    fn has(&self, words: &str) -> bool {
        self.events.iter().any(|event| event.contains(words))
    }

    /// Polls this reader, and `publisher` if there is one, until `is_done`.
    #[track_caller]
    fn until(
        &mut self,
        mut publisher: Option<&mut Publisher<T>>,
        wanted: &str,
        is_done: impl Fn(&Self) -> bool,
    ) {
        let deadline = Instant::now() + PATIENCE;
        while !is_done(self) {
            let events = &self.events;
            assert!(Instant::now() < deadline, "in vain: {wanted}: at {}, {events:?}", self.next);
            if let Some(it) = &mut publisher {
                let events = &mut it.events;
                it.publisher.poll(|event| events.push(event));
            }
            let work = self.poll();
            self.subscriber.wait_at_most(work, NAP);
        }
    }
}

/// A subscriber that comes late gets everything, each message once and in order: first from the
/// stores, then live ones.
pub fn what_was_missed_is_recovered_and_live_messages_follow<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    let longest = publisher.publisher.longest_message();
    publisher.send_until(300, longest);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = longest;
    reader.until(Some(&mut publisher), "the past", |it| it.has("Recovered"));
    assert_eq!((reader.joined, reader.recovered), (Some(0), 300));
    // The store has joined, and the reader joins.
    let deadline = Instant::now() + PATIENCE;
    while publisher.publisher.publisher().subscribers() < 2 {
        assert!(Instant::now() < deadline, "the reader does not join");
        publisher.publisher.poll(|_| {});
        let work = reader.poll();
        reader.subscriber.wait_at_most(work, NAP);
    }
    for end in 301..=400 {
        publisher.send_until(end, longest);
        reader.poll();
    }
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 400);
    assert!(reader.recovered < 400, "none was live");
}

/// A subscriber goes on behind the last message that it has acknowledged, in its next life.
pub fn a_subscriber_goes_on_where_it_had_come_to<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 3);
    let mut publisher = stores.publisher();
    publisher.send_until(100, 100);
    let explicit =
        |options: &mut DurableOptions| options.acknowledgement = Acknowledgement::Explicit;
    let mut reader = stores.reader_with(1, explicit);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "all", |it| it.next == 100);
    reader.subscriber.acknowledge(SOURCE, 59);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 60 }")
    });
    drop(reader);
    publisher.send_until(150, 100);
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 150);
    assert_eq!(reader.joined, Some(60));
    assert!(reader.has("is_resumed: true"), "{:?}", reader.events);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 150 }")
    });
    drop(reader);
    // A replay begins where it is told to, and takes nothing back.
    for (start, first) in [(30, 30), (1_000, 150)] {
        let mut reader = stores.reader_with(1, |options| {
            options.settings.start = ReceiverStart::Sequence(start);
            options.settings.is_replay = true;
        });
        reader.longest = 100;
        reader.until(Some(&mut publisher), "the replay", |it| it.next == 150);
        assert_eq!(reader.joined, Some(first));
    }
    let mut reader = stores.reader(1);
    reader.until(Some(&mut publisher), "joined", |it| it.joined.is_some());
    assert_eq!(reader.joined, Some(150));
}

/// Sequences go on over a publisher's restarts, and a subscriber is told when it leaves. Streams
/// of a publisher that is gone are found all the same.
pub fn numbers_go_on_after_a_publisher_restarts<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    publisher.send_until(100, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "all", |it| it.next == 100);
    drop(publisher);
    reader.until(None, "the publisher leaves", |it| it.has("Left { source: 7, next: 100 }"));
    let mut late = stores.reader(2);
    late.longest = 100;
    late.until(None, "the stream of a publisher that is gone", |it| it.next == 100);
    let mut publisher = stores.publisher();
    publisher.send_until(200, 100);
    assert!(publisher.events.contains(&SourceEvent::Registered { next: 100 }));
    for reader in [&mut reader, &mut late] {
        reader.until(Some(&mut publisher), "its next run", |it| it.next == 200);
    }
}

/// A majority of stores is enough; one that was away copies what it missed, messages of any length,
/// and a subscriber is served when only that one and another are left.
pub fn a_store_that_was_away_copies_what_it_missed<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let mut stores = Stores::new(transport, 3);
    let mut publisher = stores.publisher();
    let longest = publisher.publisher.longest_message();
    publisher.send_until(20, longest);
    publisher.until_stable();
    stores.stop(0);
    publisher.send_until(120, longest);
    publisher.until_stable();
    stores.start(0);
    publisher.send_until(140, longest);
    publisher.until_stable();
    // The first store counts again only when it has everything.
    stores.stop(1);
    publisher.send_until(160, longest);
    publisher.until_stable();
    stores.stop(2);
    stores.start(1);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = longest;
    reader.until(Some(&mut publisher), "everything", |it| it.next == 160);
    assert_eq!(reader.joined, Some(0));
}

/// Registered receivers hold a publisher back, and it learns when there is room again.
pub fn receivers_pace_a_publisher<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher_with(|options| {
        let settings = &mut options.settings;
        (settings.pacing, settings.unconsumed_messages) = (Pacing::Receivers, 20);
    });
    let explicit =
        |options: &mut DurableOptions| options.acknowledgement = Acknowledgement::Explicit;
    publisher.send_until(1, 100);
    let mut reader = stores.reader_with(1, explicit);
    reader.longest = 100;
    reader.until(Some(&mut publisher), "registered", |it| it.has("Recovered"));
    // The publisher learns of the receiver with the next state.
    reader.subscriber.acknowledge(SOURCE, 0);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 1 }")
    });
    publisher.until("consumed", |it| it.publisher.consumed() == 1);
    publisher.send_until(21, 100);
    let refused = publisher.publisher.try_send(b"more").expect_err("held back");
    assert!(refused.may_pass(), "{refused}");
    publisher.until("told", |it| {
        let is_full = |event: &SourceEvent| {
            matches!(event, SourceEvent::FlightSize { is_exceeded: true, messages: 20 })
        };
        it.events.iter().any(is_full)
    });
    reader.until(Some(&mut publisher), "all", |it| it.next == 21);
    reader.subscriber.acknowledge(SOURCE, 10);
    reader.until(Some(&mut publisher), "acknowledged", |it| {
        it.has("Acknowledged { source: 7, next: 11 }")
    });
    publisher.until("room", |it| {
        let has_room = |event: &SourceEvent| {
            matches!(event, SourceEvent::FlightSize { is_exceeded: false, .. })
        };
        it.events.iter().any(has_room)
    });
    publisher.send_until(31, 100);
    reader.until(Some(&mut publisher), "the rest", |it| it.next == 31);
}

/// A loop that sleeps on the subscriber's descriptor misses nothing.
pub fn a_durable_subscriber_wakes_its_loop<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    let stores = Arc::new(Stores::new(transport, 1));
    let mut publisher = stores.publisher();
    publisher.send_until(10, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    reader.longest = 100;
    let writer = thread::spawn(move || {
        for end in 11..=100 {
            publisher.send_until(end, 100);
            publisher.until("a pause", |it| it.publisher.stable() == end);
        }
        publisher
    });
    let deadline = Instant::now() + PATIENCE;
    let epoll = lanecast_os::epoll::Epoll::new().expect("a set");
    epoll.add(reader.subscriber.wakeup().expect("a descriptor"), 0).expect("added");
    let mut ready = Vec::new();
    // Waits that a wake-up ended, and those that ended by their time with something to poll.
    let (mut wakeups, mut missed, mut is_missed) = (0, 0, false);
    while reader.next < 100 {
        assert!(Instant::now() < deadline, "asleep at {}: {:?}", reader.next, reader.events);
        let work = reader.poll();
        missed += usize::from(is_missed && work > 0);
        is_missed = false;
        if work == 0 {
            let due = Duration::from_millis(100);
            epoll.wait(Some(due), &mut ready).expect("a wait");
            is_missed = ready.is_empty();
            wakeups += usize::from(!is_missed);
        }
    }
    assert!(wakeups > missed, "{wakeups} wake-ups, and {missed} that did not come");
    drop(writer.join().expect("the writer"));
}

/// Runs of a durable subscriber: events that were not yielded come again, and those that were count
/// as consumed when the run is dropped.
pub fn a_run_of_messages_is_consumed_when_it_is_dropped<T>(transport: &T)
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    const YIELDED: usize = 5;
    let stores = Stores::new(transport, 1);
    let mut publisher = stores.publisher();
    publisher.send_until(60, 100);
    publisher.until_stable();
    let mut reader = stores.reader(1);
    let (mut next, deadline) = (0, Instant::now() + PATIENCE);
    while !(next == 120 && reader.subscriber.is_acknowledged()) {
        assert!(Instant::now() < deadline, "in vain: at {next}");
        // The second half comes live, or from the store.
        if next == 60 {
            publisher.send_until(120, 100);
        }
        publisher.publisher.poll(|_| {});
        let run = reader.subscriber.take(16);
        let events: Vec<ReceiverEvent<'_>> = run.iter().take(YIELDED).collect();
        let work = events.len();
        for event in &events {
            if let ReceiverEvent::Message(message) = event {
                assert_eq!((message.source(), message.sequence()), (SOURCE, next));
                Body::new(next, 100).check(message.bytes());
                next += 1;
            }
        }
        drop(events);
        drop(run);
        reader.subscriber.wait_at_most(work, NAP);
    }
    drop(reader);
    let mut reader = stores.reader(1);
    reader.until(Some(&mut publisher), "joined", |it| it.joined.is_some());
    assert_eq!(reader.joined, Some(120));
}

/// Makes a test of every case of persistence; the argument is a value that derefs to an unused
/// transport, whose handles are cloned for the threads of stores.
#[macro_export]
macro_rules! persistence_tests {
    ($stage:expr) => {
        $crate::persistence_tests! { @each $stage =>
            what_was_missed_is_recovered_and_live_messages_follow
            a_subscriber_goes_on_where_it_had_come_to
            numbers_go_on_after_a_publisher_restarts
            a_store_that_was_away_copies_what_it_missed
            receivers_pace_a_publisher
            a_durable_subscriber_wakes_its_loop
            a_run_of_messages_is_consumed_when_it_is_dropped
        }
    };
    (@each $stage:expr => $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                let stage = $stage;
                $crate::persistence::$case(&*stage);
            }
        )*
    };
}
