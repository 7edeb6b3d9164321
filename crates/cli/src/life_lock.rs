//! Locks on directories and namespaces as proof of life of the process that made them: the system
//! releases them when it ends, however that comes.

use anyhow::Context as _;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The directory or namespace at `path` with a lock on it, for as long as the file is open; none if
/// it was removed before.
pub(crate) fn hold(path: &Path) -> anyhow::Result<Option<File>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    // Where a file system has no such locks, others cannot take one either, and remove nothing.
    let _ = file.lock();
    Ok(names(path, &file).then_some(file))
}

/// Whether `path` is the name of this file, and not a link to it.
pub(crate) fn names(path: &Path, file: &File) -> bool {
    let (named, open) = (std::fs::symlink_metadata(path), file.metadata());
    let number = |it: Metadata| (it.dev(), it.ino());
    matches!((named.map(number), open.map(number)), (Ok(named), Ok(open)) if named == open)
}
