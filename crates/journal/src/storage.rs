//! What a journal asks of a disk, so that a simulated one can take its place.

use core::fmt;

/// What went wrong, as far as the journal cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageErrorKind {
    /// There is no space left; there may be later.
    NoSpace,
    /// There is no such file.
    NotFound,
    /// Another process owns the directory.
    Locked {
        /// Its number, if it could write it down.
        pid: Option<u32>,
    },
    /// Anything else.
    Other,
}

/// A call to the disk that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageError {
    /// What was tried, such as `synchronise`.
    pub operation: &'static str,
    /// With which file or directory.
    pub path: String,
    /// What went wrong.
    pub kind: StorageErrorKind,
    /// The system's words.
    pub message: String,
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, path, kind, message } = self;
        match kind {
            StorageErrorKind::NoSpace => write!(
                f,
                "cannot {operation} {path}: {message}; free some space, and appending goes on by itself"
            ),
            StorageErrorKind::NotFound => {
                write!(f, "cannot {operation} {path}: there is no such file")
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

/// What a call to the disk gives.
pub type StorageResult<T> = Result<T, StorageError>;

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// Reading.
    Read,
    /// Reading and writing.
    Write,
}

/// A directory of files.
///
/// Only what [`StoredFile::sync_data`] and [`sync_directory`](Self::sync_directory) have covered
/// outlives the machine; all else may be there later, or not, or in part, in any order.
pub trait Storage: fmt::Debug + Send + Sync + 'static {
    /// An open file.
    type File: StoredFile;
    /// Proof that the directory is this process's, as long as it lives.
    type Lock: fmt::Debug + Send + Sync;

    /// Where `name` is, for messages; the directory itself for an empty name.
    fn path(&self, name: &str) -> String;

    /// Takes the directory for this process, and makes it if it is missing.
    ///
    /// # Errors
    /// [`StorageErrorKind::Locked`], or if the disk refuses.
    fn lock(&self) -> StorageResult<Self::Lock>;

    /// The names of all files.
    ///
    /// # Errors
    /// If the disk refuses.
    fn list(&self) -> StorageResult<Vec<String>>;

    /// Makes an empty file, in place of one that has the name.
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

    /// Gives a file another name.
    ///
    /// # Errors
    /// [`StorageErrorKind::NotFound`], or if the disk refuses.
    fn rename(&self, from: &str, to: &str) -> StorageResult<()>;

    /// Makes names durable: what was created, renamed or removed before.
    ///
    /// # Errors
    /// If the disk refuses.
    fn sync_directory(&self) -> StorageResult<()>;
}

/// Hears after each part of a long work how many bytes are left, may let it rest, and tells
/// whether the next part is urgent.
pub type Throttle<'a> = &'a mut dyn FnMut(u64) -> bool;

/// An open file of a [`Storage`].
pub trait StoredFile: fmt::Debug + Send + Sync + 'static {
    /// The file's length in bytes.
    ///
    /// # Errors
    /// If the disk refuses.
    fn length(&self) -> StorageResult<u64>;

    /// Makes the file `bytes` zero bytes long, so that writing to them needs no more space. If
    /// that takes long, it is done in parts, at that pace.
    ///
    /// # Errors
    /// [`StorageErrorKind::NoSpace`], or if the disk refuses.
    fn preallocate(&self, bytes: u64, throttle: Throttle<'_>) -> StorageResult<()>;

    /// Writes the beginning of `bytes` at `offset`; tells how many, at least one.
    ///
    /// # Errors
    /// [`StorageErrorKind::NoSpace`], or if the disk refuses.
    fn write_at(&self, bytes: &[u8], offset: u64) -> StorageResult<usize>;

    /// Reads into the beginning of `bytes` from `offset` on; tells how many, 0 at the end.
    ///
    /// # Errors
    /// If the disk refuses.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> StorageResult<usize>;

    /// Makes what was written before durable.
    ///
    /// # Errors
    /// If the disk refuses: what was written before may be lost then, whatever later calls say.
    fn sync_data(&self) -> StorageResult<()>;

    /// Cuts the file, or makes it longer by zeros.
    ///
    /// # Errors
    /// If the disk refuses.
    fn set_length(&self, bytes: u64) -> StorageResult<()>;

    /// Writes all of `bytes` at `offset`.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at); some of them may have been written.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> StorageResult<()> {
        while !bytes.is_empty() {
            let written = self.write_at(bytes, offset)?;
            bytes = &bytes[written..];
            offset += written as u64;
        }
        Ok(())
    }

    /// Fills `bytes` from `offset` on, or as much of it as the file has; tells how many.
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
