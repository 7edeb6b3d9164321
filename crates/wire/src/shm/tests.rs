//! Golden bytes, hostile headers, and the comparison with the normative page.

use super::*;
use core::mem::offset_of;
use zerocopy::IntoBytes;
use zerocopy::little_endian::{U32, U64};

fn header() -> RingHeader {
    let limits = Limits::new(1 << 20, 64, 64);
    RingHeader {
        magic: RING_MAGIC,
        version: U32::new(VERSION),
        flags: U32::new(1),
        session: U64::new(0x0123_4567_89ab_cdef),
        file_bytes: U64::new(limits.file_bytes()),
        window_bytes: U64::new(limits.window_bytes),
        data_offset: U64::new(limits.data_offset),
        longest_message: U32::new(limits.longest_message),
        topics_max: U32::new(limits.topics_max),
        subscribers_max: U32::new(limits.subscribers_max),
        pid: U32::new(4711),
        namespace: U64::new(5),
        start_time: U64::new(6),
        created_unix_ns: U64::new(7),
        name: *b"publisher\0\0\0\0\0\0\0",
    }
}

#[test]
fn a_header_reads_back_and_its_first_bytes_are_golden() {
    let bytes = header().as_bytes().to_vec();
    assert_eq!(
        &bytes[..32],
        b"LANERING\x04\0\0\0\x01\0\0\0\xef\xcd\xab\x89\x67\x45\x23\x01\0\0\x11\0\0\0\0\0"
    );
    let (read, limits) = RingHeader::read(&bytes).unwrap();
    assert_eq!(read.as_bytes(), bytes);
    assert_eq!(limits, Limits::new(1 << 20, 64, 64));
}

#[test]
fn every_damaged_header_is_refused_with_the_reason() {
    let refuse = |change: &dyn Fn(&mut RingHeader)| {
        let mut header = header();
        change(&mut header);
        RingHeader::read(header.as_bytes()).unwrap_err()
    };
    assert_eq!(RingHeader::read(&[0; 40]).unwrap_err(), HeaderError::Short);
    assert_eq!(refuse(&|h| h.magic[0] = b'X'), HeaderError::Foreign);
    assert_eq!(refuse(&|h| h.version = U32::new(9)), HeaderError::Version { found: 9 });
    assert_eq!(
        refuse(&|h| h.version = U32::new(3)).to_string(),
        "the layout is version 3, this program reads version 4: use one version"
    );
    let damaged: [&dyn Fn(&mut RingHeader); 8] = [
        &|h| h.window_bytes = U64::new(3 << 20),
        &|h| h.window_bytes = U64::new(1 << 40),
        &|h| h.topics_max = U32::new(0),
        &|h| h.topics_max = U32::new(u32::MAX),
        &|h| h.subscribers_max = U32::new(65),
        &|h| h.longest_message = U32::new(u32::MAX),
        &|h| h.data_offset = U64::new(8),
        &|h| h.file_bytes = U64::new(u64::MAX),
    ];
    for change in damaged {
        assert!(matches!(refuse(change), HeaderError::Damaged(_)));
    }
}

#[test]
fn a_gate_of_another_session_is_refused() {
    let gate = GateHeader {
        magic: GATE_MAGIC,
        version: U32::new(VERSION),
        subscribers_max: U32::new(4),
        session: U64::new(7),
    };
    assert!(GateHeader::read(gate.as_bytes(), 7, 4).is_ok());
    assert!(GateHeader::read(gate.as_bytes(), 8, 4).is_err());
    assert!(GateHeader::read(gate.as_bytes(), 7, 64).is_err());
}

#[test]
fn commit_words_carry_kind_and_length() {
    assert_eq!(Word::message(0), Word(0x1000_0000));
    assert_eq!(Word::message(1500).length(), 1500);
    assert_eq!(Word::message(1500).checked_length(1500), Some(1500));
    assert_eq!(Word::message(1501).checked_length(1500), None);
    for foreign in [0, 1500, 0x2000_0000, u32::MAX] {
        assert_eq!(Word(foreign).checked_length(1500), None);
    }
    assert_eq!([0, 8, 9, 24, 25, 100, 1500].map(frame_bytes), [16, 16, 32, 32, 48, 112, 1520]);
}

#[test]
fn a_lease_counts_owners_and_deaths() {
    let (first, left) = (next_lease(0), next_lease(0) + 1);
    assert_eq!((first, next_lease(left)), (1, 3));
    let after_death = next_lease(first);
    assert_eq!(after_death, (1 << 48) + 3);
    assert_eq!([0, first, left, after_death].map(lease_owners), [0, 1, 1, 2]);
    assert_eq!([left, after_death, next_lease(after_death)].map(lease_deaths), [0, 1, 2]);
    assert!(!next_lease(u64::MAX).is_multiple_of(2), "a damaged one is followed by an odd one");
}

