//! Frames of a group under a pre-shared key: encrypted, authenticated, and none taken twice.
//!
//! AES-256-GCM of *ring*. Each member seals with a key of its own, derived from the group's key,
//! its member id and the group's name by HKDF-SHA-256 (RFC 5869): ids are never used again, so a
//! counter from 0 is a nonce that never repeats. Layout of a sealed frame:
//! `docs/protocol/group.md`.

use crate::replay_window::ReplayWindow;
use ring::{aead, digest, hkdf};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

/// Version and kind of a sealed frame.
const MARK: [u8; 2] = [1, 255];
/// Mark, key id (2), group (4), sender (8), counter (8).
const HEADER: usize = 24;
const TAG: usize = 16;
/// Bytes that sealing adds to a frame.
pub(crate) const SEALING_OVERHEAD: usize = HEADER + TAG;
/// The most senders whose counters are remembered.
const SENDERS_MAX: usize = 4_096;
/// The most keys: the current one, and those that are going out of use.
const KEYS_MAX: usize = 8;

/// The keys of a group. The first seals; all open, so that members can be given a new key one after
/// another.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKeys(Vec<[u8; 32]>);

/// Text that holds no keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// A line is not a key.
    #[error(
        "line {0} is no key: write 64 hexadecimal digits (32 random bytes, `openssl rand -hex 32`)"
    )]
    NotAKey(usize),
    /// No key, or too many.
    #[error("there are {0} keys: write one a line, 1 to {KEYS_MAX}; the first one seals")]
    Count(usize),
}

impl GroupKeys {
    /// Reads keys of 64 hexadecimal digits, one a line; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// If a line is something else, or there is no key or more than eight.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        let keys: Vec<_> = lines
            .map(|(line, number)| key(line).ok_or(KeyError::NotAKey(number)))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            Err(KeyError::Count(keys.len()))
        } else {
            Ok(Self(keys))
        }
    }
}

fn key(line: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if line.len() != 64 || !line.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(line.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(key)
}

impl fmt::Debug for GroupKeys {
    /// Says how many keys there are, and nothing of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupKeys({})", self.0.len())
    }
}

/// Why a frame was not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Not a sealed frame of this group.
    NotSealed,
    /// Sealed with a key that this member does not have.
    UnknownKey,
    /// Altered, or sealed by a program without the key.
    Forged,
    /// Seen before, or too old to tell.
    Repeated,
}

/// Seals the frames of one member, and opens those of the others.
pub(crate) struct Sealing {
    group: u32,
    name: Vec<u8>,
    me: u64,
    counter: u64,
    own: (u16, aead::LessSafeKey),
    keys: Vec<(u16, hkdf::Prk)>,
    senders: HashMap<(u64, u16), Sender>,
}

struct Sender {
    key: aead::LessSafeKey,
    window: ReplayWindow,
}

impl Sealing {
    /// Sealing for the member `me` of the group called `name`, whose hash is `group`.
    pub(crate) fn new(keys: &GroupKeys, name: &str, group: u32, me: u64) -> Self {
        let keys: Vec<_> = keys.0.iter().map(|key| (key_id(key), secret(key))).collect();
        let name = name.as_bytes().to_vec();
        let own = (keys[0].0, derive(&keys[0].1, &name, me));
        Self { group, name, me, counter: 0, own, keys, senders: HashMap::new() }
    }

    /// Seals a frame, given in two parts, into `sealed`; what was in there is dropped.
    ///
    /// # Panics
    /// After 2^64 - 1 frames, which no member lives to send.
    pub(crate) fn seal(&mut self, head: &[u8], body: &[u8], sealed: &mut Vec<u8>) {
        sealed.clear();
        sealed.extend(MARK);
        sealed.extend(self.own.0.to_le_bytes());
        sealed.extend(self.group.to_le_bytes());
        sealed.extend(self.me.to_le_bytes());
        sealed.extend(self.counter.to_le_bytes());
        sealed.extend(head);
        sealed.extend(body);
        let (header, plain) = sealed.split_at_mut(HEADER);
        let tag = self
            .own
            .1
            .seal_in_place_separate_tag(nonce(self.counter), aead::Aad::from(header), plain)
            .expect("frames are far shorter than the 64 GiB that the cipher takes");
        sealed.extend(tag.as_ref());
        self.counter = self.counter.checked_add(1).expect("fewer than 2^64 frames");
    }

