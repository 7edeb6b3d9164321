//! An open file of the disk.

use super::state::{SharedState, State, error};
use lanecast_journal::{StorageErrorKind, StorageResult, StoredFile, Throttle};

/// An open file of a simulated disk.
#[derive(Debug)]
pub struct SimulatedFile {
    disk: SharedState,
    inode: usize,
    life: u32,
    name: String,
}

impl SimulatedFile {
    pub(super) fn new(disk: SharedState, inode: usize, life: u32, name: &str) -> Self {
        Self { disk, inode, life, name: name.to_owned() }
    }

    fn look(&self, state: &State, operation: &'static str) -> StorageResult<()> {
        if state.life != self.life {
            return Err(error(
                operation,
                &self.name,
                StorageErrorKind::Other,
                "it was opened before the crash",
            ));
        }
        state.look(operation, &self.name)
    }

    fn begin(&self, state: &mut State, operation: &'static str) -> StorageResult<bool> {
        self.look(state, operation)?;
        state.begin(operation, &self.name)
    }
}

impl StoredFile for SimulatedFile {
    fn length(&self) -> StorageResult<u64> {
        let state = self.disk.lock();
        self.look(&state, "look at")?;
        Ok(state.inodes[self.inode].now().len() as u64)
    }

    fn preallocate(&self, bytes: u64, _throttle: Throttle<'_>) -> StorageResult<()> {
        let mut state = self.disk.lock();
        while state.holds_preallocations {
            drop(state);
            std::thread::yield_now();
            state = self.disk.lock();
        }
        self.begin(&mut state, "reserve space for")?;
        let has = state.inodes[self.inode].now().len() as u64;
        if state.used() + bytes.saturating_sub(has) > state.capacity {
            let message = "no space left on the simulated disk";
            return Err(error("reserve space for", &self.name, StorageErrorKind::NoSpace, message));
        }
        state.inodes[self.inode].set_length(bytes as usize);
        state.end("reserve space for", &self.name)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> StorageResult<usize> {
        let mut state = self.disk.lock();
        self.begin(&mut state, "write")?;
        let mut length = bytes.len();
        if state.writes_short && length > 1 && state.rng.percent(30) {
            length = state.rng.within(1..=length as u64 - 1) as usize;
        }
        state.inodes[self.inode].write(offset as usize, &bytes[..length]);
        state.end("write", &self.name)?;
        Ok(length)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> StorageResult<usize> {
        let mut state = self.disk.lock();
        self.look(&state, "read")?;
        let now = state.inodes[self.inode].now();
        let from = now.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
        let length = bytes.len().min(now.len() - from);
        bytes[..length].copy_from_slice(&now[from..from + length]);
        state.read_bytes += length as u64;
        Ok(length)
    }

    fn sync_data(&self) -> StorageResult<()> {
        let mut state = self.disk.lock();
        let stops = self.begin(&mut state, "synchronise")?;
        let state = &mut *state;
        let inode = &mut state.inodes[self.inode];
        if state.fails_at.is_some_and(|at| state.calls >= at) {
            state.fails_at = None;
            inode.sync_badly(&mut state.rng);
            let message = "input/output error of the simulated disk";
            return Err(error("synchronise", &self.name, StorageErrorKind::Other, message));
        }
        if !stops || state.rng.percent(50) {
            inode.sync();
        }
        state.end("synchronise", &self.name)
    }

    fn set_length(&self, bytes: u64) -> StorageResult<()> {
        let mut state = self.disk.lock();
        self.begin(&mut state, "cut")?;
        state.inodes[self.inode].set_length(bytes as usize);
        state.end("cut", &self.name)
    }
}
