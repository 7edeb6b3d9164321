//! What a reader found in one message: for each slot, where its values stand.

use crate::fields::Slot;
use crate::number::Number;
use crate::value::Value;
use std::cell::Cell;

/// The values of one message, by slot.
///
/// It holds offsets into the message and never its bytes, so it is used again for the next message
/// without allocating, and can be kept beside a stored one. Whoever asks it for values hands it the
/// message that it was read from; with another it answers nonsense, but does not panic.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The number of the message. Entries of others are as good as absent.
    epoch: u32,
    entries: Vec<Entry>,
    /// The second and later values of all slots, each leading to the next.
    more: Vec<Piece>,
    /// Texts that do not stand in the message as they are meant.
    scratch: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Entry {
    epoch: u32,
    /// Where in `more` the last value is, or `NONE`.
    last: u32,
    first: Piece,
    memo: Cell<Memo>,
}

/// One value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) form: Form,
    /// Where in `more` the next value is, or `NONE`.
    next: u32,
}

/// How a value stands in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(dead_code, reason = "pairs have text only")]
pub(crate) enum Form {
    Null,
    False,
    True,
    Number,
    Text,
    /// Text that stands in the row's scratch buffer.
    Scratch,
}

/// What the first value is as a number, once somebody has asked.
#[derive(Clone, Copy, Debug)]
enum Memo {
    Unread,
    Not,
    Number(Number),
}

const NONE: u32 = u32::MAX;

impl Piece {
    /// A value that stands from `start` to `end`.
    #[inline(always)]
    pub(crate) fn new(form: Form, start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32, form, next: NONE }
    }
}

impl Row {
    /// An empty row.
    pub fn new() -> Self {
        Self::default()
    }

    /// The value of `slot`: the first one, if there are several.
    #[inline]
    pub fn value<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Value<'a> {
        let Some(entry) = self.entry(slot) else { return Value::Null };
        match entry.first.form {
            Form::Number => entry.number(self, bytes).map_or(Value::Null, Value::from),
            _ => self.value_of(&entry.first, bytes),
        }
    }

    /// All values of `slot`, in the order of the message.
    #[inline]
    pub fn values<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Values<'a> {
        Values { row: self, bytes, next: self.entry(slot).map(|entry| &entry.first) }
    }

    /// How many values `slot` has. Empty ones count, and so does `null`.
    pub fn count(&self, slot: Slot) -> usize {
        self.values(slot, &[]).count()
    }

    /// Whether `slot` has more than one value.
    #[inline]
    pub fn has_several(&self, slot: Slot) -> bool {
        self.entry(slot).is_some_and(|entry| entry.first.next != NONE)
    }

    /// The first value of `slot` as a number. Asking again costs nothing.
    #[inline]
    pub fn number(&self, slot: Slot, bytes: &[u8]) -> Option<Number> {
        self.entry(slot)?.number(self, bytes)
    }

    /// The first value of `slot` as it is written, numbers to their last digit. Escapes and
    /// entities are resolved. `None` for NULL and for empty text.
    #[inline]
    pub fn text<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Option<&'a [u8]> {
        Some(self.text_of(&self.entry(slot)?.first, bytes)).filter(|text| !text.is_empty())
    }

    #[inline]
    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.index()).filter(|entry| entry.epoch == self.epoch)
    }

    #[inline]
    fn text_of<'a>(&'a self, piece: &Piece, bytes: &'a [u8]) -> &'a [u8] {
        let source = match piece.form {
            Form::Null => return &[],
            Form::False => return b"false",
            Form::True => return b"true",
            Form::Number | Form::Text => bytes,
            Form::Scratch => &self.scratch,
        };
        source.get(piece.start as usize..piece.end as usize).unwrap_or_default()
    }

    #[inline]
    fn value_of<'a>(&'a self, piece: &Piece, bytes: &'a [u8]) -> Value<'a> {
        match piece.form {
            Form::Null => Value::Null,
            Form::False => Value::Bool(false),
            Form::True => Value::Bool(true),
            Form::Number => {
                Number::parse(self.text_of(piece, bytes)).map_or(Value::Null, Value::from)
            }
            Form::Text | Form::Scratch => match self.text_of(piece, bytes) {
                [] => Value::Null,
                text => Value::Text(text),
            },
        }
    }

    /// Forgets everything, and makes room for slots below `slots`.
    #[inline]
    pub(crate) fn begin(&mut self, slots: usize) {
        if self.epoch == u32::MAX || self.entries.len() < slots {
            self.grow(slots);
        }
        self.epoch += 1;
        self.more.clear();
        self.scratch.clear();
    }

    #[cold]
    fn grow(&mut self, slots: usize) {
        let slots = slots.max(self.entries.len());
        self.epoch = 0;
        self.entries.clear();
        self.entries.resize(slots, Entry::absent());
    }

    /// Whether `slot` has a value yet.
    #[inline(always)]
    pub(crate) fn is_set(&self, slot: Slot) -> bool {
        self.entry(slot).is_some()
    }

    /// Gives `slot` its first value, or overwrites all it has.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: Slot, piece: Piece) {
        if let Some(entry) = self.entries.get_mut(slot.index()) {
            entry.epoch = self.epoch;
            entry.last = NONE;
            entry.first = piece;
            entry.memo.set(Memo::Unread);
        }
    }

    /// Gives `slot` one more value.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot, piece: Piece) {
        if !self.is_set(slot) {
            return self.set(slot, piece);
        }
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        let index = self.more.len() as u32;
        self.more.push(piece);
        match self.more.get_mut(entry.last as usize) {
            Some(last) => last.next = index,
            None => entry.first.next = index,
        }
        entry.last = index;
    }

    /// Where texts go that do not stand in the message as they are meant.
    #[expect(dead_code, reason = "pairs have no escapes")]
    pub(crate) fn scratch(&mut self) -> &mut Vec<u8> {
        &mut self.scratch
    }
}

