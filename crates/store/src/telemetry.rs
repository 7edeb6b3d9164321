//! Counters of a store in a file, read by `lanecast stat`.

use crate::log::JournalLog;
use crate::stats::StoreStats;
use lanecast_journal::Storage;
use lanecast_persistence::{Nanos, Store};
use lanecast_stats::{CounterLayout, CounterOwner, Counters, Role};
use std::path::Path;

/// Time between two updates of the file, in nanoseconds: each looks at all streams.
const UPDATE_INTERVAL: Nanos = 250_000_000;
/// File mode: readable by the user alone.
const MODE: u32 = 0o600;

/// Sums over the streams of a store.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    streams: u64,
    copying: u64,
    messages: u64,
    bytes: u64,
    unconsumed: u64,
}

/// A counter's label, and the function that reads its value.
type Column = (&'static str, fn(&StoreStats, &Sums) -> u64);

const COLUMNS: [Column; 18] = [
    ("streams", |_, sums| sums.streams),
    ("streams being copied", |_, sums| sums.copying),
    ("messages kept", |_, sums| sums.messages),
    ("bytes kept", |_, sums| sums.bytes),
    ("messages not consumed", |_, sums| sums.unconsumed),
    ("messages", |stats, _| stats.messages),
    ("frames", |stats, _| stats.frames),
    ("frames that are none", |stats, _| stats.foreign_frames),
    ("frames of other versions", |stats, _| stats.other_versions),
    ("requests and replies refused", |stats, _| stats.refused),
    ("clients", |stats, _| stats.clients as u64),
    ("bytes waiting for the disk", |stats, _| stats.pending_bytes as u64),
    ("checkpoints", |stats, _| stats.checkpoints),
    ("records read back for checkpoints", |stats, _| stats.read_back),
    ("messages given up unconsumed", |stats, _| stats.given_up),
    ("messages too long to keep", |stats, _| stats.too_long),
    ("requests for streams refused", |stats, _| stats.refused_streams),
    ("disk is full", |stats, _| u64::from(stats.is_disk_full)),
];

/// The counters file of a store, and the time of its next update.
#[derive(Debug)]
pub(crate) struct Telemetry {
    file: Option<Counters>,
    due: Nanos,
}

impl Telemetry {
    /// Opens the file of the store `name` in `directory`. Without a file (the disk is full, say)
    /// the store works all the same.
    pub(crate) fn open(directory: Option<&Path>, name: &str, incarnation: u64) -> Self {
        let owner = CounterOwner {
            role: Role::Store,
            session: incarnation,
            transport: "store",
            address: name,
            group: "",
        };
        let labels = COLUMNS.map(|(label, _)| label);
        let layout = CounterLayout::session(&labels, owner);
        let file = directory.and_then(|directory| Counters::create(directory, MODE, &layout).ok());
        // Zero: the first update comes at once, so that the file is never seen empty for long.
        let due = if file.is_some() { 0 } else { Nanos::MAX };
        Self { file, due }
    }

    /// Whether the counters are due to be written.
    pub(crate) const fn is_due(&self, now: Nanos) -> bool {
        self.due <= now
    }

    /// Writes the counters.
    #[cold]
    pub(crate) fn write<S: Storage>(
        &mut self,
        now: Nanos,
        stats: &StoreStats,
        machine: &Store,
        log: &JournalLog<S>,
    ) {
        let Some(file) = &self.file else { return };
        let mut sums = Sums::default();
        for stream in machine.summaries() {
            sums.streams += 1;
            sums.copying += u64::from(stream.is_copying);
            sums.messages += stream.next - stream.first;
            sums.bytes += log.index(stream.number).map_or(0, |it| it.bytes_from(stream.first));
            sums.unconsumed += stream.next - stream.consumed.max(stream.first);
        }
        for (index, (_, value)) in COLUMNS.iter().enumerate() {
            file.set(index, value(stats, &sums));
        }
        self.due = now.saturating_add(UPDATE_INTERVAL);
    }
}
