//! Durable topics on a simulated disk with generated faults: crashes at any call, failed
//! synchronizations, a full disk, short writes. Every persisted change is found again, and the
//! recovered state is one that the topics have had.

use crate::topics::{State, change, definitions, settings, state, world};
use lanecast_journal::{Durability, JournalConfig};
use lanecast_sim::disk::SimulatedDisk;
use lanecast_sim::rng::SimRng;
use lanecast_sow::Topic;
use lanecast_sow::durable::{SowStore, WriteError};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const ROOM: u64 = 4 << 20;
/// Disk space without room for another segment.
const NO_ROOM: u64 = 1 << 10;

/// One run of the process.
struct Life {
    archive: SowStore<SimulatedDisk>,
    topics: Vec<Topic>,
    /// All states of the topics, by journal sequence.
    history: BTreeMap<u64, Vec<Rc<State>>>,
    /// The topics' own sequences at the last of them.
    sequences: Vec<u64>,
    first: u64,
}

impl Life {
    fn begin(disk: &SimulatedDisk, settings: JournalConfig) -> Option<Self> {
        let (archive, topics) = SowStore::open(disk.clone(), settings, definitions()).ok()?;
        let first = archive.journal().recovered().last;
        let (states, sequences) = world(&topics);
        let states: Vec<_> = states.into_iter().map(Rc::new).collect();
        // Opening may append definitions, which change no record.
        let history = (first..=archive.last()).map(|sequence| (sequence, states.clone())).collect();
        Some(Self { archive, topics, history, sequences, first })
    }

    fn last(&self) -> u64 {
        self.history.last_key_value().map_or(0, |(last, _)| *last)
    }

    fn change(&mut self, dice: &mut SimRng, now_ns: u64) -> Result<(), WriteError> {
        if let Some(sequence) = change(&mut self.archive, &mut self.topics, dice, now_ns)? {
            let (_, last) = self.history.last_key_value().expect("the opened state");
            let mut states = last.clone();
            for (number, topic) in self.topics.iter().enumerate() {
                if topic.sequence() != self.sequences[number] {
                    self.sequences[number] = topic.sequence();
                    states[number] = Rc::new(state(topic));
                }
            }
            self.history.insert(sequence, states);
        }
        Ok(())
    }

    /// Whether all changes are durable; at the end there is room for them.
    fn persist(&self, disk: &SimulatedDisk) -> bool {
        disk.set_capacity(ROOM);
        let last = self.last();
        last == self.first || self.archive.journal().wait(last, Durability::Persisted, LONG).is_ok()
    }

    /// Takes a checkpoint while changes continue. An error of the disk shows at the next operation;
    /// the previous checkpoint remains.
    fn checkpoint(&mut self, disk: &SimulatedDisk, dice: &mut SimRng, now_ns: u64) {
        let Ok(mut checkpoint) = self.archive.begin_checkpoint() else { return };
        loop {
            let all: Vec<&Topic> = self.topics.iter().collect();
            match checkpoint.advance(&all, dice.within(1..=20) as usize) {
                Ok(true) => drop(self.change(dice, now_ns)),
                Ok(false) => break,
                Err(_) => return,
            }
        }
        if checkpoint.seal().is_ok() {
            // Waits for pending writes.
            disk.set_capacity(ROOM);
            let _ = self.archive.install_checkpoint(checkpoint, LONG);
        }
    }

    /// Runs changes and checkpoints until the machine stops or enough were made; returns the last
    /// persisted sequence.
    fn live(&mut self, disk: &SimulatedDisk, dice: &mut SimRng, start_ns: u64) -> u64 {
        for step in 0..dice.within(10..=80) {
            let now_ns = start_ns + step;
            match self.change(dice, now_ns) {
                Ok(()) => {}
                // A change refused for lack of space has no effect.
                Err(WriteError::Append(why)) if why.is_back_pressure() => {
                    if !self.persist(disk) {
                        break;
                    }
                }
                Err(_) => break,
            }
            match dice.within(0..=99) {
                0..=9 if !self.persist(disk) => break,
                10..=14 => self.checkpoint(disk, dice, now_ns),
                15 => disk.set_capacity(NO_ROOM),
                _ => {}
            }
        }
        self.archive.journal().last_sequence(Durability::Persisted)
    }
}

/// Several runs with crashes in between; returns the number of runs.
fn trial(seed: u64) -> u64 {
    let mut dice = SimRng::new(seed);
    let disk = SimulatedDisk::new(dice.any(), ROOM);
    disk.write_short(dice.percent(30));
    let settings =
        JournalConfig { segment_bytes: (16 + 8 * dice.within(0..=2)) << 10, ..settings() };
    let mut lives = 0;
    for number in 0..dice.within(1..=3) {
        if dice.percent(80) {
            disk.stop_after(dice.spread(1..=400));
        }
        if dice.percent(15) {
            disk.fail_sync_after(dice.spread(1..=100));
        }
        let lived = Life::begin(&disk, settings.clone()).map(|mut life| {
            let said = life.live(&disk, &mut dice, number * 1_000);
            (life.history, said)
        });
        if disk.is_stopped() || dice.percent(50) {
            disk.crash();
        } else {
            disk.kill();
        }
        disk.set_capacity(ROOM);
        let life = Life::begin(&disk, settings.clone());
        let life = life.unwrap_or_else(|| panic!("seed {seed}, life {number}: it does not open"));
        if let Some((history, said)) = lived {
            lives += 1;
            assert!(life.first >= said, "seed {seed}: {} of {said}", life.first);
            let found: Vec<_> = life.topics.iter().map(state).map(Rc::new).collect();
            assert_eq!(Some(&found), history.get(&life.first), "seed {seed}, life {number}");
        }
    }
    lives
}

/// Number of seeds: `SEEDS`, or a default that `LONG_TESTS` raises.
fn seeds() -> u64 {
    let many = if std::env::var_os("LONG_TESTS").is_some() { 1_000_000 } else { 5_000 };
    std::env::var("SEEDS").ok().and_then(|seeds| seeds.parse().ok()).unwrap_or(many)
}

#[test]
fn a_crash_at_any_moment_leaves_what_was_persisted_and_nothing_else() {
    let seeds = seeds();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let lives: u64 = std::thread::scope(|scope| {
        let part = |thread| (thread..seeds).step_by(threads as usize).map(trial).sum::<u64>();
        let parts: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        parts.into_iter().map(|part| part.join().expect("as it should be")).sum()
    });
    assert!(lives > seeds, "{lives}");
}
