//! The measuring house: load shapes, recording, and the experiments of the source documents,
//! over any transport.
//!
//! - [`publisher`], [`subscriber`], [`jitter`]: the experiments, each run in the calling thread;
//! - [`ping`]: round trips of messages that are sent on a schedule;
//! - [`record`]: what a measuring message carries;
//! - [`pacing`]: schedules that catch up, even or in bursts, and runs without one;
//! - [`Recorder`], [`Distribution`], [`Latency`], [`Linear`]: times and their percentiles;
//! - [`Interference`], [`PriorityChange`], [`Pinning`]: what a figure is worth on a shared machine;
//! - [`smx`]: the SMX document's series, case by case, with what the document says of each;
//! - [`pipes`], [`rings`]: messages between threads of one process, as two more documents measure
//!   them;
//! - [`fanout`]: bursts of messages from a few to many, each by its own filter;
//! - [`floor`]: what the system's own sockets can do, which no transport can be faster than;
//! - [`report`]: results as `key=value, ` lines; as JSON, the result types serialise themselves;
//! - [`Head`], [`Host`], [`Kind`]: what makes a result a line that can be read by itself;
//! - [`Baseline`]: what the machine can do at the moment;
//! - [`doctor`]: what on this machine disturbs measurements, and how to mend it.
//!
//! A figure that these experiments give carries what it needs to be believed: the clock and its
//! cost, the CPUs, how each side waited, how much of a message was touched, what was lost, and
//! what disturbed the thread.
#![forbid(unsafe_code)]

mod baseline;
mod conditions;
mod core_to_core;
mod distribution;
pub mod doctor;
mod expected;
pub mod fanout;
mod flags;
mod host;
mod interference;
pub mod jitter;
mod latency;
mod line;
mod linear;
mod monitor;
mod names;
mod numa;
mod number;
mod outcome;
pub mod pacing;
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
pub use conditions::{Conditions, Setup};
pub use distribution::Distribution;
pub use expected::expected_time;
pub use flags::{Flags, UnknownFlags};
pub use host::Host;
pub use interference::{CounterSnapshot, Interference, Watched};
pub use latency::{Latency, LatencyRecorder};
pub use line::{Head, Kind, SCHEMA};
pub use linear::{Linear, LinearResult, LinearShape};
pub use numa::{Numa, NumaPlacement, NumaPlacementError};
pub use number::{NumberError, parse_number};
pub use outcome::{Figures, JitterResult, PublisherResult, StreamResult, SubscriberResult};
pub use pinning::{Cpus, PinChoice, Pinning, PinningError};
pub use priority::{PriorityChange, PriorityRequest};
pub use recorder::{EXACT_NS, Recorder};
pub use threads::{DeliveryErrors, Failed, Outcome, Role, ThreadResult};
pub use touch::Touch;
