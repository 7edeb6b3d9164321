//! Hostile bytes: no content of the files causes a panic, a hang or a crash, and errors name the
//! file.
//!
//! Random cases follow from a seed, printed on failure; `SEED` sets it.

mod files;
mod forgery;
mod live;
mod rng;

use lanecast_shm::{Domain, DomainSettings, Publisher, Subscriber};
use lanecast_transport::{Event, Publish, Subscribe, Transport};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);
const WINDOW_BYTES: u64 = 64 << 10;

/// A domain with one honest publisher, whose messages must always arrive.
struct Scene {
    beacon: Publisher,
    domain: Domain,
    directory: TempDir,
}

impl Scene {
    /// Publisher and subscriber of this process join as if they were in two processes.
    fn new() -> Self {
        Self::open(false)
    }

    /// One domain with joins through the directory, one with local joins.
    fn remote_and_local() -> [Self; 2] {
        [false, true].map(Self::open)
    }

    fn open(local_join: bool) -> Self {
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let domain = Domain::open(DomainSettings {
            directory: directory.path().join("domain"),
            window_bytes: WINDOW_BYTES,
            local_join,
            topics_max: 8,
            liveness: Duration::from_millis(20),
            ..DomainSettings::default()
        });
        let domain = domain.expect("a domain");
        let beacon = domain.publisher("beacon").expect("a publisher");
        Self { beacon, domain, directory }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("domain")
    }

    /// A subscriber that has joined all existing sessions, forged or not; and whether there were
    /// events of others than the beacon.
    fn subscriber(&mut self, topic: &str) -> (Subscriber, bool) {
        let mut subscriber = self.domain.subscriber(&["beacon", topic]).expect("a subscriber");
        let beacon = self.beacon.session();
        // Sessions are joined in the order of their numbers, and forged ones have small numbers.
        let (mut seen, mut others) = (false, false);
        until("the beacon", || {
            subscriber.poll(64, |event| match event {
                Event::Joined(stream) if stream.session == beacon => seen = true,
                Event::Message(message) => {
                    let sum: u64 = message.bytes().iter().copied().map(u64::from).sum();
                    others |= std::hint::black_box(sum) < u64::MAX;
                }
                _ => others = true,
            });
            seen
        });
        (subscriber, others)
    }
}

/// Polls until `done`.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < PATIENCE, "waited in vain: {what}");
        std::thread::yield_now();
    }
}
