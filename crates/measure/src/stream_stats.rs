//! Statistics of one stream at a subscriber: counts, order, times.
//!
//! The path of a message is a load, a compare and two additions. Exceptions (the first message,
//! the end of the warm-up, a gap) take a separate, slow path.

use crate::holes::Holes;
use crate::latency::LatencyRecorder;
use crate::linear::{Linear, LinearShape};
use crate::record::{self, FILLED, TIMESTAMPED, WARM_UP};
use lanecast_base::clock::Clock;
use lanecast_transport::Stream;

/// Counts of one stream.
#[derive(Clone, Debug)]
pub(crate) struct StreamStats {
    pub(crate) stream: Stream,
    /// Next expected word, without losses or a change of flags.
    expected: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) reported_lost: u64,
    pub(crate) duplicated: u64,
    pub(crate) damaged: u64,
    /// Messages without a number, or with one that no measuring publisher writes.
    pub(crate) unchecked: u64,
    pub(crate) first_number: Option<u64>,
    /// Numbers that may still come, of a subscriber in order of arrival: those before the first
    /// message, and those counted as lost.
    holes: Option<[Holes; 2]>,
    /// Messages received before the first measured one, and its time.
    measured_from: Option<(u64, u64)>,
    /// Latest count of messages and the time it was noted.
    last: Option<(u64, u64)>,
    pub(crate) latency: LatencyRecorder,
    /// Latencies from the actual time again, if this histogram was asked for.
    pub(crate) linear: Option<Linear>,
    pub(crate) clock: Clock,
}

/// A word that no publisher writes, since unknown flags are set.
const NONE_SEEN: u64 = u64::MAX;

impl StreamStats {
    pub(crate) fn new(stream: Stream, clock: Clock, linear: Option<LinearShape>) -> Self {
        Self {
            stream,
            expected: NONE_SEEN,
            received: 0,
            lost: 0,
            reported_lost: 0,
            duplicated: 0,
            damaged: 0,
            unchecked: 0,
            first_number: None,
            holes: None,
            measured_from: None,
            last: None,
            latency: LatencyRecorder::default(),
            linear: linear.map(Linear::new),
            clock,
        }
    }

    /// Expects messages in order of arrival: a number passed over may come later, once.
    pub(crate) fn in_order_of_arrival(self) -> Self {
        Self { holes: Some(Default::default()), ..self }
    }

    /// Counts a message and checks that it is the next one; returns its word, if it has one. The
    /// messages of other programs have none.
    #[inline(always)]
    pub(crate) fn count(&mut self, bytes: &[u8]) -> Option<u64> {
        self.received += 1;
        let Some(word) = record::word(bytes) else {
            self.count_unchecked();
            return None;
        };
        if word == self.expected && word != NONE_SEEN {
            self.expected = word + 1;
            Some(word)
        } else {
            self.count_out_of_turn(word)
        }
    }

    /// Records the latency of a stamped message; the clock is read after the message's word.
    #[inline(always)]
    pub(crate) fn time(&mut self, bytes: &[u8], word: u64) {
        if word & TIMESTAMPED != 0 {
            self.time_stamped(bytes);
        }
    }

    /// Not inlined, so that the path of a message without stamps stays short.
    #[inline(never)]
    fn time_stamped(&mut self, bytes: &[u8]) {
        let now = self.clock.ticks_ordered();
        let Some(stamps) = record::stamps(bytes) else {
            self.damaged += 1;
            return;
        };
        let ns = |sent| self.clock.ns(now.saturating_sub(sent));
        let actual_ns = ns(stamps.actual);
        self.latency.record(actual_ns, ns(stamps.intended));
        if let Some(linear) = &mut self.linear {
            linear.record(actual_ns);
        }
    }

