//! Stores, a publisher and a subscriber of a case, whose messages are checked as they come.

use crate::Body;
use crate::record::PATIENCE;
use lanecast_store::{
    DurableOptions, DurableSubscriber, GroupRule, PersistentOptions, PersistentPublisher,
    ReceiverEvent, SourceEvent, StoreGroups, StoreOptions, StoreServer,
};
use lanecast_transport::Transport;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TOPIC: &str = "orders";
pub(super) const SOURCE: u64 = 7;
/// Longest sleep of a loop that also looks whether it is done.
pub(super) const NAP: Duration = Duration::from_millis(5);

/// Stores on threads of their own; each may be down.
pub(super) struct Stores<T> {
    transport: T,
    options: StoreOptions,
    directory: TempDir,
    running: Vec<Option<RunningStore>>,
}

/// A store's thread; it ends when the sender is dropped.
type RunningStore = (Sender<()>, JoinHandle<()>);

impl<T> Stores<T>
where
    T: Transport<Publisher: Send, Error: std::fmt::Debug> + Clone + Send + 'static,
{
    pub(super) fn new(transport: &T, count: usize) -> Self {
        Self::with_options(transport, count, StoreOptions::default())
    }

    pub(super) fn with_options(transport: &T, count: usize, mut options: StoreOptions) -> Self {
        options.journal.segment_bytes = options.journal.segment_bytes.min(1 << 20);
        let directory = TempDir::new().expect("a directory");
        let running = (0..count).map(|_| None).collect();
        let mut stores = Self { transport: transport.clone(), options, directory, running };
        (0..count).for_each(|index| stores.start(index));
        stores
    }

    pub(super) fn name(index: usize) -> String {
        format!("store-{index}")
    }

    pub(super) fn start(&mut self, index: usize) {
        let name = Self::name(index);
        let (transport, path) = (self.transport.clone(), self.directory.path().join(&name));
        let (options, (stop, stopped)) = (self.options.clone(), mpsc::channel::<()>());
        let run = move || {
            let mut store = StoreServer::open(transport, &name, &path, options).expect("a store");
            while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
                let work = store.poll().expect("a working disk");
                store.wait_at_most(work, NAP);
            }
            store.close().expect("closed");
        };
        self.running[index] = Some((stop, thread::spawn(run)));
    }

    pub(super) fn stop(&mut self, index: usize) {
        let (stop, thread) = self.running[index].take().expect("a running store");
        drop(stop);
        thread.join().expect("the store ended well");
    }

    pub(super) fn groups(&self) -> StoreGroups {
        let names = (0..self.running.len()).map(Self::name).collect();
        StoreGroups::new(vec![names], GroupRule::Any).expect("groups")
    }

    pub(super) fn publisher(&self) -> Publisher<T> {
        self.publisher_with(|_| {})
    }

    pub(super) fn publisher_with(
        &self,
        change: impl FnOnce(&mut PersistentOptions),
    ) -> Publisher<T> {
        let mut options = PersistentOptions::new(self.groups());
        change(&mut options);
        let opened = PersistentPublisher::open(&self.transport, TOPIC, SOURCE, options);
        Publisher { publisher: opened.expect("a publisher"), events: Vec::new() }
    }

    pub(super) fn reader(&self, session: u64) -> Reader<T> {
        self.reader_with(session, |_| {})
    }

    pub(super) fn reader_with(
        &self,
        session: u64,
        change: impl FnOnce(&mut DurableOptions),
    ) -> Reader<T> {
        let mut options = DurableOptions::new(self.groups());
        change(&mut options);
        let opened = DurableSubscriber::open(self.transport.clone(), TOPIC, session, options);
        Reader {
            subscriber: opened.expect("a subscriber"),
            longest: 0,
            joined: None,
            next: 0,
            recovered: 0,
            lost: 0,
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

pub(super) struct Publisher<T: Transport> {
    pub(super) publisher: PersistentPublisher<T>,
    pub(super) events: Vec<SourceEvent>,
}

impl<T: Transport> Publisher<T> {
    /// Sends the messages up to `end`, each with the body of its sequence.
    #[track_caller]
    pub(super) fn send_until(&mut self, end: u64, longest: usize) {
        self.until("registered", |it| it.publisher.is_registered());
        while self.publisher.next() < end {
            let body = Body::new(self.publisher.next(), longest).bytes();
            self.until("accepted", |it| it.publisher.try_send(&body).is_ok());
        }
    }

    #[track_caller]
    pub(super) fn until_stable(&mut self) {
        self.until("all is stable", |it| it.publisher.stable() == it.publisher.next());
    }

    #[track_caller]
    pub(super) fn until_told(&mut self, wanted: &str, is_it: impl Fn(&SourceEvent) -> bool) {
        self.until(wanted, |it| it.events.iter().any(&is_it));
    }

    #[track_caller]
    pub(super) fn until(&mut self, wanted: &str, mut is_done: impl FnMut(&mut Self) -> bool) {
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
pub(super) struct Reader<T: Transport> {
    pub(super) subscriber: DurableSubscriber<T>,
    /// Longest body of the messages that come, to check them.
    pub(super) longest: usize,
    /// Sequence with which the stream began.
    pub(super) joined: Option<u64>,
    pub(super) next: u64,
    pub(super) recovered: u64,
    /// Messages that were told to be lost.
    pub(super) lost: u64,
    pub(super) events: Vec<String>,
}

impl<T: Transport> Reader<T> {
    pub(super) fn poll(&mut self) -> usize {
        let Self { subscriber, longest, joined, next, recovered, lost, events } = self;
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
            ReceiverEvent::Lost { source: SOURCE, first, count, .. } => {
                assert_eq!(first, *next, "{event:?}: {events:?}");
                *next += count;
                *lost += count;
                events.push(format!("{event:?}"));
            }
            other => events.push(format!("{other:?}")),
        })
    }

    pub(super) fn has(&self, words: &str) -> bool {
        self.events.iter().any(|event| event.contains(words))
    }

    /// Polls this reader, and `publisher` if there is one, until `is_done`.
    #[track_caller]
    pub(super) fn until(
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
