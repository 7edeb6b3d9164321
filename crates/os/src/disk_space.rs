//! Free space of a file system: statvfs(3).

use crate::checked;
use std::ffi::CString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Space of a file system, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total space; 0 without a limit.
    pub total_bytes: u64,
    /// Free space for this process.
    pub free_bytes: u64,
}

impl DiskSpace {
    /// Space of the file system of `path`, which must exist.
    ///
    /// # Errors
    /// If the path is missing, or the system call fails.
    pub fn at(path: &Path) -> io::Result<Self> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: all bits zero is a valid value of this plain structure.
        let mut found: libc::statvfs = unsafe { core::mem::zeroed() };
        // SAFETY: `path` is a live, terminated string and `found` writable.
        checked(unsafe { libc::statvfs(path.as_ptr(), &mut found) })?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Self { total_bytes: bytes(found.f_blocks), free_bytes: bytes(found.f_bavail) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_has_some_room_and_nowhere_has_none() {
        let space = DiskSpace::at(Path::new("/")).unwrap();
        assert!(space.free_bytes <= space.total_bytes && space.total_bytes > 0);
        assert!(DiskSpace::at(Path::new("/no/such/place")).is_err());
        assert!(DiskSpace::at(Path::new("a\0b")).is_err());
    }
}