    /// Opens a sealed frame into `buffer`; its sender and the frame.
    ///
    /// # Errors
    /// If it is not from a member that has the key, or was opened before.
    pub(crate) fn open<'a>(
        &mut self,
        frame: &[u8],
        buffer: &'a mut Vec<u8>,
    ) -> Result<(u64, &'a [u8]), Refusal> {
        let Some((header, sealed)) = frame.split_first_chunk::<HEADER>() else {
            return Err(Refusal::NotSealed);
        };
        let group = u32::from_le_bytes(part(header, 4));
        if header[..2] != MARK || group != self.group || sealed.len() < TAG {
            return Err(Refusal::NotSealed);
        }
        let id = u16::from_le_bytes(part(header, 2));
        let sender = u64::from_le_bytes(part(header, 8));
        let counter = u64::from_le_bytes(part(header, 16));
        let secret = self.keys.iter().find(|key| key.0 == id).ok_or(Refusal::UnknownKey)?;
        let aad = aead::Aad::from(&header[..]);
        buffer.clear();
        buffer.extend(sealed);
        match self.senders.entry((sender, id)) {
            Entry::Occupied(mut known) => {
                let known = known.get_mut();
                if !known.window.is_new(counter) {
                    return Err(Refusal::Repeated);
                }
                let opened = known.key.open_in_place(nonce(counter), aad, buffer);
                let length = opened.map_err(|_| Refusal::Forged)?.len();
                known.window.note(counter);
                Ok((sender, &buffer[..length]))
            }
            Entry::Vacant(place) => {
                let key = derive(&secret.1, &self.name, sender);
                let opened = key.open_in_place(nonce(counter), aad, buffer);
                let length = opened.map_err(|_| Refusal::Forged)?.len();
                let mut window = ReplayWindow::new();
                window.note(counter);
                // Only a holder of the key gets here: strangers take no place.
                place.insert(Sender { key, window });
                self.forget_one_beyond(SENDERS_MAX, (sender, id));
                Ok((sender, &buffer[..length]))
            }
        }
    }

    fn forget_one_beyond(&mut self, most: usize, but: (u64, u16)) {
        if self.senders.len() > most
            && let Some(oldest) = self.senders.keys().copied().find(|one| *one != but)
        {
            self.senders.remove(&oldest);
        }
    }
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sealing")
            .field("counter", &self.counter)
            .field("senders", &self.senders.len())
            .finish_non_exhaustive()
    }
}

fn part<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    header[at..at + N].try_into().expect("within the header")
}

/// Names a key without telling of it.
fn key_id(key: &[u8; 32]) -> u16 {
    let hash = digest::digest(&digest::SHA256, key);
    u16::from_le_bytes([hash.as_ref()[0], hash.as_ref()[1]])
}

fn secret(key: &[u8; 32]) -> hkdf::Prk {
    hkdf::Salt::new(hkdf::HKDF_SHA256, b"lanecast group 1").extract(key)
}

/// The key of one member.
fn derive(secret: &hkdf::Prk, name: &[u8], member: u64) -> aead::LessSafeKey {
    let member = member.to_le_bytes();
    let info = [name, &member[..]];
    let key = secret.expand(&info, &aead::AES_256_GCM).expect("the cipher's key is short");
    aead::LessSafeKey::new(key.into())
}

