//! Positions of a stream's messages in the journal.
//!
//! A sequence can stand in the journal more than once: messages that were never stable are void
//! after a truncation, and others follow under the same sequences; and retention moves messages
//! forward. So a stream is a list of spans, each of messages that stand in the journal in their
//! order, and a reader goes from span to span.

use core::ops::Range;
use lanecast_wire::store::{Span, SpanMark, StreamPositions};

/// Bytes of a stream's messages between two marks.
const STRIDE: u64 = 64 << 10;
/// Record of a message in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageRecord {
    /// Sequence of the message.
    pub(crate) sequence: u64,
    /// Sequence of the record in the journal.
    pub(crate) position: u64,
    /// Bytes of the record.
    pub(crate) length: u64,
    /// Bytes of the journal's records before it.
    pub(crate) journal_bytes: u64,
    /// Time of the record, in nanoseconds since 1970.
    pub(crate) unix_ns: u64,
    /// Bytes of the journal after which a stream's next message has a mark, so that retention of
    /// whole segments finds where to cut a stream of few messages.
    pub(crate) journal_stride: u64,
}

/// Sparse index of one stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamIndex {
    positions: StreamPositions,
    /// Grows when messages have changed places: a reader's place is void.
    generation: u64,
}

/// A place to read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Sequence of the first record to read, in the journal.
    pub(crate) position: u64,
    /// Sequence after the last message that is to be found from there on.
    pub(crate) end: u64,
    /// The records are those of moved messages.
    pub(crate) is_moved: bool,
}

impl StreamIndex {
    /// The index as it stands in a checkpoint.
    pub(crate) const fn new(positions: StreamPositions) -> Self {
        Self { positions, generation: 0 }
    }

    /// The index, for a checkpoint.
    pub(crate) const fn positions(&self) -> &StreamPositions {
        &self.positions
    }

    /// A message was appended.
    pub(crate) fn on_message(&mut self, record: MessageRecord) {
        let it = &mut self.positions;
        let continues = |last: &&mut Span| !last.is_moved && last.end == record.sequence;
        match it.spans.last_mut().filter(|_| it.is_open).filter(continues) {
            Some(span) => add(span, record, it.bytes),
            None => {
                // Only a damaged journal has a message in front of those it has already.
                if it.spans.last().is_some_and(|last| last.end > record.sequence) {
                    return;
                }
                it.spans.push(begin(record, it.bytes, false));
            }
        }
        it.is_open = true;
        it.bytes += record.length;
    }

    /// The messages from `next` on are void.
    pub(crate) fn on_truncated(&mut self, next: u64) {
        let it = &mut self.positions;
        it.spans.retain(|span| span.first < next);
        for span in &mut it.spans {
            span.end = span.end.min(next);
            span.marks.retain(|mark| mark.sequence < next);
        }
        // A void message could stand between the last one and the next.
        it.is_open = false;
        self.generation += 1;
    }

    /// The messages before `first` are given up.
    pub(crate) fn on_trimmed(&mut self, first: u64) {
        let spans = &mut self.positions.spans;
        spans.retain(|span| span.end > first);
        if let Some(span) = spans.first_mut().filter(|span| span.first < first) {
            cut_front(span, first);
        }
    }

    /// The oldest message of a span was appended again.
    pub(crate) fn on_moved(&mut self, record: MessageRecord) {
        let sequence = record.sequence;
        let it = &mut self.positions;
        let Some(at) = it.spans.iter().position(|span| span.first == sequence) else { return };
        self.generation += 1;
        // As many bytes follow it as before.
        let bytes = it.spans[at].marks.first().map_or(it.bytes, |mark| mark.bytes);
        if it.spans[at].end == sequence + 1 {
            it.spans.remove(at);
            // A later message must not continue a span that is not there.
            it.is_open &= at < it.spans.len();
        } else {
            cut_front(&mut it.spans[at], sequence + 1);
        }
        match at.checked_sub(1).map(|before| &mut it.spans[before]) {
            Some(span) if span.is_moved && span.end == sequence => add(span, record, bytes),
            _ => it.spans.insert(at, begin(record, bytes, true)),
        }
    }

