//! One turn of the application, from a poll to the next: which of its frames leave together.
//!
//! A single frame leaves at once: an answer may depend on it. Of several the others follow at the
//! end of the turn, as a system call for each frame and receiver would cost more than the frames.

/// Turns after one with several frames in which the first frame waits for others, too: a sender
/// that is out of credit has turns without frames.
const STREAM_TURNS: u32 = 16;

/// The frames to all of the present turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    frames: u32,
    /// Turns for which the latest stream still counts.
    stream: u32,
    is_packing: bool,
    /// The application may sleep without a call of this crate.
    pub(crate) never_packs: bool,
}

impl Turn {
    /// Counts a frame; whether packing begins with it.
    #[inline]
    pub(crate) const fn packs_from_here(&mut self) -> bool {
        let is_packed = (self.frames > 0 || self.stream > 0) && !self.never_packs;
        self.frames = self.frames.saturating_add(1);
        let begins = is_packed && !self.is_packing;
        self.is_packing |= begins;
        begins
    }

    /// Whether frames were packed, which leave now.
    #[inline]
    pub(crate) const fn take_packed(&mut self) -> bool {
        core::mem::replace(&mut self.is_packing, false)
    }

    /// The next turn begins.
    #[inline]
    pub(crate) const fn end(&mut self) {
        let is_stream = self.frames > 1;
        self.stream = if is_stream { STREAM_TURNS } else { self.stream.saturating_sub(1) };
        self.frames = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends so many frames in a turn; those from which on they are packed.
    fn send(turn: &mut Turn, frames: u32) -> Vec<u32> {
        let packed = (0..frames).filter(|_| turn.packs_from_here()).collect();
        turn.end();
        assert_eq!(turn.take_packed(), !Vec::is_empty(&packed));
        packed
    }

    #[test]
    fn single_frames_leave_at_once_and_streams_leave_together() {
        let mut turn = Turn::default();
        assert_eq!(send(&mut turn, 1), []);
        assert_eq!(send(&mut turn, 1), []);
        assert_eq!(send(&mut turn, 64), [1], "all but the first");
        assert_eq!(send(&mut turn, 64), [0], "the stream goes on");
        for _ in 0..STREAM_TURNS / 2 {
            assert_eq!(send(&mut turn, 0), []);
        }
        assert_eq!(send(&mut turn, 1), [0], "out of credit for a while");
        for _ in 0..STREAM_TURNS {
            send(&mut turn, 0);
        }
        assert_eq!(send(&mut turn, 1), [], "the stream is over");
    }

    #[test]
    fn nothing_waits_for_an_application_that_may_sleep() {
        let mut turn = Turn { never_packs: true, ..Turn::default() };
        assert_eq!(send(&mut turn, 64), []);
        assert_eq!(send(&mut turn, 64), []);
    }
}
