//! Simulated disk whose contents survive a crash only as far as they were synchronised.
//!
//! After a crash, each sector written since then has its contents of some moment between the last
//! synchronisation and the crash; a sector may even be torn. Names behave alike: of the changes
//! since the directory was synchronised, any may have happened. All of it is drawn from a seed.

mod file;
mod inode;
mod state;

pub use file::SimulatedFile;

use self::inode::Inode;
use self::state::{Change, SharedState, State};
use crate::rng::SimRng;
use lanecast_journal::{OpenMode, Storage, StorageResult};
use std::collections::BTreeMap;
use std::sync::MutexGuard;

/// A disk; clones are the same disk.
#[derive(Clone, Debug)]
pub struct SimulatedDisk(SharedState);

impl SimulatedDisk {
    /// Creates an empty disk of `capacity` bytes without faults.
    pub fn new(seed: u64, capacity: u64) -> Self {
        Self(SharedState::new(State {
            rng: SimRng::new(seed),
            inodes: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            changes: Vec::new(),
            life: 0,
            calls: 0,
            read_bytes: 0,
            stops_at: None,
            is_stopped: false,
            fails_at: None,
            capacity,
            writes_short: false,
            holds_preallocations: false,
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Number of calls that changed something, or tried to.
    pub fn calls(&self) -> u64 {
        self.state().calls
    }

    /// Bytes read from files.
    pub fn read_bytes(&self) -> u64 {
        self.state().read_bytes
    }

    /// Stops the machine in the middle of the `calls`th call that changes something from now on.
    pub fn stop_after(&self, calls: u64) {
        let mut state = self.state();
        state.stops_at = Some(state.calls + calls);
    }

    /// Whether the machine is stopped.
    pub fn is_stopped(&self) -> bool {
        self.state().is_stopped
    }

    /// Makes the next synchronisation from the `calls`th call on fail and lose part of its data;
    /// the kernel treats the pages as clean from then on.
    pub fn fail_sync_after(&self, calls: u64) {
        let mut state = self.state();
        state.fails_at = Some(state.calls + calls);
    }

    /// Sets the capacity in bytes.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Preallocations take until this is called again, without.
    pub fn hold_preallocations(&self, is_so: bool) {
        self.state().holds_preallocations = is_so;
    }

    /// Makes some writes partial.
    pub fn write_short(&self, is_so: bool) {
        self.state().writes_short = is_so;
    }

    /// Kills the process, not the machine: all writes remain visible.
    pub fn kill(&self) {
        let mut state = self.state();
        assert!(!state.is_stopped, "the machine stands still: crash it");
        state.life += 1;
        state.stops_at = None;
        state.fails_at = None;
    }

    /// Stops the machine and starts it again with the surviving contents.
    pub fn crash(&self) {
        let mut state = self.state();
        let state = &mut *state;
        state.life += 1;
        state.is_stopped = false;
        state.stops_at = None;
        state.fails_at = None;
        let mut names = state.durable_names.clone();
        let odds = state.rng.pick(&[0, 20, 50, 80, 100]);
        for change in state.changes.drain(..) {
            if state.rng.percent(odds) {
                change.apply(&mut names);
            }
        }
        state.names = names.clone();
        state.durable_names = names;
        for inode in &mut state.inodes {
            inode.crash(&mut state.rng);
        }
    }

    /// Changes the byte at `offset` of a file without a write.
    pub fn damage(&self, name: &str, offset: u64, with: u8) {
        let mut state = self.state();
        let inode = state.names[name];
        state.inodes[inode].damage(offset, with);
    }

    /// Contents of a file.
    pub fn contents(&self, name: &str) -> Vec<u8> {
        let state = self.state();
        state.inodes[state.names[name]].now().to_vec()
    }
}

impl Storage for SimulatedDisk {
    type File = SimulatedFile;
    type Lock = ();

    fn path(&self, name: &str) -> String {
        format!("disk/{name}")
    }

    fn lock(&self) -> StorageResult<()> {
        self.state().look("own", "")
    }

    fn list(&self) -> StorageResult<Vec<String>> {
        let state = self.state();
        state.look("list", "")?;
        Ok(state.names.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> StorageResult<SimulatedFile> {
        let mut state = self.state();
        state.begin("make", name)?;
        let inode = state.inodes.len();
        state.inodes.push(Inode::default());
        state.change(Change::Make(name.to_owned(), inode));
        state.end("make", name)?;
        Ok(SimulatedFile::new(self.0.clone(), inode, state.life, name))
    }

    fn open(&self, name: &str, _mode: OpenMode) -> StorageResult<SimulatedFile> {
        let state = self.state();
        state.look("open", name)?;
        let inode = state.find("open", name)?;
        Ok(SimulatedFile::new(self.0.clone(), inode, state.life, name))
    }

    fn remove(&self, name: &str) -> StorageResult<()> {
        let mut state = self.state();
        state.find("remove", name)?;
        state.begin("remove", name)?;
        state.change(Change::Remove(name.to_owned()));
        state.end("remove", name)
    }

    fn rename(&self, from: &str, to: &str) -> StorageResult<()> {
        let mut state = self.state();
        let inode = state.find("rename", from)?;
        state.begin("rename", from)?;
        state.change(Change::Rename(from.to_owned(), to.to_owned(), inode));
        state.end("rename", from)
    }

    fn sync_directory(&self) -> StorageResult<()> {
        let mut state = self.state();
        let stops = state.begin("synchronise", "")?;
        if !stops || state.rng.percent(50) {
            state.changes.clear();
            state.durable_names = state.names.clone();
        }
        state.end("synchronise", "")
    }
}
