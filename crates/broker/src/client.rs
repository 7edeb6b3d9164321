//! The record of a connected client. The client table owns it; commands and delivery change it.

use crate::auth::state::AuthState;
use crate::ids::{SubscriptionId, TopicId};
use crate::net::source::Source;
use crate::queue::send_queue::SendQueue;
use crate::time::Nanos;
use foldhash::HashMap;
use lanecast_base::budget::Budget;
use lanecast_filter::message_type::MessageType;
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
    /// Whether the server stopped reading from it; decided once, see `engine/flow_control.rs`.
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
