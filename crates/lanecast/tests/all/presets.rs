//! The example configurations: each is accepted as a whole, and carries a message on loopback.

use lanecast::prelude::*;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

fn carries_a_message(file: &Path, port: u16) {
    let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
    let group = format!("239.194.{}.{}:{port}", std::process::id() >> 8 & 0xff, port & 0xff);
    let settings = [
        ("shm.directory", directory.path().join("domain").display().to_string()),
        ("net.interface", "127.0.0.1".into()),
        ("net.resolver_group", group),
        // Whatever the machine runs at it besides.
        ("net.port", "0".into()),
    ];
    let builder = Context::builder().file(file);
    let builder =
        settings.iter().try_fold(builder, |builder, (key, value)| builder.set(key, value));
    let context = builder.unwrap().build().unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let mut feed = context.subscriber("preset").unwrap();
    let mut publisher = context.publisher("preset").unwrap();
    assert!(publisher.wait_for_subscribers(1, PATIENCE), "{}", file.display());
    let (start, mut received) = (Instant::now(), Vec::new());
    while received.is_empty() {
        assert!(start.elapsed() < PATIENCE, "{}", file.display());
        // Repeated: on an overloaded machine the first attempt may find no subscriber.
        publisher.send(b"carried").unwrap();
        let work = feed.poll(8, |event| {
            if let Event::Message(message) = event {
                received = message.bytes().to_vec();
            }
        });
        feed.wait(work);
    }
    assert_eq!(received, b"carried");
}

#[test]
fn every_preset_carries_messages() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/config");
    let files = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for (file, port) in files.iter().zip(31_000..) {
        carries_a_message(file, port);
    }
}
