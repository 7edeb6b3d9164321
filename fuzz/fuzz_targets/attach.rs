//! A whole session, patched at places of the fuzzer's choice, attached to and read.
//!
//! The input is a list of patches of ten bytes: where (two bytes, the top bit chooses the
//! file), and eight bytes to put there.
#![no_main]

use lanecast_os::LockByte;
use lanecast_shm::{Domain, DomainSettings, Publisher, clean, inspect};
use lanecast_transport::{Event, Publish, SessionId, Subscribe, Transport};
use libfuzzer_sys::fuzz_target;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The number of the patched session: looked at before the honest one's.
const SESSION: u64 = 1;
const SESSION_OFFSET: u64 = 16;
const DATA_OFFSET: u64 = 64 << 10;

/// An honest session, to copy from, and to know when everybody has been looked at.
struct Stage {
    domain: Domain,
    honest: Publisher,
    directory: PathBuf,
    _owned: TempDir,
}

impl Stage {
    fn new() -> Self {
        let owned = TempDir::new_in("/dev/shm").expect("a directory");
        let directory = owned.path().join("domain");
        let domain = Domain::open(DomainSettings {
            directory: directory.clone(),
            window_bytes: 64 << 10,
            topics_max: 8,
            subscribers_max: 8,
            // The honest one is met where the others are: in the directory, and after them.
            local_join: false,
            ..DomainSettings::default()
        })
        .expect("a domain");
        let mut honest = domain.publisher("topic").expect("a publisher");
        (0..50u8).for_each(|number| honest.send(&[number; 40]).expect("room"));
        Self { domain, honest, directory, _owned: owned }
    }

    /// A copy of one file of the honest session, patched and owned by a living process.
    fn plant(&self, kind: &str, patches: &[(u64, [u8; 8])]) -> (PathBuf, LockByte) {
        let source = self.directory.join(format!("{}.{kind}", self.honest.session()));
        let hidden = self.directory.join("patched");
        fs::copy(source, &hidden).expect("a copy");
        let file = File::options().read(true).write(true).open(&hidden).expect("the copy");
        file.write_all_at(&SESSION.to_le_bytes(), SESSION_OFFSET).expect("room");
        for (offset, bytes) in patches {
            file.write_all_at(bytes, *offset).expect("room");
        }
        let lock = LockByte::try_take(file, 0).expect("locks work").expect("a new file");
        let path = self.directory.join(format!("{SESSION:016x}.{kind}"));
        fs::rename(hidden, &path).expect("a name");
        (path, lock)
    }

    fn attach(&self) {
        let mut subscriber = self.domain.subscriber(&["topic"]).expect("a subscriber");
        let honest: SessionId = self.honest.session();
        let (start, mut seen) = (Instant::now(), false);
        while !seen {
            assert!(start.elapsed() < Duration::from_secs(20), "a hang");
            subscriber.poll(64, |event| match event {
                Event::Joined(stream) => seen |= stream.session == honest,
                Event::Message(message) => {
                    std::hint::black_box(message.bytes().iter().fold(0, |sum, byte| sum ^ byte));
                }
                _ => {}
            });
        }
        for _ in 0..10 {
            subscriber.poll(64, |_| {});
        }
    }
}

fn patches(bytes: &[u8]) -> [Vec<(u64, [u8; 8])>; 2] {
    let mut files = [Vec::new(), Vec::new()];
    for patch in bytes.chunks_exact(10) {
        let place = u64::from(u16::from_le_bytes([patch[0], patch[1]]));
        let Some(word) = patch[2..].first_chunk() else { continue };
        if place & 0x8000 != 0 {
            files[1].push((place % (3 << 10), *word));
        } else if place & 0x4000 != 0 {
            files[0].push((DATA_OFFSET + place % 0x4000, *word));
        } else {
            files[0].push((place % (7 << 10), *word));
        }
    }
    files
}

fuzz_target!(|bytes: &[u8]| {
    static STAGE: OnceLock<Mutex<Stage>> = OnceLock::new();
    let stage = STAGE.get_or_init(|| Mutex::new(Stage::new()));
    let stage = stage.lock().unwrap_or_else(PoisonError::into_inner);
    let [mut ring, gate] = patches(bytes);
    // Read from the first message on, unless a patch says otherwise.
    ring.insert(0, (1024, 0u64.to_le_bytes()));
    let planted = [stage.plant("gate", &gate), stage.plant("ring", &ring)];
    stage.attach();
    let _ = inspect(&stage.directory).expect("the directory");
    let _ = clean(&stage.directory, true).expect("the directory");
    for (path, lock) in planted {
        let _ = fs::remove_file(path);
        drop(lock);
    }
});
