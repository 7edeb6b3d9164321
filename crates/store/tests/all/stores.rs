//! Publishers and stores in one process, over shared memory of threads.

use lanecast_persistence::{GroupRule, StoreGroups};
use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_store::{
    PersistentOptions, PersistentPublisher, SourceEvent, StoreOptions, StoreServer,
};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);

fn domain() -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        window_bytes: 1 << 20,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

/// Some stores with their directories; each may be down.
struct Stores {
    domain: Domain,
    directories: TempDir,
    servers: Vec<Option<StoreServer<Domain>>>,
}

impl Stores {
    fn new(count: usize) -> Self {
        let directories = tempfile::tempdir().expect("a directory");
        let mut stores = Self { domain: domain(), directories, servers: Vec::new() };
        stores.servers.resize_with(count, || None);
        (0..count).for_each(|index| stores.start(index));
        stores
    }

    fn name(index: usize) -> String {
        format!("store-{index}")
    }

    fn start(&mut self, index: usize) {
        let name = Self::name(index);
        let mut options = StoreOptions::default();
        options.journal.segment_bytes = 1 << 20;
        let path = self.directories.path().join(&name);
        let server = StoreServer::open(self.domain.clone(), &name, &path, options);
        self.servers[index] = Some(server.expect("a store"));
    }

    fn stop(&mut self, index: usize) {
        self.servers[index].take().expect("a running store").close().expect("closed");
    }

    fn wipe(&self, index: usize) {
        let path = self.directories.path().join(Self::name(index));
        std::fs::remove_dir_all(path).expect("removed");
    }

    fn options(&self, rule: GroupRule) -> PersistentOptions {
        let names = (0..self.servers.len()).map(Self::name).collect();
        PersistentOptions::new(StoreGroups::new(vec![names], rule).expect("groups"))
    }

    fn open(&self, source: u64) -> PersistentPublisher<Domain> {
        let options = self.options(GroupRule::Any);
        PersistentPublisher::open(&self.domain, "orders", source, options).expect("a publisher")
    }

    fn poll(&mut self) {
        for server in self.servers.iter_mut().flatten() {
            server.poll().expect("a working disk");
        }
    }

    /// Sequences after the last message on disk, by store.
    fn next(&self, source: u64) -> Vec<Option<u64>> {
        let next = |server: &StoreServer<Domain>| {
            server.streams().find(|stream| stream.source == source).map(|stream| stream.next)
        };
        self.servers.iter().map(|it| it.as_ref().and_then(next)).collect()
    }
}

/// Polls all until `is_done`; returns the publisher's events.
#[track_caller]
fn until(
    stores: &mut Stores,
    publisher: &mut PersistentPublisher<Domain>,
    what: &str,
    mut is_done: impl FnMut(&mut Stores, &mut PersistentPublisher<Domain>) -> bool,
) -> Vec<SourceEvent> {
    let mut events = Vec::new();
    let deadline = Instant::now() + TIMEOUT;
    while !is_done(stores, publisher) {
        assert!(Instant::now() < deadline, "{what}: {events:?}");
        publisher.poll(|event| events.push(event));
        stores.poll();
        std::thread::yield_now();
    }
    events
}

#[track_caller]
fn send(stores: &mut Stores, publisher: &mut PersistentPublisher<Domain>, count: u64) {
    for _ in 0..count {
        until(stores, publisher, "a message is sent", |_, publisher| {
            let body = publisher.next().to_le_bytes();
            publisher.try_send(&body).is_ok()
        });
    }
}

#[track_caller]
fn until_stable(stores: &mut Stores, publisher: &mut PersistentPublisher<Domain>) {
    until(stores, publisher, "all is stable", |_, publisher| {
        publisher.is_registered() && publisher.stable() == publisher.next()
    });
}

