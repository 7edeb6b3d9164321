//! What stands in the fields of one message, read when somebody first asks.

use lanecast_filter::fields::FieldSet;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use std::cell::{Cell, OnceCell, RefCell};
use std::fmt::{self, Debug, Formatter};

/// A reader, and what it found in the message at hand. Rows are used again.
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

    /// Another message is at hand.
    pub(crate) fn forget(&mut self) {
        if let Some(row) = self.row.take() {
            self.spare.set(row);
        }
    }

    /// Reads `bytes`, which are at hand from now on.
    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8]) -> Result<&Row, Malformed> {
        // A row that is there is used again where it is.
        let mut row = match self.row.take() {
            Some(row) => row,
            None => self.spare.take(),
        };
        let read = self.reader.get_mut().read(bytes, &mut row);
        let row = self.row.get_or_init(|| row);
        read.map(|()| row)
    }

    /// What stands in `bytes`, which are at hand: nothing, if they cannot be read.
    pub(crate) fn row(&self, bytes: &[u8]) -> &Row {
        self.row.get_or_init(|| {
            let mut row = self.spare.take();
            // A malformed message leaves the row empty, which is what shall be found in it.
            let _ = self.reader.borrow_mut().read(bytes, &mut row);
            row
        })
    }
}
