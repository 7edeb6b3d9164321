//! One run of a group, from its seed to its outcome.

use crate::ensure;
use crate::group::fabric::Totals;
use crate::group::process::Running;
use crate::group::scenario::GroupScenario;
use crate::group::tamper::Tamper;
use crate::group::world::GroupWorld;
use crate::violation::{Verdict, Violation};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use std::collections::BTreeSet;
use std::fmt;

/// Longest time to send all messages on a calm network.
const LOAD_MAX: Nanos = 60 * SECOND;
/// Longest time from the acceptance of the last message to its delivery, on a calm network.
const DELIVERY_MAX: Nanos = 2 * SECOND;
/// Most repairs, in addition to [`REPAIRS_EACH`] per lost datagram, or frame that a loss held up:
/// late frames are asked for, too.
const REPAIRS: u64 = 3_000;
/// See [`REPAIRS`].
const REPAIRS_EACH: u64 = 10;
/// Duration of the idle phase.
const IDLE: Nanos = 2 * SECOND;

/// Outcome of a run without violations.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct GroupOutcome {
    pub views: u64,
    pub delivered: u64,
    pub direct: u64,
    pub states: u64,
    pub frames: u64,
    pub lost: u64,
    pub repairs: u64,
    pub refused_frames: u64,
    pub refused_sends: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub partitions: u64,
    pub leaves: u64,
    pub gentle: u64,
    pub answers: u64,
    pub early: u64,
    pub replaced: u64,
    pub elapsed: Nanos,
    pub longest_agreement: Nanos,
}

impl GroupOutcome {
    /// Adds the outcome of another run.
    pub fn add(&mut self, other: &Self) {
        self.views += other.views;
        self.delivered += other.delivered;
        self.direct += other.direct;
        self.states += other.states;
        self.frames += other.frames;
        self.lost += other.lost;
        self.repairs += other.repairs;
        self.refused_frames += other.refused_frames;
        self.refused_sends += other.refused_sends;
        self.crashes += other.crashes;
        self.hangs += other.hangs;
        self.partitions += other.partitions;
        self.leaves += other.leaves;
        self.gentle += other.gentle;
        self.answers += other.answers;
        self.early += other.early;
        self.replaced += other.replaced;
        self.elapsed += other.elapsed;
        self.longest_agreement = self.longest_agreement.max(other.longest_agreement);
    }
}

/// A run with a violation.
#[derive(Debug)]
pub struct GroupFailure {
    /// Seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// Scenario of the run.
    pub scenario: String,
    /// Latest events.
    pub history: String,
}

impl fmt::Display for GroupFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, violation, scenario, history } = self;
        writeln!(formatter, "{history}\n{scenario}\nseed {seed}: {violation}")?;
        write!(formatter, "again: SEED={seed} cargo test -p lanecast-sim --test all groups")
    }
}

/// Runs `seed`.
///
/// # Errors
/// The violation, with the scenario and the latest events.
pub fn run(seed: u64) -> Result<GroupOutcome, Box<GroupFailure>> {
    run_scenario(GroupScenario::draw(seed), Tamper::None)
}

/// Runs `seed`, with clocks that are wrong and members that have one name.
///
/// # Errors
/// The violation, with the scenario and the latest events.
pub fn run_namesakes(seed: u64) -> Result<GroupOutcome, Box<GroupFailure>> {
    run_scenario(GroupScenario::namesakes(seed), Tamper::None)
}

/// Runs the scenario of `seed` in which directions between processes are missing for a while.
///
/// # Errors
/// The violation, with the scenario and the latest events.
pub fn run_missing_links(seed: u64) -> Result<GroupOutcome, Box<GroupFailure>> {
    run_scenario(GroupScenario::missing_links(seed), Tamper::None)
}

/// Runs a scenario, with a defect put in on purpose.
///
/// # Errors
/// The violation, with the scenario and the latest events.
pub fn run_scenario(
    scenario: GroupScenario,
    tamper: Tamper,
) -> Result<GroupOutcome, Box<GroupFailure>> {
    let seed = scenario.seed;
    let mut world = GroupWorld::new(scenario);
    world.tamper = tamper;
    let mut run = GroupRun { world, agreement: 0 };
    run.run().map_err(|violation| {
        let scenario = format!("{:#?}", run.world.scenario);
        let history = format!("{}\n{}", run.world.fabric.history, run.world.state());
        Box::new(GroupFailure { seed, violation, scenario, history })
    })
}

