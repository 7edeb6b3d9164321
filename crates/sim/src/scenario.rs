//! What a run is like: everything about it is drawn from its seed.

mod ordeal;

pub use ordeal::{PUBLISHER, host};

use crate::dice::Dice;
use crate::fault::Fault;
use crate::link::{Loss, Weather};
use crate::network::group_address;
use crate::payload::Sizes;
use lanecast_protocol::sender::{Distribution, Pacing};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND, receiver, sender};

/// How long the run's publisher is looked for again after a subscriber has lost it.
pub const ANNOUNCE: Nanos = 50 * MILLISECOND;

/// A run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Where it comes from.
    pub seed: u64,
    /// The publisher's settings; a session that follows a crash has another number.
    pub sender: sender::SenderSettings,
    /// By topic: how long its messages are, and when the publisher adds it.
    pub topics: Vec<(Sizes, Nanos)>,
    /// What is published.
    pub load: Load,
    /// The subscribers.
    pub subscribers: Vec<Plan>,
    /// The weather between all.
    pub weather: Weather,
    /// The weather on the way back to the publisher.
    pub back: Weather,
    /// The publisher's own link.
    pub egress: Option<Weather>,
    /// What goes wrong, and when.
    pub faults: Vec<(Nanos, Fault)>,
    /// When all is mended.
    pub healed: Nanos,
    /// How it ends.
    pub ending: Ending,
    /// Nothing that happens excuses a loss.
    pub is_gentle: bool,
}

/// What is published, and when.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// How many messages.
    pub messages: u64,
    /// How long the publisher pauses between two bursts.
    pub pause: Nanos,
    /// How many commits make a burst.
    pub burst: u64,
    /// The most messages of a batch.
    pub batch: u64,
    /// How many commits of a hundred are batches.
    pub batches: u32,
    /// How many commits of a hundred are flushed; the last of a burst always is.
    pub flushes: u32,
}

/// A subscriber.
#[derive(Clone, Debug)]
pub struct Plan {
    /// When it starts.
    pub starts: Nanos,
    /// How its receivers behave; each gets a number and a seed of its own.
    pub receiver: receiver::ReceiverSettings,
    /// The topics that it wants at first.
    pub topics: Vec<usize>,
    /// How long its application needs for what one datagram brings.
    pub pace: Nanos,
    /// Datagrams wait in its socket while the application reads; else they are taken in at once.
    pub reads_inline: bool,
    /// How many bytes wait in its socket.
    pub socket_bytes: usize,
    /// It is still there in the end.
    pub stays: bool,
}

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Everybody gets a last message, then the publisher closes.
    Close,
    /// The publisher closes as soon as it has published everything, whatever befalls.
    CloseAtOnce,
    /// Everybody gets a last message, then the publisher crashes.
    Crash,
    /// Everybody gets a last message, then the subscribers leave.
    Leave,
}

impl Scenario {
    /// The run of `seed`.
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

    /// Whether the session goes through connections.
    pub fn is_stream(&self) -> bool {
        self.sender.distribution == Distribution::Stream
    }

    /// Whether the session goes to a group.
    pub const fn is_group(&self) -> bool {
        matches!(self.sender.distribution, Distribution::Multicast(_))
    }

    /// Whether weather and settings are such that nothing may be lost.
    fn settings_are_gentle(&self, recovery: Nanos) -> bool {
        let steady = |weather: &Weather| !matches!(weather.loss, Loss::Bursts { .. });
        self.sender.pacing == Pacing::Slowest
            && recovery >= 2 * SECOND
            && steady(&self.weather)
            && steady(&self.back)
            && self.can_repair(recovery)
    }

    /// Whether each receiver's share of the budget for repairs can bring it the whole window
    /// a few times before it gives up: repairs get lost, too. Who cannot keep the window drops
    /// what comes behind a gap, and needs it again for each part that it can keep.
    fn can_repair(&self, recovery: Nanos) -> bool {
        let sender = &self.sender;
        let window = sender.window_bytes.max(8 * sender.datagram_bytes).next_power_of_two() as u64;
        let kept = self.subscribers.iter().map(|plan| plan.receiver.reorder_bytes_max as u64).min();
        let times = 4 * (1 + window / kept.unwrap_or(u64::MAX));
        let share = self.repair_rate() / self.subscribers.len() as u64;
        share * (recovery / MILLISECOND) / 1_000 >= times * window
    }

    /// How many bytes a second may be sent again.
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
