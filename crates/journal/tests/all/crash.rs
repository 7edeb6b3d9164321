//! Crashes of a journal on a simulated disk, generated from seeds.
//!
//! After every crash all persisted records are found again, and the records found are a prefix of
//! those appended.
#![forbid(unsafe_code)]

use crate::model::Model;
use lanecast_journal::{
    AppendError, Entry, JournalConfig, Log, OpenError, Retention, Start, StorageErrorKind,
};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sim::rng::SimRng;

const SEGMENT: u64 = 16 << 10;
const ROOM: u64 = 1 << 20;

struct Trial {
    seed: u64,
    dice: SimRng,
    disk: SimulatedDisk,
    model: Model,
    settings: JournalConfig,
    /// Last sequence reported as persisted in this run.
    persisted: u64,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut dice = SimRng::new(seed);
        let bytes = dice.percent(50).then(|| dice.within(1..=4) * SEGMENT);
        let settings = JournalConfig {
            segment_bytes: SEGMENT + 8 * dice.within(0..=64),
            spare_segments: dice.within(0..=2) as usize,
            max_pending_bytes: dice.pick(&[1 << 10, 64 << 10]),
            retention: Retention { bytes, age: None },
        };
        let disk = SimulatedDisk::new(dice.any(), ROOM);
        disk.write_short(dice.percent(30));
        Self { seed, dice, disk, model: Model::default(), settings, persisted: 0 }
    }

    /// Opens the journal and checks it; `None` if the machine stopped meanwhile.
    fn open(&mut self) -> Option<Log<SimulatedDisk>> {
        let mut log = match Log::open(self.disk.clone(), self.settings.clone()) {
            Ok(log) => log,
            Err(OpenError::Storage(error)) if error.kind == StorageErrorKind::Other => {
                return None;
            }
            Err(error) => panic!("seed {}: {error}", self.seed),
        };
        let last = log.recovered().last;
        assert!(last >= self.persisted, "seed {}: {last} of {}", self.seed, self.persisted);
        self.check(&mut log);
        self.model.cut(last);
        self.persisted = last;
        Some(log)
    }

    /// Reads all records and compares them with the model.
    fn check(&self, log: &mut Log<SimulatedDisk>) {
        let found = log.recovered();
        let mut cursor = log.cursor(Start::Oldest).unwrap();
        let mut next = found.first.max(1);
        while let Some(record) = cursor.read().unwrap() {
            assert_eq!(record.sequence, next, "seed {}", self.seed);
            self.model.check(&record);
            next += 1;
        }
        assert_eq!(next, found.last + 1, "seed {}", self.seed);
    }

    /// One run of a process, until it stops or crashes.
    fn live(&mut self) {
        if self.dice.percent(80) {
            self.disk.stop_after(self.dice.spread(1..=300));
        }
        if self.dice.percent(15) {
            self.disk.fail_sync_after(self.dice.spread(1..=100));
        }
        let Some(mut log) = self.open() else { return };
        let pin = self.dice.percent(50).then(|| log.pin(self.persisted + 1));
        for _ in 0..self.dice.spread(1..=40) {
            if self.act(&mut log).is_none() {
                break;
            }
            assert!(log.persisted() >= self.persisted);
            self.persisted = log.persisted();
        }
        self.persisted = log.persisted();
        drop(pin);
    }

    /// One step; `None` if the journal accepts nothing any more.
    fn act(&mut self, log: &mut Log<SimulatedDisk>) -> Option<()> {
        let done = match self.dice.within(0..=9) {
            0..=4 => return self.append(log),
            5..=6 => log.commit().map(drop),
            7 => log.preallocate(),
            8 => log.apply_retention().map(drop),
            _ => {
                let room = self.dice.pick(&[ROOM, ROOM, 3 * SEGMENT]);
                self.disk.set_capacity(room);
                Ok(())
            }
        };
        match done {
            Ok(()) => Some(()),
            Err(error) if error.kind == StorageErrorKind::NoSpace => Some(()),
            Err(_) => None,
        }
    }

    fn append(&mut self, log: &mut Log<SimulatedDisk>) -> Option<()> {
        let bodies = self.model.draw(&mut self.dice);
        let entries: Vec<Entry<'_>> = bodies.iter().map(|kept| kept.entry()).collect();
        match log.append(&entries) {
            Ok(sequences) => {
                assert_eq!(sequences.end() + 1 - sequences.start(), entries.len() as u64);
                assert_eq!(*sequences.start(), self.model.next());
                self.model.extend(bodies);
                Some(())
            }
            Err(AppendError::Full | AppendError::NoSpace) => Some(()),
            Err(AppendError::Failed) => None,
            Err(error) => panic!("seed {}: {error}", self.seed),
        }
    }

    fn run(mut self) {
        for _ in 0..self.dice.within(1..=4) {
            self.live();
            if self.disk.is_stopped() || self.dice.percent(50) {
                self.disk.crash();
            } else {
                self.disk.kill();
            }
        }
        self.disk.set_capacity(ROOM);
        let mut log = self.open().expect("nothing stops it now");
        self.append(&mut log).expect("it accepts");
        let persisted = log.commit().expect("there is space");
        assert_eq!(persisted + 1, self.model.next());
    }
}

/// Number of seeds: `SEEDS`, or a default that `LONG_TESTS` raises.
fn seeds() -> u64 {
    let many = if std::env::var_os("LONG_TESTS").is_some() { 1_000_000 } else { 10_000 };
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(many)
}

#[test]
fn persisted_records_survive_every_crash() {
    (0..seeds()).for_each(|seed| Trial::new(seed).run());
}

/// The same run, stopped at each of its disk calls in turn, several times.
#[test]
fn no_call_is_a_bad_one_to_stop_at() {
    let life = |stop: Option<u64>, seed: u64| {
        let mut trial = Trial::new(7);
        trial.disk = SimulatedDisk::new(seed, ROOM);
        trial.settings = JournalConfig {
            segment_bytes: SEGMENT,
            spare_segments: 1,
            retention: Retention { bytes: Some(2 * SEGMENT), age: None },
            ..JournalConfig::default()
        };
        if let Some(stop) = stop {
            trial.disk.stop_after(stop);
        }
        if let Some(mut log) = trial.open() {
            for round in 0..40 {
                let _ = trial.append(&mut log);
                let _ = log.commit();
                let _ = if round % 4 == 0 { log.preallocate() } else { Ok(()) };
                let _ = log.apply_retention();
                trial.persisted = log.persisted();
            }
        }
        let calls = trial.disk.calls();
        trial.disk.crash();
        trial.open().expect("nothing stops it now");
        calls
    };
    let calls = life(None, 1);
    assert!(calls > 100, "{calls}");
    for stop in 1..=calls {
        (0..5).for_each(|seed| assert!(life(Some(stop), seed) >= stop.min(calls)));
    }
}
