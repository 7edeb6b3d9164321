//! The file operations that a journal needs. Tests and fuzzers use a simulated disk in place of
//! [`Directory`](crate::Directory).

use core::fmt;

/// Kind of a storage error, as far as the journal distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageErrorKind {
    /// The disk or quota is full.
    NoSpace,
    /// The process, or the system, has no free file descriptor.
    NoDescriptor,
    /// The file does not exist.
    NotFound,
    /// Another process has locked the directory.
    Locked {
        /// Process id of the owner, if known.
        pid: Option<u32>,
    },
    /// Anything else.
    Other,
}

/// A failed file operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError {
    /// The operation, such as `synchronise`.
    pub operation: &'static str,
    /// The file or directory.
    pub path: String,
    /// Kind of error.
    pub kind: StorageErrorKind,
    /// The system's error message.
    pub message: String,
}

impl StorageError {
    /// Whether the same operation may succeed later: there is space then, or a free descriptor.
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(self.kind, StorageErrorKind::NoSpace | StorageErrorKind::NoDescriptor)
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, path, kind, message } = self;
        match kind {
            StorageErrorKind::NoSpace => write!(
                f,
                "cannot {operation} {path}: {message}; free some space, and appending continues by \
                 itself"
            ),
            StorageErrorKind::NoDescriptor => write!(
                f,
                "cannot {operation} {path}: {message}; raise `ulimit -n`: it is tried again"
            ),
            StorageErrorKind::NotFound => {
                write!(f, "cannot {operation} {path}: the file does not exist")
            }
            StorageErrorKind::Locked { pid: Some(pid) } => write!(
                f,
                "{path} belongs to process {pid}, which is alive: end it, open the journal for \
                 reading only, or choose another directory"
            ),
            StorageErrorKind::Locked { pid: None } => write!(
                f,
                "{path} belongs to another living process: end it, open the journal for reading \
                 only, or choose another directory"
            ),
            StorageErrorKind::Other => write!(f, "cannot {operation} {path}: {message}"),
        }
    }
}

impl std::error::Error for StorageError {}

/// Result of a file operation.
pub type StorageResult<T> = Result<T, StorageError>;

/// Access mode of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// A directory of files.
///
/// Only data covered by [`StoredFile::sync_data`] and names covered by
/// [`sync_directory`](Self::sync_directory) survive a crash of the machine; anything else may be
/// there afterwards, or not, or in part, in any order.
pub trait Storage: fmt::Debug + Send + Sync + 'static {
    /// An open file.
    type File: StoredFile;
    /// Guard of the directory lock.
    type Lock: fmt::Debug + Send + Sync;

    /// Full path of `name` for messages; the directory's for an empty name.
    fn path(&self, name: &str) -> String;

    /// Locks the directory for this process; creates it if it is missing.
    ///
    /// # Errors
    /// [`StorageErrorKind::Locked`], or if the disk refuses.
    fn lock(&self) -> StorageResult<Self::Lock>;

    /// Names of all files.
    ///
    /// # Errors
    /// If the disk refuses.
    fn list(&self) -> StorageResult<Vec<String>>;

    /// Creates an empty file, replacing an existing one.
    ///
    /// # Errors
    /// If the disk refuses.
    fn create(&self, name: &str) -> StorageResult<Self::File>;

    /// Opens a file.
    ///
    /// # Errors
    /// [`StorageErrorKind::NotFound`], or if the disk refuses.
    fn open(&self, name: &str, mode: OpenMode) -> StorageResult<Self::File>;

    /// Removes a file.
    ///
    /// # Errors
    /// [`StorageErrorKind::NotFound`], or if the disk refuses.
    fn remove(&self, name: &str) -> StorageResult<()>;

    /// Renames a file, replacing an existing one.
    ///
    /// # Errors
    /// [`StorageErrorKind::NotFound`], or if the disk refuses.
    fn rename(&self, from: &str, to: &str) -> StorageResult<()>;

    /// Makes earlier creations, renames and removals durable.
    ///
    /// # Errors
    /// If the disk refuses.
    fn sync_directory(&self) -> StorageResult<()>;
}

/// Way in which the rest of a preallocation is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// In synchronized steps, so that other files get their share of the disk.
    Paced,
    /// At once.
    AtOnce,
    /// Not filled: its space is reserved, if the file system can do that.
    Reserved,
}

/// Paces a preallocation: called after each step with the bytes left. It may pause.
pub type Throttle<'a> = &'a mut dyn FnMut(u64) -> Fill;

/// An open file of a [`Storage`].
pub trait StoredFile: fmt::Debug + Send + Sync + 'static {
    /// Length in bytes.
    ///
    /// # Errors
    /// If the disk refuses.
    fn length(&self) -> StorageResult<u64>;

    /// Allocates the file with `bytes` zeros, so that later writes need no space. Writing them is
    /// long work, done in steps, paced by `throttle`.
    ///
    /// # Errors
    /// [`StorageErrorKind::NoSpace`], or if the disk refuses.
    fn preallocate(&self, bytes: u64, throttle: Throttle<'_>) -> StorageResult<()>;

    /// Writes a prefix of `bytes` at `offset`; returns its length, at least 1.
    ///
    /// # Errors
    /// [`StorageErrorKind::NoSpace`], or if the disk refuses.
    fn write_at(&self, bytes: &[u8], offset: u64) -> StorageResult<usize>;

    /// Reads into a prefix of `bytes` from `offset`; returns its length, 0 at the end.
    ///
    /// # Errors
    /// If the disk refuses.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> StorageResult<usize>;

    /// The `bytes` from `offset` on are going to be read soon. Does not wait, and may do nothing.
    fn will_need(&self, _offset: u64, _bytes: u64) {}

    /// Makes earlier writes durable.
    ///
    /// # Errors
    /// If the disk refuses. Earlier writes may be lost then, whatever later calls report.
    fn sync_data(&self) -> StorageResult<()>;

    /// Truncates the file, or extends it by zeros.
    ///
    /// # Errors
    /// If the disk refuses.
    fn set_length(&self, bytes: u64) -> StorageResult<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); a prefix may have been written.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> StorageResult<()> {
        while !bytes.is_empty() {
            let written = self.write_at(bytes, offset)?;
            bytes = &bytes[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// Fills `bytes` from `offset`, as far as the file goes; returns the count.
    ///
    /// # Errors
    /// As [`read_at`](Self::read_at).
    fn fill_at(&self, bytes: &mut [u8], offset: u64) -> StorageResult<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(&mut bytes[filled..], offset + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(filled)
    }
}
