use super::*;
use core::mem::offset_of;

const PAGE: &str = include_str!("../../../../docs/protocol/journal.md");

/// The first two numbers of the row that has `name` in a cell.
fn row(name: &str) -> (usize, usize) {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.contains(&cell));
    let line = line.unwrap_or_else(|| panic!("docs/protocol/journal.md has no row for {name}"));
    let mut cells = line.split('|').map(str::trim).skip(1);
    let number = |cell: Option<&str>| cell.unwrap().parse().unwrap();
    (number(cells.next()), number(cells.next()))
}

/// The bytes that a field takes, without one at hand.
const fn bytes_of<T, F>(_: fn(&T) -> &F) -> usize {
    size_of::<F>()
}

/// The page states each field as `| offset | length | Struct.field | ...`.
#[test]
fn the_normative_page_states_the_layout_of_the_code() {
    macro_rules! same {
        ($type:ident: $($field:ident),+) => {$(
            let name = concat!(stringify!($type), ".", stringify!($field));
            let there = (offset_of!($type, $field), bytes_of(|it: &$type| &it.$field));
            assert_eq!(row(name), there, "{name}");
        )+};
    }
    same!(SegmentHeader: magic, version, flags, journal, segment, segment_bytes, created_unix_ns,
        crc);
    same!(RecordHeader: crc, body_crc, previous, length, sequence, unix_ns, topic, client,
        client_sequence, unsynced, flags, kind);
    same!(IndexHeader: magic, version, count, journal, segment, first, next, marks_crc, crc);
    same!(IndexMark: sequence, offset, unix_ns);
    for (name, value) in [
        ("JOURNAL_VERSION", u64::from(JOURNAL_VERSION)),
        ("RECORDS_OFFSET", RECORDS_OFFSET),
        ("RECORD_ALIGN", RECORD_ALIGN),
        ("SEGMENT_MIN", SEGMENT_MIN),
        ("SEGMENT_MAX", SEGMENT_MAX),
        ("BODY_MAX", u64::from(BODY_MAX)),
        ("NUMBER_END", NUMBER_END),
        ("KIND_ENTRY", u64::from(KIND_ENTRY)),
        ("KIND_SEAL", u64::from(KIND_SEAL)),
        ("FLAG_RECYCLED", u64::from(FLAG_RECYCLED)),
        ("INDEX_VERSION", u64::from(INDEX_VERSION)),
        ("INDEX_STRIDE", INDEX_STRIDE),
    ] {
        let cell = format!("| `{name}` | {value} |");
        assert!(PAGE.contains(&cell), "docs/protocol/journal.md should say {cell}");
    }
    assert!(PAGE.contains(&format!("# Journal, version {JOURNAL_VERSION}")));
    for magic in [JOURNAL_MAGIC, INDEX_MAGIC] {
        assert!(PAGE.contains(&format!("`{}`", magic.escape_ascii())));
    }
    for offset in HEADER_OFFSETS {
        assert!(PAGE.contains(&format!("{offset}  +---")), "where the copy at {offset} starts");
    }
}

fn segment() -> SegmentHeader {
    let mut header = SegmentHeader::new(0x0123_4567_89ab_cdef, 3, 1 << 20, 7);
    header.crc = 0x1122_3344.into();
    header
}

#[test]
fn a_segment_header_is_golden_and_reads_back() {
    let bytes = segment().as_bytes().to_vec();
    assert_eq!(
        bytes,
        b"LANEJRNL\x02\0\0\0\0\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01\x03\0\0\0\0\0\0\0\
          \0\0\x10\0\0\0\0\0\x07\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x44\x33\x22\x11"
    );
    assert_eq!(SegmentHeader::read(&bytes).unwrap().as_bytes(), bytes);
}

#[test]
fn a_segment_header_that_cannot_be_is_refused_with_the_reason() {
    let refuse = |change: &dyn Fn(&mut SegmentHeader)| {
        let mut header = segment();
        change(&mut header);
        SegmentHeader::read(header.as_bytes()).unwrap_err()
    };
    assert_eq!(SegmentHeader::read(&[0; 63]).unwrap_err(), SegmentError::Short);
    assert_eq!(refuse(&|h| h.magic[7] = 0), SegmentError::Foreign);
    assert_eq!(refuse(&|h| h.version = 1.into()), SegmentError::Version { found: 1 });
    let damaged: [&dyn Fn(&mut SegmentHeader); 6] = [
        &|h| h.flags = 2.into(),
        &|h| h.segment = 0.into(),
        &|h| h.segment = NUMBER_END.into(),
        &|h| h.segment_bytes = (SEGMENT_MIN - 8).into(),
        &|h| h.segment_bytes = (SEGMENT_MAX + 8).into(),
        &|h| h.segment_bytes = (SEGMENT_MIN + 1).into(),
    ];
    for change in damaged {
        assert_eq!(refuse(change), SegmentError::Damaged);
    }
}

fn record() -> RecordHeader {
    RecordHeader {
        crc: 1.into(),
        body_crc: 2.into(),
        previous: 3.into(),
        length: 5.into(),
        sequence: 0x0102_0304_0506_0708.into(),
        unix_ns: 9.into(),
        topic: 10.into(),
        client: 11.into(),
        client_sequence: 12.into(),
        unsynced: 4.into(),
        flags: 13.into(),
        kind: KIND_ENTRY.into(),
    }
}

