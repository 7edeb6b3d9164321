//! Plans agree with the interpreter.

use super::random;
use super::record::{ENVIRONMENT, Values};
use lanecast_filter::expr::{Expr, Literal};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::value::Value;
use lanecast_filter::{Filter, Message, Plan, interpreter};
use proptest::prelude::*;

/// A tag-value message: its values and bytes.
pub(crate) fn pairs() -> BoxedStrategy<(Values, Vec<u8>)> {
    let texts = vec!["", "IBM", "2", "2.0", "-1", "1.5", "x", "NaN", "9007199254740993"];
    let value = prop::option::of(prop::sample::select(texts));
    prop::collection::vec(value, 3)
        .prop_map(|texts| {
            let (mut values, mut bytes) = (Values::default(), Vec::new());
            for (name, text) in ["a", "b", "c"].iter().zip(texts) {
                let Some(text) = text else { continue };
                bytes.extend_from_slice(format!("{name}={text}\x01").as_bytes());
                let literal = Literal::Text(text.as_bytes().into());
                values.0.insert(random::path(&format!("/{name}")), vec![literal]);
            }
            (values, bytes)
        })
        .boxed()
}

/// A JSON object with values of all types, single and in arrays: its values and bytes.
pub(crate) fn objects() -> BoxedStrategy<(Values, Vec<u8>)> {
    let value = prop_oneof![
        1 => Just(None),
        2 => random::literal().prop_map(|value| Some((false, vec![value]))),
        2 => prop::collection::vec(random::literal(), 0..4).prop_map(|list| Some((true, list))),
    ];
    prop::collection::vec(value, 4)
        .prop_map(|found| {
            let (mut values, mut members) = (Values::default(), Vec::new());
            for (name, value) in ["a", "b", "c", "d/e"].iter().zip(found) {
                let Some((is_array, list)) = value else { continue };
                let texts: Vec<String> = list.iter().map(json).collect();
                let text = texts.join(",");
                let text = if is_array { format!("[{text}]") } else { text };
                members.push(match name.split_once('/') {
                    Some((outer, inner)) => format!("\"{outer}\":{{\"{inner}\":{text}}}"),
                    None => format!("\"{name}\":{text}"),
                });
                values.0.insert(random::path(&format!("/{name}")), list);
            }
            (values, format!("{{{}}}", members.join(",")).into_bytes())
        })
        .boxed()
}

fn json(literal: &Literal) -> String {
    match literal {
        Literal::Null => "null".to_owned(),
        Literal::Bool(truth) => truth.to_string(),
        Literal::Text(text) => {
            serde_json::to_string(str::from_utf8(text).expect("a text")).expect("a string")
        }
        number => number.to_string(),
    }
}

pub(crate) fn semantics() -> BoxedStrategy<Semantics> {
    prop_oneof![Just(Semantics::Sql), Just(Semantics::Amps)].boxed()
}

fn check(
    message_type: MessageType,
    expr: &Expr,
    semantics: Semantics,
    message: &(Values, Vec<u8>),
) {
    let (values, bytes) = message;
    let mut fields = FieldSet::new(message_type);
    let filter = Filter::from(expr.clone()).with_semantics(semantics);
    let plan = Plan::new(&filter, &mut fields).expect("slots");
    let mut row = Row::new();
    Reader::new(&fields).read(bytes, &mut row).expect("a message");
    let message = Message { row: &row, bytes, environment: &ENVIRONMENT };
    let sized = Measured(values, bytes.len());
    let truth = interpreter::evaluate(expr, &sized, &ENVIRONMENT, semantics);
    assert_eq!(plan.evaluate(&message), truth, "{expr}\n{values:?}\n{plan:?}");
    assert_eq!(plan.matches(&message), truth == Ternary::True, "{expr}");
    plan.release(&mut fields);
    assert!(fields.is_empty(), "{expr}");
}

/// Values with the size of their message.
pub(crate) struct Measured<'a>(pub(crate) &'a Values, pub(crate) usize);

impl interpreter::FieldSource for Measured<'_> {
    fn values<'a>(&'a self, field: &'a Path) -> impl Iterator<Item = Value<'a>> {
        self.0.values(field)
    }

    fn size_bytes(&self) -> usize {
        self.1
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_plan_for_pairs_says_what_the_walk_says(
        expr in random::expr(false),
        semantics in semantics(),
        message in pairs(),
    ) {
        check(MessageType::Nvfix, &expr, semantics, &message);
    }

    #[test]
    fn a_plan_for_objects_says_what_the_walk_says(
        expr in random::expr(false),
        semantics in semantics(),
        message in objects(),
    ) {
        check(MessageType::Json, &expr, semantics, &message);
    }

    #[test]
    fn a_plan_of_usual_conditions_on_objects_says_what_the_walk_says(
        expr in random::condition(),
        semantics in semantics(),
        message in objects(),
    ) {
        check(MessageType::Json, &expr, semantics, &message);
    }

    #[test]
    fn a_plan_of_usual_conditions_says_what_the_walk_says(
        expr in random::condition(),
        semantics in semantics(),
        message in pairs(),
    ) {
        check(MessageType::Nvfix, &expr, semantics, &message);
    }
}
