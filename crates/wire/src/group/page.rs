//! The normative page and the code say the same.

use super::delivery::{RepairBody, StateBody, WantBody};
use super::views::*;
use super::*;

const PAGE: &str = include_str!("../../../../docs/protocol/group.md");

/// Offset and length in the page's row of a field.
fn row(name: &str) -> (usize, usize) {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.contains(&cell));
    let line = line.unwrap_or_else(|| panic!("docs/protocol/group.md has no row for {name}"));
    let mut cells = line.split('|').map(str::trim).skip(1);
    let mut number = || cells.next().and_then(|cell| cell.parse().ok()).expect("a number");
    (number(), number())
}

/// Compares the fields of a structure with the page: offsets, lengths, and that none is missing.
macro_rules! same {
    ($type:ident: $($field:ident),+) => {
        let mut end = 0;
        $(
            let (offset, length) = row(concat!(stringify!($type), ".", stringify!($field)));
            assert_eq!(offset, std::mem::offset_of!($type, $field), stringify!($field));
            assert_eq!(offset, end, "{} follows the field before it", stringify!($field));
            end = offset + length;
        )+
        assert_eq!(end, size_of::<$type>(), "all fields of {}", stringify!($type));
    };
}

fn states(cell: &str) {
    assert!(PAGE.contains(cell), "docs/protocol/group.md should say {cell}");
}

#[test]
fn the_page_states_the_layouts_of_the_code() {
    same!(GroupHeader: version, kind, flags, group, sender, epoch);
    same!(
        HeartbeatBody: coordinator,
        incarnation,
        count,
        port,
        state,
        name,
        reserved
    );
    same!(WantBody: origin, first, count);
    same!(RepairBody: origin, sequence, flags);
    same!(SuspectBody: member, reason);
    same!(ViewEntry: epoch, coordinator);
    same!(BallotEntry: round, leader);
    same!(PrepareBody: ballot, epoch, count, reserved);
    same!(ParticipantEntry: id, view, leaving, reserved);
    same!(FlushedBody: ballot, view, ready, ready_ballot, count, ready_members, rank);
    same!(CutBody: ballot, view, members, views, reserved);
    same!(MemberEntry: id, incarnation, first, port, old_view, name, reserved);
    same!(OldViewEntry: view, count, reserved);
    same!(TargetEntry: end, holder);
    same!(InstallBody: ballot, view);
    same!(RefuseBody: ballot, promised, epoch);
    same!(StateBody: offset, total);
    assert_eq!((row("OrderRun.rank"), row("OrderRun.count")), ((0, 2), (2, 2)));
}

#[test]
fn the_page_states_the_numbers_of_the_code() {
    for (name, value) in [
        ("GROUP_VERSION", usize::from(GROUP_VERSION)),
        ("GROUP_HEADER", GROUP_HEADER),
        ("GROUP_MEMBERS_MAX", GROUP_MEMBERS_MAX),
        ("GROUP_NAME_MAX", GROUP_NAME_MAX),
        ("FIRST", DataFlags::FIRST.into()),
        ("LAST", DataFlags::LAST.into()),
        ("ORDER_LIST", DataFlags::ORDER_LIST.into()),
        ("AGREED", DataFlags::AGREED.into()),
        ("ALL_LEAVE", ALL_LEAVE.into()),
        ("TO_ALL", TO_ALL.into()),
    ] {
        states(&format!("| `{name}` | {value} |"));
    }
    assert_eq!(GROUP_NUMBER_MAX, 1 << 62);
    states("| `GROUP_NUMBER_MAX` | 2^62 |");
    for kind in (1..=17).map(|byte| GroupKind::from_byte(byte).expect("a kind")) {
        states(&format!("| `{kind:?}` | {} |", kind as u8));
    }
}

#[test]
fn the_example_of_the_page_is_the_code_s() {
    let flags = DataFlags(DataFlags::FIRST | DataFlags::LAST);
    let mut bytes = Vec::new();
    let frame = GroupFrame::Data { sequence: 5, flags, body: b"hi" };
    frame.write((group_hash("a"), 0x1f, 3), &mut bytes);
    let example = PAGE.split("```text").nth(1).and_then(|text| text.split("```").next());
    let words = example.expect("an example").split_whitespace().filter(|word| word.len() == 2);
    let read: Vec<u8> = words.filter_map(|word| u8::from_str_radix(word, 16).ok()).collect();
    assert_eq!(read, bytes);
}