#[test]
fn a_record_header_is_golden_and_reads_back() {
    let bytes = record().as_bytes().to_vec();
    assert_eq!(
        bytes,
        b"\x01\0\0\0\x02\0\0\0\x03\0\0\0\x05\0\0\0\x08\x07\x06\x05\x04\x03\x02\x01\
          \x09\0\0\0\0\0\0\0\
          \x0a\0\0\0\x0b\0\0\0\x0c\0\0\0\0\0\0\0\x04\0\0\0\x0d\0\x01\0"
    );
    let read = RecordHeader::read(&bytes, RECORDS_OFFSET, SEGMENT_MIN).unwrap();
    assert_eq!(read.as_bytes(), bytes);
    assert_eq!(read.covered(), &bytes[4..]);
    assert_eq!((read.bytes(), read.durable()), (64, 0x0102_0304_0506_0704));
}

#[test]
fn a_record_header_that_cannot_be_is_refused() {
    let refused = |offset: u64, change: &dyn Fn(&mut RecordHeader)| {
        let mut header = record();
        change(&mut header);
        RecordHeader::read(header.as_bytes(), offset, SEGMENT_MAX).is_none()
    };
    assert!(!refused(RECORDS_OFFSET, &|_| {}));
    assert!(refused(RECORDS_OFFSET, &|h| h.kind = 0.into()));
    assert!(refused(RECORDS_OFFSET, &|h| h.kind = 3.into()));
    assert!(refused(RECORDS_OFFSET, &|h| h.sequence = 0.into()));
    assert!(refused(RECORDS_OFFSET, &|h| h.sequence = NUMBER_END.into()));
    assert!(refused(RECORDS_OFFSET, &|h| h.length = (BODY_MAX + 1).into()));
    assert!(refused(RECORDS_OFFSET, &|h| h.kind = KIND_SEAL.into()), "a seal with a body");
    assert!(!refused(SEGMENT_MAX - 64 - 56, &|_| {}));
    assert!(refused(SEGMENT_MAX - 64 - 48, &|_| {}), "no room for the seal");
    let seal = |h: &mut RecordHeader| (h.kind, h.length) = (KIND_SEAL.into(), 0.into());
    assert!(!refused(SEGMENT_MAX - 56, &seal));
    assert!(refused(SEGMENT_MAX - 48, &seal), "it runs over the end");
    assert!(refused(u64::MAX - 8, &|_| {}), "it runs over the end of all");
}

#[test]
fn a_record_never_claims_that_it_was_durable_itself() {
    let durable = |sequence: u64, unsynced: u32| {
        RecordHeader { sequence: sequence.into(), unsynced: unsynced.into(), ..record() }.durable()
    };
    assert_eq!([durable(1, 1), durable(9, 0), durable(9, 1), durable(9, 40)], [0, 8, 8, 0]);
}

/// An index of two records, without checksums.
fn index() -> Vec<u8> {
    let mut header = IndexHeader::new(0x0123_4567_89ab_cdef, 3, 10..30, 2);
    (header.marks_crc, header.crc) = (1.into(), 2.into());
    let mark = |sequence: u32, offset: u32, unix_ns: u64| IndexMark {
        sequence: sequence.into(),
        offset: offset.into(),
        unix_ns: unix_ns.into(),
    };
    [header.as_bytes(), mark(0, 8192, 7).as_bytes(), mark(19, 40_968, 8).as_bytes()].concat()
}

#[test]
fn an_index_is_golden_and_reads_back() {
    let bytes = index();
    assert_eq!(
        bytes,
        b"LANEJIDX\x01\0\0\0\x02\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01\x03\0\0\0\0\0\0\0\
          \x0a\0\0\0\0\0\0\0\x1e\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\
          \0\0\0\0\0\x20\0\0\x07\0\0\0\0\0\0\0\x13\0\0\0\x08\xa0\0\0\x08\0\0\0\0\0\0\0"
    );
    let (header, marks) = IndexHeader::read(&bytes).unwrap();
    assert_eq!([header.as_bytes(), marks.as_bytes()].concat(), bytes);
}

#[test]
fn an_index_that_cannot_be_is_refused() {
    let refused = |at: usize, bytes: &[u8]| {
        let mut index = index();
        index[at..at + bytes.len()].copy_from_slice(bytes);
        IndexHeader::read(&index).is_none()
    };
    assert!(!refused(0, b"L"));
    for (at, bytes) in [
        (7, &b"x"[..]),         // magic
        (8, &[2]),              // version
        (12, &[1]),             // a mark too many
        (12, &[3]),             // a mark too few
        (24, &[0]),             // segment
        (32, &[0]),             // first
        (40, &[29]),            // the last mark is of the next segment
        (40, &[10]),            // no record
        (47, &[0x80]),          // next
        (64, &[1]),             // begins behind the first record
        (69, &[0x21]),          // the same by its offset
        (80, &[0]),             // sequences
        (84, &[0, 0x20]),       // offsets
        (84, &[9]),             // alignment
        (88, &[6]),             // times
        (84, &[0, 0, 0, 0x40]), // behind the longest segment
    ] {
        assert!(refused(at, bytes), "{at} {bytes:?}");
    }
    assert!(IndexHeader::read(&index()[..80]).is_none() && IndexHeader::read(&[]).is_none());
}
