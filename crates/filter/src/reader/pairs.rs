//! FIX and NVFIX: names and values, one pair behind another.
//!
//! A mask says where the fields of 64 bytes end. The name of each is found, looked up and compared
//! as words of eight bytes; values are not looked at.

use crate::fields::{Fields, Slot};
use crate::kind::Kind;
use crate::malformed::{Malformed, Reason};
use crate::names::{Names, low_bytes, word_at};
use crate::row::{Form, Piece, Row};
use lanecast_base::mask::{BLOCK, Blocks, Masks, Scan, scan};
use std::collections::BTreeMap;

/// What is wanted of messages made of pairs.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
    is_fix: bool,
    field: u8,
    pair: u8,
    names: Names<Target>,
    /// What is wanted of fields beyond the first of a name.
    others: Vec<Other>,
    /// How many fields of each name with `others` there were.
    counts: Vec<u32>,
    /// Values to find before a message needs no more reading; `None` if it is read to its end.
    wanted: Option<u32>,
}

/// What is wanted of the fields of one name.
#[derive(Clone, Copy, Debug)]
struct Target {
    /// Takes the first field.
    first: Option<Slot>,
    others: Option<Others>,
}

/// Which of `Pairs::others` are about one name, and which of `Pairs::counts`.
#[derive(Clone, Copy, Debug)]
struct Others {
    start: u32,
    end: u32,
    count: u32,
}

/// Who wants another field of a name than the first.
#[derive(Clone, Copy, Debug)]
struct Other {
    slot: Slot,
    /// Which one; all if `None`.
    index: Option<u32>,
}

impl Pairs {
    pub(crate) fn new(fields: &Fields) -> Self {
        let format = fields.format();
        let mut names: BTreeMap<&str, Vec<Other>> = BTreeMap::new();
        for (slot, wanted) in fields.wanted() {
            let [step] = wanted.path.steps() else { continue };
            if !step.is_attribute() {
                let index = step.index().or((!wanted.is_every).then_some(0));
                names.entry(step.name()).or_default().push(Other { slot, index });
            }
        }
        let mut this = Self {
            is_fix: format.kind() == Kind::Fix,
            field: format.field_separator(),
            pair: format.pair_separator(),
            names: Names::new(&[]),
            others: Vec::new(),
            counts: Vec::new(),
            wanted: Some(0),
        };
        let targets: Vec<_> = names
            .into_iter()
            .map(|(name, who)| (name.as_bytes().into(), this.target(who)))
            .collect();
        this.names = Names::new(&targets);
        this
    }

    /// Files those who want fields of one name.
    fn target(&mut self, mut who: Vec<Other>) -> Target {
        let is_every = who.iter().any(|other| other.index.is_none());
        self.wanted = self.wanted.filter(|_| !is_every).map(|wanted| wanted + who.len() as u32);
        let first = who.iter().position(|other| other.index == Some(0));
        let first = first.map(|at| who.swap_remove(at).slot);
        if who.is_empty() {
            return Target { first, others: None };
        }
        let start = self.others.len() as u32;
        self.others.extend(who);
        self.counts.push(0);
        let (end, count) = (self.others.len() as u32, self.counts.len() as u32 - 1);
        Target { first, others: Some(Others { start, end, count }) }
    }

    pub(crate) fn read(&mut self, bytes: &[u8], row: &mut Row) -> Result<(), Malformed> {
        if self.wanted == Some(0) {
            return Ok(());
        }
        self.counts.fill(0);
        if self.is_fix {
            scan(Read::<true> { pairs: self, bytes, row })
        } else {
            scan(Read::<false> { pairs: self, bytes, row })
        }
    }
}

/// One message on its way into a row.
struct Read<'a, const IS_FIX: bool> {
    pairs: &'a mut Pairs,
    bytes: &'a [u8],
    row: &'a mut Row,
}

impl<const IS_FIX: bool> Scan for Read<'_, IS_FIX> {
    type Output = Result<(), Malformed>;

    #[inline(always)]
    fn run<M: Masks>(mut self, masks: M) -> Self::Output {
        let mut left = self.pairs.wanted.unwrap_or(u32::MAX);
        let (mut start, mut at) = (0, 0);
        let blocks = Blocks::new(self.bytes);
        while let Some(block) = blocks.get(at) {
            let mut ends = block.any(masks, [self.pairs.field]);
            while ends != 0 {
                let end = at + ends.trailing_zeros() as usize;
                ends &= ends - 1;
                left -= self.field(start, end)?;
                if left == 0 {
                    return Ok(());
                }
                start = end + 1;
            }
            at += BLOCK;
        }
        if start < self.bytes.len() {
            self.field(start, self.bytes.len())?;
        }
        Ok(())
    }
}

