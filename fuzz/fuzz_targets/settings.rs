//! Any text, read as a content server's file of settings: refused in words, or settings whose
//! topics and views can be made or are refused in words.
#![no_main]

use lanecast_broker::{Hub, Settings};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Settings::from_toml(text) {
        Err(message) => assert!(!message.is_empty()),
        Ok(settings) => {
            if let Err(error) = settings.check() {
                assert!(!error.to_string().is_empty());
            }
            // What is kept on a disk is not for a fuzzer.
            if settings.storage.is_none()
                && let Err(error) = Hub::new(settings)
            {
                assert!(!error.to_string().is_empty());
            }
        }
    }
});
