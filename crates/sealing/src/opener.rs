//! The opening half: ciphers and replay windows of the senders that were heard.

use crate::key_schedule::KeySchedule;
use crate::keys::Fingerprint;
use crate::replay_window::ReplayWindow;
use crate::sealer::{SealMark, nonce};
use ring::aead;
use std::collections::HashMap;
use std::fmt;

/// The most senders whose counters are remembered.
pub(crate) const SENDERS_MAX: usize = 4_096;
/// The fewest new senders between two looks for silent ones.
const LOOK_MIN: usize = 64;

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
/// the longest gives way. Senders that are heard have a cipher and a window of counters, about a
/// kilobyte; of those that fell silent only the highest counter stays.
pub struct Opener {
    keys: KeySchedule,
    /// Senders that were heard of late, under keys that are known.
    active: HashMap<(u64, u16), Box<ActiveSender>>,
    /// All others. Fingerprints and not ids tell their keys apart: two keys may have one id after
    /// another. No key stays in memory for senders that are gone.
    silent: HashMap<(u64, Fingerprint), SilentSender>,
    /// Frames opened so far: the time by which senders are silent.
    opened: u64,
    /// Frames opened at the last look for silent senders, and the active senders at the next one.
    looked_at: u64,
    next_look: usize,
}

/// A sender with its cipher.
struct ActiveSender {
    key: Fingerprint,
    cipher: aead::LessSafeKey,
    window: ReplayWindow,
    last_heard: u64,
}

/// A sender of which nothing came for long.
struct SilentSender {
    /// One more than the highest counter seen.
    next: u64,
    last_heard: u64,
}

impl Opener {
    /// Opens frames sealed with any of the keys.
    pub fn new(keys: KeySchedule) -> Self {
        Self {
            keys,
            active: HashMap::new(),
            silent: HashMap::new(),
            opened: 0,
            looked_at: 0,
            next_look: LOOK_MIN,
        }
    }

    /// Goes over to other keys; counters seen under those that stay, or return, remain known.
    pub fn set_keys(&mut self, keys: KeySchedule) {
        self.keys = keys;
        let keys = &self.keys;
        let is_gone = |id: u16, sender: &ActiveSender| keys.fingerprint(id) != Some(sender.key);
        let gone = self.active.extract_if(|(_, id), sender| is_gone(*id, sender));
        self.silent.extend(gone.map(|((sender, _), known)| known.fall_silent(sender)));
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
        let Some(known) = self.active.get_mut(&(mark.sender, mark.key)) else {
            return self.open_first(mark, header, buffer, start);
        };
        let length = known.open(mark.counter, header, buffer, start)?;
        self.opened += 1;
        known.last_heard = self.opened;
        Ok(length)
    }

    /// Opens the first frame of a sender, or the first one after a silence.
    #[cold]
    fn open_first(
        &mut self,
        mark: SealMark,
        header: &[u8],
        buffer: &mut [u8],
        start: usize,
    ) -> Result<usize, Refusal> {
        let key = self.keys.fingerprint(mark.key).ok_or(Refusal::UnknownKey)?;
        let cipher = self.keys.cipher(mark.key, mark.sender).ok_or(Refusal::UnknownKey)?;
        let next = self.silent.get(&(mark.sender, key)).map_or(0, |silent| silent.next);
        let window = ReplayWindow::beginning_at(next);
        let mut sender = Box::new(ActiveSender { key, cipher, window, last_heard: 0 });
        let length = sender.open(mark.counter, header, buffer, start)?;
        // Only a holder of the key gets here: strangers take no place.
        self.silent.remove(&(mark.sender, key));
        self.opened += 1;
        sender.last_heard = self.opened;
        self.active.insert((mark.sender, mark.key), sender);
        self.look_for_silent_senders();
        self.forget_one_beyond_the_limit();
        Ok(length)
    }

    /// The number of senders that are remembered.
    pub fn senders(&self) -> usize {
        self.active.len() + self.silent.len()
    }

    /// Senders of which no frame has come since the last look are silent. Half as many as are
    /// active come between two looks, so that each new one pays for a few others.
    fn look_for_silent_senders(&mut self) {
        if self.active.len() < self.next_look {
            return;
        }
        let before = self.looked_at;
        let silent = self.active.extract_if(|_, sender| sender.last_heard <= before);
        self.silent.extend(silent.map(|((sender, _), known)| known.fall_silent(sender)));
        self.looked_at = self.opened;
        let active = self.active.len();
        self.next_look = active + LOOK_MIN.max(active / 2);
    }

