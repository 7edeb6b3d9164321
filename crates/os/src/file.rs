//! Files of shared memory that appear complete or not at all, and named pipes.

use crate::{LockByte, checked};
use std::ffi::CString;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Error of creating a file of shared memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The file system is full.
    #[error(
        "{directory} has no room for {bytes} bytes: free some (`lanecast clean`), make it \
         larger (`mount -o remount,size=... {directory}`), or configure a smaller window"
    )]
    Full {
        /// The directory on the full file system.
        directory: PathBuf,
        /// The requested size.
        bytes: u64,
    },
    /// The file system has no unnamed files (O_TMPFILE).
    #[error("{0} is on a file system without unnamed files: use a directory on tmpfs")]
    NoUnnamedFiles(PathBuf),
    /// Another system error.
    #[error("cannot {act} in {directory}: {error}")]
    Io {
        /// The attempted action.
        act: &'static str,
        /// The directory.
        directory: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

/// An unnamed file: other processes cannot see it yet. Its memory is reserved and its lock held.
///
/// The file vanishes with its creator; there is nothing to clean up.
#[derive(Debug)]
pub struct NewFile {
    lock: LockByte,
    directory: PathBuf,
}

impl NewFile {
    /// Creates a file of `bytes` zero bytes in `directory`, all of them reserved, so that writing
    /// to the memory never runs out of room; takes the lock on its byte 0.
    ///
    /// # Errors
    /// See [`FileError`].
    pub fn create(directory: &Path, bytes: u64, mode: u32) -> Result<Self, FileError> {
        let fail = |act| move |error| FileError::Io { act, directory: directory.to_owned(), error };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .mode(mode)
            .custom_flags(libc::O_TMPFILE)
            .open(directory)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EOPNOTSUPP | libc::EISDIR) => {
                    FileError::NoUnnamedFiles(directory.to_owned())
                }
                _ => fail("make a file")(error),
            })?;
        reserve(&file, bytes).map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSPC | libc::EDQUOT) => {
                FileError::Full { directory: directory.to_owned(), bytes }
            }
            _ => fail("reserve memory")(error),
        })?;
        // The mode given at opening is cut by the umask; group access must not depend on it.
        file.set_permissions(Permissions::from_mode(mode)).map_err(fail("set permissions"))?;
        let lock = LockByte::try_take(file, 0)
            .map_err(fail("lock a file"))?
            .map_err(|_| fail("lock a new file")(io::ErrorKind::WouldBlock.into()))?;
        Ok(Self { lock, directory: directory.to_owned() })
    }

    /// The file, to map and fill it.
    pub fn file(&self) -> &File {
        self.lock.file()
    }

    /// Gives the file its name, which makes it visible. The lock stays with the caller.
    ///
    /// # Errors
    /// If the name is taken, or the system refuses.
    pub fn publish(self, name: &str) -> Result<LockByte, FileError> {
        let link = || -> io::Result<()> {
            let own = CString::new(format!("/proc/self/fd/{}", self.file().as_raw_fd()))?;
            let target = CString::new(self.directory.join(name).as_os_str().as_bytes())?;
            // SAFETY: both paths are live, terminated strings.
            checked(unsafe {
                libc::linkat(
                    libc::AT_FDCWD,
                    own.as_ptr(),
                    libc::AT_FDCWD,
                    target.as_ptr(),
                    libc::AT_SYMLINK_FOLLOW,
                )
            })?;
            Ok(())
        };
        link().map_err(|error| FileError::Io {
            act: "name a file",
            directory: self.directory.clone(),
            error,
        })?;
        Ok(self.lock)
    }
}

/// Sets both times of the file at `path` to now: programs that watch its directory are told its
/// name.
///
/// Through an open file that had no name at first, they would be told the number that it had then.
///
/// # Errors
/// If the file is gone, or the system refuses.
pub fn touch(path: &Path) -> io::Result<()> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let now = core::ptr::null();
    // SAFETY: the path is a live, terminated string; no times stand for the current one.
    checked(unsafe {
        libc::utimensat(libc::AT_FDCWD, path.as_ptr(), now, libc::AT_SYMLINK_NOFOLLOW)
    })?;
    Ok(())
}

/// Memory of `bytes` zero bytes as a file without a name in any directory, all of it reserved.
///
/// The file is removed with its last mapping and descriptor.
///
/// # Errors
/// If the system refuses, or has not so much memory.
pub fn memory_file(bytes: u64) -> io::Result<File> {
    // SAFETY: the name, shown in /proc, is a live, terminated string.
    let descriptor = unsafe { libc::memfd_create(c"lanecast".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: a valid descriptor was created above, and has no other owner.
    let file = unsafe { File::from_raw_fd(checked(descriptor)?) };
    reserve(&file, bytes)?;
    Ok(file)
}

/// Bytes reserved at a time: a call that a signal interrupts can lose all that it has reserved, so
/// that with regular signals a long one would never end. The last bytes come first: a file that is
/// too large for its file system is refused before any memory is taken.
const RESERVED_AT_ONCE: i64 = 2 << 20;

fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    let bytes = i64::try_from(bytes).map_err(|_| io::ErrorKind::InvalidInput)?;
    let mut left = bytes;
    loop {
        let count = RESERVED_AT_ONCE.min(left);
        // SAFETY: the descriptor is open.
        match checked(unsafe { libc::fallocate(file.as_raw_fd(), 0, left - count, count) }) {
            Ok(_) => left -= count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if left == 0 {
            return Ok(());
        }
    }
}

/// Makes the named pipe (fifo(7)) `path` with exactly this `mode`, and opens it as
/// [`open_pipe`] does.
///
/// # Errors
/// If the name is taken, or the system refuses.
pub fn make_pipe(path: &Path, mode: u32) -> io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the path is a live, terminated string.
    checked(unsafe { libc::mkfifo(name.as_ptr(), mode) })?;
    let pipe = open_pipe(path)?;
    // As for other files, the mode must not depend on the umask. Refused for another user's pipe.
    pipe.set_permissions(Permissions::from_mode(mode))?;
    Ok(pipe)
}

/// Opens a named pipe for reading and writing, so that it has both ends for as long as it is open:
/// a write raises no signal. Never follows a symbolic link, never blocks.
///
/// # Errors
/// If the system refuses, or the file is not a named pipe.
pub fn open_pipe(path: &Path) -> io::Result<File> {
    let file = open_at_once(path, true)?;
    if file.metadata()?.file_type().is_fifo() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "not a named pipe"))
    }
}

/// Opens a file of shared memory; never follows a symbolic link, never blocks on a pipe.
///
/// # Errors
/// If the system refuses, or the file is not a regular one.
pub fn open(path: &Path, writable: bool) -> io::Result<File> {
    let file = open_at_once(path, writable)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "not a regular file"))
    }
}

/// Opens `path` itself, not the end of a link, without waiting for the other end of a pipe.
fn open_at_once(path: &Path, writable: bool) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(writable)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(path)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn all_bytes_are_reserved_piece_by_piece() {
        let piece = RESERVED_AT_ONCE as u64;
        for bytes in [4_096, piece, piece + 4_096, 3 * piece - 4_096] {
            let file = memory_file(bytes).unwrap().metadata().unwrap();
            assert_eq!(file.len(), bytes);
            assert!(file.blocks() * 512 >= bytes, "{} blocks", file.blocks());
        }
        assert!(memory_file(0).is_err());
        assert!(memory_file(u64::MAX).is_err());
    }
}
