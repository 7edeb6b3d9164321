//! Counters of publishers and subscribers, and their labels in counters files.

use lanecast_base::sync::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use lanecast_protocol::receiver::ReceiverCounters;
use lanecast_protocol::sender::SenderCounters;

/// A counter's label, and the function that reads its value.
pub(crate) type CounterColumn<C> = (&'static str, fn(&C) -> u64);

/// Counters of a publisher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherCounters {
    /// Counters of the sending protocol.
    pub sent: SenderCounters,
    /// Number of topics.
    pub topics: u64,
    /// Number of joined receivers.
    pub receivers: u64,
    /// Claims that found the window full.
    pub back_pressured: u64,
    /// Sends that the system refused.
    pub refused: u64,
}

/// Counters of a subscriber, over all of its sessions or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberCounters {
    /// Counters of the receiving protocol.
    pub received: ReceiverCounters,
    /// Number of joined topics.
    pub topics: u64,
    /// Datagrams that are missing at present.
    pub missing: u64,
    /// Datagrams that the system dropped because a socket's receive buffer was full.
    pub kernel_drops: u64,
    /// Number of the receive thread that serves the session, from 1; 0: the subscriber's thread or
    /// the conductor. Over all sessions: 0.
    pub receive_thread: u64,
}

impl SubscriberCounters {
    /// Adds the counters of other sessions.
    pub(crate) fn add(&mut self, other: &Self) {
        self.received.add(&other.received);
        self.topics = self.topics.saturating_add(other.topics);
        self.missing = self.missing.saturating_add(other.missing);
        self.kernel_drops = self.kernel_drops.saturating_add(other.kernel_drops);
    }
}

/// Values of a sending session that are read without its lock.
#[derive(Debug, Default)]
pub(crate) struct PublisherStatus {
    /// Number of joined receivers.
    pub(crate) receivers: AtomicUsize,
    /// Claims that found the window full.
    pub(crate) back_pressured: AtomicU64,
    /// Commits are batched: the conductor has to flush them should the owner stop calling.
    pub(crate) is_batching: AtomicBool,
    /// The application tells when the batch ends.
    pub(crate) is_packing: AtomicBool,
    /// The program asked for a descriptor: it may sleep until the conductor makes it readable.
    pub(crate) has_wakeup: AtomicBool,
}

impl PublisherStatus {
    /// Whether the owner has left a batch open whose end it does not tell: a stream is over, or its
    /// owner waits for a CPU, and the former must not be late.
    pub(crate) fn is_streaming(&self) -> bool {
        // Relaxed: a stale value only makes one pause too long or too short.
        self.is_batching.load(Ordering::Relaxed) && !self.is_packing.load(Ordering::Relaxed)
    }

    /// Whether an absent owner waits for what the conductor does.
    pub(crate) fn is_waited_for(&self) -> bool {
        // Relaxed: set once, before the program sleeps for the first time.
        self.is_streaming() || self.has_wakeup.load(Ordering::Relaxed)
    }
}

/// The columns of a publisher's counters file.
pub(crate) const PUBLISHER: [CounterColumn<PublisherCounters>; 26] = [
    ("topics", |c| c.topics),
    ("receivers", |c| c.receivers),
    ("receivers joined", |c| c.sent.joined),
    ("receivers left", |c| c.sent.left),
    ("receivers died", |c| c.sent.died),
    ("receivers ejected", |c| c.sent.ejected),
    ("receivers turned away", |c| c.sent.rejected),
    ("messages", |c| c.sent.messages),
    ("messages without subscribers", |c| c.sent.unsubscribed),
    ("datagrams", |c| c.sent.datagrams),
    ("bytes", |c| c.sent.bytes),
    ("naks heard", |c| c.sent.naks),
    ("datagrams repaired", |c| c.sent.repairs),
    ("bytes repaired", |c| c.sent.repair_bytes),
    ("parity sent", |c| c.sent.parity),
    ("bytes of parity", |c| c.sent.parity_bytes),
    ("parity repairs", |c| c.sent.parity_repairs),
    ("datagrams no longer kept", |c| c.sent.gone),
    ("repairs over budget", |c| c.sent.over_budget),
    ("window full", |c| c.sent.window_full),
    ("back-pressured", |c| c.back_pressured),
    ("datagrams refused by the system", |c| c.refused),
    ("frames malformed", |c| c.sent.malformed),
    ("frames of strangers", |c| c.sent.unknown_receivers),
    ("answers dropped", |c| c.sent.control_dropped),
    ("session frames", |c| c.sent.session_frames),
];

/// The columns of a subscriber's counters file, one file for each session.
pub(crate) const SUBSCRIBER: [CounterColumn<SubscriberCounters>; 22] = [
    ("topics", |c| c.topics),
    ("messages", |c| c.received.messages),
    ("datagrams", |c| c.received.datagrams),
    ("datagrams missing", |c| c.missing),
    ("gaps", |c| c.received.gaps),
    ("naks sent", |c| c.received.naks),
    ("datagrams recovered", |c| c.received.recovered),
    ("datagrams rebuilt", |c| c.received.rebuilt),
    ("parity received", |c| c.received.parity),
    ("parity unused", |c| c.received.parity_unused),
    ("messages recovered", |c| c.received.recovered_messages),
    ("recovery min ns", |c| c.received.recovery_min),
    ("recovery mean ns", |c| c.received.recovery_mean()),
    ("recovery max ns", |c| c.received.recovery_max),
    ("datagrams lost", |c| c.received.lost_datagrams),
    ("messages lost", |c| c.received.lost),
    ("duplicates", |c| c.received.duplicates),
    ("frames malformed", |c| c.received.malformed),
    ("frames implausible", |c| c.received.implausible),
    ("datagrams without room", |c| c.received.overflowed),
    ("dropped by the system", |c| c.kernel_drops),
    ("receive thread", |c| c.receive_thread),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_and_descriptors_are_waited_for_and_packed_batches_are_not() {
        let status = PublisherStatus::default();
        assert!(!status.is_streaming() && !status.is_waited_for());
        status.is_batching.store(true, Ordering::Relaxed);
        assert!(status.is_streaming() && status.is_waited_for());
        status.is_packing.store(true, Ordering::Relaxed);
        assert!(!status.is_streaming() && !status.is_waited_for());
        status.has_wakeup.store(true, Ordering::Relaxed);
        assert!(!status.is_streaming() && status.is_waited_for());
    }
}
