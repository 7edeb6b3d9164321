//! Frames of one round, written once for all who get them.

/// So many sheets keep their memory from round to round, each of so many bytes at most.
const KEPT: usize = 64;
const KEPT_BYTES: usize = 1 << 20;

/// A part of a sheet; it is there until the round ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FrameRange {
    pub(crate) sheet: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl FrameRange {
    pub(crate) fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Sheets that frames are written on, so that those for the same clients stand together.
#[derive(Debug, Default)]
pub(crate) struct FrameArena {
    sheets: Vec<Vec<u8>>,
    /// How many of them are in use in this round.
    used: usize,
    bytes: usize,
    round: u64,
}

impl FrameArena {
    /// The number of this round.
    #[inline]
    pub(crate) fn round(&self) -> u64 {
        self.round
    }

    /// A sheet that nothing stands on yet.
    pub(crate) fn fresh(&mut self) -> usize {
        if self.used == self.sheets.len() {
            self.sheets.push(Vec::new());
        }
        self.used += 1;
        self.used - 1
    }

    /// Writes onto a sheet, behind all else.
    #[inline]
    pub(crate) fn write(&mut self, sheet: usize, write: impl FnOnce(&mut Vec<u8>)) -> FrameRange {
        let bytes = &mut self.sheets[sheet];
        let start = bytes.len();
        write(bytes);
        let end = bytes.len();
        self.bytes += end - start;
        FrameRange { sheet, start, end }
    }

    #[inline]
    pub(crate) fn get(&self, part: FrameRange) -> &[u8] {
        &self.sheets[part.sheet][part.start..part.end]
    }

    /// How many bytes stand on all of them.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    /// Nobody has parts of them any more.
    pub(crate) fn end_round(&mut self) {
        if self.used == 0 {
            return;
        }
        self.sheets.truncate(KEPT);
        for sheet in self.sheets.iter_mut().take(self.used) {
            sheet.clear();
            sheet.shrink_to(KEPT_BYTES);
        }
        (self.used, self.bytes) = (0, 0);
        self.round += 1;
    }
}
