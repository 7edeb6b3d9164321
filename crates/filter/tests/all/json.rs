//! Compares the JSON reader with serde_json: everything that serde_json accepts is accepted, with
//! the same values.
#![forbid(unsafe_code)]

use lanecast_filter::fields::FieldSet;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::value::Value;
use proptest::prelude::*;
use serde_json::Value as Json;

/// All values of each path, as text.
type Found = Result<Vec<Vec<String>>, Malformed>;

/// A function that reads a message and returns the values of each of `paths`.
fn reader(paths: &[&str]) -> impl FnMut(&[u8]) -> Found {
    let mut fields = FieldSet::new(MessageType::Json);
    let slots: Vec<_> = paths
        .iter()
        .map(|path| fields.slot(&path.parse().expect("a path")).expect("room"))
        .collect();
    let (mut reader, mut row) = (Reader::new(&fields), Row::new());
    let show = |value: Value<'_>| match value {
        Value::Null => "null".into(),
        Value::Bool(truth) => truth.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::Float(number) => format!("{number:?}"),
        Value::Text(text) => format!("{:?}", String::from_utf8_lossy(text)),
    };
    move |message| {
        reader.read(message, &mut row)?;
        Ok(slots.iter().map(|slot| row.values(*slot, message).map(show).collect()).collect())
    }
}

fn read(message: &[u8], paths: &[&str]) -> Found {
    reader(paths)(message)
}

fn found(message: &str, paths: &[&str]) -> Vec<Vec<String>> {
    read(message.as_bytes(), paths).unwrap_or_else(|error| panic!("{message}: {error}"))
}

#[test]
fn members_are_found_by_their_path() {
    let message = r#" { "a" : { "b" : "x" , "c":[] }, "n":-1.50, "t": true,"z":null , "e":"" }"#;
    let paths = ["/a/b", "/n", "/t", "/z", "/e", "/a", "/a/c", "/b", "/a/@b"];
    let expected = [
        vec!["\"x\""],
        vec!["-1.5"],
        vec!["true"],
        vec!["null"],
        vec!["null"],
        vec![],
        vec![],
        vec![],
        vec![],
    ];
    assert_eq!(found(message, &paths), expected);
}

