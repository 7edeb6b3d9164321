//! Updates that a subscription holds back.

use crate::change::Cause;
use crate::deltas::Deltas;
use crate::record::Record;
use crate::sink::{Event, OutOfFocusReason, Sink};
use crate::subscription_options::SubscriptionOptions;

/// An update that waits for the end of a query or of a conflation interval.
#[derive(Clone, Debug)]
pub(crate) enum PendingUpdate {
    Update(Record, Cause),
    /// Version last delivered, and current version.
    Delta(Record, Record, Cause),
    OutOfFocus(Record, OutOfFocusReason, u64),
}

impl PendingUpdate {
    pub(crate) fn record(&self) -> &Record {
        match self {
            Self::Update(record, _) | Self::Delta(_, record, _) | Self::OutOfFocus(record, ..) => {
                record
            }
        }
    }

    /// The single update that replaces this one and then `next`.
    pub(crate) fn merged_with(self, next: Self) -> Self {
        match (self, next) {
            (Self::Delta(base, ..), Self::Delta(_, record, cause)) => {
                Self::Delta(base, record, cause)
            }
            (Self::Update(..), Self::Delta(_, record, cause)) => Self::Update(record, cause),
            (_, next) => next,
        }
    }

    /// This update as a subscription with `options` gets it; `None` if it does not.
    pub(crate) fn suited_to(self, options: &SubscriptionOptions) -> Option<Self> {
        match self {
            Self::OutOfFocus(..) if !options.out_of_focus => None,
            Self::Delta(_, record, cause) if !options.delta => Some(Self::Update(record, cause)),
            update => Some(update),
        }
    }

    pub(crate) fn deliver(&self, ids: &[u32], deltas: &mut Deltas, sink: &mut impl Sink) {
        match self {
            Self::Update(record, cause) => {
                sink.deliver(ids, Event::Update { record, cause: *cause });
            }
            Self::Delta(base, record, cause) => deltas.deliver(ids, base, record, *cause, sink),
            Self::OutOfFocus(record, reason, sequence) => {
                let (reason, sequence) = (*reason, *sequence);
                sink.deliver(ids, Event::OutOfFocus { record, reason, sequence });
            }
        }
    }
}
