//! Ciphers of single senders, derived from shared keys.

use crate::keys::{Fingerprint, SharedKeys, fingerprint};
use ring::{aead, hkdf};
use std::fmt;

/// Shared keys for one purpose: the ciphers of another purpose have nothing in common with them.
///
/// The cipher's key of a sender is HKDF-SHA-256 with the purpose's label as salt, the shared key as
/// input, and as info the context followed by the sender's number in 8 bytes.
#[derive(Clone)]
pub struct KeySchedule {
    context: Vec<u8>,
    /// The fingerprint of each key and what is derived from, in the keys' order.
    secrets: Vec<(Fingerprint, hkdf::Prk)>,
}

impl KeySchedule {
    /// Keys for the purpose called `label`, within a `context`: a group's name, say.
    pub fn new(keys: &SharedKeys, label: &str, context: &[u8]) -> Self {
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, label.as_bytes());
        let secrets = keys.iter().map(|key| (fingerprint(key), salt.extract(key))).collect();
        Self { context: context.to_vec(), secrets }
    }

    /// The id of the key that seals.
    ///
    /// # Panics
    /// Never: there is at least one key.
    pub(crate) fn sealing_id(&self) -> u16 {
        self.secrets[0].0.id()
    }

    /// The cipher of `sender` under the key with this id, if that is known.
    pub(crate) fn cipher(&self, id: u16, sender: u64) -> Option<aead::LessSafeKey> {
        let (_, secret) = self.secrets.iter().find(|(known, _)| known.id() == id)?;
        let sender = sender.to_le_bytes();
        let info = [&self.context[..], &sender[..]];
        let key = secret.expand(&info, &aead::AES_256_GCM).expect("the cipher's key is short");
        Some(aead::LessSafeKey::new(key.into()))
    }

    /// The fingerprint of the shared key with this id.
    pub(crate) fn fingerprint(&self, id: u16) -> Option<Fingerprint> {
        self.secrets.iter().map(|(known, _)| *known).find(|known| known.id() == id)
    }
}

impl fmt::Debug for KeySchedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeySchedule").field("keys", &self.secrets.len()).finish_non_exhaustive()
    }
}
