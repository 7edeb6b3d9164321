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
mod share;
mod tables;
mod template;

pub use cascade::ViewGraph;
pub use decimal::Rounding;
pub use definition::{Clause, Join, ViewDefinition, ViewError};

use crate::change::{Change, Version};
use crate::definition::TopicDefinition;
use crate::error::TopicError;
use crate::key::Key;
use crate::publication::Publication;
use crate::record::Record;
use crate::topic::Topic;
use blueprint::Blueprint;
use fold::{Fold, NOWHERE};
use groups::Age;
use lanecast_filter::fields::{FieldSet, Slot, TooManyFields};
use lanecast_filter::path::Path;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Message, Plan};
use share::Share;
use smallvec::smallvec;
use tables::{Held, Tables};
use thiserror::Error;

/// A view and the topic that it makes.
#[derive(Debug)]
pub struct View {
    definition: ViewDefinition,
    sources: Box<[Source]>,
    wishes: Wishes,
    /// Its topic reads what it wants.
    reads_along: bool,
    fold: Fold,
    /// The records of its topics, if it has several.
    tables: Option<Tables>,
    /// What each record has put in, by its place, if there is but one topic.
    shares: Vec<Option<Share>>,
    topic: Topic,
    /// The key of its record, if it has no grouping and so but one.
    key: Option<Box<str>>,
    record: Vec<u8>,
}

/// A topic that a view looks at.
///
/// The view reads messages by itself, unless it was told to read along.
#[derive(Debug)]
struct Source {
    reader: Reader,
    row: Row,
}

/// What a view wants of messages: the fields that it asks for, of which topic, and those of its
/// filter.
#[derive(Debug)]
struct Wishes {
    inputs: Vec<(usize, Path)>,
    filter: Option<Filter>,
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
    Refused(#[from] TopicError),
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
        let wishes = Wishes { inputs: blueprint.inputs.clone(), filter: blueprint.filter.clone() };
        let mut fields: Vec<FieldSet> =
            topics.iter().map(|topic| FieldSet::new(topic.definition().format)).collect();
        let (slots, plan) = wishes.bind(&mut fields.iter_mut().collect::<Vec<_>>())?;
        let sources = fields.iter().map(Source::new).collect();
        let tables = (topics.len() > 1).then(|| Tables::new(&blueprint.links, &slots));
        let fold = Fold::new(blueprint, &names, slots, plan);
        let (shares, record) = (Vec::new(), Vec::new());
        let mut view = Self {
            definition,
            sources,
            wishes,
            reads_along: false,
            fold,
            tables,
            shares,
            topic,
            key,
            record,
        };
        for (number, topic) in topics.iter().enumerate() {
            for (place, record) in topic.places() {
                view.change(number, place, record.key(), None, Some((record, None)));
            }
        }
        Ok(view)
    }

    /// Has `topic` read what the view wants of its messages, which then are read once. It has to be
    /// the topic that the view was made of. A view of several topics goes on reading by itself.
    ///
    /// # Errors
    ///
    /// If the topic has no room for so many fields. The view goes on reading by itself.
    pub fn share_fields(&mut self, topic: &mut Topic) -> Result<(), TooManyFields> {
        if self.tables.is_none() && !self.reads_along {
            let (slots, plan) = topic.with_fields(|fields| self.wishes.bind(&mut [fields]))?;
            self.fold.rebind(slots, plan);
            self.reads_along = true;
        }
        Ok(())
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

    /// How many records may have to be brought up to date.
    pub fn waiting(&self) -> usize {
        self.fold.groups.waiting()
    }

    /// Learns of a change of one of its topics, counted from 0 in the order of the definition.
    #[inline]
    pub fn on_change<'a>(&mut self, number: usize, change: &Change<'a>) {
        let before = change.before.map(Version::record);
        let row = |after: Version<'a>| self.reads_along.then(|| after.row());
        let after = change.after.map(|after| (after.record(), row(after)));
        self.change(number, change.place, change.key, before, after);
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
            if let Some(key) = current.map(Record::key) {
                return topic.renew(key, record, now_ns).map(Ok);
            }
            let publication = Publication { key: key.as_deref(), ..Publication::of(record) };
            return Some(publish(topic, fold, place, &publication, now_ns));
        }
    }

    #[inline]
    fn change(
        &mut self,
        number: usize,
        place: u32,
        key: Key,
        before: Option<&Record>,
        after: Option<(&Record, Option<&Row>)>,
    ) {
        let source = &mut self.sources[number];
        if let Some(tables) = &mut self.tables {
            let held = after.map(|(record, _)| source.held(record));
            return tables.change(number, key, held, &mut self.fold);
        }
        let place = place as usize;
        if self.shares.len() <= place {
            self.shares.resize(place + 1, None);
        }
        let share = &mut self.shares[place];
        let before = before.and_then(|record| Some((share.take()?, record)));
        let before = before.map(|(share, record)| (share, smallvec![record.sequence()]));
        let Some((record, row)) = after else {
            if let Some((share, age)) = &before {
                self.fold.remove(share, age);
            }
            return;
        };
        let (age, bytes): (Age, _) = (smallvec![record.sequence()], record.bytes());
        let message = match row {
            Some(row) => Message { row, bytes, environment: &NOWHERE },
            None => source.message(bytes),
        };
        *share = match &before {
            Some((before, old)) => self.fold.replace((before, old), &[Some(message)], &age),
            None => self.fold.add(&[Some(message)], &age),
        };
    }
}

impl Source {
    fn new(fields: &FieldSet) -> Self {
        Self { reader: Reader::new(fields), row: Row::new() }
    }

    #[inline]
    fn message<'a>(&'a mut self, bytes: &'a [u8]) -> Message<'a> {
        // A malformed message leaves the row empty, which is what shall be found in it.
        let _ = self.reader.read(bytes, &mut self.row);
        Message { row: &self.row, bytes, environment: &NOWHERE }
    }

    fn held(&mut self, record: &Record) -> Held {
        let row = self.message(record.bytes()).row.clone();
        Held { record: record.clone(), row }
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

type Bound = (Box<[(usize, Slot)]>, Option<Plan>);

impl Wishes {
    /// The slots of all inputs, and the plan of the filter if there is but one topic.
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
