//! Fault schedule of a run.

use super::{Ending, Scenario};
use crate::dice::Dice;
use crate::fault::Fault;
use crate::link::{Loss, Weather};
use crate::network::Host;
use lanecast_protocol::sender::Pacing;
use lanecast_protocol::{MILLISECOND, Nanos};

/// Host of the publisher.
pub const PUBLISHER: Host = 1;

/// Host of a subscriber.
pub const fn host(subscriber: usize) -> Host {
    subscriber as Host + 2
}

impl Scenario {
    /// Adds up to three faults, and late starters.
    pub(super) fn add_ordeals(&mut self, dice: &mut Dice, span: Nanos) {
        for who in 0..self.subscribers.len() {
            let late = if dice.percent(25) { dice.up_to(span) } else { 0 };
            self.subscribers[who].starts = late;
            self.faults.push((late, Fault::Start(who)));
        }
        let ordeals = if dice.percent(35) { 0 } else { dice.within(1..=3) };
        for _ in 0..ordeals {
            let at = dice.up_to(span);
            self.add_ordeal(dice, at, ordeals == 1);
        }
        self.healed = self.faults.iter().map(|(at, _)| *at).max().unwrap_or(0).max(span);
        let bursts = |weather: &Weather| matches!(weather.loss, Loss::Bursts { .. });
        if bursts(&self.weather) || bursts(&self.back) {
            let mended = Weather { loss: Loss::Random(50_000), ..self.weather };
            self.faults.push((self.healed, Fault::Weather(mended)));
        }
    }

    fn add_ordeal(&mut self, dice: &mut Dice, at: Nanos, is_lone: bool) {
        let who = dice.within(0..=self.subscribers.len() as u64 - 1) as usize;
        if let Pacing::SlowestOrEject(patience) = self.sender.pacing
            && dice.percent(50)
        {
            let until = at + patience + dice.up_to(self.sender.liveness);
            return self.add_pair((at, Fault::Stall(who)), (until, Fault::Unstall(who)), true);
        }
        let long = dice.percent(40);
        let most = if long {
            4 * self.sender.liveness
        } else if self.is_stream() && is_lone {
            // Long enough to detect a broken connection and make another one.
            self.patience() * 3 / 5
        } else {
            self.patience() / 5
        };
        let until = at + dice.spread(MILLISECOND..=most.max(2 * MILLISECOND));
        match dice.within(0..=11) {
            0..=2 => self.add_cut(dice, who, (at, until), long),
            3 => self.add_storm(dice, (at, until)),
            4 => self.add_pair((at, Fault::Suspend(who)), (until, Fault::Resume(who)), long),
            5 => {
                let (begin, end) = (Fault::SuspendPublisher, Fault::ResumePublisher);
                self.add_pair((at, begin), (until, end), long);
            }
            6..=7 => {
                self.add_pair((at, Fault::Stall(who)), (until, Fault::Unstall(who)), false);
            }
            8 => self.add_end(dice, who, (at, until)),
            9 => self.faults.push((at, Fault::WantAll(who))),
            10 if self.is_stream() => {
                // The subscriber resumes by another connection.
                self.faults.push((at, Fault::Break(who)));
            }
            10 => self.faults.push((at, Fault::WantAll(who))),
            _ => self.add_crash(dice, (at, until)),
        }
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

    fn add_cut(&mut self, dice: &mut Dice, who: usize, (at, until): (Nanos, Nanos), long: bool) {
        let directions = [(PUBLISHER, host(who)), (host(who), PUBLISHER)];
        let which = dice.within(1..=3);
        for (bit, (from, to)) in directions.into_iter().enumerate() {
            if which & 1 << bit != 0 {
                let end = (until, Fault::Heal(from, to));
                self.add_pair((at, Fault::Cut(from, to, until)), end, long);
            }
        }
        if long && self.is_stream() && dice.percent(70) {
            self.faults.push((until, Fault::Break(who)));
        }
    }

    /// Adds a period of heavy loss.
    fn add_storm(&mut self, dice: &mut Dice, (at, until): (Nanos, Nanos)) {
        let loss = Loss::Random(dice.within(200_000..=900_000) as u32);
        let storm = Weather { loss, ..self.weather };
        let calm = self.weather;
        self.add_pair((at, Fault::Weather(storm)), (until, Fault::Weather(calm)), true);
    }

    /// A subscriber crashes or leaves, and perhaps starts again.
    fn add_end(&mut self, dice: &mut Dice, who: usize, (at, until): (Nanos, Nanos)) {
        if !self.subscribers[who].stays {
            return;
        }
        let end = if dice.percent(70) { Fault::Crash(who) } else { Fault::Leave(who) };
        self.faults.push((at.max(self.subscribers[who].starts), end));
        if dice.percent(60) {
            self.faults.push((until.max(self.subscribers[who].starts), Fault::Start(who)));
        } else {
            self.subscribers[who].stays = false;
        }
    }

    /// The publisher crashes and restarts.
    fn add_crash(&mut self, dice: &mut Dice, (at, until): (Nanos, Nanos)) {
        if self.ending == Ending::CloseAtOnce || dice.percent(50) {
            return;
        }
        let (begin, end) = (Fault::CrashPublisher, Fault::RestartPublisher);
        self.add_pair((at, begin), (until, end), true);
    }
}