/// Frames that each member sent until all `count` members, which start at once, were in one view,
/// on average, and the time that it took.
///
/// # Errors
/// The violation, in words.
pub fn crowd(seed: u64, count: usize) -> Verdict<(f64, Nanos)> {
    let mut run =
        GroupRun { world: GroupWorld::new(GroupScenario::crowd(seed, count)), agreement: 0 };
    run.wait("all in one view", 10 * SECOND, |world| {
        let live = world.live();
        live.len() == count && world.oracle.agrees(&live)
    })?;
    Ok((run.world.fabric.totals.frames as f64 / count as f64, run.world.fabric.elapsed()))
}

/// Time until all `count` members of one view have left, which all want at once.
///
/// # Errors
/// The violation, in words.
pub fn exodus(seed: u64, count: usize) -> Verdict<Nanos> {
    let mut run =
        GroupRun { world: GroupWorld::new(GroupScenario::crowd(seed, count)), agreement: 0 };
    run.world.run_until(run.world.fabric.now + MILLISECOND)?;
    run.agree()?;
    let began = run.world.fabric.now;
    run.all_leave()?;
    Ok(run.world.fabric.now - began)
}

/// Time from a crash under load, which the others' systems tell them within `2 * look`, until all
/// survivors have the next view.
///
/// # Errors
/// The violation, in words.
pub fn crash_under_load(seed: u64, look: Nanos) -> Verdict<Nanos> {
    const CRASHES: Nanos = 400 * MILLISECOND;
    let scenario = GroupScenario::crash_under_load(seed, CRASHES, look);
    let mut run = GroupRun { world: GroupWorld::new(scenario), agreement: 0 };
    let began = run.world.fabric.now;
    run.world.run_until(began + CRASHES - 60 * MILLISECOND)?;
    let members = run.world.live();
    ensure!(run.world.oracle.agrees(&members), "no view of all: {}", run.missing());
    run.world.run_until(began + CRASHES)?;
    let live = run.world.live();
    let (survivors, gone): (Vec<_>, Vec<_>) = members.iter().partition(|id| live.contains(id));
    run.wait("a view of the survivors", SECOND, |world| {
        survivors.iter().all(|id| {
            let view = world.oracle.log(*id).view.as_ref();
            view.is_some_and(|view| gone.iter().all(|gone| !view.contains(*gone)))
        })
    })?;
    Ok(run.world.fabric.now - began - CRASHES)
}

struct GroupRun {
    world: GroupWorld,
    agreement: Nanos,
}

impl GroupRun {
    fn run(&mut self) -> Verdict<GroupOutcome> {
        let healed = self.world.fabric.now + self.world.scenario.healed;
        self.world.run_until(healed)?;
        self.world.end_faults()?;
        let names = self.names();
        self.agree()?;
        let (one_each, live) = (self.names(), self.world.live());
        ensure!(
            live.len() == one_each.len() && one_each == names,
            "of {names:?} there are {:?}",
            self.world.live_names()
        );
        self.wait("all sent", LOAD_MAX, GroupWorld::has_sent_all)?;
        self.all_receive_the_last()?;
        self.idle()?;
        let Totals { repairs, lost, held, .. } = self.world.fabric.totals;
        let most = REPAIRS + REPAIRS_EACH * (lost + held);
        ensure!(
            repairs <= most,
            "{repairs} repairs, but {most} were allowed for {lost} losses and {held} late frames"
        );
        if self.world.scenario.seed.is_multiple_of(4) {
            self.all_leave()?;
        }
        Ok(self.outcome())
    }

    /// Names of the live members, each once.
    fn names(&self) -> BTreeSet<String> {
        self.world.live_names().into_iter().map(str::to_owned).collect()
    }

    /// Runs until the condition holds, for a limited time.
    fn wait(
        &mut self,
        what: &str,
        most: Nanos,
        mut holds: impl FnMut(&GroupWorld) -> bool,
    ) -> Verdict {
        let until = self.world.fabric.now + most;
        let mut step = MILLISECOND / 4;
        while !holds(&self.world) {
            let now = self.world.fabric.now;
            ensure!(now < until, "not {what} within {} ms: {}", most / MILLISECOND, self.missing());
            self.world.run_until(now + step)?;
            step = (step * 2).min(5 * MILLISECOND);
        }
        Ok(())
    }

