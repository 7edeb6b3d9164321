//! Bounds on the cost of evaluation, in values read from the message.

use super::record::{ENVIRONMENT, Values};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::{FieldSource, PAIRS_MAX, evaluate};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::value::Value;
use lanecast_filter::{Filter, Index, Message, Plan};
use std::cell::Cell;

/// A message that counts the values read from it; a call of `values` counts as one, too.
struct Counted {
    values: Values,
    count: Cell<usize>,
}

impl FieldSource for Counted {
    fn values<'a>(&'a self, field: &'a Path) -> impl Iterator<Item = Value<'a>> {
        let count = || self.count.set(self.count.get() + 1);
        count();
        self.values.values(field).inspect(move |_| count())
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

/// Truth of `text` for `message`, and the values read.
fn cost(text: &str, message: &str) -> (Ternary, usize) {
    let filter = Filter::parse(text).unwrap_or_else(|error| panic!("{}", error.show(text)));
    let record = Counted { values: Values::of(message), count: Cell::new(0) };
    let truth = evaluate(filter.expr(), &record, &ENVIRONMENT, Semantics::Sql);
    (truth, record.count.get())
}

/// `count` different values of a field.
fn many(count: usize, from: usize) -> String {
    let values: Vec<String> = (from..from + count).map(|number| number.to_string()).collect();
    values.join(",")
}

#[test]
fn nested_conditions_cost_their_number_and_not_a_power_of_it() {
    for (open, close) in [("/a = (", ")"), ("/a IN (0, ", ")"), ("/a BETWEEN 9 AND (", ")")] {
        let text = |depth| format!("{}9{}", open.repeat(depth), close.repeat(depth));
        let (_, one) = cost(&text(1), "/a=5,6");
        // A power of two would be more than four billion.
        let (_, thirty) = cost(&text(32), "/a=5,6");
        assert!(thirty <= 33 * one, "{open}: {one}, {thirty}");
    }
}

#[test]
fn a_right_side_without_values_of_its_own_is_computed_once() {
    let few = cost("/a = /b + 1", "/a=1,2 /b=5").1;
    let more = cost("/a = /b + 1", &format!("/a={} /b=500", many(100, 1))).1;
    assert_eq!(more, few + 98, "one for each further value of /a");
}

#[test]
fn pairs_of_two_fields_are_limited() {
    let message = format!("/a={} /b={} /c=1", many(1_000, 0), many(1_000, 5_000));
    let conditions =
        ["/a = /b", "/a IN (-1, /b)", "/a BETWEEN /b AND /b", "/a BEGINS WITH (/b, 'x')"];
    for text in conditions {
        for text in [text.to_owned(), format!("NOT {text}")] {
            let (truth, read) = cost(&text, &message);
            assert_eq!(truth, Ternary::Unknown, "{text}");
            assert!(read < 2 * PAIRS_MAX, "{text} reads {read} values");
        }
    }
    // A pair that is found before decides, and a single value on one side is no product.
    assert_eq!(cost("/a < /b", &message).0, Ternary::True);
    let long = format!("/a={} /c=-1", many(PAIRS_MAX + 10, 0));
    assert_eq!(cost("/a = /c", &long).0, Ternary::False);
    assert_eq!(cost("/c IN (/a, /x)", &long).0, Ternary::Unknown, "/x is absent");
    assert_eq!(cost("/c IN (/a)", &long).0, Ternary::False);
}

#[test]
fn plans_and_indexes_have_the_same_limit() {
    let list = |from: usize, count| (from..from + count).map(|n| n.to_string()).collect::<Vec<_>>();
    for count in [256, 257] {
        let (a, b) = (list(0, 256), list(1_000, count));
        let bytes = format!(r#"{{"a":[{}],"b":[{}]}}"#, a.join(","), b.join(","));
        let record = Values::of(&format!("/a={} /b={}", a.join(","), b.join(",")));
        let texts = ["/a = /b", "NOT /a = /b", "/a IN (/b)", "/x IS NULL AND /a >= /b"];
        for text in texts {
            let filter = Filter::parse(text).expect(text);
            let truth = evaluate(filter.expr(), &record, &ENVIRONMENT, Semantics::Sql);
            let mut fields = FieldSet::new(MessageType::Json);
            let plan = Plan::new(&filter, &mut fields).expect("slots");
            let mut index = Index::new();
            index.insert(1, &filter, &mut fields).expect("room");
            let mut row = Row::new();
            Reader::new(&fields).read(bytes.as_bytes(), &mut row).expect("a message");
            let message = Message { row: &row, bytes: bytes.as_bytes(), environment: &ENVIRONMENT };
            assert_eq!(plan.evaluate(&message), truth, "{text} of {count}");
            let mut found = Vec::new();
            index.matches(&message, &mut found);
            assert_eq!(found, if truth == Ternary::True { vec![1] } else { vec![] }, "{text}");
        }
        let truth = cost("/a = /b", &format!("/a={} /b={}", a.join(","), b.join(","))).0;
        let is_beyond = 256 * count > PAIRS_MAX;
        assert_eq!(truth, if is_beyond { Ternary::Unknown } else { Ternary::False });
    }
}