impl Entry {
    fn absent() -> Self {
        let first = Piece::new(Form::Null, 0, 0);
        Self { epoch: 0, last: NONE, first, memo: Cell::new(Memo::Unread) }
    }

    #[inline]
    fn number(&self, row: &Row, bytes: &[u8]) -> Option<Number> {
        match self.memo.get() {
            Memo::Number(number) => Some(number),
            Memo::Not => None,
            Memo::Unread => {
                let number = match self.first.form {
                    Form::Null => None,
                    Form::False => Some(Number::Int(0)),
                    Form::True => Some(Number::Int(1)),
                    _ => Number::parse(row.text_of(&self.first, bytes)),
                };
                self.memo.set(number.map_or(Memo::Not, Memo::Number));
                number
            }
        }
    }
}

/// The values of one slot.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    row: &'a Row,
    bytes: &'a [u8],
    next: Option<&'a Piece>,
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        let piece = self.next?;
        self.next = self.row.more.get(piece.next as usize);
        Some(self.row.value_of(piece, self.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Slot = Slot(0);
    const B: Slot = Slot(1);
    const BYTES: &[u8] = b"IBM 5000 34.50";

    fn row() -> Row {
        let mut row = Row::new();
        row.begin(2);
        row
    }

    /// Values in a form that can be compared.
    fn shown(row: &Row, slot: Slot) -> Vec<String> {
        row.values(slot, BYTES).map(|value| show(value)).collect()
    }

    fn show(value: Value<'_>) -> String {
        match value {
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn values_are_where_the_reader_put_them() {
        let mut row = row();
        assert!(row.value(A, BYTES).is_null() && row.count(A) == 0);
        row.set(A, Piece::new(Form::Text, 0, 3));
        row.set(B, Piece::new(Form::Number, 9, 14));
        assert_eq!(
            (show(row.value(A, BYTES)), show(row.value(B, BYTES))),
            ("IBM".into(), "Float(34.5)".into())
        );
        assert_eq!(row.text(B, BYTES), Some(&b"34.50"[..]));
        assert!(row.number(A, BYTES).is_none());
        assert_eq!(row.number(B, BYTES).map(Number::to_f64), Some(34.5));
        assert!(row.value(Slot(7), BYTES).is_null());
    }

    #[test]
    fn several_values_keep_their_order() {
        let mut row = row();
        row.push(A, Piece::new(Form::Text, 0, 3));
        row.push(B, Piece::new(Form::Null, 0, 0));
        assert!(!row.has_several(A));
        row.push(A, Piece::new(Form::Number, 4, 8));
        row.push(B, Piece::new(Form::True, 0, 0));
        row.push(A, Piece::new(Form::Number, 9, 14));
        assert!(row.has_several(A));
        assert_eq!(shown(&row, A), ["IBM", "Int(5000)", "Float(34.5)"]);
        assert_eq!(shown(&row, B), ["Null", "Bool(true)"]);
        assert_eq!((row.count(A), row.count(B)), (3, 2));
    }

    #[test]
    fn the_next_message_sees_nothing_of_the_last() {
        let mut row = row();
        row.push(A, Piece::new(Form::Number, 4, 8));
        assert_eq!(row.number(A, BYTES).map(Number::to_f64), Some(5000.0));
        row.begin(2);
        assert!(row.value(A, BYTES).is_null() && row.number(A, BYTES).is_none());
        row.push(A, Piece::new(Form::Text, 9, 14));
        assert_eq!(row.number(A, BYTES).map(Number::to_f64), Some(34.5), "not remembered");
        row.epoch = u32::MAX;
        row.begin(1);
        assert!(row.value(A, BYTES).is_null());
        row.set(B, Piece::new(Form::False, 0, 0));
        assert_eq!(shown(&row, B), ["Bool(false)"], "room is never taken away");
    }

    #[test]
    fn another_message_is_answered_with_nonsense() {
        let mut row = row();
        row.set(A, Piece::new(Form::Number, 4, 8));
        row.set(B, Piece::new(Form::Text, 4, 8));
        assert!(row.value(A, b"").is_null());
        assert!(row.value(B, b"x").is_null() && row.text(B, b"x").is_none());
    }
}
