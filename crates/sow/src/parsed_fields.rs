//! Fields of one message, parsed on first use.

use lanecast_filter::fields::FieldSet;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::{self, Debug, Formatter};

/// A field reader and its result for the current message. Rows are reused, so a message costs no
/// allocation.
pub(crate) struct ParsedFields {
    reader: RefCell<Reader>,
    row: OnceCell<Row>,
    spare: Cell<Row>,
}

impl Debug for ParsedFields {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParsedFields").field("row", &self.row).finish_non_exhaustive()
    }
}

impl ParsedFields {
    pub(crate) fn new(fields: &FieldSet) -> Self {
        Self {
            reader: RefCell::new(Reader::new(fields)),
            row: OnceCell::new(),
            spare: Cell::new(Row::new()),
        }
    }

    /// Discards the result: another message becomes the current one.
    pub(crate) fn forget(&mut self) {
        if let Some(row) = self.row.take() {
            self.spare.set(row);
        }
    }

    /// Parses `bytes` as the current message.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<&Row, Malformed> {
        // Reusing the row in place saves two moves of it.
        let mut row = match self.row.take() {
            Some(row) => row,
            None => self.spare.take(),
        };
        let read = self.reader.get_mut().read(bytes, &mut row);
        let row = self.row.get_or_init(|| row);
        read.map(|()| row)
    }

    /// The fields of `bytes`, the current message; empty if it is malformed.
    pub(crate) fn row(&self, bytes: &[u8]) -> &Row {
        self.row.get_or_init(|| {
            let mut row = self.spare.take();
            // A malformed message leaves the row empty, as intended.
            let _ = self.reader.borrow_mut().read(bytes, &mut row);
            row
        })
    }
}
