//! Frames of a view that this member has not installed yet.

use crate::view::MemberId;
use lanecast_wire::group::DataFlags;

/// Bytes kept at most; frames beyond are asked for again after the view is installed.
const MOST_BYTES: usize = 256 << 10;
/// Frames kept at most.
const MOST_FRAMES: usize = 1_024;

#[derive(Clone, Copy, Debug)]
struct Frame {
    from: MemberId,
    epoch: u64,
    sequence: u64,
    flags: DataFlags,
    length: usize,
}

/// The first frames of the next view, from members that installed it sooner.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyFrames {
    frames: Vec<Frame>,
    bytes: Vec<u8>,
}

impl EarlyFrames {
    /// Keeps a frame if there is room.
    pub(crate) fn keep(
        &mut self,
        from: MemberId,
        epoch: u64,
        (sequence, flags, body): (u64, DataFlags, &[u8]),
    ) -> bool {
        let room = self.frames.len() < MOST_FRAMES && self.bytes.len() + body.len() <= MOST_BYTES;
        if room {
            self.frames.push(Frame { from, epoch, sequence, flags, length: body.len() });
            self.bytes.extend_from_slice(body);
        }
        room
    }

    /// Gives the frames of this epoch and keeps those of later ones.
    pub(crate) fn release(
        self,
        epoch: u64,
        mut take: impl FnMut(MemberId, u64, DataFlags, &[u8]),
    ) -> Self {
        let (mut later, mut at) = (Self::default(), 0);
        for frame in self.frames {
            let body = &self.bytes[at..][..frame.length];
            at += frame.length;
            if frame.epoch == epoch {
                take(frame.from, frame.sequence, frame.flags, body);
            } else if frame.epoch > epoch {
                later.keep(frame.from, frame.epoch, (frame.sequence, frame.flags, body));
            }
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_released_with_their_epoch_and_bounded() {
        let mut early = EarlyFrames::default();
        let whole = DataFlags(DataFlags::FIRST | DataFlags::LAST);
        for (epoch, sequence) in [(4, 1), (5, 2), (4, 3), (6, 4)] {
            assert!(early.keep(MemberId(9), epoch, (sequence, whole, &[sequence as u8; 3])));
        }
        let mut released = Vec::new();
        let mut early = early.release(5, |_, sequence, _, body| {
            assert_eq!(body, [sequence as u8; 3]);
            released.push(sequence);
        });
        assert_eq!(released, [2], "those of epoch 4 are stale, that of 6 is early still");
        assert_eq!(early.frames.len(), 1);
        let kept =
            (0..2_000).filter(|&n| early.keep(MemberId(9), 6, (n, whole, &[0; 100]))).count();
        assert_eq!(kept, MOST_FRAMES - 1);
    }
}
