//! Retention of a store: which messages are given up, so that the journal stays within its limits.
//!
//! The journal removes whole segments, oldest first. Before its oldest one goes, the messages in it
//! are given up, which their streams tell; but those that a registered receiver has not consumed
//! are written again at the end, so that one slow topic does not hold the segments of all.
//!
//! Of a source-paced stream so many bytes are kept; of all streams, half of the limit: beyond that
//! messages of source-paced streams are given up, the streams with the most first. A receiver-paced
//! stream loses nothing that is not consumed: at its bound the store takes no more messages, so
//! that its publisher stops.
//!
//! A segment that was moved by more than half is followed by the next one when others have written
//! as much as was moved beyond that: so each turn of the journal frees more than it writes. Until
//! then the journal is longer than its limit by half of what has to be kept at most, or twice as
//! long as that. If nothing more is written, it comes back to its limit all the same: where all
//! that has to be kept fits, another segment follows each second, up to the end of the journal as
//! it was when others last wrote or receivers consumed something. All of it happens a step at a
//! time on the server's thread.
//!
//! A segment goes when the checkpoints do not need it either: they are asked for what they lack.

use crate::log::JournalLog;
use crate::options::{StoreRetention, TopicRetention};
use core::cmp::Reverse;
use core::ops::Range;
use lanecast_journal::Storage;
use lanecast_persistence::{LogFull, Nanos, Store, StoreLog};
use lanecast_wire::store::LogRecord;
use std::time::Duration;

/// Bytes that are moved in one step, about: the server has other work.
const STEP: u64 = 1 << 20;
/// Bytes that a record takes in the journal beside its body, about.
const RECORD_OVERHEAD: u64 = 64;
/// Time between two looks at a segment whose messages may not be moved yet, and between two
/// segments that are moved although others have not written as much.
const LOOK_AGAIN: Nanos = 1_000_000_000;

/// Retention in progress. The server owns it.
#[derive(Debug)]
pub(crate) struct RetentionTask {
    settings: StoreRetention,
    segment_bytes: u64,
    /// The cut that is being made, and the bytes that were moved for it.
    cut: (u64, u64),
    /// The cut that is made when the journal is durable up to a position.
    made: Option<(u64, u64)>,
    /// The last cut that was made. Its segment goes when the checkpoints do not need it either.
    released: u64,
    /// Bytes of the journal that were moved.
    moved: u64,
    /// Bytes of the journal that others have written, since it began, from which on messages may be
    /// moved again.
    move_at: u64,
    /// Position up to which segments are moved in time, whatever others write meanwhile.
    turn_end: u64,
    /// Time of the next such segment.
    turn_at: Nanos,
    /// Time of the next look at a cut for which nothing may be moved yet.
    look_at: Nanos,
    /// Consumption of all streams in the last step: more of it releases messages.
    consumed: u64,
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
    /// Bytes of those.
    kept_bytes: u64,
    /// Sequence of the first message that a receiver has not consumed.
    consumed: u64,
    /// Sequence of the first message that must not be given up; none for the largest number.
    held: u64,
}

