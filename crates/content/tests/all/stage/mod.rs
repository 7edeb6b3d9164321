//! Contexts isolated from other tests.

use lanecast::Context;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A publisher context and a subscriber context.
pub(crate) struct Stage {
    pub(crate) publishers: Context,
    pub(crate) subscribers: Context,
    _directory: TempDir,
}

impl Stage {
    /// Both contexts over `transports`; `threads` is anonymous memory.
    pub(crate) fn new(transports: &str) -> Self {
        Self::with(transports, &[])
    }

    /// As `new`, with additional settings. 4.| Liveness outlasts a test machine that is busy for
    /// seconds.
    pub(crate) fn with(transports: &str, own: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let port = 40_000 + NEXT.fetch_add(2, Ordering::Relaxed);
        let run = std::process::id() as u16;
        let group = |port| format!("239.194.{}.{}:{port}", run >> 8, run & 0xff);
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let is_threads = transports == "threads";
        let context = || {
            let settings = [
                ("transports", if is_threads { "shm" } else { transports }.to_owned()),
                ("shm.visibility", if is_threads { "process" } else { "host" }.to_owned()),
                ("shm.directory", directory.path().join("domain").display().to_string()),
                ("shm.window", "64KiB".into()),
                ("net.window", "64KiB".into()),
                ("filter.message_type", "fix".into()),
                // A machine that is busy elsewhere for seconds is not dead.
                ("net.liveness", "20s".into()),
                ("net.resolver_group", group(port)),
                ("net.group", group(port + 1)),
            ];
            let settings = settings.iter().map(|(key, value)| (*key, &**value));
            let mut settings = settings.chain(own.iter().copied());
            let builder =
                settings.try_fold(Context::builder(), |b, (key, value)| b.set(key, value));
            builder.expect("settings").build().expect("a context")
        };
        let publishers = context();
        let subscribers = if is_threads { publishers.clone() } else { context() };
        Self { publishers, subscribers, _directory: directory }
    }
}

/// Waits until `is_so` returns true; the condition also drives the work.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "not yet: {what}");
        std::thread::yield_now();
    }
}