    /// Reads the whole body; what was filled must be as it was written.
    #[inline(always)]
    pub(crate) fn read_whole(&mut self, bytes: &[u8], word: Option<u64>) {
        let word = word.unwrap_or(0);
        let intact = std::hint::black_box(record::body_is_intact(bytes, word));
        if word & FILLED != 0 && !intact {
            self.damaged += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn count_unchecked(&mut self) {
        self.unchecked += 1;
        if self.measured_from.is_none() {
            self.measured_from = Some((self.received - 1, self.clock.ticks()));
        }
    }

    #[cold]
    #[inline(never)]
    fn count_out_of_turn(&mut self, word: u64) -> Option<u64> {
        if !record::is_known(word) {
            self.count_unchecked();
            return None;
        }
        let number = record::number(word);
        if self.expected == NONE_SEEN {
            self.first_number = Some(number);
            if let Some([before, _]) = &mut self.holes {
                before.pass_over(0, number);
            }
        } else {
            let expected = record::number(self.expected);
            if number < expected {
                self.count_overtaken(number);
                return Some(word);
            }
            self.lost = self.lost.saturating_add(number - expected);
            if let Some([_, lost]) = &mut self.holes {
                lost.pass_over(expected, number);
            }
        }
        self.expected = word.wrapping_add(1);
        if word & WARM_UP == 0 && self.measured_from.is_none() {
            self.measured_from = Some((self.received - 1, self.clock.ticks()));
        }
        Some(word)
    }

    /// Counts a message behind a later one.
    fn count_overtaken(&mut self, number: u64) {
        let [before, lost] = match &mut self.holes {
            None => [false, false],
            Some([before, lost]) => [before.fill(number), lost.fill(number)],
        };
        self.lost -= u64::from(lost);
        self.duplicated += u64::from(!before && !lost);
    }

    /// Notes the time if messages have come since the last note. Called when there was nothing to
    /// read, so that not every message reads the clock.
    #[inline]
    pub(crate) fn note_time(&mut self) {
        if self.last.is_none_or(|(received, _)| received != self.received) && self.received > 0 {
            self.last = Some((self.received, self.clock.ticks()));
        }
    }

    /// Whether the measured part has begun.
    pub(crate) const fn is_measured(&self) -> bool {
        self.measured_from.is_some()
    }

    /// Number of warm-up messages.
    pub(crate) fn warm_up(&self) -> u64 {
        self.measured_from.map_or(self.received, |(before, _)| before)
    }

    /// The first and the last measured message's time, in ticks.
    pub(crate) fn span(&self) -> Option<(u64, u64)> {
        Some((self.measured_from?.1, self.last?.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_transport::{SessionId, TopicId};

    fn stats() -> StreamStats {
        let stream = Stream {
            session: SessionId(1),
            topic: "t".into(),
            topic_id: TopicId::FIRST,
            pid: 1,
            source: "test".into(),
        };
        StreamStats::new(stream, Clock::host(), LinearShape::new(10, 1_000_000_000))
    }

    fn counted(words: &[u64]) -> StreamStats {
        let mut stats = stats();
        for word in words {
            stats.count(&word.to_le_bytes());
        }
        stats.note_time();
        stats
    }

    #[test]
    fn a_stream_in_order_has_nothing_lost() {
        let words: Vec<u64> = (0..3).map(|n| n | WARM_UP).chain(3..10).collect();
        let stats = counted(&words);
        assert_eq!((stats.received, stats.warm_up(), stats.first_number), (10, 3, Some(0)));
        assert_eq!((stats.lost, stats.duplicated, stats.unchecked), (0, 0, 0));
        let (first, last) = stats.span().unwrap();
        assert!(first <= last);
    }

    #[test]
    fn gaps_and_repetitions_are_counted_and_counting_goes_on() {
        let stats = counted(&[0, 1, 5, 6, 6, 5, 7, 9]);
        assert_eq!((stats.received, stats.lost, stats.duplicated), (8, 3 + 1, 2));
    }

    #[test]
    fn in_order_of_arrival_a_number_may_come_later_but_once() {
        let mut stats = stats().in_order_of_arrival();
        for word in [3, 4, 9, 5, 6, 2, 10, 5, 2, 12] {
            stats.count(&u64::to_le_bytes(word));
        }
        assert_eq!((stats.received, stats.first_number), (10, Some(3)));
        assert_eq!((stats.lost, stats.duplicated), (2 + 1, 2), "7, 8 and 11; 5 and 2 again");
    }

    #[test]
    fn a_gap_across_the_end_of_the_warm_up_is_counted() {
        let stats = counted(&[WARM_UP, 1 | WARM_UP, 4, 5]);
        assert_eq!((stats.lost, stats.warm_up()), (2, 2));
    }

    #[test]
    fn messages_before_the_first_received_one_are_not_lost() {
        let stats = counted(&[500, 501]);
        assert_eq!((stats.lost, stats.first_number, stats.warm_up()), (0, Some(500), 0));
    }

    #[test]
    fn the_warm_up_alone_is_not_measured() {
        let stats = counted(&[WARM_UP, 1 | WARM_UP]);
        assert_eq!((stats.warm_up(), stats.span()), (2, None));
    }

    #[test]
    fn messages_of_others_do_not_spoil_the_order() {
        let mut stats = counted(&[0, 1]);
        stats.count(b"not ours, at all");
        stats.count(b"short");
        stats.count(&2u64.to_le_bytes());
        assert_eq!((stats.received, stats.unchecked, stats.lost), (5, 2, 0));
    }

    #[test]
    fn messages_of_others_have_no_word_whatever_their_bytes_are() {
        let mut stats = stats();
        // Looks like the word that is expected first, then like a word with a time.
        for bytes in [[0xff; 8], (-1.5f64).to_le_bytes(), *b"some.txt"] {
            assert_eq!(stats.count(&bytes), None);
        }
        assert_eq!(stats.count(&5u64.to_le_bytes()), Some(5));
        assert_eq!((stats.unchecked, stats.lost, stats.first_number), (3, 0, Some(5)));
    }

    #[test]
    fn stamps_are_recorded_and_missing_ones_noticed() {
        let mut stats = stats();
        let mut bytes = [0; record::STAMPED];
        let now = Clock::host().ticks();
        record::put_word(&mut bytes, TIMESTAMPED);
        record::put_stamps(&mut bytes, record::Stamps { intended: now - 1000, actual: now });
        stats.time(&bytes, TIMESTAMPED);
        stats.time(&bytes[..8], TIMESTAMPED);
        stats.time(&bytes, 0);
        let latency = stats.latency.latency().unwrap();
        assert_eq!((latency.actual.samples, stats.damaged), (1, 1));
        assert!(latency.intended.min_ns >= latency.actual.min_ns);
        let linear = stats.linear.unwrap().result();
        assert_eq!((linear.samples, linear.min_ns), (1, latency.actual.min_ns));
    }

    #[test]
    fn a_changed_body_is_damage_only_where_it_was_filled() {
        let mut stats = stats();
        let mut bytes = [0; 30];
        record::fill_body(&mut bytes, 7 | FILLED);
        stats.read_whole(&bytes, Some(7 | FILLED));
        assert_eq!(stats.damaged, 0);
        bytes[29] ^= 1;
        stats.read_whole(&bytes, Some(7));
        stats.read_whole(&bytes, None);
        assert_eq!(stats.damaged, 0);
        stats.read_whole(&bytes, Some(7 | FILLED));
        assert_eq!(stats.damaged, 1);
    }
}
