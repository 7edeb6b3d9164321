//! Counters of a domain, which other processes can read.

use crate::settings::{DomainSettings, Visibility};
use lanecast_stats::{CounterLayout, Counters};

const LABELS: [&str; 4] = ["sessions joined", "stale sessions removed", "errors", "joins deferred"];
const JOINED: usize = 0;
const RECLAIMED: usize = 1;
const ERRORS: usize = 2;
const JOINS_DEFERRED: usize = 3;

/// A domain's counters. Without a file (if the disk is full, or the domain is visible within the
/// process only) nothing is counted, and the transport works all the same.
#[derive(Debug)]
pub(crate) struct Telemetry {
    counters: Option<Counters>,
}

impl Telemetry {
    pub(crate) fn open(settings: &DomainSettings) -> Self {
        if settings.visibility == Visibility::Process {
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

    /// Counts a failed join that is retried later.
    pub(crate) fn join_deferred(&self) {
        self.add(JOINS_DEFERRED, 1);
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