    fn forget_one_beyond_the_limit(&mut self) {
        if self.senders() <= SENDERS_MAX {
            return;
        }
        let silent = self.silent.iter().min_by_key(|(_, sender)| sender.last_heard);
        if let Some(id) = silent.map(|(id, _)| *id) {
            self.silent.remove(&id);
            return;
        }
        let silent = self.active.iter().min_by_key(|(_, sender)| sender.last_heard);
        let silent = silent.map(|(id, _)| *id);
        silent.and_then(|id| self.active.remove(&id));
    }
}

impl ActiveSender {
    /// Opens a frame that is new.
    #[inline]
    fn open(
        &mut self,
        counter: u64,
        header: &[u8],
        buffer: &mut [u8],
        start: usize,
    ) -> Result<usize, Refusal> {
        if !self.window.is_new(counter) {
            return Err(Refusal::Repeated);
        }
        let header = aead::Aad::from(header);
        let frame = self.cipher.open_within(nonce(counter), header, buffer, start..);
        let length = frame.map_err(|_| Refusal::Forged)?.len();
        self.window.note(counter);
        Ok(length)
    }

    /// The sender without what only those need that are heard.
    fn fall_silent(&self, sender: u64) -> ((u64, Fingerprint), SilentSender) {
        let (next, last_heard) = (self.window.next(), self.last_heard);
        ((sender, self.key), SilentSender { next, last_heard })
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opener").field("senders", &self.senders()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SharedKeys;
    use crate::sealer::Sealer;

    const HEADER: &[u8] = b"header";

    fn open(by: &mut Opener, (mark, bytes): &(SealMark, Vec<u8>)) -> Result<usize, Refusal> {
        by.open(*mark, HEADER, &mut bytes.clone(), 0)
    }

    fn sealed(by: &mut Sealer) -> (SealMark, Vec<u8>) {
        let (mark, mut bytes) = (by.next(), b"text".to_vec());
        let tag = by.seal(HEADER, &mut bytes);
        bytes.extend(tag);
        (mark, bytes)
    }

    fn keys() -> KeySchedule {
        let keys = SharedKeys::parse(&"0a".repeat(32)).expect("a key");
        KeySchedule::new(&keys, "test", b"")
    }

    #[test]
    fn of_senders_that_have_gone_only_their_counters_stay() {
        let keys = keys();
        let mut opener = Opener::new(keys.clone());
        let mut staying = Sealer::new(&keys, 0, 0);
        for sender in 1..4_000 {
            assert!(open(&mut opener, &sealed(&mut Sealer::new(&keys, sender, 0))).is_ok());
            assert!(open(&mut opener, &sealed(&mut staying)).is_ok());
            assert!(opener.active.len() <= 3 * LOOK_MIN, "{}", opener.active.len());
        }
        assert_eq!(opener.senders(), 4_000);
        assert!(opener.active.contains_key(&(0, keys.sealing_id())), "it is heard");
    }

    #[test]
    fn a_sender_that_was_silent_goes_on_and_its_old_frames_stay_refused() {
        let keys = keys();
        let (mut opener, mut returning) = (Opener::new(keys.clone()), Sealer::new(&keys, 7, 50));
        let (late, old) = (sealed(&mut returning), sealed(&mut returning));
        assert!(open(&mut opener, &old).is_ok());
        for sender in 100..300 {
            assert!(open(&mut opener, &sealed(&mut Sealer::new(&keys, sender, 0))).is_ok());
        }
        let id = (7, keys.sealing_id());
        assert!(!opener.active.contains_key(&id), "it is silent");
        let mut forged = sealed(&mut returning);
        forged.1[0] ^= 1;
        assert_eq!(open(&mut opener, &old), Err(Refusal::Repeated));
        assert_eq!(open(&mut opener, &late), Err(Refusal::Repeated), "too old to tell");
        assert_eq!(open(&mut opener, &forged), Err(Refusal::Forged));
        assert!(!opener.active.contains_key(&id), "a forger does not wake it");
        let new = sealed(&mut returning);
        assert!(open(&mut opener, &new).is_ok());
        assert!(opener.active.contains_key(&id));
        for seen in [&late, &old, &new] {
            assert_eq!(open(&mut opener, seen), Err(Refusal::Repeated));
        }
        assert_eq!(opener.senders(), 201);
    }
}
