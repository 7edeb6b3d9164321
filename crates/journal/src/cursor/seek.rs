//! Where a cursor starts.

use super::{Cursor, Source, Start};
use crate::chain::Chain;
use crate::error::{OpenError, ReadError};
use crate::index::{Index, Mark};
use crate::lock;
use crate::segment::numbers;
use crate::storage::Storage;
use crate::walk::{Step, Walk};
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
        let listed = match from {
            Start::Oldest => catalog.oldest(),
            Start::Sequence(wanted) => match (catalog.with_sequence(wanted), catalog.oldest()) {
                (None, Some(oldest)) => {
                    return Err(ReadError::Gone { wanted, oldest: oldest.first.sequence });
                }
                (found, _) => found,
            },
            Start::Time(unix_ns) => catalog.with_time(unix_ns),
            Start::End => catalog.newest(),
        };
        if let Some(listed) = listed {
            let (segment, first) = (listed.number, listed.first.sequence);
            return Ok(Self { segment, first, index: listed.index.clone() });
        }
        drop(catalog);
        match numbers(&source.storage)?.first() {
            Some(segment) => Ok(Self { segment: *segment, first: 1, index: None }),
            None => Err(OpenError::Absent { directory: source.storage.path("") }.into()),
        }
    }
}

impl<S: Storage> Cursor<S> {
    /// Goes forward from the beginning of the segment, by its index if it has one.
    pub(super) fn seek(&mut self, from: Start, index: Option<Index>) -> Result<(), ReadError> {
        if from == Start::Oldest {
            return Ok(());
        }
        let limit = self.limit.as_ref().map(|limit| limit.intake.reached(limit.level));
        match (&index, from) {
            (Some(index), Start::Sequence(wanted)) => self.jump(index.before_sequence(wanted)),
            (Some(index), Start::Time(unix_ns)) => self.jump(index.before_time(unix_ns)),
            (Some(index), _) => self.jump(index.before_sequence(u64::MAX)),
            (None, _) => {}
        }
        let mut made = index.is_none().then(Index::default);
        loop {
            let next = self.walk.chain.next;
            let is_there = match from {
                Start::Sequence(wanted) => next.is_some_and(|next| next >= wanted),
                _ => false,
            };
            let is_behind = next.is_some_and(|next| limit.is_some_and(|limit| next > limit));
            if is_there || is_behind {
                break;
            }
            let before = self.walk;
            match self.walk.step(&mut self.window, &self.segment)? {
                Step::Record(header, _) if is_from(&header, from) => {
                    self.walk = before;
                    break;
                }
                Step::Record(header, _) => {
                    if let Some(made) = &mut made {
                        made.note(Mark::of(&header, before.offset));
                    }
                }
                Step::Sealed => {
                    if let Some(made) = made.take() {
                        lock(&self.source.catalog).learn(self.segment.number, made);
                    }
                    self.is_sealed = true;
                    if !self.go_on()? {
                        break;
                    }
                }
                Step::Stopped(_) if self.look_again()? => {}
                Step::Stopped(_) => break,
            }
        }
        match (from, self.walk.chain.next) {
            (Start::Sequence(wanted), Some(next)) if next < wanted => {
                Err(ReadError::Ahead { wanted, next })
            }
            _ => Ok(()),
        }
    }

    fn jump(&mut self, mark: Option<Mark>) {
        let Some(mark) = mark else { return };
        let chain = Chain { next: Some(mark.sequence), ..Chain::ANYWHERE };
        self.walk = Walk { chain, offset: mark.offset };
    }
}

/// Whether the search ends in front of this record.
fn is_from(header: &RecordHeader, from: Start) -> bool {
    match from {
        Start::Time(unix_ns) => header.unix_ns.get() >= unix_ns,
        Start::Sequence(wanted) => header.sequence.get() >= wanted,
        Start::Oldest | Start::End => false,
    }
}

/// The sequence of the first record in a segment.
pub(super) fn first_of<S: Storage>(source: &Source<S>, number: u64) -> Result<u64, ReadError> {
    let mut recovery = crate::recovery::Recovery::new(&source.storage, &[]);
    Ok(recovery.list(number)?.map_or(0, |listed| listed.first.sequence))
}
