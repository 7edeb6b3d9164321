//! A network in one process, from one seed, and checkers of the protocols that run on it.
//!
//! - [`agenda`], [`dice`]: time and chance
//! - [`link`], [`network`], [`pipe`]: what datagrams and streams of bytes go through
//! - [`payload`], [`truth`]: what is published
//! - [`ledger`]: what a subscriber was told, held against the truth
//! - [`traffic`]: what a socket may send
//! - [`history`]: what happened last, for the report of a failure
#![forbid(unsafe_code)]

pub mod agenda;
pub mod dice;
pub mod history;
pub mod ledger;
pub mod link;
pub mod network;
pub mod payload;
pub mod pipe;
pub mod traffic;
pub mod truth;
pub mod violation;
