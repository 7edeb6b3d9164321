//! The normative page and the code say the same.

use super::administration::{
    ChallengeBody, DeregisterBody, DeregisteredBody, InspectBody, InspectedBody, ReceiverEntry,
    ReportEntry,
};
use super::begin::BeginBody;
use super::checkpoint::{
    DeparturesEntry, IndexEntry, LifeEntry, MarkEntry, PacingEntry, SpanEntry, StreamEntry,
};
use super::lists::{BallotEntry, Position, RunEntry};
use super::offer::{
    AttachBody, ConsumedBody, ConsumptionEntry, DetachBody, FetchPositionsBody,
    FetchedPositionsBody, OfferBody, RegisteredBody, RegistrationBody, StreamsBody, UnsettledBody,
};
use super::refusal::RefusedBody;
use super::state::{StableBody, StateBody};
use super::*;

const PAGE: &str = include_str!("../../../../docs/protocol/persistence.md");

/// Offset and length in the page's row of a field.
fn row(name: &str) -> (usize, usize) {
    let cell = format!("| `{name}` |");
    let line = PAGE.lines().find(|line| line.contains(&cell));
    let line = line.unwrap_or_else(|| panic!("docs/protocol/persistence.md has no row for {name}"));
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

#[test]
fn the_page_states_the_layouts_of_the_code() {
    same!(StoreHeader: version, kind, topic, reserved, padding, client, source);
    same!(BallotEntry: epoch, session);
    same!(RunEntry: ballot, start);
    same!(Position: ballot, sequence);
    same!(BeginBody: ballot, log, start, number, is_receiver_paced, reserved);
    same!(StateBody: incarnation, promised, log, first, next, consumed);
    same!(StableBody: position, consumed);
    same!(AttachBody: receiver, token, since_unix_ns, until_unix_ns);
    same!(UnsettledBody: token);
    same!(StreamsBody: incarnation, token, count);
    same!(ConsumptionEntry: run, next);
    same!(ConsumedBody: receiver, consumption);
    same!(RegisteredBody: consumed, is_non_blocking, is_expired, reserved, away_ns);
    same!(RegistrationBody: registered, life);
    same!(DetachBody: receiver, life);
    same!(RefusedBody: reason, reserved, receiver, most);
    same!(FetchPositionsBody: token, receiver);
    same!(FetchedPositionsBody: token, next_receiver, count, departures);
    same!(LifeEntry: ended);
    same!(DeparturesEntry: count, reserved);
    same!(InspectBody: token, receiver, stream, reserved);
    same!(DeregisterBody: nonce, token, receiver, subject, reserved, proof);
    same!(ChallengeBody: token, nonce);
    same!(DeregisteredBody: token, outcome, reserved);
    same!(InspectedBody: incarnation, token, next_receiver, streams, next_stream);
    same!(ReportEntry: number, flags, topic, receivers, source, run, promised, first, next,
        consumed, bytes, oldest_unix_ns);
    same!(ReceiverEntry: receiver, next, is_non_blocking, is_expired, reserved);
    same!(CheckpointHeader: magic, version, streams, incarnation, position, record_crc, reserved,
        journal_bytes, length, body_crc, crc);
    same!(StreamEntry: source, promised, log, first, next, copied, number, receivers, topic);
    same!(PacingEntry: is_receiver_paced, reserved);
    same!(IndexEntry: bytes, spans, is_open, reserved);
    same!(SpanEntry: first, end, marks, is_moved, reserved);
    same!(MarkEntry: sequence, position, bytes, journal_bytes, unix_ns);
    same!(OfferBody: is_registered, is_live, has_left, is_expired, reserved, token, consumption,
        number, since, until, life);
}

#[test]
fn the_page_states_the_numbers_of_the_code() {
    let numbers = [
        ("STORE_VERSION", u64::from(STORE_VERSION)),
        ("STORE_HEADER", STORE_HEADER as u64),
        ("STORES_MAX", STORES_MAX as u64),
        ("STORE_NAME_MAX", STORE_NAME_MAX as u64),
        ("RUNS_MAX", RUNS_MAX as u64),
        ("STORE_CONTROL_MAX", STORE_CONTROL_MAX as u64),
        ("POSITIONS_MAX", POSITIONS_MAX as u64),
        ("DEPARTURES_MAX", DEPARTURES_MAX as u64),
        ("DEREGISTER_PROOF", DEREGISTER_PROOF as u64),
        ("CHECKPOINT_VERSION", u64::from(CHECKPOINT_VERSION)),
    ];
    let kinds = (0..=u8::MAX).filter_map(StoreKind::from_byte);
    let kinds = kinds.map(|kind| format!("| {} | {kind:?} |", kind as u8));
    let constants = numbers.map(|(name, value)| format!("| `{name}` | {value} |"));
    for cell in constants.into_iter().chain(kinds) {
        assert!(PAGE.contains(&cell), "docs/protocol/persistence.md should say {cell}");
    }
}
