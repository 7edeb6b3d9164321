//! Scenario of a run, drawn from its seed.

mod ordeal;

pub use ordeal::{PUBLISHER, host};

use crate::dice::Dice;
use crate::fault::Fault;
use crate::link::{Loss, Weather};
use crate::network::group_address;
use crate::payload::Sizes;
use lanecast_protocol::sender::{Distribution, Pacing};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND, receiver, sender};

/// Time for which a subscriber looks for a lost publisher.
pub const ANNOUNCE: Nanos = 50 * MILLISECOND;

/// Scenario of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed.
    pub seed: u64,
    /// Settings of the sender; a session after a crash has another number.
    pub sender: sender::SenderSettings,
    /// Lengths of messages, and the time when the publisher adds the topic, by topic.
    pub topics: Vec<(Sizes, Nanos)>,
    /// Load.
    pub load: Load,
    /// The subscribers.
    pub subscribers: Vec<Plan>,
    /// Conditions of all links.
    pub weather: Weather,
    /// Conditions towards the publisher.
    pub back: Weather,
    /// Link of the publisher's host.
    pub egress: Option<Weather>,
    /// Faults and their times.
    pub faults: Vec<(Nanos, Fault)>,
    /// Time after which no fault is active.
    pub healed: Nanos,
    /// End of the run.
    pub ending: Ending,
    /// No loss is allowed in this run.
    pub is_gentle: bool,
}

/// Load: messages and their timing.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Number of messages.
    pub messages: u64,
    /// Pause between two bursts.
    pub pause: Nanos,
    /// Commits per burst.
    pub burst: u64,
    /// Most messages of a batch.
    pub batch: u64,
    /// Percentage of commits that are batches.
    pub batches: u32,
    /// Percentage of commits that are flushed; the last of a burst always is.
    pub flushes: u32,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Time of the start.
    pub starts: Nanos,
    /// Settings of its receivers; each has its own number and seed.
    pub receiver: receiver::ReceiverSettings,
    /// Topics subscribed to at the start.
    pub topics: Vec<usize>,
    /// Time that the application needs per datagram.
    pub pace: Nanos,
    /// Whether datagrams wait in the socket while the application reads.
    pub reads_inline: bool,
    /// Size of the socket buffer, in bytes.
    pub socket_bytes: usize,
    /// Whether it runs until the end.
    pub stays: bool,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Every subscriber gets a last message, then the publisher closes.
    Close,
    /// The publisher closes as soon as it has published everything, despite faults.
    CloseAtOnce,
    /// Every subscriber gets a last message, then the publisher crashes.
    Crash,
    /// Every subscriber gets a last message, then the subscribers leave.
    Leave,
}

impl Scenario {
    /// Draws the scenario of `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let span = dice.spread(20 * MILLISECOND..=1_500 * MILLISECOND);
        let sender = draw_sender(&mut dice);
        let topics = draw_topics(&mut dice, sender.longest_message, span);
        let load = draw_load(&mut dice, &topics, span);
        let count = if dice.percent(10) { dice.within(5..=8) } else { dice.within(1..=4) };
        let recovery = dice.pick(&[20, 100, 500, 2_000, 5_000, 5_000, 5_000, 5_000]) * MILLISECOND;
        let subscribers: Vec<Plan> =
            (0..count).map(|_| draw_plan(&mut dice, &sender, topics.len(), recovery)).collect();
        let weather = draw_weather(&mut dice);
        let back = if dice.percent(30) { draw_weather(&mut dice) } else { weather };
        let slow = Weather { rate: 20_000_000, queue: 200_000, ..Weather::INSIDE };
        let ending = match dice.within(0..=9) {
            0..=4 => Ending::Close,
            5..=6 => Ending::CloseAtOnce,
            7 => Ending::Crash,
            _ => Ending::Leave,
        };
        let mut scenario = Self {
            seed,
            sender,
            topics,
            load,
            subscribers,
            weather,
            back,
            egress: dice.percent(20).then_some(slow),
            faults: Vec::new(),
            healed: span,
            ending,
            is_gentle: true,
        };
        scenario.is_gentle = scenario.settings_are_gentle(recovery);
        scenario.add_ordeals(&mut dice, span);
        scenario
    }

    /// Whether the session uses connections.
    pub fn is_stream(&self) -> bool {
        self.sender.distribution == Distribution::Stream
    }

    /// Whether the session uses multicast.
    pub const fn is_group(&self) -> bool {
        matches!(self.sender.distribution, Distribution::Multicast(_))
    }

    /// Whether conditions and settings allow no loss.
    fn settings_are_gentle(&self, recovery: Nanos) -> bool {
        let steady = |weather: &Weather| !matches!(weather.loss, Loss::Bursts { .. });
        self.sender.pacing == Pacing::Slowest
            && recovery >= 2 * SECOND
            && steady(&self.weather)
            && steady(&self.back)
            && self.can_repair(recovery)
    }

    /// Whether each receiver's share of the repair budget is enough for the whole window several
    /// times within the recovery time: repairs get lost, too. A receiver with a small reorder
    /// buffer drops datagrams behind a gap, and needs them again for each part that fits.
    fn can_repair(&self, recovery: Nanos) -> bool {
        let sender = &self.sender;
        let window = sender.window_bytes.max(8 * sender.datagram_bytes).next_power_of_two() as u64;
        let kept = self.subscribers.iter().map(|plan| plan.receiver.reorder_bytes_max as u64).min();
        let times = 4 * (1 + window / kept.unwrap_or(u64::MAX));
        let share = self.repair_rate() / self.subscribers.len() as u64;
        share * (recovery / MILLISECOND) / 1_000 >= times * window
    }

    /// Bytes per second for repairs.
    pub fn repair_rate(&self) -> u64 {
        let link = self.sender.data_rate.unwrap_or(self.sender.link_rate);
        link / 100 * u64::from(self.sender.repair_share)
    }
}

