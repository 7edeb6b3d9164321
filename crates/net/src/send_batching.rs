//! Send batching: whether a commit is sent at once, or packed with the commits that follow.
//!
//! Owned by a publisher's `SendSession`, consulted at each commit. Like Nagle's algorithm, but by
//! the clock: a single message never waits, a stream is packed into large system calls.

use lanecast_protocol::{MICROSECOND, Nanos};

/// A commit within this time of the end of the last send is back to back: the application commits
/// faster than messages can be sent one by one, however long a send takes.
const BACK_TO_BACK: Nanos = MICROSECOND;
/// Average interval of commits from which on a stream has paused.
const PAUSE: Nanos = 2 * MICROSECOND;
/// Back-to-back commits that make a stream. Fewer are a burst, sent message by message.
const STREAM_COMMITS: u32 = 16;
/// Commits between two readings of the clock while batching.
const CHECK_INTERVAL: u32 = 8;
/// Unsent bytes that are worth a system call.
const FULL_BYTES: usize = 60 << 10;
/// The same of a packed batch over TCP, which no length of datagrams limits: the application tells
/// the end of the batch, and each receiver costs a call.
pub(crate) const FULL_PACKED_STREAM_BYTES: usize = 256 << 10;

/// The action after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchDecision {
    /// Send full datagrams; the last, partial one stays open.
    Send,
    /// Send everything: nothing may follow for a while.
    Flush,
    /// Send nothing yet: more is coming.
    Keep,
}

/// Detector of streams.
///
/// Each commit is sent at once until commits come back to back. From then on they are packed, and
/// sent when they fill a large system call, or when the stream pauses. One pause may be an
/// interruption; a second in a row ends the stream. A pause shows at the next commit; if none
/// follows, the conductor flushes.
#[derive(Debug)]
pub(crate) struct SendBatching {
    is_batching: bool,
    /// The application says when a batch ends.
    is_packing: bool,
    /// Back-to-back commits so far.
    back_to_back: u32,
    /// Time of the end of the last send, or of the last reading of the clock.
    last: Nanos,
    unsent: usize,
    /// Unsent bytes of a packed batch that are sent before its end.
    full_packed: usize,
    until_check: u32,
    /// The last check found a pause.
    paused: bool,
}

impl SendBatching {
    pub(crate) const fn new() -> Self {
        Self {
            is_batching: false,
            is_packing: false,
            back_to_back: 0,
            last: 0,
            unsent: 0,
            full_packed: FULL_BYTES,
            until_check: 0,
            paused: false,
        }
    }

    /// The same, with `bytes` of a packed batch that are sent before its end.
    pub(crate) const fn packing_up_to(mut self, bytes: usize) -> Self {
        self.full_packed = bytes;
        self
    }

    /// Whether commits are packed: then [`on_commit`](Self::on_commit) decides.
    #[inline(always)]
    pub(crate) const fn is_batching(&self) -> bool {
        self.is_batching
    }

    /// A message, committed at `committed`, was sent by itself until `now`. Returns whether the
    /// next ones are packed.
    pub(crate) fn sent_alone(&mut self, committed: Nanos, now: Nanos) -> bool {
        // Measured from the end of the last send: a slow system call must not look like a pause.
        let close = committed.wrapping_sub(self.last) < BACK_TO_BACK;
        self.back_to_back = if close { self.back_to_back + 1 } else { 0 };
        self.last = now;
        if self.back_to_back >= STREAM_COMMITS {
            self.is_batching = true;
            self.until_check = CHECK_INTERVAL;
            self.paused = false;
        }
        self.is_batching
    }

    /// A message of `bytes` was committed while batching.
    #[inline(always)]
    pub(crate) fn on_commit(&mut self, bytes: usize, now: impl FnOnce() -> Nanos) -> BatchDecision {
        self.unsent += bytes;
        if self.is_packing {
            let is_full = self.unsent >= self.full_packed;
            return if is_full { BatchDecision::Send } else { BatchDecision::Keep };
        }
        self.until_check -= 1;
        // The clock is read at every eighth commit only: packing has to cost less than sending.
        if self.until_check == 0 && self.has_paused(now()) {
            BatchDecision::Flush
        } else if self.unsent >= FULL_BYTES {
            BatchDecision::Send
        } else {
            BatchDecision::Keep
        }
    }

    /// Whether the last commits took so long that each could have been sent; ends the stream at the
    /// second such check in a row.
    fn has_paused(&mut self, now: Nanos) -> bool {
        let took = now.wrapping_sub(self.last);
        let has_paused = took > PAUSE * Nanos::from(CHECK_INTERVAL);
        // One long check may be an interruption by the system; two in a row are the stream's own.
        if has_paused && self.paused {
            self.stop();
        }
        self.paused = has_paused;
        self.last = now;
        self.until_check = CHECK_INTERVAL;
        has_paused
    }

