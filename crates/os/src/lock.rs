//! File locks as proof of life: the kernel releases them when their holder dies, at any
//! instruction.
//!
//! Open-file-description locks (fcntl(2), `F_OFD_SETLK`) rather than the older per-process
//! ones: those vanish when *any* descriptor of the file is closed in the process.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

fn range(kind: libc::c_int, byte: u64) -> io::Result<libc::flock> {
    // SAFETY: all bits zero is a valid flock.
    let mut range: libc::flock = unsafe { core::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = i64::try_from(byte).map_err(|_| io::ErrorKind::InvalidInput)?;
    range.l_len = 1;
    Ok(range)
}

/// A held lock on one byte of a file; released by dropping it, or by the death of the process.
#[derive(Debug)]
pub struct LockByte {
    file: File,
    byte: u64,
}

impl LockByte {
    /// Takes the lock on `byte` of `file` (open for writing), if it is free.
    ///
    /// The lock belongs to this open file description; `file` stays open with it.
    ///
    /// # Errors
    /// If the system refuses. A lock held elsewhere is `Ok(Err(file))`.
    pub fn try_take(file: File, byte: u64) -> io::Result<Result<Self, File>> {
        let range = range(libc::F_WRLCK, byte)?;
        // SAFETY: the descriptor is open and `range` a valid flock.
        let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &range) };
        if result == 0 {
            return Ok(Ok(Self { file, byte }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EACCES) => Ok(Err(file)),
            _ => Err(error),
        }
    }

    /// The locked file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for LockByte {
    fn drop(&mut self) {
        // Closing the file is not enough: a child forked meanwhile keeps it open.
        if let Ok(range) = range(libc::F_UNLCK, self.byte) {
            // SAFETY: the descriptor is open and `range` a valid flock.
            unsafe { libc::fcntl(self.file.as_raw_fd(), libc::F_OFD_SETLK, &range) };
        }
    }
}

/// Whether the lock on `byte` is held through another open file description.
///
/// # Errors
/// If the system call fails.
pub fn is_locked(file: &File, byte: u64) -> io::Result<bool> {
    let mut range = range(libc::F_WRLCK, byte)?;
    // SAFETY: the descriptor is open and `range` a valid, writable flock.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut range) };
    crate::checked(result)?;
    Ok(range.l_type != libc::F_UNLCK as libc::c_short)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_seen_through_other_openings_and_freed_by_dropping() {
        let path = std::env::temp_dir().join(format!("lanecast-lock-{}", std::process::id()));
        let open =
            || File::options().create(true).truncate(false).write(true).read(true).open(&path);
        let other = open().unwrap();
        let lock = LockByte::try_take(open().unwrap(), 3).unwrap().unwrap();
        assert!(is_locked(&other, 3).unwrap());
        assert!(!is_locked(&other, 4).unwrap());
        assert!(!is_locked(lock.file(), 3).unwrap(), "one's own lock is no obstacle");
        let other = LockByte::try_take(other, 3).unwrap().unwrap_err();
        drop(lock);
        assert!(!is_locked(&other, 3).unwrap());
        assert!(LockByte::try_take(other, 3).unwrap().is_ok());
        std::fs::remove_file(path).unwrap();
    }
}
