//! A ring of bytes in an unnamed file: the part of an offline client's queue that is on disk.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A ring of bytes on disk. The file never grows beyond its capacity. It has no name, so the system
/// removes it however the process ends.
#[derive(Debug)]
pub(crate) struct DiskRing {
    file: File,
    capacity: u64,
    /// Positions of the first byte and behind the last. They count up without wrapping; only
    /// [`unshift`](Self::unshift) moves `start` back.
    start: u64,
    end: u64,
}

impl DiskRing {
    /// Creates an empty ring in a directory.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn create(directory: &Path, capacity: u64) -> io::Result<Self> {
        // The file is unlinked at once: no leftovers after a crash.
        Ok(Self::of(tempfile::tempfile_in(directory)?, capacity))
    }

    fn of(file: File, capacity: u64) -> Self {
        Self { file, capacity, start: capacity, end: capacity }
    }

    /// Bytes in the ring.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// If the ring or the disk is full; the ring is unchanged then.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_capacity(bytes)?;
        // The position moves only after the write: a failed one leaves the ring as it was.
        self.put(self.end, bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Prepends bytes.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn unshift(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_capacity(bytes)?;
        // One capacity further is the same place in the file, and keeps `start` from underflowing.
        if self.start < self.capacity {
            (self.start, self.end) = (self.start + self.capacity, self.end + self.capacity);
        }
        let start = self.start - bytes.len() as u64;
        // As in `push`, the position moves last.
        self.put(start, bytes)?;
        self.start = start;
        Ok(())
    }

    /// Moves the first bytes, at most `limit`, to the end of `out`.
    ///
    /// # Errors
    /// The system's error.
    pub(crate) fn take(&mut self, limit: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let count = self.len().min(limit as u64) as usize;
        let from = out.len();
        // Zeroed, since the read needs initialized memory.
        out.resize(from + count, 0);
        for (place, range) in self.pieces(self.start, count) {
            self.file.read_exact_at(&mut out[from..][range], place)?;
        }
        self.start += count as u64;
        if self.len() == 0 {
            // Returns the blocks to the disk.
            self.file.set_len(0)?;
            (self.start, self.end) = (self.capacity, self.capacity);
        }
        Ok(())
    }

    fn check_capacity(&self, bytes: &[u8]) -> io::Result<()> {
        // Checked before any write: bytes must not overwrite those that still wait.
        let fits = self.len() + bytes.len() as u64 <= self.capacity;
        let full = || io::Error::new(io::ErrorKind::QuotaExceeded, "the client's limit is reached");
        if fits { Ok(()) } else { Err(full()) }
    }

    fn put(&self, position: u64, bytes: &[u8]) -> io::Result<()> {
        for (place, range) in self.pieces(position, bytes.len()) {
            self.file.write_all_at(&bytes[range], place)?;
        }
        Ok(())
    }

    /// Offsets in the file and the ranges of `count` bytes from `position`: two pieces, of which
    /// the second is empty unless the bytes wrap around the end of the file.
    fn pieces(&self, position: u64, count: usize) -> [(u64, Range<usize>); 2] {
        // Positions do not wrap; their place in the file does.
        let place = position % self.capacity;
        let first = (self.capacity - place).min(count as u64) as usize;
        [(place, 0..first), (0, first..count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Pseudorandom numbers.
    fn next(seed: &mut u64) -> usize {
        *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (*seed >> 33) as usize
    }

    #[test]
    fn bytes_leave_the_ring_in_order() {
        let mut ring = DiskRing::create(&std::env::temp_dir(), 1_000).expect("a file");
        let (mut expected, mut seed, mut fresh) = (VecDeque::new(), 7, 0_u8);
        let mut refused = 0;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..next(&mut seed) % 300).map(|at| fresh ^ at as u8).collect();
            fresh = fresh.wrapping_add(1);
            let has_room = expected.len() + bytes.len() <= 1_000;
            match next(&mut seed) % 5 {
                0 | 1 => {
                    assert_eq!(ring.push(&bytes).is_ok(), has_room);
                    expected.extend(bytes.iter().copied().filter(|_| has_room));
                }
                2 => {
                    assert_eq!(ring.unshift(&bytes).is_ok(), has_room);
                    let returned = bytes.iter().copied().filter(|_| has_room).rev();
                    returned.for_each(|byte| expected.push_front(byte));
                }
                _ => {
                    let mut taken = vec![1];
                    ring.take(bytes.len(), &mut taken).expect("a file");
                    let count = bytes.len().min(expected.len());
                    assert_eq!(taken[1..], expected.drain(..count).collect::<Vec<_>>());
                }
            }
            refused += usize::from(!has_room);
            assert_eq!(ring.len(), expected.len() as u64);
            assert!(ring.file.metadata().expect("a file").len() <= 1_000);
        }
        assert!(refused > 100, "{refused}");
        ring.take(1_000, &mut Vec::new()).expect("a file");
        assert_eq!(ring.file.metadata().expect("a file").len(), 0);
    }

    #[test]
    fn a_full_disk_is_an_error_and_no_more() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let mut ring = DiskRing::of(full, 1_000);
        let error = ring.push(b"frame").expect_err("full");
        assert_eq!((error.kind(), ring.len()), (io::ErrorKind::StorageFull, 0));
    }
}
