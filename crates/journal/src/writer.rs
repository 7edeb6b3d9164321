//! Groups become durable.

use crate::group::{Group, Piece};
use crate::segment::Segment;
use crate::storage::{Outcome, Storage, StoredFile};

/// Where the next segment comes from.
pub(crate) trait Supply<F> {
    /// The segment with this number: prepared, or made now.
    ///
    /// # Errors
    /// If there is no space, or the disk refuses.
    fn take(&mut self, number: u64) -> Outcome<Segment<F>>;
}

/// How far a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// All up to this sequence is written.
    Received(u64),
    /// All up to this sequence is durable.
    Persisted(u64),
}

/// Writes groups to the segment that they belong to. One at a time.
#[derive(Debug)]
pub(crate) struct Writer<S: Storage> {
    segment: Option<Segment<S::File>>,
}

impl<S: Storage> Writer<S> {
    /// A writer that goes on in `segment`, or in the next one that a group names.
    pub(crate) const fn new(segment: Option<Segment<S::File>>) -> Self {
        Self { segment }
    }

    /// Writes and synchronises what is left of `group`, and tells how far that has come, by
    /// which piece, and how long its segment is.
    ///
    /// # Errors
    /// `NoSpace`: calling it again with the same group goes on. Anything else is for good.
    pub(crate) fn write(
        &mut self,
        group: &mut Group,
        supply: &mut dyn Supply<S::File>,
        mut tell: impl FnMut(Reached, &Piece, u64),
    ) -> Outcome<()> {
        let Group { bytes, pieces, done, .. } = group;
        for piece in &pieces[*done..] {
            let segment = match self.segment.take() {
                Some(segment) if segment.number == piece.segment => segment,
                _ => supply.take(piece.segment)?,
            };
            let segment = self.segment.insert(segment);
            segment.file.write_all_at(&bytes[piece.range.clone()], piece.offset)?;
            tell(Reached::Received(piece.last), piece, segment.bytes);
            segment.file.sync_data()?;
            tell(Reached::Persisted(piece.last), piece, segment.bytes);
            *done += 1;
        }
        Ok(())
    }
}
