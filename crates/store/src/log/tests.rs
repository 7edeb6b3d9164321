//! Reading from a journal on a simulated disk, with messages that are read ahead.

use super::*;
use lanecast_journal::JournalConfig;
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sim::rng::SimRng;
use lanecast_wire::store::{Ballot, Members, Run};
use std::time::Instant;

const SEGMENT: u64 = 64 << 10;
const LONG: Duration = Duration::from_secs(60);
const STREAMS: u32 = 3;
const RUN: Run = Run { ballot: Ballot { epoch: 1, session: 1 }, start: 0 };

/// A log of three streams, and what is to be read of each.
struct Written {
    disk: SimulatedDisk,
    log: JournalLog<SimulatedDisk>,
    streams: Vec<Vec<Vec<u8>>>,
    /// Messages at the front of each stream that were moved.
    moved: Vec<usize>,
}

impl Written {
    fn new() -> Self {
        Self::with_segments(SEGMENT)
    }

    fn with_segments(segment_bytes: u64) -> Self {
        let disk = SimulatedDisk::new(1, 256 << 20);
        let config = JournalConfig { segment_bytes, ..JournalConfig::default() };
        let journal = Journal::open(disk.clone(), config).expect("a journal");
        let mut log = JournalLog::new(journal, Catalog::new(segment_bytes), None);
        for stream in 0..STREAMS {
            let members = Members::without_groups(1, vec![("a".into(), 7)]);
            let records = [
                LogRecord::Stream { stream, topic: "orders", source: u64::from(stream) },
                LogRecord::Promised { stream, ballot: RUN.ballot },
                LogRecord::Began { stream, number: 0, first: 0, members, runs: vec![RUN] },
            ];
            for record in &records {
                log.append(record).expect("room");
            }
        }
        let (streams, moved) = (vec![Vec::new(); STREAMS as usize], vec![0; STREAMS as usize]);
        Self { disk, log, streams, moved }
    }

    fn send(&mut self, stream: u32, body: Vec<u8>) {
        let messages = &mut self.streams[stream as usize];
        let sequence = messages.len() as u64;
        let record = LogRecord::Message { stream, sequence, body: &body };
        self.log.append(&record).expect("room");
        messages.push(body);
    }

    /// Makes the messages from `next` on void.
    fn truncate(&mut self, stream: u32, next: usize) {
        let next_sequence = next as u64;
        self.log.append(&LogRecord::Truncated { stream, next: next_sequence }).expect("room");
        self.streams[stream as usize].truncate(next);
    }

    /// Appends the oldest message that was not moved again, as retention does.
    fn move_on(&mut self, stream: u32) {
        let at = self.moved[stream as usize];
        self.moved[stream as usize] += 1;
        let (sequence, unix_ns) = (at as u64, 5);
        let body = self.streams[stream as usize][at].clone();
        let record = LogRecord::Moved { stream, sequence, unix_ns, body: &body };
        self.log.append(&record).expect("room");
    }

    fn wait_durable(&mut self) {
        self.log.commit();
        let deadline = Instant::now() + LONG;
        while self.log.persisted() < self.log.appended() {
            assert!(Instant::now() < deadline, "the disk stands still");
            std::thread::yield_now();
        }
    }

    /// Reads up to `count` messages from `from` on, in several calls if one does not reach them;
    /// returns their number.
    #[track_caller]
    fn read(&self, stream: u32, from: usize, count: usize) -> usize {
        let messages = &self.streams[stream as usize];
        let (mut found, mut calls) = (0, 0);
        let expected = count.min(messages.len() - from);
        while found < expected || calls == 0 {
            self.log.read(stream, (from + found) as u64, &mut |sequence, _, body| {
                if found == count {
                    return false;
                }
                assert_eq!(sequence, (from + found) as u64);
                assert_eq!(body, messages[from + found]);
                found += 1;
                true
            });
            assert_eq!(self.log.take_read_error(), None);
            calls += 1;
            assert!(calls < 100, "{found} of {expected} from {from}");
        }
        assert_eq!(found, expected, "from {from}");
        found
    }
}

