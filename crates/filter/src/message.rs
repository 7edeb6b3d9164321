//! One message as filters see it.

use crate::fields::Slot;
use crate::interpreter::{Environment, FieldSource};
use crate::row::Row;
use crate::value::Value;

/// A message after reading, with its context.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Extracted fields.
    pub row: &'a Row,
    /// Bytes that `row` refers to.
    pub bytes: &'a [u8],
    /// Topic, publisher and time.
    pub environment: &'a Environment<'a>,
}

impl FieldSource<Slot> for Message<'_> {
    #[inline]
    fn values<'a>(&'a self, slot: &'a Slot) -> impl Iterator<Item = Value<'a>> {
        self.row.values(*slot, self.bytes)
    }

    fn size_bytes(&self) -> usize {
        self.bytes.len()
    }
}