impl<const IS_FIX: bool> Read<'_, IS_FIX> {
    /// Takes the field from `start` to `end`. How many that were still to be found it is.
    #[inline(always)]
    fn field(&mut self, start: usize, end: usize) -> Result<u32, Malformed> {
        let word = word_at(self.bytes, start);
        let mut length = first_of(word, self.pairs.pair);
        if length == 8 {
            length = long_name(self.bytes, start, end, self.pairs.pair);
        }
        let middle = start + length;
        let name = match self.bytes.get(start..middle) {
            Some(name) if length > 0 && middle < end => name,
            _ => return Err(fault(start, end, length)),
        };
        let head = low_bytes(word, length);
        match self.pairs.names.find(head, name) {
            Some(target) => Ok(self.take(*target, Piece::new(Form::Text, middle + 1, end))),
            None if IS_FIX && !is_tag(head, name) => Err(not_a_tag(start, name)),
            None => Ok(0),
        }
    }

    #[inline(always)]
    fn take(&mut self, target: Target, piece: Piece) -> u32 {
        let mut found = 0;
        if let Some(slot) = target.first
            && !self.row.is_set(slot)
        {
            self.row.set(slot, piece);
            found = 1;
        }
        match target.others {
            Some(others) => found + self.take_for_others(others, piece),
            None => found,
        }
    }

    #[cold]
    fn take_for_others(&mut self, others: Others, piece: Piece) -> u32 {
        let count = &mut self.pairs.counts[others.count as usize];
        let this = *count;
        *count += 1;
        let mut found = 0;
        for other in &self.pairs.others[others.start as usize..others.end as usize] {
            match other.index {
                None => self.row.push(other.slot, piece),
                Some(index) if index == this => {
                    self.row.set(other.slot, piece);
                    found += 1;
                }
                Some(_) => {}
            }
        }
        found
    }
}

/// Where the first `byte` of `word` is; 8 if nowhere.
#[inline(always)]
fn first_of(word: u64, byte: u8) -> usize {
    const LOW: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    let zeros = word ^ (u64::from(byte) * LOW);
    // Bits behind the first one may be wrong, the first never is.
    let found = zeros.wrapping_sub(LOW) & !zeros & HIGH;
    found.trailing_zeros() as usize / 8
}

/// How long a name is that starts at `start` and has eight bytes at least.
#[inline]
fn long_name(bytes: &[u8], start: usize, end: usize, pair: u8) -> usize {
    let mut length = 8;
    while start + length < end {
        let found = first_of(word_at(bytes, start + length), pair);
        length += found;
        if found < 8 {
            break;
        }
    }
    length
}

/// Whether a name that begins with `head` has digits only.
#[inline(always)]
fn is_tag(head: u64, name: &[u8]) -> bool {
    if name.len() > 8 {
        return name.iter().all(u8::is_ascii_digit);
    }
    // A digit is at most 9 above '0', so that adding 0x76 leaves the highest bit alone.
    let digits = low_bytes(head ^ u64::from_le_bytes([b'0'; 8]), name.len());
    let over = digits.wrapping_add(u64::from_le_bytes([0x76; 8])) | digits;
    over & u64::from_le_bytes([0x80; 8]) == 0
}

/// Why the field from `start` to `end` is none, whose name would have `length` bytes.
#[cold]
fn fault(start: usize, end: usize, length: usize) -> Malformed {
    match length {
        0 => Malformed::new(start, Reason::NoName),
        _ => Malformed::new(end, Reason::NoValue),
    }
}

