//! What the ends of the network count, and what that is called.

use lanecast_protocol::receiver::ReceiverCounters;
use lanecast_protocol::sender::SenderCounters;

/// A counter's label, and its value.
pub(crate) type Row<C> = (&'static str, fn(&C) -> u64);

/// What a publisher has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PublisherCounters {
    /// What it sent, and what receivers asked of it.
    pub sent: SenderCounters,
    /// The topics that it has.
    pub topics: u64,
    /// The receivers that it has now.
    pub receivers: u64,
    /// Claims that found no room.
    pub back_pressured: u64,
    /// Datagrams that the system refused to send.
    pub refused: u64,
}

/// What a subscriber has counted, over all of its sessions or one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SubscriberCounters {
    /// What came, what was missing, and what became of that.
    pub received: ReceiverCounters,
    /// The topics that it is joined to.
    pub topics: u64,
    /// Datagrams that are missing now.
    pub missing: u64,
    /// Datagrams that the system dropped because its sockets were full.
    pub kernel_drops: u64,
}

/// A publisher's counters, as its file has them.
pub(crate) const PUBLISHER: [Row<PublisherCounters>; 23] = [
    ("topics", |c| c.topics),
    ("receivers", |c| c.receivers),
    ("receivers joined", |c| c.sent.joined),
    ("receivers left", |c| c.sent.left),
    ("receivers died", |c| c.sent.died),
    ("receivers ejected", |c| c.sent.ejected),
    ("receivers turned away", |c| c.sent.crowded),
    ("messages", |c| c.sent.messages),
    ("messages nobody wanted", |c| c.sent.unwanted),
    ("datagrams", |c| c.sent.datagrams),
    ("bytes", |c| c.sent.bytes),
    ("naks heard", |c| c.sent.naks),
    ("datagrams repaired", |c| c.sent.repairs),
    ("bytes repaired", |c| c.sent.repair_bytes),
    ("datagrams no longer kept", |c| c.sent.gone),
    ("repairs over budget", |c| c.sent.over_budget),
    ("window full", |c| c.sent.window_full),
    ("back-pressured", |c| c.back_pressured),
    ("datagrams refused by the system", |c| c.refused),
    ("frames malformed", |c| c.sent.malformed),
    ("frames of strangers", |c| c.sent.strangers),
    ("answers dropped", |c| c.sent.answers_dropped),
    ("session frames", |c| c.sent.sessions),
];

/// A subscriber's counters of one session, as its file has them.
pub(crate) const SUBSCRIBER: [Row<SubscriberCounters>; 18] = [
    ("topics", |c| c.topics),
    ("messages", |c| c.received.messages),
    ("datagrams", |c| c.received.datagrams),
    ("datagrams missing", |c| c.missing),
    ("gaps", |c| c.received.gaps),
    ("naks sent", |c| c.received.naks),
    ("datagrams recovered", |c| c.received.recovered),
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
];
