//! Where a cursor starts.

use super::{Cursor, Source, Start};
use crate::error::{OpenError, ReadError};
use crate::index::{Index, Mark};
use crate::lock;
use crate::scanner::{RecordScanner, Step};
use crate::segment::segment_numbers;
use crate::sequence_check::SequenceCheck;
use crate::storage::Storage;
use lanecast_wire::journal::RecordHeader;

/// The segment in which to look, and what is known of it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) segment: u64,
    /// The sequence of its first record, or of the one that will be.
    pub(super) first: u64,
    pub(super) index: Option<Index>,
}

impl Place {
    pub(super) fn find<S: Storage>(source: &Source<S>, from: Start) -> Result<Self, ReadError> {
        let catalog = lock(&source.catalog);
        let entries = match from {
            Start::Oldest => catalog.oldest(),
            Start::Sequence(requested) => {
                match (catalog.with_sequence(requested), catalog.oldest()) {
                    (None, Some(oldest)) => {
                        return Err(ReadError::Removed {
                            requested,
                            oldest: oldest.first.sequence,
                        });
                    }
                    (found, _) => found,
                }
            }
            Start::Time(unix_ns) => catalog.with_time(unix_ns),
            Start::End => catalog.newest(),
        };
        if let Some(entry) = entries {
            let (segment, first) = (entry.number, entry.first.sequence);
            return Ok(Self { segment, first, index: entry.index.clone() });
        }
        drop(catalog);
        match segment_numbers(&source.storage)?.first() {
            Some(segment) => Ok(Self { segment: *segment, first: 1, index: None }),
            None => Err(OpenError::NoJournal { directory: source.storage.path("") }.into()),
        }
    }
}

impl<S: Storage> Cursor<S> {
    /// Goes forward from the beginning of the segment, by its index if it has one.
    pub(super) fn seek(&mut self, from: Start, index: Option<Index>) -> Result<(), ReadError> {
        if from == Start::Oldest {
            return Ok(());
        }
        let limit =
            self.limit.as_ref().map(|limit| limit.append_queue.last_sequence(limit.durability));
        match (&index, from) {
            (Some(index), Start::Sequence(requested)) => {
                self.jump(index.before_sequence(requested))
            }
            (Some(index), Start::Time(unix_ns)) => self.jump(index.before_time(unix_ns)),
            (Some(index), _) => self.jump(index.before_sequence(u64::MAX)),
            (None, _) => {}
        }
        let mut made = index.is_none().then(Index::default);
        loop {
            let next = self.scanner.sequence_check.next;
            let is_there = match from {
                Start::Sequence(requested) => next.is_some_and(|next| next >= requested),
                _ => false,
            };
            let is_behind = next.is_some_and(|next| limit.is_some_and(|limit| next > limit));
            if is_there || is_behind {
                break;
            }
            let before = self.scanner;
            match self.scanner.step(&mut self.read_buffer, &self.segment)? {
                Step::Record(header, _) if is_from(&header, from) => {
                    self.scanner = before;
                    break;
                }
                Step::Record(header, _) => {
                    if let Some(made) = &mut made {
                        made.note(Mark::of(&header, before.offset));
                    }
                }
                Step::Sealed => {
                    if let Some(made) = made.take() {
                        lock(&self.source.catalog).set_index(self.segment.number, made);
                    }
                    self.is_sealed = true;
                    if !self.next_segment()? {
                        break;
                    }
                }
                Step::Stopped(_) if self.retry()? => {}
                Step::Stopped(_) => break,
            }
        }
        match (from, self.scanner.sequence_check.next) {
            (Start::Sequence(requested), Some(next)) if next < requested => {
                Err(ReadError::Ahead { requested, next })
            }
            _ => Ok(()),
        }
    }

    fn jump(&mut self, mark: Option<Mark>) {
        let Some(mark) = mark else { return };
        let sequence_check = SequenceCheck { next: Some(mark.sequence), ..SequenceCheck::ANYWHERE };
        self.scanner = RecordScanner { sequence_check, offset: mark.offset };
    }
}

/// Whether the search ends in front of this record.
fn is_from(header: &RecordHeader, from: Start) -> bool {
    match from {
        Start::Time(unix_ns) => header.unix_ns.get() >= unix_ns,
        Start::Sequence(requested) => header.sequence.get() >= requested,
        Start::Oldest | Start::End => false,
    }
}

/// The sequence of the first record in a segment.
pub(super) fn first_of<S: Storage>(source: &Source<S>, number: u64) -> Result<u64, ReadError> {
    let mut recovery = crate::recovery::Recovery::new(&source.storage, &[]);
    Ok(recovery.list(number)?.map_or(0, |entry| entry.first.sequence))
}
