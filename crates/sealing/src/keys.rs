//! Shared keys, and the text that holds them.

use ring::digest;
use std::fmt;

/// The most keys: the current one, and those that are going out of use.
const KEYS_MAX: usize = 8;
const KEY_BYTES: usize = 32;

/// One key.
pub(crate) type SharedKey = [u8; KEY_BYTES];

/// Keys that programs share. The first seals; all open, so that programs can be given a new key
/// one after another.
///
/// ```
/// # use lanecast_sealing::SharedKeys;
/// let keys = SharedKeys::parse(&format!("# today's\n{}\n", "0a".repeat(32)))?;
/// assert_eq!(format!("{keys:?}"), "SharedKeys(1)");
/// # Ok::<(), lanecast_sealing::KeyError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct SharedKeys(Vec<SharedKey>);

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
        let keys: Vec<_> = lines
            .map(|(line, number)| Ok((key(line).ok_or(KeyError::NotAKey(number))?, number)))
            .collect::<Result<_, _>>()?;
        if keys.is_empty() || keys.len() > KEYS_MAX {
            return Err(KeyError::Count(keys.len()));
        }
        let mut ids: Vec<u16> = Vec::new();
        for (key, line) in &keys {
            let id = key_id(key);
            if ids.contains(&id) {
                return Err(KeyError::Alike(*line));
            }
            ids.push(id);
        }
        Ok(Self(keys.into_iter().map(|(key, _)| key).collect()))
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

fn key(line: &str) -> Option<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    if line.len() != 2 * KEY_BYTES || !line.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(line.as_bytes().chunks_exact(2)) {
        let digit = |at: usize| char::from(digits[at]).to_digit(16);
        *byte = u8::try_from(digit(0)? << 4 | digit(1)?).ok()?;
    }
    Some(key)
}

/// Names a key without telling of it.
pub(crate) fn key_id(key: &[u8; KEY_BYTES]) -> u16 {
    let hash = digest::digest(&digest::SHA256, key);
    u16::from_le_bytes([hash.as_ref()[0], hash.as_ref()[1]])
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
