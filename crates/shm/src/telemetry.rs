//! What a domain counts about itself, readable from outside.

use crate::settings::{Reach, Settings};
use lanecast_stats::{CounterLayout, Counters};

const LABELS: [&str; 4] = ["sessions joined", "stale sessions removed", "errors", "joins put off"];
const JOINED: usize = 0;
const RECLAIMED: usize = 1;
const ERRORS: usize = 2;
const PUT_OFF: usize = 3;

/// A domain's counters; without a file (the disk is full, say, or nobody outside is to see the
/// domain) nothing is counted, and the transport works all the same.
#[derive(Debug)]
pub(crate) struct Telemetry {
    counters: Option<Counters>,
}

impl Telemetry {
    pub(crate) fn open(settings: &Settings) -> Self {
        if settings.reach == Reach::Process {
            return Self { counters: None };
        }
        let mode = settings.access.read_mode();
        Self {
            counters: Counters::create(
                &settings.directory,
                mode,
                &CounterLayout::process(&LABELS, 0),
            )
            .ok(),
        }
    }

    pub(crate) fn joined(&self) {
        self.add(JOINED, 1);
    }

    pub(crate) fn reclaimed(&self, sessions: usize) {
        self.add(RECLAIMED, sessions as u64);
    }

    /// A session could not be joined, and is tried again later.
    pub(crate) fn put_off(&self) {
        self.add(PUT_OFF, 1);
    }

    pub(crate) fn error(&self, text: &str) {
        self.add(ERRORS, 1);
        if let Some(counters) = &self.counters {
            counters.error(text);
        }
    }

    fn add(&self, index: usize, count: u64) {
        if let Some(counters) = &self.counters {
            counters.add(index, count);
        }
    }
}
