//! Writes past the page cache.
//!
//! A long batch goes from its memory to the disk without a copy, which is most of what the system
//! does for a write, and without the write-back of dirty pages, in which journals on one disk hold
//! each other up. Only whole blocks can go that way; the rest at both ends goes through the page
//! cache, and so does everything where the system has no such writes.

use lanecast_base::sync::{AtomicU64, Ordering};
use rustix::fs::OFlags;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::OnceLock;

/// Alignment of memory, offsets and lengths: file systems and disks ask for as much or less.
pub(crate) const BLOCK: usize = 4096;
/// Shortest write that goes past the page cache. The disk's time for a shorter one is short, too,
/// and a reader that follows finds its bytes in memory.
const SHORTEST: usize = 256 << 10;

/// A second handle of a file, for writes past the page cache; opened with the first one.
#[derive(Debug, Default)]
pub(crate) struct DirectWrites {
    file: OnceLock<Option<File>>,
    bytes: AtomicU64,
}

impl DirectWrites {
    /// Writes the whole blocks of `bytes`, which go to `offset` of `file`, if they are many and
    /// stand in memory as in the file; returns what was written of `bytes`, perhaps nothing.
    ///
    /// # Errors
    /// If the disk refuses.
    pub(crate) fn write(&self, file: &File, bytes: &[u8], offset: u64) -> io::Result<Range<usize>> {
        let Some(blocks) = blocks(bytes, offset) else { return Ok(0..0) };
        let Some(direct) = self.file.get_or_init(|| open(file)) else { return Ok(0..0) };
        let mut end = blocks.start;
        while end < blocks.end {
            match direct.write_at(&bytes[end..blocks.end], offset + end as u64) {
                Ok(written) if written >= BLOCK => end += written / BLOCK * BLOCK,
                // A part of a block, and none for a file system that takes no such writes.
                Ok(_) => break,
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.bytes.fetch_add((end - blocks.start) as u64, Ordering::Relaxed);
        Ok(blocks.start..end)
    }

    /// Bytes that were written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The whole blocks of a file in `bytes`, which go to `offset`.
fn blocks(bytes: &[u8], offset: u64) -> Option<Range<usize>> {
    let start = (BLOCK - offset as usize % BLOCK) % BLOCK;
    let is_aligned = (bytes.as_ptr().addr() + start).is_multiple_of(BLOCK);
    let end = start + bytes.len().saturating_sub(start) / BLOCK * BLOCK;
    (bytes.len() >= SHORTEST && is_aligned).then_some(start..end)
}

/// Opens the file again, by its descriptor: its name may have changed.
fn open(file: &File) -> Option<File> {
    let flags = i32::try_from(OFlags::DIRECT.bits()).ok()?;
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    OpenOptions::new().write(true).custom_flags(flags).open(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes at an address that stands in its block as `offset` does, or `shift` bytes behind it.
    fn placed(memory: &mut Vec<u8>, (offset, shift): (u64, usize), length: usize) -> &[u8] {
        memory.resize(length + 2 * BLOCK, 0);
        let start = (offset as usize).wrapping_sub(memory.as_ptr().addr()) % BLOCK + shift;
        for (index, byte) in memory[start..start + length].iter_mut().enumerate() {
            *byte = (index % 251 + 1) as u8;
        }
        &memory[start..start + length]
    }

    #[test]
    fn only_whole_blocks_that_stand_as_in_the_file_go_past_the_cache() {
        let mut memory = Vec::new();
        let mut of =
            |offset, shift, length| blocks(placed(&mut memory, (offset, shift), length), offset);
        let long = SHORTEST + 100;
        assert_eq!(of(0, 0, long), Some(0..SHORTEST));
        assert_eq!(of(BLOCK as u64, 0, SHORTEST), Some(0..SHORTEST));
        assert_eq!(of(8, 0, long), Some(BLOCK - 8..SHORTEST - 8));
        assert_eq!(of(4095, 0, long), Some(1..SHORTEST + 1));
        assert_eq!(of(0, 1, long), None, "another place in the block");
        assert_eq!(of(0, 0, SHORTEST - 1), None, "short");
    }

    #[test]
    fn every_byte_is_written_where_it_belongs_and_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("file");
        let length = 4 * SHORTEST;
        let mut memory = Vec::new();
        for offset in [0, 8, 4088, 4096, 12_344] {
            for shift in [0, 8] {
                std::fs::write(&path, vec![0xee; length]).expect("written");
                let file = OpenOptions::new().read(true).write(true).open(&path).expect("open");
                let bytes = placed(&mut memory, (offset, shift), SHORTEST + 10_000);
                let writes = DirectWrites::default();
                let written = writes.write(&file, bytes, offset).expect("it takes them");
                assert!(shift == 0 || written.is_empty(), "{written:?}");
                assert_eq!(writes.bytes(), written.len() as u64);
                let found = std::fs::read(&path).expect("read");
                let until = |at: usize| offset as usize + at;
                assert_eq!(found[until(written.start)..until(written.end)], bytes[written.clone()]);
                let others = [&found[..until(written.start)], &found[until(written.end)..]];
                assert!(others.iter().all(|part| part.iter().all(|byte| *byte == 0xee)));
            }
        }
    }
}
