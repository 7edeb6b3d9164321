//! Ends, paces and pauses of replays, by a clock of the test.
#![forbid(unsafe_code)]

use lanecast_journal::{
    Entry, JournalConfig, Log, Replay, ReplayEnd, ReplayPace, ReplayStep, Start,
};
use lanecast_sim::disk::SimulatedDisk;
use std::time::{Duration, Instant};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Records 1 to 100, a second apart in recorded time, over several segments.
fn log() -> Log<SimulatedDisk> {
    let settings = JournalConfig { segment_bytes: 16 << 10, ..JournalConfig::default() };
    let mut log = Log::open(SimulatedDisk::new(1, 4 << 20), settings).unwrap();
    append(&mut log, 1..=100);
    log
}

fn append(log: &mut Log<SimulatedDisk>, sequences: std::ops::RangeInclusive<u64>) {
    for sequence in sequences {
        let unix_ns = sequence * 1_000_000_000;
        log.append(&[Entry { unix_ns, body: &[sequence as u8; 500], ..Entry::default() }]).unwrap();
    }
    log.commit().unwrap();
}

const fn up_to(sequence: u64) -> ReplayEnd {
    ReplayEnd { sequence: Some(sequence), unix_ns: None }
}

/// A replay, and the moments of the records that it has given, in milliseconds.
struct Player {
    replay: Replay<SimulatedDisk>,
    start: Instant,
    now: Instant,
    given: Vec<(u64, u128)>,
}

impl Player {
    fn new(log: &Log<SimulatedDisk>, from: Start, end: ReplayEnd, pace: ReplayPace) -> Self {
        let replay = Replay::new(log.cursor(from).unwrap(), end, pace);
        let start = Instant::now();
        Self { replay, start, now: start, given: Vec::new() }
    }

    /// Plays until nothing is due for `limit` records; returns what it stopped at.
    fn play(&mut self, limit: usize) -> String {
        while self.given.len() < limit {
            match self.replay.step_at(self.now).unwrap() {
                ReplayStep::Record(record) => {
                    assert_eq!(record.body, [record.sequence as u8; 500]);
                    let at = (self.now - self.start).as_millis();
                    self.given.push((record.sequence, at));
                }
                ReplayStep::Due(at) => self.now = at,
                other => return format!("{other:?}"),
            }
        }
        String::new()
    }

    fn sequences(&self) -> Vec<u64> {
        self.given.iter().map(|(sequence, _)| *sequence).collect()
    }
}

#[test]
fn a_replay_ends_in_front_of_a_sequence_or_a_time() {
    let mut log = log();
    let time = |second: u64| Some(second * 1_000_000_000);
    let at = |second| ReplayEnd { sequence: None, unix_ns: time(second) };
    for (from, end, expected) in [
        (Start::Oldest, up_to(40), 1_u64..40),
        (Start::Sequence(35), up_to(40), 35..40),
        (Start::Sequence(40), up_to(40), 40..40),
        (Start::Time(30_000_000_000), at(33), 30..33),
        (Start::Oldest, up_to(101), 1..101),
        (Start::Oldest, ReplayEnd { sequence: Some(7), unix_ns: time(9) }, 1..7),
        (Start::Oldest, ReplayEnd { sequence: Some(9), unix_ns: time(7) }, 1..7),
    ] {
        let mut player = Player::new(&log, from, end, ReplayPace::Full);
        assert_eq!(player.play(1_000), "Ended", "{from:?} {end:?}");
        assert_eq!(player.sequences(), expected.collect::<Vec<_>>());
        assert_eq!(player.play(1_000), "Ended", "for good");
    }
    let mut player = Player::new(&log, Start::Sequence(99), at(103), ReplayPace::Full);
    assert_eq!(player.play(1_000), "Waiting", "later records may be of that time");
    append(&mut log, 101..=110);
    assert_eq!(player.play(1_000), "Ended");
    assert_eq!(player.sequences(), [99, 100, 101, 102]);
}

#[test]
fn records_come_at_a_rate_or_at_a_multiple_of_the_recorded_speed() {
    let log = log();
    let end = up_to(6);
    let moments = |pace| {
        let mut player = Player::new(&log, Start::Oldest, end, pace);
        assert_eq!(player.play(1_000), "Ended");
        player.given.iter().map(|(_, at)| *at).collect::<Vec<_>>()
    };
    assert_eq!(moments(ReplayPace::Rate(100.0)), [0, 10, 20, 30, 40]);
    assert_eq!(moments(ReplayPace::Speed(4.0)), [0, 250, 500, 750, 1000]);
    for pace in [ReplayPace::Full, ReplayPace::Rate(0.0), ReplayPace::Speed(f64::NAN)] {
        assert_eq!(moments(pace), [0; 5], "{pace:?}");
    }
    // So slow that no clock holds it.
    let mut player = Player::new(&log, Start::Oldest, end, ReplayPace::Rate(1e-300));
    player.play(1);
    assert!(matches!(player.replay.step_at(player.now).unwrap(), ReplayStep::Due(_)));
}

#[test]
fn a_pause_does_not_count() {
    let log = log();
    let mut player =
        Player::new(&log, Start::Oldest, ReplayEnd::default(), ReplayPace::Rate(100.0));
    player.play(3);
    player.replay.pause();
    player.now += 5_000 * MILLISECOND;
    assert_eq!(player.play(6), "Paused");
    player.replay.resume();
    player.play(6);
    let moments: Vec<u128> = player.given.iter().map(|(_, at)| *at).collect();
    assert_eq!(moments, [0, 10, 20, 5020, 5030, 5040]);
    player.replay.set_pace(ReplayPace::Full);
    assert_eq!(player.play(1_000), "Waiting");
    assert_eq!(player.sequences(), (1..=100).collect::<Vec<_>>());
    assert_eq!(player.replay.cursor().position(), Some(101));
}
