//! A stream at a store, as tools and retention are told of it.

use lanecast_wire::store::{Ballot, Members};

/// A stream as people see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamSummary<'a> {
    /// The stream's number at this store.
    pub number: u32,
    /// The topic.
    pub topic: &'a str,
    /// The publisher's stable id.
    pub source: u64,
    /// The run whose log this is.
    pub run: Ballot,
    /// The last run that was accepted.
    pub promised: Ballot,
    /// The publisher has told that its run is registered.
    pub is_live: bool,
    /// The stores that hold the stream.
    pub members: &'a Members,
    /// Sequence of the oldest message.
    pub first: u64,
    /// Sequence after the last message that is on disk.
    pub next: u64,
    /// Sequence of the first message that a registered receiver has not consumed, of those that
    /// hold a receiver-paced publisher back; `next` if there is none.
    pub consumed: u64,
    /// The same of all registered receivers that have not expired.
    pub consumed_by_all: u64,
    /// Messages are being copied from another store.
    pub is_copying: bool,
    /// Registered receivers hold the publisher back: what they have not consumed is kept.
    pub is_receiver_paced: bool,
}