#[test]
fn the_word_of_an_owner_that_left_is_its_own() {
    for (owner, cursor) in [(1, 0), (2, 16), (3, u64::MAX - 15), (1 << 40, 1 << 50)] {
        let word = left_at(cursor, owner);
        assert_eq!(left_cursor(word, owner), Some(cursor));
        assert_eq!(left_cursor(word, owner + 2), None);
        assert_eq!(left_cursor(0, owner), None);
    }
}

#[test]
fn topic_words_carry_the_topic_and_the_low_bits_of_the_number() {
    let word = TopicWord::new(2, 0x1_0005);
    assert_eq!((word, word.topic(), word.number()), (TopicWord(0x0005_0002), 2, 5));
    assert!(word.fits(5) && word.fits(0x7_0005) && !word.fits(6));
    // The latest number with these bits, even across a change of the bits above them.
    let found = [4, 5, 6, 0x1_0004, 0x1_0005, 0x2_0000].map(|latest| word.number_up_to(latest));
    assert_eq!(found, [None, Some(5), Some(5), Some(5), Some(0x1_0005), Some(0x1_0005)]);
    assert_eq!(TopicWord::new(TOPICS_MAX - 1, u64::MAX), TopicWord(u32::MAX));
}

#[test]
fn the_counts_follow_the_topic_table() {
    for topics in [1, 64, 240, TOPICS_MAX] {
        let limits = Limits::new(1 << 20, topics, 64);
        assert_eq!(limits.counts_offset(), 4096 + 256 * u64::from(topics));
        assert!(limits.data_offset >= limits.counts_offset() + 8 * u64::from(topics));
    }
}

#[test]
fn topic_names_have_limits() {
    assert_eq!(TopicEntry::new("prices").unwrap().name(), Some("prices"));
    assert!(TopicEntry::new("").is_none());
    assert!(TopicEntry::new(&"x".repeat(TOPIC_NAME_MAX + 1)).is_none());
    let mut bytes = TopicEntry::new("prices").unwrap().as_bytes().to_vec();
    bytes[0] = 0xff;
    assert_eq!(TopicEntry::read_from_bytes(&bytes).unwrap().name(), None);
    bytes[0] = 1;
    bytes[4] = 0xff;
    assert_eq!(TopicEntry::read_from_bytes(&bytes).unwrap().name(), None, "not UTF-8");
}

use zerocopy::FromBytes;

/// The page states each field as `| offset | length | Struct.field | ...`.
#[test]
fn the_normative_page_states_the_offsets_of_the_code() {
    let page = include_str!("../../../../docs/protocol/shm.md");
    let row = |name: &str| -> (usize, usize) {
        let cell = format!("| `{name}` |");
        let line = page.lines().find(|line| line.contains(&cell));
        let line = line.unwrap_or_else(|| panic!("docs/protocol/shm.md has no row for {name}"));
        let mut cells = line.split('|').map(str::trim).skip(1);
        let number = |cell: Option<&str>| cell.unwrap().parse().unwrap();
        (number(cells.next()), number(cells.next()))
    };
    macro_rules! same {
        ($base:expr, $type:ident: $($field:ident),+) => {$(
            let offset = $base + offset_of!($type, $field);
            let name = concat!(stringify!($type), ".", stringify!($field));
            assert_eq!(row(name).0, offset, "{name}");
        )+};
    }
    same!(0, RingHeader: magic, version, flags, session, file_bytes, window_bytes, data_offset,
        longest_message, topics_max, subscribers_max, pid, namespace, start_time,
        created_unix_ns, name);
    same!(RING_LIVE_OFFSET, RingLive: head, state, topics, wait, back_pressured,
        evictions, wakes, evicted);
    same!(0, GateHeader: magic, version, subscribers_max, session);
    same!(GATE_LIVE_OFFSET, GateLive: sleepers, used, publisher_waits, publisher_wake);
    same!(0, Slot: cursor, messages, lease, wake, wait, pid, namespace, start_time, name, sleeps,
        unread, joined, pipe, left_at, left_unread);
    same!(0, FrameHeader: commit, topic);
    for (name, value) in [
        ("VERSION", u64::from(VERSION)),
        ("SUBSCRIBERS_MAX", u64::from(SUBSCRIBERS_MAX)),
        ("WINDOW_MIN", WINDOW_MIN),
        ("WINDOW_MAX", WINDOW_MAX),
        ("WINDOW_PARTS", WINDOW_PARTS),
        ("TOPICS_MAX", u64::from(TOPICS_MAX)),
        ("TOPIC_NAME_MAX", TOPIC_NAME_MAX as u64),
        ("DATA_ALIGN", DATA_ALIGN),
        ("FRAME_ALIGN", FRAME_ALIGN),
        ("SLOT_BYTES", SLOT_BYTES as u64),
        ("SLOTS_OFFSET", SLOTS_OFFSET as u64),
    ] {
        let cell = format!("| `{name}` | {value} |");
        assert!(page.contains(&cell), "docs/protocol/shm.md should say {cell}");
    }
}