    pub(crate) const fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether a message stands before `cut` in the journal.
    pub(crate) fn is_before(&self, cut: u64) -> bool {
        let first = |span: &Span| span.marks.first().map(|mark| mark.position);
        self.positions.spans.iter().filter_map(first).any(|position| position < cut)
    }

    /// Sequences of the messages that stand before `cut` in the journal, and of up to a stride
    /// behind it: the oldest of some spans.
    pub(crate) fn before(&self, cut: u64) -> impl Iterator<Item = Range<u64>> {
        self.positions.spans.iter().filter_map(move |span| {
            let behind = span.marks.iter().find(|mark| mark.position >= cut);
            let end = behind.map_or(span.end, |mark| mark.sequence);
            (span.first < end && span.marks[0].position < cut).then_some(span.first..end)
        })
    }

    /// Bytes of the messages from `sequence` on, and of up to a stride before it.
    pub(crate) fn bytes_from(&self, sequence: u64) -> u64 {
        let before = self.marks().take_while(|mark| mark.sequence <= sequence).last();
        let before = before.or_else(|| self.marks().next());
        before.map_or(0, |mark| self.positions.bytes.saturating_sub(mark.bytes))
    }

    /// The oldest sequence from which on no more than `bytes` are kept, but for a stride.
    pub(crate) fn first_within(&self, bytes: u64) -> u64 {
        let is_within = |mark: &&SpanMark| self.positions.bytes.saturating_sub(mark.bytes) <= bytes;
        let end = self.positions.spans.last().map_or(0, |span| span.end);
        self.marks().find(is_within).map_or(end, |mark| mark.sequence)
    }

    /// The messages of up to a stride among which the first of this time or later is, or else it is
    /// the one behind them: all before them are older. Empty if it is known.
    pub(crate) fn first_since(&self, unix_ns: u64) -> Range<u64> {
        let mut marks = self.marks().skip_while(|mark| mark.unix_ns < unix_ns);
        let end = self.positions.spans.last().map_or(0, |span| span.end);
        let until = marks.next().map_or(end, |mark| mark.sequence);
        let older = self.marks().take_while(|mark| mark.unix_ns < unix_ns).last();
        older.map_or(until, |mark| mark.sequence)..until
    }

    /// Time of the oldest message, or of one up to a stride before it; 0 without messages.
    pub(crate) fn oldest_unix_ns(&self) -> u64 {
        self.marks().next().map_or(0, |mark| mark.unix_ns)
    }

    fn marks(&self) -> impl Iterator<Item = &SpanMark> {
        self.positions.spans.iter().flat_map(|span| &span.marks)
    }

    /// Place from which on reading finds the message `sequence`.
    pub(crate) fn place(&self, sequence: u64) -> Option<Place> {
        let spans = &self.positions.spans;
        let at = spans.partition_point(|span| span.first <= sequence).checked_sub(1)?;
        let span = spans.get(at).filter(|span| sequence < span.end)?;
        let mark = span.marks.partition_point(|mark| mark.sequence <= sequence).checked_sub(1)?;
        let position = span.marks[mark].position;
        Some(Place { position, end: span.end, is_moved: span.is_moved })
    }
}

/// A span of one message.
fn begin(record: MessageRecord, bytes: u64, is_moved: bool) -> Span {
    let (first, end) = (record.sequence, record.sequence + 1);
    Span { first, end, is_moved, marks: vec![mark(record, bytes)] }
}

fn mark(record: MessageRecord, bytes: u64) -> SpanMark {
    let MessageRecord { sequence, position, journal_bytes, unix_ns, .. } = record;
    SpanMark { sequence, position, bytes, journal_bytes, unix_ns }
}

/// Adds the message behind a span.
fn add(span: &mut Span, record: MessageRecord, bytes: u64) {
    let is_far = span.marks.last().is_none_or(|last| {
        // Moved messages do not add to the stream's bytes, so their distance in the journal counts.
        let stride = if span.is_moved { STRIDE } else { record.journal_stride };
        let in_journal = record.journal_bytes.saturating_sub(last.journal_bytes);
        bytes.saturating_sub(last.bytes) >= STRIDE || in_journal >= stride
    });
    if is_far {
        span.marks.push(mark(record, bytes));
    }
    span.end = record.sequence + 1;
}

