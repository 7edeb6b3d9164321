//! Frames of a group that could not be opened, and their hosts: a program can tell its user of
//! them, who otherwise waits in silence for members with another key.
//!
//! Owned by the member, written in its polls. Bounded whatever arrives, as any program that reaches
//! the transport can send frames.

use lanecast_sealing::Refusal;
use std::net::IpAddr;

/// The most hosts that are remembered; a host counts once for each of its reasons.
const HOSTS_MAX: usize = 32;

/// A host whose frames could not be opened, for one reason; its members may give several, as each
/// has keys of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHost {
    /// Address that the frames' stream names; `None` in shared memory, for programs of this host.
    pub address: Option<IpAddr>,
    /// The reason, and what to do; `a frame` stands before it.
    pub reason: &'static str,
}

/// Frames that could not be opened, by [`Group::refused_frames`](crate::Group::refused_frames).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedFrames {
    /// Frames of all hosts, without those that came twice.
    pub frames: u64,
    /// The first hosts that sent such frames, each once for each reason.
    pub hosts: Vec<RefusedHost>,
}

impl RefusedFrames {
    /// Counts a frame, and remembers its host with the reason if there is room.
    #[cold]
    pub(crate) fn add(&mut self, address: Option<IpAddr>, why: FrameRefusal) {
        let Some(reason) = why.reason() else { return };
        self.frames += 1;
        let host = RefusedHost { address, reason };
        if self.hosts.len() < HOSTS_MAX && !self.hosts.contains(&host) {
            self.hosts.push(host);
        }
    }
}

/// Reason for which a member drops a frame before it reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRefusal {
    /// Sealed, and this member has no key.
    NoKey,
    /// Not opened with the keys of this member.
    Sealing(Refusal),
    /// Another sender is named than that of the stream.
    OtherSender,
}

impl FrameRefusal {
    /// The reason, and what to do, if another key may be the cause.
    const fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::NoKey => {
                "is sealed, and this member has no key: set group.key_file to the keys of that \
                 host"
            }
            Self::Sealing(Refusal::NotSealed) => {
                "is not sealed, and refused: give its program the keys of group.key_file"
            }
            Self::Sealing(Refusal::UnknownKey) => {
                "is sealed with a key that group.key_file does not have here: give both hosts the \
                 same keys"
            }
            Self::Sealing(Refusal::Forged) => {
                "fails authentication: it was altered, or its sender does not have the key"
            }
            // Transports repeat frames where they lose some.
            Self::Sealing(Refusal::Repeated) | Self::OtherSender => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn hosts_are_remembered_once_and_up_to_a_bound() {
        let mut refused = RefusedFrames::default();
        for number in 0..1_000_u32 {
            let address = (number >= 2).then(|| IpAddr::V4(Ipv4Addr::from_bits(number / 2)));
            refused.add(address, FrameRefusal::Sealing(Refusal::UnknownKey));
        }
        assert_eq!((refused.frames, refused.hosts.len()), (1_000, HOSTS_MAX));
        let (first, second) = (&refused.hosts[0], &refused.hosts[1]);
        assert_eq!((first.address, second.address), (None, Some([0, 0, 0, 1].into())));
        assert!(second.reason.contains("group.key_file"), "{}", second.reason);
    }

    #[test]
    fn frames_that_are_no_sign_of_another_key_are_left_out() {
        let mut refused = RefusedFrames::default();
        for why in [FrameRefusal::OtherSender, FrameRefusal::Sealing(Refusal::Repeated)] {
            refused.add(None, why);
        }
        assert_eq!(refused, RefusedFrames::default());
        refused.add(None, FrameRefusal::NoKey);
        assert_eq!((refused.frames, refused.hosts.len()), (1, 1));
    }

    #[test]
    fn a_host_is_remembered_once_for_each_reason() {
        let mut refused = RefusedFrames::default();
        let reasons = [FrameRefusal::NoKey, FrameRefusal::Sealing(Refusal::NotSealed)];
        for why in reasons.into_iter().chain(reasons) {
            refused.add(None, why);
        }
        let told: Vec<_> = refused.hosts.iter().map(|host| Some(host.reason)).collect();
        assert_eq!((refused.frames, told), (4, reasons.map(FrameRefusal::reason).to_vec()));
    }
}
