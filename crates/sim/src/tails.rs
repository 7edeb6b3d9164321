//! Check that a heartbeat soon follows the last data, so that its loss is noticed.

use crate::ensure;
use crate::violation::Verdict;
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_wire::net::{Frame, Kind, flag};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Longest wait: two round trips of at most 10 ms each, and the duty cycle.
const SOON: Nanos = 21 * MILLISECOND;

/// Time of the last data without a following heartbeat, by receiver or group.
#[derive(Debug, Default)]
pub struct Tails(BTreeMap<SocketAddr, Nanos>);

impl Tails {
    /// Records a datagram that is sent.
    pub fn sends(&mut self, now: Nanos, to: SocketAddr, datagram: &[u8]) -> Verdict {
        let Some((frame, _)) = Frame::split(datagram) else { return Ok(()) };
        match frame.kind {
            Kind::Data if frame.flags & flag::AGAIN == 0 => _ = self.0.insert(to, now),
            // Another receiver has this address from now on.
            Kind::Welcome => _ = self.0.remove(&to),
            Kind::Session => {
                let wait = self.0.remove(&to).map_or(0, |sent| now - sent);
                ensure!(wait <= SOON, "{wait} ns after the last data the first sign of life");
            }
            _ => {}
        }
        Ok(())
    }

    /// The process is suspended, or no receiver is left.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::FrameWriter;

    fn frame(kind: Kind) -> [u8; 32] {
        let mut bytes = [0; 32];
        assert!(FrameWriter::new(&mut bytes, kind, 0, 1, 1).add_data_header(0, 0));
        bytes[6] = 32;
        bytes
    }

    #[test]
    fn a_late_sign_of_life_is_noticed() -> Verdict {
        let (mut tails, to) = (Tails::default(), SocketAddr::from(([10, 0, 0, 1], 1)));
        tails.sends(0, to, &frame(Kind::Data))?;
        tails.sends(SOON, to, &frame(Kind::Data))?;
        tails.sends(2 * SOON, to, &frame(Kind::Session))?;
        tails.sends(9 * SOON, to, &frame(Kind::Session))?;
        tails.sends(10 * SOON, to, &frame(Kind::Data))?;
        assert!(tails.sends(11 * SOON + 1, to, &frame(Kind::Session)).is_err());
        tails.sends(20 * SOON, to, &frame(Kind::Data))?;
        tails.forget();
        tails.sends(30 * SOON, to, &frame(Kind::Session))
    }
}
