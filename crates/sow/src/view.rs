//! Views: what topics come to when their records are joined, grouped and added up.
//!
//! A view is told each [`Change`] of its topics, and takes what the record was before out of the
//! sums that it was in: what a change costs does not depend on how many records there are. What
//! comes of it is a topic of its own, with a record for each group: to be queried, followed, and
//! viewed again. Sums, counts and averages are exact; only what is written of a quotient is
//! rounded.

mod accumulator;
mod blueprint;
mod cascade;
mod datum;
mod decimal;
mod definition;
mod exact;
mod fold;
mod formula;
mod groups;
mod tables;
mod template;

pub use cascade::Cascade;
pub use decimal::Rounding;
pub use definition::{Clause, Join, ViewDefinition, ViewError};

use crate::change::{Change, Version};
use crate::definition::TopicDefinition;
use crate::key::Key;
use crate::record::Record;
use crate::refusal::Refusal;
use crate::topic::{Publication, Topic};
use accumulator::Step;
use blueprint::Blueprint;
use fold::{Fold, NOWHERE};
use groups::Age;
use lanecast_filter::fields::{Fields, Slot, SlotsTaken};
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Message, Plan};
use smallvec::smallvec;
use tables::{Held, Tables};
use thiserror::Error;

/// A view and the topic that it makes.
#[derive(Debug)]
pub struct View {
    definition: ViewDefinition,
    sources: Box<[Source]>,
    fold: Fold,
    /// The records of its topics, if it has several.
    tables: Option<Tables>,
    topic: Topic,
    /// The key of its record, if it has no grouping and so but one.
    key: Option<Box<str>>,
    record: Vec<u8>,
}

/// A topic that a view looks at.
///
/// The view reads messages by itself: what it wants of them stays the same whatever others want, so
/// what it takes out of a sum is what it has put in.
#[derive(Debug)]
struct Source {
    reader: Reader,
    row: Row,
}

/// Why a record of a view could not be brought up to date. It stays what it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// A value holds the byte that separates fields.
    #[error("the value of {0} holds the separator of fields: write the view in another format")]
    Unwritable(Path),
    /// The view's topic did not take the record.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

