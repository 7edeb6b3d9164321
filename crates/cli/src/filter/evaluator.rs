//! A filter and what it says of messages, with its reasons.

use lanecast_filter::explain::{Explanation, explain};
use lanecast_filter::expr::Literal;
use lanecast_filter::fields::{FieldSet, Slot};
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::ternary::Ternary;
use lanecast_filter::{Filter, Message, Plan};
use std::time::SystemTime;

/// A filter that is ready for messages.
#[derive(Debug)]
pub(crate) struct Evaluator {
    plan: Plan,
    fields: FieldSet,
    reader: Reader,
    row: Row,
    pub(super) explanation: Explanation,
    /// The conditions that all have to hold.
    steps: Vec<(String, Plan)>,
    /// The fields that it asks for, each once.
    slots: Vec<Slot>,
}

impl Evaluator {
    pub(crate) fn new(filter: &Filter, kind: MessageType) -> anyhow::Result<Self> {
        let mut fields = FieldSet::new(kind);
        let explanation = explain(filter, &mut fields)?;
        let plan = Plan::new(filter, &mut fields)?;
        let mut steps = Vec::new();
        for step in &explanation.steps {
            let part = Filter::parse(&step.text)?.with_semantics(filter.semantics());
            steps.push((step.text.clone(), Plan::new(&part, &mut fields)?));
        }
        let mut slots = Vec::new();
        for path in filter.paths() {
            let slot = fields.slot_for_all_values(path)?;
            if !slots.contains(&slot) {
                slots.push(slot);
            }
        }
        let (reader, row) = (Reader::new(&fields), Row::new());
        Ok(Self { plan, fields, reader, row, explanation, steps, slots })
    }

    /// The names of the fields that it asks for.
    pub(super) fn fields(&self) -> impl Iterator<Item = String> {
        let paths = self.slots.iter().filter_map(|slot| self.fields.path(*slot));
        paths.map(ToString::to_string)
    }

    /// Evaluates the filter for a message.
    pub(crate) fn truth(&mut self, bytes: &[u8]) -> Result<Ternary, Malformed> {
        self.reader.read(bytes, &mut self.row)?;
        Ok(self.about(bytes, |message| self.plan.evaluate(message)))
    }

    /// The first condition that does not hold for the message that was read last.
    pub(super) fn objection(&self, bytes: &[u8]) -> Option<(&str, Ternary)> {
        let steps = self.steps.iter();
        let mut truths = steps
            .map(|(text, plan)| (&**text, self.about(bytes, |message| plan.evaluate(message))));
        truths.find(|(_, truth)| *truth != Ternary::True)
    }

    /// Fields read from the last message, each with its values.
    pub(super) fn evidence(&self, bytes: &[u8]) -> Vec<(String, Vec<String>)> {
        let values = |slot| {
            let values = self.row.values(slot, bytes);
            values.map(|value| Literal::from(value).to_string()).collect()
        };
        self.fields().zip(self.slots.iter().map(|slot| values(*slot))).collect()
    }

    fn about<T>(&self, bytes: &[u8], look: impl FnOnce(&Message<'_>) -> T) -> T {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let unix_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let environment = Environment { unix_ns, ..Environment::default() };
        look(&Message { row: &self.row, bytes, environment: &environment })
    }
}
