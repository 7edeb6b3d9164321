//! For tests: a hub without sockets, and what its clients say and hear.

use crate::client::ClientId;
use crate::config::server_config::ServerConfig;
use crate::engine::{Engine, Now};
use lanecast_wire::command::{LENGTH_BYTES, frame_bytes};

/// A hub, and the time there.
#[derive(Debug)]
pub(crate) struct TestBroker {
    pub(crate) hub: Engine,
    pub(crate) at: Now,
}

impl TestBroker {
    pub(crate) fn new(change: impl FnOnce(&mut ServerConfig)) -> Self {
        let mut settings = ServerConfig::default();
        change(&mut settings);
        let at = Now { now: 1, unix_ns: 1 };
        Self { hub: Engine::new(settings).expect("settings"), at }
    }

    pub(crate) fn client(&mut self) -> ClientId {
        self.hub.connect(self.at.now).expect("room")
    }

    pub(crate) fn say(&mut self, id: ClientId, payload: &str) {
        self.hub.receive(self.at, id, payload.as_bytes());
    }

    /// The payloads that wait for a client.
    pub(crate) fn heard(&mut self, id: ClientId) -> Vec<String> {
        let mut bytes = Vec::new();
        let sent = self.hub.send(id, |slices| {
            slices.iter().for_each(|slice| bytes.extend_from_slice(slice));
            Ok(slices.iter().map(|slice| slice.len()).sum())
        });
        sent.expect("nothing fails here");
        let mut payloads = Vec::new();
        while let Some(total) = frame_bytes(&bytes, 1 << 30).expect("a length") {
            let payload = bytes[LENGTH_BYTES..total].to_vec();
            payloads.push(String::from_utf8(payload).expect("text"));
            bytes.drain(..total);
        }
        payloads
    }

    /// One more turn; whether there is more to do.
    pub(crate) fn turn(&mut self) -> bool {
        self.hub.on_time(self.at);
        self.hub.advance(self.at)
    }

    /// Turns until nothing is left to do; how many those were.
    pub(crate) fn rest(&mut self) -> usize {
        let mut turns = 0;
        while self.turn() {
            turns += 1;
            assert!(turns < 1_000_000, "it ends");
        }
        turns
    }
}
