use super::*;

const ADDRESS: StoreAddress<'_> = StoreAddress { client: 7, source: 9, topic: "orders" };
const BALLOT: Ballot = Ballot { epoch: 3, session: 70 };
/// The longest name of a store.
const DONOR: &str = "dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd";

fn members() -> Members {
    Members::without_groups(2, vec![("a".into(), 1), ("b".into(), 2)])
}

fn runs() -> Vec<Run> {
    vec![
        Run { ballot: Ballot { epoch: 1, session: 9 }, start: 0 },
        Run { ballot: BALLOT, start: 5 },
    ]
}

fn consumption() -> Consumption {
    Consumption { run: runs()[1], next: 7 }
}

fn registered(receiver: u64, is_non_blocking: bool) -> Registered {
    Registered { is_non_blocking, life: 8, ..Registered::new(receiver, consumption()) }
}

fn frames<'a>(records: Records<'a>, timed: TimedRecords<'a>) -> Vec<StoreFrame<'a>> {
    let (ballot, log) = (BALLOT, Ballot { epoch: 1, session: 9 });
    let (members, runs) = (members(), runs());
    let state = StoreState {
        incarnation: 1,
        promised: ballot,
        log,
        first: 2,
        next: 5,
        consumed: 4,
        members: members.clone(),
        runs: runs.clone(),
    };
    let consumption = consumption();
    let offer = StoreOffer {
        token: 12,
        is_live: true,
        has_left: true,
        consumption: Some(consumption),
        is_expired: true,
        life: 9,
        number: 3,
        since: 4,
        until: 6,
        state: state.clone(),
    };
    vec![
        StoreFrame::Query { ballot, next: 8 },
        StoreFrame::Open { ballot },
        StoreFrame::Begin {
            ballot,
            log,
            start: 5,
            number: 0,
            is_receiver_paced: true,
            donor: "a",
            members: members.clone(),
            runs,
        },
        StoreFrame::Resend { ballot, first: 6, records },
        StoreFrame::Elsewhere { ballot, until: 6, donor: "b" },
        StoreFrame::Reconfigure { ballot, members },
        StoreFrame::Fetch { from: 3, until: 9, limit: 1_000 },
        StoreFrame::State(state),
        StoreFrame::Stable { ballot, next: 8, consumed: 6 },
        StoreFrame::Want { ballot, from: 6 },
        StoreFrame::Fetched { log, from: 2, first: 3, next: 5, records: timed },
        StoreFrame::Attach { receiver: 11, token: 12, since_unix_ns: 13, until_unix_ns: 14 },
        StoreFrame::Consumed(registered(11, false)),
        StoreFrame::Consumed(registered(12, true)),
        StoreFrame::Offer(StoreOffer { consumption: None, ..offer.clone() }),
        StoreFrame::Offer(offer),
        StoreFrame::Streams { incarnation: 1, token: 12, count: 2 },
        StoreFrame::Acknowledged { receiver: 11, consumption },
        StoreFrame::Inspect { token: 12, stream: 3, receiver: 4 },
        StoreFrame::Deregister {
            nonce: 1 << 100,
            token: 12,
            registration: Registration::Source,
            proof: [7; DEREGISTER_PROOF],
        },
        StoreFrame::Deregister {
            nonce: 0,
            token: 12,
            registration: Registration::Receiver(11),
            proof: [0; DEREGISTER_PROOF],
        },
        StoreFrame::Challenge { token: 12, nonce: 1 << 100 },
        StoreFrame::Inspected(page()),
        StoreFrame::Deregistered { token: 12, outcome: DeregisterOutcome::NotPermitted },
    ]
}

const DEPARTURE: Departure = Departure { receiver: 12, life: 9 };

