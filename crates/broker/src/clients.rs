//! Connected clients: a record of each, and lists of clients that need work: bytes to send, a
//! disconnection, a pause. The engine's state owns the table; commands, topics and delivery
//! borrow it.

use crate::auth::state::AuthState;
use crate::config::server_config::ServerConfig;
use crate::ids::{ClientId, SubscriptionId, TopicId};
use crate::net::source::Source;
use crate::queue::offline_queue::OfflineLimits;
use crate::queue::send_queue::{FrameArena, SendQueue};
use crate::queue::slow_consumer::SlowConsumerReason;
use crate::time::Nanos;
use foldhash::HashMap;
use lanecast_base::budget::Budget;
use lanecast_filter::message_type::MessageType;
use std::io::{self, IoSlice};
use std::sync::Arc;

/// A query command of at least this length runs alone: its filter may be expensive.
const LONG_QUERY_BYTES: usize = 64 << 10;

/// Agreed heartbeats of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) interval: Nanos,
    /// When the next heartbeat is sent.
    pub(crate) next: Nanos,
}

/// The header of the last plain publish command: an identical header is not parsed again.
#[derive(Debug)]
pub(crate) struct CachedHeader {
    pub(crate) header: Box<[u8]>,
    pub(crate) topic: TopicId,
    /// The client's name, if any.
    pub(crate) publisher: Option<Arc<str>>,
}

/// A connected client.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) source: Source,
    pub(crate) queue: SendQueue,
    /// Whether the client is in the list of those with bytes to send.
    pub(crate) is_dirty: bool,
    /// The client is being disconnected: nothing more is written for it.
    pub(crate) is_leaving: bool,
    /// Client and user name of its logon.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) user: Option<Box<str>>,
    /// Key under which its last sequence number is stored, if it has a name.
    pub(crate) sequence_key: Option<Arc<str>>,
    pub(crate) has_logged_on: bool,
    pub(crate) auth: AuthState,
    /// The type of its messages.
    pub(crate) kind: MessageType,
    /// Subscriptions, by the client's names for them.
    pub(crate) subscriptions: HashMap<Box<str>, SubscriptionId>,
    pub(crate) heartbeat: Option<Heartbeat>,
    /// Each running query holds a clone; the reference count limits them.
    queries: Arc<()>,
    /// Whether a running query is long.
    has_long_query: bool,
    /// Each transient topic that it created holds a clone.
    pub(crate) topics: Arc<()>,
    /// Each topic pattern that it subscribed to first holds a clone.
    pub(crate) patterns: Arc<()>,
    /// Memory for sorting its query results.
    pub(crate) sort_bytes: Arc<Budget>,
    /// Memory for its filters' patterns.
    pub(crate) pattern_bytes: Arc<Budget>,
    /// Cost of its commands in this turn, and whether that is over the limit.
    pub(crate) cost: usize,
    pub(crate) is_over_cost: bool,
    /// The token of a running deletion.
    pub(crate) deleting: Option<Arc<()>>,
    /// Whether it has changed durable topics.
    pub(crate) writes_durably: bool,
    /// Whether the server stopped reading from it; decided once, see the head of `engine.rs`.
    pub(crate) is_paused: bool,
    /// Whether its logon waits for the journal.
    pub(crate) is_logging_on: bool,
    pub(crate) has_unread_pongs: bool,
    /// The payload of a command that waits for the journal.
    pub(crate) deferred: Option<Box<[u8]>>,
    /// When its last command or heartbeat arrived.
    pub(crate) last_heard: Nanos,
    /// Sent bytes at the last check whether it reads its replies.
    replies_sent: u64,
    /// Names of its subscriptions that match the message being delivered; kept for its memory.
    pub(crate) matched_names: Vec<u8>,
    pub(crate) cached_header: Option<Box<CachedHeader>>,
}

impl Client {
    pub(crate) fn new(now: Nanos, pattern_bytes: Arc<Budget>, sort_bytes: Arc<Budget>) -> Self {
        Self {
            source: Source::default(),
            queue: SendQueue::default(),
            is_dirty: false,
            is_leaving: false,
            name: None,
            user: None,
            sequence_key: None,
            has_logged_on: false,
            auth: AuthState::default(),
            kind: MessageType::Json,
            subscriptions: HashMap::default(),
            heartbeat: None,
            queries: Arc::new(()),
            has_long_query: false,
            topics: Arc::new(()),
            patterns: Arc::new(()),
            sort_bytes,
            pattern_bytes,
            cost: 0,
            is_over_cost: false,
            deleting: None,
            writes_durably: false,
            is_paused: false,
            is_logging_on: false,
            has_unread_pongs: false,
            deferred: None,
            last_heard: now,
            replies_sent: 0,
            matched_names: Vec::new(),
            cached_header: None,
        }
    }

