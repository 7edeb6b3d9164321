//! FIX and NVFIX: names and values, one pair behind another.
//!
//! A sieve says which of the fields in 64 bytes may be wanted, and whether all of them have names.
//! The name of each that passes is compared, as a word of eight bytes, with the one in its place in
//! the last message, and looked up only if it is another one; values are not looked at.

mod predicted_name;
mod prefilter;

use crate::fields::{FieldSet, SLOTS_MAX, Slot};
use crate::malformed::{Malformed, MalformedReason};
use crate::message_type::{Format, MessageType};
use crate::name_table::{LONG, NameTable, word_at};
use crate::path::Step;
use crate::row::{Row, RowWriter, ValueForm, ValueSpan};
use lanecast_base::simd::{BLOCK, Blocks, Masks, Scan, scan};
use predicted_name::{Name, PredictedName};
use prefilter::{Carry, Prefilter};
use std::collections::BTreeMap;

/// What is wanted of messages made of pairs.
#[derive(Clone, Debug)]
pub(crate) struct TagValueReader {
    field: u8,
    prefilter: Prefilter,
    known: FieldTable,
    /// The names that passed in the last messages, in their order: those of the next are likely to
    /// be the same.
    predictions: Box<[PredictedName<Target>; PREDICTIONS_MAX]>,
    repeated: Vec<RepeatedField>,
    /// Values to find before a message needs no more reading; `None` if it is read to its end.
    wanted: Option<u32>,
}

/// The names that fields may have, and what is wanted of each.
#[derive(Clone, Debug)]
struct FieldTable {
    is_fix: bool,
    pair: u8,
    names: NameTable<Target>,
}

/// Who takes the fields of one name: a slot takes the first, or a group of slots, by its number
/// behind those of slots.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Target(u16);

const NO_TARGET: Target = Target(u16::MAX);

/// Slots that take fields of one name, not only the first.
#[derive(Clone, Debug)]
struct RepeatedField {
    selectors: Vec<SlotSelector>,
    /// Fields of that name so far.
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct SlotSelector {
    slot: Slot,
    /// Which field it takes; all if `None`.
    index: Option<u32>,
}

/// Fields of a message whose names are foreseen.
const PREDICTIONS_MAX: usize = 128;

impl Default for Target {
    fn default() -> Self {
        NO_TARGET
    }
}

impl TagValueReader {
    pub(crate) fn new(fields: &FieldSet) -> Self {
        let format = fields.format();
        let mut names: BTreeMap<&str, Vec<SlotSelector>> = BTreeMap::new();
        for (slot, wanted) in fields.wanted() {
            let [step] = wanted.path.steps() else { continue };
            if can_be(step, format) {
                let index = step.index().or((!wanted.wants_all).then_some(0));
                names.entry(step.name()).or_default().push(SlotSelector { slot, index });
            }
        }
        let selectors = || names.values().flatten();
        let is_endless = selectors().any(|selector| selector.index.is_none());
        let wanted = (!is_endless).then_some(selectors().count() as u32);
        let (mut repeated, mut targets) = (Vec::new(), Vec::new());
        for (name, selectors) in &names {
            let target = match **selectors {
                [SlotSelector { slot, index: Some(0) }] => Target(slot.0),
                _ => {
                    repeated.push(RepeatedField { selectors: selectors.clone(), count: 0 });
                    Target((SLOTS_MAX + repeated.len()) as u16 - 1)
                }
            };
            targets.push((name.as_bytes(), target));
        }
        let (field, pair) = (format.field_separator(), format.pair_separator());
        let is_fix = format.message_type() == MessageType::Fix;
        let prefilter =
            Prefilter::new(is_fix, [field, pair], targets.iter().map(|(name, _)| *name));
        let known = FieldTable { is_fix, pair, names: NameTable::new(&targets, pair) };
        let predictions = Box::new([PredictedName::never(); PREDICTIONS_MAX]);
        Self { field, prefilter, known, predictions, repeated, wanted }
    }

    #[inline]
    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.wanted == Some(0) {
            return Ok(());
        }
        self.repeated.iter_mut().for_each(|group| group.count = 0);
        scan(Extraction { bytes, pairs: self, row })
    }
}

/// Whether messages of `format` can have a field of this name.
fn can_be(step: &Step, format: Format) -> bool {
    let name = step.name().as_bytes();
    let is_separator =
        |byte: &u8| [format.field_separator(), format.pair_separator()].contains(byte);
    let is_tag = format.message_type() == MessageType::Nvfix || name.iter().all(u8::is_ascii_digit);
    is_tag && !step.is_attribute() && !name.is_empty() && !name.iter().any(is_separator)
}

