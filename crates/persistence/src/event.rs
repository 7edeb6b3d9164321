//! Events of a publisher.

use lanecast_wire::store::{Ballot, StoreRefusal};

/// An event of a publisher whose messages are kept by stores.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceEvent {
    /// The stores accept this run: messages may be sent. Once per run, before its other events but
    /// [`Waiting`](Self::Waiting).
    Registered {
        /// Sequence of the next message: those before it are kept from earlier runs.
        next: u64,
    },
    /// Too few stores have answered so far, or too few of them have kept the stream: the stores
    /// that hold it decide, whatever the settings name. Told again when it changes.
    Waiting {
        /// Stores that do not answer.
        silent: Vec<String>,
        /// Stores that have lost their data since they joined the stream: they do not count.
        wiped: Vec<String>,
        /// Stores that hold the stream, and that the settings do not name. If too few others are
        /// left, name them again until the publisher is registered.
        unlisted: Vec<String>,
        /// Stores that the settings name, and that did not hold the stream so far: they copy it,
        /// and count when they have everything.
        newcomers: Vec<String>,
    },
    /// Every message before `next` is on the disks of enough stores: none is lost even if the
    /// others fail.
    Stable {
        /// Sequence of the first message that is not.
        next: u64,
    },
    /// Every registered receiver has consumed the messages before `next`, as it has told a write
    /// quorum of stores: the confirmation of delivery, cumulative. Without registered receivers
    /// this follows [`Stable`](Self::Stable).
    Consumed {
        /// Sequence of the first message that is not consumed.
        next: u64,
    },
    /// A message was refused because too many are in flight: not stable, or with receivers that
    /// pace the publisher, not consumed. Told once, and again when there is room.
    FlightSize {
        /// Whether the bound is reached.
        is_exceeded: bool,
        /// Messages in flight.
        messages: u64,
    },
    /// Retention has removed the messages before `first` at all stores.
    Reclaimed {
        /// Sequence of the oldest message that a store keeps.
        first: u64,
        /// A registered receiver had not consumed all of them: it loses some.
        is_forced: bool,
    },
    /// A store no longer answers. Messages go on as long as the others are enough.
    StoreLost {
        /// The store.
        store: String,
    },
    /// A store answers again, or for the first time after the registration.
    StoreBack {
        /// The store.
        store: String,
    },
    /// A store speaks another version of the protocol, and counts as one that does not answer: give
    /// both programs the same version of lanecast. Once for each store and version.
    OtherVersion {
        /// The store.
        store: String,
        /// Version of the store's protocol.
        version: u8,
    },
    /// A store does not keep the stream, and refuses it until the reason is gone. Once for each
    /// store and reason. If too few others are left, the publisher is not registered.
    Refused {
        /// The store.
        store: String,
        /// The reason.
        refusal: StoreRefusal,
    },
    /// Another publisher has registered under the same id: this run has ended. Messages that were
    /// not stable by then may be kept or not.
    Superseded {
        /// The other run.
        by: Ballot,
    },
}
