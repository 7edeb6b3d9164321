use super::*;
use core::mem::offset_of;

const PAGE: &str = include_str!("../../../../docs/protocol/state.md");

/// The page states each field as `| offset | length | Struct.field | ...`.
#[test]
fn the_normative_page_states_the_layout_of_the_code() {
    macro_rules! same {
        ($type:ident: $($field:ident / $bytes:literal),+) => {$(
            let name = concat!(stringify!($type), ".", stringify!($field));
            let row = format!("| {} | {} | `{name}` |", offset_of!($type, $field), $bytes);
            assert!(PAGE.contains(&row), "docs/protocol/state.md should say {row}");
        )+};
    }
    same!(StateHeader: kind / 2, name_length / 2, length / 4, topic / 4, sequence / 8,
        expires_unix_ns / 8, key / 8, proof / 8);
    same!(CheckpointHeader: magic / 8, version / 4, covered / 8, crc / 4);
    same!(BlockHeader: length / 4, crc / 4);
    assert_eq!(
        (STATE_HEADER, size_of::<CheckpointHeader>(), size_of::<BlockHeader>()),
        (48, 32, 8)
    );
    for (name, value) in [
        ("STATE_VERSION", STATE_VERSION),
        ("STATE_VERSION_LEAST", STATE_VERSION_LEAST),
        ("BLOCK_MAX", BLOCK_MAX),
        ("STATE_PUT", STATE_PUT.into()),
        ("STATE_DELETE", STATE_DELETE.into()),
        ("STATE_EXPIRE", STATE_EXPIRE.into()),
        ("STATE_TOPIC", STATE_TOPIC.into()),
        ("STATE_CLIENT", STATE_CLIENT.into()),
        ("STATE_DEFINE", STATE_DEFINE.into()),
        ("STATE_FORGET", STATE_FORGET.into()),
        ("STATE_VIEW", STATE_VIEW.into()),
        ("STATE_CLIENT_GONE", STATE_CLIENT_GONE.into()),
    ] {
        let row = format!("| `{name}` | {value} |");
        assert!(PAGE.contains(&row), "docs/protocol/state.md should say {row}");
    }
    assert!(PAGE.contains(&format!("`{}`", CHECKPOINT_MAGIC.escape_ascii())));
}

#[test]
fn an_entry_is_golden_and_is_taken_apart() {
    let header = StateHeader {
        kind: STATE_PUT.into(),
        name_length: 2.into(),
        length: 3.into(),
        topic: 0x0102_0304.into(),
        sequence: 5.into(),
        expires_unix_ns: u64::MAX.into(),
        key: 7.into(),
        proof: 8.into(),
        ..StateHeader::default()
    };
    let bytes = [header.as_bytes(), b"nameless"].concat();
    assert_eq!(
        bytes[..STATE_HEADER],
        *b"\x01\0\x02\0\x03\0\0\0\x04\x03\x02\x01\0\0\0\0\x05\0\0\0\0\0\0\0\
           \xff\xff\xff\xff\xff\xff\xff\xff\x07\0\0\0\0\0\0\0\x08\0\0\0\0\0\0\0"
    );
    let (read, rest) = StateEntry::split(&bytes).unwrap();
    assert_eq!(read.header.as_bytes(), header.as_bytes());
    assert_eq!((read.name, read.message, rest), (&b"na"[..], &b"mel"[..], &b"ess"[..]));
}

#[test]
fn bytes_that_are_no_entry_are_refused() {
    let mut header = StateHeader::default();
    for length in 0..STATE_HEADER {
        assert!(StateEntry::split(&vec![1; length]).is_none());
    }
    assert!(StateEntry::split(header.as_bytes()).is_none(), "no kind");
    header.kind = STATE_TOPIC.into();
    assert!(StateEntry::split(header.as_bytes()).is_some());
    header.length = 1.into();
    assert!(StateEntry::split(header.as_bytes()).is_none(), "too short");
    header.length = 0.into();
    header.name_length = 1.into();
    assert!(StateEntry::split(header.as_bytes()).is_none(), "too short");
    header.kind = (STATE_CLIENT_GONE + 1).into();
    assert!(StateEntry::split(&[header.as_bytes(), b"x"].concat()).is_none(), "unknown");
}

#[test]
fn a_checkpoint_header_is_golden() {
    let mut header = CheckpointHeader::new(9);
    header.crc = 0x1122_3344.into();
    assert_eq!(
        header.as_bytes(),
        b"LANESTAT\x02\0\0\0\0\0\0\0\x09\0\0\0\0\0\0\0\0\0\0\0\x44\x33\x22\x11"
    );
    assert_eq!(header.checked(), &header.as_bytes()[..28]);
}
