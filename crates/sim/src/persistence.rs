//! Persistent streams: publishers that crash and come back, and stores that crash, come back, or
//! lose their data, in one world.
//!
//! - [`explore`]: every order of events in small scopes
//! - [`log`]: a store's log, on a disk that forgets what was not synchronized
//! - [`oracle`]: the messages that were told to be stable, and the checks
//! - [`outcome`]: counts of runs
//! - [`scenario`]: conditions of a run, drawn from its seed
//! - [`tamper`]: deliberate defects, which the oracle has to find
//! - [`world`]: the actors, with the real machines, and their event loop

mod actors;
mod checks;
mod collected;
mod departure;
mod departures;
mod event;
pub mod explore;
pub mod log;
pub mod oracle;
pub mod outcome;
mod processes;
mod receivers;
mod registered_runs;
pub mod scenario;
mod sessions;
mod standstill;
mod store_list;
mod store_lists;
pub mod tamper;
mod timeline;
mod wanted_range;
pub mod world;
