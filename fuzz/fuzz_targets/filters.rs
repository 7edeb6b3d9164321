//! Filters that follow the language most of the time: refused with a place within the text, or
//! printed as text that is read as the same filter, planned and filed. What plan and index then say
//! of messages is what the naive walk says.
#![no_main]

use lanecast_filter::fields::{FieldSet, Slot};
use lanecast_filter::interpreter::{self, Environment, FieldSource};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::Ternary;
use lanecast_filter::value::Value;
use lanecast_filter::{Filter, FilterLimits, Index, Message, Plan};
use lanecast_fuzz::{Grammar, Script};
use libfuzzer_sys::fuzz_target;

/// Patterns small enough for a fuzzer's patience.
const LIMITS: FilterLimits = FilterLimits {
    length_bytes: 4_096,
    depth: 64,
    fields: 64,
    pattern_bytes: 64 * 1024,
    patterns_bytes: 1024 * 1024,
    patterns_work: 20_000,
};
const ENVIRONMENT: Environment<'static> =
    Environment { topic: "IBM", client: "x", unix_ns: 1_700_000_000_500_000_000 };
/// Filters: `e` is an expression, `v` a value, `p` a pattern, `d` a field.
const FILTERS: Grammar = Grammar(&[
    (
        'e',
        &[
            "/a",
            "/b",
            "/c",
            "/d/e",
            "/d/@f",
            "/a",
            "/b",
            "1",
            "'1'",
            "'x'",
            "TRUE",
            "NULL",
            "~v",
            "~d = ~v",
            "~d > ~v",
            "~d <= ~v",
            "~v < ~d",
            "~d IN (~v, ~v, ~v)",
            "~d IS NULL",
            "~d BETWEEN ~v AND ~v",
            "~d LIKE ~p",
            "~d BEGINS WITH (~v, ~v)",
            "(~e AND ~e)",
            "(~e OR ~e)",
            "(~e AND ~e AND ~e)",
            "(~e OR ~e OR ~e)",
            "NOT ~e",
            "NOT (~e)",
            "(~e) = (~e)",
            "(~e) <> (~e)",
            "(~e) >= (~e)",
            "(~e) < (~e)",
            "(~e + ~e)",
            "(~e - ~e)",
            "(~e * ~e)",
            "(~e / ~e)",
            "(~e % ~e)",
            "-(~e)",
            "(~e) IN (~e, ~e)",
            "(~e) NOT IN (~e, ~e)",
            "(~e) BETWEEN ~e AND ~e",
            "(~e) ENDS WITH (~e)",
            "(~e) BEGINS WITH (~e, ~e)",
            "(~e) LIKE ~p",
            "(~e) NOT LIKE ~p",
            "(~e) IS NULL",
            "(~e) IS NOT NULL",
            "(~e) IS NAN",
            "ABS(~e)",
            "ARRAY_COUNT(~d)",
            "ARRAY_TO_STRING(~d, ~e)",
            "CHAR_VALUE(~e)",
            "CLIENT_NAME()",
            "COALESCE(~e, ~e)",
            "CONCAT(~e, ~e, ~e)",
            "CRC32(~e)",
            "FALSE_VALUE()",
            "GEO_DISTANCE(~e, ~e, ~e, ~e)",
            "IF(~e, ~e, ~e)",
            "INSTR(~e, ~e)",
            "INSTR_I(~e, ~e)",
            "LOWER(~e)",
            "MESSAGE_SIZE()",
            "NAN_VALUE()",
            "REGEXP_MATCH(~e, ~p)",
            "REGEXP_REPLACE(~e, ~p, ~e)",
            "REPLACE(~e, ~e, ~e)",
            "REVERSE(~e)",
            "STREQUAL_I(~e, ~e)",
            "STRFTIME(~e, ~e)",
            "STRPTIME(~e, ~e)",
            "STRPTIME(~e, ~t)",
            "STRFTIME(~t, ~e)",
            "SUBSTR(~e, ~e)",
            "SUBSTR(~e, ~e, ~e)",
            "TOPIC_NAME()",
            "UNIX_TIMESTAMP()",
            "UPPER(~e)",
            "~e = ~e",
            "~e AND ~e OR ~e",
        ],
    ),
    ('d', &["/a", "/b", "/c", "/d/e", "/d/@f", "/A", "/1", "[a]"]),
    (
        'v',
        &[
            "0",
            "1",
            "-1",
            "2",
            "2.0",
            "0.5",
            "1e300",
            "1e-300",
            "9007199254740993",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "18446744073709551615",
            "'1'",
            "'2.0'",
            "'-0'",
            "'x'",
            "'IBM'",
            "''",
            "'NaN'",
            "'inf'",
            "'abcdefghijklmnopqrst'",
            "NULL",
            "TRUE",
            "FALSE",
            "NAN",
            r"'\x00\xff'",
            r"'\377'",
            "'1e400'",
            "'\u{e4}'",
        ],
    ),
    (
        'p',
        &["'B'", "'^x'", "'(?i)ibm$'", r"r'[0-9]\.'", "''", "'^$'", "'(a|b)+'", "'.'", "'(x)(1)?'"],
    ),
    (
        't',
        &["'%Y-%m-%d %H:%M:%S'", "'%j %U %y'", "'%Y%m%d'", "'%s'", "'%z %Z'", "'%e%b%B%a%A%p%I'"],
    ),
]);
/// Messages: `m` is one in NVFIX, `j` one in JSON.
const MESSAGES: Grammar = Grammar(&[
    ('m', &["", "~f", "~f~f", "~f~f~f", "~f~f~f~f~f"]),
    ('f', &["~n=~v\u{1}"]),
    ('j', &["{}", "{~k}", "{~k,~k}", "{~k,~k,~k,~k}", r#"{~k,"d":{~k,~k},~k}"#]),
    ('k', &[r#""~n":~w"#, r#""d":{"e":~w,"@f":~w}"#, r#""~n":[~w,~w,~w]"#]),
    (
        'w',
        &[
            "null",
            "true",
            "false",
            "[]",
            "{}",
            "1e400",
            "1E5",
            "-0.0",
            r#""\\u0041\n""#,
            r#"{"e":1}"#,
            "~v",
            "~v",
            r#""~v""#,
            r#""~v""#,
            "[~w,~w]",
            r#"{"~n":~w}"#,
        ],
    ),
    ('n', &["a", "b", "c", "d/e", "d/@f", "A", "1"]),
    (
        'v',
        &[
            "0",
            "1",
            "-1",
            "2",
            "2.0",
            "0.5",
            "1e300",
            "9007199254740993",
            "9223372036854775807",
            "-9223372036854775808",
            "18446744073709551615",
            "-0",
            "x",
            "IBM",
            "ibm",
            "",
            "NaN",
            "inf",
            "abcdefghijklmnopqrst",
            "1e400",
            "aB.9.",
            "2026-11-22 05:06:07",
            "20240229",
            "1700000000",
            "\u{e4}",
            " 1",
            "x1",
            "0x10",
            "+1",
            ".5",
            "1.",
        ],
    ),
]);

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    let message_types = [(MessageType::Nvfix, 'm'), (MessageType::Json, 'j')];
    let (kind, sign) = message_types[usize::from(script.byte() & 1)];
    let (mut fields, mut index) = (FieldSet::new(kind), Index::new());
    let mut all = Vec::new();
    for id in 0..u32::from(script.byte() % 8) + 1 {
        let Some(filter) = parse(&FILTERS.text(&mut script, 'e', 4)) else { continue };
        let Ok(plan) = Plan::new(&filter, &mut fields) else { continue };
        index.insert(id, &filter, &mut fields).expect("the plan had room for the same fields");
        all.push((id, filter, plan));
    }
    let mut row = Row::new();
    for _ in 0..4 {
        if script.byte().is_multiple_of(4)
            && let Some((id, ..)) = all.first()
        {
            index.remove(*id, &mut fields);
            all.remove(0);
        }
        let message = MESSAGES.text(&mut script, sign, 4);
        if Reader::new(&fields).read(message.as_bytes(), &mut row).is_ok() {
            let bytes = message.as_bytes();
            let message = Message { row: &row, bytes, environment: &ENVIRONMENT };
            agree(&all, &index, &mut fields.clone(), &message);
        }
    }
});

/// A filter that prints as what is read as the same.
fn parse(text: &str) -> Option<Filter> {
    let filter = match Filter::parse_with(text, &LIMITS) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(text.is_char_boundary(error.offset), "{text}");
            error.show(text);
            return None;
        }
    };
    let print = filter.to_string();
    if print.len() <= LIMITS.length_bytes {
        assert_eq!(Filter::parse_with(&print, &LIMITS).as_ref(), Ok(&filter), "{print}");
    }
    Some(filter)
}