/// Frames about receivers, also between stores.
fn frames_of_positions() -> [StoreFrame<'static>; 10] {
    [
        StoreFrame::Unsettled { token: 12, runs: vec![Run { ballot: BALLOT, start: 3 }] },
        StoreFrame::Detached { receiver: 11, life: 9 },
        StoreFrame::Refused(StoreRefusal::Streams { most: 10_000 }),
        StoreFrame::Refused(StoreRefusal::Topic),
        StoreFrame::Refused(StoreRefusal::Log),
        StoreFrame::Refused(StoreRefusal::Receivers { receiver: 11, most: 1_000 }),
        StoreFrame::Detach { receiver: 11, life: 9 },
        StoreFrame::FetchPositions { token: 12, receiver: 11 },
        StoreFrame::FetchedPositions {
            token: 12,
            next_receiver: 0,
            receivers: vec![],
            departures: vec![],
        },
        StoreFrame::FetchedPositions {
            token: 12,
            next_receiver: 14,
            receivers: vec![registered(11, false), registered(13, true)],
            departures: vec![Departure { receiver: 10, life: 9 }, DEPARTURE],
        },
    ]
}

fn page() -> StorePage<'static> {
    let report = StreamReport {
        number: 3,
        topic: "orders".into(),
        source: 9,
        run: BALLOT,
        promised: BALLOT,
        is_live: true,
        is_copying: false,
        first: 2,
        next: 8,
        consumed: 5,
        bytes: 600,
        oldest_unix_ns: 1_000,
        members: members(),
        receivers: vec![
            ReceiverReport { receiver: 11, next: 5, is_non_blocking: true, is_expired: false },
            ReceiverReport { receiver: 12, next: 7, is_non_blocking: false, is_expired: true },
        ],
    };
    let second = StreamReport { number: 4, is_copying: true, receivers: vec![], ..report.clone() };
    let (next_stream, next_receiver) = (4, 13);
    let reports = vec![report, second];
    StorePage { incarnation: 1, token: 12, streams: 6, next_stream, next_receiver, reports }
}

#[test]
fn a_page_of_streams_has_the_length_that_its_reports_say() {
    let mut bytes = Vec::new();
    let page = page();
    let length: usize = page.reports.iter().map(StreamReport::length).sum();
    StoreFrame::Inspected(page).write(ADDRESS, &mut bytes);
    assert_eq!(bytes.len(), StorePage::EMPTY + ADDRESS.topic.len() + length);
}

#[test]
fn reports_that_lie_are_refused() {
    let refused = |change: fn(&mut StreamReport<'_>)| {
        let (mut page, mut bytes) = (page(), Vec::new());
        change(&mut page.reports[0]);
        StoreFrame::Inspected(page).write(ADDRESS, &mut bytes);
        let kind = StoreKind::Inspected;
        assert_eq!(StoreFrame::read(&bytes), Err(StoreFrameError::Body(kind)));
    };
    refused(|report| report.first = report.next + 1);
    refused(|report| report.receivers.reverse());
    refused(|report| report.receivers[0].next = STORE_NUMBER_MAX + 1);
    refused(|report| report.next = STORE_NUMBER_MAX + 1);
}

#[test]
fn frames_are_read_as_they_were_written() {
    let mut writer = RecordsWriter::default();
    [b"first".as_slice(), b"", b"third"].iter().for_each(|body| writer.add(body));
    let mut timed = TimedRecordsWriter::default();
    let bodies = [(1_700, b"first".as_slice()), (0, b""), (u64::MAX, b"third")];
    bodies.iter().for_each(|(unix_ns, body)| timed.add(*unix_ns, body));
    let mut bytes = Vec::new();
    let frames = frames(writer.records(), timed.records());
    for frame in frames.into_iter().chain(frames_of_positions()) {
        frame.write(ADDRESS, &mut bytes);
        assert_eq!(StoreFrame::read(&bytes), Ok((ADDRESS, frame)));
    }
    assert_eq!(timed.records().iter().collect::<Vec<_>>(), bodies);
    let bodies: Vec<_> = writer.records().iter().collect();
    assert_eq!(bodies, [b"first".as_slice(), b"", b"third"]);
}

