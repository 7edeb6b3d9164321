//! Reader of tag-value messages: FIX and NVFIX.
//!
//! A SIMD prefilter marks the fields of 64 bytes that may be wanted and checks that all fields have
//! names. Marked names are compared, as one word, with the name at the same position of the
//! previous message, and looked up only after a misprediction. Values are not inspected.

mod field_table;
mod predicted_name;
mod prefilter;

use crate::fields::{FieldSet, SLOTS_MAX, Slot};
use crate::malformed::Malformed;
use crate::message_type::{Format, MessageType};
use crate::name_table::{NameTable, word_at};
use crate::path::Step;
use crate::row::{Row, RowWriter, ValueForm, ValueSpan};
use field_table::{FieldTable, NO_TARGET, Target};
use lanecast_base::simd::{BLOCK, Blocks, Masks, Scan, scan};
use predicted_name::PredictedName;
use prefilter::{Carry, Prefilter};
use std::collections::BTreeMap;

/// Tag-value reader for one field set.
#[derive(Clone, Debug)]
pub(crate) struct TagValueReader {
    field: u8,
    prefilter: Prefilter,
    known: FieldTable,
    /// Names that passed the prefilter in previous messages, in order; the next message likely
    /// repeats them.
    predictions: Box<[PredictedName<Target>; PREDICTIONS_MAX]>,
    repeated: Vec<RepeatedField>,
    /// Number of values after which reading stops; `None` to read to the end.
    wanted: Option<u32>,
}

/// Slots for other than the first field of one name.
#[derive(Clone, Debug)]
struct RepeatedField {
    selectors: Vec<SlotSelector>,
    /// Fields of that name so far in this message.
    count: u32,
}

#[derive(Clone, Copy, Debug)]
struct SlotSelector {
    slot: Slot,
    /// Index of the field to store; `None` for all.
    index: Option<u32>,
}

/// Fields per message with predicted names.
const PREDICTIONS_MAX: usize = 128;

