//! What kept topics have in common: the views that look at them, and their disk.

use crate::config::server_config::ServerConfig;
use crate::delivery::message::Post;
use crate::topic::durable_store::DurableStore;
use crate::topic::entry::TopicEntry;
use crate::topic::sow_topic::SowTopic;
use foldhash::{HashMap, HashSet};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::durable::SowStoreError;
use lanecast_sow::{Topic, TopicDefinition, TopicError, ViewDefinition, ViewError, ViewGraph};
use std::fs::DirEntry;
use std::io::ErrorKind;
use std::path::Path;

/// Why the topics that are to be kept cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CatalogError {
    /// A topic cannot be made.
    #[error("the topic {name}: {refusal}")]
    Topic {
        /// Its name.
        name: Box<str>,
        /// Why.
        refusal: TopicError,
    },
    /// A durable topic has nowhere to be.
    #[error("the topic {0} is to be durable: say in which directory, as storage")]
    Nowhere(Box<str>),
    /// What is on disk cannot be brought back.
    #[error("durable topics: {0}")]
    Archive(Box<SowStoreError>),
    /// A topic is there twice.
    #[error("the topic {0} is there twice with one type: give one of them another name")]
    Twice(Box<str>),
    /// A view cannot be made.
    #[error("the view {name}: {error}")]
    View {
        /// Its name.
        name: Box<str>,
        /// Where it is wrong.
        error: ViewError,
    },
    /// A view looks at a name that several topics have.
    #[error("the view {view}: there are several topics {topic}, of different types: rename one")]
    Ambiguous {
        /// The view.
        view: Box<str>,
        /// The name.
        topic: Box<str>,
    },
}

/// The views, and where their topics are.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) cascade: ViewGraph,
    /// The topics of views, by name.
    views: HashMap<Box<str>, u32>,
    /// The topics that are kept.
    pub(crate) kept: Vec<u32>,
    /// A topic has changed that views look at.
    is_touched: bool,
    /// Where durable topics are.
    pub(crate) disk: Option<DurableStore>,
    /// Records of views that could not be written.
    view_errors: u64,
    /// Topics and views that were dropped from disk at the start.
    pub(crate) forgotten: Vec<Box<str>>,
}

impl Catalog {
    /// The topics that the settings say are kept, and what is common to them.
    pub(crate) fn open(settings: &ServerConfig) -> Result<(Self, Vec<TopicEntry>), CatalogError> {
        let mut world = Self::default();
        let mut kept: Vec<SowTopic> = Vec::new();
        let mut durable = world.open_disk(settings)?.into_iter();
        for definition in &settings.kept {
            let name = &definition.name;
            if definition.durable
                && let Some(topic) = durable.next()
            {
                kept.push(SowTopic::new(topic));
                continue;
            }
            let topic = Topic::new(definition.clone());
            let topic =
                topic.map_err(|refusal| CatalogError::Topic { name: name.clone(), refusal })?;
            kept.push(SowTopic::new(topic));
        }
        world.add_views(settings, &mut kept)?;
        // What was on disk is in views before anybody asks.
        world.cascade.refresh(0, &mut |_, _| {});
        for (at, one) in kept.iter().enumerate() {
            let is_same = |other: &SowTopic| (other.kind(), &other.name) == (one.kind(), &one.name);
            if kept[..at].iter().any(is_same) {
                return Err(CatalogError::Twice(one.name.clone()));
            }
        }
        world.kept = (0..kept.len() as u32).collect();
        Ok((world, kept.into_iter().map(|kept| TopicEntry::SowTopic(Box::new(kept))).collect()))
    }

    /// The durable topics as they were.
    fn open_disk(&mut self, settings: &ServerConfig) -> Result<Vec<Topic>, CatalogError> {
        let durable: Vec<_> = settings.kept.iter().filter(|one| one.durable).cloned().collect();
        let Some(storage) = &settings.storage else {
            let nowhere = |first: &TopicDefinition| Err(CatalogError::Nowhere(first.name.clone()));
            return durable.first().map_or(Ok(Vec::new()), nowhere);
        };
        let is_used = !durable.is_empty();
        // Without durable topics nothing is made on disk; but what is there is not passed over.
        if !is_used && !has_state(&storage.directory) {
            return Ok(Vec::new());
        }
        let views = views_of_durable(settings);
        let opened = DurableStore::open(storage, durable, views);
        let (disk, topics) = opened.map_err(|error| CatalogError::Archive(Box::new(error)))?;
        self.forgotten = disk.forgotten().to_vec();
        self.disk = Some(disk).filter(|_| is_used);
        Ok(topics)
    }

    /// Goes on with a checkpoint, if it is time for one; whether there is more to do at once.
    pub(crate) fn keep_checkpoint(&mut self, topics: &[TopicEntry]) -> bool {
        let Some(disk) = &mut self.disk else { return false };
        let durable = self.kept.iter().filter_map(|number| match &topics[*number as usize] {
            TopicEntry::SowTopic(kept) if kept.is_durable() => kept.own_topic(),
            _ => None,
        });
        disk.keep_checkpoint(&durable.collect::<Vec<_>>())
    }

