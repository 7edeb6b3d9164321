//! A part of a file in memory, read in large pieces.

use crate::storage::{StorageResult, StoredFile};

/// The most that is read at a time: large enough that the system call does not count, small enough
/// to stay in a core's second cache.
const MOST: usize = 256 << 10;
/// The least. It doubles from read to read, so that whoever follows the end does not read over and
/// over what is not there yet.
const LEAST: usize = 4 << 10;

/// The part of one file that was read last.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    start: u64,
    filled: usize,
    /// How much to read next.
    stride: usize,
}

impl ReadBuffer {
    /// The `length` bytes at `offset`, if the file has them.
    #[inline]
    pub(crate) fn get<F: StoredFile>(
        &mut self,
        file: &F,
        offset: u64,
        length: usize,
    ) -> StorageResult<Option<&[u8]>> {
        let has = |read_buffer: &Self| {
            let at = offset.checked_sub(read_buffer.start)? as usize;
            (at.checked_add(length)? <= read_buffer.filled).then_some(at)
        };
        let at = match has(self) {
            Some(at) => at,
            None => {
                self.read(file, offset, length)?;
                match has(self) {
                    Some(at) => at,
                    None => return Ok(None),
                }
            }
        };
        Ok(Some(&self.bytes[at..at + length]))
    }

    /// Bytes that [`get`](Self::get) has given and that are still there.
    #[inline]
    pub(crate) fn cached(&self, offset: u64, length: usize) -> &[u8] {
        let at = (offset - self.start) as usize;
        &self.bytes[at..at + length]
    }

    /// Reads anew next time: another file, or the file has changed.
    pub(crate) fn forget(&mut self) {
        self.filled = 0;
        self.stride = 0;
    }

    fn read<F: StoredFile>(&mut self, file: &F, offset: u64, length: usize) -> StorageResult<()> {
        self.stride = (2 * self.stride).clamp(LEAST, MOST);
        let wanted = length.max(self.stride);
        if self.bytes.len() < wanted {
            self.bytes.resize(wanted, 0);
        }
        self.filled = 0;
        self.filled = file.fill_at(&mut self.bytes[..wanted], offset)?;
        self.start = offset;
        Ok(())
    }
}
