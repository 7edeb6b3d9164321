//! A client, as the hub knows it.

use crate::Nanos;
use crate::auth::authenticator::AuthState;
use crate::net::source::Source;
use crate::queue::send_queue::SendQueue;
use foldhash::HashMap;
use lanecast_base::budget::Budget;
use lanecast_filter::message_type::MessageType;
use std::sync::Arc;

/// A query as long as this is answered before anything else of its client is done.
const LONG_BYTES: usize = 64 << 10;

/// A client's number. It is used again when the client has gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub(crate) u32);

/// Signs of life: what was agreed on, and when they are due.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heartbeat {
    pub(crate) interval: Nanos,
    pub(crate) next: Nanos,
}

/// A header that says no more than that something is published, and where.
#[derive(Debug)]
pub(crate) struct CachedHeader {
    pub(crate) header: Box<[u8]>,
    pub(crate) topic: u32,
    /// The client's name, if it has one.
    pub(crate) publisher: Option<Arc<str>>,
}

/// Who is connected.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) source: Source,
    pub(crate) outbox: SendQueue,
    /// Whether it is among those that have something to be sent.
    pub(crate) is_dirty: bool,
    /// It is being disconnected: nothing more is for it.
    pub(crate) is_leaving: bool,
    /// The name that it gave, once it did, and whose it said to be.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) user: Option<Box<str>>,
    /// By what the numbers of its messages are remembered, if it has a name.
    pub(crate) numbered_as: Option<Arc<str>>,
    pub(crate) has_logged_on: bool,
    /// Where users are known: who it is, and what it may do.
    pub(crate) pass: AuthState,
    /// The type of its messages.
    pub(crate) kind: MessageType,
    /// Its subscriptions: their numbers, by the names that it gave them.
    pub(crate) subscriptions: HashMap<Box<str>, u32>,
    pub(crate) pulse: Option<Heartbeat>,
    /// Each of its queries has one of these until it is answered.
    queries: Arc<()>,
    /// One of them is long.
    asks_much: bool,
    /// Each topic that it has made has one of these for as long as there is that topic.
    pub(crate) topics: Arc<()>,
    /// Each pattern of topics that it was the first to subscribe to has one of these.
    pub(crate) patterns: Arc<()>,
    /// What sorting the answers of its queries may take.
    pub(crate) sort_bytes: Arc<Budget>,
    /// What its commands have cost in this turn, and whether that is enough.
    pub(crate) cost: usize,
    pub(crate) is_tired: bool,
    /// Records are being deleted that it wants to be gone.
    pub(crate) deleting: Option<Arc<()>>,
    /// What its patterns may take.
    pub(crate) pattern_bytes: Arc<Budget>,
    /// It has published what is to be durable.
    pub(crate) writes_durably: bool,
    /// What it sends waits: it is not read.
    pub(crate) is_stopped: bool,
    /// Its logon waits for the disk.
    pub(crate) is_logging_on: bool,
    /// It leaves more pongs unread than it may.
    pub(crate) leaves_pongs: bool,
    /// A command that waits for the disk.
    pub(crate) held: Option<Box<[u8]>>,
    /// When it was last heard.
    pub(crate) heard: Nanos,
    /// What of its outbox had left when it was last looked whether it reads its answers.
    pub(crate) read_up_to: u64,
    /// The names of subscriptions that the message at hand is for, of which there are several.
    pub(crate) gathered: Vec<u8>,
    /// The last such header: the next is mostly the same, and need not be read again.
    pub(crate) usual: Option<Box<CachedHeader>>,
}

impl Client {
    pub(crate) fn new(now: Nanos, pattern_bytes: Arc<Budget>, sort_bytes: Arc<Budget>) -> Self {
        Self {
            source: Source::default(),
            outbox: SendQueue::default(),
            is_dirty: false,
            is_leaving: false,
            name: None,
            user: None,
            numbered_as: None,
            has_logged_on: false,
            pass: AuthState::default(),
            kind: MessageType::Json,
            subscriptions: HashMap::default(),
            pulse: None,
            queries: Arc::new(()),
            asks_much: false,
            topics: Arc::new(()),
            patterns: Arc::new(()),
            sort_bytes,
            cost: 0,
            is_tired: false,
            deleting: None,
            pattern_bytes,
            writes_durably: false,
            is_stopped: false,
            is_logging_on: false,
            leaves_pongs: false,
            held: None,
            heard: now,
            read_up_to: 0,
            gathered: Vec::new(),
            usual: None,
        }
    }

    /// Has a query of so many bytes counted for as long as what this gives is there.
    pub(crate) fn count_query(&mut self, bytes: usize) -> Arc<()> {
        self.asks_much = self.asks_much && self.queries() > 0 || bytes >= LONG_BYTES;
        Arc::clone(&self.queries)
    }

    /// Whether it has to wait for the server: as many of its queries are being answered as may, its
    /// commands have cost enough for this turn, or what it deletes is not gone yet.
    #[inline]
    pub(crate) fn is_busy(&self, most: usize) -> bool {
        let queries = self.queries();
        let is_asking = queries >= most || self.asks_much && queries > 0;
        is_asking || self.is_tired || self.deleting.is_some() || self.is_logging_on
    }

    /// Whether it leaves more answers unread than it may.
    #[inline]
    pub(crate) fn leaves_unread(&self) -> bool {
        self.leaves_pongs || self.outbox.answers().are_unread()
    }

    /// Whether it is no fault of its own that nothing is heard of it: it is not read, or it has
    /// read some of the answers that it has to read first.
    pub(crate) fn is_kept_waiting(&mut self) -> bool {
        let answers = self.outbox.answers();
        let reads = answers.are_unread() && answers.left() > self.read_up_to;
        if reads {
            self.read_up_to = answers.left();
        }
        reads || self.is_stopped && !self.leaves_unread()
    }

    fn queries(&self) -> usize {
        Arc::strong_count(&self.queries) - 1
    }
}
