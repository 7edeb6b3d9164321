//! Merges the copies of one numbered stream that several sources send: the first copy counts.
//!
//! Every source sends its messages in order, so a number that all sources have passed, by a later
//! message or by a loss, cannot come any more. Messages beyond a missing number are kept until it
//! comes, cannot come, or has had its time; what is kept is bounded. Time is an argument.

use lanecast_transport::{CloseReason, SessionId, Stream, TopicId};
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Limits of a [`Failover`](super::Failover).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverSettings {
    /// Longest time for which messages wait for a missing one that a source may still bring.
    pub patience: Duration,
    /// Most messages that wait.
    pub held_messages: usize,
    /// Most bytes of messages that wait.
    pub held_bytes: usize,
    /// Meaning of a publisher that joins in the poll that finds the end of the last one.
    pub joins_at_end: JoinsAtEnd,
}

/// Meaning of a publisher that joins in the poll of a [`Failover`](super::Failover) that finds the
/// end of the last one.
///
/// It may have sent beside that one, and lag, or have started after it: the numbers are alike, and
/// the clocks of two hosts do not tell. An incarnation in the events would not, either: copies are
/// programs of their own, and have different ones. Numbers within the messages that a restarted
/// publisher goes on with need no such decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JoinsAtEnd {
    /// A copy of the same stream: messages up to the last number are dropped, so that none comes
    /// twice. A publisher that has restarted with numbers from 0 loses its first messages.
    #[default]
    Copy,
    /// A stream of its own, after `Left` and a `Joined`: none of its messages is dropped. A copy
    /// that lags brings its messages once more.
    NewStream,
}

impl Default for FailoverSettings {
    fn default() -> Self {
        let patience = Duration::from_secs(1);
        Self { patience, held_messages: 4_096, held_bytes: 4 << 20, joins_at_end: JoinsAtEnd::Copy }
    }
}

/// Counts of a [`Failover`](super::Failover).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FailoverCounters {
    /// Messages delivered.
    pub messages: u64,
    /// Copies dropped, because another came first.
    pub duplicates: u64,
    /// Messages that no source brought.
    pub lost: u64,
}

/// A stream of one source.
pub(super) type SourceKey = (SessionId, TopicId);

/// The key of a source's stream.
pub(super) const fn key(stream: &Stream) -> SourceKey {
    (stream.session, stream.topic_id)
}

/// Handling of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// Delivered at once: the next one.
    Next,
    /// An earlier one is missing: [`hold`](Merge::hold) it.
    Ahead,
    /// Dropped: a copy has come before.
    Duplicate,
}

/// Something whose turn has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ready {
    /// A message that was held.
    Message(u64, Box<[u8]>),
    /// Missing messages: the first number, and how many.
    Lost(u64, u64),
}

/// A live source.
#[derive(Debug)]
struct Source {
    key: SourceKey,
    /// The number after the last one that it has sent or lost.
    position: u64,
    /// Difference of numbers here and at the publisher, once there was a message.
    offset: Option<u64>,
    /// The publisher's numbers of messages lost before the first one came.
    unplaced: Option<Range<u64>>,
}

impl Source {
    const fn new(key: SourceKey) -> Self {
        Self { key, position: 0, offset: None, unplaced: None }
    }
}

/// State of a merged stream.
#[derive(Debug)]
pub(super) struct Merge {
    settings: FailoverSettings,
    /// Number of the next message, once there was one.
    next: Option<u64>,
    sources: Vec<Source>,
    /// Difference of the last message's number here and at its publisher.
    offset: u64,
    /// Numbers that sources which have left brought, lost, or would have sent at most.
    ended: Option<Range<u64>>,
    /// The number after the last one of the source that has sent most of those that have closed.
    closed: Option<u64>,
    /// Messages beyond missing ones.
    held: BTreeMap<u64, Box<[u8]>>,
    held_bytes: usize,
    /// The missing number, and since when it is missed.
    missing: Option<(u64, Instant)>,
    counters: FailoverCounters,
}

impl Merge {
    pub(super) fn new(settings: FailoverSettings) -> Self {
        Self {
            settings,
            next: None,
            sources: Vec::new(),
            offset: 0,
            ended: None,
            closed: None,
            held: BTreeMap::new(),
            held_bytes: 0,
            missing: None,
            counters: FailoverCounters::default(),
        }
    }

