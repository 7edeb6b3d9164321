//! From rows to groups: what a view does with each row that comes or goes.

use super::accumulator::{Accumulator, Measure, Step};
use super::blueprint::{Blueprint, Leaf, numbered};
use super::datum::Datum;
use super::decimal::Rounding;
use super::exact::Exact;
use super::formula::{Formula, Leaves};
use super::groups::{Age, Group, Groups, Name};
use super::template::{Template, Unwritable};
use lanecast_filter::expr::Expr;
use lanecast_filter::fields::Slot;
use lanecast_filter::naive::{self, Environment, Record};
use lanecast_filter::path::Path;
use lanecast_filter::truth::{Semantics, Truth};
use lanecast_filter::value::Value;
use lanecast_filter::{Message, Plan};

/// A message of each topic, as far as there is one: what stands in one line of a join.
pub(crate) type Parts<'a> = [Option<Message<'a>>];

/// What expressions of views can ask for beyond messages: nothing.
pub(crate) static NOWHERE: Environment<'static> = Environment { topic: "", client: "", unix_ns: 0 };

/// A row: a line of a join, with its fields numbered.
struct Row<'a> {
    slots: &'a [(usize, Slot)],
    parts: &'a Parts<'a>,
}

/// Which rows a view is about.
#[derive(Debug)]
enum Condition {
    None,
    /// Of one topic.
    Plan(Plan),
    /// Of several.
    Tree(Expr<usize>),
}

/// A view but for where its rows come from and where its records go.
#[derive(Debug)]
pub(crate) struct Fold {
    slots: Box<[(usize, Slot)]>,
    condition: Condition,
    keys: Vec<usize>,
    arguments: Vec<Formula>,
    measures: Vec<(Measure, usize)>,
    lasts: Vec<usize>,
    leaves: Vec<Leaf>,
    columns: Vec<Formula>,
    pub(crate) paths: Vec<Path>,
    template: Template,
    pub(crate) groups: Groups,
    name: Name,
    /// Rows that are in no group, because a value that they are grouped by is NULL.
    pub(crate) stray: u64,
}

impl Fold {
    /// The fold of `blueprint`, whose inputs have these slots, and whose filter has this plan if
    /// there is but one topic.
    pub(crate) fn new(
        blueprint: Blueprint,
        topics: &[&str],
        slots: Box<[(usize, Slot)]>,
        plan: Option<Plan>,
    ) -> Self {
        let condition = match (plan, &blueprint.filter) {
            (Some(plan), _) => Condition::Plan(plan),
            (None, None) => Condition::None,
            (None, Some(filter)) => Condition::Tree(numbered(filter, |path| {
                blueprint.input(topics, path).expect("each path of a filter is an input")
            })),
        };
        Self {
            slots,
            condition,
            keys: blueprint.keys,
            arguments: blueprint.arguments,
            measures: blueprint.measures,
            lasts: blueprint.lasts,
            leaves: blueprint.leaves,
            columns: blueprint.columns,
            paths: blueprint.paths,
            template: blueprint.template,
            groups: Groups::default(),
            name: Name::default(),
            stray: 0,
        }
    }

    /// A row comes, or one goes that came before.
    #[inline]
    pub(crate) fn take(&mut self, parts: &Parts<'_>, age: &Age, step: Step) {
        let row = Row { slots: &self.slots, parts };
        if !self.condition.holds(&row) {
            return;
        }
        self.name.clear();
        for key in &self.keys {
            if !self.name.push(&row.leaf(*key)) {
                return step.apply(&mut self.stray);
            }
        }
        let measures = &self.measures;
        let accumulators = || measures.iter().map(|(measure, _)| measure.accumulator()).collect();
        let group = self.groups.take(&self.name, step, accumulators);
        for (number, argument) in self.arguments.iter().enumerate() {
            let datum = fine(argument.datum(&row));
            let accumulators = group.accumulators.iter_mut().zip(measures);
            let own = accumulators.filter(|(_, (_, argument))| *argument == number);
            own.for_each(|(accumulator, _): (&mut Accumulator, _)| accumulator.take(&datum, step));
        }
        if !self.lasts.is_empty() {
            let values = self.lasts.iter().map(|input| row.leaf(*input).into_owned());
            group.take_last(age, values.collect(), step);
        }
    }

    /// Appends the record of `group`.
    pub(crate) fn write(&self, group: &Group, record: &mut Vec<u8>) -> Result<(), Unwritable> {
        let known = Known { group, leaves: &self.leaves };
        self.template.write(|column| self.columns[column].datum(&known), record)
    }
}

impl Condition {
    #[inline]
    fn holds(&self, row: &Row<'_>) -> bool {
        match self {
            Self::None => true,
            Self::Plan(plan) => {
                row.parts.first().and_then(Option::as_ref).is_some_and(|one| plan.holds(one))
            }
            Self::Tree(expr) => naive::truth(expr, row, &NOWHERE, Semantics::Sql) == Truth::True,
        }
    }
}

/// What goes into sums and other memories is a decimal.
#[inline]
fn fine(datum: Datum<'_>) -> Datum<'_> {
    match datum {
        Datum::Number(number @ Exact::Quotient(_)) => {
            Datum::Number(Exact::Decimal(number.rounded(Rounding::FINE)))
        }
        datum => datum,
    }
}

impl Leaves for Row<'_> {
    #[inline]
    fn leaf(&self, number: usize) -> Datum<'_> {
        let (topic, slot) = self.slots[number];
        match &self.parts[topic] {
            Some(message) => Datum::of_field(message.row, slot, message.bytes),
            None => Datum::Null,
        }
    }
}

impl Record<usize> for Row<'_> {
    fn values<'a>(&'a self, number: &'a usize) -> impl Iterator<Item = Value<'a>> {
        let (topic, slot) = self.slots[*number];
        let message = self.parts[topic].as_ref();
        message.into_iter().flat_map(move |message| message.row.values(slot, message.bytes))
    }

    fn size_bytes(&self) -> usize {
        0
    }
}

/// What a group says of the leaves of columns.
struct Known<'a> {
    group: &'a Group,
    leaves: &'a [Leaf],
}

impl Leaves for Known<'_> {
    #[inline]
    fn leaf(&self, number: usize) -> Datum<'_> {
        match self.leaves[number] {
            Leaf::Shared(key) => self.group.shared(key),
            Leaf::Last(last) => self.group.last(last),
            Leaf::Aggregate(function, measure) => {
                self.group.accumulators[measure].outcome(function)
            }
        }
    }
}