/// A crash of the machine has taken the index of a segment: reading all of that would stop the
/// server for as long.
#[test]
fn a_lost_index_is_made_anew_beside_the_server() {
    let segment = 1 << 20;
    let mut written = Written::with_segments(segment);
    for number in 0..3_000_u64 {
        written.log.set_time(1_000 + number);
        written.send(0, vec![7; 1_000]);
        if number % 500 == 0 {
            written.wait_durable();
        }
    }
    written.wait_durable();
    let Written { disk, log, streams, .. } = written;
    let catalog = log.catalog.clone();
    log.close().expect("closed");
    let indexes = disk.list().expect("names").into_iter().filter(|it| it.ends_with(".index"));
    indexes.for_each(|name| disk.damage(&name, 20, 0xAA));
    // The journal's thread has other work for now.
    disk.hold_preallocations(true);
    let config = JournalConfig { segment_bytes: segment, ..JournalConfig::default() };
    let journal = Journal::open(disk.clone(), JournalConfig { spare_segments: 3, ..config });
    let mut log = JournalLog::new(journal.expect("a journal"), catalog, None);
    let before = disk.read_bytes();
    log.set_time(5_000);
    log.read(0, 300, &mut |sequence, _, _| panic!("{sequence} is read without an index"));
    assert_eq!(log.first_since(0, 1_330), None, "to be asked for again");
    let read = disk.read_bytes() - before;
    assert!(read < segment / 4, "{read} bytes on the server's thread");
    disk.hold_preallocations(false);
    let deadline = Instant::now() + LONG;
    let mut found = 300;
    while found < 310 {
        assert!(Instant::now() < deadline, "its index is not made anew");
        log.read(0, found, &mut |sequence, unix_ns, body| {
            assert_eq!((sequence, unix_ns), (found, 1_000 + found));
            assert_eq!(body, streams[0][found as usize]);
            found += 1;
            found < 310
        });
        assert_eq!(log.take_read_error(), None);
        std::thread::yield_now();
    }
    while log.first_since(0, 1_330) != Some(330) {
        assert!(Instant::now() < deadline, "its index is not made anew");
        std::thread::yield_now();
    }
}

#[test]
fn messages_that_are_read_ahead_are_those_of_the_log() {
    for seed in 0..8 {
        let (mut written, mut rng) = (Written::new(), SimRng::new(seed));
        let mut next = [0; STREAMS as usize];
        for step in 0..400_u32 {
            let stream = rng.within(0..=u64::from(STREAMS) - 1) as u32;
            let length = written.streams[stream as usize].len();
            match rng.within(0..=11) {
                0..4 => {
                    for _ in 0..rng.within(0..=59) {
                        let bytes = rng.within(0..=1_499) as usize;
                        written.send(stream, vec![step as u8; bytes]);
                    }
                }
                4 if length > 10 => {
                    let kept = length - rng.within(0..=9) as usize;
                    written.truncate(stream, kept);
                }
                5 if length > written.moved[stream as usize] + 20 => written.move_on(stream),
                6 => written.log.forget_readings(),
                7..10 => {
                    written.wait_durable();
                    while rng.within(0..=7) > 0 && written.log.read_ahead() {}
                }
                _ => {
                    written.wait_durable();
                    let at = &mut next[stream as usize];
                    // Most readers go on where they stopped.
                    if rng.within(0..=9) == 0 || *at > length {
                        *at = rng.within(0..=length as u64) as usize;
                    }
                    *at += written.read(stream, *at, rng.within(0..=99) as usize);
                }
            }
        }
        written.wait_durable();
        for stream in 0..STREAMS {
            written.read(stream, 0, usize::MAX);
        }
    }
}

#[test]
fn no_more_is_read_ahead_than_an_answer() {
    const BODY: usize = 1_000;
    let mut written = Written::new();
    assert!(!written.log.read_ahead(), "without a reader");
    (0..2_000).for_each(|_| written.send(0, vec![1; BODY]));
    written.wait_durable();
    assert!(!written.log.read_ahead(), "without a reader");
    let mut at = 0;
    for _ in 0..10 {
        at += written.read(0, at, 100);
        let mut slices = 0;
        while written.log.read_ahead() {
            slices += 1;
        }
        let ahead = written.log.readings.borrow()[0].ahead_bytes();
        assert!((AHEAD_MAX..AHEAD_MAX + SLICE + BODY).contains(&ahead), "{ahead}");
        assert!(slices <= AHEAD_MAX.div_ceil(SLICE), "{slices}");
    }
    // All of the answer is there: the disk is not asked.
    let before = written.disk.read_bytes();
    assert_eq!(written.read(0, at, 100), 100);
    assert_eq!(written.disk.read_bytes(), before);
    // A reader that has come to the end, and one that has stopped before it.
    assert_eq!(written.read(0, 1_900, usize::MAX), 100);
    assert_eq!(written.read(0, 1_990, 5), 5);
    while written.log.read_ahead() {}
    assert_eq!(written.read(0, 1_995, usize::MAX), 5);
}

