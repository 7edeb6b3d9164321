//! Read buffer: a block of one file in memory.

use crate::storage::{StorageResult, StoredFile};

/// Largest read: large enough to hide the system call, small enough for a core's L2 cache.
const MOST: usize = 256 << 10;
/// Smallest read. The size doubles from read to read, so that a cursor at the end does not read
/// zeros again and again.
const LEAST: usize = 4 << 10;
/// Bytes behind a largest read that the disk is asked for meanwhile.
const AHEAD: u64 = 1 << 20;

/// The last block read of one file.
#[derive(Debug, Default)]
pub(crate) struct ReadBuffer {
    bytes: Vec<u8>,
    start: u64,
    filled: usize,
    /// Size of the next read.
    stride: usize,
    /// Offset up to which the disk was asked ahead.
    asked: u64,
    /// Offset up to which a search reads at once, and not beyond.
    end: Option<u64>,
}

impl ReadBuffer {
    /// The `length` bytes at `offset`; `None` if the file is shorter.
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

    /// Bytes that the last [`get`](Self::get) has returned.
    #[inline]
    pub(crate) fn cached(&self, offset: u64, length: usize) -> &[u8] {
        let at = (offset - self.start) as usize;
        &self.bytes[at..at + length]
    }

    /// Discards the block: the file was changed, or is another one.
    pub(crate) fn forget(&mut self) {
        self.filled = 0;
        self.stride = 0;
        self.asked = 0;
    }

    /// Sets the offset up to which a search reads; `None` when it is over.
    pub(crate) const fn set_end(&mut self, end: Option<u64>) {
        self.end = end;
    }

    fn read<F: StoredFile>(&mut self, file: &F, offset: u64, length: usize) -> StorageResult<()> {
        let left = self.end.and_then(|end| end.checked_sub(offset)).filter(|left| *left > 0);
        let ahead = left.map(|left| left.min(MOST as u64) as usize).unwrap_or_else(|| {
            self.stride = (2 * self.stride).clamp(LEAST, MOST);
            self.stride
        });
        let wanted = length.max(ahead);
        if self.bytes.len() < wanted {
            // Anew: nothing of the old block is wanted, and fresh pages are zero already.
            self.bytes = vec![0; wanted];
        }
        if self.stride == MOST {
            self.ask_ahead(file, offset + wanted as u64);
        }
        // Invalid until the read has succeeded.
        self.filled = 0;
        self.filled = file.fill_at(&mut self.bytes[..wanted], offset)?;
        self.start = offset;
        Ok(())
    }

    /// Asks the disk for what follows a long read that ends at `end`.
    fn ask_ahead<F: StoredFile>(&mut self, file: &F, end: u64) {
        let until = end + AHEAD;
        // Otherwise the reader has gone back.
        let from = if self.asked <= until { end.max(self.asked) } else { end };
        file.will_need(from, until - from);
        self.asked = until;
    }
}
