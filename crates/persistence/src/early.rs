//! Messages that came before those in front of them, in bounded memory.

use std::collections::BTreeMap;

/// Bytes that a waiting message counts beside its body: empty ones take memory too.
const OVERHEAD: usize = 64;

/// Memory that counts for a waiting message.
pub(crate) const fn cost(body: &[u8]) -> usize {
    body.len() + OVERHEAD
}

/// Messages of one stream behind a gap, at a store or a receiver.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyMessages {
    messages: BTreeMap<u64, Box<[u8]>>,
    bytes: usize,
}

impl EarlyMessages {
    pub(crate) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Keeps a message, if there is room for it among `bytes_max`.
    pub(crate) fn keep(&mut self, sequence: u64, body: &[u8], bytes_max: usize) {
        if self.bytes + cost(body) <= bytes_max && !self.messages.contains_key(&sequence) {
            self.bytes += cost(body);
            self.messages.insert(sequence, body.into());
        }
    }

    /// Takes the message `next`, if it is here; those before it are forgotten.
    pub(crate) fn take(&mut self, next: u64) -> Option<Box<[u8]>> {
        while let Some(entry) = self.messages.first_entry() {
            let sequence = *entry.key();
            if sequence > next {
                return None;
            }
            let body = entry.remove();
            self.bytes -= cost(&body);
            if sequence == next {
                return Some(body);
            }
        }
        None
    }

    /// The first message that is not before `sequence`.
    pub(crate) fn first_from(&self, sequence: u64) -> Option<u64> {
        self.messages.range(sequence..).next().map(|(first, _)| *first)
    }

    pub(crate) fn clear(&mut self) {
        self.messages.clear();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_taken_in_order_and_empty_ones_are_bounded_too() {
        let mut early = EarlyMessages::default();
        for sequence in 0..1_000_000 {
            early.keep(sequence, b"", 10 * OVERHEAD);
        }
        assert_eq!(early.messages.len(), 10);
        assert_eq!(early.take(3).as_deref(), Some(&b""[..]));
        assert_eq!(early.messages.len(), 6, "those before it are forgotten");
        assert_eq!(early.take(3), None);
        early.keep(20, b"body", usize::MAX);
        assert_eq!(early.take(19), None);
        assert_eq!(early.take(20).as_deref(), Some(&b"body"[..]));
        assert!(early.is_empty() && early.bytes == 0);
    }
}
