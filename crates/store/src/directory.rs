//! The directory of a store: its journal, and the identity of its data.

use crate::error::DirectoryError;
use crate::incarnation::Incarnation;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_journal::{Directory, Journal, JournalConfig, Repair};
use lanecast_os::durable_directory;
use lanecast_os::event::ArmedEvent;
use std::path::Path;
use std::sync::Arc;

/// Directory of the journal.
const JOURNAL: &str = "journal";
/// Mode of files that only this user can read.
pub(crate) const PRIVATE: u32 = 0o600;

/// An open directory.
pub(crate) struct StoreDirectory {
    pub(crate) incarnation: Incarnation,
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
        durable_directory(path, 0o700).map_err(failed)?;
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
        // Locked by the journal: no repair comes in between.
        let last_cut = Repair::last_cut(&Self::storage(path, false))
            .map_err(|error| DirectoryError::Journal(error.into()))?;
        // An empty journal has promised nothing, so whatever was here before is gone.
        let is_empty = journal.recovered().last == 0;
        let incarnation = Incarnation::open(path, is_empty, last_cut)?;
        Ok(Self { incarnation, journal, written })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_journal::Entry;
    use std::fs;
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
        assert_eq!((mode(&path), mode(&path.join("incarnation"))), (0o700, 0o600));

        fs::write(path.join("incarnation"), "12").expect("written");
        let error = open(&path).err().expect("refused").to_string();
        assert!(error.contains("identity") && error.contains("move"), "{error}");
        fs::remove_dir_all(path.join(JOURNAL)).expect("removed");
        assert_ne!(open(&path).expect("opened").incarnation, kept, "the data is gone");
    }

    /// Adds records, one batch each, so that they stand in several segments.
    fn add(store: &StoreDirectory, count: usize) {
        for _ in 0..count {
            let entry = Entry { body: &[7; 100_000], ..Entry::default() };
            store.journal.persist(&[entry], Duration::from_secs(60)).expect("persisted");
        }
    }

    #[test]
    fn data_that_a_repair_has_cut_or_a_copy_has_not_is_other_data() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("store");
        let store = open(&path).expect("opened");
        add(&store, 25);
        let (mut kept, last) = (store.incarnation, store.journal.recovered().last + 25);
        drop(store);
        let journal = Directory::new(path.join(JOURNAL));
        assert_eq!(Repair::last_cut(&journal), Ok(None));
        // The second time a whole segment goes.
        for damage in [500_000..600_000, 0..8_192] {
            let file = path.join(JOURNAL).join("0000000000000002.segment");
            let mut bytes = fs::read(&file).expect("read");
            bytes[damage].fill(0xAA);
            fs::write(&file, bytes).expect("written");
            assert!(open(&path).is_err(), "damaged");
            let plan = Repair::plan(&journal).expect("planned");
            assert_eq!(plan.cut.is_none(), plan.removed.contains(&2), "{plan:?}");
            plan.apply(&journal).expect("repaired");
            let store = open(&path).expect("opened");
            assert!((1..last).contains(&store.journal.recovered().last), "some records are left");
            assert_ne!(store.incarnation.number, kept.number, "durable records are gone");
            assert!(store.incarnation.has_older_records());
            kept = store.incarnation;
            drop(store);
            assert_eq!(open(&path).expect("opened").incarnation, kept, "once for each cut");
        }
        // As the guide has an operator do with an older copy.
        fs::remove_file(path.join("incarnation")).expect("removed");
        let copy = open(&path).expect("opened").incarnation;
        assert!(copy.number != kept.number && copy.has_older_records());
        assert_eq!(open(&path).expect("opened").incarnation, copy);
    }
}
