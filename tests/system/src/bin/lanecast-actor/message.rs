//! Content of a message: its number, its send time, and bytes computed from the number.

use anyhow::{Context, Result, ensure};
use lanecast_conformance::Body;
use std::time::{SystemTime, UNIX_EPOCH};

/// The header: number and time.
const HEAD_BYTES: usize = 16;

/// Lengths of messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// All the same.
    Even(usize),
    /// Each its own, up to this.
    UpTo(usize),
}

impl Length {
    fn body(self, number: u64) -> Body {
        match self {
            Self::Even(length) => Body::of_length(number, length - HEAD_BYTES),
            Self::UpTo(longest) => Body::new(number, longest - HEAD_BYTES),
        }
    }

    /// The length of the `number`th message, in bytes.
    pub(crate) fn of(self, number: u64) -> usize {
        HEAD_BYTES + self.body(number).len()
    }

    /// Writes the `number`th message.
    pub(crate) fn write(self, number: u64, room: &mut [u8]) {
        let (head, body) = room.split_at_mut(HEAD_BYTES);
        head[..8].copy_from_slice(&number.to_le_bytes());
        head[8..].copy_from_slice(&now().to_le_bytes());
        self.body(number).write(body);
    }

    /// The number of a message, and when it was sent; an error if any byte of it is wrong.
    pub(crate) fn read(self, bytes: &[u8]) -> Result<(u64, u64)> {
        let (head, body) = bytes.split_at_checked(HEAD_BYTES).context("a message too short")?;
        let [number, sent] = [&head[..8], &head[8..]]
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        let expected = self.body(number);
        ensure!(
            body.len() == expected.len() && body == expected.bytes(),
            "message {number} of {} bytes is garbled",
            bytes.len()
        );
        Ok((number, sent))
    }
}

/// The time, as all processes of this machine count it, in nanoseconds.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos() as u64
}