/// Index, plans and the naive walk say the same of a message.
fn agree(all: &[(u32, Filter, Plan)], index: &Index, fields: &mut FieldSet, message: &Message<'_>) {
    let mut ids = Vec::new();
    index.matches(message, &mut ids);
    ids.sort_unstable();
    let holding = all.iter().filter(|(_, _, plan)| plan.matches(message));
    assert_eq!(ids, holding.map(|(id, ..)| *id).collect::<Vec<_>>());
    for (_, filter, plan) in all {
        let print = filter.to_string();
        // These ask for all fields of a name, where others mean the first.
        if print.contains("ARRAY_") {
            continue;
        }
        let mut named = |path: &Path| Some((path.clone(), fields.slot(path).ok()?));
        let slots = filter.paths().into_iter().filter_map(&mut named).collect();
        let record = Named(slots, *message);
        let truth = interpreter::evaluate(filter.expr(), &record, &ENVIRONMENT, filter.semantics());
        assert_eq!(plan.evaluate(message), truth, "{print}");
        assert_eq!(plan.matches(message), truth == Ternary::True, "{print}");
    }
}

/// A message whose fields are named by paths.
struct Named<'a>(Vec<(Path, Slot)>, Message<'a>);

impl FieldSource for Named<'_> {
    fn values<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = Value<'a>> {
        let Self(slots, message) = self;
        let slot = slots.iter().find(|(other, _)| other == path).map(|(_, slot)| *slot);
        slot.into_iter().flat_map(|slot| message.row.values(slot, message.bytes))
    }

    fn size_bytes(&self) -> usize {
        self.1.bytes.len()
    }
}
