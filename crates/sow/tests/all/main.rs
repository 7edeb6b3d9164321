//! The integration tests of this crate, in one program.

mod crash;
mod deletion;
mod durable;
mod feed;
mod fence;
mod kill;
mod query;
mod topic;
mod topics;
mod views;