#[test]
fn arrays_flatten_to_the_values_of_their_leaves() {
    let message = r#"{"a":[1,[2,{"b":3}],{"b":[4,5]}],"l":[{"q":1,"p":9},{"q":2}]}"#;
    let paths =
        ["/a", "/a/b", "/l/q", "/l/p", "/a[0]", "/a[1]", "/l[1]/q", "/a[2]/b[1]", "/l[2]/q"];
    let expected = [
        vec!["1", "2"],
        vec!["3", "4", "5"],
        vec!["1", "2"],
        vec!["9"],
        vec!["1"],
        vec!["2"],
        vec!["2"],
        vec!["5"],
        vec![],
    ];
    assert_eq!(found(message, &paths), expected);
    assert_eq!(found(r#"[{"a":1},{"a":2}]"#, &["/a"]), [vec!["1", "2"]]);
}

#[test]
fn a_value_that_is_no_array_is_the_only_element_of_one() {
    let message = r#"{"a":"x","b":{"c":1}}"#;
    let paths = ["/a[0]", "/a[1]", "/b[0]/c", "/b[0]/c[0]", "/a"];
    assert_eq!(
        found(message, &paths),
        [vec!["\"x\""], vec![], vec!["1"], vec!["1"], vec!["\"x\""]]
    );
}

#[test]
fn of_equal_names_the_first_counts() {
    let message = r#"{"l":[{"q":1,"q":2},{"q":3}],"a":1,"a":[2],"\u0061":3}"#;
    assert_eq!(found(message, &["/a", "/l/q", "/never"]), [vec!["1"], vec!["1", "3"], vec![]]);
}

#[test]
fn escapes_are_resolved_in_names_and_values() {
    let message = r#"{"\u0041":"\"\u00e4","long\tlong\tname":"\\","B":"plain"}"#;
    let paths = ["/A", "/[long\tlong\tname]", "/B"];
    let expected = [vec!["\"\\\"\u{e4}\""], vec!["\"\\\\\""], vec!["\"plain\""]];
    assert_eq!(found(message, &paths), expected);
}

#[test]
fn malformed_messages_are_refused_where_they_go_wrong() {
    for (message, offset) in [
        ("", 0),
        ("  ", 2),
        ("{", 1),
        ("[", 1),
        ("\"", 1),
        ("x", 0),
        ("}", 0),
        (",", 0),
        (r#"{"a"}"#, 4),
        (r#"{"a":}"#, 5),
        (r#"{"a" 1}"#, 5),
        (r#"{"a":1 2}"#, 5),
        (r#"{a:1}"#, 1),
        (r#"{"a":1,}"#, 7),
        (r#"{"a":01}"#, 5),
        (r#"{"a":"\x"}"#, 6),
        (r#"{"a":[1 "2"]}"#, 6),
        (r#"{"a":tru}"#, 5),
        (r#"{"b":1"c":2}"#, 5),
        (r#"{"a":[1}"#, 7),
        (r#"[1,2}"#, 4),
        ("[1,]", 3),
        (r#"{"b":{}x}"#, 7),
        ("1 2", 0),
        ("{} {}", 3),
        (r#"{"a":"x"#, 7),
        (r#"{"b":x}"#, 5),
        (r#"{"a":nan}"#, 5),
    ] {
        match read(message.as_bytes(), &["/a", "/never"]) {
            Err(error) => assert_eq!(error.offset, offset, "{message}: {error}"),
            Ok(found) => panic!("{message} is accepted: {found:?}"),
        }
    }
}

#[test]
fn only_so_many_levels_are_followed() {
    let nested = |levels| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    let path = "/a".repeat(64);
    let objects = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert_eq!(found(&objects(64), &[&path]), [vec!["1"]]);
    assert!(read(objects(65).as_bytes(), &[&path]).is_ok(), "deeper objects are not wanted");
    assert_eq!(found(&format!("{{\"a\":{}}}", nested(63)), &["/a"]), [vec!["1"]]);
    assert!(read(format!("{{\"a\":{}}}", nested(64)).as_bytes(), &["/a"]).is_err());
    assert_eq!(found(&format!("{{\"b\":{},\"a\":1}}", nested(100_000)), &["/a"]), [vec!["1"]]);
}

/// Appends the values of `path` in `value`, by the rules of the reader. 4.| An absent field makes
/// the reader scan to the end. 5.| Damage may duplicate a name; serde_json takes the last one, the
/// reader the first.
fn flatten(value: &Json, path: &Path, step: usize, out: &mut Vec<String>) {
    let (steps, is_last) = (path.steps(), step == path.steps().len());
    match value {
        Json::Array(elements) => {
            elements.iter().for_each(|element| flatten(element, path, step, out));
        }
        Json::Object(members) if !is_last => {
            let Some(value) = members.get(steps[step].name()) else { return };
            match (steps[step].index(), value) {
                (None, value) => flatten(value, path, step + 1, out),
                (Some(index), Json::Array(elements)) => {
                    let element = elements.get(index as usize);
                    element.iter().for_each(|element| flatten(element, path, step + 1, out));
                }
                (Some(0), value) => flatten(value, path, step + 1, out),
                _ => {}
            }
        }
        Json::String(text) if is_last && text.is_empty() => out.push("null".into()),
        Json::String(text) if is_last => out.push(format!("{text:?}")),
        Json::Number(number) if is_last => out.push(match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float:?}"),
            _ => number.to_string(),
        }),
        Json::Bool(_) | Json::Null if is_last => out.push(value.to_string()),
        _ => {}
    }
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        (-1e9..1e9).prop_map(Json::from),
        "[a-z\"\\\\{},:\u{e4}\n ]{0,9}".prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 60, 5, |inner| {
        let names = prop_oneof!["[ab]", "[ab]{7,9}", Just("\"\\".to_string())];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((names, inner), 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

fn paths() -> impl Strategy<Value = Vec<Path>> {
    let step = ("[ab]|[ab]{7,9}|\\[\"\\\\\\\\\\]", prop_oneof![Just(""), Just("[0]"), Just("[1]")]);
    let path = prop::collection::vec(step, 1..4).prop_map(|steps| {
        let text: String = steps.iter().map(|(name, index)| format!("/{name}{index}")).collect();
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    });
    prop::collection::vec(path, 1..6)
}

proptest! {
    #[test]
    fn the_reader_finds_what_serde_json_finds(
        value in json(),
        paths in paths(),
        is_pretty: bool,
        damage in prop::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
        let mut message = text.into_bytes();
        if let Some((at, byte)) = damage {
            let at = at.index(message.len());
            message[at] = byte;
        }
        let mut texts: Vec<String> = paths.iter().map(ToString::to_string).collect();
        // So that it reads to the end.
        texts.push("/never".into());
        let found = read(&message, &texts.iter().map(String::as_str).collect::<Vec<_>>());
        // A damaged name may be there twice, of which serde_json takes the last.
        if serde_json::from_slice::<Json>(&message).is_err() {
            return Ok(());
        }
        let found = found.map_err(|error| TestCaseError::fail(error.to_string()))?;
        if damage.is_some() {
            return Ok(());
        }
        for (found, path) in found.iter().zip(&paths) {
            let mut expected = Vec::new();
            flatten(&value, path, 0, &mut expected);
            prop_assert_eq!(found, &expected, "{} in {}", path, value);
        }
    }
    #[test]
    fn earlier_messages_do_not_change_extracted_fields(
        values in prop::collection::vec(json(), 1..4),
        paths in paths(),
        is_pretty: bool,
        turns in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::option::of(any::<(prop::sample::Index, u8)>())),
            1..8,
        ),
    ) {
        let paths: Vec<String> = paths.iter().map(ToString::to_string).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let mut warm = reader(&paths);
        for (which, damage) in turns {
            let value = which.get(&values);
            let text = if is_pretty { format!("{value:#}") } else { value.to_string() };
            let mut message = text.into_bytes();
            if let Some((at, byte)) = damage {
                let at = at.index(message.len());
                message[at] = byte;
            }
            let message = &message[..];
            prop_assert_eq!(warm(message), read(message, &paths), "{:?}", message);
        }
    }
}
