//! The sealing half: one sender's cipher and its counter.

use crate::TAG_BYTES;
use crate::key_schedule::KeySchedule;
use ring::aead;
use std::fmt;

/// The key, sender and counter of a sealed frame, which its header shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SealMark {
    /// Id of the shared key.
    pub key: u16,
    /// The sender's number.
    pub sender: u64,
    /// Number of the frame among those of the sender; the nonce.
    pub counter: u64,
}

/// Seals the frames of one sender. A sender's number must not be used twice with the same counters.
pub struct Sealer {
    cipher: aead::LessSafeKey,
    next: SealMark,
}

impl Sealer {
    /// Seals frames of `sender` with the first of the keys; `first` is the counter of the first
    /// frame.
    ///
    /// # Panics
    /// Never: there is at least one key.
    pub fn new(keys: &KeySchedule, sender: u64, first: u64) -> Self {
        let key = keys.sealing_id();
        let cipher = keys.cipher(key, sender).expect("the id is that of a key");
        Self { cipher, next: SealMark { key, sender, counter: first } }
    }

    /// Goes over to other keys. The counter goes on: not even a key that returns sees one twice.
    pub fn set_keys(&mut self, keys: &KeySchedule) {
        *self = Self::new(keys, self.next.sender, self.next.counter);
    }

    /// The mark of the frame that is sealed next: it belongs into its header.
    pub const fn next(&self) -> SealMark {
        self.next
    }

    /// Encrypts `frame` in place; returns the tag, which also covers `header`.
    ///
    /// # Panics
    /// After 2^64 - 1 frames, which no sender lives to send.
    pub fn seal(&mut self, header: &[u8], frame: &mut [u8]) -> [u8; TAG_BYTES] {
        let nonce = nonce(self.next.counter);
        let tag = self
            .cipher
            .seal_in_place_separate_tag(nonce, aead::Aad::from(header), frame)
            .expect("frames are far shorter than the 64 GiB that the cipher takes");
        self.next.counter = self.next.counter.checked_add(1).expect("fewer than 2^64 frames");
        tag.as_ref().try_into().expect("a tag has 16 bytes")
    }
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealer").field("next", &self.next).finish_non_exhaustive()
    }
}

/// The counter in 8 bytes, and 4 zero bytes.
pub(crate) fn nonce(counter: u64) -> aead::Nonce {
    let mut nonce = [0; aead::NONCE_LEN];
    nonce[..8].copy_from_slice(&counter.to_le_bytes());
    aead::Nonce::assume_unique_for_key(nonce)
}
