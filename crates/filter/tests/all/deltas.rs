//! Deltas lead from the old message to the new one.
#![forbid(unsafe_code)]

use lanecast_filter::difference::difference;
use lanecast_filter::malformed::{Malformed, MalformedReason};
use lanecast_filter::merge::{DeltaError, merge};
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_filter::path::Path;
use proptest::prelude::*;
use serde_json::Value as Json;

fn format(message_type: MessageType) -> Format {
    Format::new(message_type).with_separators(b';', b'=').expect("as in the examples")
}

fn path(text: &str) -> Path {
    text.parse().expect(text)
}

fn merged(message_type: MessageType, base: &str, delta: &str) -> Result<String, DeltaError> {
    let mut out = b"kept".to_vec();
    let result = merge(format(message_type), base.as_bytes(), delta.as_bytes(), &mut out);
    let text = String::from_utf8(out).expect("as the messages are");
    let text = text.strip_prefix("kept").expect("what was there").to_string();
    assert!(result.is_ok() || text.is_empty(), "nothing is left behind: {text}");
    result.map(|()| text)
}

fn changes(message_type: MessageType, old: &str, new: &str, keys: &[&str]) -> (usize, String) {
    let keys: Vec<Path> = keys.iter().map(|key| path(key)).collect();
    let mut out = Vec::new();
    let count = difference(format(message_type), old.as_bytes(), new.as_bytes(), &keys, &mut out);
    (count.expect("well formed"), String::from_utf8(out).expect("as the messages are"))
}

