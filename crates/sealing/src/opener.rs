//! The opening half: ciphers and replay windows of the senders that were heard.

use crate::key_schedule::KeySchedule;
use crate::keys::SharedKey;
use crate::replay_window::ReplayWindow;
use crate::sealer::{SealMark, nonce};
use ring::aead;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

/// The most senders whose counters are remembered.
pub(crate) const SENDERS_MAX: usize = 4_096;

/// Why a frame was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not a sealed frame.
    NotSealed,
    /// Sealed with a key that is not known here.
    UnknownKey,
    /// Altered, or sealed by a program without the key.
    Forged,
    /// Opened before, or too old to tell.
    Repeated,
}

/// Opens the frames of all senders.
///
/// Its memory is bounded: strangers take none, and of holders of the keys 4,096 senders are
/// remembered, those of keys that are gone included, which may return; the one that was silent for
/// the longest gives way.
pub struct Opener {
    keys: KeySchedule,
    senders: HashMap<(u64, u16), Sender>,
    /// Senders under keys whose id belongs to another key now.
    displaced: Vec<((u64, u16), Sender)>,
    /// Frames opened so far: the time by which senders are silent.
    opened: u64,
}

struct Sender {
    key: SharedKey,
    cipher: aead::LessSafeKey,
    window: ReplayWindow,
    last_heard: u64,
}

impl Opener {
    /// Opens frames sealed with any of the keys.
    pub fn new(keys: KeySchedule) -> Self {
        Self { keys, senders: HashMap::new(), displaced: Vec::new(), opened: 0 }
    }

    /// Goes over to other keys; counters seen under those that stay, or return, remain known.
    pub fn set_keys(&mut self, keys: KeySchedule) {
        self.keys = keys;
        // A key that returns brings its senders' counters back, even if another one has had its id
        // in between.
        let keys = &self.keys;
        let is_other = |id, sender: &Sender| keys.key(id).is_some_and(|key| sender.key != key);
        let displaced = self.senders.extract_if(|(_, id), sender| is_other(*id, sender));
        self.displaced.extend(displaced);
        let is_back = |((_, id), sender): &mut ((u64, u16), Sender)| {
            keys.key(*id).is_some_and(|key| sender.key == key)
        };
        self.senders.extend(self.displaced.extract_if(.., is_back));
    }

    /// Opens a frame: ciphertext and tag are the bytes of `buffer` from `start` on. Returns the
    /// length of the frame, which now begins the buffer.
    ///
    /// # Errors
    /// If its sender does not have the key, or it was opened before. The buffer's content is
    /// undefined then.
    ///
    /// # Panics
    /// If `start` is beyond the buffer.
    pub fn open(
        &mut self,
        mark: SealMark,
        header: &[u8],
        buffer: &mut [u8],
        start: usize,
    ) -> Result<usize, Refusal> {
        let SealMark { key, sender, counter } = mark;
        let (nonce, header) = (nonce(counter), aead::Aad::from(header));
        let opened = self.opened + 1;
        match self.senders.entry((sender, key)) {
            Entry::Occupied(mut known) => {
                // Seen under a key that is gone.
                if self.keys.key(key).is_none() {
                    return Err(Refusal::UnknownKey);
                }
                let known = known.get_mut();
                if !known.window.is_new(counter) {
                    return Err(Refusal::Repeated);
                }
                let frame = known.cipher.open_within(nonce, header, buffer, start..);
                let length = frame.map_err(|_| Refusal::Forged)?.len();
                known.window.note(counter);
                known.last_heard = opened;
                self.opened = opened;
                Ok(length)
            }
            Entry::Vacant(place) => {
                let shared = self.keys.key(key).ok_or(Refusal::UnknownKey)?;
                let cipher = self.keys.cipher(key, sender).ok_or(Refusal::UnknownKey)?;
                let mut window = ReplayWindow::new();
                if !window.is_new(counter) {
                    return Err(Refusal::Repeated);
                }
                let frame = cipher.open_within(nonce, header, buffer, start..);
                let length = frame.map_err(|_| Refusal::Forged)?.len();
                window.note(counter);
                // Only a holder of the key gets here: strangers take no place.
                place.insert(Sender { key: shared, cipher, window, last_heard: opened });
                self.opened = opened;
                self.forget_one_beyond_the_limit();
                Ok(length)
            }
        }
    }

    /// The number of senders that are remembered.
    pub fn senders(&self) -> usize {
        self.senders.len() + self.displaced.len()
    }

    #[cold]
    fn forget_one_beyond_the_limit(&mut self) {
        if self.senders() <= SENDERS_MAX {
            return;
        }
        if !self.displaced.is_empty() {
            let silent =
                (0..self.displaced.len()).min_by_key(|at| self.displaced[*at].1.last_heard);
            silent.map(|at| self.displaced.swap_remove(at));
        } else {
            let silent = self.senders.iter().min_by_key(|(_, sender)| sender.last_heard);
            let silent = silent.map(|(id, _)| *id);
            silent.and_then(|id| self.senders.remove(&id));
        }
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("senders", &self.senders()).finish_non_exhaustive()
    }
}
