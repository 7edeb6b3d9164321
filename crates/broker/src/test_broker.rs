//! An engine without sockets, for tests.

use crate::config::server_config::ServerConfig;
use crate::engine::Engine;
use crate::ids::ClientId;
use crate::time::Now;
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};

/// An engine, and its time.
#[derive(Debug)]
pub(crate) struct TestBroker {
    pub(crate) engine: Engine,
    pub(crate) now: Now,
}

impl TestBroker {
    pub(crate) fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut config = ServerConfig::default();
        change(&mut config);
        let now = Now { monotonic_ns: 1, unix_ns: 1 };
        Self { engine: Engine::new(config).expect("a configuration"), now }
    }

    pub(crate) fn client(&mut self) -> ClientId {
        self.engine.connect(self.now.monotonic_ns).expect("capacity")
    }

    /// Executes a command of a client.
    pub(crate) fn send(&mut self, id: ClientId, payload: &str) {
        self.engine.execute(self.now, id, payload.as_bytes());
    }

    /// The payloads that wait for a client.
    pub(crate) fn received(&mut self, id: ClientId) -> Vec<String> {
        let mut bytes = Vec::new();
        self.engine.send(id, |slices| {
            slices.iter().for_each(|slice| bytes.extend_from_slice(slice));
            Ok(slices.iter().map(|slice| slice.len()).sum())
        });
        let mut payloads = Vec::new();
        while let Some(total) = frame_bytes(&bytes, 1 << 30).expect("a length") {
            let payload = bytes[LENGTH_BYTES..total].to_vec();
            payloads.push(String::from_utf8(payload).expect("text"));
            bytes.drain(..total);
        }
        payloads
    }

    /// Runs one turn; whether there is more to do.
    pub(crate) fn turn(&mut self) -> bool {
        self.engine.on_time(self.now)
    }

    /// Runs turns until nothing is left to do; returns how many.
    pub(crate) fn run_until_idle(&mut self) -> usize {
        let mut turns = 0;
        while self.turn() {
            turns += 1;
            assert!(turns < 1_000_000, "it ends");
        }
        turns
    }
}
