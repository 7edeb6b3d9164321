//! From rows to groups: what a view does with each row that comes or goes.

use super::accumulator::{Measure, Step};
use super::blueprint::{Blueprint, Leaf, numbered};
use super::datum::Datum;
use super::decimal::Decimal;
use super::formula::{Formula, Leaves};
use super::groups::{Age, Group, Groups, Name};
use super::share::{Input, Need, Share, SharePlace};
use super::template::{Template, Unwritable};
use lanecast_filter::expr::Expr;
use lanecast_filter::fields::Slot;
use lanecast_filter::interpreter::{self, Environment, FieldSource};
use lanecast_filter::path::Path;
use lanecast_filter::ternary::{Semantics, Ternary};
use lanecast_filter::value::Value;
use lanecast_filter::{Message, Plan};
use smallvec::SmallVec;

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
    /// What has to be known of which formulas.
    arguments: Vec<(Formula, Need)>,
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
        let measures = &blueprint.measures;
        let need = |number: usize| {
            let own = measures.iter().filter(|(_, argument)| *argument == number);
            own.map(|(measure, _)| measure.need()).max().unwrap_or(Need::Presence)
        };
        let arguments = blueprint.arguments.into_iter().enumerate();
        let arguments = arguments.map(|(number, formula)| (formula, need(number))).collect();
        Self {
            slots,
            condition,
            keys: blueprint.keys,
            arguments,
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

    /// The inputs have other slots from now on, and so has the filter of the only topic.
    pub(crate) fn rebind(&mut self, slots: Box<[(usize, Slot)]>, plan: Option<Plan>) {
        self.slots = slots;
        if let Some(plan) = plan {
            self.condition = Condition::Plan(plan);
        }
    }

    /// A row comes. What it has put into its group, if it meets the condition.
    #[inline]
    pub(crate) fn add(&mut self, parts: &Parts<'_>, age: &Age) -> Option<Share> {
        let share = self.share(parts)?;
        self.put(&share, parts, age);
        Some(share)
    }

    /// A row comes in the place of one that had this share.
    #[inline]
    pub(crate) fn replace(
        &mut self,
        (before, old): (&Share, &Age),
        parts: &Parts<'_>,
        age: &Age,
    ) -> Option<Share> {
        let share = self.share(parts);
        if let Some(after) = &share
            && (after.place, after.plain) == (before.place, before.plain)
            && let SharePlace::Group(place) = after.place
            && self.lasts.is_empty()
        {
            // In its group, only the difference counts.
            let group = self.groups.touch(place);
            for (accumulator, (_, argument)) in group.accumulators.iter_mut().zip(&self.measures) {
                accumulator.exchange(&before.inputs[*argument], &after.inputs[*argument]);
            }
            return share;
        }
        self.remove(before, old);
        share.inspect(|share| self.put(share, parts, age))
    }

    fn put(&mut self, share: &Share, parts: &Parts<'_>, age: &Age) {
        self.apply(share, Step::Add);
        if let SharePlace::Group(place) = share.place
            && !self.lasts.is_empty()
            && let Some(group) = self.groups.get_mut(place)
        {
            let row = Row { slots: &self.slots, parts };
            let values = self.lasts.iter().map(|input| row.leaf(*input).into_owned());
            group.keep_last(age, values.collect());
        }
    }

    /// A row goes that had this share.
    #[inline]
    pub(crate) fn remove(&mut self, share: &Share, age: &Age) {
        self.apply(share, Step::Retract);
        if let SharePlace::Group(place) = share.place
            && !self.lasts.is_empty()
            && let Some(group) = self.groups.get_mut(place)
        {
            group.forget_last(age);
        }
    }

    /// What a row has put or would put into which group, if it meets the condition.
    #[inline]
    pub(crate) fn share(&mut self, parts: &Parts<'_>) -> Option<Share> {
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
                return Some(Share { place: SharePlace::Stray, plain: 0, inputs });
            }
        }
        let measures = &self.measures;
        let accumulators = || measures.iter().map(|(measure, _)| measure.accumulator()).collect();
        let place = SharePlace::Group(self.groups.place(&self.name, accumulators));
        let mut inputs = SmallVec::with_capacity(self.arguments.len());
        for (formula, need) in &self.arguments {
            inputs.push(Input::of(formula, *need, &row));
        }
        Some(Share { place, plain: self.name.plain, inputs })
    }

    #[inline]
    fn apply(&mut self, share: &Share, step: Step) {
        let SharePlace::Group(place) = share.place else { return step.apply(&mut self.stray) };
        let group = self.groups.take(place, share.plain, step);
        for (accumulator, (_, argument)) in group.accumulators.iter_mut().zip(&self.measures) {
            accumulator.take(&share.inputs[*argument], step);
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
                row.parts.first().and_then(Option::as_ref).is_some_and(|one| plan.matches(one))
            }
            Self::Tree(expr) => {
                interpreter::evaluate(expr, row, &NOWHERE, Semantics::Sql) == Ternary::True
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
    fn leaf(&self, number: usize) -> Datum<'_> {
        let (topic, slot) = self.slots[number];
        match &self.parts[topic] {
            Some(message) => Datum::of_field(message.row, slot, message.bytes),
            None => Datum::Null,
        }
    }

    #[inline]
    fn small(&self, number: usize) -> Option<(i64, u32)> {
        let (topic, slot) = self.slots[number];
        let message = self.parts[topic].as_ref()?;
        // As a filter may have.
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
