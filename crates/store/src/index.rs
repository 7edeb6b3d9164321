//! Where the messages of a stream stand in the journal.

/// Bytes of a stream's messages between two marks.
const STRIDE: usize = 64 << 10;

/// A message whose place is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    sequence: u64,
    /// Sequence of its record in the journal.
    position: u64,
    /// The message before it is void, or of another part of the journal: later records with this
    /// sequence or a larger one that stand in front of `position` are void.
    begins_span: bool,
}

/// Sparse index of one stream.
///
/// A sequence can stand in the journal more than once: messages that were never stable are void
/// after a truncation, and others follow under the same sequences. So the journal is read in spans,
/// each up to the sequence at which the next one begins.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamIndex {
    marks: Vec<Mark>,
    /// Sequence after the last message.
    next: u64,
    bytes_since_mark: usize,
    /// Grows when marks go: a reader's place is void.
    generation: u64,
}

/// A place to begin reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Sequence of the first record to read, in the journal.
    pub(crate) position: u64,
    /// Index of the mark.
    mark: usize,
}

impl StreamIndex {
    /// A message of `length` bytes stands at `position`.
    pub(crate) fn on_message(&mut self, sequence: u64, position: u64, length: usize) {
        self.bytes_since_mark += length;
        let begins_span = sequence != self.next || self.marks.is_empty();
        if begins_span || self.bytes_since_mark >= STRIDE {
            self.marks.push(Mark { sequence, position, begins_span });
            self.bytes_since_mark = 0;
        }
        self.next = sequence + 1;
    }

    /// The messages from `next` on are void.
    pub(crate) fn on_truncated(&mut self, next: u64) {
        let kept = self.marks.partition_point(|mark| mark.sequence < next);
        self.marks.truncate(kept);
        self.generation += 1;
        // Not the next sequence of any message: the following one begins a span.
        self.next = u64::MAX;
    }

    /// The messages before `first` are given up.
    pub(crate) fn on_trimmed(&mut self, first: u64) {
        let before = self.marks.partition_point(|mark| mark.sequence <= first);
        if before > 1 {
            self.marks.drain(..before - 1);
            self.generation += 1;
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Where to begin reading to find the message `sequence`.
    pub(crate) fn place(&self, sequence: u64) -> Option<Place> {
        let mark = self.marks.partition_point(|mark| mark.sequence <= sequence).checked_sub(1)?;
        Some(Place { position: self.marks[mark].position, mark })
    }

    /// Whether the message `sequence` at `position` counts, if reading began at `place`.
    pub(crate) fn is_valid(&self, place: &mut Place, sequence: u64, position: u64) -> bool {
        while let Some(next) = self.marks.get(place.mark + 1) {
            if position < next.position {
                return !(next.begins_span && sequence >= next.sequence);
            }
            place.mark += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The positions of the valid messages from `from` on, in a journal of (position, sequence).
    fn read(index: &StreamIndex, journal: &[(u64, u64)], from: u64) -> Vec<u64> {
        let mut place = index.place(from).expect("a message before it");
        let begin = place.position;
        let records = journal.iter().filter(|(position, _)| *position >= begin);
        let valid = records.filter(|(position, sequence)| {
            *sequence >= from && index.is_valid(&mut place, *sequence, *position)
        });
        valid.map(|(position, _)| *position).collect()
    }

    #[test]
    fn void_messages_are_passed_over() {
        let mut index = StreamIndex::default();
        let mut journal = Vec::new();
        let mut add = |index: &mut StreamIndex, sequence, position| {
            index.on_message(sequence, position, 1_000);
            journal.push((position, sequence));
        };
        (0..10).for_each(|sequence| add(&mut index, sequence, 1 + sequence));
        index.on_truncated(7);
        (7..12).for_each(|sequence| add(&mut index, sequence, 20 + sequence));
        index.on_truncated(9);
        (9..11).for_each(|sequence| add(&mut index, sequence, 40 + sequence));
        let expected = [1, 2, 3, 4, 5, 6, 7, 27, 28, 49, 50];
        for from in 0..11 {
            assert_eq!(read(&index, &journal, from), expected[from as usize..], "from {from}");
        }
    }

    #[test]
    fn marks_are_a_stride_apart_and_go_with_retention() {
        let mut index = StreamIndex::default();
        (0..1_000).for_each(|sequence| index.on_message(sequence, 5 * sequence + 1, 1_000));
        assert_eq!(index.marks.len(), 1 + 1_000_000 / (66 * 1_000));
        let place = index.place(500).expect("known");
        assert!((5 * 430..=2_501).contains(&place.position), "{place:?}");
        index.on_trimmed(500);
        assert_eq!(index.place(500), Some(Place { mark: 0, ..place }));
        index.on_trimmed(5_000);
        assert_eq!(index.marks.len(), 1);
    }
}
