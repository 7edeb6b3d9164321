//! The catalog: all topics by id and name. SOW topics and views exist from the start; transient
//! topics are created on first use, and removed when they are idle.

use crate::command::error::CommandError;
use crate::config::server_config::ServerConfig;
use crate::delivery::fanout::MessageSender;
use crate::delivery::patterns::Patterns;
use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::{SubscriptionId, TopicId};
use crate::names::{NAME_MAX, is_name};
use crate::time::{Nanos, Now};
use crate::topic::configured::{CatalogError, open_topics};
use crate::topic::durable_store::DurableStore;
use crate::topic::sow_context::SowContext;
use crate::topic::sow_topic::SowTopic;
use crate::topic::transient::TransientTopic;
use foldhash::HashMap;
use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{Publication, SubscriptionOptions};
use std::sync::Arc;

/// Topics examined for idleness before clients get their turn.
const STEP: usize = 1_024;

/// An entry of the catalog.
#[derive(Debug)]
enum TopicEntry {
    /// Messages are delivered and not kept.
    Transient(Box<TransientTopic>),
    /// The last message of each key is kept (state of the world).
    Sow(Box<SowTopic>),
    /// Free for the next topic.
    Vacant,
}

impl TopicEntry {
    fn name(&self) -> &str {
        match self {
            Self::Transient(topic) => &topic.name,
            Self::Sow(topic) => &topic.name,
            Self::Vacant => "",
        }
    }

    /// The type of its messages, if there is a topic.
    fn kind(&self) -> Option<MessageType> {
        match self {
            Self::Transient(topic) => Some(topic.kind),
            Self::Sow(topic) => Some(topic.kind()),
            Self::Vacant => None,
        }
    }

    fn subscribe(
        &mut self,
        id: SubscriptionId,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
        context: &mut SowContext,
    ) -> Result<(), CommandError> {
        match self {
            Self::Transient(topic) => topic.subscribe(id, filter)?,
            Self::Sow(topic) => topic.subscribe(id, filter, options, context)?,
            Self::Vacant => {}
        }
        Ok(())
    }

    fn unsubscribe(&mut self, id: SubscriptionId, context: &mut SowContext) {
        match self {
            Self::Transient(topic) => topic.unsubscribe(id),
            Self::Sow(topic) => topic.unsubscribe(id, context),
            Self::Vacant => {}
        }
    }
}

/// All topics.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    entries: Vec<TopicEntry>,
    ids: HashMap<MessageType, HashMap<Box<str>, TopicId>>,
    /// SOW topics and views.
    sow: Vec<TopicId>,
    pub(crate) context: SowContext,
    /// Ids of vacant entries.
    vacant: Vec<TopicId>,
    /// Number of transient topics.
    transient: usize,
    /// Index of the entry that the search for idle topics examines next.
    idle_cursor: usize,
    /// When the next search begins; `None` while one is in progress.
    idle_search_at: Option<Nanos>,
    idle_after: Nanos,
    topics_max: usize,
    client_topics_max: usize,
}

impl Catalog {
    /// Creates the configured topics and views, and restores durable ones.
    ///
    /// # Errors
    /// See [`CatalogError`].
    pub(crate) fn open(config: &ServerConfig) -> Result<Self, CatalogError> {
        let (topics, context) = open_topics(config)?;
        let mut ids: HashMap<MessageType, HashMap<Box<str>, TopicId>> = HashMap::default();
        for (index, topic) in topics.iter().enumerate() {
            // One name may exist once per message type, as in AMPS.
            let names = ids.entry(topic.kind()).or_default();
            names.insert(topic.name.clone(), TopicId::from_index(index));
        }
        Ok(Self {
            sow: (0..topics.len()).map(TopicId::from_index).collect(),
            entries: topics.into_iter().map(|topic| TopicEntry::Sow(Box::new(topic))).collect(),
            ids,
            context,
            idle_after: u64::try_from(config.topics_idle.as_nanos()).unwrap_or(u64::MAX),
            topics_max: config.topics_max,
            client_topics_max: config.client_topics_max,
            ..Self::default()
        })
    }

    /// The store of durable topics, if there are any.
    pub(crate) fn store(&self) -> Option<&DurableStore> {
        self.context.store.as_ref()
    }

    pub(crate) fn store_mut(&mut self) -> Option<&mut DurableStore> {
        self.context.store.as_mut()
    }

    /// Whether publishers of durable topics must pause.
    pub(crate) fn is_congested(&self) -> bool {
        self.store().is_some_and(DurableStore::is_congested)
    }

    pub(crate) fn name(&self, id: TopicId) -> &str {
        self.entries[id.index()].name()
    }

    /// The topic with that name.
    pub(crate) fn find(&self, kind: MessageType, name: &str) -> Option<TopicId> {
        self.ids.get(&kind)?.get(name).copied()
    }