    pub(super) const fn counters(&self) -> FailoverCounters {
        self.counters
    }

    /// Number of live sources.
    pub(super) const fn sources(&self) -> usize {
        self.sources.len()
    }

    /// Whether a source that joins where the last one has left begins a stream of its own.
    pub(super) fn begins_anew(&self) -> bool {
        self.settings.joins_at_end == JoinsAtEnd::NewStream
    }

    /// A source is there.
    pub(super) fn join(&mut self, source: SourceKey) {
        self.sources.push(Source::new(source));
    }

    /// A source is gone for this reason: what it has not sent it will not send.
    pub(super) fn leave(&mut self, source: SourceKey, why: CloseReason) {
        let Some(at) = self.sources.iter().position(|known| known.key == source) else { return };
        let Source { position, unplaced, .. } = self.sources.swap_remove(at);
        if why == CloseReason::Closed {
            self.closed = self.closed.max(Some(position));
        }
        let mut range = position..position;
        // Another source's difference may be a wrong guess: never more than the source has lost.
        if let Some(Range { start, end }) = unplaced {
            let first = start.wrapping_add(self.offset);
            let most = self.next.unwrap_or(first).saturating_add(end - start);
            range = first..end.wrapping_add(self.offset).min(most);
        }
        if range.end > 0 {
            let ended = self.ended.get_or_insert(range.clone());
            *ended = ended.start.min(range.start)..ended.end.max(range.end);
        }
    }

    /// The reason of the stream's end, whose last source has left for `last`: it was closed if one
    /// source that has sent all of it was, whatever became of the others.
    pub(super) fn end_reason(&self, last: CloseReason) -> CloseReason {
        let is_whole = self.closed.is_some_and(|closed| closed >= self.next.unwrap_or(0));
        if is_whole { CloseReason::Closed } else { last }
    }

    /// The stream has ended: another one may follow, with numbers of its own.
    pub(super) fn reset(&mut self) {
        let counters = self.counters;
        *self = Self { counters, ..Self::new(self.settings) };
    }

    /// A source has lost `count` messages, of the publisher's number `first` on.
    pub(super) fn lose(&mut self, source: SourceKey, first: u64, count: u64) {
        let Some(source) = self.sources.iter_mut().find(|known| known.key == source) else {
            return;
        };
        let end = first.saturating_add(count);
        if let Some(offset) = source.offset {
            source.position = source.position.max(end.wrapping_add(offset));
        } else {
            let start = source.unplaced.take().map_or(first, |lost| lost.start);
            source.unplaced = Some(start..end.max(start));
        }
    }

    /// Takes message `number` of a source, which is `own` at its publisher.
    pub(super) fn admit(&mut self, source: SourceKey, own: u64, number: u64) -> Admission {
        // The last number has none after it, and is of no use in a stream.
        let Some(after) = number.checked_add(1) else { return Admission::Duplicate };
        self.offset = number.wrapping_sub(own);
        let mut begin = number;
        if let Some(source) = self.sources.iter_mut().find(|known| known.key == source) {
            source.position = source.position.max(after);
            source.offset = Some(self.offset);
            if let Some(lost) = source.unplaced.take() {
                begin = number.saturating_sub(own.saturating_sub(lost.start));
            }
        }
        let next = *self.next.get_or_insert(begin);
        if number < next || self.held.contains_key(&number) {
            self.counters.duplicates += 1;
            return Admission::Duplicate;
        }
        if number > next {
            return Admission::Ahead;
        }
        self.next = Some(after);
        self.counters.messages += 1;
        Admission::Next
    }

    /// Keeps a message until its turn comes.
    pub(super) fn hold(&mut self, number: u64, bytes: Box<[u8]>) {
        self.held_bytes += bytes.len();
        self.held.insert(number, bytes);
    }

    /// Whether more waits than the settings allow.
    pub(super) fn is_full(&self) -> bool {
        let FailoverSettings { held_messages, held_bytes, .. } = self.settings;
        self.held.len() > held_messages || self.held_bytes > held_bytes
    }