#[test]
fn every_shortened_or_lengthened_frame_is_refused() {
    let mut writer = RecordsWriter::default();
    writer.add(b"body");
    let mut timed = TimedRecordsWriter::default();
    timed.add(1_700, b"body");
    let mut bytes = Vec::new();
    let frames = frames(writer.records(), timed.records());
    for frame in frames.into_iter().chain(frames_of_positions()) {
        frame.write(ADDRESS, &mut bytes);
        for length in 0..bytes.len() {
            // Messages may be fewer, but none may be cut.
            let read = StoreFrame::read(&bytes[..length]);
            let is_without_records = match &read {
                Ok((_, StoreFrame::Resend { records, .. })) => records.is_empty(),
                Ok((_, StoreFrame::Fetched { records, .. })) => records.is_empty(),
                _ => false,
            };
            // A page may have fewer streams, too.
            let is_shorter_page =
                matches!(&read, Ok((_, StoreFrame::Inspected(it))) if it.reports.len() < 2);
            let is_whole = is_without_records || is_shorter_page;
            assert!(read.is_err() || is_whole, "{frame:?} of {length} bytes");
        }
        bytes.push(0);
        assert!(StoreFrame::read(&bytes).is_err(), "{frame:?} and a byte more");
    }
}

#[test]
fn the_longest_frame_without_messages_is_an_offer_of_all_stores_and_runs() {
    let stores = (0..STORES_MAX as u64).map(|it| (format!("{it:064}"), it)).collect();
    let grouping = Grouping { rule: GroupRule::Any, groups: vec![Some(0); STORES_MAX] };
    let members = Members { groupings: vec![grouping; 2], ..Members::without_groups(1, stores) };
    let run = |it| Run { ballot: Ballot { epoch: it, session: 1 }, start: it };
    let runs: Vec<Run> = (1..=RUNS_MAX as u64).map(run).collect();
    let frames = frames(Records::EMPTY, TimedRecords::EMPTY);
    let longest = frames.into_iter().chain(frames_of_positions()).map(|mut frame| {
        match &mut frame {
            StoreFrame::State(state) | StoreFrame::Offer(StoreOffer { state, .. }) => {
                (state.members, state.runs) = (members.clone(), runs.clone());
            }
            StoreFrame::Begin { donor, members: of, runs: its, ballot, start, .. } => {
                (*donor, *of, *its) = (DONOR, members.clone(), runs.clone());
                (*ballot, *start) = (runs[RUNS_MAX - 1].ballot, runs[RUNS_MAX - 1].start);
            }
            StoreFrame::Reconfigure { members: of, .. } => *of = members.clone(),
            _ => {}
        }
        let (mut bytes, topic) = (Vec::new(), "t".repeat(255));
        frame.write(StoreAddress { topic: &topic, ..ADDRESS }, &mut bytes);
        assert!(StoreFrame::read(&bytes).is_ok(), "{frame:?}");
        bytes.len()
    });
    assert_eq!(longest.max(), Some(STORE_CONTROL_MAX));
}

#[test]
fn a_message_without_room_for_its_time_is_refused() {
    let mut writer = RecordsWriter::default();
    writer.add(b"7 bytes");
    let (mut bytes, log) = (Vec::new(), BALLOT);
    let records = TimedRecords::EMPTY;
    StoreFrame::Fetched { log, from: 2, first: 3, next: 5, records }.write(ADDRESS, &mut bytes);
    bytes.extend(writer.records().bytes());
    assert_eq!(StoreFrame::read(&bytes), Err(StoreFrameError::Body(StoreKind::Fetched)));
}

#[test]
fn another_version_is_named() {
    let mut bytes = Vec::new();
    StoreFrame::Open { ballot: BALLOT }.write(ADDRESS, &mut bytes);
    for other in [STORE_VERSION - 1, STORE_VERSION + 1] {
        bytes[0] = other;
        assert_eq!(StoreFrame::read(&bytes), Err(StoreFrameError::Version(other)));
    }
    bytes[0] = STORE_VERSION;
    bytes[1] = 200;
    assert_eq!(StoreFrame::read(&bytes), Err(StoreFrameError::Kind(200)));
}

