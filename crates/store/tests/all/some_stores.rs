//! Some stores in one process, over shared memory of threads.

use lanecast_shm::{Domain, DomainSettings, Visibility};
use lanecast_store::{
    GroupRule, PersistentOptions, PersistentPublisher, SourceEvent, StoreGroups, StoreOptions,
    StoreServer,
};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A domain of threads that no other test uses.
pub(crate) fn domain(directories: &TempDir) -> Domain {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        directory: directories.path().to_owned(),
        window_bytes: 1 << 20,
        ..DomainSettings::default()
    };
    Domain::open(settings).expect("a domain")
}

/// Some stores with their directories; each may be down.
pub(crate) struct Stores {
    pub(crate) domain: Domain,
    directories: TempDir,
    pub(crate) servers: Vec<Option<StoreServer<Domain>>>,
    options: StoreOptions,
}

impl Stores {
    pub(crate) fn new(count: usize) -> Self {
        let directories = tempfile::tempdir().expect("a directory");
        let domain = domain(&directories);
        let mut options = StoreOptions::default();
        options.journal.segment_bytes = 1 << 20;
        options.checkpoint_bytes = 200_000;
        let mut stores = Self { domain, directories, servers: Vec::new(), options };
        stores.servers.resize_with(count, || None);
        (0..count).for_each(|index| stores.start(index));
        stores
    }

    /// Adds a store with other options than usual.
    pub(crate) fn add(&mut self, options: StoreOptions) {
        self.options = options;
        self.servers.push(None);
        self.start(self.servers.len() - 1);
    }

    pub(crate) fn name(index: usize) -> String {
        format!("store-{index}")
    }

    pub(crate) fn start(&mut self, index: usize) {
        let name = Self::name(index);
        let options = self.options.clone();
        let path = self.path(index);
        let server = StoreServer::open(self.domain.clone(), &name, &path, options);
        self.servers[index] = Some(server.expect("a store"));
    }

    pub(crate) fn path(&self, index: usize) -> PathBuf {
        self.directories.path().join(Self::name(index))
    }

    pub(crate) fn stop(&mut self, index: usize) {
        self.servers[index].take().expect("a running store").close().expect("closed");
    }

    pub(crate) fn wipe(&self, index: usize) {
        std::fs::remove_dir_all(self.path(index)).expect("removed");
    }

    pub(crate) fn groups(&self) -> StoreGroups {
        let names = (0..self.servers.len()).map(Self::name).collect();
        StoreGroups::new(vec![names], GroupRule::Any).expect("groups")
    }

    pub(crate) fn open(&self, source: u64) -> PersistentPublisher<Domain> {
        let options = PersistentOptions::new(self.groups());
        PersistentPublisher::open(&self.domain, "orders", source, options).expect("a publisher")
    }

    pub(crate) fn poll(&mut self) {
        for server in self.servers.iter_mut().flatten() {
            server.poll().expect("a working disk");
        }
    }

    /// Sequences after the last message on disk, by store.
    pub(crate) fn next(&self, source: u64) -> Vec<Option<u64>> {
        let next = |server: &StoreServer<Domain>| {
            server.streams().find(|stream| stream.source == source).map(|stream| stream.next)
        };
        self.servers.iter().map(|it| it.as_ref().and_then(next)).collect()
    }
}

/// Polls all until `is_done`; returns the publisher's events.
#[track_caller]
pub(crate) fn until(
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
pub(crate) fn send(stores: &mut Stores, publisher: &mut PersistentPublisher<Domain>, count: u64) {
    for _ in 0..count {
        until(stores, publisher, "a message is sent", |_, publisher| {
            let body = publisher.next().to_le_bytes();
            publisher.try_send(&body).is_ok()
        });
    }
}

#[track_caller]
pub(crate) fn until_stable(stores: &mut Stores, publisher: &mut PersistentPublisher<Domain>) {
    until(stores, publisher, "all is stable", |_, publisher| {
        publisher.is_registered() && publisher.stable() == publisher.next()
    });
}