    /// The SOW topic or view with that name.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn find_sow(&self, kind: MessageType, name: &str) -> Result<TopicId, CommandError> {
        let is_sow = |id: &TopicId| matches!(self.entries[id.index()], TopicEntry::Sow(_));
        let topic = self.find(kind, name).filter(is_sow);
        topic.ok_or_else(|| CommandError::NoRecords(name.to_owned()))
    }

    /// A SOW topic by id.
    pub(crate) fn sow_mut(&mut self, id: TopicId) -> Option<&mut SowTopic> {
        match self.entries.get_mut(id.index()) {
            Some(TopicEntry::Sow(topic)) => Some(topic),
            _ => None,
        }
    }

    /// SOW topics and views of a type.
    pub(crate) fn sow_of(&self, kind: MessageType) -> impl Iterator<Item = TopicId> {
        let is_kind = move |id: &TopicId| self.entries[id.index()].kind() == Some(kind);
        self.sow.iter().copied().filter(is_kind)
    }

    /// All SOW topics and views.
    pub(crate) fn sow_ids(&self) -> &[TopicId] {
        &self.sow
    }

    /// Whether changes of the topic are stored on disk.
    pub(crate) fn is_durable(&self, id: TopicId) -> bool {
        matches!(&self.entries[id.index()], TopicEntry::Sow(topic) if topic.is_durable())
    }

    /// Whether there is a durable topic with that name.
    pub(crate) fn is_durable_name(&self, kind: MessageType, name: &str) -> bool {
        self.find(kind, name).is_some_and(|id| self.is_durable(id))
    }

    /// Creates a transient topic. `creator` is its client's token; `on_removed` is told of idle
    /// topics removed to make room, whose ids may be reused.
    ///
    /// # Errors
    /// If the name is invalid or a limit is reached.
    pub(crate) fn create(
        &mut self,
        kind: MessageType,
        name: &str,
        creator: Arc<()>,
        on_removed: impl FnOnce(&[TopicId]),
    ) -> Result<TopicId, CommandError> {
        if !is_name(name) {
            return Err(CommandError::TopicName { max: NAME_MAX });
        }
        // The client's record holds one clone of the token, `creator` another.
        if Arc::strong_count(&creator).saturating_sub(2) >= self.client_topics_max {
            return Err(CommandError::TopicsOfClient(self.client_topics_max));
        }
        if self.len() >= self.topics_max {
            // One step only: a publisher at the limit must not pay for a search of all topics.
            let (removed, _) = self.remove_some_idle();
            on_removed(&removed);
        }
        if self.len() >= self.topics_max {
            return Err(CommandError::Topics(self.len()));
        }
        let topic = TopicEntry::Transient(Box::new(TransientTopic::new(name, kind, creator)));
        // Ids are indices: a reused one keeps the table as small as the most topics at one time.
        let id = match self.vacant.pop() {
            Some(id) => {
                self.entries[id.index()] = topic;
                id
            }
            None => {
                self.entries.push(topic);
                TopicId::from_index(self.entries.len() - 1)
            }
        };
        self.transient += 1;
        self.ids.entry(kind).or_default().insert(name.into(), id);
        Ok(id)
    }

    /// Number of topics.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }

    /// Publishes a message to a topic, and delivers changes of views that result.
    pub(crate) fn publish(
        &mut self,
        id: TopicId,
        publication: &Publication<'_>,
        is_delta: bool,
        unix_ns: u64,
        (patterns, matches): (&mut Patterns, &mut SubscriptionIds),
        sender: &mut MessageSender<'_>,
    ) -> Result<(), CommandError> {
        let result = match &mut self.entries[id.index()] {
            TopicEntry::Sow(topic) => {
                topic.publish(publication, is_delta, unix_ns, &mut self.context, sender)
            }
            // A transient topic keeps no record that a delta could change.
            TopicEntry::Transient(topic) if is_delta => {
                Err(CommandError::NoRecords(topic.name.to_string()))
            }
            TopicEntry::Transient(topic) => topic
                .publish(publication, unix_ns, patterns, matches, sender)
                .map_err(CommandError::from),
            TopicEntry::Vacant => Ok(()),
        };
        // On errors, too: a deletion that the command caused may have changed a source.
        self.flush_views(unix_ns, sender);
        result
    }

    /// Runs `work` on a SOW topic, and delivers changes of views that result.
    ///
    /// # Errors
    /// If it is not a SOW topic, or `work` fails.
    pub(crate) fn with_sow<T>(
        &mut self,
        id: TopicId,
        now: Now,
        sender: &mut MessageSender<'_>,
        work: impl FnOnce(
            &mut SowTopic,
            &mut SowContext,
            &mut MessageSender<'_>,
        ) -> Result<T, CommandError>,
    ) -> Result<T, CommandError> {
        let Some(TopicEntry::Sow(topic)) = self.entries.get_mut(id.index()) else {
            return Err(CommandError::NoRecords(String::new()));
        };
        let result = work(topic, &mut self.context, sender);
        self.flush_views(now.unix_ns, sender);
        result
    }

    /// Brings views up to date after a command, and delivers their changes.
    #[inline]
    fn flush_views(&mut self, now_ns: u64, sender: &mut MessageSender<'_>) {
        let entries = &mut self.entries;
        self.context.views.flush(now_ns, |id, change| {
            // The correlation id belongs to the published message alone.
            sender.correlation_id = None;
            if let Some(TopicEntry::Sow(topic)) = entries.get_mut(id.index()) {
                topic.on_view_change(change, sender);
            }
        });
    }

    pub(crate) fn subscribe(
        &mut self,
        topic: TopicId,
        id: SubscriptionId,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
    ) -> Result<(), CommandError> {
        self.entries[topic.index()].subscribe(id, filter, options, &mut self.context)
    }

    pub(crate) fn unsubscribe(&mut self, topic: TopicId, id: SubscriptionId) {
        self.entries[topic.index()].unsubscribe(id, &mut self.context);
    }

    /// Runs `work` on each SOW topic and the context.
    pub(crate) fn for_each_sow(&mut self, mut work: impl FnMut(&mut SowTopic, &mut SowContext)) {
        for id in &self.sow {
            if let TopicEntry::Sow(topic) = &mut self.entries[id.index()] {
                work(topic, &mut self.context);
            }
        }
    }

    /// Whether a SOW topic is due.
    pub(crate) fn is_due(&self, id: TopicId, now: Now) -> bool {
        match &self.entries[id.index()] {
            TopicEntry::Sow(topic) => {
                topic.next_due(now).is_some_and(|due| due <= now.monotonic_ns)
            }
            _ => false,
        }
    }

    /// When a SOW topic is due.
    pub(crate) fn next_due(&self, now: Now) -> Option<Nanos> {
        let entries = self.sow.iter().map(|id| &self.entries[id.index()]);
        let due = entries.filter_map(|entry| match entry {
            TopicEntry::Sow(topic) => topic.next_due(now),
            TopicEntry::Transient(_) | TopicEntry::Vacant => None,
        });
        due.min()
    }

    /// Continues a checkpoint of durable topics; whether it can continue at once.
    pub(crate) fn advance_checkpoint(&mut self) -> bool {
        let Some(store) = &mut self.context.store else { return false };
        let durable = self.sow.iter().filter_map(|id| match &self.entries[id.index()] {
            TopicEntry::Sow(topic) if topic.is_durable() => topic.owned_topic(),
            _ => None,
        });
        store.advance_checkpoint(&durable.collect::<Vec<_>>())
    }

    /// Continues the search for idle topics if it is due, and removes them; whether there is more
    /// to search at once.
    pub(crate) fn remove_idle(&mut self, now: Nanos, on_removed: impl FnOnce(&[TopicId])) -> bool {
        let next = now.saturating_add(self.idle_after);
        if self.transient == 0 {
            // Without transient topics the search rests, and no deadline wakes the server.
            self.idle_search_at = Some(next);
        }
        if self.idle_search_at.is_some_and(|due| due > now) {
            return false;
        }
        self.idle_search_at = None;
        // In slices: a server may have a million topics, and clients wait meanwhile.
        let (removed, is_complete) = self.remove_some_idle();
        on_removed(&removed);
        if is_complete {
            self.idle_search_at = Some(next);
        }
        !is_complete
    }

    /// When the search for idle topics continues.
    pub(crate) fn next_idle_search(&self, now: Nanos) -> Option<Nanos> {
        (self.transient > 0).then(|| self.idle_search_at.unwrap_or(now))
    }

    /// Examines some topics and removes idle ones; returns their ids in ascending order, and
    /// whether all topics are examined.
    fn remove_some_idle(&mut self) -> (Vec<TopicId>, bool) {
        let (mut removed, end) = (Vec::new(), self.entries.len());
        for index in self.idle_cursor..end.min(self.idle_cursor + STEP) {
            if let TopicEntry::Transient(topic) = &mut self.entries[index]
                && !topic.take_in_use()
            {
                removed.push(TopicId::from_index(index));
            }
        }
        self.idle_cursor += STEP;
        let is_complete = self.idle_cursor >= end;
        if is_complete {
            // The next search removes topics without a message since this one.
            self.idle_cursor = 0;
        }
        for id in &removed {
            let entry = std::mem::replace(&mut self.entries[id.index()], TopicEntry::Vacant);
            if let Some(names) = entry.kind().and_then(|kind| self.ids.get_mut(&kind)) {
                names.remove(entry.name());
            }
        }
        self.transient -= removed.len();
        self.vacant.extend(&removed);
        (removed, is_complete)
    }

    /// Number of entries, vacant ones included.
    #[cfg(test)]
    pub(crate) fn entries_len(&self) -> usize {
        self.entries.len()
    }

    #[cfg(test)]
    pub(crate) fn transient_topics(&self) -> impl Iterator<Item = &TransientTopic> {
        self.entries.iter().filter_map(|entry| match entry {
            TopicEntry::Transient(topic) => Some(&**topic),
            _ => None,
        })
    }
}