    /// Counts a query command of that length until the returned token is dropped.
    pub(crate) fn count_query(&mut self, bytes: usize) -> Arc<()> {
        let still_long = self.has_long_query && self.queries() > 0;
        self.has_long_query = still_long || bytes >= LONG_QUERY_BYTES;
        Arc::clone(&self.queries)
    }

    /// Whether its next command waits for its own work: queries up to the limit, the cost limit of
    /// this turn, a deletion, or a logon.
    #[inline]
    pub(crate) fn is_busy(&self, queries_max: usize) -> bool {
        let queries = self.queries();
        let is_querying = queries >= queries_max || self.has_long_query && queries > 0;
        is_querying || self.is_over_cost || self.deleting.is_some() || self.is_logging_on
    }

    /// Whether it leaves too many replies or pongs unread.
    #[inline]
    pub(crate) fn has_unread_replies(&self) -> bool {
        self.has_unread_pongs || self.queue.replies().is_blocking()
    }

    /// Whether its silence is excused: the server does not read from it, or it has read some of the
    /// replies that it must read first.
    pub(crate) fn is_silence_excused(&mut self) -> bool {
        let replies = self.queue.replies();
        let reads = replies.is_blocking() && replies.sent() > self.replies_sent;
        if reads {
            self.replies_sent = replies.sent();
        }
        reads || self.is_paused && !self.has_unread_replies()
    }

    fn queries(&self) -> usize {
        Arc::strong_count(&self.queries) - 1
    }
}

/// The most cost of a client's commands in a turn: patterns tried, about a microsecond each.
const COST_MAX: usize = 4_096;

/// Why a client is disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DisconnectReason {
    /// The send queue is over a limit.
    SlowConsumer,
    /// The client missed agreed heartbeats.
    HeartbeatMissed,
    /// A new connection of the same user took its name.
    NameTaken,
    /// A frame had no valid header.
    InvalidCommand,
    /// The journal did not store its earlier messages in time for its logon.
    NotPersisted,
    /// Too many commands or logons failed authentication.
    NotAuthenticated,
    /// The client speaks another version of the command protocol.
    OtherVersion,
}

impl DisconnectReason {
    /// The reason sent to the client, where the protocol has a place for one.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::SlowConsumer => "it read too slowly",
            Self::HeartbeatMissed => "it gave no sign of life",
            Self::NameTaken => "another connection took its name",
            Self::InvalidCommand => "what it sent is no command",
            Self::NotPersisted => "what it published before is not on disk yet",
            Self::NotAuthenticated => "it did not say who it is",
            Self::OtherVersion => "it speaks another version of the command protocol",
        }
    }
}

/// All clients.
#[derive(Debug)]
pub(crate) struct Clients {
    entries: Vec<Option<Client>>,
    free: Vec<ClientId>,
    /// Clients by name.
    names: HashMap<Box<str>, ClientId>,
    /// Clients with bytes to send, each once.
    dirty: Vec<ClientId>,
    slow: Vec<(ClientId, SlowConsumerReason)>,
    /// Subscriptions whose queries failed, still in the tables of subscriptions and topics.
    failed_subscriptions: Vec<(ClientId, SubscriptionId)>,
    disconnects: Vec<(ClientId, DisconnectReason)>,
    /// Clients that the server does not read from, each once.
    paused: Vec<ClientId>,
    /// Clients whose commands had a cost in this turn.
    charged: Vec<ClientId>,
    /// Whether a send queue is over the memory limit, so that the round should end.
    is_over_memory: bool,
    /// Whether a send queue fell below half of the limit again: queries may continue.
    has_capacity_again: bool,
    pub(crate) offline_limits: OfflineLimits,
    /// The most bytes of a send queue, in memory and on disk.
    queue_max: usize,
    clients_max: usize,
    /// Budgets of all clients, and the part that each may take.
    sort_bytes: Arc<Budget>,
    pattern_bytes: Arc<Budget>,
    client_sort_bytes: usize,
    client_pattern_bytes: usize,
}

impl Clients {
    pub(crate) fn new(config: &ServerConfig) -> Self {
        let offline_limits = OfflineLimits {
            settings: config.offline.clone(),
            memory_max: config.send_queue_bytes_max,
            ..OfflineLimits::default()
        };
        Self {
            entries: Vec::new(),
            free: Vec::new(),
            names: HashMap::default(),
            dirty: Vec::new(),
            slow: Vec::new(),
            failed_subscriptions: Vec::new(),
            disconnects: Vec::new(),
            paused: Vec::new(),
            charged: Vec::new(),
            is_over_memory: false,
            has_capacity_again: false,
            queue_max: offline_limits.queue_max(),
            offline_limits,
            clients_max: config.clients_max,
            sort_bytes: Budget::new(config.sort_bytes_max),
            pattern_bytes: Budget::new(usize::MAX),
            client_sort_bytes: config.client_sort_bytes,
            client_pattern_bytes: config.client_patterns_bytes,
        }
    }