impl RetentionTask {
    pub(crate) fn new(settings: StoreRetention, segment_bytes: u64) -> Self {
        Self {
            settings,
            segment_bytes,
            cut: (0, 0),
            made: None,
            released: 0,
            moved: 0,
            move_at: 0,
            turn_end: 0,
            turn_at: 0,
            look_at: 0,
            consumed: 0,
            given_up: 0,
        }
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
        now: Nanos,
    ) -> Result<bool, LogFull> {
        self.limit_topics(machine, log)?;
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
            // A checkpoint covers at least one record more than the one before.
            if log.release(cut) {
                machine.write_anew(log)?;
            }
            return Ok(false);
        }
        if self.cut.0 != cut {
            self.cut = (cut, 0);
            self.look_at = 0;
        }
        let is_paid = self.others_bytes(log) >= self.move_at;
        if self.note_consumption(machine) || is_paid {
            (self.turn_end, self.look_at) = (log.appended(), 0);
        }
        let is_in_turn = cut <= self.turn_end && now >= self.turn_at;
        let may_move = self.cut.1 > 0 || is_paid || (is_in_turn && self.fits(machine, log));
        if !may_move && now < self.look_at {
            return Ok(false);
        }
        self.look_at = now.saturating_add(LOOK_AGAIN);
        let moved = self.cut.1;
        let is_more = self.vacate(cut, may_move, machine, log)?;
        if !is_more {
            self.made = Some((cut, log.appended()));
            let beyond = self.cut.1.saturating_sub(self.segment_bytes / 2);
            self.move_at = self.move_at.max(self.others_bytes(log) + beyond);
            if beyond > 0 {
                self.turn_at = now.saturating_add(LOOK_AGAIN);
            }
        }
        Ok(is_more && self.cut.1 > moved)
    }

    /// Bytes of the journal, since it began, but for those that were moved.
    fn others_bytes<S: Storage>(&self, log: &JournalLog<S>) -> u64 {
        log.journal_bytes().saturating_sub(self.moved)
    }

    /// Whether receivers have come further, or fewer are registered, than in the last step.
    fn note_consumption(&mut self, machine: &Store) -> bool {
        let consumed = machine.summaries().map(|stream| stream.consumed_by_all);
        let consumed = consumed.fold(0, u64::wrapping_add);
        std::mem::replace(&mut self.consumed, consumed) != consumed
    }

    /// Whether the journal is within its limit when all that has to be kept was moved on. Otherwise
    /// moving it would never end.
    fn fits<S: Storage>(&self, machine: &Store, log: &JournalLog<S>) -> bool {
        let Some(limit) = self.settings.bytes else { return true };
        let (mut held, mut others) = (0_u64, 0_u64);
        for it in self.candidates(machine, log) {
            let sum = if it.held < u64::MAX { &mut held } else { &mut others };
            *sum = sum.saturating_add(it.kept_bytes);
        }
        let others = others.min(self.kept_max().saturating_sub(held));
        // The segment in use, and one for what streams are counted too short.
        held.saturating_add(others).saturating_add(2 * self.segment_bytes) <= limit
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
            let index = log.index(number)?;
            let is_held = stream.is_receiver_paced && limit > 0;
            let held = if is_held { stream.consumed } else { u64::MAX };
            // Receivers that hold nothing back have no more than those of a source-paced stream.
            let kept = stream.consumed_by_all.max(index.first_within(limit)).min(held);
            let count = stream.next.saturating_sub(kept);
            let bytes = if count == 0 { 0 } else { index.bytes_from(kept) };
            Some(Candidate {
                number,
                topic: stream.topic.to_owned(),
                source: stream.source,
                first: stream.first,
                kept,
                kept_bytes: bytes,
                consumed: stream.consumed_by_all,
                held,
            })
        });
        candidate.collect()
    }

    /// Gives up what is beyond the limits of single topics.
    fn limit_topics<S: Storage>(
        &mut self,
        machine: &mut Store,
        log: &mut JournalLog<S>,
    ) -> Result<(), LogFull> {
        // As records are dated, so that a jump of the wall clock makes none older.
        let unix_ns = log.unix_ns();
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
        may_move: bool,
        machine: &mut Store,
        log: &mut JournalLog<S>,
    ) -> Result<bool, LogFull> {
        let mut candidates = self.candidates(machine, log);
        // The streams with the most first: they are slow at the cost of all.
        candidates.sort_by_key(|it| Reverse(it.kept_bytes));
        let kept: u64 = candidates.iter().map(|it| it.kept_bytes).sum();
        let mut excess = kept.saturating_sub(self.kept_max());
        let mut left_in_step = STEP;
        for mut it in candidates {
            let Some(index) = log.index(it.number) else { continue };
            let before: Vec<Range<u64>> = index.before(cut).collect();
            let Some(end) = before.last().map(|range| range.end) else { continue };
            if excess > 0 {
                let (kept, bytes) = (it.kept.max(end).min(it.held), |from| index.bytes_from(from));
                excess = excess.saturating_sub(bytes(it.kept).saturating_sub(bytes(kept)));
                it.kept = kept;
            }
            self.trim(&it, end.min(it.kept), machine, log)?;
            let left = before.into_iter().map(|range| range.start.max(it.kept)..range.end);
            for range in left.filter(|it| may_move && !it.is_empty()) {
                if left_in_step == 0 {
                    return Ok(true);
                }
                let before = log.journal_bytes();
                let moved = move_on(&it, range, left_in_step, log);
                self.moved += log.journal_bytes() - before;
                let moved = moved?;
                self.cut.1 += moved;
                left_in_step = left_in_step.saturating_sub(moved);
            }
        }
        let streams = 0..u32::try_from(machine.summaries().count()).unwrap_or(u32::MAX);
        let is_before = |number| log.index(number).is_some_and(|index| index.is_before(cut));
        Ok(streams.into_iter().any(is_before))
    }

    /// Most bytes that are kept beyond the limits, of all streams.
    fn kept_max(&self) -> u64 {
        self.settings.bytes.map_or(u64::MAX, |bytes| bytes / 2)
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
            bytes += body.len() as u64 + RECORD_OVERHEAD;
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