#[test]
fn lists_that_lie_are_refused() {
    let mut bytes = Vec::new();
    let refused = |bytes: &[u8], kind| {
        assert_eq!(StoreFrame::read(bytes), Err(StoreFrameError::Body(kind)));
    };
    let twice = Members::without_groups(1, vec![("a".into(), 1), ("a".into(), 2)]);
    StoreFrame::Reconfigure { ballot: BALLOT, members: twice }.write(ADDRESS, &mut bytes);
    refused(&bytes, StoreKind::Reconfigure);

    let mut state = StoreState { runs: runs(), ..StoreState::default() };
    state.runs.reverse();
    StoreFrame::State(state.clone()).write(ADDRESS, &mut bytes);
    refused(&bytes, StoreKind::State);
    state.runs.clear();
    state.first = 1;
    StoreFrame::State(state).write(ADDRESS, &mut bytes);
    refused(&bytes, StoreKind::State);

    let begin = StoreFrame::Begin {
        ballot: BALLOT,
        log: Ballot::ZERO,
        start: 6,
        number: 0,
        is_receiver_paced: false,
        donor: "a",
        members: members(),
        runs: runs(),
    };
    begin.write(ADDRESS, &mut bytes);
    refused(&bytes, StoreKind::Begin);

    let before_its_run = Consumption { next: 4, ..consumption() };
    let before = Registered { consumption: before_its_run, ..registered(11, false) };
    let consumed = StoreFrame::Consumed(before);
    consumed.write(ADDRESS, &mut bytes);
    refused(&bytes, StoreKind::Consumed);
}

#[test]
fn records_are_read_as_they_were_written() {
    let (stream, members, runs) = (3, members(), runs());
    let records = [
        LogRecord::Stream { stream, topic: "orders", source: 9 },
        LogRecord::Promised { stream, ballot: BALLOT },
        LogRecord::Truncated { stream, next: 5 },
        LogRecord::Message { stream, sequence: 5, body: b"body" },
        LogRecord::Began { stream, number: 0, first: 2, members: members.clone(), runs },
        LogRecord::Reconfigured { stream, members },
        LogRecord::Trimmed { stream, first: 4 },
        LogRecord::Consumed { stream, registered: registered(11, true) },
        LogRecord::Consumed {
            stream,
            registered: Registered { is_expired: true, away_ns: 9, ..registered(11, false) },
        },
        LogRecord::Detached { stream, receiver: 11 },
        LogRecord::Departed { stream, departure: DEPARTURE },
        LogRecord::Moved { stream, sequence: 5, unix_ns: 1_700, body: b"body" },
        LogRecord::Copied { stream, sequence: 5, unix_ns: 1_700, body: b"body" },
        LogRecord::Paced { stream, is_by_receivers: true },
    ];
    let mut bytes = Vec::new();
    for record in records {
        record.write(&mut bytes);
        assert_eq!(LogRecord::read(&bytes), Some(record.clone()));
        let mut head = Vec::new();
        let body = record.write_head(&mut head);
        assert_eq!([&head, body].concat(), bytes);
        let read = LogRecord::read(&head).expect("a record");
        assert_eq!(read.write_head(&mut Vec::new()), b"", "{read:?}");
        let cut = LogRecord::read(&bytes[..bytes.len() - 1]);
        let has_open_end = matches!(
            record,
            LogRecord::Stream { .. }
                | LogRecord::Message { .. }
                | LogRecord::Moved { .. }
                | LogRecord::Copied { .. }
        );
        assert!(cut.is_none() || has_open_end, "{record:?}");
        bytes[0] = 99;
        assert_eq!(LogRecord::read(&bytes), None);
    }
}

