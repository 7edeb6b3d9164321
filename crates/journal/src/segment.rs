//! One segment: how it is made, and how it is opened.

use crate::checksum::of_segment;
use crate::error::OpenError;
use crate::name;
use crate::storage::{Mode, Outcome, Storage, StoredFile};
use lanecast_wire::journal::{HEADER_OFFSETS, SegmentError, SegmentHeader};
use zerocopy::IntoBytes;

/// What the segments of a journal have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// The journal's number.
    pub(crate) journal: u64,
    /// The length of new segments.
    pub(crate) segment_bytes: u64,
}

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment<F> {
    pub(crate) file: F,
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) journal: u64,
    pub(crate) created_unix_ns: u64,
    /// One copy of the header is damaged, the other tells all the same.
    pub(crate) is_halved: bool,
}

impl<F: StoredFile> Segment<F> {
    /// Makes a segment: complete and durable, or not there at all.
    pub(crate) fn make<S: Storage<File = F>>(
        storage: &S,
        shape: Shape,
        number: u64,
        unix_ns: u64,
    ) -> Outcome<Self> {
        let unfinished = name::unfinished(number);
        let made = Self::fill(storage, &unfinished, shape, number, unix_ns);
        let file = made.inspect_err(|_| {
            // What was reserved is given back; if that fails too, opening does it.
            let _ = storage.remove(&unfinished);
        })?;
        storage.rename(&unfinished, &name::segment(number))?;
        storage.sync_directory()?;
        let Shape { journal, segment_bytes: bytes } = shape;
        Ok(Self { file, number, bytes, journal, created_unix_ns: unix_ns, is_halved: false })
    }

    fn fill<S: Storage<File = F>>(
        storage: &S,
        name: &str,
        shape: Shape,
        number: u64,
        unix_ns: u64,
    ) -> Outcome<F> {
        let file = storage.create(name)?;
        file.preallocate(shape.segment_bytes)?;
        let mut header = SegmentHeader::new(shape.journal, number, shape.segment_bytes, unix_ns);
        header.crc = of_segment(&header).into();
        for offset in HEADER_OFFSETS {
            file.write_all_at(header.as_bytes(), offset)?;
        }
        file.sync_data()?;
        Ok(file)
    }

    /// Opens a segment and checks its header.
    pub(crate) fn open<S: Storage<File = F>>(
        storage: &S,
        number: u64,
        mode: Mode,
    ) -> Result<Self, OpenError> {
        let name = name::segment(number);
        let refused = |why| OpenError::Segment { segment: number, path: storage.path(&name), why };
        let file = storage.open(&name, mode)?;
        let copies =
            [read_header(&file, HEADER_OFFSETS[0])?, read_header(&file, HEADER_OFFSETS[1])?];
        let header = match copies {
            [Ok(header), _] | [_, Ok(header)] => header,
            [Err(why), _] => return Err(refused(why)),
        };
        let bytes = header.segment_bytes.get();
        if header.segment.get() != number || file.length()? != bytes {
            return Err(refused(SegmentError::Damaged));
        }
        Ok(Self {
            file,
            number,
            bytes,
            journal: header.journal.get(),
            created_unix_ns: header.created_unix_ns.get(),
            is_halved: copies.iter().any(Result::is_err),
        })
    }
}

fn read_header<F: StoredFile>(
    file: &F,
    offset: u64,
) -> Outcome<Result<SegmentHeader, SegmentError>> {
    let mut bytes = [0; size_of::<SegmentHeader>()];
    let filled = file.fill_at(&mut bytes, offset)?;
    Ok(SegmentHeader::read(&bytes[..filled]).and_then(|header| {
        let is_true = of_segment(&header) == header.crc.get();
        if is_true { Ok(header) } else { Err(SegmentError::Damaged) }
    }))
}

/// The numbers of the segments that there are, in order.
pub(crate) fn numbers<S: Storage>(storage: &S) -> Outcome<Vec<u64>> {
    let mut numbers: Vec<u64> = storage.list()?.iter().filter_map(|n| name::number(n)).collect();
    numbers.sort_unstable();
    Ok(numbers)
}