    /// Commits are packed until [`stop`](Self::stop), whatever their intervals.
    pub(crate) const fn pack(&mut self) {
        (self.is_batching, self.is_packing) = (true, true);
    }

    /// Whether commits are packed since the application wants it.
    pub(crate) const fn is_packing(&self) -> bool {
        self.is_packing
    }

    /// Everything was sent.
    #[inline]
    pub(crate) fn emptied(&mut self) {
        self.unsent = 0;
    }

    /// Excludes the time until `now` from pauses: it went into sending, receiving, or waiting for
    /// room.
    pub(crate) fn restart_clock(&mut self, now: Nanos) {
        (self.last, self.until_check) = (now, CHECK_INTERVAL);
    }

    /// Ends the stream: each commit is sent at once.
    pub(crate) fn stop(&mut self) {
        (self.is_batching, self.is_packing) = (false, false);
        self.back_to_back = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_is_sent_message_by_message() {
        let mut batching = SendBatching::new();
        for burst in 0..100u64 {
            for commit in 0..u64::from(STREAM_COMMITS) {
                let now = 1_000_000 + burst * 50_000 + commit * 1_500;
                assert!(!batching.sent_alone(now, now + 1_400), "burst {burst}, commit {commit}");
            }
        }
    }

    /// A stream whose messages take `sending` each while they are sent one by one.
    fn stream(sending: Nanos) {
        let mut batching = SendBatching::new();
        let mut now = 1_000_000;
        while !batching.sent_alone(now, now + sending) {
            now += sending + 20;
        }
        now += sending;
        let mut sends = 0;
        for _ in 0..10_000 {
            now += 20;
            if batching.on_commit(30, || now) == BatchDecision::Send {
                sends += 1;
                now += 100 * MICROSECOND;
                batching.emptied();
                batching.restart_clock(now);
            }
        }
        assert_eq!(sends, 10_000 * 30 / FULL_BYTES);
        assert!(batching.is_batching());
        for is_over in [false, true] {
            let held = (0..).take_while(|_| {
                now += 20_000;
                batching.on_commit(30, || now) == BatchDecision::Keep
            });
            assert!(held.count() < CHECK_INTERVAL as usize);
            assert_eq!(batching.is_batching(), !is_over);
        }
    }

    #[test]
    fn packed_commits_wait_for_the_end_of_the_batch_or_a_full_call() {
        let mut batching = SendBatching::new();
        batching.pack();
        let clock = || panic!("the application tells when it pauses");
        for commit in 1..=10_000_usize {
            let is_full = commit % FULL_BYTES.div_ceil(30) == 0;
            let expected = if is_full { BatchDecision::Send } else { BatchDecision::Keep };
            assert_eq!(batching.on_commit(30, clock), expected, "commit {commit}");
            if is_full {
                batching.emptied();
            }
        }
        batching.stop();
        assert!(!batching.is_batching() && !batching.is_packing());
    }

    /// Each receiver costs a call for each of them.
    #[test]
    fn a_packed_batch_over_tcp_leaves_in_one_call() {
        let mut batching = SendBatching::new().packing_up_to(FULL_PACKED_STREAM_BYTES);
        batching.pack();
        for _ in 0..64 {
            assert_eq!(batching.on_commit(1_100, || 0), BatchDecision::Keep);
        }
        let kept =
            (0..1_000).take_while(|_| batching.on_commit(1_100, || 0) == BatchDecision::Keep);
        assert!(kept.count() < 200, "bounded");
    }

    #[test]
    fn an_interruption_does_not_end_a_stream() {
        let mut batching = SendBatching::new();
        let mut now = 1_000_000;
        while !batching.sent_alone(now, now + 1_500) {
            now += 1_520;
        }
        now += 1_500;
        let mut flushes = 0;
        for number in 1..=100_000u64 {
            now += if number % 1_000 == 0 { 200_000 } else { 20 };
            let verdict = batching.on_commit(30, || now);
            flushes += u64::from(verdict == BatchDecision::Flush);
            if verdict != BatchDecision::Keep {
                batching.emptied();
            }
        }
        assert!(batching.is_batching());
        assert_eq!(flushes, 100);
    }

    #[test]
    fn a_stream_is_packed_until_it_falters() {
        stream(1_500);
    }

    #[test]
    fn a_stream_to_many_is_packed_too_however_long_sending_takes() {
        stream(30_000);
    }

    #[test]
    fn messages_that_can_be_sent_one_by_one_are() {
        let mut batching = SendBatching::new();
        for number in 0..1_000u64 {
            let now = 1_000_000 + number * 3_000;
            assert!(!batching.sent_alone(now, now + 1_200));
        }
    }
}
