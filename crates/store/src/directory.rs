//! The directory of a store: its journal, and the identity of its data.

use crate::error::DirectoryError;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_journal::{Directory, Journal, JournalConfig};
use lanecast_os::event::ArmedEvent;
use lanecast_os::replace_file;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::Arc;

/// Directory of the journal.
const JOURNAL: &str = "journal";
/// File with the incarnation: the identity of the data, as 16 hexadecimal digits.
const INCARNATION: &str = "incarnation";
/// Mode of files that only this user can read.
pub(crate) const PRIVATE: u32 = 0o600;

/// An open directory.
pub(crate) struct StoreDirectory {
    pub(crate) incarnation: u64,
    pub(crate) journal: Journal<Directory>,
    /// Notified when the journal has come further.
    pub(crate) written: Arc<ArmedEvent>,
}

impl StoreDirectory {
    /// Files of the journal, and the checkpoints beside them, of the directory at `path`.
    pub(crate) fn storage(path: &Path, has_direct_writes: bool) -> Directory {
        Directory::new(path.join(JOURNAL)).with_direct_writes(has_direct_writes)
    }

    /// Opens the directory at `path`, or makes it; only this user can read a new one.
    pub(crate) fn open(
        path: &Path,
        config: JournalConfig,
        has_direct_writes: bool,
    ) -> Result<Self, DirectoryError> {
        let failed = |error| DirectoryError::Io { path: path.to_owned(), error };
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        let written = Arc::new(ArmedEvent::new().map_err(failed)?);
        let (listener, told) = (Arc::clone(&written), AtomicU64::new(0));
        // A batch that was taken is no news yet: the store would wake up for nothing. A disk that
        // fails is noticed with the next tick.
        let listener = move |persisted: u64| {
            if told.swap(persisted, Ordering::Relaxed) != persisted {
                listener.notify();
            }
        };
        let storage = Self::storage(path, has_direct_writes);
        let journal = Journal::open_with(storage, config, listener)?;
        // An empty journal has promised nothing, so whatever was here before is gone.
        let incarnation = if journal.recovered().last == 0 {
            draw_incarnation(path).map_err(failed)?
        } else {
            read_incarnation(path)?
        };
        Ok(Self { incarnation, journal, written })
    }
}

/// Draws a new identity, and keeps it before anything is promised under it.
fn draw_incarnation(directory: &Path) -> io::Result<u64> {
    let incarnation = lanecast_os::process::random()?;
    let text = format!("{incarnation:016x}\n");
    replace_file(&directory.join(INCARNATION), text.as_bytes(), PRIVATE)?;
    Ok(incarnation)
}

fn read_incarnation(directory: &Path) -> Result<u64, DirectoryError> {
    let path = directory.join(INCARNATION);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let digits = text.trim_end();
    let is_whole = digits.len() == 16;
    let number = is_whole.then(|| u64::from_str_radix(digits, 16).ok()).flatten();
    number.ok_or(DirectoryError::Incarnation(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_journal::Entry;
    use std::os::unix::fs::PermissionsExt;
    use std::time::Duration;

    fn open(path: &Path) -> Result<StoreDirectory, DirectoryError> {
        let config = JournalConfig { segment_bytes: 1 << 20, ..Default::default() };
        StoreDirectory::open(path, config, true)
    }

    #[test]
    fn data_keeps_its_identity_and_an_empty_journal_has_none() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("store");
        let first = open(&path).expect("opened").incarnation;
        let second = open(&path).expect("opened");
        assert_ne!(second.incarnation, first, "nothing was kept under the first");
        let entry = Entry { body: b"record", ..Entry::default() };
        second.journal.persist(&[entry], Duration::from_secs(60)).expect("persisted");
        let kept = second.incarnation;
        drop(second);
        assert_eq!(open(&path).expect("opened").incarnation, kept);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(&path.join(INCARNATION))), (0o700, 0o600));

        fs::write(path.join(INCARNATION), "12").expect("written");
        let error = open(&path).err().expect("refused").to_string();
        assert!(error.contains("identity") && error.contains("move"), "{error}");
        fs::remove_dir_all(path.join(JOURNAL)).expect("removed");
        assert_ne!(open(&path).expect("opened").incarnation, kept, "the data is gone");
    }
}
