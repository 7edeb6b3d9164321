//! A message as filters look at it.

use crate::fields::Slot;
use crate::interpreter::{Environment, FieldSource};
use crate::row::Row;
use crate::value::Value;

/// A message that has been read, and what stands around it.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// What the reader found.
    pub row: &'a Row,
    /// The bytes that it read.
    pub bytes: &'a [u8],
    /// What expressions can ask for beyond the message.
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
