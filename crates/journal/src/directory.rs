//! [`Storage`] over a directory of the file system.

use crate::direct::{self, DirectWrites};
use crate::file_name::OWNER;
use crate::storage::{
    Fill, OpenMode, Storage, StorageError, StorageErrorKind, StorageResult, StoredFile, Throttle,
};
use lanecast_os::{LockByte, durable_directory};
use rustix::fs::{Advice, FallocateFlags, fadvise, fallocate};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Zeros written per step of a preallocation: small, because a concurrent synchronization waits for
/// the whole step.
const ZEROS: usize = 1 << 20;

/// A directory of the file system.
#[derive(Clone, Debug)]
pub struct Directory {
    path: PathBuf,
    has_direct_writes: bool,
}

impl Directory {
    /// Alignment of batches that go past the page cache, in memory and in the file, in bytes: see
    /// [`Directory::with_direct_writes`].
    pub const BLOCK: usize = direct::BLOCK;

    /// The directory at `path`. Opening a journal for writing creates it.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self { path: path.as_ref().to_owned(), has_direct_writes: false }
    }

    /// Whether long batches go past the page cache (`O_DIRECT`), where the system can do that.
    /// Default no. A write costs the system a fraction of the CPU time then, and journals on one
    /// disk do not wait for each other's write-back. Who reads what was written last finds it on
    /// the disk, not in memory; readers ask for it ahead.
    #[must_use]
    pub fn with_direct_writes(self, has_direct_writes: bool) -> Self {
        Self { has_direct_writes, ..self }
    }

    fn file(&self, file: File, path: PathBuf) -> DirectoryFile {
        let direct = self.has_direct_writes.then(DirectWrites::default);
        DirectoryFile { file, direct, path }
    }

    /// Process id of the journal's writer if it is alive; 0 if its id is unreadable.
    pub fn owner(&self) -> Option<u32> {
        let path = self.path.join(OWNER);
        let file = lanecast_os::open(&path, false).ok()?;
        lanecast_os::is_locked(&file, 0).ok()?.then(|| named_in(&path).unwrap_or(0))
    }

    fn error(&self, operation: &'static str, name: &str, error: &io::Error) -> StorageError {
        failed(operation, self.path(name), error)
    }
}

fn failed(operation: &'static str, path: String, error: &io::Error) -> StorageError {
    let has_no_descriptor =
        matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE));
    let kind = match error.kind() {
        _ if has_no_descriptor => StorageErrorKind::NoDescriptor,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StorageErrorKind::NoSpace,
        io::ErrorKind::NotFound => StorageErrorKind::NotFound,
        _ => StorageErrorKind::Other,
    };
    StorageError { operation, path, kind, message: error.to_string() }
}

/// The process id in the owner file.
fn named_in(path: &Path) -> Option<u32> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Exclusive lock on the owner file; the system releases it when the process ends.
#[derive(Debug)]
pub struct DirectoryLock {
    _lock: LockByte,
}

impl Storage for Directory {
    type File = DirectoryFile;
    type Lock = DirectoryLock;

    fn path(&self, name: &str) -> String {
        if name.is_empty() {
            self.path.display().to_string()
        } else {
            self.path.join(name).display().to_string()
        }
    }

    fn lock(&self) -> StorageResult<DirectoryLock> {
        let error = |operation| move |source: io::Error| self.error(operation, OWNER, &source);
        let made = durable_directory(&self.path, 0o700);
        made.map_err(|source| self.error("make", "", &source))?;
        let path = self.path.join(OWNER);
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let file = options.open(&path).map_err(error("open"))?;
        match LockByte::try_take(file, 0).map_err(error("lock"))? {
            Ok(lock) => {
                let text = format!("{}\n", std::process::id());
                let file = lock.file();
                file.set_len(0).map_err(error("write"))?;
                // The lock alone counts; the id in the file is for messages, so a full disk is no
                // error.
                // Written after locking: the id is that of the lock's holder.
                let _ = file.write_all_at(text.as_bytes(), 0);
                Ok(DirectoryLock { _lock: lock })
            }
            Err(_) => {
                let pid = named_in(&path);
                let message = "it is locked".to_owned();
                let path = self.path("");
                Err(StorageError {
                    operation: "own",
                    path,
                    kind: StorageErrorKind::Locked { pid },
                    message,
                })
            }
        }
    }

