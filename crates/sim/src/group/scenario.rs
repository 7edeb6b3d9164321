//! Scenario of a group's run, drawn from its seed.

use crate::group::clock::HostClock;
use crate::group::fault::GroupFault;
use crate::link::{LinkConditions, Loss};
use crate::payload::Sizes;
use crate::rng::{Millionths, SimRng};
use lanecast_membership::GroupSettings;
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND};

/// Time until one of two living members of a name has ended, and that is known.
const NAMESAKES: Nanos = SECOND;

/// Scenario of a run.
#[derive(Clone, Debug)]
pub struct GroupScenario {
    /// Seed.
    pub seed: u64,
    /// Settings of all members.
    pub settings: GroupSettings,
    /// Conditions of all links.
    pub conditions: LinkConditions,
    /// Link of each process, for all that leaves it.
    pub egress: Option<LinkConditions>,
    /// The processes.
    pub places: Vec<Place>,
    /// Broadcasts come back to their sender, too.
    pub loops_back: bool,
    /// Frames travel by streams, which hold up all that follows a loss of this probability.
    pub stream_loss: Option<Millionths>,
    /// Members probe each other by streams of their own, which lose with this probability.
    pub probe_loss: Option<Millionths>,
    /// Faults and their times.
    pub faults: Vec<(Nanos, GroupFault)>,
    /// Time after which no fault is active and the network is calm.
    pub healed: Nanos,
    /// No member may ever be missing in a view.
    pub is_gentle: bool,
}

/// A process, in all its incarnations.
#[derive(Clone, Debug)]
pub struct Place {
    /// Number of the place whose name it has: its own, or that of another that lives, too.
    pub name: usize,
    /// Clock that numbers its incarnations.
    pub clock: HostClock,
    /// Time of its start.
    pub starts: Nanos,
    /// Messages that it sends in all.
    pub messages: u64,
    /// Messages that it sends without a pause.
    pub burst: u64,
    /// Pause between two bursts.
    pub pause: Nanos,
    /// Lengths of its messages.
    pub sizes: Sizes,
    /// Percentage of messages in total order.
    pub total: u32,
    /// Percentage of messages to one member.
    pub direct: u32,
    /// Time to handle a frame; 0: it handles frames as they arrive.
    pub pace: Nanos,
    /// Longest queue of frames to handle, in bytes.
    pub socket_bytes: usize,
    /// Length of the state that it gives to new members.
    pub state_bytes: usize,
}

impl GroupScenario {
    /// Draws the scenario of `seed`.
    pub fn draw(seed: u64) -> Self {
        let mut rng = SimRng::new(seed ^ 0x0067_726f_7570);
        let is_gentle = rng.percent(20);
        let span = rng.spread(300 * MILLISECOND..=6 * SECOND);
        let count = if rng.percent(10) { rng.within(6..=12) } else { rng.within(2..=5) } as usize;
        let conditions = draw_conditions(&mut rng, is_gentle);
        let settings = draw_settings(&mut rng, is_gentle);
        let together = rng.percent(50);
        let places = (0..count)
            .map(|name| Place { name, ..draw_place(&mut rng, span, count, together, is_gentle) });
        let places = places.collect();
        let slow = LinkConditions { rate: 12_500_000, queue: 500_000, ..LinkConditions::INSIDE };
        let mut scenario = Self {
            seed,
            settings,
            conditions,
            places,
            egress: rng.percent(15).then_some(slow),
            loops_back: rng.percent(10),
            stream_loss: None,
            probe_loss: None,
            faults: Vec::new(),
            healed: span,
            is_gentle,
        };
        scenario.draw_faults(&mut rng, span);
        // From another source, so that a seed without streams is what it was.
        let mut rng = SimRng::new(seed ^ 0x7374_7265_616d);
        if rng.percent(30) {
            scenario.draw_streams(&mut rng, span);
        }
        scenario
    }

