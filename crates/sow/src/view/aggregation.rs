//! Aggregation: adds rows to groups and retracts them.

use super::accumulator::{AccumulatorKind, Step};
use super::contribution::{Contribution, GroupRef, Input, Need};
use super::decimal::Decimal;
use super::expression::{CompiledExpr, Leaves};
use super::groups::{Group, GroupKey, Groups, RowAge};
use super::plan::{Leaf, ViewPlan, numbered};
use super::record_writer::{RecordWriter, WriteError};
use super::value::ViewValue;
use lanecast_filter::expr::Expr;
use lanecast_filter::fields::Slot;
use lanecast_filter::interpreter::{self, Environment, FieldSource};
use lanecast_filter::path::Path;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::value::Value;
use lanecast_filter::{Message, Plan};
use smallvec::SmallVec;

/// One message per topic of a join row; `None` where no record matched.
pub(crate) type Parts<'a> = [Option<Message<'a>>];

/// Views have no environment: their functions cannot ask for topic, client or time.
pub(crate) static NO_ENVIRONMENT: Environment<'static> =
    Environment { topic: "", client: "", unix_ns: 0 };

/// A join row, with its fields by number.
struct Row<'a> {
    slots: &'a [(usize, Slot)],
    parts: &'a Parts<'a>,
}

/// Filter of rows.
#[derive(Debug)]
enum Condition {
    None,
    /// Over one topic.
    Plan(Plan),
    /// Over several topics.
    Tree(Expr<usize>),
}

/// The core of a view: filter, grouping, accumulators and columns.
#[derive(Debug)]
pub(crate) struct Aggregation {
    slots: Box<[(usize, Slot)]>,
    condition: Condition,
    keys: Vec<usize>,
    /// Arguments and the part of each that the accumulators need.
    arguments: Vec<(CompiledExpr, Need)>,
    accumulator_kinds: Vec<(AccumulatorKind, usize)>,
    lasts: Vec<usize>,
    leaves: Vec<Leaf>,
    columns: Vec<CompiledExpr>,
    pub(crate) paths: Vec<Path>,
    record_writer: RecordWriter,
    pub(crate) groups: Groups,
    name: GroupKey,
    /// Number of rows without a group, because a grouping value is NULL.
    pub(crate) ungrouped: u64,
}

impl Aggregation {
    /// Builds the aggregation of `plan`. `slots` are those of its inputs; `filter_plan` is the
    /// filter's plan if there is one topic.
    pub(crate) fn new(
        plan: ViewPlan,
        topics: &[&str],
        slots: Box<[(usize, Slot)]>,
        filter_plan: Option<Plan>,
    ) -> Self {
        let condition = match (filter_plan, &plan.filter) {
            (Some(filter_plan), _) => Condition::Plan(filter_plan),
            (None, None) => Condition::None,
            (None, Some(filter)) => Condition::Tree(numbered(filter, |path| {
                plan.input(topics, path).expect("each path of a filter is an input")
            })),
        };
        let accumulator_kinds = &plan.accumulator_kinds;
        let need = |number: usize| {
            let own = accumulator_kinds.iter().filter(|(_, argument)| *argument == number);
            own.map(|(kind, _)| kind.need()).max().unwrap_or(Need::Presence)
        };
        let arguments = plan.arguments.into_iter().enumerate();
        let arguments = arguments.map(|(number, expr)| (expr, need(number))).collect();
        Self {
            slots,
            condition,
            keys: plan.keys,
            arguments,
            accumulator_kinds: plan.accumulator_kinds,
            lasts: plan.lasts,
            leaves: plan.leaves,
            columns: plan.columns,
            paths: plan.paths,
            record_writer: plan.record_writer,
            groups: Groups::default(),
            name: GroupKey::default(),
            ungrouped: 0,
        }
    }

    /// Replaces the inputs' slots, and the filter's plan if there is one topic.
    pub(crate) fn rebind(&mut self, slots: Box<[(usize, Slot)]>, plan: Option<Plan>) {
        self.slots = slots;
        if let Some(plan) = plan {
            self.condition = Condition::Plan(plan);
        }
    }

    /// Adds a row; returns its contribution if it passes the filter.
    #[inline]
    pub(crate) fn add(&mut self, parts: &Parts<'_>, age: &RowAge) -> Option<Contribution> {
        let contribution = self.contribution(parts)?;
        self.put(&contribution, parts, age);
        Some(contribution)
    }

