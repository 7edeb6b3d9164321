//! Shared keys, and the text that holds them.

use ring::digest;
use std::fmt;
use zeroize::Zeroizing;

/// The most keys: the current one, and those that are going out of use.
const KEYS_MAX: usize = 8;
const KEY_BYTES: usize = 32;

/// One key.
pub(crate) type SharedKey = [u8; KEY_BYTES];

/// Keys that programs share; they are overwritten in memory when dropped. The first seals; all
/// open, so that programs can be given a new key one after another.
///
/// ```
/// # use lanecast_sealing::SharedKeys;
/// let keys = SharedKeys::parse(&format!("# today's\n{}\n", "0a".repeat(32)))?;
/// assert_eq!(format!("{keys:?}"), "SharedKeys(1)");
/// # Ok::<(), lanecast_sealing::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKeys(Zeroizing<Vec<SharedKey>>);

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
    /// Two keys have the same id, by which receivers choose.
    #[error("line {0} holds a key whose id an earlier one has: delete it, or draw another one")]
    Alike(usize),
}

impl SharedKeys {
    /// Reads keys of 64 hexadecimal digits, one a line; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// If a line is something else, there is no key or more than eight, or two have the same id.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let lines = text.lines().map(str::trim).zip(1..);
        let lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
        // With room for all: a longer vector would leave a copy behind.
        let mut keys = Zeroizing::new(Vec::with_capacity(KEYS_MAX));
        let (mut count, mut alike, mut ids) = (0, None, Vec::new());
        for (line, number) in lines {
            let mut key = Zeroizing::new([0; KEY_BYTES]);
            read_key(line, &mut key).ok_or(KeyError::NotAKey(number))?;
            count += 1;
            if count > KEYS_MAX {
                continue;
            }
            let id = fingerprint(&key).id();
            if ids.contains(&id) {
                alike.get_or_insert(number);
            }
            ids.push(id);
            keys.push(*key);
        }
        match alike {
            _ if count == 0 || count > KEYS_MAX => Err(KeyError::Count(count)),
            Some(line) => Err(KeyError::Alike(line)),
            None => Ok(Self(keys)),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &SharedKey> {
        self.0.iter()
    }
}

impl fmt::Debug for SharedKeys {
    /// Says how many keys there are, and nothing of them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SharedKeys({})", self.0.len())
    }
}

fn read_key(line: &str, key: &mut SharedKey) -> Option<()> {
    if line.len() != 2 * KEY_BYTES || !line.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(line.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(())
}

/// The first half of a key's SHA-256: tells keys apart without telling of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// The id by which frames name the key.
    pub(crate) const fn id(self) -> u16 {
        u16::from_le_bytes([self.0[0], self.0[1]])
    }
}

pub(crate) fn fingerprint(key: &SharedKey) -> Fingerprint {
    let hash = digest::digest(&digest::SHA256, key);
    let mut half = [0; 16];
    half.copy_from_slice(&hash.as_ref()[..16]);
    Fingerprint(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn text_that_is_no_key_is_refused_with_its_line() {
        let parse = |text: &str| SharedKeys::parse(text).map(drop);
        assert_eq!(parse(&format!("# ok\n{KEY}\nabc")), Err(KeyError::NotAKey(3)));
        assert_eq!(parse(&KEY.replace('0', "é")), Err(KeyError::NotAKey(1)));
        assert_eq!(parse("# nothing\n"), Err(KeyError::Count(0)));
        assert_eq!(parse(&format!("{KEY}\n").repeat(9)), Err(KeyError::Count(9)));
        assert_eq!(parse(&format!("{KEY}\n").repeat(2)), Err(KeyError::Alike(2)));
        let keys = SharedKeys::parse(KEY).expect("a key");
        assert_eq!(format!("{keys:?}"), "SharedKeys(1)", "keys are not printed");
    }
}
