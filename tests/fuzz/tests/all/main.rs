//! The fuzz targets on any compiler: each over its kept inputs, and over variations of them.
//!
//! `make fuzz` is guided by coverage and needs a C++ compiler; this is neither, and finds at once
//! what breaks a target. Variations come from their number, so each run begins with the same ones.
//! `LONG_TESTS=1` runs each target for a minute.
#![forbid(unsafe_code)]
#![allow(unused_attributes, reason = "elsewhere, each target is the root of a program")]

// Names of two other crates, so that the targets are taken as they are.
extern crate self as lanecast_fuzz;
extern crate self as libfuzzer_sys;

#[expect(unreachable_pub, reason = "elsewhere it is a crate")]
#[path = "../../../../fuzz/src/lib.rs"]
mod tools;
mod vary;

pub(crate) use tools::{Grammar, Near, Script, frame};

/// Stands in for libFuzzer's macro; in a module, so that the targets' import of it is one.
mod stand_in {
    macro_rules! fuzz_target {
        (|$bytes:ident: &[u8]| $body:block) => {
            pub(crate) fn run($bytes: &[u8]) $body
        };
    }
    pub(crate) use fuzz_target;
}
pub(crate) use stand_in::fuzz_target;

/// Each target as a module, and a test that runs it.
macro_rules! targets {
    ($($name:ident $path:literal)*) => {
        $(
            #[path = $path]
            mod $name;
        )*

        mod targets {
            $(
                #[test]
                fn $name() {
                    crate::vary::run(stringify!($name), crate::$name::run);
                }
            )*
        }
    };
}

targets! {
    attach "../../../../fuzz/fuzz_targets/attach.rs"
    checkpoint "../../../../fuzz/fuzz_targets/checkpoint.rs"
    commands "../../../../fuzz/fuzz_targets/commands.rs"
    content "../../../../fuzz/fuzz_targets/content.rs"
    ethernet "../../../../fuzz/fuzz_targets/ethernet.rs"
    filters "../../../../fuzz/fuzz_targets/filters.rs"
    frames "../../../../fuzz/fuzz_targets/frames.rs"
    group "../../../../fuzz/fuzz_targets/group.rs"
    headers "../../../../fuzz/fuzz_targets/headers.rs"
    index "../../../../fuzz/fuzz_targets/index.rs"
    engine "../../../../fuzz/fuzz_targets/engine.rs"
    journal "../../../../fuzz/fuzz_targets/journal.rs"
    messages "../../../../fuzz/fuzz_targets/messages.rs"
    receiver "../../../../fuzz/fuzz_targets/receiver.rs"
    resolver_server "../../../../fuzz/fuzz_targets/resolver_server.rs"
    resolver "../../../../fuzz/fuzz_targets/resolver.rs"
    sealed "../../../../fuzz/fuzz_targets/sealed.rs"
    sender "../../../../fuzz/fuzz_targets/sender.rs"
    settings "../../../../fuzz/fuzz_targets/settings.rs"
    store "../../../../fuzz/fuzz_targets/store.rs"
    tls "../../../../fuzz/fuzz_targets/tls.rs"
    watch "../../../../fuzz/fuzz_targets/watch.rs"
}
