//! Retention of a store: which messages are given up, so that the journal stays within its limits.
//!
//! The journal removes whole segments, oldest first. Before its oldest one goes, the messages in it
//! are given up, which their streams tell; but those that a registered receiver has not consumed
//! are written again at the end, so that one slow topic does not hold the segments of all. Two
//! bounds keep the disk bounded: a stream keeps so many bytes of unconsumed messages, and for each
//! segment that goes at most half of one is written again, those of the streams with the least to
//! move. All of it happens a step at a time on the server's thread.

use crate::log::JournalLog;
use crate::options::{StoreRetention, TopicRetention};
use core::ops::Range;
use lanecast_journal::Storage;
use lanecast_persistence::{LogFull, Store, StoreLog};
use lanecast_wire::store::LogRecord;
use std::time::Duration;

/// Bytes that are moved in one step, about: the server has other work.
const STEP: u64 = 1 << 20;

/// Retention in progress. The server owns it.
#[derive(Debug)]
pub(crate) struct RetentionTask {
    settings: StoreRetention,
    /// The most bytes that are moved for each segment.
    moved_max: u64,
    /// The cut that is being made, and the bytes that were moved for it.
    cut: (u64, u64),
    /// The cut that is made when the journal is durable up to a position.
    made: Option<(u64, u64)>,
    /// The last cut that was made. Its segment goes when the checkpoints do not need it either.
    released: u64,
    given_up: u64,
}

/// A stream, as far as retention looks at it.
#[derive(Clone, Debug)]
struct Candidate {
    number: u32,
    topic: String,
    source: u64,
    first: u64,
    /// Sequence from which on messages are kept, since they are not consumed.
    kept: u64,
    /// Sequence of the first message that is not consumed.
    consumed: u64,
}

impl RetentionTask {
    pub(crate) fn new(settings: StoreRetention, segment_bytes: u64) -> Self {
        let moved_max = segment_bytes / 2;
        Self { settings, moved_max, cut: (0, 0), made: None, released: 0, given_up: 0 }
    }

    /// Messages that were given up although a registered receiver had not consumed them.
    pub(crate) const fn given_up(&self) -> u64 {
        self.given_up
    }

    /// Does some of what is due; returns whether to go on at once. A log without room, or a stream
    /// that is being copied, stops it until the next step.
    pub(crate) fn step<S: Storage>(
        &mut self,
        machine: &mut Store,
        log: &mut JournalLog<S>,
        unix_ns: u64,
    ) -> Result<bool, LogFull> {
        self.limit_topics(machine, log, unix_ns)?;
        if let Some((cut, position)) = self.made
            && log.persisted() >= position
        {
            // What was moved is durable: its former places are not needed.
            self.released = cut;
            self.made = None;
        }
        let Some(cut) = log.retention_due().filter(|_| self.made.is_none()) else {
            return Ok(false);
        };
        if cut <= self.released {
            log.release(cut);
            return Ok(false);
        }
        if self.cut.0 != cut {
            self.cut = (cut, 0);
        }
        let moved = self.cut.1;
        let is_more = self.vacate(cut, machine, log)?;
        if !is_more {
            self.made = Some((cut, log.appended()));
        }
        Ok(is_more && self.cut.1 > moved)
    }

    /// The settings of a topic.
    fn topic(&self, topic: &str) -> Option<&TopicRetention> {
        self.settings.topics.iter().find(|it| it.topic == topic)
    }

    fn candidates<S: Storage>(&self, machine: &Store, log: &JournalLog<S>) -> Vec<Candidate> {
        let streams = machine.summaries().enumerate();
        let settled = streams.filter(|(_, stream)| !stream.is_copying);
        let candidate = settled.filter_map(|(number, stream)| {
            let number = u32::try_from(number).ok()?;
            let limit = self.topic(stream.topic).and_then(|it| it.unconsumed_bytes);
            let limit = limit.unwrap_or(self.settings.unconsumed_bytes);
            let bound = log.index(number)?.first_within(limit);
            Some(Candidate {
                number,
                topic: stream.topic.to_owned(),
                source: stream.source,
                first: stream.first,
                kept: stream.consumed.max(bound),
                consumed: stream.consumed,
            })
        });
        candidate.collect()
    }

