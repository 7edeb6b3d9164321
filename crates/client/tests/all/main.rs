//! The integration tests of this crate, in one program.

#[cfg(feature = "tokio")]
mod asynchronous;
#[path = "../../../broker/tests/all/test_server/certificates.rs"]
mod certificates;
mod cuts;
mod secrecy;
mod talk;
mod test_server;
mod versions;