#[test]
fn messages_become_stable_and_numbers_go_on_after_a_restart() {
    let mut stores = Stores::new(1);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 1_000);
    until_stable(&mut stores, &mut publisher);
    assert_eq!((publisher.stable(), stores.next(7)), (1_000, vec![Some(1_000)]));
    drop(publisher);

    stores.stop(0);
    stores.start(0);
    let mut publisher = stores.open(7);
    let events = until(&mut stores, &mut publisher, "registered", |_, it| it.is_registered());
    assert!(events.contains(&SourceEvent::Registered { next: 1_000 }), "{events:?}");
    assert_eq!(publisher.next(), 1_000);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    assert_eq!(stores.next(7), [Some(1_010)]);
}

#[test]
fn two_of_three_stores_are_enough_and_the_third_catches_up() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 500);
    stores.stop(2);
    // More than the flight: the publisher forgets them, so the store copies them from others.
    send(&mut stores, &mut publisher, 15_000);
    until_stable(&mut stores, &mut publisher);
    stores.start(2);
    until(&mut stores, &mut publisher, "caught up", |stores, _| {
        stores.next(7) == [Some(15_500); 3]
    });
}

#[test]
fn a_store_that_lost_its_data_is_taken_back_when_it_has_copied_all() {
    let mut stores = Stores::new(3);
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 12_000);
    until_stable(&mut stores, &mut publisher);
    stores.stop(1);
    stores.wipe(1);
    stores.start(1);
    until(&mut stores, &mut publisher, "copied", |stores, _| {
        stores.next(7) == [Some(12_000); 3]
    });
    // It counts again: with another store gone its vote is needed.
    until(&mut stores, &mut publisher, "taken back", |_, publisher| publisher.members() == 2);
    stores.stop(0);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
}

#[test]
fn a_second_publisher_under_the_same_id_takes_over() {
    let mut stores = Stores::new(1);
    let mut first = stores.open(7);
    send(&mut stores, &mut first, 10);
    let mut second = stores.open(7);
    until(&mut stores, &mut second, "registered", |_, it| it.is_registered());
    let is_superseded = |event: &SourceEvent| matches!(event, SourceEvent::Superseded { .. });
    let mut is_told = false;
    until(&mut stores, &mut second, "the first is told", |_, _| {
        first.poll(|event| is_told |= is_superseded(&event));
        is_told
    });
    let error = first.try_send(b"late").expect_err("refused");
    assert!(error.to_string().contains("another publisher") && !error.may_pass(), "{error}");
}

#[test]
fn bad_names_and_directories_are_refused_in_words() {
    let (domain, root) = (domain(), tempfile::tempdir().expect("a directory"));
    let open = |name: &str, path: &Path| {
        let opened = StoreServer::open(domain.clone(), name, path, StoreOptions::default());
        opened.err().map(|error| error.to_string()).unwrap_or_default()
    };
    assert!(open("a.b", root.path()).contains("without dots"));
    let file = root.path().join("file");
    std::fs::write(&file, "").expect("written");
    assert!(open("a", &file).contains("file"), "{}", open("a", &file));
    let path = root.path().join("a");
    let server = StoreServer::open(domain.clone(), "a", &path, StoreOptions::default());
    let second = open("a", &path);
    assert!(second.contains("process"), "{second}");
    drop(server);
    let options = PersistentOptions::with_store("a");
    let refused = PersistentPublisher::open(&domain, "_store.a", 7, options).err();
    assert!(refused.expect("refused").to_string().contains("_store."));
}

#[test]
fn frames_that_are_none_are_counted_and_harm_nobody() {
    use lanecast_transport::{Publish, Transport};
    let mut stores = Stores::new(1);
    let mut hostile = stores.domain.publisher("_store.store-0").expect("a publisher");
    assert!(hostile.wait_for_subscribers(1, TIMEOUT));
    let frames: [&[u8]; 4] = [b"", b"x", &[0xff; 300], &[1; 24]];
    frames.iter().for_each(|frame| hostile.send(frame).expect("sent"));
    let mut publisher = stores.open(7);
    send(&mut stores, &mut publisher, 10);
    until_stable(&mut stores, &mut publisher);
    let stats = stores.servers[0].as_ref().expect("running").stats();
    assert_eq!(stats.foreign_frames, 4, "{stats:?}");
    assert_eq!(stats.clients, 1);
}
