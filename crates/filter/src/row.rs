//! Extracted values of one message, by slot.

use crate::fields::Slot;
use crate::number::Number;
use crate::value::Value;
use std::cell::Cell;

/// The values of one message, by slot.
///
/// Stores offsets, never bytes: reused without allocation, and kept next to stored messages.
/// Accessors take the message that was read; any other one yields meaningless values, no panic.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Number of the current message; entries of other epochs are absent.
    epoch: u32,
    entries: Vec<Entry>,
    /// Second and later values of all slots.
    more: Vec<Link>,
    /// Unescaped texts.
    scratch: Vec<u8>,
}

#[derive(Clone, Debug)]
struct Entry {
    epoch: u32,
    /// Span of the first value.
    start: u32,
    end: u32,
    form: ValueForm,
    has_several: bool,
    cache: Cell<NumberCache>,
    /// Indexes in `more` of the second and the last value, if there are several.
    second: u32,
    last: u32,
    /// Bits of the first value as a number, of the type that `cache` tells.
    number: Cell<u64>,
}

// A row of 1,024 slots fits 32 KiB.
const _: () = assert!(size_of::<Entry>() == 32);

/// Location of one value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueSpan {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) form: ValueForm,
}

/// A value after the first of its slot.
#[derive(Clone, Copy, Debug)]
struct Link {
    span: ValueSpan,
    /// Index in `more` of the next value, or `NONE`.
    next: u32,
}

/// Encoding of a value in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueForm {
    Null,
    False,
    True,
    Number,
    Text,
    /// Text in the row's scratch buffer.
    Scratch,
}

/// Numeric type of the cached first value.
#[derive(Clone, Copy, Debug)]
enum NumberCache {
    /// Not parsed yet.
    Unparsed,
    NotANumber,
    Int,
    Uint,
    Float,
}

const NONE: u32 = u32::MAX;

impl ValueSpan {
    /// A value in the bytes from `start` to `end`.
    #[inline(always)]
    pub(crate) fn new(form: ValueForm, start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32, form }
    }
}

impl Row {
    /// An empty row.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first value of `slot`.
    #[inline]
    pub fn value<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Value<'a> {
        let Some(entry) = self.entry(slot) else { return Value::Null };
        match entry.form {
            ValueForm::Number => entry.number(self, bytes).map_or(Value::Null, Value::from),
            _ => self.value_of(entry.first(), bytes),
        }
    }

    /// All values of `slot`, in message order.
    #[inline]
    pub fn values<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Values<'a> {
        match self.entry(slot) {
            None => Values { row: self, bytes, span: None, next: NONE },
            Some(entry) => {
                let next = if entry.has_several { entry.second } else { NONE };
                Values { row: self, bytes, span: Some(entry.first()), next }
            }
        }
    }

    /// Number of values of `slot`, empty and `null` values included.
    pub fn count(&self, slot: Slot) -> usize {
        self.values(slot, &[]).count()
    }

    /// Whether `slot` has several values.
    #[inline]
    pub fn has_several(&self, slot: Slot) -> bool {
        self.entry(slot).is_some_and(|entry| entry.has_several)
    }

    /// The first value of `slot` as a number; parsed once and cached.
    #[inline]
    pub fn number(&self, slot: Slot, bytes: &[u8]) -> Option<Number> {
        self.entry(slot)?.number(self, bytes)
    }

    /// The first value of `slot` if it is an integer and already cached; never parses.
    #[inline]
    pub fn cached_integer(&self, slot: Slot) -> Option<i64> {
        let entry = self.entry(slot)?;
        matches!(entry.cache.get(), NumberCache::Int).then(|| entry.number.get().cast_signed())
    }

    /// The first value of `slot` as text: numbers as written, escapes and entities resolved. `None`
    /// for NULL and empty text.
    #[inline]
    pub fn text<'a>(&'a self, slot: Slot, bytes: &'a [u8]) -> Option<&'a [u8]> {
        Some(self.text_of(self.entry(slot)?.first(), bytes)).filter(|text| !text.is_empty())
    }

    /// The value of `slot` if it is a single non-empty text within the message.
    #[inline(always)]
    pub(crate) fn only_text<'a>(&self, slot: Slot, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let entry = self.entry(slot)?;
        let text = bytes.get(entry.start as usize..entry.end as usize)?;
        (entry.form == ValueForm::Text && !entry.has_several && !text.is_empty()).then_some(text)
    }

    /// The value of `slot` as a number, if it is a single one.
    #[inline]
    pub(crate) fn only_number(&self, slot: Slot, bytes: &[u8]) -> Option<Number> {
        self.entry(slot).filter(|entry| !entry.has_several)?.number(self, bytes)
    }

    #[inline(always)]
    fn entry(&self, slot: Slot) -> Option<&Entry> {
        self.entries.get(slot.index()).filter(|entry| entry.epoch == self.epoch)
    }

    #[inline]
    fn text_of<'a>(&'a self, span: ValueSpan, bytes: &'a [u8]) -> &'a [u8] {
        let source = match span.form {
            ValueForm::Null => return &[],
            ValueForm::False => return b"false",
            ValueForm::True => return b"true",
            ValueForm::Number | ValueForm::Text => bytes,
            ValueForm::Scratch => &self.scratch,
        };
        source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    #[inline]
    fn value_of<'a>(&'a self, span: ValueSpan, bytes: &'a [u8]) -> Value<'a> {
        match span.form {
            ValueForm::Null => Value::Null,
            ValueForm::False => Value::Bool(false),
            ValueForm::True => Value::Bool(true),
            ValueForm::Number => {
                Number::parse(self.text_of(span, bytes)).map_or(Value::Null, Value::from)
            }
            ValueForm::Text | ValueForm::Scratch => match self.text_of(span, bytes) {
                [] => Value::Null,
                text => Value::Text(text),
            },
        }
    }

    /// Starts a new message, with room for slots below `slots`.
    #[inline]
    pub(crate) fn reset(&mut self, slots: usize) {
        // Raising the epoch empties all entries at once; only its wrap-around has to clear them.
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

    /// Access for readers.
    #[inline(always)]
    pub(crate) fn writer(&mut self) -> RowWriter<'_> {
        RowWriter {
            epoch: self.epoch,
            entries: &mut self.entries,
            more: &mut self.more,
            scratch: &mut self.scratch,
        }
    }
}

