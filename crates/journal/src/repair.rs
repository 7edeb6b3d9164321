//! Repair: truncates a damaged journal to its longest valid prefix.

use crate::checksum::of_segment;
use crate::cut_mark;
use crate::error::OpenError;
use crate::file_name;
use crate::index_file;
use crate::read_buffer::ReadBuffer;
use crate::recovery::{Recovery, blank};
use crate::segment::{Segment, segment_numbers};
use crate::storage::{OpenMode, Storage, StorageResult, StoredFile};
use crate::tail::Tail;
use lanecast_wire::journal::{HEADER_OFFSETS, RECORDS_OFFSET};
use zerocopy::IntoBytes;

/// A repair plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// The damage; `None` if opening the journal handles everything.
    pub damage: Option<OpenError>,
    /// Segment and offset of the cut; everything behind is lost.
    pub cut: Option<(u64, u64)>,
    /// Segments to remove.
    pub removed: Vec<u64>,
    /// Number of readable records that are lost. Unreadable ones are not counted.
    pub lost_records: u64,
    /// Segments with one damaged header, which is written again from the other.
    pub damaged_headers: Vec<u64>,
    /// Segments with a wrong file length, which is set to the length in the header.
    pub wrong_lengths: Vec<u64>,
}

impl Repair {
    /// Reads the whole journal in `storage` and plans its repair. Changes nothing.
    ///
    /// # Errors
    /// If there is no journal, or the disk refuses.
    pub fn plan<S: Storage>(storage: &S) -> Result<Self, OpenError> {
        let segment_numbers = segment_numbers(storage)?;
        if segment_numbers.is_empty() {
            return Err(OpenError::NoJournal { directory: storage.path("") });
        }
        let gap = segment_numbers.windows(2).position(|pair| pair[0] + 1 != pair[1]);
        let together = gap.map_or(&segment_numbers[..], |last| &segment_numbers[..=last]);
        let mut repair = Self::default();
        let read = Recovery::new(storage, together).allow_any_length().read_all(|_| {});
        // Damage before the gap decides: the gap lies behind the cut then.
        let damage = match (read, gap) {
            (Err(error), _) => Some(error),
            (Ok(_), None) => None,
            (Ok(_), Some(last)) => {
                let segment = segment_numbers[last] + 1;
                let path = storage.path(&file_name::segment(segment));
                Some(OpenError::MissingSegment { segment, path })
            }
        };
        let removed_from = match &damage {
            None => u64::MAX,
            Some(OpenError::Corrupt(damage)) => {
                // An empty first segment gives no sequence to continue from, unless it is number 1.
                let is_empty =
                    damage.offset == RECORDS_OFFSET && damage.segment == segment_numbers[0];
                if is_empty && damage.segment > 1 {
                    damage.segment
                } else {
                    repair.cut = Some((damage.segment, damage.offset));
                    damage.segment + 1
                }
            }
            Some(
                OpenError::InvalidSegment { segment, .. }
                | OpenError::ForeignSegment { segment, .. }
                | OpenError::MissingSegment { segment, .. },
            ) => *segment,
            Some(other) => return Err(other.clone()),
        };
        repair.damage = damage;
        repair.removed = segment_numbers.iter().copied().filter(|n| *n >= removed_from).collect();
        repair.count_lost(storage)?;
        for number in segment_numbers.iter().filter(|number| **number < removed_from) {
            let segment = Segment::open_any_length(storage, *number, OpenMode::Read)?;
            if segment.has_damaged_header {
                repair.damaged_headers.push(*number);
            }
            if let Err(error) = segment.check_length(storage) {
                repair.wrong_lengths.push(*number);
                // The wrong length explains the missing record at the cut.
                let is_why = repair.cut.is_some_and(|(cut, _)| cut == *number);
                if is_why || repair.damage.is_none() {
                    repair.damage = Some(error);
                }
            }
        }
        Ok(repair)
    }

    /// Whether there is anything to repair.
    pub fn is_needed(&self) -> bool {
        self.damage.is_some() || !self.damaged_headers.is_empty()
    }

    /// Applies the plan durably.
    ///
    /// # Errors
    /// If another process owns the journal, or the disk refuses.
    pub fn apply<S: Storage>(&self, storage: &S) -> Result<(), OpenError> {
        let _lock = storage.lock()?;
        if self.cut.is_some() || !self.removed.is_empty() {
            // First: after a crash in between, records may be gone already.
            cut_mark::write(storage)?;
        }
        // Newest first, each removal durable: a crash must not leave a gap.
        for number in self.removed.iter().rev() {
            index_file::remove(storage, *number);
            storage.remove(&file_name::segment(*number))?;
            storage.sync_directory()?;
        }
        // Lengths before the cut, which writes up to the segment's full length.
        for number in &self.wrong_lengths {
            let segment = Segment::open_any_length(storage, *number, OpenMode::Write)?;
            segment.file.set_length(segment.bytes)?;
            segment.file.sync_data()?;
        }
        if let Some((number, offset)) = self.cut {
            index_file::remove(storage, number);
            let segment = Segment::open(storage, number, OpenMode::Write)?;
            blank(&segment.file, offset..segment.bytes)?;
        }
        for number in &self.damaged_headers {
            write_headers(&Segment::open(storage, *number, OpenMode::Write)?)?;
        }
        Ok(())
    }

    /// The mark of the last repair that took records away, drawn by chance for each; `None` if
    /// there was none. A program that has promised others to keep its records compares it with the
    /// one that it last saw.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn last_cut<S: Storage>(storage: &S) -> StorageResult<Option<u64>> {
        cut_mark::read(storage)
    }

    fn count_lost<S: Storage>(&mut self, storage: &S) -> StorageResult<()> {
        let mut read_buffer = ReadBuffer::default();
        let removed = self.removed.iter().map(|number| (*number, RECORDS_OFFSET));
        for (number, offset) in self.cut.into_iter().chain(removed) {
            // Segments without a valid header cannot be counted.
            let Ok(segment) = Segment::open_any_length(storage, number, OpenMode::Read) else {
                continue;
            };
            self.lost_records += Tail::scan(&mut read_buffer, &segment, offset)?.records;
        }
        Ok(())
    }
}

fn write_headers<F: StoredFile>(segment: &Segment<F>) -> StorageResult<()> {
    let mut header = segment.header();
    header.crc = of_segment(&header).into();
    // One copy at a time, so that one is valid at any moment.
    for offset in HEADER_OFFSETS {
        segment.file.write_all_at(header.as_bytes(), offset)?;
        segment.file.sync_data()?;
    }
    Ok(())
}
