//! Messages of members besides the measured ones: one message that holds all of a
//! member's state, repeated. A lost or repeated one does no harm.

use super::config::Agreed;
use super::payload::STATUS;
use super::result::MemberResult;
use serde::{Deserialize, Serialize};

/// The phases of a member, in their order. All phases wait for all members at their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Looks for the others.
    Joining,
    /// Knows `num_members` members.
    Ready,
    /// Has sent its warm-up, and has received all others' or no more of them.
    Warm,
    /// Measures.
    Running,
    /// Has a result.
    Finished,
    /// Has the results of all.
    Complete,
}

/// The state of a member.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Status {
    /// Random for each start.
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) is_sender: bool,
    pub(super) config: Agreed,
    pub(super) phase: Phase,
    /// Measured messages sent so far.
    pub(super) sent: u64,
    pub(super) result: Option<MemberResult>,
}

/// A longer name is no name of ours.
const NAME_BYTES_MAX: usize = 64;
/// Most bytes of a status: a result of 1024 senders fits.
const STATUS_BYTES_MAX: usize = 128 << 10;

impl Status {
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        into.clear();
        into.push(STATUS);
        // A status has no map with keys of other types than text, and no failing member.
        let _ = serde_json::to_writer(into, self);
    }

    /// The status in `bytes`; none if they are no status.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (STATUS, text) = bytes.split_first().map(|(kind, text)| (*kind, text))? else {
            return None;
        };
        if text.len() > STATUS_BYTES_MAX {
            return None;
        }
        let status: Self = serde_json::from_slice(text).ok()?;
        (status.name.len() <= NAME_BYTES_MAX).then_some(status)
    }
}

/// A name cut to the bytes that a status may have.
pub(super) fn short(name: &str) -> String {
    let mut end = name.len().min(NAME_BYTES_MAX);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name[..end].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn status() -> Status {
        Status {
            id: u64::MAX,
            name: "m1".to_owned(),
            is_sender: true,
            config: Agreed {
                transport: "udp".to_owned(),
                num_msgs: 1,
                msg_size: 2,
                num_members: 3,
                num_senders: 3,
                warmup: 0,
            },
            phase: Phase::Finished,
            sent: 5,
            result: Some(MemberResult { received: 15, ..MemberResult::default() }),
        }
    }

    #[test]
    fn a_status_comes_back() {
        let mut bytes = vec![9; 3];
        status().write(&mut bytes);
        assert_eq!(Status::read(&bytes), Some(status()));
        assert_eq!(Status::read(&bytes[..bytes.len() - 1]), None);
        let mut long = Vec::new();
        Status { name: "x".repeat(65), ..status() }.write(&mut long);
        assert_eq!(Status::read(&long), None);
        assert_eq!(short(&"ü".repeat(40)), "ü".repeat(32));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_no_status_and_no_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            at in any::<prop::sample::Index>(),
            with in any::<u8>(),
        ) {
            prop_assert_eq!(Status::read(&bytes), None);
            let mut bytes = Vec::new();
            status().write(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] = with;
            let _ = Status::read(&bytes);
        }
    }
}