    fn missing(&self) -> String {
        self.world.oracle.missing(&self.world.live()).join("; ")
    }

    /// Waits until all that run are in one view, and all that left are gone.
    fn agree(&mut self) -> Verdict {
        let (began, most) = (self.world.fabric.now, self.world.scenario.agreement_time());
        self.wait("one view of all", most, |world| {
            let processes = world.slots.iter().filter_map(|slot| slot.process.as_ref());
            let mut leaving = processes.filter(|process| process.leaves);
            world.oracle.agrees(&world.live())
                && leaving.all(|process| process.running == Running::HasLeft)
        })?;
        self.agreement = self.world.fabric.now - began;
        Ok(())
    }

    /// Every member sends a last message in each order, and all receive everything.
    fn all_receive_the_last(&mut self) -> Verdict {
        for total in [100, 0] {
            for slot in 0..self.world.slots.len() {
                let until = self.world.fabric.now + LOAD_MAX;
                while self.is_live(slot) && !self.world.send(slot, total, 0)? {
                    let now = self.world.fabric.now;
                    ensure!(now < until, "m{slot} may not send within {} s", LOAD_MAX / SECOND);
                    self.world.run_until(now + MILLISECOND)?;
                }
            }
        }
        self.wait("all delivered", DELIVERY_MAX, |world| {
            let live = world.live();
            world.oracle.agrees(&live) && world.oracle.missing(&live).is_empty()
        })?;
        self.wait("all stable", DELIVERY_MAX, |world| {
            let mut processes = world.slots.iter().filter_map(|slot| slot.process.as_ref());
            processes.all(|process| {
                let sent = &world.oracle.log(process.id).truth.to_all;
                let last = sent.count().checked_sub(1).and_then(|last| sent.get(last));
                !process.is_live()
                    || last.is_none_or(|last| process.member.stable() > last.sequence)
            })
        })
    }

    fn is_live(&self, slot: usize) -> bool {
        self.world.slots[slot].process.as_ref().is_some_and(|process| process.is_live())
    }

    fn frames(&self) -> Vec<u64> {
        let slots = self.world.slots.iter();
        let processes = slots.map(|slot| slot.process.as_ref());
        processes.map(|process| process.map_or(0, |process| process.frames.iter().sum())).collect()
    }

    /// Checks that idle traffic is heartbeats only, and that the view stays.
    fn idle(&mut self) -> Verdict {
        let now = self.world.fabric.now;
        self.world.run_until(now + SECOND)?;
        let (before, views) = (self.frames(), self.world.oracle.installed);
        self.world.run_until(now + SECOND + IDLE)?;
        let most = 2 * IDLE / self.world.scenario.settings.heartbeat + 10;
        for (slot, (now, then)) in self.frames().iter().zip(&before).enumerate() {
            let sent = now - then;
            ensure!(sent <= most, "m{slot} sent {sent} frames while idle; {most} were allowed");
        }
        let more = self.world.oracle.installed - views;
        ensure!(more == 0, "{more} views were installed without a cause");
        Ok(())
    }

    /// All leave at once, and are gone soon.
    fn all_leave(&mut self) -> Verdict {
        for slot in 0..self.world.slots.len() {
            self.world.leave(slot)?;
        }
        let most = self.world.scenario.agreement_time();
        self.wait("all gone", most, |world| {
            let mut processes = world.slots.iter().filter_map(|slot| slot.process.as_ref());
            processes.all(|process| process.running == Running::HasLeft)
        })
    }

    fn outcome(&self) -> GroupOutcome {
        let (oracle, totals) = (&self.world.oracle, &self.world.fabric.totals);
        GroupOutcome {
            views: oracle.installed,
            delivered: oracle.delivered,
            direct: oracle.direct,
            states: oracle.states,
            frames: totals.frames,
            lost: totals.lost,
            repairs: totals.repairs,
            refused_frames: totals.refused_frames,
            refused_sends: totals.refused_sends,
            crashes: totals.crashes,
            hangs: totals.hangs,
            partitions: totals.partitions,
            leaves: totals.leaves,
            gentle: u64::from(self.world.scenario.is_gentle),
            answers: totals.answers,
            early: totals.early,
            replaced: totals.replaced,
            elapsed: self.world.fabric.elapsed(),
            longest_agreement: self.agreement,
        }
    }
}
