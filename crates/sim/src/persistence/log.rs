//! A store's log, on a disk that forgets what was not synchronized.

use crate::rng::SimRng;
use lanecast_persistence::{LogFull, Store, StoreLog};
use lanecast_wire::store::LogRecord;
use std::collections::BTreeMap;

/// Records of one store. Survives the store's crashes.
#[derive(Clone, Debug, Default)]
pub struct SimLog {
    records: Vec<Vec<u8>>,
    persisted: usize,
    /// Messages by stream and sequence, the latest under each.
    messages: BTreeMap<(u32, u64), usize>,
    /// The disk takes nothing more.
    is_full: bool,
    /// The most records that wait for the disk.
    pending_max: usize,
    /// Times of the records, of a log with a clock. Without one an exploration tells no states
    /// apart that behave alike.
    clock: Option<LogClock>,
}

/// A log's clock.
#[derive(Clone, Debug, Default)]
struct LogClock {
    now: u64,
    /// Times of all records.
    times: Vec<u64>,
    /// Sequences and times of messages that were written since they were last taken.
    written: Vec<(u64, u64)>,
}

impl SimLog {
    /// An empty log, of which at most `pending_max` records wait for the disk.
    pub fn new(pending_max: usize) -> Self {
        Self { pending_max, ..Self::default() }
    }

    /// The same with a clock.
    pub fn with_clock(pending_max: usize) -> Self {
        Self { clock: Some(LogClock::default()), ..Self::new(pending_max) }
    }

    /// Sets the clock, if there is one: the time of the next records.
    pub const fn set_time(&mut self, unix_ns: u64) {
        if let Some(clock) = &mut self.clock {
            clock.now = unix_ns;
        }
    }

    /// Takes sequences and times of the messages that were written since.
    pub fn take_written(&mut self) -> Vec<(u64, u64)> {
        self.clock.as_mut().map(|clock| std::mem::take(&mut clock.written)).unwrap_or_default()
    }

    /// Whether records wait for the disk.
    pub const fn is_pending(&self) -> bool {
        self.persisted < self.records.len()
    }

    /// The disk takes nothing more from here on.
    pub const fn fill(&mut self) {
        self.is_full = true;
    }

    /// The disk has written some of the records that wait.
    pub fn synchronize(&mut self, rng: &mut SimRng) {
        if self.is_full {
            return;
        }
        let (low, high) = (self.persisted as u64, self.records.len() as u64);
        let all = rng.percent(70);
        self.persisted = if all { high } else { rng.within(low..=high) } as usize;
    }

    /// The store has died: a part of what waits for the disk is lost.
    pub fn crash(&mut self, rng: &mut SimRng) {
        self.persisted = rng.within(self.persisted as u64..=self.records.len() as u64) as usize;
        self.cut();
    }

    fn cut(&mut self) {
        self.records.truncate(self.persisted);
        if let Some(clock) = &mut self.clock {
            clock.times.truncate(self.persisted);
        }
        self.messages.clear();
        for (index, record) in self.records.iter().enumerate() {
            note(&mut self.messages, index, record);
        }
    }

    /// A defect: records that were told to be on disk are lost.
    pub fn lose_last(&mut self, count: usize) {
        self.persisted = self.persisted.saturating_sub(count);
        self.cut();
    }

    /// A defect: the promises to refuse earlier runs are lost.
    pub fn forget_promises(&mut self) {
        let is_promise =
            |bytes: &Vec<u8>| matches!(LogRecord::read(bytes), Some(LogRecord::Promised { .. }));
        let is_kept: Vec<bool> = self.records.iter().map(|bytes| !is_promise(bytes)).collect();
        let mut kept = is_kept.iter();
        self.records.retain(|_| kept.next() == Some(&true));
        if let Some(clock) = &mut self.clock {
            let mut kept = is_kept.iter();
            clock.times.retain(|_| kept.next() == Some(&true));
        }
        self.persisted = self.records.len();
        self.cut();
    }

    /// The disk has written everything.
    pub const fn synchronize_all(&mut self) {
        self.persisted = self.records.len();
    }