#[test]
fn receivers_that_were_registered_without_flags_or_lives_are_read() {
    let without_life = |is_non_blocking| {
        let registered = Registered { life: 0, ..registered(11, is_non_blocking) };
        LogRecord::Consumed { stream: 3, registered }
    };
    for (kind, absent, is_non_blocking) in [(8, 24, false), (14, 8, true)] {
        let mut bytes = Vec::new();
        without_life(is_non_blocking).write(&mut bytes);
        bytes[0] = kind;
        bytes.truncate(bytes.len() - absent);
        assert_eq!(LogRecord::read(&bytes), Some(without_life(is_non_blocking)));
    }
}

#[test]
fn positions_that_lie_are_refused() {
    let bytes = |next_receiver, receivers: &[u64], departed: &[u64]| {
        let receivers = receivers.iter().map(|it| registered(*it, false)).collect();
        let departures = departed.iter().map(|it| Departure { receiver: *it, life: 1 }).collect();
        let mut bytes = Vec::new();
        StoreFrame::FetchedPositions { token: 1, next_receiver, receivers, departures }
            .write(ADDRESS, &mut bytes);
        bytes
    };
    let refused = |next_receiver, receivers: &[u64], departed: &[u64]| {
        StoreFrame::read(&bytes(next_receiver, receivers, departed)).is_err()
    };
    assert!(!refused(0, &[3, 4], &[1, 5]) && !refused(5, &[3, 4], &[2]) && !refused(9, &[], &[]));
    assert!(refused(0, &[4, 3], &[]) && refused(0, &[], &[4, 3]), "they do not ascend");
    assert!(refused(0, &[4, 4], &[]) && refused(0, &[], &[4, 4]), "one twice");
    assert!(refused(4, &[3, 4], &[1]) && refused(4, &[1], &[3, 4]), "the next page is this one");
    let all: Vec<u64> = (0..POSITIONS_MAX as u64).collect();
    assert!(!refused(0, &all, &[]) && !refused(0, &[], &all));
    let whole = bytes(0, &all, &[]);
    assert_eq!(bytes(0, &all, &[200]), whole, "no more than the most");
    let count = STORE_HEADER + ADDRESS.topic.len() + 16;
    for (at, length) in [(count, 64), (count + 4, 16)] {
        let mut more = [whole.clone(), vec![0; length]].concat();
        more[at] += 1;
        assert!(StoreFrame::read(&more).is_err(), "more than the most");
    }
}

#[test]
fn messages_that_were_moved_without_their_time_are_read() {
    let (stream, sequence, body) = (3, 5, b"body".as_slice());
    let mut bytes = Vec::new();
    LogRecord::Message { stream, sequence, body }.write(&mut bytes);
    bytes[0] = 10;
    let expected = LogRecord::Moved { stream, sequence, unix_ns: 0, body };
    assert_eq!(LogRecord::read(&bytes), Some(expected));
}

fn stream() -> StreamCheckpoint<'static> {
    StreamCheckpoint {
        topic: "orders",
        source: 9,
        promised: BALLOT,
        log: BALLOT,
        first: 2,
        next: 30,
        copied: Some(7),
        number: 4,
        is_receiver_paced: true,
        ended_life: 6,
        members: members(),
        runs: runs(),
        receivers: vec![
            registered(11, true),
            Registered { consumption: Consumption::NONE, ..registered(12, false) },
        ],
        departures: vec![DEPARTURE, Departure { receiver: 3, life: 4 }],
    }
}

fn positions() -> StreamPositions {
    let mark = |sequence, position| SpanMark {
        sequence,
        position,
        bytes: 10 * sequence,
        journal_bytes: 100 * position,
        unix_ns: position,
    };
    let spans = vec![
        Span { first: 2, end: 9, is_moved: true, marks: vec![mark(1, 70), mark(8, 90)] },
        Span { first: 9, end: 30, is_moved: false, marks: vec![mark(9, 20)] },
    ];
    StreamPositions { bytes: 1_000, is_open: true, spans }
}

