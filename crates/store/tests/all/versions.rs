//! Programs and stores of two versions: neither takes the other's frames, and both learn why.

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_store::{
    DurableOptions, DurableSubscriber, NoAnswer, PersistentOptions, PersistentPublisher,
    ReceiverEvent, Registration, STORE_VERSION, SourceEvent, StoreAdministrator, StoreOptions,
    StoreServer,
};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::time::{Duration, Instant};

/// No test takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// The versions of other programs.
const PREVIOUS: u8 = STORE_VERSION - 1;
const NEXT: u8 = STORE_VERSION + 1;

fn domain(root: &tempfile::TempDir) -> Domain {
    let directory = root.path().join("domain");
    let visibility = Visibility::Process;
    let settings = DomainSettings { visibility, directory, ..DomainSettings::default() };
    Domain::open(settings).expect("a domain")
}

/// Repeats `step` until it returns true.
fn until(what: &str, mut step: impl FnMut() -> bool) {
    let start = Instant::now();
    while !step() {
        assert!(start.elapsed() < LIMIT, "in vain: {what}");
        std::thread::yield_now();
    }
}

/// A frame's header and a body that this version does not read.
fn of_version(version: u8, client: u64) -> Vec<u8> {
    let mut frame = vec![0xaa; 60];
    frame[0] = version;
    frame[8..16].copy_from_slice(&client.to_le_bytes());
    frame
}

#[test]
fn a_store_answers_a_request_of_another_version_with_its_own() {
    let root = tempfile::tempdir().expect("a directory");
    let domain = domain(&root);
    let path = root.path().join("a");
    let opened = StoreServer::open(domain.clone(), "a", &path, StoreOptions::default());
    let mut store = opened.expect("a store");
    let mut client = domain.publisher("_store.a").expect("a publisher");
    let mut replies = domain.subscriber(&["_store.a.00000000000000ff"]).expect("a subscriber");
    assert!(client.wait_for_subscribers(1, LIMIT));
    for (other, count) in [PREVIOUS, NEXT].into_iter().zip(1..) {
        client.send(&of_version(other, 0xff)).expect("room");
        let mut answers: Vec<Vec<u8>> = Vec::new();
        until("an answer", || {
            store.poll().expect("it lives");
            replies.poll(64, |event| {
                if let Event::Message(message) = event {
                    answers.push(message.bytes().to_vec());
                }
            });
            !answers.is_empty()
        });
        let mut expected = [0; 24];
        (expected[0], expected[8]) = (STORE_VERSION, 0xff);
        assert_eq!(answers, [expected], "a header with no kind, for this client");
        let stats = store.stats();
        assert_eq!((stats.other_versions, stats.other_version), (count, Some(other)), "{stats:?}");
        assert_eq!(stats.foreign_frames, count, "{stats:?}");
    }
    assert_eq!(store.streams().count(), 0);
}

/// A store of another version: answers every client that asks.
struct OtherStore {
    version: u8,
    requests: lanecast_shm::Subscriber,
    replies: lanecast_shm::Publisher,
    read: usize,
}

impl OtherStore {
    fn open(version: u8, domain: &Domain, client_topic: &str) -> Self {
        Self {
            version,
            requests: domain.subscriber(&["_store.a"]).expect("a subscriber"),
            replies: domain.publisher(client_topic).expect("a publisher"),
            read: 0,
        }
    }

    /// Answers each request in its version.
    fn poll(&mut self) {
        let mut clients = Vec::new();
        self.requests.poll(64, |event| {
            if let Event::Message(message) = event {
                let client = message.bytes()[8..16].try_into().expect("eight bytes");
                clients.push(u64::from_le_bytes(client));
            }
        });
        for client in clients {
            self.replies.send(&of_version(self.version, client)).expect("room");
            self.read += 1;
        }
    }
}

/// The topic of the replies to the client of which the first request has come.
fn client_topic(domain: &Domain, mut poll: impl FnMut()) -> String {
    let mut requests = domain.subscriber(&["_store.a"]).expect("a subscriber");
    let mut client = None;
    until("a request", || {
        poll();
        requests.poll(1, |event| {
            if let Event::Message(message) = event {
                client = message.bytes()[8..16].try_into().ok().map(u64::from_le_bytes);
            }
        });
        client.is_some()
    });
    format!("_store.a.{:016x}", client.unwrap_or_default())
}

#[test]
fn a_publisher_learns_once_that_its_store_is_of_another_version() {
    for version in [PREVIOUS, NEXT] {
        let root = tempfile::tempdir().expect("a directory");
        let domain = domain(&root);
        let options = PersistentOptions::with_store("a");
        let opened = PersistentPublisher::open(&domain, "orders", 7, options);
        let mut publisher = opened.expect("a publisher");
        let topic = client_topic(&domain, || _ = publisher.poll(|_| {}));
        let mut store = OtherStore::open(version, &domain, &topic);
        let mut told = Vec::new();
        until("several answers", || {
            store.poll();
            publisher.poll(|event| {
                if let SourceEvent::OtherVersion { store, version } = event {
                    told.push((store, version));
                }
            });
            publisher.foreign_frames() >= 3
        });
        assert_eq!(told, [("a".to_owned(), version)], "once");
        assert!(!publisher.is_registered());
    }
}

#[test]
fn a_subscriber_learns_once_that_its_store_is_of_the_next_version() {
    let root = tempfile::tempdir().expect("a directory");
    let domain = domain(&root);
    let options = DurableOptions::with_store("a");
    let opened = DurableSubscriber::open(domain.clone(), "orders", 9, options);
    let mut subscriber = opened.expect("a subscriber");
    let topic = client_topic(&domain, || _ = subscriber.poll(64, |_| {}));
    let mut store = OtherStore::open(NEXT, &domain, &topic);
    let mut told = Vec::new();
    until("several answers", || {
        store.poll();
        subscriber.poll(64, |event| {
            if let ReceiverEvent::OtherVersion { store, version } = event {
                told.push((store, version));
            }
        });
        subscriber.foreign_frames() >= 3
    });
    assert_eq!(told, [("a".to_owned(), NEXT)], "once");
}

/// Each time that it asks: an administrator has no events that tell it once.
#[test]
fn an_administrator_learns_that_a_store_is_of_the_next_version() {
    let root = tempfile::tempdir().expect("a directory");
    let domain = domain(&root);
    let mut administrator = StoreAdministrator::open(&domain, &["a"]).expect("an administrator");
    let asking = std::thread::spawn(move || {
        let reports = [(); 2].map(|()| administrator.inspect(LIMIT));
        let receiver = Registration::Receiver(9);
        (reports, administrator.deregister("orders", 7, receiver, &[1], LIMIT))
    });
    let topic = client_topic(&domain, || {});
    let mut store = OtherStore::open(NEXT, &domain, &topic);
    until("its answers", || {
        store.poll();
        asking.is_finished()
    });
    let (reports, answers) = asking.join().expect("answers");
    for report in &reports {
        assert_eq!((report[0].other_version, report[0].is_complete), (Some(NEXT), false));
    }
    assert_eq!(answers, [Err(NoAnswer::OtherVersion(NEXT))]);
    let words = format!(
        "speaks version {NEXT} of the stores' protocol, this program version {STORE_VERSION}: give \
         both the same version of lanecast"
    );
    assert_eq!(NoAnswer::OtherVersion(NEXT).to_string(), words);
}
