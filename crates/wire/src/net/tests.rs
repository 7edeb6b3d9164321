use super::*;
use core::mem::offset_of;

const PAGE: &str = include_str!("../../../../docs/protocol/net.md");

#[test]
fn a_frame_is_read_as_it_was_written() {
    let mut bytes = [0; 200];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Nak, flag::ALONE, 7, 9);
    assert!(writer.add(&NakBody { receiver: 5.into() }));
    for first in [10u64, 20] {
        let range = Range { first: first.into(), count: 3.into(), reserved: 0.into() };
        assert!(writer.add(&range));
    }
    let length = writer.finish();
    let (frame, rest) = Frame::split(&bytes[..length]).expect("a frame");
    assert_eq!((frame.kind, frame.flags), (Kind::Nak, flag::ALONE));
    assert_eq!((frame.session, frame.sequence, rest.len()), (7, 9, 0));
    let (body, rest) = NakBody::split(frame.body).expect("a body");
    assert_eq!(body.receiver.get(), 5);
    let ranges: Vec<_> =
        list::<Range>(rest).iter().map(|r| (r.first.get(), r.count.get())).collect();
    assert_eq!(ranges, [(10, 3), (20, 3)]);
}

#[test]
fn a_frame_without_room_is_refused_whole() {
    let mut bytes = [0; 34];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Join, 0, 1, 0);
    assert!(writer.add_name("abcdef"));
    assert!(!writer.add_name("x"));
    let length = writer.finish();
    let (frame, _) = Frame::split(&bytes[..length]).expect("a frame");
    assert_eq!(names(frame.body).collect::<Vec<_>>(), ["abcdef"]);
}

#[test]
fn items_are_padded_and_counted() {
    assert_eq!([0, 1, 4, 5, 24].map(item_bytes), [4, 8, 8, 12, 28]);
    let block = BlockHeader {
        topic: 3.into(),
        length: 16.into(),
        count: 2.into(),
        fragment: 1.into(),
        message: 1.into(),
    };
    let mut bytes = zerocopy::IntoBytes::as_bytes(&block).to_vec();
    bytes.extend([1, 0, 3, 0, b'a', 0, 0, 0, 4, 0, 7, 0, b'w', b'x', b'y', b'z']);
    bytes.extend([0; 30]);
    let mut blocks = Blocks::new(&bytes);
    let (header, items) = blocks.next().expect("a block");
    assert_eq!(header.topic.get(), 3);
    let items: Vec<_> = items.map(|item| (item.bytes, item.flags.0)).collect();
    assert_eq!(items, [(&b"a"[..], 3), (&b"wxyz"[..], 7)]);
    assert!(blocks.next().is_none(), "padding is no block");
}

#[test]
fn no_bytes_make_a_reader_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut bytes = [0u8; 96];
    for _ in 0..200_000 {
        for byte in &mut bytes {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (state >> 56) as u8;
        }
        bytes[..3].copy_from_slice(&[b'L', b'C', VERSION]);
        bytes[7] = 0;
        let Some((frame, _)) = Frame::split(&bytes) else { continue };
        names(frame.body).for_each(drop);
        topics(frame.body).for_each(drop);
        adverts(frame.body).flat_map(|(_, names)| names).for_each(drop);
        let blocks = frame.data().map(|(_, rest)| Blocks::new(rest));
        blocks.into_iter().flatten().flat_map(|(_, items)| items).for_each(drop);
    }
}

#[test]
fn a_length_is_known_once_it_was_received() {
    let mut bytes = [0; 64];
    let length = FrameWriter::new(&mut bytes, Kind::Leave, 0, 1, 0).finish();
    assert_eq!(frame_length(&bytes[..length - 1]), Ok(None));
    assert_eq!(frame_length(&bytes), Ok(Some(length)));
    bytes[2] = 9;
    assert_eq!(frame_length(&bytes), Err(NotAFrame));
}

#[test]
fn a_sealed_datagram_is_split_if_it_is_whole() {
    let header = SealedHeader::new(7, 8, 9, 3);
    let mut bytes = zerocopy::IntoBytes::as_bytes(&header).to_vec();
    bytes.extend([0; 3 + SEALED_TAG_BYTES + 5]);
    let (read, length) = SealedHeader::split(&bytes).expect("a sealed datagram");
    assert_eq!((read.key.get(), read.sender.get(), read.counter.get(), length), (7, 8, 9, 43));
    assert!(SealedHeader::split(&bytes[..42]).is_none(), "cut short");
    assert!(Frame::split(&bytes).is_none() && is_sealed(&bytes));
    for (at, value) in [(0, b'X'), (1, b'C'), (2, SEALED_VERSION + 1), (6, 39)] {
        let mut other = bytes.clone();
        other[at] = value;
        assert!(SealedHeader::split(&other).is_none(), "byte {at}");
    }
}

