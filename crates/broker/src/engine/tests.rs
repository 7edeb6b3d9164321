//! Tests of the engine without sockets.

mod catching_up;
mod conflation;
mod deletions;
mod flow_control;
mod logons;
mod patterns;
mod topics;
mod views;

use std::time::{Duration, Instant};

/// Waits until `is_so`, which the journal's thread brings about.
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::yield_now();
    }
}
