//! A message of all sides: kind (8 bits), 3 bytes of nothing, sender (32), sequence (64), stamp
//! (64; in an end the number of messages sent), little endian, and content.

/// Bytes before the content.
pub const HEADER_BYTES: usize = 24;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The sender sees all members.
    Start,
    /// Counted at every member.
    Data,
    /// The sender has sent everything.
    End,
    /// Expects an answer of the one member that it goes to.
    Ping,
    /// The answer.
    Pong,
}

impl Kind {
    const ALL: [Self; 5] = [Self::Start, Self::Data, Self::End, Self::Ping, Self::Pong];
}

/// The header of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind.
    pub kind: Kind,
    /// Number of the sender, from 0.
    pub sender: u32,
    /// Count of the sender's messages, from 0.
    pub sequence: u64,
    /// Time of sending, or the number of messages sent.
    pub stamp: u64,
}

impl Header {
    /// Writes it over the beginning of `into`, which is not shorter.
    pub fn write(self, into: &mut [u8]) {
        into[..4].copy_from_slice(&[self.kind as u8 + 1, 0, 0, 0]);
        into[4..8].copy_from_slice(&self.sender.to_le_bytes());
        into[8..16].copy_from_slice(&self.sequence.to_le_bytes());
        into[16..24].copy_from_slice(&self.stamp.to_le_bytes());
    }

    /// The header of `bytes`; none if they are no message.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let kind = *Kind::ALL.get(usize::from(*bytes.first()?).checked_sub(1)?)?;
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let sender = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?);
        Some(Self { kind, sender, sequence: word(8)?, stamp: word(16)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_written() {
        let mut bytes = [0; HEADER_BYTES];
        let header = Header { kind: Kind::Pong, sender: 3, sequence: 1 << 40, stamp: 7 };
        header.write(&mut bytes);
        assert_eq!(Header::read(&bytes), Some(header));
        assert_eq!(Header::read(&bytes[..HEADER_BYTES - 1]), None);
        for kind in [0, 6, 255] {
            bytes[0] = kind;
            assert_eq!(Header::read(&bytes), None);
        }
    }
}
