//! Creates the configured SOW topics and views at the start, and restores durable ones from disk.

use crate::config::server_config::ServerConfig;
use crate::ids::TopicId;
use crate::topic::durable_store::DurableStore;
use crate::topic::sow_context::SowContext;
use crate::topic::sow_topic::SowTopic;
use foldhash::HashSet;
use lanecast_sow::durable::SowStoreError;
use lanecast_sow::{Topic, TopicDefinition, TopicError, ViewDefinition, ViewError};
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Why the configured topics cannot be created.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CatalogError {
    /// A topic has an invalid definition.
    #[error("the topic {name}: {refusal}")]
    Topic {
        /// The name.
        name: Box<str>,
        /// The fault.
        refusal: TopicError,
    },
    /// A durable topic has no storage.
    #[error("the topic {0} is to be durable: give the directory of its records, in [storage]")]
    NoStorage(Box<str>),
    /// The storage cannot be opened.
    #[error("the durable topics in {directory} ([storage], directory): {error}")]
    Archive {
        /// The directory.
        directory: PathBuf,
        /// The fault, with its topic or file.
        error: Box<SowStoreError>,
    },
    /// A topic is defined twice.
    #[error("the topic {0} is there twice with one type: give one of them another name")]
    Duplicate(Box<str>),
    /// A view has an invalid definition.
    #[error("the view {name}: {error}")]
    View {
        /// The name.
        name: Box<str>,
        /// The fault.
        error: ViewError,
    },
    /// The source of a view is ambiguous.
    #[error("the view {view}: there are several topics {topic}, of different types: rename one")]
    Ambiguous {
        /// The view.
        view: Box<str>,
        /// The name of the source.
        topic: Box<str>,
    },
}

/// Creates the configured topics, followed by the views: an index is the topic's id.
///
/// # Errors
/// See [`CatalogError`].
pub(crate) fn open_topics(
    config: &ServerConfig,
) -> Result<(Vec<SowTopic>, SowContext), CatalogError> {
    let mut context = SowContext::default();
    let mut topics: Vec<SowTopic> = Vec::new();
    // The store returns its topics in the order of their definitions.
    let mut durable = open_store(config, &mut context)?.into_iter();
    for definition in definitions(config) {
        if definition.durable
            && let Some(topic) = durable.next()
        {
            topics.push(SowTopic::new(topic));
            continue;
        }
        let name = definition.name.clone();
        let topic = Topic::new(definition);
        topics.push(SowTopic::new(topic.map_err(|refusal| CatalogError::Topic { name, refusal })?));
    }
    add_views(config, &mut context, &mut topics)?;
    // Views show restored records before the first client connects.
    context.views.initialize();
    for (at, one) in topics.iter().enumerate() {
        let is_same = |other: &SowTopic| (other.kind(), &other.name) == (one.kind(), &one.name);
        // Quadratic, but once and over configured topics only.
        if topics[..at].iter().any(is_same) {
            return Err(CatalogError::Duplicate(one.name.clone()));
        }
    }
    Ok((topics, context))
}

/// The configured topics. Deltas make no record longer than a message may be: clients could not
/// take it, or publish it whole.
fn definitions(config: &ServerConfig) -> impl Iterator<Item = TopicDefinition> {
    let topics = config.topics.iter().cloned();
    topics.map(|topic| topic.merged_bytes_max(config.frame_bytes_max))
}

/// Opens the storage, and restores durable topics.
fn open_store(config: &ServerConfig, context: &mut SowContext) -> Result<Vec<Topic>, CatalogError> {
    let durable: Vec<_> = definitions(config).filter(|one| one.durable).collect();
    let Some(storage) = &config.storage else {
        let no_storage = |first: &TopicDefinition| CatalogError::NoStorage(first.name.clone());
        return durable.first().map_or(Ok(Vec::new()), |first| Err(no_storage(first)));
    };
    let is_used = !durable.is_empty();
    // Without durable topics nothing is created on disk, but topics there must not be ignored.
    if !is_used && !has_state(&storage.directory) {
        return Ok(Vec::new());
    }
    let opened = DurableStore::open(storage, durable, views_of_durable(config));
    let (store, topics) = opened.map_err(|error| CatalogError::Archive {
        directory: storage.directory.clone(),
        error: Box::new(error),
    })?;
    context.forgotten = store.forgotten().to_vec();
    context.store = Some(store).filter(|_| is_used);
    Ok(topics)
}

/// Adds the views behind their sources. Their records are no longer than a message may be.
fn add_views(
    config: &ServerConfig,
    context: &mut SowContext,
    topics: &mut Vec<SowTopic>,
) -> Result<(), CatalogError> {
    let sources = topics.len();
    for definition in &config.views {
        let definition = &definition.clone().record_bytes_max(config.frame_bytes_max);
        let name = definition.name.clone();
        for topic in definition.topics() {
            // A view names its sources without a type, so the name must be unique among types.
            let named = topics[..sources].iter().filter(|one| *one.name == *topic);
            if named.count() > 1 {
                return Err(CatalogError::Ambiguous { view: name, topic: topic.into() });
            }
        }
        let find = |name: &str| topics[..sources].iter().find(|one| *one.name == *name);
        let source = |name: &str| find(name).and_then(SowTopic::owned_topic);
        let view = context.views.len();
        let id = TopicId::from_index(topics.len());
        let shown = context.views.add(definition, id, &source);
        let shown = shown.map_err(|error| CatalogError::View { name, error })?;
        let shown = SowTopic::of_view(shown, view);
        let first = topics.iter_mut().find(|one| *one.name == *definition.topic);
        if let Some(topic) = first.and_then(SowTopic::owned_topic_mut) {
            context.views.share_fields(view, topic);
        }
        for source in topics.iter_mut() {
            // Spares topics without views the lookup for each message.
            source.has_views |= definition.topics().any(|topic| *topic == *source.name);
        }
        topics.push(shown);
    }
    Ok(())
}

/// Whether a directory has files of durable topics; also true if it cannot be listed.
fn has_state(directory: &Path) -> bool {
    let is_state = |entry: DirEntry| {
        let name = entry.file_name();
        let extension = Path::new(&name).extension();
        extension.is_some_and(|extension| extension == "segment" || extension == "checkpoint")
    };
    match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, is_state)),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// The views over durable topics, directly or through other views.
fn views_of_durable(config: &ServerConfig) -> Vec<ViewDefinition> {
    let durable = config.topics.iter().filter(|topic| topic.durable);
    let mut names: HashSet<&str> = durable.map(|topic| &*topic.name).collect();
    let mut views = Vec::new();
    // A view comes after the views that it is over.
    for view in &config.views {
        if view.topics().any(|topic| names.contains(topic)) {
            names.insert(&view.name);
            views.push(view.clone());
        }
    }
    views
}
