//! Events delivered to subscriptions.

use crate::change::Cause;
use crate::query_cursor::QueryStats;
use crate::record::Record;

/// An event for subscriptions.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Start of a query's answer (AMPS: `group_begin`).
    Begin,
    /// A batch of the answer.
    Records(&'a [Record]),
    /// End of the answer (AMPS: `group_end`).
    End(QueryStats),
    /// A record was published.
    Update {
        /// The record.
        record: &'a Record,
        /// Cause of the event.
        cause: Cause,
    },
    /// A record that the subscriber has was changed.
    Delta {
        /// The record.
        record: &'a Record,
        /// The version last delivered to the subscriber.
        base: &'a Record,
        /// Number of changed fields without the key fields; 0 if the contents are equal.
        changes: usize,
        /// Key fields and changed fields: see
        /// [`difference`](lanecast_filter::difference::difference).
        bytes: &'a [u8],
    },
    /// A record no longer matches the subscription (AMPS: out of focus, `oof`).
    OutOfFocus {
        /// The record that no longer matches, or its last version before it was removed.
        record: &'a Record,
        /// Cause of the event.
        reason: OutOfFocusReason,
        /// Sequence of the change.
        sequence: u64,
    },
    /// Sorting exceeds the memory limit of so many bytes. The query and its subscription have
    /// ended.
    SortMemoryExceeded(usize),
    /// More updates were published during the query than may wait for its end. The subscription has
    /// ended.
    Overrun,
}

/// Cause of an out-of-focus event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutOfFocusReason {
    /// The record no longer matches the filter.
    Match,
    /// The record was deleted.
    Deleted,
    /// The record's lifetime has ended.
    Expired,
}

/// Receiver of events.
pub trait Sink {
    /// Delivers `event` to `subscriptions`: at least one, each listed once.
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>);
}

impl<F: FnMut(&[u32], Event<'_>)> Sink for F {
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>) {
        self(subscriptions, event);
    }
}