    /// Gives up what is beyond the limits of single topics.
    fn limit_topics<S: Storage>(
        &mut self,
        machine: &mut Store,
        log: &mut JournalLog<S>,
        unix_ns: u64,
    ) -> Result<(), LogFull> {
        if self.settings.topics.is_empty() {
            return Ok(());
        }
        for it in self.candidates(machine, log) {
            let (Some(topic), Some(index)) = (self.topic(&it.topic), log.index(it.number)) else {
                continue;
            };
            let nanos = |age: Duration| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
            let by_bytes = topic.bytes.map_or(0, |bytes| index.first_within(bytes));
            let by_age = topic
                .age
                .map_or(0, |age| index.first_since(unix_ns.saturating_sub(nanos(age))).start);
            self.trim(&it, by_bytes.max(by_age).min(it.kept), machine, log)?;
        }
        Ok(())
    }

    /// Gives up or moves the messages before `cut` in the journal; returns whether some are left.
    fn vacate<S: Storage>(
        &mut self,
        cut: u64,
        machine: &mut Store,
        log: &mut JournalLog<S>,
    ) -> Result<bool, LogFull> {
        let mut to_move: Vec<(u64, Candidate, Vec<Range<u64>>)> = Vec::new();
        for it in self.candidates(machine, log) {
            let Some(index) = log.index(it.number) else { continue };
            let before: Vec<Range<u64>> = index.before(cut).collect();
            let Some(end) = before.last().map(|range| range.end) else { continue };
            self.trim(&it, end.min(it.kept), machine, log)?;
            let left = |range: &Range<u64>| range.start.max(it.kept)..range.end;
            let left: Vec<Range<u64>> =
                before.iter().map(left).filter(|it| !it.is_empty()).collect();
            if let Some(index) = log.index(it.number).filter(|_| !left.is_empty()) {
                let bytes = |it: &Range<u64>| {
                    index.bytes_from(it.start).saturating_sub(index.bytes_from(it.end))
                };
                to_move.push((left.iter().map(bytes).sum(), it, left));
            }
        }
        // Those with the least to move first: the others are slow at the cost of all.
        to_move.sort_by_key(|(bytes, ..)| *bytes);
        let mut left_in_step = STEP;
        for (bytes, it, ranges) in to_move {
            let Some(end) = ranges.last().map(|range| range.end) else { continue };
            if self.cut.1 + bytes > self.moved_max {
                self.trim(&it, end, machine, log)?;
                continue;
            }
            for range in ranges {
                let moved = move_on(&it, range, left_in_step, log)?;
                self.cut.1 += moved;
                left_in_step = left_in_step.saturating_sub(moved);
            }
            if left_in_step == 0 {
                return Ok(true);
            }
        }
        let streams = 0..u32::try_from(machine.summaries().count()).unwrap_or(u32::MAX);
        let is_before = |number| log.index(number).is_some_and(|index| index.is_before(cut));
        Ok(streams.into_iter().any(is_before))
    }

    /// Gives up the messages of a stream before `first`.
    fn trim<S: Storage>(
        &mut self,
        it: &Candidate,
        first: u64,
        machine: &mut Store,
        log: &mut JournalLog<S>,
    ) -> Result<(), LogFull> {
        if first > it.first {
            machine.trim(&it.topic, it.source, first, log)?;
            self.given_up += first.saturating_sub(it.consumed.max(it.first));
        }
        Ok(())
    }
}

/// Writes the messages of `range` again, about `limit` bytes of them; returns the bytes.
fn move_on<S: Storage>(
    it: &Candidate,
    range: Range<u64>,
    limit: u64,
    log: &mut JournalLog<S>,
) -> Result<u64, LogFull> {
    let (mut messages, mut bytes) = (Vec::new(), 0);
    log.read_whole(it.number, range.start, &mut |sequence, unix_ns, body| {
        let is_wanted = sequence < range.end && bytes < limit;
        if is_wanted {
            bytes += body.len() as u64;
            messages.push((sequence, unix_ns, body.to_vec()));
        }
        is_wanted
    });
    // The reader's place would hold the segment that is to go.
    log.forget_readings();
    for (sequence, unix_ns, body) in messages {
        let stream = it.number;
        log.append(&LogRecord::Moved { stream, sequence, unix_ns, body: &body })?;
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