/// One message on its way into a row.
struct Extraction<'a> {
    bytes: &'a [u8],
    pairs: &'a mut TagValueReader,
    row: &'a mut Row,
}

impl Scan for Extraction<'_> {
    type Output = Result<(), Malformed>;

    // One function with everything in variables of its own: so it stays in registers.
    #[inline(always)]
    fn run<M: Masks>(self, masks: M) -> Self::Output {
        let (bytes, mut writer) = (self.bytes, self.row.writer());
        let TagValueReader {
            field,
            ref prefilter,
            ref known,
            ref mut predictions,
            ref mut repeated,
            wanted,
        } = *self.pairs;
        let mut left = wanted.unwrap_or(u32::MAX);
        let mut short = [0; BLOCK];
        let blocks = Blocks::new(bytes, &mut short);
        // The last separator may be missing.
        let length = bytes.len() - usize::from(bytes.last() == Some(&field));
        let (mut carry, mut is_open, mut start, mut at) = (Carry::FIRST, false, 0, 0);
        let mut predictions = predictions.iter_mut();
        while at <= length && !bytes.is_empty() {
            let found = prefilter.field_masks(masks, (blocks, at, length), &mut carry);
            let mut wanted = found.wanted;
            if !found.are_sound {
                // Each is looked at, also the one that started before: the first is to be named.
                wanted = found.starts;
                (start, is_open) = start_before(bytes, at, field);
            } else if wanted == 0 && !is_open {
                at += BLOCK;
                continue;
            }
            // Adding carries each bit through the field that it stands before, to its end.
            let (past, goes_on) = (!found.ends).overflowing_add(wanted | u64::from(is_open));
            let mut ends = past & found.ends;
            let mut next = || {
                let next = at + wanted.trailing_zeros() as usize;
                wanted &= wanted.wrapping_sub(1);
                next
            };
            if !is_open {
                start = next();
            }
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                let word = word_at(bytes, start);
                let (length, target) = match predictions.next() {
                    Some(prediction) if prediction.matches(word) => {
                        (prediction.length.into(), prediction.target)
                    }
                    prediction => known.look_up(bytes, start, end, prediction)?,
                };
                let span = ValueSpan::new(ValueForm::Text, start + length + 1, end);
                start = next();
                left -= match writer.try_set(target.0, span) {
                    Some(was_free) => was_free.into(),
                    None if target == NO_TARGET => continue,
                    None => store_repeated(repeated, target.0, span, writer.reborrow()),
                };
                if left == 0 {
                    return Ok(());
                }
            }
            is_open = goes_on;
            at += BLOCK;
        }
        Ok(())
    }
}

/// Where the field starts that goes on at `at`, if one does, and whether one does.
#[cold]
fn start_before(bytes: &[u8], at: usize, field: u8) -> (usize, bool) {
    let start = bytes[..at].iter().rposition(|byte| *byte == field).map_or(0, |end| end + 1);
    (start, start < at)
}

/// Gives a value to those of a group who take it. How many of them need no other.
#[cold]
fn store_repeated(
    repeated: &mut [RepeatedField],
    target: u16,
    span: ValueSpan,
    mut writer: RowWriter<'_>,
) -> u32 {
    let Some(group) = repeated.get_mut(usize::from(target) - SLOTS_MAX) else { return 0 };
    let this = group.count;
    group.count += 1;
    let mut found = 0;
    for selector in &group.selectors {
        match selector.index {
            None => writer.push(selector.slot, span),
            Some(index) if index == this => found += u32::from(writer.set(selector.slot, span)),
            Some(_) => {}
        }
    }
    found
}

impl FieldTable {
    /// How long the name of a field is that was not foreseen, and what is wanted of it. It is what
    /// is foreseen next time.
    #[inline(never)]
    fn look_up(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
        prediction: Option<&mut PredictedName<Target>>,
    ) -> Result<(usize, Target), Malformed> {
        let name = Name::read(word_at(bytes, start), self.pair);
        let target = self.names.short().find_short(name.word);
        let is_short = (1..LONG).contains(&name.length) && start + name.length < end;
        let found = if is_short && (target != NO_TARGET || !self.is_fix || name.is_tag()) {
            (name.length, target)
        } else {
            self.look_up_slow(bytes, start, end)?
        };
        if let Some(prediction) = prediction {
            *prediction = name.prediction(self.pair, found.1);
        }
        Ok(found)
    }