impl View {
    /// The view that `definition` describes, with all that its topics hold already; `find` finds
    /// them by name.
    ///
    /// # Errors
    ///
    /// If the definition is wrong; it says where.
    pub fn new<'a>(
        definition: ViewDefinition,
        find: &dyn Fn(&str) -> Option<&'a Topic>,
    ) -> Result<Self, ViewError> {
        let blueprint = Blueprint::new(&definition)?;
        let names: Vec<&str> = definition.topics().collect();
        let topics = names.iter().map(|name| {
            let what = format!("there is no topic {name}");
            let error = ViewError::new(Clause::Topics, 0, what);
            find(name).ok_or(error.with_hint("define it before the view"))
        });
        let topics: Vec<&Topic> = topics.collect::<Result<_, _>>()?;
        let mut own = TopicDefinition::new(&definition.name, definition.format);
        own.keys = blueprint.key_columns.iter().map(|at| blueprint.paths[*at].clone()).collect();
        let key = own.keys.is_empty().then(|| own.name.clone());
        let topic = Topic::new(own).map_err(|error| ViewError::new(Clause::Grouping, 0, error))?;
        let (sources, slots, plan) = bind(&blueprint, &topics)?;
        let tables = (topics.len() > 1).then(|| Tables::new(&blueprint.links, &slots));
        let fold = Fold::new(blueprint, &names, slots, plan);
        let mut view = Self { sources, fold, tables, topic, key, record: Vec::new(), definition };
        for (number, topic) in topics.iter().enumerate() {
            topic.iter().for_each(|record| view.change(number, record.key(), None, Some(record)));
        }
        Ok(view)
    }

    /// What it shows.
    pub fn definition(&self) -> &ViewDefinition {
        &self.definition
    }

    /// The topic that it makes.
    pub fn topic(&self) -> &Topic {
        &self.topic
    }

    /// The topic that it makes, to ask for fields. What else is changed in it is not kept.
    pub fn topic_mut(&mut self) -> &mut Topic {
        &mut self.topic
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.fold.groups.len()
    }

    /// How many rows are in no group, because a value that they are grouped by is NULL.
    pub fn stray_rows(&self) -> u64 {
        self.fold.stray
    }

    /// Learns of a change of one of its topics, counted from 0 in the order of the definition.
    #[inline]
    pub fn apply(&mut self, number: usize, change: &Change<'_>) {
        let [before, after] = [change.before, change.after].map(|one| one.map(Version::record));
        self.change(number, change.key, before, after);
    }

    /// Brings one record up to date and says what has changed, if anything has: call it until there
    /// is nothing. Changes of several rows of one group that come before are one change.
    pub fn emit(&mut self, now_ns: u64) -> Option<Result<Change<'_>, EmitError>> {
        let Self { fold, topic, key, record, .. } = self;
        loop {
            let place = fold.groups.next_changed()?;
            let Some(group) = fold.groups.get(place) else { continue };
            let published = group.published;
            if group.is_empty() {
                fold.groups.remove(place);
                match published {
                    Some(key) if topic.get(key).is_some() => {
                        return topic.delete(key, "", now_ns).map(Ok);
                    }
                    _ => continue,
                }
            }
            record.clear();
            if let Err(unwritable) = fold.write(group, record) {
                let path = fold.paths[unwritable.field].clone();
                return Some(Err(EmitError::Unwritable(path)));
            }
            let current = published.and_then(|key| topic.get(key));
            if current.is_some_and(|current| current.bytes() == &**record) {
                continue;
            }
            let publication = Publication { key: key.as_deref(), ..Publication::of(record) };
            return Some(publish(topic, fold, place, &publication, now_ns));
        }
    }

    #[inline]
    fn change(&mut self, number: usize, key: Key, before: Option<&Record>, after: Option<&Record>) {
        let source = &mut self.sources[number];
        if let Some(tables) = &mut self.tables {
            let held = after.map(|record| source.held(record));
            return tables.change(number, key, held, &mut self.fold);
        }
        for (record, step) in [(before, Step::Retract), (after, Step::Add)] {
            if let Some(record) = record {
                let age: Age = smallvec![record.sequence()];
                self.fold.take(&[Some(source.message(record.bytes()))], &age, step);
            }
        }
    }
}

impl Source {
    #[inline]
    fn message<'a>(&'a mut self, bytes: &'a [u8]) -> Message<'a> {
        // A malformed message leaves the row empty, which is what shall be found in it.
        let _ = self.reader.read(bytes, &mut self.row);
        Message { row: &self.row, bytes, environment: &NOWHERE }
    }

    fn held(&mut self, record: &Record) -> Held {
        let row = self.message(record.bytes()).row.clone();
        Held { bytes: record.shared_bytes(), row, sequence: record.sequence() }
    }
}

fn publish<'a>(
    topic: &'a mut Topic,
    fold: &mut Fold,
    place: u32,
    publication: &Publication<'a>,
    now_ns: u64,
) -> Result<Change<'a>, EmitError> {
    let change = topic.publish(publication, now_ns)?;
    if let Some(group) = fold.groups.get_mut(place) {
        group.published = Some(change.key);
    }
    Ok(change)
}

type Bound = (Box<[Source]>, Box<[(usize, Slot)]>, Option<Plan>);

/// What reads the messages of these topics, the slots of all inputs, and the plan of the filter if
/// there is but one topic.
fn bind(blueprint: &Blueprint, topics: &[&Topic]) -> Result<Bound, SlotsTaken> {
    let mut fields: Vec<Fields> =
        topics.iter().map(|topic| Fields::new(topic.definition().format)).collect();
    let slots = blueprint.inputs.iter().map(|(topic, path)| {
        let slot = fields[*topic].slot(path)?;
        Ok((*topic, slot))
    });
    let slots = slots.collect::<Result<_, _>>()?;
    let filter = blueprint.filter.as_ref().filter(|_| topics.len() == 1);
    let plan = filter.map(|filter| Plan::new(filter, &mut fields[0])).transpose()?;
    let sources =
        fields.iter().map(|fields| Source { reader: Reader::new(fields), row: Row::new() });
    Ok((sources.collect(), slots, plan))
}