    /// Adds a client; the caller has checked [`is_full`](Self::is_full).
    pub(crate) fn insert(&mut self, now: Nanos) -> ClientId {
        let pattern_bytes = self.pattern_bytes.child(self.client_pattern_bytes);
        let sort_bytes = self.sort_bytes.child(self.client_sort_bytes);
        let client = Some(Client::new(now, pattern_bytes, sort_bytes));
        match self.free.pop() {
            Some(id) => {
                self.entries[id.index()] = client;
                id
            }
            None => {
                self.entries.push(client);
                ClientId::from_index(self.entries.len() - 1)
            }
        }
    }

    /// Removes a client from the table and all lists.
    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Client> {
        let client = self.entries.get_mut(id.index())?.take()?;
        // After a takeover the name belongs to the new connection.
        if let Some(name) = &client.name
            && self.names.get(&**name) == Some(&id)
        {
            self.names.remove(&**name);
        }
        self.dirty.retain(|other| *other != id);
        self.paused.retain(|other| *other != id);
        self.disconnects.retain(|(other, _)| *other != id);
        self.free.push(id);
        Some(client)
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.clients_max
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    #[inline]
    pub(crate) fn get(&self, id: ClientId) -> Option<&Client> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Client> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    /// A client that is not being disconnected.
    #[inline]
    pub(crate) fn active(&mut self, id: ClientId) -> Option<&mut Client> {
        self.get_mut(id).filter(|client| !client.is_leaving)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Client> {
        self.entries.iter().flatten()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (ClientId, &mut Client)> {
        let entries = self.entries.iter_mut().enumerate();
        entries.filter_map(|(index, client)| Some((ClientId::from_index(index), client.as_mut()?)))
    }

    /// The client with that name.
    pub(crate) fn named(&self, name: &str) -> Option<ClientId> {
        self.names.get(name).copied()
    }

    pub(crate) fn set_name(&mut self, id: ClientId, name: &str) {
        self.names.insert(name.into(), id);
        if let Some(client) = self.get_mut(id) {
            client.name = Some(name.into());
        }
    }

    /// Adds a client to those with bytes to send, and checks the limits of its queue. Called after
    /// each write.
    #[inline]
    pub(crate) fn mark_dirty(&mut self, id: ClientId) {
        let (queue_max, memory_max) = (self.queue_max, self.offline_limits.memory_max);
        let Some(client) = self.active(id) else { return };
        let waiting = client.queue.len();
        let is_over_memory = client.queue.memory_len() > memory_max;
        let was_dirty = std::mem::replace(&mut client.is_dirty, true);
        if !was_dirty {
            self.dirty.push(id);
        }
        self.is_over_memory |= is_over_memory;
        if waiting > queue_max {
            self.drop_slow_consumer(id, SlowConsumerReason::QueueFull(waiting));
        }
    }

    /// Takes a client with bytes to send.
    pub(crate) fn pop_dirty(&mut self) -> Option<ClientId> {
        let id = self.dirty.pop()?;
        if let Some(client) = self.get_mut(id) {
            client.is_dirty = false;
        }
        Some(id)
    }

    /// Whether a send queue is over the memory limit.
    pub(crate) fn is_over_memory(&self) -> bool {
        self.is_over_memory
    }

    /// Ends a round; whether a queue has capacity again for which queries wait.
    pub(crate) fn end_round(&mut self) -> bool {
        self.is_over_memory = false;
        std::mem::take(&mut self.has_capacity_again)
    }

    /// Writes a reply to a client's command. A client that leaves replies unread is not read from.
    pub(crate) fn reply(&mut self, id: ClientId, write: impl FnOnce(&mut Vec<u8>)) {
        let memory_max = self.offline_limits.memory_max;
        let Some(client) = self.get_mut(id) else { return };
        let before = client.queue.len();
        write(client.queue.buffer());
        let bytes = client.queue.len() - before;
        if bytes > 0 {
            client.queue.count_replies(bytes, memory_max);
            self.mark_dirty(id);
        }
    }

    /// Passes a client's queue to `write`; whether it is empty then.
    pub(crate) fn send(
        &mut self,
        id: ClientId,
        arena: &FrameArena,
        write: impl FnMut(&[IoSlice<'_>]) -> io::Result<usize>,
    ) -> bool {
        let Some(Some(client)) = self.entries.get_mut(id.index()) else { return true };
        let half = self.offline_limits.memory_max / 2;
        let was_long = client.queue.len() > half;
        match client.queue.send(arena, &mut self.offline_limits, write) {
            Ok(is_empty) => {
                self.has_capacity_again |= was_long && client.queue.len() <= half;
                is_empty
            }
            Err(error) => {
                self.drop_slow_consumer(id, SlowConsumerReason::Disk(error));
                false
            }
        }
    }

    /// Whether a client's queue is more than half full: query results wait, which leaves the other
    /// half to published messages.
    pub(crate) fn is_queue_half_full(&mut self, id: ClientId) -> bool {
        let half = self.offline_limits.memory_max / 2;
        self.active(id).is_some_and(|client| client.queue.len() > half)
    }

    /// Moves `count` bytes of a client's queue to disk.
    pub(crate) fn spill(&mut self, id: ClientId, count: usize) {
        let Some(Some(client)) = self.entries.get_mut(id.index()) else { return };
        if let Err(error) = client.queue.spill(count, &mut self.offline_limits) {
            self.drop_slow_consumer(id, SlowConsumerReason::Disk(error));
        }
    }

    /// Ends a subscription whose query failed. The client was told.
    pub(crate) fn fail_subscription(&mut self, client: ClientId, id: SubscriptionId) {
        if let Some(client) = self.get_mut(client) {
            client.subscriptions.retain(|_, other| *other != id);
        }
        self.failed_subscriptions.push((client, id));
    }

    /// Takes the subscriptions whose queries failed, to remove them everywhere.
    pub(crate) fn take_failed_subscriptions(&mut self) -> Vec<(ClientId, SubscriptionId)> {
        std::mem::take(&mut self.failed_subscriptions)
    }

    /// Disconnects a client that reads too slowly.
    pub(crate) fn drop_slow_consumer(&mut self, id: ClientId, reason: SlowConsumerReason) {
        if let Some(client) = self.active(id) {
            client.is_leaving = true;
            self.slow.push((id, reason));
        }
    }

    /// Takes a slow consumer, to be logged and counted before its disconnection.
    pub(crate) fn pop_slow_consumer(&mut self) -> Option<(ClientId, SlowConsumerReason)> {
        let (id, reason) = self.slow.pop()?;
        self.disconnects.push((id, DisconnectReason::SlowConsumer));
        Some((id, reason))
    }

    /// Disconnects a client at the end of the round.
    pub(crate) fn disconnect(&mut self, id: ClientId, reason: DisconnectReason) {
        if let Some(client) = self.active(id) {
            client.is_leaving = true;
            self.disconnects.push((id, reason));
        }
    }

    /// Takes a client to disconnect.
    pub(crate) fn pop_disconnect(&mut self) -> Option<(ClientId, DisconnectReason)> {
        self.disconnects.pop()
    }

    /// Stops reading from a client until it is resumed.
    pub(crate) fn pause(&mut self, id: ClientId) {
        if let Some(client) = self.get_mut(id)
            && !std::mem::replace(&mut client.is_paused, true)
        {
            self.paused.push(id);
        }
    }

    /// Decides about a client from [`take_paused`](Self::take_paused): resumes it, or keeps it
    /// paused. Whether it was paused and resumes.
    pub(crate) fn resume(&mut self, id: ClientId, resumes: bool) -> bool {
        let Some(client) = self.get_mut(id).filter(|client| client.is_paused) else { return false };
        client.is_paused = !resumes;
        if !resumes {
            self.paused.push(id);
        }
        resumes
    }

    /// Takes the list of paused clients, each to be decided about by [`resume`](Self::resume).
    pub(crate) fn take_paused(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.paused)
    }

    pub(crate) fn paused(&self) -> &[ClientId] {
        &self.paused
    }

    /// Drops cached headers of removed topics, given in ascending order: their ids may be reused.
    pub(crate) fn drop_cached_headers(&mut self, removed: &[TopicId]) {
        if removed.is_empty() {
            return;
        }
        for client in self.entries.iter_mut().flatten() {
            client.cached_header.take_if(|header| removed.binary_search(&header.topic).is_ok());
        }
    }

    /// Adds the cost of a command. Over the limit, the client's next commands wait for the next
    /// turn, so that others get theirs.
    #[cold]
    pub(crate) fn charge(&mut self, id: ClientId, cost: usize) {
        let Some(client) = self.get_mut(id) else { return };
        client.cost += cost;
        client.is_over_cost |= client.cost > COST_MAX;
        if client.cost == cost {
            self.charged.push(id);
        }
    }

    /// Resets costs for a new turn; whether a client was over the limit.
    pub(crate) fn reset_costs(&mut self) -> bool {
        let mut was_over = false;
        for id in std::mem::take(&mut self.charged) {
            let Some(client) = self.get_mut(id) else { continue };
            client.cost = 0;
            was_over |= std::mem::take(&mut client.is_over_cost);
        }
        was_over
    }
}