impl TagValueReader {
    pub(crate) fn new(fields: &FieldSet) -> Self {
        let format = fields.format();
        let mut names: BTreeMap<&str, Vec<SlotSelector>> = BTreeMap::new();
        for (slot, wanted) in fields.wanted() {
            // Longer paths never occur in tag-value messages; their slots stay empty.
            let [step] = wanted.path.steps() else { continue };
            if can_be(step, format) {
                // A path without an index means the first field of its name, unless all values are
                // wanted.
                let index = step.index().or((!wanted.wants_all).then_some(0));
                names.entry(step.name()).or_default().push(SlotSelector { slot, index });
            }
        }
        let selectors = || names.values().flatten();
        // A slot for all values can never be complete, so such messages are read to the end.
        let is_endless = selectors().any(|selector| selector.index.is_none());
        let wanted = (!is_endless).then_some(selectors().count() as u32);
        let (mut repeated, mut targets) = (Vec::new(), Vec::new());
        for (name, selectors) in &names {
            let target = match **selectors {
                // The common case, one slot for the first field, bypasses the repeated-field table.
                [SlotSelector { slot, index: Some(0) }] => Target(slot.0),
                _ => {
                    repeated.push(RepeatedField { selectors: selectors.clone(), count: 0 });
                    // Numbers from `SLOTS_MAX` on are no slots, which tells repeated fields apart.
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
        // No field is wanted, so the scan would only cost time.
        if self.wanted == Some(0) {
            return Ok(());
        }
        // Indexes count within one message.
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

/// State of reading one message.
struct Extraction<'a> {
    bytes: &'a [u8],
    pairs: &'a mut TagValueReader,
    row: &'a mut Row,
}

impl Scan for Extraction<'_> {
    type Output = Result<(), Malformed>;

    // One function with local variables only, so that its state stays in registers.
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
        // Without a number of wanted values, `left` never gets down to 0.
        let mut left = wanted.unwrap_or(u32::MAX);
        let mut short = [0; BLOCK];
        let blocks = Blocks::new(bytes, &mut short);
        // The last separator is optional.
        let length = bytes.len() - usize::from(bytes.last() == Some(&field));
        let (mut carry, mut is_open, mut start, mut at) = (Carry::FIRST, false, 0, 0);
        let mut predictions = predictions.iter_mut();
        // `at == length` can still end a field whose separator is missing.
        while at <= length && !bytes.is_empty() {
            let found = prefilter.field_masks(masks, (blocks, at, length), &mut carry);
            let mut wanted = found.wanted;
            if !found.are_sound {
                // A malformed name: every field is checked, to report the first error.
                wanted = found.starts;
                (start, is_open) = start_before(bytes, at, field);
            // No wanted field starts in this block, and none continues into it.
            } else if wanted == 0 && !is_open {
                at += BLOCK;
                continue;
            }
            // The addition carries each start bit through its field to the separator.
            let (past, goes_on) = (!found.ends).overflowing_add(wanted | u64::from(is_open));
            let mut ends = past & found.ends;
            // Past the last bit, `next` returns a start that is replaced before its use.
            let mut next = || {
                let next = at + wanted.trailing_zeros() as usize;
                // `wanted` may be 0 here, hence the wrapping subtraction.
                wanted &= wanted.wrapping_sub(1);
                next
            };
            if !is_open {
                start = next();
            }
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize;
                // `ends` has a bit here, so nothing wraps.
                ends &= ends - 1;
                // One load for the comparison with the prediction and, if wrong, for the hash
                // lookup.
                let word = word_at(bytes, start);
                let (length, target) = match predictions.next() {
                    Some(prediction) if prediction.matches(word) => {
                        (prediction.length.into(), prediction.target)
                    }
                    prediction => known.look_up(bytes, start, end, prediction)?,
                };
                // The value starts one byte past the name, behind the pair separator.
                let span = ValueSpan::new(ValueForm::Text, start + length + 1, end);
                start = next();
                // A target beyond the slots is a repeated field or no target; `try_set` tells by
                // the index alone.
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

/// Start of the field that continues at `at`, and whether there is one.
#[cold]
fn start_before(bytes: &[u8], at: usize, field: u8) -> (usize, bool) {
    // Without a separator before `at`, the field starts with the message.
    let start = bytes[..at].iter().rposition(|byte| *byte == field).map_or(0, |end| end + 1);
    (start, start < at)
}

/// Stores a value of a repeated field. Returns the number of slots that are complete now.
#[cold]
fn store_repeated(
    repeated: &mut [RepeatedField],
    target: u16,
    span: ValueSpan,
    mut writer: RowWriter<'_>,
) -> u32 {
    // Only targets that are no slots get here, so the subtraction cannot underflow.
    let Some(group) = repeated.get_mut(usize::from(target) - SLOTS_MAX) else { return 0 };
    // The count before this field is its index.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::malformed::MalformedReason;
    use crate::path::Path;
    use crate::reader::Reader;
    use proptest::prelude::*;

    fn path(text: &str) -> Path {
        text.parse().expect(text)
    }

    fn format(kind: MessageType) -> Format {
        Format::new(kind).with_separators(b';', b'=').expect("as in the examples")
    }

    /// Texts of each of `paths` in `message`; a path that ends with `*` selects every field.
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

    /// Reference implementation of the reader.
    fn split<'a>(message: &'a [u8], name: &str) -> Vec<&'a [u8]> {
        let fields = message.strip_suffix(b";").unwrap_or(message).split(|byte| *byte == b';');
        let pairs = fields.filter_map(|field| {
            let middle = field.iter().position(|byte| *byte == b'=')?;
            Some((&field[..middle], &field[middle + 1..]))
        });
        pairs.filter(|pair| pair.0 == name.as_bytes()).map(|pair| pair.1).collect()
    }

    /// Reference implementation of the error.
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
            // An absent field makes the reader scan to the end.
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
        fn earlier_messages_do_not_change_a_result(
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
