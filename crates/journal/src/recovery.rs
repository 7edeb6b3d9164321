//! Where a journal ends, and whether what is behind that is torn or corrupt.

use crate::catalog::Listed;
use crate::chain::Chain;
use crate::error::{Corruption, Flaw, OpenError};
use crate::index::{Index, Mark};
use crate::name;
use crate::rest::{Rest, is_blank};
use crate::segment::{Segment, numbers};
use crate::storage::{Mode, Outcome, Storage, StoredFile};
use crate::walk::{Step, Walk, header_at};
use crate::window::Window;
use core::ops::Range;
use lanecast_wire::journal::{KIND_ENTRY, RECORDS_OFFSET, RecordHeader};

/// How much is copied at a time.
const COPY: usize = 1 << 20;

/// Where a journal ends.
#[derive(Debug)]
pub(crate) struct End {
    /// The segment that the next record goes to; it may be missing yet.
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) chain: Chain,
    /// What a crash left behind the end.
    pub(crate) torn: Option<Range<u64>>,
    /// Records that may be in memory only: their segment, and where they are in it.
    pub(crate) unsure: Option<(u64, Range<u64>)>,
    /// Marks of the segments that were read.
    pub(crate) indexes: Vec<(u64, Index)>,
}

/// The numbers of a journal's segments, of which none is missing among the others.
pub(crate) fn complete<S: Storage>(storage: &S) -> Result<Vec<u64>, OpenError> {
    let numbers = numbers(storage)?;
    let gap = numbers.windows(2).find(|pair| pair[0] + 1 != pair[1]);
    match gap {
        None => Ok(numbers),
        Some(pair) => {
            let segment = pair[0] + 1;
            Err(OpenError::Missing { segment, path: storage.path(&name::segment(segment)) })
        }
    }
}

/// Reads the last segments of a journal.
#[derive(Debug)]
pub(crate) struct Recovery<'a, S: Storage> {
    storage: &'a S,
    numbers: &'a [u64],
    /// The journal's number, once a segment has told it.
    journal: Option<u64>,
    window: Window,
    indexes: Vec<(u64, Index)>,
    /// Reads files of any length, as far as they go.
    bears_odd: bool,
}

impl<'a, S: Storage> Recovery<'a, S> {
    /// Of the segments with these numbers: at least one, and none missing among them.
    pub(crate) fn new(storage: &'a S, numbers: &'a [u64]) -> Self {
        let (window, indexes) = (Window::default(), Vec::new());
        Self { storage, numbers, journal: None, window, indexes, bears_odd: false }
    }

    /// The same, of files of any length: they are read as far as they go.
    pub(crate) fn bearing_odd(self) -> Self {
        Self { bears_odd: true, ..self }
    }

    /// Opens a segment and checks that it belongs to the same journal as the others.
    pub(crate) fn open(&mut self, number: u64) -> Result<Segment<S::File>, OpenError> {
        let segment = Segment::open_odd(self.storage, number, Mode::Read)?;
        if !self.bears_odd {
            segment.check_length(self.storage)?;
        }
        if *self.journal.get_or_insert(segment.journal) != segment.journal {
            let path = self.storage.path(&name::segment(number));
            return Err(OpenError::Mixed { segment: number, path });
        }
        Ok(segment)
    }

    /// The segment for the catalogue, if its first record is one.
    pub(crate) fn list(&mut self, number: u64) -> Result<Option<Listed>, OpenError> {
        let segment = self.open(number)?;
        self.window.forget();
        let first = header_at(&mut self.window, &segment, RECORDS_OFFSET)?;
        Ok(first.ok().filter(|header| header.kind.get() == KIND_ENTRY).map(|header| Listed {
            number,
            bytes: segment.bytes,
            first: Mark::of(&header, RECORDS_OFFSET),
            index: None,
        }))
    }

    /// Finds the end, reading the last segment with records and the one before it.
    ///
    /// # Errors
    /// If durable records are not there, or the disk refuses.
    pub(crate) fn find_end(mut self) -> Result<End, OpenError> {
        let start = self.last_used()?.saturating_sub(1);
        self.walk(start, |_| {})
    }

