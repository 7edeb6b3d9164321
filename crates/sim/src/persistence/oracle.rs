//! The messages that were told to be stable, and the checks against them.

use crate::ensure;
use crate::violation::Verdict;
use lanecast_protocol::Nanos;
use std::collections::{BTreeMap, BTreeSet};

/// Knows every message that was sent, and those that were told to be stable.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    sent: BTreeSet<(u64, Vec<u8>)>,
    stable: Vec<Vec<u8>>,
    /// Times at which they were told to be, by a world's clock.
    stable_at: Vec<Nanos>,
    now: Nanos,
    /// Sessions of publishers that have ended.
    ended: BTreeSet<u64>,
    /// The earliest and the latest time at which stores have written each message, copies by the
    /// times that they keep.
    written: BTreeMap<u64, (u64, u64)>,
}

impl Oracle {
    /// Sets the clock, in a world that has one.
    pub const fn set_time(&mut self, now: Nanos) {
        self.now = now;
    }

    /// A run has sent a message.
    pub fn on_sent(&mut self, sequence: u64, body: &[u8]) {
        self.sent.insert((sequence, body.to_vec()));
    }

    /// Number of stable messages.
    pub const fn stable(&self) -> u64 {
        self.stable.len() as u64
    }

    /// Whether this is the stable message of its sequence.
    pub fn is_stable(&self, sequence: u64, body: &[u8]) -> bool {
        self.stable.get(sequence as usize).is_some_and(|it| it == body)
    }

    /// The stable message of a sequence.
    pub fn stable_body(&self, sequence: u64) -> Option<&[u8]> {
        self.stable.get(sequence as usize).map(Vec::as_slice)
    }

    /// A store has written these messages, each at its time.
    pub fn on_written(&mut self, messages: Vec<(u64, u64)>) {
        for (sequence, unix_ns) in messages {
            let (first, last) = self.written.entry(sequence).or_insert((unix_ns, unix_ns));
            (*first, *last) = ((*first).min(unix_ns), (*last).max(unix_ns));
        }
    }

    /// Sequence after the last message that any store has written.
    pub fn written_end(&self) -> u64 {
        self.written.last_key_value().map_or(0, |(sequence, _)| sequence + 1)
    }

    /// Whether a store has written a message before this time.
    pub fn was_written_before(&self, sequence: u64, unix_ns: u64) -> bool {
        self.written.get(&sequence).is_some_and(|(first, _)| *first < unix_ns)
    }

    /// Whether a store has written a message at this time or later.
    pub fn was_written_since(&self, sequence: u64, unix_ns: u64) -> bool {
        self.written.get(&sequence).is_some_and(|(_, last)| *last >= unix_ns)
    }

    /// Number of messages that were stable at `known`, in front of the first one that a store has
    /// written at this time or later.
    pub fn older_than(&self, unix_ns: u64, known: Nanos) -> u64 {
        let stable = self.stable_at.partition_point(|at| *at <= known) as u64;
        (0..stable).find(|it| self.was_written_since(*it, unix_ns)).unwrap_or(stable)
    }

    /// A publisher has ended.
    pub fn on_ended(&mut self, session: u64) {
        self.ended.insert(session);
    }

    /// A receiver that was handed out `last` is told that its session has ended, with nothing of it
    /// from `next` on.
    ///
    /// # Errors
    /// If a later message of the session is stable. One that lives may have more: a store may take
    /// it for dead.
    pub fn on_left(&self, last: &[u8], next: u64) -> Verdict {
        let later = self.stable_body(next).filter(|later| session(later) == session(last));
        let has_ended = session(last).is_some_and(|it| self.ended.contains(&it));
        ensure!(
            !has_ended || later.is_none(),
            "the end of a session is told, and its message {next} is stable"
        );
        Ok(())
    }

    /// A run was told that its message is stable.
    ///
    /// # Errors
    /// If another message was told to be stable under its sequence.
    pub fn on_stable(&mut self, sequence: u64, body: &[u8]) -> Verdict {
        let next = self.stable();
        if sequence == next {
            self.stable.push(body.to_vec());
            self.stable_at.push(self.now);
        }
        ensure!(sequence <= next, "message {sequence} is stable, {next} was not told to be");
        ensure!(
            self.stable[sequence as usize] == body,
            "two messages are stable under sequence {sequence}"
        );
        Ok(())
    }

    /// A run goes on at `next`, after what its stores have kept.
    ///
    /// # Errors
    /// If a stable message is missing.
    pub fn on_registered(&self, next: u64) -> Verdict {
        let stable = self.stable();
        ensure!(next >= stable, "a run begins at {next}, and {stable} messages are stable");
        Ok(())
    }

    /// A message that a receiver was handed out, live or from a store: it may be discarded later.
    ///
    /// # Errors
    /// If it was never sent.
    pub fn on_handed_out(&self, sequence: u64, body: &[u8]) -> Verdict {
        ensure!(
            self.sent.contains(&(sequence, body.to_vec())),
            "message {sequence} was never sent as it is handed out"
        );
        Ok(())
    }

    /// A message in the log of a store that counts.
    ///
    /// # Errors
    /// If it was never sent, or is another than the stable one.
    pub fn on_kept(&self, sequence: u64, body: &[u8]) -> Verdict {
        ensure!(
            self.sent.contains(&(sequence, body.to_vec())),
            "message {sequence} was never sent as it is kept"
        );
        if let Some(stable) = self.stable.get(sequence as usize) {
            ensure!(stable == body, "message {sequence} is kept other than it was stable");
        }
        Ok(())
    }
}

/// The session that has sent a message: bodies name it behind their sequence.
pub(super) fn session(body: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(body.get(8..16)?.try_into().ok()?))
}
