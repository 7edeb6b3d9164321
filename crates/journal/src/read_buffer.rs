//! Read buffer: a block of one file in memory.

use crate::storage::{StorageResult, StoredFile};
use lanecast_wire::journal::RecordHeader;
use zerocopy::FromBytes;

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
        if !self.holds(offset, length) {
            self.read(file, offset, length)?;
            if !self.holds(offset, length) {
                return Ok(None);
            }
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + length]))
    }

    /// Whether the `length` bytes at `offset` are in memory.
    #[inline]
    pub(crate) fn holds(&self, offset: u64, length: usize) -> bool {
        let end = offset.checked_sub(self.start).and_then(|at| at.checked_add(length as u64));
        end.is_some_and(|end| end <= self.filled as u64)
    }

    /// The record at `offset`: its header and its body.
    ///
    /// # Panics
    /// If the buffer does not hold the whole record.
    #[inline]
    pub(crate) fn record(&self, offset: u64) -> (&RecordHeader, &[u8]) {
        let bytes = &self.bytes[(offset - self.start) as usize..self.filled];
        let (header, rest) = RecordHeader::ref_from_prefix(bytes).expect("a header that was read");
        (header, &rest[..header.length.get() as usize])
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
