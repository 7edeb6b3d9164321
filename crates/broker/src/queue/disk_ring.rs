//! A file without a name, for what waits longer than memory is to hold it.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Bytes in their order on disk. The file is used round and round, so that it never is longer than
/// what may wait; nothing is left of it when the process ends, however that comes about.
#[derive(Debug)]
pub(crate) struct DiskRing {
    file: File,
    capacity: u64,
    /// Where what waits begins and ends: places that only count on, or back for what is returned.
    start: u64,
    end: u64,
}

impl DiskRing {
    /// An empty one, in a directory.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn create(directory: &Path, capacity: u64) -> io::Result<Self> {
        Ok(Self::of(tempfile::tempfile_in(directory)?, capacity))
    }

    fn of(file: File, capacity: u64) -> Self {
        Self { file, capacity, start: capacity, end: capacity }
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> u64 {
        self.end - self.start
    }

    /// Puts bytes behind all others.
    ///
    /// # Errors
    /// If there is no room for them, here or on the disk; what waits is as it was.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_room(bytes)?;
        self.put(self.end, bytes)?;
        self.end += bytes.len() as u64;
        Ok(())
    }

    /// Puts bytes before all others.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn unshift(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check_room(bytes)?;
        // A round on, and the same place: so the count never ends below.
        if self.start < self.capacity {
            (self.start, self.end) = (self.start + self.capacity, self.end + self.capacity);
        }
        let start = self.start - bytes.len() as u64;
        self.put(start, bytes)?;
        self.start = start;
        Ok(())
    }

    /// Takes the first bytes, `most` of them if there are as many, to behind those in `out`.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn take(&mut self, most: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let count = self.len().min(most as u64) as usize;
        let from = out.len();
        out.resize(from + count, 0);
        for (place, range) in self.pieces(self.start, count) {
            self.file.read_exact_at(&mut out[from..][range], place)?;
        }
        self.start += count as u64;
        if self.len() == 0 {
            // The disk gets its room back.
            self.file.set_len(0)?;
            (self.start, self.end) = (self.capacity, self.capacity);
        }
        Ok(())
    }

    fn check_room(&self, bytes: &[u8]) -> io::Result<()> {
        let has_room = self.len() + bytes.len() as u64 <= self.capacity;
        let full = || io::Error::new(io::ErrorKind::QuotaExceeded, "all that may be there is");
        if has_room { Ok(()) } else { Err(full()) }
    }

    fn put(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        for (place, range) in self.pieces(at, bytes.len()) {
            self.file.write_all_at(&bytes[range], place)?;
        }
        Ok(())
    }

    /// Where in the file so many bytes are: at one place, or at its end and its beginning.
    fn pieces(&self, at: u64, count: usize) -> [(u64, Range<usize>); 2] {
        let place = at % self.capacity;
        let first = (self.capacity - place).min(count as u64) as usize;
        [(place, 0..first), (0, first..count)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Numbers that look as if there were no rule in them.
    fn next(seed: &mut u64) -> usize {
        *seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (*seed >> 33) as usize
    }

    #[test]
    fn what_is_put_in_comes_out_in_order() {
        let mut spool = DiskRing::create(&std::env::temp_dir(), 1_000).expect("a file");
        let (mut expected, mut seed, mut fresh) = (VecDeque::new(), 7, 0_u8);
        let mut refused = 0;
        for _ in 0..20_000 {
            let bytes: Vec<u8> = (0..next(&mut seed) % 300).map(|at| fresh ^ at as u8).collect();
            fresh = fresh.wrapping_add(1);
            let has_room = expected.len() + bytes.len() <= 1_000;
            match next(&mut seed) % 5 {
                0 | 1 => {
                    assert_eq!(spool.push(&bytes).is_ok(), has_room);
                    expected.extend(bytes.iter().copied().filter(|_| has_room));
                }
                2 => {
                    assert_eq!(spool.unshift(&bytes).is_ok(), has_room);
                    let returned = bytes.iter().copied().filter(|_| has_room).rev();
                    returned.for_each(|byte| expected.push_front(byte));
                }
                _ => {
                    let mut taken = vec![1];
                    spool.take(bytes.len(), &mut taken).expect("a file");
                    let count = bytes.len().min(expected.len());
                    assert_eq!(taken[1..], expected.drain(..count).collect::<Vec<_>>());
                }
            }
            refused += usize::from(!has_room);
            assert_eq!(spool.len(), expected.len() as u64);
            assert!(spool.file.metadata().expect("a file").len() <= 1_000);
        }
        assert!(refused > 100, "{refused}");
        spool.take(1_000, &mut Vec::new()).expect("a file");
        assert_eq!(spool.file.metadata().expect("a file").len(), 0);
    }

    #[test]
    fn a_full_disk_is_an_error_and_no_more() {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let mut spool = DiskRing::of(full, 1_000);
        let error = spool.push(b"frame").expect_err("full");
        assert_eq!((error.kind(), spool.len()), (io::ErrorKind::StorageFull, 0));
    }
}