    /// Finds the end, reading every record and showing it.
    ///
    /// # Errors
    /// If durable records are not there, or the disk refuses.
    pub(crate) fn read_all(self, show: impl FnMut(Seen<'_>)) -> Result<End, OpenError> {
        self.walk(0, show)
    }

    /// The place in `numbers` of the last segment that is not blank; 0 if all are.
    fn last_used(&mut self) -> Result<usize, OpenError> {
        for place in (1..self.numbers.len()).rev() {
            let segment = self.open(self.numbers[place])?;
            if !is_blank(&mut self.window, &segment)? {
                return Ok(place);
            }
        }
        Ok(0)
    }

    fn walk(mut self, start: usize, mut show: impl FnMut(Seen<'_>)) -> Result<End, OpenError> {
        let mut walk = Walk::new(Chain::at_segment(self.numbers[start]));
        let mut unsure = None;
        for place in start..self.numbers.len() {
            let segment = self.open(self.numbers[place])?;
            let (mut index, mut last) = (Index::default(), None);
            walk.offset = RECORDS_OFFSET;
            self.window.forget();
            show(Seen::Segment(&Header::of(&segment)));
            let stopped = loop {
                let offset = walk.offset;
                match walk.step(&mut self.window, &segment)? {
                    Step::Record(header, body) => {
                        index.note(Mark::of(&header, offset));
                        last = Some(header.durable());
                        let bytes = self.window.again(body, header.length.get() as usize);
                        show(Seen::Record(&header, offset, bytes));
                    }
                    Step::Sealed => {
                        show(Seen::Seal);
                        break None;
                    }
                    Step::Stopped(flaw) => break Some(flaw),
                }
            };
            if let Some(durable) = last {
                let from = index.before_sequence(durable + 1).map_or(RECORDS_OFFSET, |m| m.offset);
                unsure = Some((segment.number, from..walk.offset));
            }
            self.indexes.push((segment.number, index));
            if let Some(flaw) = stopped {
                return self.stop(place, &segment, walk, flaw, unsure);
            }
        }
        let segment = self.numbers[self.numbers.len() - 1] + 1;
        let (offset, chain) = (RECORDS_OFFSET, walk.chain);
        Ok(End { segment, offset, chain, torn: None, unsure, indexes: self.indexes })
    }

    /// Judges what is behind the place where records stop.
    fn stop(
        mut self,
        place: usize,
        segment: &Segment<S::File>,
        walk: Walk,
        flaw: Flaw,
        unsure: Option<(u64, Range<u64>)>,
    ) -> Result<End, OpenError> {
        let storage = self.storage;
        let corrupt = |sequence| corruption(storage, segment.number, &walk, sequence, flaw);
        let Some(expected) = walk.chain.next else {
            return Err(corrupt(None).into());
        };
        // Whoever looks beside the owner may see the file become another segment; it has lost its
        // name before that.
        self.open(segment.number)?;
        let rest = Rest::look(&mut self.window, segment, walk.offset)?;
        if rest.durable >= Some(expected) {
            return Err(corrupt(Some(expected)).into());
        }
        for number in &self.numbers[place + 1..] {
            let later = self.open(*number)?;
            if !is_blank(&mut self.window, &later)? {
                return Err(corrupt(Some(expected)).into());
            }
        }
        Ok(End {
            segment: segment.number,
            offset: walk.offset,
            chain: walk.chain,
            torn: rest.end.map(|end| walk.offset..end),
            unsure,
            indexes: self.indexes,
        })
    }
}

/// What the header of a segment says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) created_unix_ns: u64,
    pub(crate) is_halved: bool,
}

impl Header {
    pub(crate) fn of<F>(segment: &Segment<F>) -> Self {
        let Segment { number, bytes, created_unix_ns, is_halved, .. } = *segment;
        Self { number, bytes, created_unix_ns, is_halved }
    }
}

/// What [`Recovery::read_all`] comes by.
#[derive(Debug)]
pub(crate) enum Seen<'a> {
    /// A segment begins.
    Segment(&'a Header),
    /// A record, where it is, and its body.
    Record(&'a RecordHeader, u64, &'a [u8]),
    /// The segment is complete.
    Seal,
}

/// Damage at the place that a walk has come to.
pub(crate) fn corruption<S: Storage>(
    storage: &S,
    segment: u64,
    walk: &Walk,
    sequence: Option<u64>,
    flaw: Flaw,
) -> Corruption {
    let (path, directory) = (storage.path(&name::segment(segment)), storage.path(""));
    Corruption { segment, path, offset: walk.offset, sequence, flaw, directory }
}

/// Makes the end of a journal what it was found to be: nothing behind it, all before it durable.
pub(crate) fn settle<S: Storage>(storage: &S, end: &End) -> Result<(), OpenError> {
    if let Some(range) = &end.torn {
        let segment = Segment::open(storage, end.segment, Mode::Write)?;
        blank(&segment.file, range.clone())?;
    }
    if let Some((number, range)) = &end.unsure {
        // After a synchronisation that failed, what can be read is perhaps in memory only, and
        // the kernel takes it for written: only writing it again brings it to the disk.
        let segment = Segment::open(storage, *number, Mode::Write)?;
        let mut bytes = vec![0; COPY];
        let mut offset = range.start;
        while offset < range.end {
            let length = (range.end - offset).min(COPY as u64) as usize;
            let filled = segment.file.fill_at(&mut bytes[..length], offset)?;
            segment.file.write_all_at(&bytes[..filled], offset)?;
            offset += length as u64;
        }
        segment.file.sync_data()?;
    }
    Ok(())
}

/// Writes zeros, and makes them durable.
pub(crate) fn blank<F: StoredFile>(file: &F, range: Range<u64>) -> Outcome<()> {
    let zeros = vec![0; COPY];
    let mut offset = range.start;
    while offset < range.end {
        let length = (range.end - offset).min(COPY as u64);
        file.write_all_at(&zeros[..length as usize], offset)?;
        offset += length;
    }
    file.sync_data()
}
