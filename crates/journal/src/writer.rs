//! Writes batches to segments and synchronizes them. Used by one thread at a time, under the
//! writer's lock.

use crate::batch::{BatchPart, CommitBatch};
use crate::segment::Segment;
use crate::storage::{Storage, StorageResult, StoredFile};

/// Source of new segments.
pub(crate) trait SegmentSupply<F> {
    /// The segment with this number, preallocated or created now.
    ///
    /// # Errors
    /// If there is no space, or the disk refuses.
    fn take(&mut self, number: u64) -> StorageResult<Segment<F>>;
}

/// Progress of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Records up to this sequence are written.
    Written(u64),
    /// Records up to this sequence are durable.
    Persisted(u64),
}

/// Writer of the current segment.
#[derive(Debug)]
pub(crate) struct Writer<S: Storage> {
    segment: Option<Segment<S::File>>,
}

impl<S: Storage> Writer<S> {
    /// A writer that continues in `segment`, or in the next one that a batch names.
    pub(crate) const fn new(segment: Option<Segment<S::File>>) -> Self {
        Self { segment }
    }

    /// Writes and synchronizes the rest of `batch`. Reports progress to `report`, with the part and
    /// its segment's length.
    ///
    /// # Errors
    /// One that may pass: calling it again with the same batch continues. Any other error is final.
    pub(crate) fn write(
        &mut self,
        batch: &mut CommitBatch,
        supply: &mut dyn SegmentSupply<S::File>,
        mut report: impl FnMut(Progress, &BatchPart, u64),
    ) -> StorageResult<()> {
        let CommitBatch { bytes, parts, done, .. } = batch;
        for part in &parts[*done..] {
            let segment = match self.segment.take() {
                Some(segment) if segment.number == part.segment => segment,
                _ => supply.take(part.segment)?,
            };
            let segment = self.segment.insert(segment);
            segment.file.write_all_at(&bytes[part.range.clone()], part.offset)?;
            // Reported before the synchronization, for waiters content with `Written`.
            report(Progress::Written(part.last), part, segment.bytes);
            segment.file.sync_data()?;
            report(Progress::Persisted(part.last), part, segment.bytes);
            // Only now: a failed part is written again from its start.
            *done += 1;
        }
        Ok(())
    }
}