    fn list(&self) -> StorageResult<Vec<String>> {
        let error = |source: io::Error| self.error("read the directory", "", &source);
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(error)? {
            // Names that are not UTF-8 cannot be segments.
            names.extend(entry.map_err(error)?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> StorageResult<DirectoryFile> {
        let mut options = OpenOptions::new();
        options.create(true).truncate(true).read(true).write(true).mode(0o600);
        let path = self.path.join(name);
        let file = options.open(&path).map_err(|source| self.error("make", name, &source))?;
        Ok(self.file(file, path))
    }

    fn open(&self, name: &str, mode: OpenMode) -> StorageResult<DirectoryFile> {
        let path = self.path.join(name);
        let opened = lanecast_os::open(&path, mode == OpenMode::Write);
        let file = opened.map_err(|source| self.error("open", name, &source))?;
        Ok(self.file(file, path))
    }

    fn remove(&self, name: &str) -> StorageResult<()> {
        fs::remove_file(self.path.join(name)).map_err(|source| self.error("remove", name, &source))
    }

    fn rename(&self, from: &str, to: &str) -> StorageResult<()> {
        let renamed = fs::rename(self.path.join(from), self.path.join(to));
        renamed.map_err(|source| self.error("rename", from, &source))
    }

    fn sync_directory(&self) -> StorageResult<()> {
        let synced = File::open(&self.path).and_then(|directory| directory.sync_all());
        synced.map_err(|source| self.error("synchronise", "", &source))
    }
}

/// An open file of a [`Directory`].
#[derive(Debug)]
pub struct DirectoryFile {
    file: File,
    direct: Option<DirectWrites>,
    path: PathBuf,
}

impl DirectoryFile {
    /// Bytes that went past the page cache: 0 if the directory has no such writes or the system
    /// refuses them.
    pub fn direct_bytes(&self) -> u64 {
        self.direct.as_ref().map_or(0, DirectWrites::bytes)
    }

    fn error(&self, operation: &'static str) -> impl Fn(io::Error) -> StorageError {
        move |source| failed(operation, self.path.display().to_string(), &source)
    }
}

impl StoredFile for DirectoryFile {
    fn length(&self) -> StorageResult<u64> {
        Ok(self.file.metadata().map_err(self.error("look at"))?.len())
    }

    fn preallocate(&self, bytes: u64, throttle: Throttle<'_>) -> StorageResult<()> {
        // Reserve first, so that a full disk fails before anything is written. File systems without
        // `fallocate` get their space from the zeros below.
        let is_reserved = match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => false,
            Ok(()) => true,
            Err(error) => return Err(self.error("reserve space for")(error.into())),
        };
        // Reserved blocks are unwritten extents: their first synchronization would also commit file
        // system metadata. Zeros written now keep that out of the append path. A writer that is
        // faster than this loses more by the disk's time for the zeros: it gets the blocks as they
        // are.
        let zeros = vec![0; ZEROS];
        let (mut offset, mut fill) = (0, Fill::Paced);
        while offset < bytes && !(is_reserved && fill == Fill::Reserved) {
            let length = (bytes - offset).min(ZEROS as u64);
            // Through the page cache: there, partial blocks of the writer find the rest of theirs.
            let zeros = &zeros[..length as usize];
            self.file.write_all_at(zeros, offset).map_err(self.error("write"))?;
            offset += length;
            if fill == Fill::Paced {
                // Otherwise all zeros reach the disk at once, and a concurrent synchronization
                // waits for them.
                self.sync_data()?;
            }
            fill = throttle(bytes - offset);
        }
        Ok(())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> StorageResult<usize> {
        loop {
            match self.file.write_at(bytes, offset) {
                Ok(0) => return Err(self.error("write")(io::ErrorKind::WriteZero.into())),
                // A signal; nothing was written.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(self.error("write")),
            }
        }
    }

    fn write_all_at(&self, bytes: &[u8], offset: u64) -> StorageResult<()> {
        let direct = self.direct.as_ref().map(|it| it.write(&self.file, bytes, offset));
        let direct = direct.unwrap_or(Ok(0..0)).map_err(self.error("write"))?;
        let ends = [0..direct.start, direct.end..bytes.len()];
        for end in ends.into_iter().filter(|end| !end.is_empty()) {
            let at = offset + end.start as u64;
            self.file.write_all_at(&bytes[end], at).map_err(self.error("write"))?;
        }
        Ok(())
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> StorageResult<usize> {
        loop {
            match self.file.read_at(bytes, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => return result.map_err(self.error("read")),
            }
        }
    }

    fn will_need(&self, offset: u64, bytes: u64) {
        if self.direct.is_some() {
            // Advice: what is not read ahead is read later.
            let _ = fadvise(&self.file, offset, NonZeroU64::new(bytes), Advice::WillNeed);
        }
    }

    fn sync_data(&self) -> StorageResult<()> {
        self.file.sync_data().map_err(self.error("synchronise"))
    }

    fn set_length(&self, bytes: u64) -> StorageResult<()> {
        self.file.set_len(bytes).map_err(self.error("cut"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_preallocation_in_a_hurry_reserves_the_rest() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = Directory::new(place.path());
        let (bytes, mut steps) = (4 * ZEROS as u64, 0);
        for fills in [[Fill::Paced; 4], [Fill::AtOnce; 4], [Fill::Reserved; 4]] {
            let file = directory.create("segment").expect("made");
            steps = 0;
            let mut throttle = |left| {
                steps += 1;
                assert_eq!(left, bytes - steps as u64 * ZEROS as u64);
                fills[steps - 1]
            };
            file.preallocate(bytes, &mut throttle).expect("preallocated");
            let metadata = file.file.metadata().expect("there");
            assert!(metadata.blocks() * 512 >= bytes, "{fills:?}: space for all of it");
            assert_eq!(file.length(), Ok(bytes));
            let mut end = [1; 8];
            assert_eq!(file.read_at(&mut end, bytes - 8), Ok(8));
            assert_eq!(end, [0; 8]);
        }
        // Without `fallocate` the zeros are the reservation.
        assert!(steps == 1 || steps == 4, "{steps} steps");
    }
}
