//! Many members of one group over the simulated network: loss, reordering, copies, partitions,
//! crashes, hangs and restarts, drawn from a seed, and an oracle that checks every event.
//!
//! - [`scenario`], [`fault`]: conditions of a run
//! - [`clock`]: incarnations, as hosts with good and bad clocks number them
//! - [`process`], [`outlet`], [`event`]: a member, and what it emits
//! - [`fabric`], [`stream_link`], [`world`]: the network, the members on it, and the event loop
//! - [`truth`], [`log`], [`oracle`]: sent messages, deliveries, and the guarantees
//! - [`suspicions`]: each crash is told once
//! - [`tamper`]: defects that the oracle must find
//! - [`explore`](mod@explore): every interleaving of small scopes
//! - [`run`](mod@run), [`note`]: one run, and the report of a failure

pub mod clock;
pub mod event;
pub mod explore;
pub mod fabric;
pub mod fault;
pub mod log;
pub mod note;
pub mod oracle;
pub mod outlet;
pub mod process;
pub mod run;
pub mod scenario;
pub mod stream_link;
pub mod suspicions;
pub mod tamper;
pub mod truth;
pub mod world;