#[test]
fn little_is_read_for_a_stream_of_few_messages() {
    const BODY: usize = 1_000;
    // Without a mark at the fourth message.
    let mut written = Written::with_segments(32 << 20);
    (0..3).for_each(|_| written.send(0, vec![1; BODY]));
    (0..2_000).for_each(|_| written.send(1, vec![2; BODY]));
    (0..3).for_each(|_| written.send(0, vec![3; BODY]));
    written.wait_durable();
    assert_eq!(written.read(0, 0, 1), 1);
    let mut slices = 0;
    while written.log.read_ahead() {
        slices += 1;
    }
    assert!(slices <= AHEAD_READ_MAX.div_ceil(SLICE), "{slices}");
    assert_eq!(written.log.readings.borrow()[0].ahead_bytes(), 2 * BODY);
    assert_eq!(written.read(0, 1, usize::MAX), 5);
}

/// Reads three messages of a stream, and three behind others of 1,000 bytes each, by calls that
/// read no more than an answer's part of the journal; returns the number of calls.
fn calls_for_messages_around(others: u32, forgets: bool) -> usize {
    // A mark each 8 MiB.
    let mut written = Written::with_segments(32 << 20);
    (0..3).for_each(|_| written.send(0, vec![1; 1_000]));
    for _ in 0..others / 1_000 {
        (0..1_000).for_each(|_| written.send(1, vec![2; 1_000]));
        written.wait_durable();
    }
    (0..3).for_each(|_| written.send(0, vec![3; 1_000]));
    written.wait_durable();
    let (mut found, mut calls) = (0, 0);
    while found < 6 {
        let before = written.disk.read_bytes();
        written.log.read(0, found, &mut |sequence, _, body| {
            assert_eq!((sequence, body.len()), (found, 1_000));
            found += 1;
            true
        });
        assert_eq!(written.log.take_read_error(), None);
        let read = written.disk.read_bytes() - before;
        assert!(read <= 2 * ANSWER_READ_MAX as u64, "{read} bytes for an answer");
        calls += 1;
        assert!(calls < 100, "{found} messages");
        if forgets {
            written.log.forget_readings();
        }
    }
    calls
}

#[test]
fn an_answer_reads_a_bounded_part_of_the_journal_and_the_next_goes_on_there() {
    for forgets in [false, true] {
        // Without a mark at the fourth message, all between is read.
        let calls = calls_for_messages_around(6_000, forgets);
        assert!((6..=8).contains(&calls), "{calls}");
        let calls = calls_for_messages_around(20_000, forgets);
        assert!(calls <= 2, "{calls}");
    }
}

#[test]
fn an_error_of_reading_ahead_is_told_to_the_reader() {
    let mut written = Written::new();
    (0..400).for_each(|_| written.send(0, vec![1; 1_000]));
    written.wait_durable();
    assert_eq!(written.read(0, 0, 10), 10);
    // All blocks but the one that is in memory by now.
    for segment in 1..=6 {
        let name = format!("{segment:016x}.segment");
        for offset in (SEGMENT / 2..SEGMENT).step_by(512) {
            written.disk.damage(&name, offset, 0xff);
        }
    }
    while written.log.read_ahead() {}
    assert_eq!(written.log.take_read_error(), None);
    let mut found = 10;
    written.log.read(0, found, &mut |sequence, _, body| {
        assert_eq!((sequence, body), (found, &[1; 1_000][..]));
        found += 1;
        true
    });
    assert!(written.log.take_read_error().is_some(), "damaged messages");
    // Each record in front of the damage: a header, and a head of 13 bytes.
    let record = lanecast_wire::journal::record_bytes(1_000 + 13);
    assert!(found >= (SEGMENT / 2 - 8192) / record - 1, "{found}");
}

#[test]
fn a_message_is_kept_only_if_it_can_be_moved_and_copied_too() {
    let mut written = Written::new();
    let longest = written.log.longest_message();
    assert_eq!(longest as u64, SEGMENT - 8_304 - LogRecord::MESSAGE_HEAD_MAX as u64);
    let body = vec![1; longest + 1];
    let stream = 0;
    let sequence = 0;
    let long = LogRecord::Message { stream, sequence, body: &body };
    assert_eq!((written.log.append(&long), written.log.too_long()), (Err(LogFull), 1));
    written.send(stream, vec![1; longest]);
    written.move_on(stream);
    let copied = LogRecord::Copied { stream, sequence: 1, unix_ns: 5, body: &body[1..] };
    assert!(written.log.append(&copied).is_ok());
    assert_eq!(written.log.too_long(), 1);
}
