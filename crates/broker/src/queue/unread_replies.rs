//! Answers that a peer has not read. Nothing more is read from a peer that leaves too many of them
//! unread, so that what it asks for cannot fill the server's memory.

/// A place in the bytes on their way to a peer, behind which it has to read before it is heard.
#[derive(Debug, Default)]
pub(crate) struct UnreadReplies {
    /// How many bytes have left.
    left: u64,
    /// Bytes of answers since they were last compared with what may wait.
    bytes: usize,
    /// When so many bytes have left, all those answers have.
    until: u64,
}

impl UnreadReplies {
    /// `bytes` were written behind all else, so that `waiting` bytes wait; of answers there may be
    /// up to `most` of them, and as many again that have not been counted yet.
    pub(crate) fn count(&mut self, bytes: usize, waiting: usize, most: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > most {
            self.bytes = 0;
            if waiting > most {
                self.until = self.left.saturating_add(waiting as u64);
            }
        }
    }

    /// So many bytes have left, be they answers or not.
    #[inline]
    pub(crate) fn leave(&mut self, count: usize) {
        self.left += count as u64;
    }

    /// How many bytes have left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Whether too many of them wait.
    #[inline]
    pub(crate) fn are_unread(&self) -> bool {
        self.left < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_wait_to_be_read_only_if_there_are_too_many() {
        let mut answers = UnreadReplies::default();
        answers.count(100, 5_000, 100);
        assert!(!answers.are_unread(), "what else waits is no answer");
        answers.count(1, 5_001, 100);
        assert!(answers.are_unread());
        answers.leave(5_000);
        assert!(answers.are_unread());
        answers.leave(1);
        assert!(!answers.are_unread());
        // One who reads is not held up.
        for _ in 0..1_000 {
            answers.count(60, 60, 100);
            assert!(!answers.are_unread());
            answers.leave(60);
        }
    }
}
