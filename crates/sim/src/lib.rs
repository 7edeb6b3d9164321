//! A network and a disk in one process, from one seed, and checkers of what runs on them.
//!
//! - [`agenda`], [`dice`]: time and chance
//! - [`link`], [`network`], [`pipe`]: what datagrams and streams of bytes go through
//! - [`payload`], [`truth`]: what is published
//! - [`ledger`]: what a subscriber was told, held against the truth
//! - [`traffic`], [`tails`]: what a socket may send, and has to
//! - [`history`]: what happened last, for the report of a failure
//! - [`scenario`], [`fault`]: what a run is like, drawn from its seed
//! - [`publisher`], [`subscriber`], [`hearing`], [`connection`]: actors, with the real protocols
//! - [`line`](mod@line): a world of its own, in which what is asked is how long a message takes
//! - [`medium`], [`world`]: what they act in, and what drives them
//! - [`trial`]: a run from its seed to its verdict
//! - [`disk`]: files that survive a crash in part
#![forbid(unsafe_code)]

pub mod agenda;
pub mod connection;
pub mod dice;
pub mod disk;
pub mod fault;
pub mod hearing;
pub mod history;
pub mod ledger;
pub mod line;
pub mod link;
pub mod medium;
pub mod network;
pub mod payload;
pub mod pipe;
pub mod publisher;
pub mod scenario;
pub mod subscriber;
pub mod tails;
pub mod traffic;
pub mod trial;
pub mod truth;
pub mod violation;
pub mod world;
