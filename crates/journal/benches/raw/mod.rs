//! The minimal log: a checksum, a write and a synchronization. No checksum chain, segments, readers
//! or recovery.

use crate::BODY;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

const MIB: usize = 1 << 20;

/// Bodies that differ, made at next to no cost.
pub(crate) struct Fill(u64);

impl Fill {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn fill(&mut self, body: &mut [u8; BODY]) {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = self.0.to_le_bytes();
        body.as_chunks_mut::<8>().0.iter_mut().for_each(|chunk| *chunk = word);
    }
}

/// Length, checksum, key, body; in a file that has all its blocks.
pub(crate) struct RawLog {
    file: File,
    room: u64,
    offset: u64,
    buffer: Vec<u8>,
}

impl RawLog {
    pub(crate) fn create(path: &Path, room: u64) -> Self {
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).open(path).expect("a file");
        if file.metadata().expect("a file").len() < room {
            let zeros = vec![0; MIB];
            for offset in (0..room).step_by(MIB) {
                file.write_all_at(&zeros, offset).expect("room");
            }
            file.sync_all().expect("a disk");
        }
        Self { file, room, offset: 0, buffer: Vec::new() }
    }

    /// The same in a sparse file.
    pub(crate) fn create_bare(path: &Path, room: u64) -> Self {
        // A missing file is no error.
        let _ = std::fs::remove_file(path);
        let file = File::options().create(true).truncate(true).write(true).open(path);
        let file = file.expect("a file");
        file.set_len(room).expect("room");
        file.sync_all().expect("a disk");
        Self { file, room, offset: 0, buffer: Vec::new() }
    }

    pub(crate) fn persist(&mut self, bodies: &[[u8; BODY]]) {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        bodies.iter().for_each(|body| append(&mut buffer, body));
        self.write(&buffer);
        self.buffer = buffer;
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.offset + bytes.len() as u64 > self.room {
            self.offset = 0;
        }
        self.file.write_all_at(bytes, self.offset).expect("written");
        self.offset += bytes.len() as u64;
        self.file.sync_data().expect("synchronised");
    }
}

fn append(buffer: &mut Vec<u8>, body: &[u8; BODY]) {
    let start = buffer.len();
    buffer.extend_from_slice(&[0; 8]);
    buffer.extend_from_slice(&body[..8]);
    buffer.extend_from_slice(body);
    let crc = lanecast_wire::checksum::crc32c(&buffer[start + 8..]);
    buffer[start..start + 4].copy_from_slice(&crc.to_le_bytes());
    buffer[start + 4..start + 8].copy_from_slice(&(BODY as u32 + 8).to_le_bytes());
}

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    next: u64,
    durable: u64,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

/// Group commit over a raw log: a committer thread writes the records that arrived during the last
/// synchronization.
pub(crate) struct RawGroup {
    shared: Arc<Shared>,
    committer: JoinHandle<()>,
}

impl RawGroup {
    pub(crate) fn start(mut log: RawLog) -> Self {
        let shared = Arc::new(Shared::default());
        let behind = Arc::clone(&shared);
        let committer = std::thread::spawn(move || {
            let mut state = behind.state.lock().expect("lock");
            loop {
                while state.bytes.is_empty() && !state.is_over {
                    state = behind.work.wait(state).expect("lock");
                }
                if state.bytes.is_empty() {
                    return;
                }
                let (bytes, next) = (std::mem::take(&mut state.bytes), state.next);
                drop(state);
                log.write(&bytes);
                state = behind.state.lock().expect("lock");
                state.durable = next;
                behind.done.notify_all();
            }
        });
        Self { shared, committer }
    }

    pub(crate) fn persist(&self, body: &[u8; BODY]) {
        let mut state = self.shared.state.lock().expect("lock");
        append(&mut state.bytes, body);
        state.next += 1;
        let own = state.next;
        self.shared.work.notify_one();
        while state.durable < own {
            state = self.shared.done.wait(state).expect("lock");
        }
    }

    pub(crate) fn stop(self) {
        self.shared.state.lock().expect("lock").is_over = true;
        self.shared.work.notify_one();
        self.committer.join().expect("the committer");
    }
}