#[test]
fn fields_of_a_delta_replace_those_of_the_record() {
    for (message_type, base, delta, expected) in [
        (MessageType::Fix, "1=a;55=IBM;38=5", "38=7;44=1", "1=a;55=IBM;38=7;44=1;"),
        (MessageType::Fix, "448=a;1=x;448=b;", "448=c;448=d;448=e", "448=c;448=d;448=e;1=x;"),
        (MessageType::Nvfix, "", "Symbol=IBM", "Symbol=IBM;"),
        (
            MessageType::Json,
            r#"{ "a" : {"b":1, "c":[1,2]}, "d":2.0 }"#,
            r#"{"a":{"c":[3]},"e":null}"#,
            r#"{"a":{"b":1,"c":[3]},"d":2.0,"e":null}"#,
        ),
        (MessageType::Json, r#"{"a":{"b":1}}"#, r#"{"\u0061":[]}"#, r#"{"a":[]}"#),
        (MessageType::Json, "[1]", r#" "x" "#, r#""x""#),
    ] {
        assert_eq!(
            merged(message_type, base, delta).as_deref(),
            Ok(expected),
            "{delta} into {base}"
        );
    }
}

#[test]
fn an_invalid_delta_is_refused_at_its_position() {
    let error = |offset, reason| Malformed { offset, reason };
    for (message_type, base, delta, expected) in [
        (MessageType::Fix, "55", "1=a", DeltaError::First(error(2, MalformedReason::NoValue))),
        (
            MessageType::Fix,
            "1=a",
            "1=b;x=1",
            DeltaError::Second(error(4, MalformedReason::NotATag)),
        ),
        (
            MessageType::Json,
            r#"{"a":{"b":x}}"#,
            r#"{"a":{}}"#,
            DeltaError::First(error(10, MalformedReason::NotALiteral)),
        ),
        (
            MessageType::Json,
            "{}",
            r#"{"a":1"#,
            DeltaError::Second(error(6, MalformedReason::Unfinished)),
        ),
        (
            MessageType::Json,
            "{}",
            "1 2",
            DeltaError::Second(error(0, MalformedReason::NotALiteral)),
        ),
        (MessageType::Json, "{}", "1}", DeltaError::Second(error(2, MalformedReason::Unexpected))),
        (MessageType::Xml, "<a/>", "<a/>", DeltaError::NoDeltas(MessageType::Xml)),
    ] {
        assert_eq!(merged(message_type, base, delta), Err(expected), "{delta} into {base}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(65), "}".repeat(65));
    let too_deep = merged(MessageType::Json, &deep, &deep);
    assert!(matches!(
        too_deep,
        Err(DeltaError::Second(Malformed { reason: MalformedReason::TooDeep, .. }))
    ));
}

#[test]
fn a_difference_has_what_changed_and_the_keys() {
    for (message_type, old, new, keys, expected) in [
        (MessageType::Fix, "1=a;55=IBM;38=5", "1=a;55=IBM;38=6", &["/55"][..], (1, "55=IBM;38=6;")),
        (MessageType::Fix, "1=a;2=b", "1=a", &[], (1, "2=;")),
        (MessageType::Fix, "1=a;2=b", "2=b;1=a", &[], (0, "")),
        (
            MessageType::Json,
            r#"{"k":{"id":7},"a":{"b":1,"c":2},"z":[1]}"#,
            r#"{"k":{"id":7},"a":{"b":1,"c":3},"z":[1]}"#,
            &["/k/id"],
            (1, r#"{"k":{"id":7},"a":{"c":3}}"#),
        ),
        (MessageType::Json, r#"{"a":1,"b":null}"#, "{}", &[], (1, r#"{"a":null}"#)),
        (MessageType::Json, "{}", "{ }", &[], (0, "{}")),
        (MessageType::Json, "1", "2", &[], (1, "2")),
    ] {
        let (count, text) = changes(message_type, old, new, keys);
        assert_eq!((count, text.as_str()), expected, "{old} to {new}");
    }
}

/// The value without its null members.
fn without_nulls(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            Json::Object(
                members.map(|(name, value)| (name.clone(), without_nulls(value))).collect(),
            )
        }
        value => value.clone(),
    }
}

fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<i8>().prop_map(Json::from),
        "[a\"\\\\{},]{0,3}".prop_map(Json::from),
    ];
    leaf.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            prop::collection::vec(("[abc\"]", inner), 0..4)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn a_difference_of_json_leads_to_the_new_message(old in json(), new in json()) {
        let (old_text, new_text) = (old.to_string(), new.to_string());
        let (count, delta) = changes(MessageType::Json, &old_text, &new_text, &[]);
        let result = merged(MessageType::Json, &old_text, &delta).expect("well formed");
        let result: Json = serde_json::from_str(&result).expect("it is JSON");
        let both_objects = old.is_object() && new.is_object();
        if both_objects {
            prop_assert_eq!(without_nulls(&result), without_nulls(&new), "{}", delta);
            prop_assert_eq!(count == 0, delta == "{}");
        } else {
            prop_assert_eq!(result, new);
        }
    }

    #[test]
    fn a_merge_of_json_is_that_of_its_objects(base in json(), delta in json()) {
        fn expected(base: &Json, delta: &Json) -> Json {
            let (Json::Object(base), Json::Object(delta)) = (base, delta) else {
                return delta.clone();
            };
            let mut out = base.clone();
            for (name, value) in delta {
                let value = base.get(name).map_or(value.clone(), |base| expected(base, value));
                out.insert(name.clone(), value);
            }
            Json::Object(out)
        }
        let (base_text, delta_text) = (format!("{base:#}"), delta.to_string());
        let result = merged(MessageType::Json, &base_text, &delta_text).expect("JSON");
        let result: Json = serde_json::from_str(&result).expect("it is JSON");
        prop_assert_eq!(result, expected(&base, &delta));
    }

    #[test]
    fn a_difference_of_fields_leads_to_the_new_message(
        old in "([1-4]=[ab]{0,1};){0,6}",
        new in "([1-4]=[ab]{0,1};){0,6}",
    ) {
        let (_, delta) = changes(MessageType::Fix, &old, &new, &[]);
        let result = merged(MessageType::Fix, &old, &delta).expect("well formed");
        for tag in 1..=4 {
            let fields = |text: &str| -> Vec<String> {
                let start = format!("{tag}=");
                let fields = text.split(';').filter_map(|field| field.strip_prefix(&start));
                fields.map(str::to_string).collect()
            };
            let (result, new) = (fields(&result), fields(&new));
            let is_null = |values: &[String]| values.iter().all(String::is_empty);
            prop_assert!(result == new || is_null(&result) && is_null(&new), "{}", delta);
        }
    }

    #[test]
    fn merging_arbitrary_bytes_does_not_panic(
        base in "[\\[\\]{}\",:a1=; \\\\]{0,20}",
        delta in "[{}\",:a1=; \\\\]{0,20}",
    ) {
        for message_type in MessageType::ALL {
            let _ = merged(message_type, &base, &delta);
        }
    }
}
