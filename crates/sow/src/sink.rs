//! What subscribers are told.

use crate::change::Cause;
use crate::query_cursor::QueryStats;
use crate::record::Record;

/// Something that subscribers are told.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The answer of a query begins.
    Begin,
    /// Records of the answer, at most as many as a batch has.
    Records(&'a [Record]),
    /// The answer is complete.
    End(QueryStats),
    /// A record is this now.
    Update {
        /// What it is.
        record: &'a Record,
        /// Why.
        cause: Cause,
    },
    /// A record that the subscriber knows has changed.
    Delta {
        /// What it is now.
        record: &'a Record,
        /// What it was when the subscriber was told last.
        base: &'a Record,
        /// How many fields have changed, the key fields not counted; 0 if it says the same again.
        changes: usize,
        /// Its key fields, and those that are not as they were: see
        /// [`difference`](lanecast_filter::difference::difference).
        bytes: &'a [u8],
    },
    /// A record is none of the subscriber's any more: it is out of focus.
    OutOfFocus {
        /// The record that does not meet the filter any more, or the last one before it was gone.
        record: &'a Record,
        /// Why.
        reason: OutOfFocusReason,
        /// The number of the topic's change that made it so.
        sequence: u64,
    },
    /// What the answer is sorted by takes more memory than there is for it: the limit is so many
    /// bytes. The query has ended, and the subscription with it.
    SortMemoryExceeded(usize),
    /// More was published during the query than may wait for its end. The subscription has ended.
    Overrun,
}

/// Why a record is out of focus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutOfFocusReason {
    /// It does not meet the filter any more.
    Match,
    /// Somebody deleted it.
    Deleted,
    /// Its time was over.
    Expired,
}

/// Where events go.
pub trait Sink {
    /// All these subscriptions are to be told. There is at least one, and each comes once.
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>);
}

impl<F: FnMut(&[u32], Event<'_>)> Sink for F {
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>) {
        self(subscriptions, event);
    }
}
