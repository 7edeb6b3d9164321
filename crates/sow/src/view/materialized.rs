//! [`View`]: an incrementally maintained view and the topic that it produces.

use super::aggregation::{Aggregation, NO_ENVIRONMENT};
use super::contribution::Contribution;
use super::definition::{Clause, ViewDefinition, ViewError};
use super::groups::RowAge;
use super::join::{JoinTables, JoinedRecord};
use super::plan::ViewPlan;
use super::record_writer::WriteError;
use crate::change::{Change, Version};
use crate::definition::TopicDefinition;
use crate::error::TopicError;
use crate::key::Key;
use crate::publication::Publication;
use crate::record::Record;
use crate::topic::Topic;
use lanecast_filter::fields::{FieldSet, Slot, TooManyFields};
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Message, Plan};
use smallvec::smallvec;
use thiserror::Error;

/// A view and the topic that it produces.
#[derive(Debug)]
pub struct View {
    definition: ViewDefinition,
    sources: Box<[Source]>,
    inputs: ViewInputs,
    /// The source topic parses the fields that the view needs.
    shares_fields: bool,
    aggregation: Aggregation,
    /// Records of the source topics, if there are several.
    tables: Option<JoinTables>,
    /// Contribution of each record by its row, if there is one source topic.
    contributions: Vec<Option<Contribution>>,
    topic: Topic,
    /// Key of its only record, if it has no grouping.
    key: Option<Box<str>>,
    record: Vec<u8>,
}

/// A source topic of a view.
///
/// The view parses messages itself, unless the topic [shares](View::share_fields) its fields.
#[derive(Debug)]
struct Source {
    reader: Reader,
    row: Row,
}

/// Fields that a view needs, as (topic, path), and its filter.
#[derive(Debug)]
struct ViewInputs {
    inputs: Vec<(usize, Path)>,
    filter: Option<Filter>,
}

/// Failure to refresh a record of a view. The record keeps its previous contents.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RefreshError {
    /// A value contains the field separator.
    #[error("the value of {0} contains the field separator: use another format for the view")]
    InvalidValue(Path),
    /// The record would be longer than [`record_bytes_max`](ViewDefinition::record_bytes_max).
    #[error("a record would have more than {0} bytes: project fewer or shorter fields")]
    TooLong(usize),
    /// The view's topic refuses the record.
    #[error(transparent)]
    Refused(#[from] TopicError),
}

