//! Flow control of replies: a peer that leaves too many replies unread is not read from, so that
//! its requests cannot fill the server's memory. Owned by a send queue, and by a WebSocket for its
//! pongs.

/// Position in a peer's byte stream up to which it must read before the server reads from it again.
#[derive(Debug, Default)]
pub(crate) struct UnreadReplies {
    /// Bytes sent so far.
    sent: u64,
    /// Bytes of replies written since the last check.
    unchecked: usize,
    /// Once so many bytes are sent, all checked replies are.
    sent_when_read: u64,
}

impl UnreadReplies {
    /// Counts `bytes` of replies appended to a queue that is now `queued` bytes long. Checks the
    /// queue once per `limit` bytes of replies, so up to twice `limit` may be queued.
    pub(crate) fn count(&mut self, bytes: usize, queued: usize, limit: usize) {
        self.unchecked = self.unchecked.saturating_add(bytes);
        if self.unchecked > limit {
            self.unchecked = 0;
            if queued > limit {
                self.sent_when_read = self.sent.saturating_add(queued as u64);
            }
        }
    }

    /// Counts sent bytes, replies or not.
    #[inline]
    pub(crate) fn advance(&mut self, count: usize) {
        self.sent += count as u64;
    }

    /// Bytes sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Whether the peer leaves too many replies unread.
    #[inline]
    pub(crate) fn is_blocking(&self) -> bool {
        self.sent < self.sent_when_read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_pauses_only_above_the_limit_of_unread_replies() {
        let mut replies = UnreadReplies::default();
        replies.count(100, 5_000, 100);
        assert!(!replies.is_blocking(), "other bytes are not replies");
        replies.count(1, 5_001, 100);
        assert!(replies.is_blocking());
        replies.advance(5_000);
        assert!(replies.is_blocking());
        replies.advance(1);
        assert!(!replies.is_blocking());
        // A peer that reads is never blocked.
        for _ in 0..1_000 {
            replies.count(60, 60, 100);
            assert!(!replies.is_blocking());
            replies.advance(60);
        }
    }
}