fn nonce(counter: u64) -> aead::Nonce {
    let mut nonce = [0; aead::NONCE_LEN];
    nonce[..8].copy_from_slice(&counter.to_le_bytes());
    aead::Nonce::assume_unique_for_key(nonce)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const OTHER: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn sealing(keys: &str, me: u64) -> Sealing {
        Sealing::new(&GroupKeys::parse(keys).expect("keys"), "orders", 7, me)
    }

    fn sealed(from: &mut Sealing, text: &str) -> Vec<u8> {
        let mut frame = Vec::new();
        let (head, body) = text.as_bytes().split_at(text.len() / 2);
        from.seal(head, body, &mut frame);
        frame
    }

    fn open(by: &mut Sealing, frame: &[u8]) -> Result<(u64, Vec<u8>), Refusal> {
        let mut buffer = Vec::new();
        by.open(frame, &mut buffer).map(|(sender, bytes)| (sender, bytes.to_vec()))
    }

    #[test]
    fn frames_are_opened_once_in_any_order() {
        let (mut one, mut two) = (sealing(KEY, 1), sealing(KEY, 2));
        let frames: Vec<_> = ["first", "second", ""].map(|text| sealed(&mut one, text)).into();
        for (at, text) in [(1, "second"), (0, "first"), (2, "")] {
            assert_eq!(open(&mut two, &frames[at]), Ok((1, text.into())));
            assert_eq!(open(&mut two, &frames[at]), Err(Refusal::Repeated));
            assert_eq!(frames[at].len(), text.len() + SEALING_OVERHEAD);
        }
        assert!(!frames[0].windows(5).any(|part| part == b"first"));
    }

    #[test]
    fn any_altered_byte_is_seen() {
        let mut one = sealing(KEY, 1);
        let frame = sealed(&mut one, "one lot of gold");
        for at in 0..frame.len() {
            for bit in [1, 0x80] {
                let mut altered = frame.clone();
                altered[at] ^= bit;
                assert!(open(&mut sealing(KEY, 2), &altered).is_err(), "byte {at}");
            }
            assert!(open(&mut sealing(KEY, 2), &frame[..at]).is_err(), "{at} bytes");
        }
        let mut two = sealing(KEY, 2);
        let mut forged = frame.clone();
        forged[30] ^= 1;
        assert_eq!(open(&mut two, &forged), Err(Refusal::Forged));
        assert_eq!(two.senders.len(), 0, "a forger takes no place");
        assert!(open(&mut two, &frame).is_ok(), "nor does it spoil the counter");
    }

    #[test]
    fn other_keys_groups_and_members_do_not_fit() {
        let frame = sealed(&mut sealing(KEY, 1), "text");
        assert_eq!(open(&mut sealing(OTHER, 2), &frame), Err(Refusal::UnknownKey));
        let keys = GroupKeys::parse(KEY).expect("keys");
        let mut elsewhere = Sealing::new(&keys, "trades", 7, 2);
        assert_eq!(open(&mut elsewhere, &frame), Err(Refusal::Forged));
        let mut elsewhere = Sealing::new(&keys, "orders", 8, 2);
        assert_eq!(open(&mut elsewhere, &frame), Err(Refusal::NotSealed));
        let mut posing = frame;
        posing[8] = 3;
        assert_eq!(open(&mut sealing(KEY, 2), &posing), Err(Refusal::Forged));
    }

    #[test]
    fn keys_are_changed_one_member_after_another() {
        let both = format!("# new\n{OTHER}\n\n# old\n{KEY}\n");
        let (mut old, mut new) = (sealing(KEY, 1), sealing(&both, 2));
        let frame = sealed(&mut old, "still the old key");
        assert!(open(&mut new, &frame).is_ok());
        let frame = sealed(&mut new, "the new key");
        assert_eq!(open(&mut old, &frame), Err(Refusal::UnknownKey));
        assert!(open(&mut sealing(&both, 3), &frame).is_ok());
    }

    #[test]
    fn senders_are_bounded() {
        let mut me = sealing(KEY, u64::MAX);
        for member in 0..SENDERS_MAX as u64 + 10 {
            let frame = sealed(&mut sealing(KEY, member), "hello");
            assert!(open(&mut me, &frame).is_ok());
        }
        assert_eq!(me.senders.len(), SENDERS_MAX);
    }

    #[test]
    fn text_that_is_no_key_is_refused_with_its_line() {
        let parse = |text: &str| GroupKeys::parse(text).map(drop);
        assert_eq!(parse(&format!("# ok\n{KEY}\nabc")), Err(KeyError::NotAKey(3)));
        assert_eq!(parse(&KEY.replace('0', "é")), Err(KeyError::NotAKey(1)));
        assert_eq!(parse("# nothing\n"), Err(KeyError::Count(0)));
        assert_eq!(parse(&format!("{KEY}\n").repeat(9)), Err(KeyError::Count(9)));
        let keys = GroupKeys::parse(KEY).expect("a key");
        assert_eq!(format!("{keys:?}"), "GroupKeys(1)", "keys are not printed");
    }
}