    /// The same if the name is long or malformed.
    fn look_up_slow(
        &self,
        bytes: &[u8],
        start: usize,
        end: usize,
    ) -> Result<(usize, Target), Malformed> {
        let field = bytes.get(start..end).unwrap_or_default();
        let length = field.iter().position(|byte| *byte == self.pair);
        let length = length.ok_or(Malformed::new(end, MalformedReason::NoValue))?;
        let name = &field[..length];
        if self.is_fix
            && let Some(at) = name.iter().position(|byte| !byte.is_ascii_digit())
        {
            return Err(Malformed::new(start + at, MalformedReason::NotATag));
        }
        match length {
            0 => Err(Malformed::new(start, MalformedReason::NoName)),
            LONG.. => Ok((length, self.names.find_long(name))),
            _ => Ok((length, NO_TARGET)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::Path;
    use crate::reader::Reader;
    use proptest::prelude::*;

    fn path(text: &str) -> Path {
        text.parse().expect(text)
    }

    fn format(kind: MessageType) -> Format {
        Format::new(kind).with_separators(b';', b'=').expect("as in the examples")
    }

    /// The texts of each of `paths` in `message`; of those that end with `*`, of every field.
    fn read(
        kind: MessageType,
        message: &[u8],
        paths: &[&str],
    ) -> Result<Vec<Vec<String>>, Malformed> {
        let mut fields = FieldSet::new(format(kind));
        let slots: Vec<_> = paths
            .iter()
            .map(|text| match text.strip_suffix('*') {
                Some(text) => fields.slot_for_all_values(&path(text)).expect("room"),
                None => fields.slot(&path(text)).expect("room"),
            })
            .collect();
        let mut row = Row::new();
        Reader::new(&fields).read(message, &mut row)?;
        let texts = |slot: &Slot| {
            let texts = row.values(*slot, message).map(|value| match value {
                crate::value::Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
                other => format!("{other:?}"),
            });
            texts.collect()
        };
        Ok(slots.iter().map(texts).collect())
    }

    #[test]
    fn fields_are_found_by_their_tags() {
        let message = b"11=c01;55=INTC;14=1000;99=34.50;";
        let found = read(MessageType::Fix, message, &["/55", "/99", "/5", "/a/b", "/@55"]);
        assert_eq!(
            found,
            Ok(vec![vec!["INTC".into()], vec!["34.50".into()], vec![], vec![], vec![]])
        );
        let last = read(MessageType::Fix, b"11=c01;99=34.50", &["/99"]);
        assert_eq!(last, Ok(vec![vec!["34.50".into()]]), "the last separator may be missing");
        assert_eq!(read(MessageType::Fix, b"", &["/1"]), Ok(vec![vec![]]));
        assert_eq!(read(MessageType::Fix, b"1==;", &["/1"]), Ok(vec![vec!["=".into()]]));
        assert_eq!(read(MessageType::Fix, b"1=;", &["/1"]), Ok(vec![vec!["Null".into()]]));
    }

    #[test]
    fn names_may_have_any_length() {
        let message = b"A=1;OrderQty=2;TransactTime=3;OrderQtyX=4;AnExtraordinarilyLongName=5";
        let paths = ["/OrderQty", "/TransactTime", "/AnExtraordinarilyLongName", "/OrderQt"];
        let found = read(MessageType::Nvfix, message, &paths).expect("well formed");
        assert_eq!(found, [vec!["2"], vec!["3"], vec!["5"], vec![]]);
    }

    #[test]
    fn of_repeated_fields_the_first_counts_unless_others_are_asked_for() {
        let message = b"448=a;448=b;1=x;448=c;";
        let paths = ["/448", "/448[0]", "/448[2]", "/448[3]", "/448*"];
        let found = read(MessageType::Fix, message, &paths).expect("well formed");
        assert_eq!(found, [vec!["a"], vec!["a"], vec!["c"], vec![], vec!["a", "b", "c"]]);
    }

    #[test]
    fn malformed_fields_are_named_with_their_place() {
        for (message, offset, reason) in [
            (&b"8=FIX;abc=1;"[..], 6, MalformedReason::NotATag),
            (b"8=FIX;5x=1;", 7, MalformedReason::NotATag),
            (b"8=FIX;123456789x=1;", 15, MalformedReason::NotATag),
            (b"8=FIX;35;", 8, MalformedReason::NoValue),
            (b"8=FIX;35", 8, MalformedReason::NoValue),
            (b"8=FIX;12345678901;1=2", 17, MalformedReason::NoValue),
            (b"8=FIX;=1;", 6, MalformedReason::NoName),
            (b"8=FIX;;", 6, MalformedReason::NoValue),
            (b"\xff=1", 0, MalformedReason::NotATag),
        ] {
            let expected = Err(Malformed::new(offset, reason));
            assert_eq!(read(MessageType::Fix, message, &["/99"]), expected, "{message:?}");
        }
        assert_eq!(
            read(MessageType::Fix, b"99=1;bad", &["/99"]),
            Ok(vec![vec!["1".into()]]),
            "unread"
        );
        assert!(read(MessageType::Nvfix, b"abc=1;", &["/99"]).is_ok());
    }

    /// What the reader finds, found slowly.
    fn split<'a>(message: &'a [u8], name: &str) -> Vec<&'a [u8]> {
        let fields = message.strip_suffix(b";").unwrap_or(message).split(|byte| *byte == b';');
        let pairs = fields.filter_map(|field| {
            let middle = field.iter().position(|byte| *byte == b'=')?;
            Some((&field[..middle], &field[middle + 1..]))
        });
        pairs.filter(|pair| pair.0 == name.as_bytes()).map(|pair| pair.1).collect()
    }

    /// What is wrong with `message`, found slowly.
    fn fault(message: &[u8], is_fix: bool) -> Option<Malformed> {
        let whole = message.strip_suffix(b";").unwrap_or(message);
        let mut start = 0;
        for field in whole.split(|byte| *byte == b';').filter(|_| !message.is_empty()) {
            let end = start + field.len();
            let Some(length) = field.iter().position(|byte| *byte == b'=') else {
                return Some(Malformed::new(end, MalformedReason::NoValue));
            };
            let stray = field[..length].iter().position(|byte| !byte.is_ascii_digit());
            if let Some(at) = stray.filter(|_| is_fix) {
                return Some(Malformed::new(start + at, MalformedReason::NotATag));
            }
            if length == 0 {
                return Some(Malformed::new(start, MalformedReason::NoName));
            }
            start = end + 1;
        }
        None
    }

    proptest! {
        #[test]
        fn the_reader_finds_what_splitting_finds(
            message in "([0-9ab]{1,17}=[a-z0-9=.]{0,12};){0,12}([0-9]{1,3}=x)?",
            damage in prop::collection::vec(
                (any::<prop::sample::Index>(), prop_oneof![any::<u8>(), Just(b';'), Just(b'=')]),
                0..4,
            ),
            is_fix: bool,
            wanted in prop::collection::vec("[0-9ab]{1,2}", 1..20),
        ) {
            let mut message = message.into_bytes();
            for (at, byte) in damage {
                if let length @ 1.. = message.len() {
                    message[at.index(length)] = byte;
                }
            }
            // A field that is never found makes the reader go to the end.
            let names: Vec<String> = wanted.into_iter().chain(["9999999".into()]).collect();
            let paths: Vec<String> = names.iter().map(|name| format!("/{name}*")).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let kind = if is_fix { MessageType::Fix } else { MessageType::Nvfix };
            let found = read(kind, &message, &paths);
            prop_assert_eq!(found.as_ref().err().copied(), fault(&message, is_fix));
            for (found, name) in found.iter().flatten().zip(&names) {
                let expected: Vec<String> = split(&message, name)
                    .iter()
                    .map(|text| match text {
                        [] => "Null".into(),
                        text => String::from_utf8_lossy(text).into_owned(),
                    })
                    .collect();
                prop_assert_eq!(found, &expected);
            }
        }

        #[test]
        fn what_was_read_before_makes_no_difference(
            messages in prop::collection::vec("(([1-3]|12|11111111|x)?(=[;=1\0]?)?;?){0,9}", 1..9),
            is_fix: bool,
            is_ended_by_zero: bool,
        ) {
            let kind = if is_fix { MessageType::Fix } else { MessageType::Nvfix };
            let pair = if is_ended_by_zero { 0 } else { b'=' };
            let format = Format::new(kind).with_separators(b';', pair).expect("separators");
            let mut fields = FieldSet::new(format);
            let wanted = ["/1", "/2", "/3[1]", "/12", "/11111111", "/9"].map(path);
            let slots = wanted.map(|path| fields.slot(&path).expect("room"));
            let mut reader = Reader::new(&fields);
            for message in &messages {
                let message = message.as_bytes();
                let read = |reader: &mut Reader| {
                    let mut row = Row::new();
                    let result = reader.read(message, &mut row);
                    (result, slots.map(|slot| row.text(slot, message).map(<[u8]>::to_vec)))
                };
                let expected = read(&mut Reader::new(&fields));
                prop_assert_eq!(read(&mut reader), expected);
            }
        }
    }
}
