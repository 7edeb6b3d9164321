//! The integration tests of this crate, in one program.

mod crash;
mod deletion;
mod durable;
mod feed;
mod fence;
mod kill;
mod query;
mod schema;
mod topic;
mod topics;
mod views;
