use super::*;
use core::mem::{offset_of, size_of_val};

const PAGE: &str = include_str!("../../../../docs/protocol/stats.md");

/// The first two numbers of the row that has `name` in a cell.
fn row(name: &str) -> (usize, usize) {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.contains(&cell));
    let line = line.unwrap_or_else(|| panic!("docs/protocol/stats.md has no row for {name}"));
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
    same!(StatsHeader: magic, version, counters, errors, pid, namespace, start_time, name, role,
        losses, session, opened_unix_ns, transport, address, group, totals);
    same!(TopicList: length, text);
    same!(CounterEntry: value, length, label);
    same!(ErrorEntry: count, first_unix_ns, last_unix_ns, length, text);
    same!(LossEntry: number, unix_ns, after_ns, session, first, count, what, why, source_length,
        topic_length, source, topic);
    same!(LossSum: count, first_unix_ns, last_unix_ns, longest_ns);
    same!(LossTotal: number, session, source_length, topic_length, late, repaired, rebuilt,
        given_up, told, source, topic);
    for (name, value) in [
        ("STATS_VERSION", STATS_VERSION as usize),
        ("TOPICS_OFFSET", TOPICS_OFFSET),
        ("COUNTERS_OFFSET", COUNTERS_OFFSET),
        ("COUNTERS_MAX", COUNTERS_MAX as usize),
        ("ERRORS_MAX", ERRORS_MAX as usize),
        ("LOSSES_MAX", LOSSES_MAX as usize),
        ("TOTALS_MAX", TOTALS_MAX as usize),
        ("LABEL_MAX", LABEL_MAX),
        ("ERROR_TEXT_MAX", ERROR_TEXT_MAX),
        ("TOPICS_TEXT_MAX", TOPICS_TEXT_MAX),
        ("LOSS_SOURCE_MAX", LOSS_SOURCE_MAX),
        ("LOSS_TOPIC_MAX", LOSS_TOPIC_MAX),
        ("ROLE_PROCESS", ROLE_PROCESS as usize),
        ("ROLE_PUBLISHER", ROLE_PUBLISHER as usize),
        ("ROLE_SUBSCRIBER", ROLE_SUBSCRIBER as usize),
        ("ROLE_MEMBER", ROLE_MEMBER as usize),
        ("ROLE_STORE", ROLE_STORE as usize),
        ("LOSS_REPAIRED", LOSS_REPAIRED as usize),
        ("LOSS_LATE", LOSS_LATE as usize),
        ("LOSS_GIVEN_UP", LOSS_GIVEN_UP as usize),
        ("LOSS_REBUILT", LOSS_REBUILT as usize),
        ("LOSS_TOLD", LOSS_TOLD as usize),
        ("WHY_NONE", WHY_NONE as usize),
        ("WHY_GAVE_UP", WHY_GAVE_UP as usize),
        ("WHY_GONE", WHY_GONE as usize),
        ("WHY_SKIPPED", WHY_SKIPPED as usize),
        ("WHY_EVICTED", WHY_EVICTED as usize),
        ("WHY_DAMAGED", WHY_DAMAGED as usize),
    ] {
        let cell = format!("| `{name}` | {value} |");
        assert!(PAGE.contains(&cell), "docs/protocol/stats.md should say {cell}");
    }
    assert!(PAGE.contains(&format!("Counters, version {STATS_VERSION}")));
    assert!(PAGE.contains(&format!("| StatsHeader       {} bytes", size_of::<StatsHeader>())));
    assert_eq!(size_of_val(&STATS_MAGIC), 8);
    assert!(PAGE.contains(&format!("`{}`", STATS_MAGIC.escape_ascii())));
}

#[test]
fn the_kinds_of_entries_follow_one_another() {
    let shape = Shape { counters: 3, errors: 2, losses: 5, totals: 7 };
    assert_eq!(shape.errors_offset(), 4096 + 128 * 3);
    assert_eq!(shape.losses_offset(), 4096 + 128 * 3 + 512 * 2);
    assert_eq!(shape.totals_offset(), 4096 + 128 * 3 + 512 * 2 + 256 * 5);
    assert_eq!(shape.file_bytes(), 4096 + 128 * 3 + 512 * 2 + 256 * 5 + 384 * 7);
}

#[test]
fn a_header_that_cannot_be_is_refused() {
    let sane = StatsHeader {
        magic: STATS_MAGIC,
        version: STATS_VERSION.into(),
        losses: LOSSES_MAX.into(),
        ..zerocopy::FromZeros::new_zeroed()
    };
    assert!(StatsHeader::read(sane.as_bytes()).is_ok());
    let (old, new) = (STATS_VERSION - 1, STATS_VERSION + 1);
    for (header, error) in [
        (StatsHeader { magic: *b"LANESTAY", ..sane }, StatsError::Foreign),
        (StatsHeader { version: old.into(), ..sane }, StatsError::Version { found: old }),
        (StatsHeader { version: new.into(), ..sane }, StatsError::Version { found: new }),
        (StatsHeader { counters: (COUNTERS_MAX + 1).into(), ..sane }, StatsError::Damaged),
        (StatsHeader { errors: (ERRORS_MAX + 1).into(), ..sane }, StatsError::Damaged),
        (StatsHeader { losses: (LOSSES_MAX + 1).into(), ..sane }, StatsError::Damaged),
        (StatsHeader { totals: (TOTALS_MAX + 1).into(), ..sane }, StatsError::Damaged),
    ] {
        assert_eq!(StatsHeader::read(header.as_bytes()).unwrap_err(), error);
    }
    assert_eq!(StatsHeader::read(&sane.as_bytes()[1..]).unwrap_err(), StatsError::Foreign);
}
