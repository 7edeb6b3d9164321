//! The integration tests of this crate, in one program.

#[cfg(feature = "tokio")]
mod asynchronous;
mod cuts;
mod desk;
#[path = "../../../broker/tests/all/desk/papers.rs"]
mod papers;
mod secrecy;
mod talk;