/// A row while a reader fills it; separate references keep its parts in registers.
#[derive(Debug)]
pub(crate) struct RowWriter<'a> {
    epoch: u32,
    entries: &'a mut [Entry],
    more: &'a mut Vec<Link>,
    scratch: &'a mut Vec<u8>,
}

impl RowWriter<'_> {
    /// Reborrows the writer for a call; the original stays in registers.
    #[inline(always)]
    pub(crate) fn reborrow(&mut self) -> RowWriter<'_> {
        RowWriter {
            epoch: self.epoch,
            entries: self.entries,
            more: self.more,
            scratch: self.scratch,
        }
    }

    /// Sets the value of an empty `slot`; returns whether it was empty.
    #[inline(always)]
    pub(crate) fn set(&mut self, slot: Slot, span: ValueSpan) -> bool {
        self.try_set(slot.0, span) == Some(true)
    }

    /// Sets the value of slot number `slot` if it is empty; `None` if the number is out of range.
    #[inline(always)]
    pub(crate) fn try_set(&mut self, slot: u16, span: ValueSpan) -> Option<bool> {
        let entry = self.entries.get_mut(usize::from(slot))?;
        if entry.epoch == self.epoch {
            return Some(false);
        }
        entry.epoch = self.epoch;
        entry.start = span.start;
        entry.end = span.end;
        entry.form = span.form;
        entry.has_several = false;
        entry.cache.set(NumberCache::Unparsed);
        Some(true)
    }

    /// Appends a value to `slot`.
    #[inline]
    pub(crate) fn push(&mut self, slot: Slot, span: ValueSpan) {
        if !self.set(slot, span) {
            self.push_more(slot, span);
        }
    }

    /// Buffer for texts that need unescaping.
    pub(crate) fn scratch(&mut self) -> &mut Vec<u8> {
        self.scratch
    }

    fn push_more(&mut self, slot: Slot, span: ValueSpan) {
        let Some(entry) = self.entries.get_mut(slot.index()) else { return };
        // Values of a slot form a linked list, because slots fill in message order.
        let index = self.more.len() as u32;
        self.more.push(Link { span, next: NONE });
        if entry.has_several {
            self.more[entry.last as usize].next = index;
        } else {
            (entry.has_several, entry.second) = (true, index);
        }
        entry.last = index;
    }
}

