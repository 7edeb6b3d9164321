//! Reassembly of one sender's fragments, in order.

/// Fragments of the message that is not complete yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assembly {
    bytes: Vec<u8>,
    /// Sequence of the first fragment, while a message is open.
    first: Option<u64>,
}

/// A buffer longer than this is not kept for the next message.
const KEPT: usize = 1 << 20;

impl Assembly {
    /// Forgets the open message.
    pub(crate) fn clear(&mut self) {
        self.first = None;
        self.bytes.clear();
        self.bytes.shrink_to(KEPT);
    }

    /// Sequence of the open message's first fragment.
    pub(crate) const fn first(&self) -> Option<u64> {
        self.first
    }

    /// Adds the next fragment; returns the message if it is the last. A message of more than `most`
    /// bytes, or one whose beginning is missing, is dropped.
    pub(crate) fn add<'a>(
        &'a mut self,
        (first, last): (bool, bool),
        sequence: u64,
        body: &'a [u8],
        most: usize,
    ) -> Option<&'a [u8]> {
        if first {
            self.clear();
            if last {
                return (body.len() <= most).then_some(body);
            }
            self.first = Some(sequence);
        }
        self.first?;
        if self.bytes.len() + body.len() > most {
            self.clear();
            return None;
        }
        self.bytes.extend_from_slice(body);
        if last {
            self.first = None;
        }
        last.then_some(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_become_one_message() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add((true, false), 4, b"ab", 9), None);
        assert_eq!(assembly.first(), Some(4));
        assert_eq!(assembly.add((false, false), 5, b"cd", 9), None);
        assert_eq!(assembly.add((false, true), 6, b"e", 9), Some(&b"abcde"[..]));
        assert_eq!(assembly.first(), None);
        assert_eq!(assembly.add((true, true), 7, b"whole", 9), Some(&b"whole"[..]));
    }

    #[test]
    fn too_long_or_headless_messages_are_dropped() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add((false, true), 1, b"tail", 9), None);
        assert_eq!(assembly.add((true, false), 2, b"12345", 9), None);
        assert_eq!(assembly.add((false, false), 3, b"67890", 9), None);
        assert_eq!(assembly.add((false, true), 4, b"x", 9), None);
        assert_eq!(assembly.add((true, true), 5, b"1234567890", 9), None);
        assert_eq!(assembly.add((true, false), 6, b"a", 9), None);
        assert_eq!(assembly.add((true, true), 7, b"b", 9), Some(&b"b"[..]), "a new beginning");
    }
}
