//! Frames of a group under a shared key: the layout of a sealed frame (`docs/protocol/group.md`)
//! around the ciphers and counters of `lanecast-sealing`.
//!
//! Each member seals with a key of its own, derived from the group's key, its member id and the
//! group's name: ids are never used again, so a counter from 0 is a nonce that never repeats.

use lanecast_sealing::{KeySchedule, Opener, Refusal, SealMark, Sealer, SharedKeys, TAG_BYTES};
use lanecast_wire::group::{GROUP_VERSION, group_hash};

/// Version and kind of a sealed frame.
const MARK: [u8; 2] = [GROUP_VERSION, 255];
/// Mark, key id (2), group (4), sender (8), counter (8).
const HEADER: usize = 24;
/// Bytes that sealing adds to a frame.
pub(crate) const SEALING_OVERHEAD: usize = HEADER + TAG_BYTES;

/// Whether a frame is sealed, by its first bytes.
#[inline]
pub(crate) fn is_sealed(frame: &[u8]) -> bool {
    frame.starts_with(&MARK)
}

/// The stream of a member's frames. Each has keys and counters of its own: frames to one member
/// overtake many to all, which would look too old behind them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SealedStream {
    ToAll,
    ToOne,
}

impl SealedStream {
    /// The purpose of the keys.
    const fn label(self) -> &'static str {
        match self {
            Self::ToAll => "lanecast group 1",
            Self::ToOne => "lanecast group 1 direct",
        }
    }
}

/// Seals the frames of one member in one stream, and opens those of the others.
#[derive(Debug)]
pub(crate) struct Sealing {
    group: u32,
    sealer: Sealer,
    opener: Opener,
}

impl Sealing {
    /// Sealing for the member `me` of the group called `name`.
    pub(crate) fn new(stream: SealedStream, keys: &SharedKeys, name: &str, me: u64) -> Self {
        let keys = KeySchedule::new(keys, stream.label(), name.as_bytes());
        let group = group_hash(name);
        Self { group, sealer: Sealer::new(&keys, me, 0), opener: Opener::new(keys) }
    }

    /// Seals a frame, given in two parts, into `sealed`; what was in there is dropped.
    ///
    /// # Panics
    /// After 2^64 - 1 frames, which no member lives to send.
    pub(crate) fn seal(&mut self, head: &[u8], body: &[u8], sealed: &mut Vec<u8>) {
        let SealMark { key, sender, counter } = self.sealer.next();
        sealed.clear();
        sealed.extend(MARK);
        sealed.extend(key.to_le_bytes());
        sealed.extend(self.group.to_le_bytes());
        sealed.extend(sender.to_le_bytes());
        sealed.extend(counter.to_le_bytes());
        sealed.extend(head);
        sealed.extend(body);
        let (header, plain) = sealed.split_at_mut(HEADER);
        let tag = self.sealer.seal(header, plain);
        sealed.extend(tag);
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
        if header[..2] != MARK || group != self.group || sealed.len() < TAG_BYTES {
            return Err(Refusal::NotSealed);
        }
        let mark = SealMark {
            key: u16::from_le_bytes(part(header, 2)),
            sender: u64::from_le_bytes(part(header, 8)),
            counter: u64::from_le_bytes(part(header, 16)),
        };
        buffer.clear();
        buffer.extend(sealed);
        let length = self.opener.open(mark, header, buffer, 0)?;
        Ok((mark.sender, &buffer[..length]))
    }
}

fn part<const N: usize>(header: &[u8; HEADER], at: usize) -> [u8; N] {
    header[at..at + N].try_into().expect("within the header")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const OTHER: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn sealing(keys: &str, me: u64) -> Sealing {
        let keys = SharedKeys::parse(keys).expect("keys");
        Sealing::new(SealedStream::ToAll, &keys, "orders", me)
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
        assert_eq!(two.opener.senders(), 0, "a forger takes no place");
        assert!(open(&mut two, &frame).is_ok(), "nor does it spoil the counter");
    }

    #[test]
    fn other_keys_groups_and_members_do_not_fit() {
        let frame = sealed(&mut sealing(KEY, 1), "text");
        assert_eq!(open(&mut sealing(OTHER, 2), &frame), Err(Refusal::UnknownKey));
        let keys = SharedKeys::parse(KEY).expect("keys");
        let mut elsewhere = Sealing::new(SealedStream::ToAll, &keys, "trades", 2);
        assert_eq!(open(&mut elsewhere, &frame), Err(Refusal::NotSealed));
        elsewhere.group = group_hash("orders");
        assert_eq!(
            open(&mut elsewhere, &frame),
            Err(Refusal::Forged),
            "of a name of the same hash"
        );
        let mut posing = frame;
        posing[8] = 3;
        assert_eq!(open(&mut sealing(KEY, 2), &posing), Err(Refusal::Forged));
    }

    #[test]
    fn frames_to_one_member_do_not_age_those_to_all() {
        let keys = SharedKeys::parse(KEY).expect("keys");
        let of = |stream, me| Sealing::new(stream, &keys, "orders", me);
        let [mut to_all, mut to_one] =
            [SealedStream::ToAll, SealedStream::ToOne].map(|stream| of(stream, 1));
        let frames: Vec<_> = (0..10_000).map(|_| sealed(&mut to_all, "to all")).collect();
        let direct = sealed(&mut to_one, "to one");
        let [mut from_all, mut from_one] =
            [SealedStream::ToAll, SealedStream::ToOne].map(|stream| of(stream, 2));
        assert!(open(&mut from_one, &direct).is_ok());
        assert!(frames.iter().all(|frame| open(&mut from_all, frame).is_ok()));
        // Nor does a frame of one stream pass in the other.
        assert_eq!(open(&mut from_one, &frames[9_999]), Err(Refusal::Forged));
        assert_eq!(open(&mut of(SealedStream::ToAll, 3), &direct), Err(Refusal::Forged));
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
}