#[cold]
fn not_a_tag(start: usize, name: &[u8]) -> Malformed {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    Malformed::new(start + digits, Reason::NotATag)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Format;
    use crate::path::Path;
    use crate::reader::Reader;
    use proptest::prelude::*;

    fn path(text: &str) -> Path {
        text.parse().expect(text)
    }

    fn format(kind: Kind) -> Format {
        Format::new(kind).with_separators(b';', b'=').expect("as in the examples")
    }

    /// The texts of each of `paths` in `message`; of those that end with `*`, of every field.
    fn read(kind: Kind, message: &[u8], paths: &[&str]) -> Result<Vec<Vec<String>>, Malformed> {
        let mut fields = Fields::new(format(kind));
        let slots: Vec<_> = paths
            .iter()
            .map(|text| match text.strip_suffix('*') {
                Some(text) => fields.slot_of_every(&path(text)).expect("room"),
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
        let found = read(Kind::Fix, message, &["/55", "/99", "/5", "/a/b", "/@55"]);
        assert_eq!(
            found,
            Ok(vec![vec!["INTC".into()], vec!["34.50".into()], vec![], vec![], vec![]])
        );
        let last = read(Kind::Fix, b"11=c01;99=34.50", &["/99"]);
        assert_eq!(last, Ok(vec![vec!["34.50".into()]]), "the last separator may be missing");
        assert_eq!(read(Kind::Fix, b"", &["/1"]), Ok(vec![vec![]]));
        assert_eq!(read(Kind::Fix, b"1==;", &["/1"]), Ok(vec![vec!["=".into()]]));
        assert_eq!(read(Kind::Fix, b"1=;", &["/1"]), Ok(vec![vec!["Null".into()]]));
    }

    #[test]
    fn names_may_have_any_length() {
        let message = b"A=1;OrderQty=2;TransactTime=3;OrderQtyX=4;AnExtraordinarilyLongName=5";
        let paths = ["/OrderQty", "/TransactTime", "/AnExtraordinarilyLongName", "/OrderQt"];
        let found = read(Kind::Nvfix, message, &paths).expect("well formed");
        assert_eq!(found, [vec!["2"], vec!["3"], vec!["5"], vec![]]);
    }

    #[test]
    fn of_repeated_fields_the_first_counts_unless_others_are_asked_for() {
        let message = b"448=a;448=b;1=x;448=c;";
        let paths = ["/448", "/448[0]", "/448[2]", "/448[3]", "/448*"];
        let found = read(Kind::Fix, message, &paths).expect("well formed");
        assert_eq!(found, [vec!["a"], vec!["a"], vec!["c"], vec![], vec!["a", "b", "c"]]);
    }

    #[test]
    fn malformed_fields_are_named_with_their_place() {
        for (message, offset, reason) in [
            (&b"8=FIX;abc=1;"[..], 6, Reason::NotATag),
            (b"8=FIX;5x=1;", 7, Reason::NotATag),
            (b"8=FIX;123456789x=1;", 15, Reason::NotATag),
            (b"8=FIX;35;", 8, Reason::NoValue),
            (b"8=FIX;35", 8, Reason::NoValue),
            (b"8=FIX;12345678901;1=2", 17, Reason::NoValue),
            (b"8=FIX;=1;", 6, Reason::NoName),
            (b"8=FIX;;", 6, Reason::NoValue),
            (b"\xff=1", 0, Reason::NotATag),
        ] {
            let expected = Err(Malformed::new(offset, reason));
            assert_eq!(read(Kind::Fix, message, &["/99"]), expected, "{message:?}");
        }
        assert_eq!(read(Kind::Fix, b"99=1;bad", &["/99"]), Ok(vec![vec!["1".into()]]), "unread");
        assert!(read(Kind::Nvfix, b"abc=1;", &["/99"]).is_ok());
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

    fn is_well_formed(message: &[u8], is_fix: bool) -> bool {
        let mut fields = message.strip_suffix(b";").unwrap_or(message).split(|byte| *byte == b';');
        message.is_empty()
            || fields.all(|field| {
                let name = field.split(|byte| *byte == b'=').next().unwrap_or_default();
                let is_named = !name.is_empty() && name.len() < field.len();
                is_named && (!is_fix || name.iter().all(u8::is_ascii_digit))
            })
    }

    proptest! {
        #[test]
        fn the_reader_finds_what_splitting_finds(
            message in "([0-9ab]{1,17}=[a-z0-9=.]{0,12};){0,12}([0-9]{1,3}=x)?",
            damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
            is_fix: bool,
            wanted in prop::collection::vec("[0-9ab]{1,2}", 1..6),
        ) {
            let mut message = message.into_bytes();
            if let Some((at, byte)) = damage && !message.is_empty() {
                let at = at.index(message.len());
                message[at] = byte;
            }
            // A field that is never found makes the reader go to the end.
            let names: Vec<String> = wanted.into_iter().chain(["9999999".into()]).collect();
            let paths: Vec<String> = names.iter().map(|name| format!("/{name}*")).collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let kind = if is_fix { Kind::Fix } else { Kind::Nvfix };
            let found = read(kind, &message, &paths);
            prop_assert_eq!(found.is_ok(), is_well_formed(&message, is_fix));
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
    }
}
