//! Locks on directories and namespaces as proof of life of the process that made them: the system
//! releases them when it ends, however that comes.

use anyhow::Context as _;
use std::fs::File;
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
    let (held, named) = (file.metadata()?, std::fs::metadata(path));
    let is_there = named.is_ok_and(|it| (it.dev(), it.ino()) == (held.dev(), held.ino()));
    Ok(is_there.then_some(file))
}
