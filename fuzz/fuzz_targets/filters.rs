//! Filters from any text: refused with a place within it, or printed as text that is read as the
//! same filter, planned and filed. What plan and index then say of a message is what the naive
//! walk says.
#![no_main]

use lanecast_filter::fields::{Fields, Slot};
use lanecast_filter::kind::Kind;
use lanecast_filter::naive::{self, Environment, Record};
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::truth::Truth;
use lanecast_filter::value::Value;
use lanecast_filter::{Filter, Index, Limits, Message, Plan};
use libfuzzer_sys::fuzz_target;

/// Patterns small enough for a fuzzer's patience.
const LIMITS: Limits = Limits { length_bytes: 4_096, depth: 64, pattern_bytes: 64 * 1024 };

fuzz_target!(|input: (&str, &[u8])| {
    let (text, message) = input;
    let filter = match Filter::parse_with(text, &LIMITS) {
        Ok(filter) => filter,
        Err(error) => {
            assert!(text.is_char_boundary(error.at));
            error.show(text);
            return;
        }
    };
    let print = filter.to_string();
    if print.len() <= LIMITS.length_bytes {
        assert_eq!(Filter::parse_with(&print, &LIMITS).as_ref(), Ok(&filter), "{print}");
    }
    let (mut fields, mut index) = (Fields::new(Kind::Nvfix), Index::new());
    let Ok(plan) = Plan::new(&filter, &mut fields) else { return };
    index.insert(7, &filter, &mut fields).expect("the plan had room for the same fields");
    let mut row = Row::new();
    if Reader::new(&fields).read(message, &mut row).is_err() {
        return;
    }
    let environment = Environment::default();
    let message = Message { row: &row, bytes: message, environment: &environment };
    let mut ids = Vec::new();
    index.matches(&message, &mut ids);
    assert_eq!(ids == [7], plan.holds(&message), "{print}");
    // These ask for all fields of a name, where others mean the first.
    if !print.contains("ARRAY_") {
        let mut named = |path: &Path| Some((path.clone(), fields.slot(path).ok()?));
        let slots = filter.paths().into_iter().filter_map(&mut named).collect();
        let record = Named(slots, message);
        let truth = naive::truth(filter.expr(), &record, &environment, filter.semantics());
        assert_eq!(plan.truth(&message), truth, "{print}");
        assert_eq!(plan.holds(&message), truth == Truth::True, "{print}");
    }
});

/// A message whose fields are named by paths.
struct Named<'a>(Vec<(Path, Slot)>, Message<'a>);

impl Record for Named<'_> {
    fn values<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = Value<'a>> {
        let Self(slots, message) = self;
        let slot = slots.iter().find(|(other, _)| other == path).map(|(_, slot)| *slot);
        slot.into_iter().flat_map(|slot| message.row.values(slot, message.bytes))
    }

    fn size_bytes(&self) -> usize {
        self.1.bytes.len()
    }
}