    /// Takes what comes next, if its turn has come.
    pub(super) fn take_ready(&mut self, now: Instant) -> Option<Ready> {
        let next = match (self.next, &self.ended) {
            (Some(next), _) => next,
            // No source has brought any message.
            (None, Some(ended)) if self.sources.is_empty() => ended.start,
            _ => return None,
        };
        if self.held.first_key_value().is_some_and(|(first, _)| *first == next) {
            let (number, bytes) = self.held.pop_first()?;
            self.held_bytes -= bytes.len();
            self.next = Some(number + 1);
            self.counters.messages += 1;
            return Some(Ready::Message(number, bytes));
        }
        let end = self.end_of_loss(next, now).filter(|end| *end > next)?;
        self.next = Some(end);
        self.counters.lost += end - next;
        Some(Ready::Lost(next, end - next))
    }

    /// The number up to which the missing messages from `next` on are given up.
    fn end_of_loss(&mut self, next: u64, now: Instant) -> Option<u64> {
        let first = self.held.first_key_value().map(|(first, _)| *first);
        let Some(passed) = self.sources.iter().map(|source| source.position).min() else {
            return first.or(self.ended.as_ref().map(|ended| ended.end));
        };
        if passed > next {
            return Some(first.map_or(passed, |first| first.min(passed)));
        }
        if first.is_none() || self.is_full() {
            return first;
        }
        if self.missing.is_none_or(|(missing, _)| missing != next) {
            self.missing = Some((next, now));
        }
        if self.patience_left(now)?.is_zero() { first } else { None }
    }

