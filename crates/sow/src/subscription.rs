//! One subscription or query, with the updates that wait for it.

use crate::change::Change;
use crate::conflation::Conflation;
use crate::deltas::Deltas;
use crate::pending_update::PendingUpdate;
use crate::query_cursor::{QueryCursor, QueryStats};
use crate::queue::Queue;
use crate::record::{NEVER, Record};
use crate::sink::{Event, Sink};
use crate::subscription_options::SubscriptionOptions;
use crate::topic::Topic;

/// Bytes after which a step ends.
pub(crate) const STEP_BYTES: usize = 128 << 10;
/// Maximum bytes of a batch, unless a single record is longer.
const BATCH_BYTES: usize = 256 << 10;

/// A subscription, or a query without one.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) options: SubscriptionOptions,
    /// Whether it continues after its query.
    pub(crate) is_live: bool,
    scan: Option<QueryCursor>,
    /// Records of the answer that do not fill a batch yet.
    batch: Vec<Record>,
    batch_bytes: usize,
    /// Updates since the start of the query.
    waiting: Queue<PendingUpdate>,
    waiting_bytes: usize,
    /// Updates that came since [`take_arrived`](Self::take_arrived) was called.
    arrived: usize,
    is_overrun: bool,
    pub(crate) conflation: Option<Conflation>,
}

/// State of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More steps are due.
    Busy,
    /// Caught up with the topic.
    Durability,
    /// Ended: a limit was exceeded.
    Overrun,
}

impl Subscription {
    pub(crate) fn new(
        options: SubscriptionOptions,
        is_live: bool,
        scan: Option<QueryCursor>,
    ) -> Self {
        let conflation = options.conflation.map(Conflation::new);
        let (batch, waiting) = (Vec::new(), Queue::default());
        let (batch_bytes, waiting_bytes, arrived, is_overrun) = (0, 0, 0, false);
        Self {
            options,
            is_live,
            scan,
            batch,
            batch_bytes,
            waiting,
            waiting_bytes,
            arrived,
            is_overrun,
            conflation,
        }
    }

    /// Whether its query is in progress.
    pub(crate) fn is_querying(&self) -> bool {
        self.scan.is_some()
    }

    /// Number of updates that wait although the query is answered.
    pub(crate) fn backlog(&self) -> usize {
        if self.is_querying() { 0 } else { self.waiting.len() }
    }

    /// Number of updates that began to wait since the last call.
    pub(crate) fn take_arrived(&mut self) -> usize {
        std::mem::take(&mut self.arrived)
    }

    /// Time of the next conflated update that may be due; [`NEVER`] if none waits.
    pub(crate) fn next_flush_ns(&self) -> u64 {
        self.conflation.as_ref().map_or(NEVER, Conflation::next_ns)
    }

    /// Must be called after each change of the topic.
    #[inline]
    pub(crate) fn on_change(&mut self, change: &Change<'_>) {
        if let Some(scan) = &mut self.scan {
            scan.on_change(change);
        }
    }

    /// Keeps an update until the query is answered.
    pub(crate) fn enqueue(&mut self, update: PendingUpdate) {
        let SubscriptionOptions { waiting_max, waiting_bytes_max, .. } = self.options;
        if self.waiting.len() < waiting_max && self.waiting_bytes < waiting_bytes_max {
            self.arrived += 1;
            self.waiting_bytes += update.record().bytes().len();
            self.waiting.push_back(update);
        } else {
            self.is_overrun = true;
        }
    }

