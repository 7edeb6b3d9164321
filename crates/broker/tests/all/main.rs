//! The integration tests of this crate, in one program.

#[path = "../../../tls/tests/all/certificates.rs"]
mod certificates;
mod doors;
mod durable;
mod exchanges;
mod kept;
mod kill;
mod parts;
mod secret;
mod sequences;
mod served;
mod shared;
mod slow;
mod strangers;
mod test_server;
mod views;
mod websocket;
