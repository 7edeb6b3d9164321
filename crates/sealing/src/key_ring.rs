//! The keys of a program's datagrams, which all its sockets share and which change while it runs.

use crate::key_file::{KeyFile, KeyFileError};
use crate::key_schedule::KeySchedule;
use crate::keys::SharedKeys;
use lanecast_base::sync::{AtomicU64, Ordering};
use lanecast_os::trusted_file::FileStamp;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The purpose of the keys.
const LABEL: &str = "lanecast net 1";

/// Keys that all sockets of a program share. Those of a file are read again when it changes.
///
/// One thread calls [`refresh`](Self::refresh); all others compare [`version`](Self::version)s, a
/// load, and take the keys when theirs are old.
#[derive(Debug)]
pub struct KeyRing {
    version: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    keys: KeySchedule,
    file: Option<(KeyFile, FileStamp)>,
}

impl KeyRing {
    /// A ring of `keys`.
    pub fn new(keys: &SharedKeys) -> Self {
        Self::of(keys, None)
    }

    /// Reads the keys of `file`.
    ///
    /// # Errors
    /// As [`KeyFile::read`].
    pub fn open(file: KeyFile) -> Result<Self, KeyFileError> {
        let (keys, stamp) = file.read_stamped()?;
        Ok(Self::of(&keys, Some((file, stamp))))
    }

    fn of(keys: &SharedKeys, file: Option<(KeyFile, FileStamp)>) -> Self {
        let keys = KeySchedule::new(keys, LABEL, &[]);
        Self { version: AtomicU64::new(0), state: Mutex::new(State { keys, file }) }
    }

    /// Replaces the keys.
    pub fn set(&self, keys: &SharedKeys) {
        self.replace(&mut self.lock(), keys);
    }

    /// Reads the file again if it has changed; returns whether it has. After an error the keys stay
    /// as they are, and the next call tries again.
    ///
    /// # Errors
    /// As [`KeyFile::read`].
    pub fn refresh(&self) -> Result<bool, KeyFileError> {
        let mut state = self.lock();
        let Some((file, stamp)) = &mut state.file else { return Ok(false) };
        if file.stamp() == Some(*stamp) {
            return Ok(false);
        }
        let (keys, read) = file.read_stamped()?;
        *stamp = read;
        self.replace(&mut state, &keys);
        Ok(true)
    }

    fn replace(&self, state: &mut State, keys: &SharedKeys) {
        state.keys = KeySchedule::new(keys, LABEL, &[]);
        // The lock orders the keys; the version only tells that there are other ones.
        self.version.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of the keys; another one after they have changed.
    #[inline]
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Relaxed)
    }

    /// The keys and their version.
    pub fn keys(&self) -> (u64, KeySchedule) {
        let state = self.lock();
        (self.version(), state.keys.clone())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