    fn add_views(
        &mut self,
        settings: &ServerConfig,
        kept: &mut Vec<SowTopic>,
    ) -> Result<(), CatalogError> {
        let sources = kept.len();
        for definition in &settings.views {
            let view = definition.name.clone();
            for topic in definition.topics() {
                let named = kept[..sources].iter().filter(|kept| *kept.name == *topic);
                if named.count() > 1 {
                    return Err(CatalogError::Ambiguous { view, topic: topic.into() });
                }
            }
            let find = |name: &str| kept[..sources].iter().find(|kept| *kept.name == *name);
            let topic = |name: &str| find(name).and_then(SowTopic::own_topic);
            let number = self.cascade.views().len();
            let added = self.cascade.add(definition.clone(), &topic);
            let shown = added.map_err(|error| CatalogError::View { name: view.clone(), error })?;
            let shown = SowTopic::of_view(shown.topic(), number);
            let own = kept.iter_mut().find(|kept| *kept.name == *definition.topic);
            if let Some(topic) = own.and_then(SowTopic::own_topic_mut) {
                // Without room for its fields the view reads by itself.
                let _alone = self.cascade.views_mut()[number].share_fields(topic);
            }
            for source in kept.iter_mut() {
                source.is_viewed |= definition.topics().any(|topic| *topic == *source.name);
            }
            self.views.insert(view, kept.len() as u32);
            kept.push(shown);
        }
        Ok(())
    }

    /// A topic has changed that views look at.
    pub(crate) fn touch(&mut self, topic: &str, change: &lanecast_sow::Change<'_>) {
        self.cascade.on_change(topic, change);
        self.is_touched = true;
    }

    /// Brings views up to date, if need be, and tells those who follow them.
    #[inline]
    pub(crate) fn settle(&mut self, topics: &mut [TopicEntry], now_ns: u64, post: &mut Post<'_>) {
        if std::mem::take(&mut self.is_touched) {
            self.settle_views(topics, now_ns, post);
        }
    }

    fn settle_views(&mut self, topics: &mut [TopicEntry], now_ns: u64, post: &mut Post<'_>) {
        // What a publisher hands on belongs to its own message.
        post.correlation = None;
        let Self { cascade, views, view_errors, .. } = self;
        cascade.refresh_subscribed(now_ns, &mut |name, change| {
            let room = views.get(name).and_then(|number| topics.get_mut(*number as usize));
            match (room, change) {
                (Some(TopicEntry::SowTopic(kept)), Ok(change)) => kept.hear(change, post),
                _ => *view_errors += 1,
            }
        });
    }

    /// Somebody follows the view of that number from now on, or nobody does any more.
    pub(crate) fn follow(&mut self, view: usize, is_followed: bool) {
        let Self { cascade, view_errors, .. } = self;
        if is_followed {
            // What changes of views that nobody has followed has nobody to be told to.
            cascade.subscribe(view, 0, &mut |_, change| *view_errors += u64::from(change.is_err()));
        } else {
            cascade.unsubscribe(view);
        }
    }

    /// Records of views that could not be written.
    pub(crate) fn view_errors(&self) -> u64 {
        self.view_errors
    }
}

/// Whether a directory has files of durable topics, as far as can be seen.
fn has_state(directory: &Path) -> bool {
    let is_state = |entry: DirEntry| {
        let name = entry.file_name();
        let ending = Path::new(&name).extension();
        ending.is_some_and(|ending| ending == "segment" || ending == "checkpoint")
    };
    match std::fs::read_dir(directory) {
        Ok(mut entries) => entries.any(|entry| entry.map_or(true, is_state)),
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

/// The views that show durable topics, themselves or by way of other views.
fn views_of_durable(settings: &ServerConfig) -> Vec<ViewDefinition> {
    let durable = settings.kept.iter().filter(|topic| topic.durable);
    let mut names: HashSet<&str> = durable.map(|topic| &*topic.name).collect();
    let mut views = Vec::new();
    // A view is over topics, or over views before it.
    for view in &settings.views {
        if view.topics().any(|topic| names.contains(topic)) {
            names.insert(&view.name);
            views.push(view.clone());
        }
    }
    views
}

/// The numbers of topics by name, for each type of messages.
pub(crate) fn numbers(topics: &[TopicEntry]) -> HashMap<MessageType, HashMap<Box<str>, u32>> {
    let mut numbers: HashMap<MessageType, HashMap<Box<str>, u32>> = HashMap::default();
    for (number, room) in topics.iter().enumerate() {
        if let Some(kind) = room.kind() {
            let names = numbers.entry(kind).or_default();
            names.insert(room.name().into(), number as u32);
        }
    }
    numbers
}
