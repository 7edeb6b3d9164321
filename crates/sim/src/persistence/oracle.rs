//! The messages that were told to be stable, and the checks against them.

use crate::ensure;
use crate::violation::Verdict;
use std::collections::BTreeSet;

/// Knows every message that was sent, and those that were told to be stable.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    sent: BTreeSet<(u64, Vec<u8>)>,
    stable: Vec<Vec<u8>>,
}

impl Oracle {
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

    /// A run was told that its message is stable.
    ///
    /// # Errors
    /// If another message was told to be stable under its sequence.
    pub fn on_stable(&mut self, sequence: u64, body: &[u8]) -> Verdict {
        let next = self.stable();
        if sequence == next {
            self.stable.push(body.to_vec());
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
