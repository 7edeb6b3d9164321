//! The integration tests of this crate, in one program.

#[cfg(feature = "tokio")]
mod asynchronous;
#[path = "../../../tls/tests/all/certificates.rs"]
mod certificates;
mod cuts;
mod ends;
mod secrecy;
mod talk;
mod test_server;
mod versions;