    /// The store has died, and with it everything that waited for the disk.
    pub fn crash_unwritten(&mut self) {
        self.cut();
    }

    /// The data is gone.
    pub fn wipe(&mut self) {
        self.records.clear();
        if let Some(clock) = &mut self.clock {
            clock.times.clear();
        }
        self.messages.clear();
        self.persisted = 0;
    }

    /// Time of the record with this index.
    fn time(&self, index: usize) -> u64 {
        self.clock.as_ref().map_or(index as u64, |clock| clock.times[index])
    }

    /// A store as it comes back.
    ///
    /// # Panics
    /// If a record cannot be read, or contradicts those before it.
    pub fn restore(&self, mut store: Store) -> Store {
        for bytes in &self.records {
            let record = LogRecord::read(bytes).expect("a record that was written");
            store.replay(&record).expect("records that follow from each other");
        }
        store
    }
}

/// Keeps where a message is; a truncation makes later ones void.
fn note(messages: &mut BTreeMap<(u32, u64), usize>, index: usize, bytes: &[u8]) {
    match LogRecord::read(bytes) {
        Some(
            LogRecord::Message { stream, sequence, .. }
            | LogRecord::Copied { stream, sequence, .. },
        ) => {
            messages.insert((stream, sequence), index);
        }
        Some(LogRecord::Truncated { stream, next }) => {
            messages.retain(|(it, sequence), _| *it != stream || *sequence < next);
        }
        _ => {}
    }
}

impl StoreLog for SimLog {
    fn append(&mut self, record: &LogRecord<'_>) -> Result<u64, LogFull> {
        if self.records.len() - self.persisted >= self.pending_max {
            return Err(LogFull);
        }
        let mut bytes = Vec::new();
        record.write(&mut bytes);
        note(&mut self.messages, self.records.len(), &bytes);
        self.records.push(bytes);
        if let Some(LogClock { now, times, written }) = &mut self.clock {
            let (message, time) = match record {
                LogRecord::Message { sequence, .. } => (Some(*sequence), *now),
                LogRecord::Copied { sequence, unix_ns, .. } => (Some(*sequence), *unix_ns),
                _ => (None, *now),
            };
            times.push(time);
            written.extend(message.map(|sequence| (sequence, time)));
        }
        Ok(self.records.len() as u64)
    }

    fn persisted(&self) -> u64 {
        self.persisted as u64
    }

    /// Without a clock, time is that of positions: each record is written one nanosecond after the
    /// one before.
    fn first_since(&self, stream: u32, unix_ns: u64) -> Option<u64> {
        let of_stream = self.messages.range((stream, 0)..=(stream, u64::MAX));
        let is_older = |(_, index): &(&(u32, u64), &usize)| self.time(**index) < unix_ns;
        let mut later = of_stream.clone().skip_while(is_older);
        let end = of_stream.last().map_or(0, |((_, sequence), _)| sequence + 1);
        Some(later.next().map_or(end, |((_, sequence), _)| *sequence))
    }

    fn bytes_from(&self, stream: u32, from: u64) -> u64 {
        let messages = self.messages.range((stream, from)..=(stream, u64::MAX));
        messages.map(|(_, index)| self.records[*index].len() as u64).sum()
    }

    fn unix_ns(&self) -> u64 {
        self.clock.as_ref().map_or(self.records.len() as u64, |clock| clock.now)
    }

    /// Without a clock copies have no times: with them an exploration would tell states apart that
    /// behave alike.
    fn read(&self, stream: u32, from: u64, visit: &mut dyn FnMut(u64, u64, &[u8]) -> bool) {
        for (expected, ((_, sequence), index)) in
            (from..).zip(self.messages.range((stream, from)..=(stream, u64::MAX)))
        {
            let Some(LogRecord::Message { body, .. } | LogRecord::Copied { body, .. }) =
                LogRecord::read(&self.records[*index])
            else {
                return;
            };
            let time = self.clock.as_ref().map_or(0, |clock| clock.times[*index]);
            if *sequence != expected || !visit(*sequence, time, body) {
                return;
            }
        }
    }
}