    /// Continues the query, then delivers the updates that waited for it: up to `limit` steps.
    pub(crate) fn advance(
        &mut self,
        id: u32,
        topic: &Topic,
        deltas: &mut Deltas,
        now_ns: u64,
        limit: usize,
        sink: &mut impl Sink,
    ) -> Progress {
        if self.is_overrun {
            sink.deliver(&[id], Event::Overrun);
            return Progress::Overrun;
        }
        if let Some(scan) = &mut self.scan {
            let (is_more, bytes) = scan.advance_by(topic, limit, STEP_BYTES, &mut self.batch);
            if let Some(limit) = scan.exhausted() {
                sink.deliver(&[id], Event::SortMemoryExceeded(limit));
                return Progress::Overrun;
            }
            self.batch_bytes += bytes;
            let answer = scan.answer();
            self.send_batches(id, is_more, answer, sink);
            if is_more {
                return Progress::Busy;
            }
            self.scan = None;
        }
        let mut bytes = 0;
        for _ in 0..limit {
            let Some(update) = self.waiting.pop_front() else { return Progress::Durability };
            let length = update.record().bytes().len();
            (bytes, self.waiting_bytes) = (bytes + length, self.waiting_bytes - length);
            self.deliver(id, update, deltas, now_ns, sink);
            if bytes >= STEP_BYTES {
                break;
            }
        }
        if self.waiting.is_empty() { Progress::Durability } else { Progress::Busy }
    }

    /// Delivers an update, now or at the end of its conflation interval.
    pub(crate) fn deliver(
        &mut self,
        id: u32,
        update: PendingUpdate,
        deltas: &mut Deltas,
        now_ns: u64,
        sink: &mut impl Sink,
    ) {
        let update = match &mut self.conflation {
            Some(conflation) => conflation.offer(update, now_ns),
            None => Some(update),
        };
        if let Some(update) = update {
            update.deliver(&[id], deltas, sink);
        }
    }

    /// Goes on with what `old` still owes its subscriber: the rest of its answer, and the updates
    /// that wait. This subscription replaces it, and has delivered nothing yet.
    pub(crate) fn take_over(&mut self, old: Self, now_ns: u64) {
        if old.is_querying() {
            self.options.batch = old.options.batch;
        }
        (self.scan, self.batch, self.batch_bytes) = (old.scan, old.batch, old.batch_bytes);
        (self.arrived, self.is_overrun) = (old.arrived, old.is_overrun);
        let conflated = match (&mut self.conflation, old.conflation) {
            (Some(own), Some(old)) => {
                own.take_over(old, &self.options, now_ns);
                None
            }
            (_, old) => old,
        };
        // Conflated updates are older than those that wait behind the answer.
        let conflated = conflated.into_iter().flat_map(Conflation::into_pending);
        for update in conflated.chain(old.waiting) {
            if let Some(update) = update.suited_to(&self.options) {
                self.waiting_bytes += update.record().bytes().len();
                self.waiting.push_back(update);
            }
        }
    }

    /// Delivers the out-of-focus events that wait, and drops the other updates.
    pub(crate) fn deliver_out_of_focus(self, id: u32, deltas: &mut Deltas, sink: &mut impl Sink) {
        let conflated = self.conflation.into_iter().flat_map(Conflation::into_pending);
        for update in conflated.chain(self.waiting) {
            if matches!(update, PendingUpdate::OutOfFocus(..)) {
                update.deliver(&[id], deltas, sink);
            }
        }
    }

    /// Whether something is to be delivered before the next change.
    pub(crate) fn is_behind(&self) -> bool {
        self.is_querying() || !self.waiting.is_empty()
    }

    fn send_batches(&mut self, id: u32, is_more: bool, answer: QueryStats, sink: &mut impl Sink) {
        let size = self.options.batch.max(1);
        let whole = self.batch.len() / size * size;
        let is_heavy = self.batch_bytes >= BATCH_BYTES;
        let given = if is_more && !is_heavy { whole } else { self.batch.len() };
        let mut rest = &self.batch[..given];
        while !rest.is_empty() {
            let (batch, behind) = rest.split_at(batch_length(rest, size));
            sink.deliver(&[id], Event::Records(batch));
            rest = behind;
        }
        if given > 0 {
            self.batch.drain(..given);
            self.batch_bytes = bytes_of(&self.batch);
        }
        if !is_more {
            sink.deliver(&[id], Event::End(answer));
        }
    }
}

/// Number of `records` in the next batch: up to `size`, within the byte limit.
fn batch_length(records: &[Record], size: usize) -> usize {
    let mut bytes = 0;
    let fits = records.iter().take(size).take_while(|record| {
        bytes += record.bytes().len();
        bytes <= BATCH_BYTES
    });
    fits.count().max(1)
}

fn bytes_of(records: &[Record]) -> usize {
    records.iter().map(|record| record.bytes().len()).sum()
}