#[test]
fn entries_of_a_checkpoint_are_read_as_they_were_written() {
    let mut bytes = Vec::new();
    stream().write(&mut bytes);
    let behind = bytes.len();
    positions().write(&mut bytes);
    let (read, rest) = StreamCheckpoint::read(&bytes, CHECKPOINT_VERSION).expect("an entry");
    assert_eq!((read, rest.len()), (stream(), bytes.len() - behind));
    assert_eq!(StreamPositions::read(rest), Some((positions(), [].as_slice())));
    for cut in 0..behind {
        assert_eq!(StreamCheckpoint::read(&bytes[..cut], CHECKPOINT_VERSION), None, "cut at {cut}");
    }
    for cut in behind..bytes.len() {
        assert_eq!(StreamPositions::read(&bytes[behind..cut]), None, "cut at {cut}");
    }
    // Version 3 had no receivers that have left, and did not count them behind the lives.
    bytes.truncate(behind - 32);
    bytes.drain(96..104);
    let (read, rest) = StreamCheckpoint::read(&bytes, 3).expect("an entry");
    let mut expected = StreamCheckpoint { departures: Vec::new(), ..stream() };
    assert_eq!((read, rest.len()), (expected.clone(), 0));
    // Version 2 had no lives behind the pacing and behind receivers.
    let behind = bytes.len();
    for end in [behind, behind - 64] {
        bytes.drain(end - 8..end);
    }
    bytes.drain(88..96);
    let (read, rest) = StreamCheckpoint::read(&bytes, 2).expect("an entry");
    expected.ended_life = 0;
    expected.receivers.iter_mut().for_each(|it| it.life = 0);
    assert_eq!((read, rest.len()), (expected.clone(), 0));
    // Version 1 had no pacing behind the fixed part, and no flags behind receivers.
    let behind = bytes.len();
    for end in [behind, behind - 56] {
        bytes.drain(end - 16..end);
    }
    bytes.drain(80..88);
    let (read, rest) = StreamCheckpoint::read(&bytes, 1).expect("an entry");
    expected.is_receiver_paced = false;
    expected.receivers[0].is_non_blocking = false;
    assert_eq!((read, rest.len()), (expected, 0));
}

#[test]
fn entries_of_a_checkpoint_that_lie_are_refused() {
    let refused = |change: &dyn Fn(&mut StreamPositions)| {
        let (mut positions, mut bytes) = (positions(), Vec::new());
        change(&mut positions);
        positions.write(&mut bytes);
        StreamPositions::read(&bytes).is_none()
    };
    assert!(!refused(&|_| {}));
    assert!(refused(&|it| it.spans[1].first = 8), "spans overlap");
    assert!(refused(&|it| it.spans[0].end = 2), "an empty span");
    assert!(refused(&|it| it.spans[1].marks.clear()), "no mark");
    assert!(refused(&|it| it.spans[1].marks[0].sequence = 10), "a mark behind the first message");
    assert!(refused(&|it| it.spans[0].marks[1].sequence = 9), "a mark behind the span");
    assert!(refused(&|it| it.spans[0].marks[1].position = 70), "two of one position");
    let mut bytes = Vec::new();
    let twice = vec![registered(11, false); 2];
    StreamCheckpoint { receivers: twice, ..stream() }.write(&mut bytes);
    assert_eq!(StreamCheckpoint::read(&bytes, CHECKPOINT_VERSION), None, "a receiver twice");
    // Counts of more than there is.
    for at in [72, 76, 96] {
        let mut bytes = Vec::new();
        stream().write(&mut bytes);
        bytes[at..at + 4].fill(0xff);
        assert_eq!(StreamCheckpoint::read(&bytes, CHECKPOINT_VERSION), None);
    }
}