impl View {
    /// Creates the view of `definition` from the current records of its topics, which `find` finds
    /// by name.
    ///
    /// # Errors
    /// If the definition is invalid; the error says where.
    pub fn new<'a>(
        definition: ViewDefinition,
        find: &dyn Fn(&str) -> Option<&'a Topic>,
    ) -> Result<Self, ViewError> {
        let plan = ViewPlan::new(&definition)?;
        let names: Vec<&str> = definition.topics().collect();
        let topics = names.iter().map(|name| {
            let what = format!("there is no topic {name}");
            let error = ViewError::new(Clause::Topics, 0, what);
            find(name).ok_or(error.with_hint("define it before the view"))
        });
        let topics: Vec<&Topic> = topics.collect::<Result<_, _>>()?;
        let mut own = TopicDefinition::new(&definition.name, definition.format);
        own.keys = plan.key_columns.iter().map(|at| plan.paths[*at].clone()).collect();
        let key = own.keys.is_empty().then(|| own.name.clone());
        let topic = Topic::new(own).map_err(|error| ViewError::new(Clause::Grouping, 0, error))?;
        let inputs = ViewInputs { inputs: plan.inputs.clone(), filter: plan.filter.clone() };
        let mut fields: Vec<FieldSet> =
            topics.iter().map(|topic| FieldSet::new(topic.definition().format)).collect();
        let (slots, filter_plan) = inputs.bind(&mut fields.iter_mut().collect::<Vec<_>>())?;
        let sources = fields.iter().map(Source::new).collect();
        let tables = (topics.len() > 1).then(|| JoinTables::new(&plan.links, &slots));
        let aggregation = Aggregation::new(plan, &names, slots, filter_plan);
        let (contributions, record) = (Vec::new(), Vec::new());
        let mut view = Self {
            definition,
            sources,
            inputs,
            shares_fields: false,
            aggregation,
            tables,
            contributions,
            topic,
            key,
            record,
        };
        for (number, topic) in topics.iter().enumerate() {
            for (row_id, record) in topic.row_ids() {
                view.change(number, row_id, record.key(), None, Some((record, None)));
            }
        }
        Ok(view)
    }

    /// Lets `topic` parse the fields of the view, so that each message is parsed once. `topic` must
    /// be the view's source. A view with several sources keeps parsing itself.
    ///
    /// # Errors
    /// If the topic has no room for the fields. The view keeps parsing itself then.
    pub fn share_fields(&mut self, topic: &mut Topic) -> Result<(), TooManyFields> {
        if self.tables.is_none() && !self.shares_fields {
            let (slots, plan) = topic.with_fields(|fields| self.inputs.bind(&mut [fields]))?;
            self.aggregation.rebind(slots, plan);
            self.shares_fields = true;
        }
        Ok(())
    }

    /// The view's definition.
    pub fn definition(&self) -> &ViewDefinition {
        &self.definition
    }

    /// The topic that it produces.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The topic that it produces, for adding fields. Other modifications are overwritten.
    pub fn topic_mut(&mut self) -> &mut Topic {
        &mut self.topic
    }

    /// Number of groups.
    pub fn groups(&self) -> usize {
        self.aggregation.groups.len()
    }

    /// Number of rows without a group, because a grouping value is NULL.
    pub fn ungrouped_rows(&self) -> u64 {
        self.aggregation.ungrouped
    }

    /// Number of groups that may need a refresh.
    pub fn waiting(&self) -> usize {
        self.aggregation.groups.waiting()
    }

    /// Applies a change of source topic `number`, counted from 0 in the order of the definition.
    #[inline]
    pub fn on_change<'a>(&mut self, number: usize, change: &Change<'a>) {
        let before = change.before.map(Version::record);
        let row = |after: Version<'a>| self.shares_fields.then(|| after.row());
        let after = change.after.map(|after| (after.record(), row(after)));
        self.change(number, change.row_id, change.key, before, after);
    }

    /// Refreshes one record and returns its change: call it until it returns `None`. Several
    /// changes of a group since the last refresh become one.
    pub fn next_change(&mut self, now_ns: u64) -> Option<Result<Change<'_>, RefreshError>> {
        let Self { aggregation, topic, key, record, definition, .. } = self;
        let bytes_max = definition.record_bytes_max;
        loop {
            let row_id = aggregation.groups.next_changed()?;
            let Some(group) = aggregation.groups.get(row_id) else { continue };
            // An empty group is removed with its record, unless rows return before.
            let published = group.published;
            if group.is_empty() {
                aggregation.groups.remove(row_id);
                match published {
                    Some(key) if topic.get(key).is_some() => {
                        return topic.delete(key, "", now_ns).map(Ok);
                    }
                    _ => continue,
                }
            }
            record.clear();
            if let Err(error) = aggregation.write(group, bytes_max, record) {
                return Some(Err(match error {
                    WriteError::InvalidValue { field } => {
                        RefreshError::InvalidValue(aggregation.paths[field].clone())
                    }
                    WriteError::TooLong => RefreshError::TooLong(bytes_max),
                }));
            }
            let current = published.and_then(|key| topic.get(key));
            if current.is_some_and(|current| current.bytes() == &**record) {
                continue;
            }
            if let Some(key) = current.map(Record::key) {
                return topic.replace_bytes(key, record, now_ns).map(Ok);
            }
            let publication = Publication { key: key.as_deref(), ..Publication::of(record) };
            return Some(publish(topic, aggregation, row_id, &publication, now_ns));
        }
    }

    #[inline]
    fn change(
        &mut self,
        number: usize,
        row_id: u32,
        key: Key,
        before: Option<&Record>,
        after: Option<(&Record, Option<&Row>)>,
    ) {
        let source = &mut self.sources[number];
        if let Some(tables) = &mut self.tables {
            let joined = after.map(|(record, _)| source.joined(record));
            return tables.change(number, key, joined, &mut self.aggregation);
        }
        let row_id = row_id as usize;
        if self.contributions.len() <= row_id {
            self.contributions.resize(row_id + 1, None);
        }
        let contribution = &mut self.contributions[row_id];
        let before = before.and_then(|record| Some((contribution.take()?, record)));
        let before =
            before.map(|(contribution, record)| (contribution, smallvec![record.sequence()]));
        let Some((record, row)) = after else {
            if let Some((contribution, age)) = &before {
                self.aggregation.remove(contribution, age);
            }
            return;
        };
        let (age, bytes): (RowAge, _) = (smallvec![record.sequence()], record.bytes());
        let message = match row {
            Some(row) => Message { row, bytes, environment: &NO_ENVIRONMENT },
            None => source.message(bytes),
        };
        *contribution = match &before {
            Some((before, old)) => self.aggregation.replace((before, old), &[Some(message)], &age),
            None => self.aggregation.add(&[Some(message)], &age),
        };
    }
}

impl Source {
    fn new(fields: &FieldSet) -> Self {
        Self { reader: Reader::new(fields), row: Row::new() }
    }

    #[inline]
    fn message<'a>(&'a mut self, bytes: &'a [u8]) -> Message<'a> {
        // A malformed message leaves the row empty, as intended.
        let _ = self.reader.read(bytes, &mut self.row);
        Message { row: &self.row, bytes, environment: &NO_ENVIRONMENT }
    }

    fn joined(&mut self, record: &Record) -> JoinedRecord {
        let row = self.message(record.bytes()).row.clone();
        JoinedRecord { record: record.clone(), row }
    }
}

fn publish<'a>(
    topic: &'a mut Topic,
    aggregation: &mut Aggregation,
    row_id: u32,
    publication: &Publication<'a>,
    now_ns: u64,
) -> Result<Change<'a>, RefreshError> {
    let change = topic.publish(publication, now_ns)?;
    if let Some(group) = aggregation.groups.get_mut(row_id) {
        group.published = Some(change.key);
    }
    Ok(change)
}

type Bound = (Box<[(usize, Slot)]>, Option<Plan>);

impl ViewInputs {
    /// Adds all inputs to `fields`; returns their slots, and the filter's plan if there is one
    /// topic.
    fn bind(&self, fields: &mut [&mut FieldSet]) -> Result<Bound, TooManyFields> {
        let mut slots = Vec::new();
        let plan = self.hold(fields, &mut slots);
        if plan.is_err() {
            slots.iter().for_each(|(topic, slot): &(usize, Slot)| fields[*topic].release(*slot));
        }
        Ok((slots.into(), plan?))
    }

    fn hold(
        &self,
        fields: &mut [&mut FieldSet],
        slots: &mut Vec<(usize, Slot)>,
    ) -> Result<Option<Plan>, TooManyFields> {
        for (topic, path) in &self.inputs {
            slots.push((*topic, fields[*topic].slot(path)?));
        }
        let filter = self.filter.as_ref().filter(|_| fields.len() == 1);
        filter.map(|filter| Plan::new(filter, fields[0])).transpose()
    }
}