fn draw_sender(dice: &mut Dice) -> sender::SenderSettings {
    let distribution = match dice.within(0..=9) {
        0..=3 => Distribution::Multicast(group_address(1)),
        4..=7 => Distribution::Unicast,
        _ => Distribution::Stream,
    };
    let pacing = match dice.within(0..=9) {
        0..=4 => Pacing::Slowest,
        5..=6 => Pacing::SlowestOrEject(dice.within(50..=400) * MILLISECOND),
        7 => Pacing::Fastest,
        8 => Pacing::Tagged(1),
        _ => Pacing::None,
    };
    let datagram_bytes = dice.pick(&[512, 1_472, 1_472, 8_972]);
    let window_bytes = dice.spread(16 << 10..=512 << 10) as usize;
    let heartbeat = dice.pick(&[20, 50, 100]) * MILLISECOND;
    let near_wrap = u64::MAX - dice.spread(1..=3_000) + 1;
    sender::SenderSettings {
        session: dice.any(),
        first_sequence: dice.pick(&[near_wrap, dice.clone().any(), 0]),
        distribution,
        pacing,
        datagram_bytes,
        window_bytes,
        longest_message: dice.spread(64..=60_000).min(window_bytes as u64 / 4) as usize,
        late_join: dice.percent(30),
        liveness: 10 * heartbeat,
        heartbeat,
        data_rate: dice.percent(25).then(|| dice.spread(1_000_000..=100_000_000)),
        repair_share: dice.pick(&[1, 10, 20, 20]),
        link_rate: dice.pick(&[10_000_000, 1_250_000_000]),
        seed: dice.any(),
        ..sender::SenderSettings::default()
    }
}

fn draw_topics(dice: &mut Dice, longest: usize, span: Nanos) -> Vec<(Sizes, Nanos)> {
    let count = if dice.percent(5) { 40 } else { dice.within(1..=6) };
    let sizes = |dice: &mut Dice| match dice.within(0..=3) {
        0 => Sizes::Even(24),
        1 => Sizes::Even(dice.spread(1..=longest.min(2_000) as u64) as usize),
        2 => Sizes::Mixed(longest),
        _ => Sizes::Rare(longest),
    };
    let appears = |dice: &mut Dice| if dice.percent(10) { dice.up_to(span) } else { 0 };
    (0..count).map(|_| (sizes(dice), appears(dice))).collect()
}

fn draw_load(dice: &mut Dice, topics: &[(Sizes, Nanos)], span: Nanos) -> Load {
    let mean = |sizes: &Sizes| match *sizes {
        Sizes::Even(length) => length,
        Sizes::Mixed(most) => most / 6,
        Sizes::Rare(most) => 100 + most / 60,
    };
    let mean = topics.iter().map(|(sizes, _)| mean(sizes)).sum::<usize>() / topics.len();
    let messages = dice.spread(10..=1_500).min(1_000_000 / mean.max(1) as u64).max(5);
    let burst = dice.spread(1..=200);
    let batches = if dice.percent(50) { dice.within(1..=60) as u32 } else { 0 };
    let pauses = (messages / burst).max(1);
    let flushes = dice.pick(&[0, 50, 100]);
    Load { messages, pause: span / pauses, burst, batch: dice.spread(2..=12), batches, flushes }
}

fn draw_plan(
    dice: &mut Dice,
    sender: &sender::SenderSettings,
    topics: usize,
    recovery: Nanos,
) -> Plan {
    let receiver = receiver::ReceiverSettings {
        window_datagrams: dice.spread(8..=2_000) as u32,
        reorder_bytes_max: if dice.percent(10) { 20_000 } else { 4 << 20 },
        recovery,
        liveness: dice.pick(&[sender.liveness, sender.liveness, SECOND]),
        reorder: dice.pick(&[0, 0, 300 * MICROSECOND]),
        tag: dice.within(0..=1) as u32,
        late_join: dice.percent(30),
        stream: sender.distribution == Distribution::Stream,
        multicast: matches!(sender.distribution, Distribution::Multicast(_)),
        ..receiver::ReceiverSettings::default()
    };
    let wanted = if dice.percent(70) { 100 } else { 40 };
    let mut chosen: Vec<usize> = (0..topics).filter(|_| dice.percent(wanted)).collect();
    if chosen.is_empty() {
        chosen.push(dice.within(0..=topics as u64 - 1) as usize);
    }
    Plan {
        starts: 0,
        receiver,
        topics: chosen,
        pace: if dice.percent(30) { dice.spread(1_000..=300_000) } else { 0 },
        reads_inline: dice.percent(50),
        socket_bytes: dice.spread(64 << 10..=1 << 20) as usize,
        stays: true,
    }
}

fn draw_weather(dice: &mut Dice) -> Weather {
    let loss = match dice.within(0..=9) {
        0..=2 => Loss::None,
        3..=7 => Loss::Random(dice.pick(&[1_000, 10_000, 50_000, 100_000, 200_000])),
        _ => Loss::Bursts {
            begin: dice.within(1_000..=20_000) as u32,
            end: dice.within(20_000..=300_000) as u32,
            bad: dice.pick(&[500_000, 1_000_000]),
        },
    };
    let delay = dice.spread(3_000..=5_000_000);
    let disorder = dice.percent(40);
    Weather {
        delay,
        jitter: dice.up_to(delay),
        loss,
        copies: if disorder { dice.up_to(50_000) as u32 } else { 0 },
        detours: if disorder { dice.up_to(100_000) as u32 } else { 0 },
        detour: dice.spread(10_000..=5_000_000),
        rate: 0,
        queue: 0,
    }
}
