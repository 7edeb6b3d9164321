//! Comparison of the configured topics and views with those on disk.
//!
//! The store keeps each topic's definition with its records. [`StoredSchema::check`] compares both
//! before any change, so that no record is lost because a name is missing or a key has changed.

use super::definition_text::{text_of_topic, texts_of_views};
use super::entry;
use super::error::{MismatchKind, SchemaMismatch, SowStoreError};
use crate::definition::TopicDefinition;
use crate::key::KeyHasher;
use crate::view::ViewDefinition;
use std::collections::{BTreeMap, BTreeSet};

/// Configured topics and views.
///
/// A `Vec` of topics converts to a schema without views that drops nothing.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    /// Durable topics.
    pub topics: Vec<TopicDefinition>,
    /// Views of them. Only their definitions are stored; records are computed at opening.
    pub views: Vec<ViewDefinition>,
    /// Topics and views that may be dropped from disk if they are missing above or have changed.
    /// Unchanged ones are kept.
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
    /// Name, if an entry holds it.
    pub(crate) name: Option<Box<str>>,
    /// Definition; `None` in files of version 1.
    pub(crate) definition: Option<String>,
    /// Difference to the configured topic.
    pub(crate) mismatch: Option<MismatchKind>,
}

/// Definitions on disk.
#[derive(Debug, Default)]
pub(crate) struct StoredSchema {
    /// Topics, by number.
    pub(crate) topics: BTreeMap<u32, StoredTopic>,
    /// Definitions of views, by name.
    pub(crate) views: BTreeMap<Box<str>, String>,
}

/// Entries that bring the disk in line with the configuration.
#[derive(Debug, Default)]
pub(crate) struct SchemaChange {
    pub(crate) entries: Vec<Vec<u8>>,
    /// Numbers of topics whose records are dropped.
    pub(crate) dropped: BTreeSet<u32>,
    /// Names of dropped topics and views.
    pub(crate) dropped_names: Vec<Box<str>>,
}

impl StoredSchema {
    /// Compares the disk with the configuration; returns the entries to append.
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
                change.entries.push(entry::forget(*number, name)?);
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
                change.entries.push(entry::define(number, &topic.name, &text_of_topic(topic))?);
            }
        }
        self.check_views(schema, &mut change, &mut mismatches)?;
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
    ) -> Result<(), SowStoreError> {
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
                change.entries.push(entry::view(name, text)?);
            } else {
                mismatches.push(SchemaMismatch { is_view: true, name: name.clone(), why });
            }
        }
        for (name, text) in &wanted {
            if !self.views.contains_key(name) {
                change.entries.push(entry::view(name, text)?);
            }
        }
        Ok(())
    }
}

/// Number of the topic with this name.
pub(crate) fn number_of(topic: &str) -> u32 {
    KeyHasher::new(topic).identity().checksum as u32
}