/// Drops the messages before `first` from a span that has others.
fn cut_front(span: &mut Span, first: u64) {
    span.first = first;
    let before = span.marks.partition_point(|mark| mark.sequence <= first);
    span.marks.drain(..before.saturating_sub(1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_sim::rng::SimRng;
    use std::collections::BTreeMap;

    /// A journal of (position, sequence, whether it was moved), and its index.
    #[derive(Default)]
    struct Journal {
        index: StreamIndex,
        records: Vec<(u64, u64, bool)>,
        position: u64,
    }

    impl Journal {
        fn record(&mut self, sequence: u64, is_moved: bool) -> MessageRecord {
            self.position += 1;
            self.records.push((self.position, sequence, is_moved));
            let (position, length) = (self.position, 1_000);
            let journal_bytes = position * 1_500;
            let unix_ns = position;
            let journal_stride = 16 << 20;
            MessageRecord { sequence, position, length, journal_bytes, unix_ns, journal_stride }
        }

        fn add(&mut self, sequences: std::ops::Range<u64>) {
            for sequence in sequences {
                let record = self.record(sequence, false);
                self.index.on_message(record);
            }
        }

        fn move_on(&mut self, sequences: std::ops::Range<u64>) {
            for sequence in sequences {
                let record = self.record(sequence, true);
                self.index.on_moved(record);
            }
        }

        /// Positions of the messages from `from` on, read as a reader does.
        fn read(&self, from: u64) -> Vec<(u64, u64)> {
            let (mut found, mut expected) = (Vec::new(), from);
            while let Some(place) = self.index.place(expected) {
                for (position, sequence, is_moved) in &self.records {
                    let is_behind = *position >= place.position && *is_moved == place.is_moved;
                    if is_behind && *sequence == expected && expected < place.end {
                        found.push((*sequence, *position));
                        expected += 1;
                    }
                }
                assert_eq!(expected, place.end, "a span is whole");
            }
            found
        }

        fn sequences(&self, from: u64) -> Vec<u64> {
            self.read(from).iter().map(|(sequence, _)| *sequence).collect()
        }
    }

    #[test]
    fn void_messages_are_passed_over() {
        let mut journal = Journal::default();
        journal.add(0..10);
        journal.index.on_truncated(7);
        journal.add(7..12);
        journal.index.on_truncated(9);
        journal.add(9..11);
        let positions = [1, 2, 3, 4, 5, 6, 7, 11, 12, 16, 17];
        let expected: Vec<(u64, u64)> = (0..).zip(positions).collect();
        for from in 0..11 {
            assert_eq!(journal.read(from), expected[from as usize..], "from {from}");
        }
        assert_eq!(journal.index.place(11), None);
    }

    #[test]
    fn marks_are_a_stride_apart_and_go_with_retention() {
        let mut journal = Journal::default();
        journal.add(0..1_000);
        let marks = |journal: &Journal| journal.index.positions().spans[0].marks.len();
        assert_eq!(marks(&journal), 1_000_usize.div_ceil(66));
        let place = journal.index.place(500).expect("known");
        assert!((430..=501).contains(&place.position), "{place:?}");
        journal.index.on_trimmed(500);
        assert_eq!(journal.index.place(500), Some(place));
        assert_eq!(journal.index.place(499), None);
        assert_eq!(journal.sequences(500), (500..1_000).collect::<Vec<_>>());
        journal.index.on_trimmed(5_000);
        assert_eq!(journal.index.place(999), None);
        journal.add(5_000..5_002);
        assert_eq!(journal.sequences(5_000), [5_000, 5_001]);
    }

    #[test]
    fn a_stream_of_few_messages_has_a_mark_in_each_part_of_the_journal() {
        let mut index = StreamIndex::default();
        for sequence in 0..100 {
            let journal_bytes = sequence * (1_000);
            let position = 1_000 * sequence;
            let (length, unix_ns, journal_stride) = (10, 0, 10_000);
            index.on_message(MessageRecord {
                sequence,
                position,
                length,
                journal_bytes,
                unix_ns,
                journal_stride,
            });
        }
        assert_eq!(index.positions().spans[0].marks.len(), 10);
    }

    #[test]
    fn moved_messages_are_read_from_their_new_place() {
        let mut journal = Journal::default();
        journal.add(0..100);
        journal.index.on_truncated(90);
        journal.add(90..120);
        journal.index.on_trimmed(10);
        journal.move_on(10..40);
        journal.add(120..130);
        journal.move_on(40..95);
        journal.add(130..140);
        let all: Vec<u64> = (10..140).collect();
        for from in 10..140 {
            assert_eq!(journal.sequences(from), all[from as usize - 10..], "from {from}");
        }
        // Their former places are not needed any more: the oldest is that of 95.
        let lowest = journal.read(10).iter().map(|(_, position)| *position).min();
        assert_eq!(lowest, Some(106));
        // All of them, and a second time.
        journal.move_on(10..140);
        journal.move_on(10..20);
        journal.add(140..150);
        let again: Vec<u64> = (10..150).collect();
        assert_eq!(journal.sequences(10), again);
    }

    /// A log that is written, cut, given up and moved at random, beside the places of its messages.
    #[test]
    fn every_message_is_found_where_it_was_written_last() {
        for seed in 0..300 {
            let (mut rng, mut journal) = (SimRng::new(seed), Journal::default());
            let mut places: BTreeMap<u64, u64> = BTreeMap::new();
            let mut next = 0;
            for _ in 0..rng.within(5..=60) {
                let oldest = places.keys().next().copied().unwrap_or(next);
                match rng.within(0..=9) {
                    0..=3 => {
                        let count = rng.spread(1..=40);
                        for sequence in next..next + count {
                            journal.add(sequence..sequence + 1);
                            places.insert(sequence, journal.position);
                        }
                        next += count;
                    }
                    4..=5 => {
                        next = rng.within(oldest..=next);
                        journal.index.on_truncated(next);
                        places.split_off(&next);
                    }
                    6 => {
                        let first = rng.within(oldest..=next);
                        journal.index.on_trimmed(first);
                        places = places.split_off(&first);
                    }
                    _ => {
                        let (cut, mut left) =
                            (rng.within(0..=journal.position), rng.spread(1..=60));
                        let ranges: Vec<Range<u64>> = journal.index.before(cut).collect();
                        for sequence in ranges.into_iter().flatten() {
                            if left > 0 {
                                left -= 1;
                                journal.move_on(sequence..sequence + 1);
                                places.insert(sequence, journal.position);
                            }
                        }
                    }
                }
                let from = places.keys().next().copied().unwrap_or(next);
                let from = rng.within(from..=next);
                let expected: Vec<_> = places.range(from..).map(|(key, at)| (*key, *at)).collect();
                assert_eq!(journal.read(from), expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn retention_finds_where_to_cut() {
        let mut journal = Journal::default();
        journal.add(0..1_000);
        let ranges = |index: &StreamIndex, cut| index.before(cut).collect::<Vec<_>>();
        assert_eq!(ranges(&journal.index, 1), []);
        assert!(!journal.index.is_before(1) && journal.index.is_before(2));
        let range = ranges(&journal.index, 500).remove(0);
        assert!(range.start == 0 && (499..566).contains(&range.end), "{range:?}");
        let within = journal.index.first_within(200_000);
        assert!((800..866).contains(&within), "{within}");
        assert_eq!(journal.index.first_within(0), 1_000);
        // The records' numbers are their times: that of message 499 is 500.
        let since = journal.index.first_since(500);
        assert!(since.start > 430 && since.end < 570 && since.contains(&499), "{since:?}");
        assert!(journal.index.first_since(0).is_empty() && journal.index.first_since(0).end == 0);
        assert_eq!(journal.index.first_since(2_000).end, 1_000);
        let bytes = journal.index.bytes_from(800);
        assert!((200_000..=266_000).contains(&bytes), "{bytes}");
        // Moved messages are behind the cut, and count as before.
        journal.move_on(0..range.end);
        assert_eq!(ranges(&journal.index, 500), []);
        assert_eq!(journal.index.first_within(200_000), within);
        assert_eq!(ranges(&journal.index, 1_001).remove(0), range.end..1_000);
    }
}
