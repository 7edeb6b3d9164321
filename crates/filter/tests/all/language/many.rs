//! An index agrees with the evaluation of each filter, while filters are added and removed.

use super::faster::{Measured, objects, pairs, semantics};
use super::random;
use super::record::{ENVIRONMENT, Values};
use lanecast_filter::fields::FieldSet;
use lanecast_filter::index::{AccessMethod, InsertError};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::Ternary;
use lanecast_filter::{Filter, FilterLimits, Index, Message, interpreter};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A change of an index.
#[derive(Clone, Debug)]
enum Change {
    Insert(u32, Filter),
    Remove(u32),
}

fn change() -> BoxedStrategy<Change> {
    let expr = prop_oneof![4 => random::condition(), 1 => random::expr(false)];
    let filter = (expr, semantics())
        .prop_map(|(expr, semantics)| Filter::from(expr).with_semantics(semantics));
    prop_oneof![
        3 => (0..20_u32, filter).prop_map(|(id, filter)| Change::Insert(id, filter)),
        1 => (0..20_u32).prop_map(Change::Remove),
    ]
    .boxed()
}

/// An index next to a list of its filters.
struct Both {
    index: Index,
    fields: FieldSet,
    model: BTreeMap<u32, Filter>,
}

impl Both {
    fn new(message_type: MessageType) -> Self {
        Self { index: Index::new(), fields: FieldSet::new(message_type), model: BTreeMap::new() }
    }

    fn apply(&mut self, change: Change) {
        match change {
            Change::Insert(id, filter) => {
                let result = self.index.insert(id, &filter, &mut self.fields);
                if self.model.contains_key(&id) {
                    assert_eq!(result, Err(InsertError::IdTaken(id)));
                } else {
                    assert_eq!(self.index.placement_of(id), result.ok());
                    self.model.insert(id, filter);
                }
            }
            Change::Remove(id) => {
                let was_there = self.index.remove(id, &mut self.fields);
                assert_eq!(was_there, self.model.remove(&id).is_some());
            }
        }
    }

    /// Compares both for a message.
    fn check(&self, (values, bytes): &(Values, Vec<u8>)) {
        let mut row = Row::new();
        Reader::new(&self.fields).read(bytes, &mut row).expect("a message");
        let message = Message { row: &row, bytes, environment: &ENVIRONMENT };
        let mut found = vec![77];
        self.index.matches(&message, &mut found);
        found.sort_unstable();
        let record = Measured(values, bytes.len());
        let holds = |filter: &Filter| {
            interpreter::evaluate(filter.expr(), &record, &ENVIRONMENT, filter.semantics())
                == Ternary::True
        };
        let wanted = self.model.iter().filter(|(_, filter)| holds(filter));
        let wanted: Vec<u32> = wanted.map(|(id, _)| *id).collect();
        assert_eq!(found, wanted, "{:#?}\n{values:?}\n{:#?}", self.model, self.index);
    }

    fn finish(mut self) {
        let unindexed = |id: &u32| !self.index.placement_of(*id).expect("it is there").is_indexed();
        let wanted: Vec<u32> = self.model.keys().copied().filter(unindexed).collect();
        assert_eq!(self.index.unindexed(), wanted);
        assert_eq!(self.index.stats().subscriptions, self.model.len());
        for id in self.model.into_keys() {
            assert!(self.index.remove(id, &mut self.fields));
        }
        assert_eq!(self.index.stats(), Index::new().stats());
        assert!(self.fields.is_empty());
    }
}

fn run(message_type: MessageType, changes: Vec<Change>, messages: &[(Values, Vec<u8>)]) {
    let mut both = Both::new(message_type);
    for (count, change) in changes.into_iter().enumerate() {
        both.apply(change);
        if count % 8 == 0 {
            both.check(&messages[count / 8 % 4]);
        }
    }
    messages.iter().for_each(|message| both.check(message));
    both.finish();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn an_index_finds_what_each_filter_selects(
        changes in prop::collection::vec(change(), 1..40),
        messages in prop::collection::vec(pairs(), 4),
    ) {
        run(MessageType::Nvfix, changes, &messages);
    }

    #[test]
    fn an_index_of_filters_on_objects_finds_what_each_selects(
        changes in prop::collection::vec(change(), 1..40),
        messages in prop::collection::vec(objects(), 4),
    ) {
        run(MessageType::Json, changes, &messages);
    }
}

fn placed(texts: &[&str]) -> (Index, FieldSet) {
    let (mut index, mut fields) = (Index::new(), FieldSet::new(MessageType::Fix));
    for (id, text) in texts.iter().enumerate() {
        let filter = Filter::parse(text).expect(text);
        index.insert(id as u32, &filter, &mut fields).expect("room");
    }
    (index, fields)
}

#[test]
fn filters_are_indexed_by_their_most_selective_predicate() {
    let texts = [
        "/55 = 'IBM' AND /38 >= 5000",
        "/35 IN ('D', 'C') AND /55 = 'HP'",
        "/35 IN ('D', 'C') AND /55 = 'SUN'",
        "/38 BETWEEN 1 AND 2 AND /1 LIKE 'x'",
        "/55 = 'IBM' OR /11 = 'me' AND /38 > 1",
        "/55 LIKE 'I'",
        "/55 = 'IBM' AND 1 = 2",
        "1 = 1",
        "/55 <> 'IBM'",
        "/55 = ''",
    ];
    let (index, fields) = placed(&texts);
    let explained = |id: u32| index.placement_of(id).expect("a placement").explain(&fields);
    assert_eq!(explained(0), "found by the value of /55");
    assert_eq!(explained(2), "found by the value of /55");
    assert_eq!(explained(3), "found by the range of /38");
    assert_eq!(explained(4), "found by the value of /55, or found by the value of /11");
    assert!(explained(5).starts_with("evaluated for every message: add a condition"));
    assert_eq!(explained(6), "never holds");
    assert_eq!(explained(7), "holds for every message");
    assert_eq!(explained(9), "never holds");
    assert_eq!(index.unindexed(), [5, 8]);
    assert_eq!(index.placement_of(7).expect("a placement").methods, [AccessMethod::Every]);
    assert_eq!(index.placement_of(10), None);
}

#[test]
fn filters_that_say_the_same_share_a_place() {
    let texts = ["/55 = 'IBM' AND /38 >= 5", "/55='IBM' and not not 2+3 <= /38", "/55 = 'HP'"];
    let (index, _) = placed(&texts);
    assert_eq!((index.stats().subscriptions, index.stats().filters), (3, 2));
}

#[test]
fn refused_filters_leave_no_trace() {
    let (mut index, mut fields) = placed(&["/55 = 'IBM'"]);
    let before = index.stats();
    let filter = Filter::parse("/1 = 1").expect("a filter");
    assert_eq!(index.insert(0, &filter, &mut fields), Err(InsertError::IdTaken(0)));
    assert!(matches!(
        index.insert(1 << 30, &filter, &mut fields),
        Err(InsertError::IdOutOfRange(_))
    ));
    let many: Vec<String> = (0..1_025).map(|number| format!("/{number} = 1")).collect();
    let limits = FilterLimits { fields: usize::MAX, ..FilterLimits::DEFAULT };
    let filter = Filter::parse_with(&many.join(" AND "), &limits).expect("a filter");
    assert!(matches!(index.insert(1, &filter, &mut fields), Err(InsertError::TooManyFields(_))));
    assert_eq!((index.stats(), fields.len()), (before, 1));
}
