//! Fault schedule of a run.

use super::focus::Focus;
use super::plan::Plan;
use crate::fault::Fault;
use crate::link::{LinkConditions, Loss};
use crate::network::Host;
use crate::rng::SimRng;
use lanecast_protocol::sender::{Distribution, Pacing, SenderSettings};
use lanecast_protocol::{MILLISECOND, Nanos};

/// Host of the publisher.
pub const PUBLISHER: Host = 1;

/// Host of a subscriber.
pub const fn host(subscriber: usize) -> Host {
    subscriber as Host + 2
}

/// Faults of a scenario, drawn one by one.
pub(super) struct FaultSchedule<'a> {
    pub(super) focus: Focus,
    pub(super) rng: &'a mut SimRng,
    pub(super) sender: &'a SenderSettings,
    pub(super) subscribers: &'a mut [Plan],
    /// Conditions of all links, and those towards the publisher.
    pub(super) conditions: LinkConditions,
    pub(super) back: LinkConditions,
    /// Whether the publisher may crash and restart.
    pub(super) may_restart: bool,
    pub(super) is_gentle: bool,
    pub(super) faults: Vec<(Nanos, Fault)>,
    /// Time after which no fault is active.
    pub(super) healed: Nanos,
}

impl FaultSchedule<'_> {
    /// Adds up to three faults, and late starters.
    pub(super) fn draw(&mut self, span: Nanos) {
        for who in 0..self.subscribers.len() {
            let late = if self.rng.percent(25) { self.rng.up_to(span) } else { 0 };
            self.subscribers[who].starts = late;
            self.faults.push((late, Fault::Start(who)));
        }
        let count = if self.rng.percent(35) { 0 } else { self.rng.within(1..=3) };
        for _ in 0..count {
            let at = self.rng.up_to(span);
            self.add_fault(at, count == 1);
        }
        for who in 0..self.subscribers.len() {
            match self.focus {
                Focus::Anything => {}
                Focus::LateTopics => {
                    let at = self.rng.up_to(span).max(self.subscribers[who].starts);
                    self.faults.push((at, Fault::WantAll(who)));
                }
                Focus::Resumption => self.add_outages(who, span),
            }
        }
        self.healed = self.faults.iter().map(|(at, _)| *at).max().unwrap_or(0).max(span);
        let bursts = |conditions: &LinkConditions| matches!(conditions.loss, Loss::Bursts { .. });
        if bursts(&self.conditions) || bursts(&self.back) {
            let mended = LinkConditions { loss: Loss::Random(50_000), ..self.conditions };
            self.faults.push((self.healed, Fault::LinkConditions(mended)));
        }
    }

    fn add_fault(&mut self, at: Nanos, is_lone: bool) {
        let who = self.rng.within(0..=self.subscribers.len() as u64 - 1) as usize;
        if let Pacing::SlowestOrEject(patience) = self.sender.pacing
            && self.rng.percent(50)
        {
            let until = at + patience + self.rng.up_to(self.sender.liveness);
            return self.add_pair((at, Fault::Stall(who)), (until, Fault::Unstall(who)), true);
        }
        let long = self.rng.percent(40);
        let most = if long {
            4 * self.sender.liveness
        } else if self.is_stream() && is_lone {
            // Long enough to detect a broken connection and make another one.
            self.patience() * 3 / 5
        } else {
            self.patience() / 5
        };
        let until = at + self.rng.spread(MILLISECOND..=most.max(2 * MILLISECOND));
        match self.rng.within(0..=11) {
            0..=2 => self.add_cut(who, (at, until), long),
            3 => self.add_storm((at, until)),
            4 => self.add_pair((at, Fault::Suspend(who)), (until, Fault::Resume(who)), long),
            5 => {
                let (begin, end) = (Fault::SuspendPublisher, Fault::ResumePublisher);
                self.add_pair((at, begin), (until, end), long);
            }
            6..=7 => {
                self.add_pair((at, Fault::Stall(who)), (until, Fault::Unstall(who)), false);
            }
            8 => self.add_end(who, (at, until)),
            9 => self.faults.push((at, Fault::WantAll(who))),
            10 if self.is_stream() => {
                // The subscriber resumes by another connection.
                self.faults.push((at, Fault::Break(who)));
            }
            10 => self.faults.push((at, Fault::WantAll(who))),
            _ => self.add_crash((at, until)),
        }
    }

    /// Adds up to three outages of a subscriber, one after another.
    fn add_outages(&mut self, who: usize, span: Nanos) {
        let count = self.rng.within(1..=3);
        let starts = self.subscribers[who].starts;
        for number in 0..count {
            let at = starts + (span * number + self.rng.up_to(span)) / count;
            if self.is_stream() {
                self.faults.push((at, Fault::Break(who)));
            } else {
                let liveness = self.sender.liveness;
                let until = at + self.rng.spread(liveness / 4..=3 * liveness);
                self.add_cut(who, (at, until), true);
            }
        }
    }

    fn is_stream(&self) -> bool {
        self.sender.distribution == Distribution::Stream
    }

    /// Longest outage that must stay unnoticed.
    fn patience(&self) -> Nanos {
        let receivers = self.subscribers.iter().map(|plan| plan.receiver.recovery);
        let receivers = receivers.min().unwrap_or(Nanos::MAX);
        let liveness = self.subscribers.iter().map(|plan| plan.receiver.liveness).min();
        receivers.min(liveness.unwrap_or(Nanos::MAX)).min(self.sender.liveness)
    }

    fn add_pair(&mut self, begin: (Nanos, Fault), end: (Nanos, Fault), long: bool) {
        self.faults.extend([begin, end]);
        self.is_gentle &= !long;
    }

    fn add_cut(&mut self, who: usize, (at, until): (Nanos, Nanos), long: bool) {
        let directions = [(PUBLISHER, host(who)), (host(who), PUBLISHER)];
        let which = self.rng.within(1..=3);
        for (bit, (from, to)) in directions.into_iter().enumerate() {
            if which & 1 << bit != 0 {
                let end = (until, Fault::Heal(from, to));
                self.add_pair((at, Fault::Cut(from, to, until)), end, long);
            }
        }
        if long && self.is_stream() && self.rng.percent(70) {
            self.faults.push((until, Fault::Break(who)));
        }
    }

    /// Adds a period of heavy loss.
    fn add_storm(&mut self, (at, until): (Nanos, Nanos)) {
        let loss = Loss::Random(self.rng.within(200_000..=900_000) as u32);
        let storm = LinkConditions { loss, ..self.conditions };
        let calm = self.conditions;
        self.add_pair(
            (at, Fault::LinkConditions(storm)),
            (until, Fault::LinkConditions(calm)),
            true,
        );
    }

    /// A subscriber crashes or leaves, and perhaps starts again.
    fn add_end(&mut self, who: usize, (at, until): (Nanos, Nanos)) {
        if !self.subscribers[who].stays {
            return;
        }
        let end = if self.rng.percent(70) { Fault::Crash(who) } else { Fault::Leave(who) };
        self.faults.push((at.max(self.subscribers[who].starts), end));
        if self.rng.percent(60) {
            self.faults.push((until.max(self.subscribers[who].starts), Fault::Start(who)));
        } else {
            self.subscribers[who].stays = false;
        }
    }

    /// The publisher crashes and restarts.
    fn add_crash(&mut self, (at, until): (Nanos, Nanos)) {
        if !self.may_restart || self.rng.percent(50) {
            return;
        }
        let (begin, end) = (Fault::CrashPublisher, Fault::RestartPublisher);
        self.add_pair((at, begin), (until, end), true);
    }
}