    /// Time until a missing message is given up; `None` if none is missed.
    pub(super) fn patience_left(&self, now: Instant) -> Option<Duration> {
        let (missing, since) = self.missing?;
        let is_missed = self.next == Some(missing) && !self.held.is_empty();
        is_missed.then(|| self.settings.patience.saturating_sub(now.duration_since(since)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const A: SourceKey = (SessionId(1), TopicId::FIRST);
    const B: SourceKey = (SessionId(2), TopicId::FIRST);

    /// A merge, and what it has delivered and reported as lost.
    struct Merged {
        merge: Merge,
        read: Vec<u64>,
        lost: Vec<u64>,
        now: Instant,
    }

    impl Merged {
        fn of(sources: &[SourceKey], settings: FailoverSettings) -> Self {
            let mut merge = Merge::new(settings);
            sources.iter().for_each(|source| merge.join(*source));
            Self { merge, read: Vec::new(), lost: Vec::new(), now: Instant::now() }
        }

        fn hear(&mut self, source: SourceKey, number: u64) {
            match self.merge.admit(source, number, number) {
                Admission::Next => self.read.push(number),
                Admission::Ahead => self.merge.hold(number, vec![0; 10].into()),
                Admission::Duplicate => {}
            }
            self.release();
        }

        fn leave(&mut self, source: SourceKey) {
            self.merge.leave(source, CloseReason::Died);
            self.release();
        }

        fn release(&mut self) {
            while let Some(ready) = self.merge.take_ready(self.now) {
                match ready {
                    Ready::Message(number, _) => self.read.push(number),
                    Ready::Lost(first, count) => self.lost.extend(first..first + count),
                }
            }
            let settings = &self.merge.settings;
            assert!(self.merge.held.len() <= settings.held_messages);
            assert!(self.merge.held_bytes <= settings.held_bytes);
        }
    }

    #[test]
    fn the_first_copy_counts_and_a_death_costs_nothing() {
        let mut merged = Merged::of(&[A, B], FailoverSettings::default());
        for number in 0..5 {
            merged.hear(A, number);
        }
        (0..3).for_each(|number| merged.hear(B, number));
        merged.leave(A);
        (3..9).for_each(|number| merged.hear(B, number));
        assert_eq!(merged.read, (0..9).collect::<Vec<_>>());
        let counters = merged.merge.counters();
        assert_eq!((counters.messages, counters.duplicates, counters.lost), (9, 5, 0));
    }

    #[test]
    fn one_source_fills_the_gap_of_the_other_in_order() {
        let mut merged = Merged::of(&[A, B], FailoverSettings::default());
        [0, 1, 4, 5].into_iter().for_each(|number| merged.hear(A, number));
        assert_eq!(merged.read, [0, 1], "B may still bring 2");
        (0..4).for_each(|number| merged.hear(B, number));
        assert_eq!((merged.read.as_slice(), merged.lost.len()), (&[0, 1, 2, 3, 4, 5][..], 0));
    }

    #[test]
    fn a_number_that_all_have_passed_is_lost() {
        let mut merged = Merged::of(&[A, B], FailoverSettings::default());
        [0, 3, 4].into_iter().for_each(|number| merged.hear(A, number));
        [0, 2].into_iter().for_each(|number| merged.hear(B, number));
        assert_eq!((merged.read.as_slice(), merged.lost.as_slice()), (&[0, 2, 3, 4][..], &[1][..]));
        // The only one that may have had it is gone.
        merged.hear(A, 7);
        merged.leave(B);
        assert_eq!((merged.read.last(), merged.lost.as_slice()), (Some(&7), &[1, 5, 6][..]));
    }

    #[test]
    fn a_silent_source_is_waited_for_in_time_and_room() {
        let patience = Duration::from_millis(10);
        let settings = FailoverSettings {
            patience,
            held_messages: 3,
            held_bytes: 25,
            ..FailoverSettings::default()
        };
        let mut merged = Merged::of(&[A, B], settings);
        [0, 2].into_iter().for_each(|number| merged.hear(A, number));
        assert_eq!(merged.merge.patience_left(merged.now), Some(patience));
        merged.now += patience;
        merged.release();
        assert_eq!((merged.read.as_slice(), merged.lost.as_slice()), (&[0, 2][..], &[1][..]));
        assert_eq!(merged.merge.patience_left(merged.now), None);
        [4, 5, 6].into_iter().for_each(|number| merged.hear(A, number));
        assert_eq!((merged.read.last(), merged.lost.as_slice()), (Some(&6), &[1, 3][..]));
    }

    #[test]
    fn a_replacement_goes_on_where_the_last_one_ended() {
        let mut merged = Merged::of(&[A], FailoverSettings::default());
        (0..3).for_each(|number| merged.hear(A, number));
        merged.leave(A);
        merged.merge.join(B);
        [1, 2, 3, u64::MAX].into_iter().for_each(|number| merged.hear(B, number));
        assert_eq!((merged.read.as_slice(), merged.lost.len()), (&[0, 1, 2, 3][..], 0));
    }

    /// A source of the same numbers: its delay, its loss in percent, and when it dies.
    fn source() -> impl Strategy<Value = (u64, u64, u64)> {
        (0u64..40, 0u64..40, 20u64..400)
    }

    proptest! {
        /// Sources with delays, losses and deaths of their own, against what they sent.
        #[test]
        fn each_number_is_read_once_in_order_or_lost(
            seed: u64,
            sources in prop::collection::vec(source(), 1..4),
        ) {
            let mut chance = seed;
            let mut below = |most: u64| {
                chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (chance >> 33) % most
            };
            let keys: Vec<SourceKey> =
                (0..sources.len() as u64).map(|at| (SessionId(at), TopicId::FIRST)).collect();
            let mut merged = Merged::of(&keys, FailoverSettings::default());
            let mut sent = BTreeSet::new();
            // The first number reaches all, so that they begin together.
            keys.iter().for_each(|key| merged.hear(*key, 0));
            for time in 1..=400 {
                for (key, (delay, loss, death)) in keys.iter().zip(&sources) {
                    let number = time - delay.min(&time);
                    if number == 0 || time > *death || below(100) < *loss {
                        continue;
                    }
                    sent.insert(number);
                    merged.hear(*key, number);
                }
                for (key, (_, _, death)) in keys.iter().zip(&sources) {
                    if time == *death {
                        merged.leave(*key);
                    }
                }
            }
            keys.iter().for_each(|key| merged.leave(*key));
            prop_assert!(merged.read.is_sorted_by(|a, b| a < b), "in order, each once");
            let read: BTreeSet<u64> = merged.read.iter().copied().collect();
            let lost: BTreeSet<u64> = merged.lost.iter().copied().collect();
            sent.insert(0);
            prop_assert_eq!(&read, &sent, "what any source brought");
            let last = *sent.last().expect("0 at least");
            let missing: BTreeSet<u64> = (0..=last).filter(|it| !sent.contains(it)).collect();
            prop_assert_eq!(lost, missing);
        }
    }
}
