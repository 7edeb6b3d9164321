//! Measures lanecast: load shapes, latency recording, and the experiments of the source documents,
//! over any transport.
//!
//! - [`publisher`], [`subscriber`], [`jitter`]: experiments that run in the calling thread;
//! - [`ping`]: round trips of messages on a schedule;
//! - [`smx`], [`pipes`], [`rings`], [`fanout`]: the series of the source documents, each with the
//!   document's reference figures;
//! - [`group`]: the group test of the JGroups document, over any transport of groups;
//! - [`persistent`]: publishers and subscribers of experiments whose messages stores keep;
//! - [`socket_baseline`]: the speed of bare sockets, which no network transport can exceed;
//! - [`doctor`]: conditions of the machine that disturb measurements, and remedies.
//!
//! The path of a figure: [`pacing`] decides when a message is sent, `sender` writes its [`record`],
//! `stream_stats` checks and times it at the subscriber, a [`Recorder`] counts the time, and a
//! [`Distribution`] holds percentiles. `monitor` adds the [`Conditions`]: clock and its cost, CPUs,
//! wait strategy, touched bytes, and [`Interference`] with the thread. [`Head`] makes the result a
//! measurement line of a [`Kind`]; [`report`] makes it lines of `key=value, `.
#![forbid(unsafe_code)]

mod baseline;
mod conditions;
mod core_to_core;
mod distribution;
pub mod doctor;
mod expected;
pub mod fanout;
mod flags;
pub mod group;
mod holes;
mod host;
mod interference;
pub mod jitter;
mod latency;
mod line;
mod linear;
mod monitor;
mod names;
mod nearest_cpu;
mod numa;
mod number;
mod outcome;
pub mod pacing;
pub mod persistent;
pub mod ping;
mod pinning;
pub mod pipes;
mod priority;
mod probe;
pub mod publisher;
mod real_time;
pub mod record;
mod recorder;
pub mod report;
pub mod rings;
mod root;
mod sender;
pub mod smx;
pub mod socket_baseline;
mod stream_stats;
pub mod subscriber;
mod threads;
mod touch;

pub use baseline::Baseline;
pub use conditions::{Conditions, DatagramIo, Setup};
pub use distribution::Distribution;
pub use expected::expected_time;
pub use flags::{Flags, UnknownFlags};
pub use host::Host;
pub use interference::{CounterSnapshot, Interference, Watched};
pub use latency::{Latency, LatencyRecorder};
pub use line::{Head, Kind, SCHEMA};
pub use linear::{Linear, LinearResult, LinearShape};
pub use nearest_cpu::{CardCpus, CpuSends, count_sends, nearest};
pub use numa::{Numa, NumaPlacement, NumaPlacementError};
pub use number::{NumberError, parse_number};
pub use outcome::{Figures, JitterResult, PublisherResult, StreamResult, SubscriberResult};
pub use pinning::{Cpus, PinChoice, Pinning, PinningError};
pub use priority::{PriorityChange, PriorityRequest};
pub use recorder::{EXACT_NS, Recorder};
pub use threads::{DeliveryErrors, Failed, Outcome, Role, ThreadResult};
pub use touch::Touch;
