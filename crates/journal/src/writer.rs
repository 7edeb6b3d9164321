//! Groups become durable.

use crate::batch::{BatchPart, CommitBatch};
use crate::segment::Segment;
use crate::storage::{Storage, StorageResult, StoredFile};

/// Where the next segment comes from.
pub(crate) trait SegmentSource<F> {
    /// The segment with this number: prepared, or made now.
    ///
    /// # Errors
    /// If there is no space, or the disk refuses.
    fn take(&mut self, number: u64) -> StorageResult<Segment<F>>;
}

/// How far a group has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All up to this sequence is written.
    Written(u64),
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

    /// Writes and synchronises what is left of `batch`, and tells how far that has come, by
    /// which piece, and how long its segment is.
    ///
    /// # Errors
    /// `NoSpace`: calling it again with the same group goes on. Anything else is for good.
    pub(crate) fn write(
        &mut self,
        batch: &mut CommitBatch,
        supply: &mut dyn SegmentSource<S::File>,
        mut tell: impl FnMut(Progress, &BatchPart, u64),
    ) -> StorageResult<()> {
        let CommitBatch { bytes, parts, done, .. } = batch;
        for part in &parts[*done..] {
            let segment = match self.segment.take() {
                Some(segment) if segment.number == part.segment => segment,
                _ => supply.take(part.segment)?,
            };
            let segment = self.segment.insert(segment);
            segment.file.write_all_at(&bytes[part.range.clone()], part.offset)?;
            tell(Progress::Written(part.last), part, segment.bytes);
            segment.file.sync_data()?;
            tell(Progress::Persisted(part.last), part, segment.bytes);
            *done += 1;
        }
        Ok(())
    }
}