/// The page states each field as `| offset | length | Struct.field | ...`.
#[test]
fn the_normative_page_states_the_layouts_of_the_code() {
    macro_rules! same {
        ($type:ident[$bytes:literal]: $($field:ident),+) => {
            let mut end = 0;
            $({
                let name = concat!(stringify!($type), ".", stringify!($field));
                let (offset, length) = row(name);
                assert_eq!(offset, offset_of!($type, $field), "{name}");
                assert_eq!(offset, end, "{name}: no field is left out before it");
                end = offset + length;
            })+
            assert_eq!((end, size_of::<$type>()), ($bytes, $bytes), stringify!($type));
        };
    }
    same!(FrameHeader[24]: magic, version, kind, flags, length, session, sequence);
    same!(DataHeader[8]: skipped, retained);
    same!(BlockHeader[24]: topic, length, count, fragment, message);
    same!(ItemHeader[4]: length, flags);
    same!(SessionBody[8]: receivers, reserved);
    same!(TopicHead[24]: topic, reserved, fragment, message);
    same!(NakBody[8]: receiver);
    same!(Range[16]: first, count, reserved);
    same!(JoinBody[32]: receiver, cookie, echo, window, tag);
    same!(ChallengeBody[24]: receiver, cookie, echo);
    same!(WelcomeBody[40]: receiver, echo, longest, window, receivers, pid, liveness_ms, fec_data,
        fec_parity, fec_delay_us);
    same!(ParityBody[12]: members, row, proactive, reserved);
    same!(TopicEntry[24]: topic, name, reserved, fragment, message);
    same!(StatusBody[48]: receiver, received, limit, echo, tag, lost, topics, round_trip);
    same!(EchoBody[16]: receiver, echo);
    same!(LeaveBody[8]: receiver);
    same!(EjectBody[8]: receiver);
    same!(SealedHeader[24]: magic, version, reserved, key, length, sender, counter);
    same!(SealedDestination[18]: address, port);
}

/// Offset and length in the page's row of a field.
fn row(name: &str) -> (usize, usize) {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.contains(&cell));
    let line = line.unwrap_or_else(|| panic!("docs/protocol/net.md has no row for {name}"));
    let mut cells = line.split('|').map(str::trim).skip(1);
    let mut number = || cells.next().and_then(|cell| cell.parse().ok()).expect("a number");
    (number(), number())
}

#[test]
fn the_normative_page_states_the_numbers_of_the_code() {
    for (name, value) in [
        ("VERSION", usize::from(VERSION)),
        ("DATA_OFFSET", DATA_OFFSET),
        ("FRAME_MAX", FRAME_MAX),
        ("DATAGRAM_MIN", DATAGRAM_MIN),
        ("NAME_MAX", NAME_MAX),
        ("TOTAL_BYTES", TOTAL_BYTES),
        ("FEC_DATA_MAX", FEC_DATA_MAX),
        ("FEC_PARITY_MAX", FEC_PARITY_MAX),
        ("FEC_DATAGRAM_MAX", FEC_DATAGRAM_MAX),
        ("SYMBOL_LENGTH_BYTES", SYMBOL_LENGTH_BYTES),
        ("SEALED_VERSION", usize::from(SEALED_VERSION)),
        ("SEALED_TAG_BYTES", SEALED_TAG_BYTES),
        ("SEALED_OVERHEAD", SEALED_OVERHEAD),
        ("BEGIN", ItemFlags::BEGIN.into()),
        ("END", ItemFlags::END.into()),
        ("MORE", ItemFlags::MORE.into()),
    ] {
        states(&format!("| `{name}` | {value} |"));
    }
    for kind in (1..=12).chain([15]).map(|number| Kind::from_number(number).expect("a kind")) {
        states(&format!("| `{kind:?}` | {} |", kind as u8));
    }
    for (name, value, of) in [
        ("AGAIN", flag::AGAIN, "Data"),
        ("CLOSED", flag::CLOSED, "Session"),
        ("PROBE", flag::PROBE, "Session"),
        ("ALONE", flag::ALONE, "Nak"),
        ("PARITY", flag::PARITY, "Nak"),
        ("FEC", flag::FEC, "Join"),
        ("RESUME", flag::RESUME, "Join"),
        ("LATE", flag::LATE, "Join"),
        ("FURTHER", flag::FURTHER, "Join"),
        ("UNWANTED", flag::UNWANTED, "Void"),
        ("GONE", flag::GONE, "Void"),
        ("BUDGET", flag::BUDGET, "Confirm"),
        ("STALLED", flag::STALLED, "Eject"),
        ("CROWDED", flag::CROWDED, "Eject"),
        ("STRANGER", flag::STRANGER, "Eject"),
    ] {
        states(&format!("| `{name}` | {value} | {of} |"));
    }
}

fn states(cell: &str) {
    assert!(PAGE.contains(cell), "docs/protocol/net.md should say {cell}");
}

#[test]
fn the_normative_page_s_datagram_is_the_code_s() {
    let block = BlockHeader {
        topic: 2.into(),
        length: (item_bytes(6) as u16).into(),
        count: 1.into(),
        fragment: 0.into(),
        message: 0.into(),
    };
    let item = ItemHeader { length: 6.into(), flags: ItemFlags::WHOLE.into() };
    let mut bytes = [0; 100];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Data, 0, 0x1f, 5);
    assert!(writer.add_data_header(0, 5) && writer.add(&block) && writer.add(&item));
    assert!(writer.add(b"lane-1\0\0"));
    let length = writer.finish();
    let example = PAGE.split("```text").find(|text| text.contains("4c 43 02 01"));
    let words = example.and_then(|text| text.split("```").next()).expect("an example");
    let words = words.split_whitespace().filter(|word| word.len() == 2);
    let read: Vec<u8> = words.filter_map(|word| u8::from_str_radix(word, 16).ok()).collect();
    assert_eq!(read, bytes[..length]);
}
