//! Frames that a socket sends, counted by kind, with limits of repairs and of idle traffic.

use crate::ensure;
use crate::violation::{Verdict, Violation};
use lanecast_protocol::{Nanos, SECOND};
use lanecast_wire::net::{Frame, Kind, Range, flag};

/// Number of frame kinds, including 0.
const KINDS: usize = Kind::Parity as usize + 1;

/// Frames and bytes sent by one socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    frames: [u64; KINDS],
    repairs: u64,
    repair_bytes: u64,
    full_naks: u64,
}

impl Traffic {
    /// Counts a datagram, which must be a frame and no longer than the session's limit.
    pub fn count(&mut self, datagram: &[u8], longest: usize) -> Verdict {
        let bytes = datagram.len();
        ensure!(bytes <= longest, "a datagram of {bytes} bytes: the limit is {longest}");
        let no_frame = || Violation(format!("a datagram of {bytes} bytes is no frame"));
        let (frame, rest) = Frame::split(datagram).ok_or_else(no_frame)?;
        ensure!(rest.is_empty(), "{} bytes follow a frame of {bytes}", rest.len());
        self.frames[frame.kind as usize] += 1;
        if frame.kind == Kind::Data && frame.flags & flag::AGAIN != 0 {
            self.repairs += 1;
            self.repair_bytes += bytes as u64;
        }
        let is_full = bytes + size_of::<Range>() > longest;
        self.full_naks += u64::from(frame.kind == Kind::Nak && is_full);
        Ok(())
    }

    /// Number of NAKs; a full one and its continuation count once.
    pub const fn naks(&self) -> u64 {
        self.frames(Kind::Nak) - self.full_naks
    }

    /// Number of frames of a kind.
    pub const fn frames(&self, kind: Kind) -> u64 {
        self.frames[kind as usize]
    }

    /// Number of repairs.
    pub const fn repairs(&self) -> u64 {
        self.repairs
    }

    /// Frames of any kind since `earlier`.
    pub fn since(&self, earlier: &Self) -> u64 {
        self.frames.iter().sum::<u64>() - earlier.frames.iter().sum::<u64>()
    }

    /// Checks that repairs kept to `rate` bytes per second, after a first `burst`.
    pub fn check_repairs(&self, elapsed: Nanos, rate: u64, burst: u64) -> Verdict {
        let earned = u128::from(elapsed) * u128::from(rate) / u128::from(SECOND);
        let most = earned + u128::from(burst);
        let sent = self.repair_bytes;
        ensure!(u128::from(sent) <= most, "{sent} bytes of repairs, but {most} were allowed");
        Ok(())
    }

    /// Checks that at most `most` frames per second were sent since `earlier`.
    pub fn check_idle(&self, earlier: &Self, elapsed: Nanos, most: u64) -> Verdict {
        let sent = self.since(earlier);
        let allowed = u128::from(elapsed) * u128::from(most) / u128::from(SECOND) + 1;
        ensure!(u128::from(sent) <= allowed, "{sent} frames while idle: {allowed} were allowed");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::net::FrameWriter;

    fn frame(kind: Kind, flags: u16) -> [u8; 32] {
        let mut bytes = [0; 32];
        let mut writer = FrameWriter::new(&mut bytes, kind, flags, 1, 1);
        assert!(writer.add_data_header(0, 0));
        assert_eq!(writer.finish(), 32);
        bytes
    }

    #[test]
    fn oversized_and_malformed_frames_are_noticed() {
        let (mut traffic, bytes) = (Traffic::default(), frame(Kind::Data, 0));
        assert!(traffic.count(&bytes, 31).is_err());
        assert!(traffic.count(&bytes[..31], 99).is_err());
        assert!(traffic.count(&[&bytes[..], b"x"].concat(), 99).is_err());
        assert_eq!(traffic, Traffic::default());
        assert_eq!(traffic.count(&bytes, 32), Ok(()));
        assert_eq!((traffic.frames(Kind::Data), traffic.repairs()), (1, 0));
    }

    #[test]
    fn repairs_and_chatter_have_bounds() -> Verdict {
        let mut traffic = Traffic::default();
        for _ in 0..10 {
            traffic.count(&frame(Kind::Data, flag::AGAIN), 32)?;
        }
        traffic.check_repairs(SECOND, 220, 100)?;
        assert!(traffic.check_repairs(SECOND, 219, 100).is_err());
        let earlier = traffic;
        for _ in 0..3 {
            traffic.count(&frame(Kind::Session, flag::CLOSED), 32)?;
        }
        assert_eq!(traffic.repairs(), 10, "flags mean something else in other frames");
        traffic.check_idle(&earlier, SECOND, 2)?;
        assert!(traffic.check_idle(&earlier, SECOND, 1).is_err());
        Ok(())
    }
}
