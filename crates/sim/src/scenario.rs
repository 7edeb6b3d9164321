//! Scenario of a run, drawn from its seed.

mod fault_schedule;
mod focus;
mod plan;

pub use fault_schedule::{PUBLISHER, host};
pub use focus::Focus;
pub use plan::Plan;

use crate::fault::Fault;
use crate::link::{LinkConditions, Loss};
use crate::network::group_address;
use crate::payload::Sizes;
use crate::rng::SimRng;
use fault_schedule::FaultSchedule;
use lanecast_protocol::fec::FecSettings;
use lanecast_protocol::receiver::DeliveryOrder;
use lanecast_protocol::sender::{Distribution, Pacing};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND, receiver, sender};

/// Time for which a subscriber looks for a lost publisher.
pub const ANNOUNCE: Nanos = 50 * MILLISECOND;

/// Scenario of a run.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Seed.
    pub seed: u64,
    /// Part that the run stresses.
    pub focus: Focus,
    /// Settings of the sender; a session after a crash has another number.
    pub sender: sender::SenderSettings,
    /// Lengths of messages, and the time when the publisher adds the topic, by topic.
    pub topics: Vec<(Sizes, Nanos)>,
    /// Load.
    pub load: Load,
    /// The subscribers.
    pub subscribers: Vec<Plan>,
    /// Conditions of all links.
    pub conditions: LinkConditions,
    /// Conditions towards the publisher.
    pub back: LinkConditions,
    /// Link of the publisher's host.
    pub egress: Option<LinkConditions>,
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
    /// Draws the scenario of `seed` that stresses `focus`.
    pub fn draw(focus: Focus, seed: u64) -> Self {
        let mut rng = SimRng::new(seed);
        let span = rng.spread(20 * MILLISECOND..=1_500 * MILLISECOND);
        let mut sender = draw_sender(&mut rng);
        // From numbers of its own: a seed has the same faults with parity and without.
        sender.fec = draw_fec(&mut SimRng::new(seed ^ 0xfec));
        let mut topics = draw_topics(&mut rng, sender.longest_message, span);
        if focus == Focus::LateTopics {
            make_late(&mut rng, &mut sender, &mut topics, span);
        }
        let load = draw_load(&mut rng, &topics, span);
        let count = if rng.percent(10) { rng.within(5..=8) } else { rng.within(1..=4) };
        let recovery = rng.pick(&[20, 100, 500, 2_000, 5_000, 5_000, 5_000, 5_000]) * MILLISECOND;
        let mut subscribers: Vec<Plan> =
            (0..count).map(|_| draw_plan(&mut rng, &sender, topics.len(), recovery)).collect();
        draw_delivery(&mut SimRng::new(seed ^ 0xde11), &mut subscribers);
        let mut conditions = draw_weather(&mut rng);
        if focus == Focus::LateTopics {
            conditions.detours = rng.within(10_000..=200_000) as u32;
        }
        let back = if rng.percent(30) { draw_weather(&mut rng) } else { conditions };
        let slow = LinkConditions { rate: 20_000_000, queue: 200_000, ..LinkConditions::INSIDE };
        let ending = match rng.within(0..=9) {
            0..=4 => Ending::Close,
            5..=6 => Ending::CloseAtOnce,
            7 => Ending::Crash,
            _ => Ending::Leave,
        };
        let mut scenario = Self {
            seed,
            focus,
            sender,
            topics,
            load,
            subscribers,
            conditions,
            back,
            egress: rng.percent(20).then_some(slow),
            faults: Vec::new(),
            healed: span,
            ending,
            is_gentle: true,
        };
        let mut schedule = FaultSchedule {
            focus,
            is_gentle: scenario.settings_are_gentle(recovery),
            rng: &mut rng,
            sender: &scenario.sender,
            subscribers: &mut scenario.subscribers,
            conditions,
            back,
            may_restart: ending != Ending::CloseAtOnce,
            faults: Vec::new(),
            healed: span,
        };
        schedule.draw(span);
        let FaultSchedule { is_gentle, faults, healed, .. } = schedule;
        Self { is_gentle, faults, healed, ..scenario }
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
        let steady = |conditions: &LinkConditions| !matches!(conditions.loss, Loss::Bursts { .. });
        self.sender.pacing == Pacing::Slowest
            && recovery >= 2 * SECOND
            && steady(&self.conditions)
            && steady(&self.back)
            && self.can_repair(recovery)
            && self.subscribers.iter().all(|plan| plan.receiver.give_up_after.is_none())
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

fn draw_sender(rng: &mut SimRng) -> sender::SenderSettings {
    let distribution = match rng.within(0..=9) {
        0..=3 => Distribution::Multicast(group_address(1)),
        4..=7 => Distribution::Unicast,
        _ => Distribution::Stream,
    };
    let pacing = match rng.within(0..=9) {
        0..=4 => Pacing::Slowest,
        5..=6 => Pacing::SlowestOrEject(rng.within(50..=400) * MILLISECOND),
        7 => Pacing::Fastest,
        8 => Pacing::Tagged(1),
        _ => Pacing::None,
    };
    let datagram_bytes = rng.pick(&[512, 1_472, 1_472, 8_972]);
    let window_bytes = rng.spread(16 << 10..=512 << 10) as usize;
    let heartbeat = rng.pick(&[20, 50, 100]) * MILLISECOND;
    let near_wrap = u64::MAX - rng.spread(1..=3_000) + 1;
    sender::SenderSettings {
        session: rng.any(),
        first_sequence: rng.pick(&[near_wrap, rng.clone().any(), 0]),
        distribution,
        pacing,
        datagram_bytes,
        window_bytes,
        longest_message: rng.spread(64..=60_000).min(window_bytes as u64 / 4) as usize,
        late_join: rng.percent(30),
        liveness: 10 * heartbeat,
        heartbeat,
        data_rate: rng.percent(25).then(|| rng.spread(1_000_000..=100_000_000)),
        repair_share: rng.pick(&[1, 10, 20, 20]),
        link_rate: rng.pick(&[10_000_000, 1_250_000_000]),
        cookie_key: [rng.any(), 1],
        ..sender::SenderSettings::default()
    }
}

fn draw_fec(rng: &mut SimRng) -> Option<FecSettings> {
    rng.percent(40).then(|| FecSettings {
        data: rng.pick(&[1, 2, 4, 8, 16, 32]),
        parity: rng.pick(&[0, 1, 1, 2, 4]),
        delay: rng.pick(&[0, 50, 500, 5_000]) * MICROSECOND,
    })
}

/// Gives the session topics that are added late. Connections keep the order of frames, so there
/// are none.
fn make_late(
    rng: &mut SimRng,
    sender: &mut sender::SenderSettings,
    topics: &mut Vec<(Sizes, Nanos)>,
    span: Nanos,
) {
    if sender.distribution == Distribution::Stream {
        sender.distribution = Distribution::Multicast(group_address(1));
    }
    let longest = sender.longest_message;
    while topics.len() < 3 {
        topics.push((Sizes::Mixed(longest), 0));
    }
    topics.iter_mut().skip(1).for_each(|(_, appears)| *appears = rng.up_to(span));
}

fn draw_topics(rng: &mut SimRng, longest: usize, span: Nanos) -> Vec<(Sizes, Nanos)> {
    let count = if rng.percent(5) { 40 } else { rng.within(1..=6) };
    let sizes = |rng: &mut SimRng| match rng.within(0..=3) {
        0 => Sizes::Even(24),
        1 => Sizes::Even(rng.spread(1..=longest.min(2_000) as u64) as usize),
        2 => Sizes::Mixed(longest),
        _ => Sizes::Rare(longest),
    };
    let appears = |rng: &mut SimRng| if rng.percent(10) { rng.up_to(span) } else { 0 };
    (0..count).map(|_| (sizes(rng), appears(rng))).collect()
}

fn draw_load(rng: &mut SimRng, topics: &[(Sizes, Nanos)], span: Nanos) -> Load {
    let mean = |sizes: &Sizes| match *sizes {
        Sizes::Even(length) => length,
        Sizes::Mixed(most) => most / 6,
        Sizes::Rare(most) => 100 + most / 60,
    };
    let mean = topics.iter().map(|(sizes, _)| mean(sizes)).sum::<usize>() / topics.len();
    let messages = rng.spread(10..=1_500).min(1_000_000 / mean.max(1) as u64).max(5);
    let burst = rng.spread(1..=200);
    let batches = if rng.percent(50) { rng.within(1..=60) as u32 } else { 0 };
    let pauses = (messages / burst).max(1);
    let flushes = rng.pick(&[0, 50, 100]);
    Load { messages, pause: span / pauses, burst, batch: rng.spread(2..=12), batches, flushes }
}

fn draw_plan(
    rng: &mut SimRng,
    sender: &sender::SenderSettings,
    topics: usize,
    recovery: Nanos,
) -> Plan {
    let receiver = receiver::ReceiverSettings {
        window_datagrams: rng.spread(8..=2_000) as u32,
        reorder_bytes_max: if rng.percent(10) { 20_000 } else { 4 << 20 },
        recovery,
        liveness: rng.pick(&[sender.liveness, sender.liveness, SECOND]),
        reorder: rng.pick(&[0, 0, 300 * MICROSECOND]),
        tag: rng.within(0..=1) as u32,
        late_join: rng.percent(30),
        stream: sender.distribution == Distribution::Stream,
        multicast: matches!(sender.distribution, Distribution::Multicast(_)),
        ..receiver::ReceiverSettings::default()
    };
    let wanted = if rng.percent(70) { 100 } else { 40 };
    let mut chosen: Vec<usize> = (0..topics).filter(|_| rng.percent(wanted)).collect();
    if chosen.is_empty() {
        chosen.push(rng.within(0..=topics as u64 - 1) as usize);
    }
    Plan {
        starts: 0,
        receiver,
        topics: chosen,
        pace: if rng.percent(30) { rng.spread(1_000..=300_000) } else { 0 },
        reads_inline: rng.percent(50),
        socket_bytes: rng.spread(64 << 10..=1 << 20) as usize,
        stays: true,
        logs: false,
    }
}

/// Orders and bounds of delivery, from numbers of their own: a seed has the same faults with them
/// and without.
fn draw_delivery(rng: &mut SimRng, subscribers: &mut [Plan]) {
    let is_bounded = rng.percent(10);
    for plan in subscribers {
        if rng.percent(30) {
            plan.receiver.order = DeliveryOrder::Arrival;
        }
        let bound = rng.pick(&[200, 2_000, 20_000]) * MICROSECOND;
        plan.receiver.give_up_after = is_bounded.then_some(bound);
    }
}

fn draw_weather(rng: &mut SimRng) -> LinkConditions {
    let loss = match rng.within(0..=9) {
        0..=2 => Loss::None,
        3..=7 => Loss::Random(rng.pick(&[1_000, 10_000, 50_000, 100_000, 200_000])),
        _ => Loss::Bursts {
            begin: rng.within(1_000..=20_000) as u32,
            end: rng.within(20_000..=300_000) as u32,
            bad: rng.pick(&[500_000, 1_000_000]),
        },
    };
    let delay = rng.spread(3_000..=5_000_000);
    let disorder = rng.percent(40);
    LinkConditions {
        delay,
        jitter: rng.up_to(delay),
        loss,
        copies: if disorder { rng.up_to(50_000) as u32 } else { 0 },
        detours: if disorder { rng.up_to(100_000) as u32 } else { 0 },
        detour: rng.spread(10_000..=5_000_000),
        rate: 0,
        queue: 0,
    }
}
