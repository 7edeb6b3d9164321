//! The integration tests of this crate, in one program.

mod adverts;
mod allocations;
#[expect(dead_code, reason = "it also makes what other crates' tests need")]
#[path = "../../../tls/tests/all/certificates.rs"]
mod certificates;
mod delivery;
mod groups;
mod handshakes;
mod interruptions;
mod jumbo;
mod keep_warm;
mod leaving;
mod one_receiver;
mod packing;
mod panics;
mod patterns;
mod peers;
mod rate;
mod receive_threads;
mod reporting;
mod resolver;
mod sealing;
mod silent;
mod tls;
mod transports;
mod turns;
mod versions;
mod wakeups;