impl Entry {
    fn absent() -> Self {
        Self {
            epoch: 0,
            start: 0,
            end: 0,
            form: ValueForm::Null,
            has_several: false,
            cache: Cell::new(NumberCache::Unparsed),
            second: NONE,
            last: NONE,
            number: Cell::new(0),
        }
    }

    #[inline(always)]
    fn first(&self) -> ValueSpan {
        ValueSpan { start: self.start, end: self.end, form: self.form }
    }

    #[inline]
    fn number(&self, row: &Row, bytes: &[u8]) -> Option<Number> {
        match self.cache.get() {
            NumberCache::Int => Some(Number::Int(self.number.get().cast_signed())),
            NumberCache::Float => Some(Number::Float(f64::from_bits(self.number.get()))),
            NumberCache::Uint => Some(Number::Uint(self.number.get())),
            NumberCache::NotANumber => None,
            NumberCache::Unparsed => {
                let number = match self.form {
                    ValueForm::Null => None,
                    ValueForm::False => Some(Number::Int(0)),
                    ValueForm::True => Some(Number::Int(1)),
                    _ => Number::parse(row.text_of(self.first(), bytes)),
                };
                let (cache, bits) = match number {
                    None => (NumberCache::NotANumber, 0),
                    Some(Number::Int(number)) => (NumberCache::Int, number.cast_unsigned()),
                    Some(Number::Uint(number)) => (NumberCache::Uint, number),
                    Some(Number::Float(number)) => (NumberCache::Float, number.to_bits()),
                };
                self.cache.set(cache);
                self.number.set(bits);
                number
            }
        }
    }
}

/// Iterator over the values of one slot.
#[derive(Clone, Debug)]
pub struct Values<'a> {
    row: &'a Row,
    bytes: &'a [u8],
    span: Option<ValueSpan>,
    next: u32,
}

impl<'a> Iterator for Values<'a> {
    type Item = Value<'a>;

    #[inline]
    fn next(&mut self) -> Option<Value<'a>> {
        let span = self.span?;
        let link = self.row.more.get(self.next as usize);
        self.span = link.map(|link| link.span);
        self.next = link.map_or(NONE, |link| link.next);
        Some(self.row.value_of(span, self.bytes))
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
        row.reset(2);
        row
    }

    /// Values in a comparable form.
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
        row.writer().set(A, ValueSpan::new(ValueForm::Text, 0, 3));
        row.writer().set(B, ValueSpan::new(ValueForm::Number, 9, 14));
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
        row.writer().push(A, ValueSpan::new(ValueForm::Text, 0, 3));
        row.writer().push(B, ValueSpan::new(ValueForm::Null, 0, 0));
        assert!(!row.has_several(A));
        row.writer().push(A, ValueSpan::new(ValueForm::Number, 4, 8));
        row.writer().push(B, ValueSpan::new(ValueForm::True, 0, 0));
        row.writer().push(A, ValueSpan::new(ValueForm::Number, 9, 14));
        assert!(row.has_several(A));
        assert_eq!(shown(&row, A), ["IBM", "Int(5000)", "Float(34.5)"]);
        assert_eq!(shown(&row, B), ["Null", "Bool(true)"]);
        assert_eq!((row.count(A), row.count(B)), (3, 2));
    }

    #[test]
    fn the_next_message_sees_nothing_of_the_last() {
        let mut row = row();
        row.writer().push(A, ValueSpan::new(ValueForm::Number, 4, 8));
        assert_eq!(row.number(A, BYTES).map(Number::to_f64), Some(5000.0));
        row.reset(2);
        assert!(row.value(A, BYTES).is_null() && row.number(A, BYTES).is_none());
        row.writer().push(A, ValueSpan::new(ValueForm::Text, 9, 14));
        assert_eq!(row.number(A, BYTES).map(Number::to_f64), Some(34.5), "not remembered");
        row.epoch = u32::MAX;
        row.reset(1);
        assert!(row.value(A, BYTES).is_null());
        row.writer().set(B, ValueSpan::new(ValueForm::False, 0, 0));
        assert_eq!(shown(&row, B), ["Bool(false)"], "room is never taken away");
    }

    #[test]
    fn another_message_is_answered_with_nonsense() {
        let mut row = row();
        row.writer().set(A, ValueSpan::new(ValueForm::Number, 4, 8));
        row.writer().set(B, ValueSpan::new(ValueForm::Text, 4, 8));
        assert!(row.value(A, b"").is_null());
        assert!(row.value(B, b"x").is_null() && row.text(B, b"x").is_none());
    }
}
