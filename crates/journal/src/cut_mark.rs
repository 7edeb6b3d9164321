//! The mark of a cut: a file beside the segments with a number that each cut draws anew, so that a
//! program that has promised to keep records learns that some of them are gone.

use crate::storage::{
    OpenMode, Storage, StorageError, StorageErrorKind, StorageResult, StoredFile,
};

const NAME: &str = "cut";
const UNFINISHED: &str = "cut.new";
const DIGITS: usize = 16;

/// Writes a new mark durably; called before anything is cut.
pub(crate) fn write<S: Storage>(storage: &S) -> StorageResult<()> {
    let mark = lanecast_os::process::random().map_err(|error| StorageError {
        operation: "draw a number for",
        path: storage.path(NAME),
        kind: StorageErrorKind::Other,
        message: error.to_string(),
    })?;
    let file = storage.create(UNFINISHED)?;
    file.write_all_at(format!("{mark:016x}\n").as_bytes(), 0)?;
    file.sync_data()?;
    storage.rename(UNFINISHED, NAME)?;
    storage.sync_directory()
}

/// The mark of the last cut; `None` if nothing was ever cut.
pub(crate) fn read<S: Storage>(storage: &S) -> StorageResult<Option<u64>> {
    let file = match storage.open(NAME, OpenMode::Read) {
        Err(error) if error.kind == StorageErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let mut digits = [0; DIGITS];
    let filled = file.fill_at(&mut digits, 0)?;
    let text = str::from_utf8(&digits[..filled]).unwrap_or_default();
    // A damaged mark is one of some cut all the same.
    Ok(Some(u64::from_str_radix(text, 16).unwrap_or(u64::MAX)))
}
