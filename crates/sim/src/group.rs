//! Members of one group, checked against each other.
//!
//! - [`event`], [`outlet`]: what a member emits
//! - [`fault`], [`scenario`]: conditions of a run, drawn from its seed
//! - [`truth`], [`log`], [`oracle`]: sent messages, deliveries, and the guarantees
//! - [`tamper`]: defects that the oracle must find
//! - [`note`]: notes for the report of a failure

pub mod event;
pub mod fault;
pub mod log;
pub mod note;
pub mod oracle;
pub mod outlet;
pub mod scenario;
pub mod tamper;
pub mod truth;
