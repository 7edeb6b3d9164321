//! Definitions of topics and views: as the settings have them, and as they are on disk.
//!
//! The archive stores each topic's definition with its records. Before a topic is changed at all,
//! [`StoredSchema::check`] compares the two, so that no record is dropped because a name is missing or
//! a key has changed.

use super::definition_text::{text_of_topic, texts_of_views};
use super::entry;
use super::error::{MismatchKind, SchemaMismatch, SowStoreError};
use crate::definition::TopicDefinition;
use crate::key::KeyHasher;
use crate::view::ViewDefinition;
use std::collections::{BTreeMap, BTreeSet};

/// Topics and views as the settings have them.
///
/// A `Vec` of topics makes one that has no views and forgets nothing.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// The topics whose records are stored.
    pub topics: Vec<TopicDefinition>,
    /// Views of them. Of these the definitions alone are stored: records are computed anew.
    pub views: Vec<ViewDefinition>,
    /// Topics and views that may be dropped from disk where they are missing above, or have
    /// changed. Those that are as they were stay.
    pub forget: Vec<Box<str>>,
}

impl From<Vec<TopicDefinition>> for Schema {
    fn from(topics: Vec<TopicDefinition>) -> Self {
        Self { topics, ..Self::default() }
    }
}

/// A topic on disk.
#[derive(Debug, Default)]
pub(crate) struct StoredTopic {
    /// Its name, if an entry has told it.
    pub(crate) name: Option<Box<str>>,
    /// Its definition; files of version 1 have none.
    pub(crate) definition: Option<String>,
    /// Why its records are not those of the topic that the settings have.
    pub(crate) mismatch: Option<MismatchKind>,
}

/// What is on disk besides records.
#[derive(Debug, Default)]
pub(crate) struct StoredSchema {
    /// By number.
    pub(crate) topics: BTreeMap<u32, StoredTopic>,
    /// Definitions of views, by name.
    pub(crate) views: BTreeMap<Box<str>, String>,
}

/// Entries that bring the disk in line with the settings.
#[derive(Debug, Default)]
pub(crate) struct SchemaChange {
    pub(crate) entries: Vec<Vec<u8>>,
    /// Numbers of topics that lose their records.
    pub(crate) dropped: BTreeSet<u32>,
    /// What was forgotten, by name.
    pub(crate) dropped_names: Vec<Box<str>>,
}

impl StoredSchema {
    /// Compares what is on disk with the settings; gives the entries to append.
    pub(crate) fn check(&self, schema: &Schema) -> Result<SchemaChange, SowStoreError> {
        let (mut change, mut mismatches) = (SchemaChange::default(), Vec::new());
        let wanted: BTreeMap<u32, &TopicDefinition> =
            schema.topics.iter().map(|topic| (number_of(&topic.name), topic)).collect();
        let droppable: BTreeMap<u32, &str> =
            schema.forget.iter().map(|name| (number_of(name), &**name)).collect();
        for (number, topic) in &self.topics {
            let why = match wanted.get(number) {
                Some(_) => topic.mismatch.clone(),
                None => Some(MismatchKind::Missing),
            };
            let Some(why) = why else { continue };
            let known = wanted.get(number).map(|wanted| &*wanted.name);
            let name = topic.name.as_deref().or(known);
            if let Some(dropped_names) = droppable.get(number) {
                let name = name.unwrap_or(dropped_names);
                change.entries.push(entry::forget(*number, name));
                change.dropped.insert(*number);
                change.dropped_names.push(name.into());
            } else {
                let name = name.map_or_else(|| format!("#{number}").into(), Box::from);
                mismatches.push(SchemaMismatch { is_view: false, name, why });
            }
        }
        for (number, topic) in wanted {
            let stored = self.topics.get(&number);
            let is_defined = stored.is_some_and(|stored| stored.definition.is_some());
            if !is_defined || change.dropped.contains(&number) {
                change.entries.push(entry::define(number, &topic.name, &text_of_topic(topic)));
            }
        }
        self.check_views(schema, &mut change, &mut mismatches);
        if mismatches.is_empty() {
            Ok(change)
        } else {
            Err(SowStoreError::SchemaMismatch(mismatches))
        }
    }

    fn check_views(
        &self,
        schema: &Schema,
        change: &mut SchemaChange,
        mismatches: &mut Vec<SchemaMismatch>,
    ) {
        let wanted = texts_of_views(&schema.views);
        for (name, was) in &self.views {
            let why = match wanted.get(name) {
                Some(is) if is == was => continue,
                Some(is) => MismatchKind::Changed { was: was.clone(), is: is.clone() },
                None => MismatchKind::Missing,
            };
            if schema.forget.contains(name) {
                change.dropped_names.push(name.clone());
                let text = wanted.get(name).map_or("", String::as_str);
                change.entries.push(entry::view(name, text));
            } else {
                mismatches.push(SchemaMismatch { is_view: true, name: name.clone(), why });
            }
        }
        for (name, text) in &wanted {
            if !self.views.contains_key(name) {
                change.entries.push(entry::view(name, text));
            }
        }
    }
}

/// The number of the topic of that name.
pub(crate) fn number_of(topic: &str) -> u32 {
    KeyHasher::new(topic).identity().checksum as u32
}
