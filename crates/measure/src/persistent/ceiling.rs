//! The ceiling of a disk: messages that a bare program appends to a file and synchronizes, through
//! the system's page cache and past it.

use lanecast_journal::{Directory, Storage, StorageResult, StoredFile};
use serde::Serialize;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longest batch, which is in memory, in bytes.
const LONGEST_BATCH: usize = 1 << 30;
/// Alignment of batches, in memory and in the file: without it they go through the page cache.
const BLOCK: usize = Directory::BLOCK;
/// Name of the file.
const FILE: &str = "ceiling";

/// Parameters of a run.
#[derive(Clone, Copy, Debug)]
pub struct CeilingSettings {
    /// The length of each message, in bytes.
    pub size: usize,
    /// Messages between two synchronizations.
    pub batch: usize,
    /// Most messages of each of the two ways.
    pub messages: u64,
    /// Longest time of each.
    pub time: Duration,
}

/// Result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CeilingResult {
    /// The length of each message, in bytes.
    pub size: usize,
    /// Messages between two synchronizations.
    pub batch: usize,
    /// Messages that were written and synchronized.
    pub messages: u64,
    /// Synchronizations (`fdatasync`).
    pub syncs: u64,
    /// Time from before the first write to after the last synchronization.
    pub duration_ns: u64,
    /// Messages a second.
    pub rate: f64,
    /// Bytes a second.
    pub bytes_per_second: f64,
    /// Whether the batches went past the page cache (`O_DIRECT`): not where the system refuses
    /// that, nor if they are short.
    pub past_cache: bool,
}

/// Appends messages to a new file in `directory`, with an `fdatasync` after each batch; removes the
/// file. Once through the page cache and once past it, as stores write; the faster one is the
/// ceiling. `stop` ends it early.
///
/// # Errors
/// If a batch is longer than 1 GiB, or the file cannot be written.
pub fn ceiling(
    directory: &Path,
    settings: CeilingSettings,
    stop: &dyn Fn() -> bool,
) -> io::Result<CeilingResult> {
    let length = settings.size.saturating_mul(settings.batch.max(1));
    if length > LONGEST_BATCH {
        let why = format!("batches of {length} bytes are too long: {LONGEST_BATCH} at most");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let [cached, direct] =
        [false, true].map(|past_cache| run(directory, (settings, length), past_cache, stop));
    let (cached, direct) = (cached?, direct?);
    Ok(if direct.rate > cached.rate { direct } else { cached })
}

fn run(
    directory: &Path,
    (settings, length): (CeilingSettings, usize),
    past_cache: bool,
    stop: &dyn Fn() -> bool,
) -> io::Result<CeilingResult> {
    let CeilingSettings { size, batch, messages, time } = settings;
    let memory = vec![0x5a; length + BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK).min(BLOCK);
    let bytes = &memory[start..start + length];
    let storage = Directory::new(directory).with_direct_writes(past_cache);
    let file = storage.create(FILE).map_err(io::Error::other)?;
    let (mut written, mut syncs) = (0_u64, 0_u64);
    let begin = Instant::now();
    let outcome = loop {
        let offset = syncs * length.next_multiple_of(BLOCK) as u64;
        if let Err(error) = append(&file, bytes, offset) {
            break Err(error);
        }
        (written, syncs) = (written + batch.max(1) as u64, syncs + 1);
        if written >= messages || begin.elapsed() >= time || stop() {
            break Ok(begin.elapsed());
        }
    };
    let past_cache = file.direct_bytes() > 0;
    drop(file);
    let removed = storage.remove(FILE);
    let duration = outcome.map_err(io::Error::other)?;
    removed.map_err(io::Error::other)?;
    let rate = written as f64 / duration.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(CeilingResult {
        size,
        batch: batch.max(1),
        messages: written,
        syncs,
        duration_ns: u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX),
        rate,
        bytes_per_second: rate * size as f64,
        past_cache,
    })
}

fn append(file: &impl StoredFile, bytes: &[u8], offset: u64) -> StorageResult<()> {
    file.write_all_at(bytes, offset)?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_in_whole_batches_and_nothing_is_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let time = Duration::from_secs(600);
        let settings = CeilingSettings { size: 100, batch: 30, messages: 100, time };
        let found = ceiling(directory.path(), settings, &|| false).expect("written");
        assert_eq!((found.messages, found.syncs, found.size, found.batch), (120, 4, 100, 30));
        assert!(!found.past_cache, "short batches go through it");
        assert!(found.rate > 0.0 && found.bytes_per_second > 99.0 * found.rate);
        let stopped = ceiling(directory.path(), settings, &|| true).expect("written");
        assert_eq!(stopped.syncs, 1);
        assert_eq!(directory.path().read_dir().expect("readable").count(), 0);
        let nowhere = directory.path().join("none");
        assert!(ceiling(&nowhere, settings, &|| false).is_err());
        let endless = CeilingSettings { size: usize::MAX, ..settings };
        let error = ceiling(directory.path(), endless, &|| false).expect_err("refused");
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
