//! Conditions of a run, drawn from its seed.

use crate::rng::{Millionths, SimRng};
use lanecast_persistence::{GroupRule, ReceiverEnd, ReceiverStart, StoreGroups};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::ops::RangeInclusive;

/// Longest times of a frame on its way that are longer than the machines' repetition intervals.
const SLOW_DELAY: RangeInclusive<Nanos> = 30 * MILLISECOND..=150 * MILLISECOND;

/// Conditions of a run.
#[derive(Clone, Debug)]
pub struct StoreScenario {
    /// The seed.
    pub seed: u64,
    /// Sizes of the groups of stores.
    pub groups: Vec<usize>,
    /// The number of groups that have to hold a message.
    pub rule: GroupRule,
    /// Share of lost frames and live messages.
    pub loss: Millionths,
    /// Longest time of a frame on its way.
    pub delay: Nanos,
    /// Longest time of a synchronization.
    pub sync: Nanos,
    /// Records that may wait for a disk.
    pub pending_max: usize,
    /// Messages in flight.
    pub flight: usize,
    /// Time between messages.
    pub pace: Nanos,
    /// Faults in the first part of the run.
    pub faults: usize,
    /// Time in which faults happen.
    pub fault_time: Nanos,
    /// Stores may lose their data, also so many that the stream has to wait for good.
    pub may_wipe: bool,
    /// Two publishers may live at once.
    pub may_fork: bool,
    /// Receivers.
    pub receivers: usize,
    /// The beginning and the end of each receiver.
    pub ranges: [(ReceiverStart, ReceiverEnd); 2],
    /// Stores beside those of the groups; with some, each publisher and receiver has a list of
    /// stores of its own.
    pub spares: usize,
    /// Receivers pace the publishers, and each store holds so many bytes for them.
    pub unconsumed: Option<u64>,
}

impl StoreScenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = SimRng::new(seed);
        let sizes: [&[usize]; 6] = [&[3], &[3], &[1], &[5], &[3, 1], &[2]];
        let groups = rng.pick(&sizes).to_vec();
        let rules = [GroupRule::Any, GroupRule::Majority, GroupRule::All];
        let mut scenario = Self {
            seed,
            groups,
            rule: rng.pick(&rules),
            loss: rng.pick(&[0, 10_000, 100_000]),
            delay: rng.spread(MILLISECOND / 10..=30 * MILLISECOND),
            sync: rng.spread(MILLISECOND / 10..=20 * MILLISECOND),
            pending_max: rng.pick(&[6, 40, 1_000]),
            flight: rng.pick(&[1, 10, 100]),
            pace: rng.spread(MILLISECOND / 5..=20 * MILLISECOND),
            faults: rng.within(0..=12) as usize,
            fault_time: 3_000 * MILLISECOND,
            may_wipe: rng.percent(40),
            may_fork: rng.percent(30),
            receivers: rng.pick(&[0, 1, 1, 2]),
            ranges: [(ReceiverStart::Oldest, ReceiverEnd::Never); 2],
            spares: 0,
            unconsumed: None,
        };
        // Answers come later than questions are repeated.
        let is_slow = rng.percent(15);
        let delay = if is_slow { rng.spread(SLOW_DELAY) } else { scenario.delay };
        scenario.ranges = std::array::from_fn(|_| draw_range(&mut rng, scenario.fault_time));
        Self { delay, ..scenario }
    }

    /// The same with lists of stores that change between runs. Stores keep their data: the lists
    /// alone can make a stream wait.
    pub fn draw_lists(seed: u64) -> Self {
        let scenario = Self::draw(seed);
        let spares = 1 + seed as usize % 3;
        Self { may_wipe: false, faults: 4 + scenario.faults, spares, ..scenario }
    }

    /// The same with receivers that pace the publishers, at stores that hold little for them.
    pub fn draw_paced(seed: u64) -> Self {
        let scenario = Self::draw(seed);
        let unconsumed = Some([200, 1_000, 5_000][seed as usize % 3]);
        // One that has come to its end would hold the publishers back for good.
        let ranges = scenario.ranges.map(|(start, _)| (start, ReceiverEnd::Never));
        Self { receivers: scenario.receivers.max(1), ranges, unconsumed, ..scenario }
    }

    /// Whether each publisher and receiver has a list of stores of its own.
    pub const fn has_lists(&self) -> bool {
        self.spares > 0
    }

    /// Name of a store.
    pub fn store_name(store: usize) -> String {
        format!("store-{store}")
    }

    /// Names of all stores.
    pub fn names(&self) -> Vec<String> {
        let count = self.groups.iter().sum::<usize>() + self.spares;
        (0..count).map(Self::store_name).collect()
    }

    /// The stores' groups.
    ///
    /// # Panics
    /// Never: the names differ.
    pub fn store_groups(&self) -> StoreGroups {
        let mut names = (0..).map(Self::store_name);
        let groups = self.groups.iter().map(|size| names.by_ref().take(*size).collect());
        StoreGroups::new(groups.collect(), self.rule).expect("names that differ")
    }
}

/// Beginning and end of a receiver; of half of them the usual ones.
fn draw_range(rng: &mut SimRng, fault_time: Nanos) -> (ReceiverStart, ReceiverEnd) {
    let (sequence, unix_ns) = (rng.spread(1..=1_000), rng.within(1..=fault_time));
    let starts = [
        ReceiverStart::End,
        ReceiverStart::Sequence(sequence),
        ReceiverStart::Time(unix_ns),
        ReceiverStart::Oldest,
    ];
    let (sequence, unix_ns) = (rng.spread(1..=1_000), rng.within(1..=fault_time));
    let ends = [ReceiverEnd::Sequence(sequence), ReceiverEnd::Time(unix_ns), ReceiverEnd::Never];
    let (start, end) = (rng.pick(&starts), rng.pick(&ends));
    if rng.percent(50) { (start, end) } else { (ReceiverStart::Oldest, ReceiverEnd::Never) }
}
