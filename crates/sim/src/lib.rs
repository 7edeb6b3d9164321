//! Deterministic simulation of a network and a disk in one process, and checkers of the protocols
//! that run on them. Every run replays from its seed.
//!
//! - [`event_queue`], [`rng`]: time and random numbers
//! - [`link`], [`network`], [`pipe`]: paths of datagrams and of byte streams
//! - [`payload`], [`truth`]: published messages
//! - [`ledger`], [`checked_receiver`]: deliveries, checked against the published messages
//! - [`traffic`], [`tails`]: checks of the frames that a socket sends
//! - [`history`]: latest events, for the report of a failure
//! - [`scenario`], [`fault`]: conditions of a run, drawn from its seed
//! - [`publisher`], [`subscriber`], [`connection`]: actors, with the real protocols
//! - [`fabric`], [`world`]: the environment of the actors, and their event loop
//! - [`roster`]: checks the events of the publisher
//! - [`run`](mod@run): one run, from its seed to its outcome
//! - [`latency`]: latencies under set conditions, in simulated time
//! - [`group`]: members of a group, many in one world
//! - `digest`, `part`: states that an exploration knows again
//! - [`persistence`]: publishers and stores that agree on what is kept
//! - [`disk`]: files that survive a crash in part
#![forbid(unsafe_code)]

pub mod checked_receiver;
pub mod connection;
mod digest;
pub mod disk;
pub mod event_queue;
pub mod fabric;
pub mod fault;
pub mod group;
pub mod history;
pub mod latency;
pub mod ledger;
pub mod link;
pub mod network;
mod part;
pub mod payload;
pub mod persistence;
pub mod pipe;
pub mod publisher;
pub mod rng;
pub mod roster;
pub mod run;
pub mod scenario;
pub mod subscriber;
pub mod tails;
pub mod traffic;
pub mod truth;
pub mod violation;
pub mod world;
