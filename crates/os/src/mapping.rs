//! Shared memory mappings of files: mmap(2).

use crate::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// Access mode of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapMode {
    /// Reading only; a write raises SIGSEGV.
    Read,
    /// Reading and writing.
    ReadWrite,
}

impl MapMode {
    pub(crate) const fn protection(self) -> libc::c_int {
        match self {
            Self::Read => libc::PROT_READ,
            Self::ReadWrite => libc::PROT_READ | libc::PROT_WRITE,
        }
    }

    /// Brings all pages in now, so that no message pays for a page fault. Best effort: a kernel
    /// before 5.14 does not know the advice, and a fault later is slow, not wrong.
    ///
    /// # Safety
    /// `start` and `len` must describe a live mapping of this mode.
    pub(crate) unsafe fn populate(self, start: *mut libc::c_void, len: usize) {
        const MADV_POPULATE_READ: libc::c_int = 22;
        const MADV_POPULATE_WRITE: libc::c_int = 23;
        let advice = match self {
            Self::Read => MADV_POPULATE_READ,
            Self::ReadWrite => MADV_POPULATE_WRITE,
        };
        // SAFETY: the caller's promise; the advice changes no contents.
        unsafe { libc::madvise(start, len, advice) };
    }
}

/// The first bytes of a file, shared with every process that maps it.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping is plain memory; its readers and writers synchronise by atomics.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of `file`.
    ///
    /// # Errors
    /// If the file is shorter (touching the rest would end the process), or the system refuses.
    pub fn new(file: &File, len: usize, mode: MapMode) -> io::Result<Self> {
        if len == 0 || file.metadata()?.len() < len as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too short"));
        }
        // SAFETY: a new mapping at an address of the system's choice touches nothing existing.
        let start = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                len,
                mode.protection(),
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: mapped above, with this length and mode.
        unsafe { mode.populate(start, len) };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Start of the mapping, aligned to a page.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Always false: a mapping has at least one byte.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no borrow of it can outlive it.
        let result = checked(unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) });
        debug_assert!(result.is_ok());
    }
}
