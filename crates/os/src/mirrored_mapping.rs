//! A mirrored mapping: the memory of a ring buffer in which no message wraps.
//!
//! The same bytes of a file are mapped twice, back to back. A message that runs over the end of the
//! first copy continues in the second, which is the start of the ring.

use crate::{MapMode, page_size};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// `window` bytes of a file, mapped twice back to back.
#[derive(Debug)]
pub struct MirroredMapping {
    start: NonNull<u8>,
    window: usize,
}

// SAFETY: the mapping is plain memory; its readers and writers synchronise by atomics.
unsafe impl Send for MirroredMapping {}
// SAFETY: as above.
unsafe impl Sync for MirroredMapping {}

impl MirroredMapping {
    /// Maps `window` bytes of `file` from `offset` on, twice.
    ///
    /// # Errors
    /// If `window` is no power of two or, like `offset`, no multiple of the page size, if the
    /// file is shorter, or the system refuses.
    pub fn new(file: &File, offset: u64, window: usize, mode: MapMode) -> io::Result<Self> {
        let page = page_size();
        let aligned = window.is_power_of_two()
            && window.is_multiple_of(page)
            && offset.is_multiple_of(page as u64);
        let reserved = window.checked_mul(2);
        let end = offset.checked_add(window as u64);
        let (true, Some(reserved), Some(end)) = (aligned, reserved, end) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the window is not aligned"));
        };
        if file.metadata()?.len() < end {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the file is too short"));
        }
        let start = reserve_addresses(reserved)?;
        let ring = Self { start, window };
        for copy in 0..2 {
            // SAFETY: both copies lie within the address range reserved above.
            let target = unsafe { start.as_ptr().add(copy * window) };
            map_over(target, window, file, offset, mode)?;
        }
        // SAFETY: both copies were mapped above in this mode.
        unsafe { mode.populate(start.as_ptr().cast(), reserved) };
        Ok(ring)
    }

    /// Start of the first copy; the second follows it.
    pub const fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// The ring's size in bytes: a power of two.
    pub const fn window(&self) -> usize {
        self.window
    }
}

fn reserve_addresses(len: usize) -> io::Result<NonNull<u8>> {
    // SAFETY: a new, inaccessible mapping at an address of the system's choice.
    let start = unsafe {
        libc::mmap(
            core::ptr::null_mut(),
            len,
            libc::PROT_NONE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(start.cast()).ok_or_else(|| io::ErrorKind::OutOfMemory.into())
}

fn map_over(
    target: *mut u8,
    len: usize,
    file: &File,
    offset: u64,
    mode: MapMode,
) -> io::Result<()> {
    let offset = i64::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: replaces part of an address range that the caller reserved for this.
    let mapped = unsafe {
        libc::mmap(
            target.cast(),
            len,
            mode.protection(),
            libc::MAP_SHARED | libc::MAP_FIXED,
            file.as_raw_fd(),
            offset,
        )
    };
    if mapped == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(()) }
}

impl Drop for MirroredMapping {
    fn drop(&mut self) {
        // SAFETY: the whole range is this value's own, and no borrow of it can outlive it.
        let result = unsafe { libc::munmap(self.start.as_ptr().cast(), 2 * self.window) };
        debug_assert_eq!(result, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn bytes_beyond_the_end_appear_at_the_start() {
        let path = std::env::temp_dir().join(format!("lanecast-ring-{}", std::process::id()));
        let mut file =
            File::options().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let window = page_size() * 2;
        file.write_all(&vec![0; window]).unwrap();
        let ring = MirroredMapping::new(&file, 0, window, MapMode::ReadWrite).unwrap();
        // SAFETY: the byte lies in the second copy.
        let second = unsafe { ring.start().add(window + 5) };
        // SAFETY: mapped for writing, by this test alone.
        unsafe { second.write(42) };
        // SAFETY: the byte lies in the first copy.
        let first = unsafe { ring.start().add(5) };
        // SAFETY: mapped for reading.
        assert_eq!(unsafe { first.read() }, 42);
        assert!(MirroredMapping::new(&file, 0, window * 2, MapMode::Read).is_err(), "too short");
        assert!(MirroredMapping::new(&file, 0, window - 1, MapMode::Read).is_err(), "not aligned");
    }
}