    /// Replaces a row that had the contribution `before`.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        (before, old): (&Contribution, &RowAge),
        parts: &Parts<'_>,
        age: &RowAge,
    ) -> Option<Contribution> {
        let contribution = self.contribution(parts);
        if let Some(after) = &contribution
            && (after.group_id, after.non_text) == (before.group_id, before.non_text)
            && let GroupRef::Group(group_id) = after.group_id
            && self.lasts.is_empty()
        {
            // Same group: apply the difference only.
            let group = self.groups.touch(group_id);
            for (accumulator, (_, argument)) in
                group.accumulators.iter_mut().zip(&self.accumulator_kinds)
            {
                accumulator.replace(&before.inputs[*argument], &after.inputs[*argument]);
            }
            return contribution;
        }
        self.remove(before, old);
        contribution.inspect(|contribution| self.put(contribution, parts, age))
    }

    fn put(&mut self, contribution: &Contribution, parts: &Parts<'_>, age: &RowAge) {
        self.apply(contribution, Step::Add);
        if let GroupRef::Group(group_id) = contribution.group_id
            && !self.lasts.is_empty()
            && let Some(group) = self.groups.get_mut(group_id)
        {
            let row = Row { slots: &self.slots, parts };
            let values = self.lasts.iter().map(|input| row.leaf(*input).into_owned());
            group.add_last(age, values.collect());
        }
    }

    /// Retracts a row with this contribution.
    #[inline]
    pub(crate) fn remove(&mut self, contribution: &Contribution, age: &RowAge) {
        self.apply(contribution, Step::Retract);
        if let GroupRef::Group(group_id) = contribution.group_id
            && !self.lasts.is_empty()
            && let Some(group) = self.groups.get_mut(group_id)
        {
            group.remove_last(age);
        }
    }

    /// Contribution of a row if it passes the filter. Creates its group if there is none.
    #[inline]
    pub(crate) fn contribution(&mut self, parts: &Parts<'_>) -> Option<Contribution> {
        let row = Row { slots: &self.slots, parts };
        if !self.condition.holds(&row) {
            return None;
        }
        self.name.clear();
        for key in &self.keys {
            let is_named = match row.value(*key) {
                Value::Text(text) => self.name.push_text(text),
                _ => self.name.push(&row.leaf(*key)),
            };
            if !is_named {
                let inputs = SmallVec::new();
                return Some(Contribution { group_id: GroupRef::Ungrouped, non_text: 0, inputs });
            }
        }
        let accumulator_kinds = &self.accumulator_kinds;
        let accumulators =
            || accumulator_kinds.iter().map(|(kind, _)| kind.accumulator()).collect();
        let group_id = GroupRef::Group(self.groups.group_id(&self.name, accumulators));
        let mut inputs = SmallVec::with_capacity(self.arguments.len());
        for (expr, need) in &self.arguments {
            inputs.push(Input::of(expr, *need, &row));
        }
        Some(Contribution { group_id, non_text: self.name.non_text, inputs })
    }

    #[inline]
    fn apply(&mut self, contribution: &Contribution, step: Step) {
        let GroupRef::Group(group_id) = contribution.group_id else {
            return step.apply(&mut self.ungrouped);
        };
        let group = self.groups.take(group_id, contribution.non_text, step);
        for (accumulator, (_, argument)) in
            group.accumulators.iter_mut().zip(&self.accumulator_kinds)
        {
            accumulator.take(&contribution.inputs[*argument], step);
        }
    }

    /// Writes the record of `group`, of at most `bytes_max` bytes, into the empty `record`.
    pub(crate) fn write(
        &self,
        group: &Group,
        bytes_max: usize,
        record: &mut Vec<u8>,
    ) -> Result<(), WriteError> {
        let known = Known { group, leaves: &self.leaves };
        self.record_writer.write(|column| self.columns[column].value(&known), bytes_max, record)
    }
}

impl Condition {
    #[inline]
    fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            Self::None => true,
            Self::Plan(plan) => {
                row.parts.first().and_then(Option::as_ref).is_some_and(|one| plan.matches(one))
            }
            Self::Tree(expr) => {
                interpreter::evaluate(expr, row, &NO_ENVIRONMENT, Semantics::Sql) == Ternary::True
            }
        }
    }
}

impl Row<'_> {
    #[inline]
    fn value(&self, number: usize) -> Value<'_> {
        let (topic, slot) = self.slots[number];
        let message = self.parts[topic].as_ref();
        message.map_or(Value::Null, |message| message.row.value(slot, message.bytes))
    }
}

impl Leaves for Row<'_> {
    #[inline]
    fn leaf(&self, number: usize) -> ViewValue<'_> {
        let (topic, slot) = self.slots[number];
        match &self.parts[topic] {
            Some(message) => ViewValue::of_field(message.row, slot, message.bytes),
            None => ViewValue::Null,
        }
    }

    #[inline]
    fn small(&self, number: usize) -> Option<(i64, u32)> {
        let (topic, slot) = self.slots[number];
        let message = self.parts[topic].as_ref()?;
        // A filter may have parsed the number already.
        if let Some(units) = message.row.cached_integer(slot) {
            return Some((units, 0));
        }
        Decimal::parse_small(message.row.text(slot, message.bytes)?)
    }
}

impl FieldSource<usize> for Row<'_> {
    fn values<'a>(&'a self, number: &'a usize) -> impl Iterator<Item = Value<'a>> {
        let (topic, slot) = self.slots[*number];
        let message = self.parts[topic].as_ref();
        message.into_iter().flat_map(move |message| message.row.values(slot, message.bytes))
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

/// Leaves of columns, as values of a group.
struct Known<'a> {
    group: &'a Group,
    leaves: &'a [Leaf],
}

impl Leaves for Known<'_> {
    #[inline]
    fn leaf(&self, number: usize) -> ViewValue<'_> {
        match self.leaves[number] {
            Leaf::Shared(key) => self.group.shared(key),
            Leaf::Last(last) => self.group.last(last),
            Leaf::Aggregate(function, kind) => self.group.accumulators[kind].result(function),
        }
    }
}