    /// Draws a harsh scenario in which, besides, directions between processes are missing for a
    /// while, many of them from the start: links appear late, or break one way.
    pub fn missing_links(seed: u64) -> Self {
        let mut scenario = Self::harsh(seed);
        let mut rng = SimRng::new(seed ^ 0x6c69_6e6b);
        let (count, span) = (scenario.places.len(), scenario.healed);
        scenario.healed = span * rng.within(1..=4);
        for _ in 0..rng.within(1..=2) {
            let from = if rng.percent(50) { 0 } else { rng.up_to(scenario.healed) };
            let until = (from + rng.spread(100 * MILLISECOND..=20 * SECOND)).min(scenario.healed);
            for (one, other) in draw_directions(&mut rng, count) {
                scenario.faults.push((from, GroupFault::Cut(one, other)));
                scenario.faults.push((until, GroupFault::Mend(one, other)));
            }
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Draws a scenario in which members may be missing.
    fn harsh(seed: u64) -> Self {
        let drawn = (0..).map(|more: u64| Self::draw(seed ^ more << 48));
        let harsh = drawn.into_iter().find(|scenario| !scenario.is_gentle);
        Self { seed, ..harsh.expect("most are") }
    }

    /// Draws a scenario of members that restart by clocks that go back, stand still or are ahead,
    /// at times with two that live under one name.
    pub fn namesakes(seed: u64) -> Self {
        let mut scenario = Self::harsh(seed);
        let mut rng = SimRng::new(seed ^ 0x6e61_6d65);
        let (count, span) = (scenario.places.len(), scenario.healed);
        for place in &mut scenario.places {
            place.clock = rng.pick(&[HostClock::Right, HostClock::Stopped, HostClock::Wrong]);
        }
        if rng.percent(40) {
            let who = rng.within(1..=count as u64 - 1) as usize;
            scenario.places[who].name = rng.within(0..=who as u64 - 1) as usize;
        }
        for _ in 0..rng.within(1..=4) {
            let (at, who) = (rng.up_to(span), rng.within(0..=count as u64 - 1) as usize);
            let signal = rng.percent(60).then(|| rng.spread(50 * MICROSECOND..=5 * MILLISECOND));
            let again = (at + rng.spread(100 * MICROSECOND..=4 * SECOND)).min(span);
            scenario.faults.push((at, GroupFault::Crash(who, signal)));
            scenario.faults.push((again, GroupFault::Start(who)));
        }
        scenario.faults.sort_by_key(|(at, _)| *at);
        scenario
    }

    /// Whether members of one name may meet, or a restarted one look earlier than it is.
    pub fn has_namesakes(&self) -> bool {
        let is_odd =
            |(at, place): (usize, &Place)| place.name != at || place.clock != HostClock::Right;
        self.places.iter().enumerate().any(is_odd)
    }

    /// Four members that talk all the time on streams which lose segments: none may be missing.
    pub fn on_streams(seed: u64, loss: Millionths) -> Self {
        const SPAN: Nanos = 20 * SECOND;
        let mut rng = SimRng::new(seed);
        let place = |rng: &mut SimRng| Place {
            messages: 4_000,
            burst: 1,
            pause: SPAN / 4_000,
            sizes: Sizes::Even(100),
            total: 0,
            direct: 0,
            ..draw_place(rng, SPAN, 4, true, true)
        };
        Self {
            settings: GroupSettings::default(),
            places: (0..4).map(|name| Place { name, ..place(&mut rng) }).collect(),
            stream_loss: Some(loss),
            probe_loss: Some(loss),
            healed: SPAN,
            ..Self::crowd(seed, 4)
        }
    }

    /// Members on streams that lose segments: no member may be missing for that, nor since another
    /// stands still for a moment or is late in reading.
    fn draw_streams(&mut self, rng: &mut SimRng, span: Nanos) {
        let loss = rng.pick(&[1_000, 10_000, 50_000]);
        (self.stream_loss, self.probe_loss) = (Some(loss), Some(loss));
        self.conditions =
            LinkConditions { loss: Loss::None, copies: 0, detours: 0, ..self.conditions };
        // Times that belong together: the pauses of a stream do not shrink with the settings.
        let GroupSettings { heartbeat, hang_timeout, verify_timeout, round_timeout, .. } =
            GroupSettings::default();
        self.settings = GroupSettings {
            heartbeat,
            hang_timeout,
            verify_timeout,
            round_timeout,
            ..self.settings.clone()
        };
        if !self.is_gentle {
            return;
        }
        for who in 0..self.places.len() {
            if rng.percent(30) {
                let at = rng.up_to(span);
                let until = at + rng.up_to(4 * heartbeat);
                self.faults.push((at, GroupFault::Hang(who)));
                self.faults.push((until.min(span), GroupFault::Resume(who)));
            }
            if rng.percent(30) {
                self.places[who].pace = rng.spread(10_000..=MILLISECOND);
            }
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }

    /// Fifty members that start at once.
    pub fn crowd(seed: u64, count: usize) -> Self {
        let mut rng = SimRng::new(seed);
        let place = |rng: &mut SimRng| Place {
            starts: rng.up_to(MILLISECOND),
            messages: 0,
            ..draw_place(rng, SECOND, count, true, true)
        };
        Self {
            seed,
            settings: GroupSettings::default(),
            conditions: LinkConditions::CALM,
            egress: None,
            places: (0..count).map(|name| Place { name, ..place(&mut rng) }).collect(),
            loops_back: false,
            stream_loss: None,
            probe_loss: None,
            faults: Vec::new(),
            healed: 0,
            is_gentle: true,
        }
    }

    /// Members that talk all the time on calm links. One of them crashes, which the others learn
    /// within two looks at their connections; in half of the seeds another joins at that time.
    pub fn crash_under_load(seed: u64, crashes: Nanos, look: Nanos) -> Self {
        let mut rng = SimRng::new(seed ^ 0x0063_7261_7368);
        let count = rng.within(3..=5) as usize;
        let mut scenario = Self::crowd(seed, count + 1);
        for place in &mut scenario.places {
            (place.messages, place.burst, place.pause) = (100, 2, 40 * MILLISECOND);
            (place.total, place.direct) = (30, 0);
            place.sizes = Sizes::Even(100);
        }
        let joins = crashes - 50 * MILLISECOND + rng.up_to(100 * MILLISECOND);
        scenario.places[count].starts = if rng.percent(50) { joins } else { Nanos::MAX / 2 };
        let (who, learn) = (rng.within(0..=count as u64 - 1) as usize, rng.up_to(look).max(1));
        scenario.faults.push((crashes, GroupFault::Crash(who, Some(learn))));
        // Rings are cleared in each view.
        scenario.settings.window = 256 << 10;
        scenario.is_gentle = false;
        scenario
    }

    /// Longest time from the end of all faults to one view of all members: suspicion of members
    /// that are gone, verified, and rounds that end by their timeouts, before and after the merge.
    pub fn agreement_time(&self) -> Nanos {
        let GroupSettings {
            heartbeat,
            hang_timeout,
            verify_timeout,
            join_timeout,
            gather,
            round_timeout,
            ..
        } = self.settings;
        let usual = hang_timeout
            + verify_timeout
            + join_timeout
            + 6 * (gather + round_timeout)
            + 10 * heartbeat;
        // One of two ends, the other comes in, and those that it led before.
        if self.has_namesakes() { usual + NAMESAKES } else { usual }
    }

    fn draw_faults(&mut self, rng: &mut SimRng, span: Nanos) {
        let count = self.places.len();
        if self.is_gentle {
            if rng.percent(30) {
                let at = rng.up_to(span);
                self.faults
                    .push((at, GroupFault::Leave(rng.within(0..=count as u64 - 1) as usize)));
            }
            return;
        }
        let kinds = 1 + rng.within(0..=1) * rng.within(0..=4);
        for _ in 0..kinds {
            let at = rng.up_to(span);
            let until = (at + rng.spread(2 * MILLISECOND..=4 * SECOND)).min(span);
            let who = rng.within(0..=count as u64 - 1) as usize;
            let other = (who + rng.within(1..=count as u64 - 1) as usize) % count;
            match rng.within(0..=11) {
                0..=2 => {
                    let signal =
                        rng.percent(60).then(|| rng.spread(50 * MICROSECOND..=5 * MILLISECOND));
                    self.faults.push((at, GroupFault::Crash(who, signal)));
                    if rng.percent(60) {
                        self.faults.push((until, GroupFault::Start(who)));
                    }
                }
                3..=4 => {
                    self.faults.push((at, GroupFault::Hang(who)));
                    self.faults.push((until, GroupFault::Resume(who)));
                }
                5..=6 => {
                    let most = rng.pick(&[1, 1, 2]);
                    let sides = (0..count).map(|_| rng.within(0..=most) as u8).collect();
                    self.faults.push((at, GroupFault::Partition(sides)));
                    self.faults.push((until, GroupFault::Heal));
                }
                7 => {
                    self.faults.push((at, GroupFault::Cut(who, other)));
                    self.faults.push((until, GroupFault::Mend(who, other)));
                }
                8 => self.faults.push((at, GroupFault::Conditions(draw_conditions(rng, false)))),
                9 => self.faults.push((at, GroupFault::Leave(who))),
                10 => {
                    let odds = rng.pick(&[50_000, 500_000, 1_000_000]);
                    self.faults.push((at, GroupFault::Refuse(who, odds)));
                    self.faults.push((until, GroupFault::Refuse(who, 0)));
                }
                _ => self.faults.push((at, GroupFault::FalseAlarm(who, other))),
            }
        }
        self.faults.sort_by_key(|(at, _)| *at);
    }
}

/// Directions that are missing together: one process hears no other, or is heard by none, or two do
/// not hear each other, or any.
fn draw_directions(rng: &mut SimRng, count: usize) -> Vec<(usize, usize)> {
    let who = rng.within(0..=count as u64 - 1) as usize;
    let other = (who + rng.within(1..=count as u64 - 1) as usize) % count;
    let others = (0..count).filter(|&other| other != who);
    match rng.within(0..=4) {
        0..=1 => others.map(|other| (other, who)).collect(),
        2 => others.map(|other| (who, other)).collect(),
        3 => vec![(who, other), (other, who)],
        _ => {
            let odds = rng.within(10..=60) as u32;
            let all = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
            all.filter(|(from, to)| from != to && rng.percent(odds)).collect()
        }
    }
}

fn draw_settings(rng: &mut SimRng, is_gentle: bool) -> GroupSettings {
    let heartbeat = rng.pick(&[20, 50, 100]) * MILLISECOND;
    let beats = if is_gentle { 20 } else { rng.within(5..=20) };
    GroupSettings {
        heartbeat,
        hang_timeout: beats * heartbeat,
        verify_timeout: rng.within(50..=200) * MILLISECOND,
        join_timeout: rng.within(200..=1_000) * MILLISECOND,
        gather: rng.within(1..=20) * MILLISECOND,
        round_timeout: rng.within(if is_gentle { 300 } else { 100 }..=500) * MILLISECOND,
        window: rng.spread(64 << 10..=1 << 20) as usize,
        longest_frame: rng.pick(&[512, 1_400, 8_900]),
        state: rng.percent(30),
        ..GroupSettings::default()
    }
}

fn draw_conditions(rng: &mut SimRng, is_gentle: bool) -> LinkConditions {
    let loss = match rng.within(0..=9) {
        0..=2 => Loss::None,
        _ if is_gentle => Loss::Random(rng.pick(&[1_000, 10_000])),
        3..=7 => Loss::Random(rng.pick(&[1_000, 10_000, 50_000, 100_000, 200_000])),
        _ => Loss::Bursts {
            begin: rng.within(1_000..=20_000) as u32,
            end: rng.within(20_000..=300_000) as u32,
            bad: rng.pick(&[500_000, 1_000_000]),
        },
    };
    let delay = rng.spread(3_000..=if is_gentle { 1_000_000 } else { 5_000_000 });
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

fn draw_place(
    rng: &mut SimRng,
    span: Nanos,
    count: usize,
    together: bool,
    is_gentle: bool,
) -> Place {
    let messages = if rng.percent(70) { rng.spread(1..=200) / (1 + count as u64 / 4) } else { 0 };
    let burst = rng.spread(1..=40);
    let sizes = match rng.within(0..=3) {
        0 => Sizes::Even(24),
        1 => Sizes::Even(rng.spread(8..=2_000) as usize),
        2 => Sizes::Mixed(3_000),
        _ => Sizes::Rare(30_000),
    };
    let slow = !is_gentle && rng.percent(15);
    Place {
        name: 0,
        clock: HostClock::Right,
        starts: if together { rng.up_to(MILLISECOND) } else { rng.up_to(span) },
        messages,
        burst,
        pause: span / (1 + messages / burst),
        sizes,
        total: rng.pick(&[0, 30, 100]),
        direct: rng.pick(&[0, 0, 20]),
        pace: if slow { rng.spread(10_000..=2_000_000) } else { 0 },
        socket_bytes: rng.spread(64 << 10..=1 << 20) as usize,
        state_bytes: rng.spread(24..=100_000) as usize,
    }
}
