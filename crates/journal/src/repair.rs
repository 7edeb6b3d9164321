//! Cutting a damaged journal to the longest beginning that is right.

use crate::checksum::of_segment;
use crate::error::OpenError;
use crate::name;
use crate::recovery::{Recovery, blank};
use crate::rest::Rest;
use crate::segment::{Segment, numbers};
use crate::storage::{Mode, Outcome, Storage, StoredFile};
use crate::window::Window;
use lanecast_wire::journal::{HEADER_OFFSETS, RECORDS_OFFSET};
use zerocopy::IntoBytes;

/// What repairing a journal would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// What is wrong; `None` if nothing is that opening the journal does not see to.
    pub damage: Option<OpenError>,
    /// The segment that is cut, and where; nothing is left of those behind it.
    pub cut: Option<(u64, u64)>,
    /// The segments that are removed.
    pub removed: Vec<u64>,
    /// How many readable records that loses. There were more if some cannot be read.
    pub lost_records: u64,
    /// Segments of which one copy of the header is written again.
    pub halved: Vec<u64>,
    /// Segments whose files get the length that their headers say: zeros at the end, or none.
    pub odd: Vec<u64>,
}

impl Repair {
    /// Reads the whole journal in `storage` and says what repairing it would do. Changes nothing.
    ///
    /// # Errors
    /// If there is no journal, or the disk refuses.
    pub fn plan<S: Storage>(storage: &S) -> Result<Self, OpenError> {
        let numbers = numbers(storage)?;
        if numbers.is_empty() {
            return Err(OpenError::Absent { directory: storage.path("") });
        }
        let gap = numbers.windows(2).position(|pair| pair[0] + 1 != pair[1]);
        let together = gap.map_or(&numbers[..], |last| &numbers[..=last]);
        let mut repair = Self::default();
        let read = Recovery::new(storage, together).bearing_odd().read_all(|_| {});
        let damage = match (read, gap) {
            (Err(error), _) => Some(error),
            (Ok(_), None) => None,
            (Ok(_), Some(last)) => {
                let segment = numbers[last] + 1;
                let path = storage.path(&name::segment(segment));
                Some(OpenError::Missing { segment, path })
            }
        };
        let removed_from = match &damage {
            None => u64::MAX,
            Some(OpenError::Corrupt(damage)) => {
                // A first segment without a record knows no sequence, unless it is the very first.
                let is_empty = damage.offset == RECORDS_OFFSET && damage.segment == numbers[0];
                if is_empty && damage.segment > 1 {
                    damage.segment
                } else {
                    repair.cut = Some((damage.segment, damage.offset));
                    damage.segment + 1
                }
            }
            Some(
                OpenError::Segment { segment, .. }
                | OpenError::Mixed { segment, .. }
                | OpenError::Missing { segment, .. },
            ) => *segment,
            Some(other) => return Err(other.clone()),
        };
        repair.damage = damage;
        repair.removed = numbers.iter().copied().filter(|n| *n >= removed_from).collect();
        repair.count_lost(storage)?;
        for number in numbers.iter().filter(|number| **number < removed_from) {
            let segment = Segment::open_odd(storage, *number, Mode::Read)?;
            if segment.is_halved {
                repair.halved.push(*number);
            }
            if let Err(error) = segment.check_length(storage) {
                repair.odd.push(*number);
                // That is why there is no record where it is cut.
                let is_why = repair.cut.is_some_and(|(cut, _)| cut == *number);
                if is_why || repair.damage.is_none() {
                    repair.damage = Some(error);
                }
            }
        }
        Ok(repair)
    }

    /// Whether there is anything to do.
    pub fn is_needed(&self) -> bool {
        self.damage.is_some() || !self.halved.is_empty()
    }

    /// Does it, and makes it durable.
    ///
    /// # Errors
    /// If another process owns the journal, or the disk refuses.
    pub fn apply<S: Storage>(&self, storage: &S) -> Result<(), OpenError> {
        let _ownership = storage.own()?;
        // From the newest on, each one durably: a crash must not leave a gap.
        for number in self.removed.iter().rev() {
            storage.remove(&name::segment(*number))?;
            storage.sync_directory()?;
        }
        for number in &self.odd {
            let segment = Segment::open_odd(storage, *number, Mode::Write)?;
            segment.file.set_length(segment.bytes)?;
            segment.file.sync_data()?;
        }
        if let Some((number, offset)) = self.cut {
            let segment = Segment::open(storage, number, Mode::Write)?;
            blank(&segment.file, offset..segment.bytes)?;
        }
        for number in &self.halved {
            write_headers(&Segment::open(storage, *number, Mode::Write)?)?;
        }
        Ok(())
    }

    fn count_lost<S: Storage>(&mut self, storage: &S) -> Outcome<()> {
        let mut window = Window::default();
        let removed = self.removed.iter().map(|number| (*number, RECORDS_OFFSET));
        for (number, offset) in self.cut.into_iter().chain(removed) {
            // What has no header cannot be read, and is not counted.
            let Ok(segment) = Segment::open_odd(storage, number, Mode::Read) else { continue };
            self.lost_records += Rest::look(&mut window, &segment, offset)?.records;
        }
        Ok(())
    }
}

fn write_headers<F: StoredFile>(segment: &Segment<F>) -> Outcome<()> {
    let mut header = segment.header();
    header.crc = of_segment(&header).into();
    // One after the other: there is always a good one.
    for offset in HEADER_OFFSETS {
        segment.file.write_all_at(header.as_bytes(), offset)?;
        segment.file.sync_data()?;
    }
    Ok(())
}
