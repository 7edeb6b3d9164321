//! The series of the UM throughput document, with its figures.

use super::mode::PersistMode;
use serde::Serialize;

/// A test of the series.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PersistCase {
    /// Name of the test.
    pub case: &'static str,
    /// Persistence; none for streaming.
    pub mode: Option<PersistMode>,
    /// Stores, in quorum if there are several.
    pub stores: usize,
    /// Each topic has a store of its own, in place of all.
    pub has_store_each: bool,
    /// Topics that take turns, from one publisher to one subscriber.
    pub topics: usize,
    /// Messages a second that the document found, over 10 Gb Ethernet with stores on other hosts:
    /// for orientation. None for a test that it does not have.
    pub document_rate: Option<f64>,
    /// The least share of the disk's ceiling that is asked for, or none.
    pub asked_of_ceiling: Option<f64>,
    /// The least share of the rate with one source-paced store that is asked for, or none.
    pub asked_of_spp: Option<f64>,
    /// The largest latency that is asked for, as a multiple of that without a store: p50 and p99.
    pub asked_of_none: Option<[f64; 2]>,
}

/// Length of the document's messages, in bytes.
pub const PERSIST_SIZE: usize = 700;

/// The tests in the document's order.
pub const PERSIST_CASES: [PersistCase; 6] = [
    PersistCase {
        case: "streaming",
        mode: None,
        stores: 0,
        has_store_each: false,
        topics: 1,
        document_rate: Some(1_494_000.0),
        asked_of_ceiling: None,
        asked_of_spp: None,
        asked_of_none: None,
    },
    PersistCase {
        case: "1 SPP",
        mode: Some(PersistMode::Source),
        stores: 1,
        has_store_each: false,
        topics: 1,
        document_rate: Some(550_000.0),
        asked_of_ceiling: Some(0.8),
        asked_of_spp: None,
        asked_of_none: None,
    },
    PersistCase {
        case: "1 RPP",
        mode: Some(PersistMode::Receiver),
        stores: 1,
        has_store_each: false,
        topics: 1,
        document_rate: Some(760_000.0),
        asked_of_ceiling: None,
        asked_of_spp: Some(0.9),
        asked_of_none: None,
    },
    PersistCase {
        case: "3 RPP in quorum",
        mode: Some(PersistMode::Receiver),
        stores: 3,
        has_store_each: false,
        topics: 1,
        document_rate: Some(740_000.0),
        asked_of_ceiling: None,
        asked_of_spp: Some(0.45),
        asked_of_none: None,
    },
    PersistCase {
        case: "3 topics, 1 RPP each",
        mode: Some(PersistMode::Receiver),
        stores: 3,
        has_store_each: true,
        topics: 3,
        document_rate: Some(1_040_000.0),
        asked_of_ceiling: None,
        asked_of_spp: None,
        asked_of_none: None,
    },
    PersistCase {
        case: "3 topics, streaming",
        mode: None,
        stores: 0,
        has_store_each: false,
        topics: 3,
        document_rate: Some(1_560_000.0),
        asked_of_ceiling: None,
        asked_of_spp: None,
        asked_of_none: None,
    },
];

/// The live path at a fixed rate: without a store, and with one beside it.
pub const LIVE_CASES: [PersistCase; 2] = [
    PersistCase {
        case: "live, no store",
        mode: None,
        stores: 0,
        has_store_each: false,
        topics: 1,
        document_rate: None,
        asked_of_ceiling: None,
        asked_of_spp: None,
        asked_of_none: None,
    },
    PersistCase {
        case: "live, 1 SPP",
        mode: Some(PersistMode::Source),
        stores: 1,
        has_store_each: false,
        topics: 1,
        document_rate: None,
        asked_of_ceiling: None,
        asked_of_spp: None,
        asked_of_none: Some([1.05, 1.2]),
    },
];
