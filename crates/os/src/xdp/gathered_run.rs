//! Datagrams of one sender, gathered from single frames as the kernel gathers them (GRO).

use crate::udp::ReceivedRun;
use std::net::SocketAddrV4;

/// A run that grows in a buffer: one sender's datagrams, all but the last equally long, so that the
/// run's reader finds where each begins without believing any of them.
#[derive(Debug, Default)]
pub(super) struct GatheredRun {
    run: Option<(ReceivedRun, SocketAddrV4)>,
    is_complete: bool,
}

impl GatheredRun {
    /// Whether the last datagram was shorter: none can follow it.
    #[inline]
    pub(super) const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Appends a datagram to the run in `into`; false if it belongs to another run. Drops a first
    /// one that is longer than the buffer.
    #[inline]
    pub(super) fn append(&mut self, payload: &[u8], from: SocketAddrV4, into: &mut [u8]) -> bool {
        let length = payload.len();
        match &mut self.run {
            None if length > into.len() => {}
            None => {
                into[..length].copy_from_slice(payload);
                self.run = Some((ReceivedRun { bytes: length, segment: length }, from));
                // Datagrams without content cannot be told from each other.
                self.is_complete = length == 0;
            }
            Some((run, sender)) => {
                let end = run.bytes + length;
                if end > into.len() || *sender != from || length > run.segment || length == 0 {
                    return false;
                }
                into[run.bytes..end].copy_from_slice(payload);
                run.bytes = end;
                self.is_complete = length < run.segment;
            }
        }
        true
    }

    /// The run and its sender; `None` if no datagram came.
    #[inline]
    pub(super) const fn finish(self) -> Option<(ReceivedRun, SocketAddrV4)> {
        self.run
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn sender(port: u16) -> SocketAddrV4 {
        SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)
    }

    #[test]
    fn datagrams_of_one_length_make_a_run_and_a_shorter_one_ends_it() {
        let (mut run, mut into) = (GatheredRun::default(), [0; 16]);
        assert!(!run.is_complete());
        assert!(run.append(b"aaaa", sender(1), &mut into));
        assert!(!run.append(b"bbbb", sender(2), &mut into), "another sender's");
        assert!(!run.append(b"longer", sender(1), &mut into));
        assert!(!run.append(b"", sender(1), &mut into));
        assert!(run.append(b"bbbb", sender(1), &mut into) && !run.is_complete());
        assert!(run.append(b"cc", sender(1), &mut into) && run.is_complete());
        let expected = (ReceivedRun { bytes: 10, segment: 4 }, sender(1));
        assert_eq!(run.finish(), Some(expected));
        assert_eq!(&into[..10], b"aaaabbbbcc");
    }

    #[test]
    fn a_run_is_no_longer_than_the_buffer() {
        let (mut run, mut into) = (GatheredRun::default(), [0; 8]);
        assert!(run.append(b"too long for it", sender(1), &mut into), "it is dropped");
        assert!(run.append(b"aaaaaa", sender(1), &mut into));
        assert!(!run.append(b"bbb", sender(1), &mut into));
        assert_eq!(run.finish(), Some((ReceivedRun { bytes: 6, segment: 6 }, sender(1))));
        assert_eq!(GatheredRun::default().finish(), None);
        let mut run = GatheredRun::default();
        assert!(run.append(b"", sender(1), &mut into) && run.is_complete());
        assert_eq!(run.finish(), Some((ReceivedRun { bytes: 0, segment: 0 }, sender(1))));
    }
}