/// Members in two groups, that change to those of one.
fn joint() -> Members {
    let stores = ["a", "b", "c"].map(|name| (name.to_owned(), 7)).to_vec();
    let old = Grouping { rule: GroupRule::All, groups: vec![Some(0), Some(1), None] };
    let new = Grouping { rule: GroupRule::Any, groups: vec![None, Some(0), Some(0)] };
    Members { version: 4, stores, founders: 1, groupings: vec![old, new] }
}

#[test]
fn groups_of_members_are_read_as_they_were_written() {
    let mut bytes = Vec::new();
    let members = joint();
    let frame = StoreFrame::Reconfigure { ballot: BALLOT, members: members.clone() };
    frame.write(ADDRESS, &mut bytes);
    assert_eq!(StoreFrame::read(&bytes), Ok((ADDRESS, frame)));
    let mut bytes = Vec::new();
    members.write(&mut bytes);
    assert_eq!(bytes.len(), members.length());
    let behind = [
        [1, 2].as_slice(), // a founder, two groupings
        &[3, 0, 1, 0xff],  // all: a, and b
        &[1, 0xff, 0, 0],  // any: b and c
    ];
    assert_eq!(bytes[8], 0x80 | 3);
    assert!(bytes.ends_with(&behind.concat()));
    // Without groups, as earlier builds have written them.
    let mut bytes = Vec::new();
    let stores = vec![("a".to_owned(), 1), ("b".to_owned(), 2)];
    let earlier = Members::without_groups(2, stores);
    earlier.write(&mut bytes);
    let expected = [
        [2, 0, 0, 0, 0, 0, 0, 0, 2].as_slice(),
        &[1, 0, 0, 0, 0, 0, 0, 0, 1, b'a'],
        &[2, 0, 0, 0, 0, 0, 0, 0, 1, b'b'],
    ];
    assert_eq!((bytes.len(), &bytes), (earlier.length(), &expected.concat()));
    assert_eq!(Members::read(&bytes), Some((earlier.clone(), [].as_slice())));
    assert!(!earlier.may_have_joined_late("a") && earlier.may_have_joined_late("b"));
}

#[test]
fn groups_that_lie_are_refused() {
    let mut bytes = Vec::new();
    joint().write(&mut bytes);
    let end = bytes.len();
    assert!(Members::read(&bytes).is_some());
    // Founders, groupings, rules, groups; the last of each is the largest that is refused.
    for (place, wrong) in [(10, 4), (9, 0), (9, 3), (8, 0), (8, 4), (4, 9), (2, 64), (2, 0xfe)] {
        let mut changed = bytes.clone();
        changed[end - place] = wrong;
        assert_eq!(Members::read(&changed), None, "{wrong} at {place} from the end");
    }
    for length in 0..end {
        assert_eq!(Members::read(&bytes[..length]), None, "{length} bytes");
    }
    let mut none = bytes.clone();
    none[end - 3..].fill(0xff);
    assert_eq!(Members::read(&none), None, "no store has a group");
}

#[test]
fn members_that_change_decide_by_both_groupings() {
    let members = joint();
    let has = |names: &'static str| move |name: &str, _| names.contains(name);
    assert!(members.is_leaving("a") && members.is_joining("c"));
    assert!(!members.is_joining("a") && !members.is_leaving("b") && !members.is_joining("b"));
    assert!(members.is_write_quorum(has("abc")));
    assert!(!members.is_write_quorum(has("ab")) && !members.is_write_quorum(has("bc")));
    assert!(members.is_recovery_quorum(has("b")), "each decision has it");
    assert!(!members.is_recovery_quorum(has("a")) && members.is_recovery_quorum(has("ac")));
    let next = |name: &str, _| [7, 9, 3][usize::from(name.as_bytes()[0] - b'a')];
    assert_eq!(members.reached(next), 3);
    let none = Members::without_groups(1, vec![("a".to_owned(), 1)]);
    assert!(!none.is_write_quorum(|_, _| true) && !none.is_recovery_quorum(|_, _| true));
}
