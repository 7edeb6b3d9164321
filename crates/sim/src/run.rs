//! One run, from its seed to its outcome.

use crate::checked_receiver::CheckedReceiver;
use crate::ensure;
use crate::ledger::Ledger;
use crate::scenario::{Ending, Focus, Scenario};
use crate::subscriber::Subscriber;
use crate::traffic::Traffic;
use crate::violation::{Verdict, Violation};
use crate::world::World;
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_transport::CloseReason;
use lanecast_wire::net::Kind;
use std::fmt;

/// Longest time to publish and read everything.
const LOAD_MAX: Nanos = 120 * SECOND;
/// Longest time of joining, repairing and ending, in addition to the configured times.
const SLACK: Nanos = 5 * SECOND;
/// Duration of the idle phase.
const IDLE: Nanos = 2 * SECOND;

/// Most NAKs per missing datagram, in addition to one per interval: each gap is requested every
/// 10 ms in the end, together with gaps for which half of that is over.
const NAKS_EACH: u64 = 6;
/// See [`NAKS_EACH`].
const NAK_INTERVAL: Nanos = 5 * MILLISECOND;

/// Outcome of a run without violations.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Outcome {
    pub read: u64,
    pub lost: u64,
    pub overtaken: u64,
    pub repairs: u64,
    pub naks: u64,
    pub refusals: u64,
    pub gentle: u64,
    pub joined_again: u64,
    pub revived: u64,
    pub closed: u64,
    pub died: u64,
    pub evicted: u64,
    pub gave_up: u64,
    pub recovered: u64,
    pub rebuilt: u64,
    pub parity: u64,
    pub overflowed: u64,
    pub subscribers: u64,
    pub timed_out: u64,
    pub late_topics: u64,
    pub longest_gap: Nanos,
    pub elapsed: Nanos,
}

impl Outcome {
    /// Adds the outcome of another run.
    pub fn add(&mut self, other: &Self) {
        self.read += other.read;
        self.lost += other.lost;
        self.overtaken += other.overtaken;
        self.repairs += other.repairs;
        self.naks += other.naks;
        self.refusals += other.refusals;
        self.gentle += other.gentle;
        self.joined_again += other.joined_again;
        self.revived += other.revived;
        self.closed += other.closed;
        self.died += other.died;
        self.evicted += other.evicted;
        self.gave_up += other.gave_up;
        self.recovered += other.recovered;
        self.rebuilt += other.rebuilt;
        self.parity += other.parity;
        self.overflowed += other.overflowed;
        self.subscribers += other.subscribers;
        self.timed_out += other.timed_out;
        self.late_topics += other.late_topics;
        self.longest_gap = self.longest_gap.max(other.longest_gap);
        self.elapsed += other.elapsed;
    }
}

/// A run with a violation.
#[derive(Debug)]
pub struct Failure {
    /// Part that the run stressed.
    pub focus: Focus,
    /// Seed.
    pub seed: u64,
    /// The violation.
    pub violation: Violation,
    /// Scenario of the run.
    pub scenario: String,
    /// Latest events.
    pub history: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { focus, seed, violation, scenario, history } = self;
        let test = match focus {
            Focus::Anything => "seeds::many_runs",
            Focus::LateTopics => "seeds::topics_that_come_late",
            Focus::Resumption => "seeds::subscribers_that_resume",
        };
        writeln!(formatter, "{scenario}\n{history}")?;
        writeln!(formatter, "seed {seed}: {violation}")?;
        write!(formatter, "again: SEED={seed} cargo test -p lanecast-sim --test all {test}")
    }
}

/// Runs `seed` in a scenario that stresses `focus`.
///
/// # Errors
/// The violation, with the scenario and the latest events.
pub fn run(focus: Focus, seed: u64) -> Result<Outcome, Box<Failure>> {
    let mut run = Run { world: World::new(Scenario::draw(focus, seed)) };
    run.run().map_err(|violation| {
        let scenario = format!("{:#?}", run.world.scenario);
        let history = run.world.fabric.history.to_string();
        Box::new(Failure { focus, seed, violation, scenario, history })
    })
}

struct Run {
    world: World,
}

impl Run {
    fn run(&mut self) -> Verdict<Outcome> {
        let at_once = self.world.scenario.ending == Ending::CloseAtOnce;
        let healed = self.world.fabric.now + self.world.scenario.healed;
        self.wait("published", LOAD_MAX, |world| {
            world.publisher.has_said_all() && (at_once || world.fabric.now >= healed)
        })?;
        if !at_once {
            self.all_receive_the_last()?;
            self.check_roster()?;
            self.idle()?;
        }
        self.end()?;
        self.check_all()?;
        Ok(self.outcome())
    }

    /// Runs until the condition holds, for a limited time.
    fn wait(
        &mut self,
        what: &str,
        most: Nanos,
        mut holds: impl FnMut(&mut World) -> bool,
    ) -> Verdict {
        let until = self.world.fabric.now + most;
        let mut step = 50_000;
        while !holds(&mut self.world) {
            let now = self.world.fabric.now;
            let state = || self.world.state();
            ensure!(now < until, "not {what} within {} ms: {}", most / MILLISECOND, state());
            self.world.run_until(now + step)?;
            step = (step * 2).min(5 * MILLISECOND);
        }
        Ok(())
    }

    fn patience(&self) -> Nanos {
        let plans = self.world.scenario.subscribers.iter();
        let longest = plans.map(|plan| plan.receiver.recovery.max(plan.receiver.liveness)).max();
        longest.unwrap_or(0) * 2 + SLACK
    }

    /// Checks that all running subscribers join and receive everything up to a last message.
    fn all_receive_the_last(&mut self) -> Verdict {
        let patience = self.patience();
        self.wait("all joined", patience, |world| {
            let (session, truths) = (world.publisher.session, &world.truths);
            let mut attached = world.subscribers.iter().filter(|s| s.is_attached());
            attached.all(|subscriber| {
                let checked = subscriber.checked(session);
                checked.is_some_and(|checked| checked.has_joined(&truths[session]))
            })
        })?;
        let mut verdict = Ok(());
        self.wait("all said", LOAD_MAX, |world| {
            let truth = &mut world.truths[world.publisher.session];
            match world.publisher.publish_last(&mut world.fabric, truth) {
                Ok(said) => said,
                Err(violation) => {
                    verdict = Err(violation);
                    true
                }
            }
        })?;
        verdict?;
        self.wait("all accounted for", LOAD_MAX, |world| {
            let (session, truths) = (world.publisher.session, &world.truths);
            let mut attached = world.subscribers.iter().filter(|s| s.is_attached());
            let drained = world.publisher.sender.as_ref().is_none_or(|s| s.is_drained());
            drained
                && attached.all(|subscriber| {
                    let checked = subscriber.checked(session);
                    checked.is_some_and(|checked| checked.is_whole(&truths[session]))
                })
        })
    }

    /// Checks the publisher's events up to now, and that no report speaks of unread messages if
    /// its receivers have read everything.
    fn check_roster(&mut self) -> Verdict {
        let publisher = &mut self.world.publisher;
        let Some(sender) = &mut publisher.sender else { return Ok(()) };
        publisher.roster.poll(sender, &self.world.scenario.sender)?;
        let report = sender.subscribers().completion();
        let (timed_out, drained) = (report.timed_out(), sender.is_drained());
        ensure!(!timed_out || !drained, "all is read, but the report says: {report}");
        let told = report.complete() + report.incomplete().len() + report.omitted();
        ensure!(told >= sender.receivers(), "the report leaves out receivers: {report}");
        Ok(())
    }

    /// Checks that idle traffic is low.
    fn idle(&mut self) -> Verdict {
        let now = self.world.fabric.now;
        self.world.run_until(now + SECOND)?;
        let traffic = |world: &World| -> Vec<Traffic> {
            let subscribers = world.subscribers.iter().map(|s| s.traffic);
            std::iter::once(world.publisher.traffic).chain(subscribers).collect()
        };
        let before = traffic(&self.world);
        self.world.run_until(now + SECOND + IDLE)?;
        let sender = &self.world.scenario.sender;
        let (beats, statuses) = (SECOND / sender.heartbeat, 10 * SECOND / sender.liveness);
        let count = self.world.subscribers.len() as u64;
        // A heartbeat for each receiver and an echo for each status, with a margin.
        let most = [2 * count * (beats + 2 * statuses) + 10, 2 * statuses + 2 * beats + 10];
        for (number, (now, then)) in traffic(&self.world).iter().zip(&before).enumerate() {
            now.check_idle(then, IDLE, most[usize::from(number > 0)])?;
        }
        Ok(())
    }

    /// Ends the run by its scenario, and waits until all actors are idle.
    fn end(&mut self) -> Verdict {
        let now = self.world.fabric.now;
        let healed = self.world.scenario.healed.saturating_sub(self.world.elapsed());
        let patience = self.patience() + healed;
        let ending = self.world.scenario.ending;
        match ending {
            Ending::Close | Ending::CloseAtOnce => self.close(now)?,
            Ending::Crash => self.world.crash_publisher(),
            Ending::Leave => {
                let World { fabric, subscribers, truths, .. } = &mut self.world;
                subscribers.iter_mut().try_for_each(|s| s.leave(fabric, truths))?;
            }
        }
        self.world.announces = ending == Ending::Leave;
        self.wait("all over", patience + LOAD_MAX / 4, |world| {
            world.subscribers.iter().all(|subscriber| subscriber.checked_receivers.is_empty())
        })?;
        if let Ending::Close | Ending::CloseAtOnce | Ending::Crash = ending {
            return self.wait("silent", patience, |world| world.is_silent());
        }
        self.wait("all gone", patience, |world| {
            world.publisher.sender.as_ref().is_none_or(|sender| sender.receivers() == 0)
        })?;
        self.check_roster()
    }

    fn close(&mut self, now: Nanos) -> Verdict {
        let World { publisher, fabric, truths, .. } = &mut self.world;
        truths[publisher.session].is_closed = true;
        if let Some(sender) = &mut publisher.sender {
            sender.close(now);
        }
        publisher.poll(fabric)
    }

    fn check_all(&self) -> Verdict {
        let world = &self.world;
        let rate = world.scenario.repair_rate();
        let burst = (rate / 500).max(1 << 16) + 65_507;
        let elapsed = world.fabric.now - world.publisher.began;
        world.publisher.traffic.check_repairs(elapsed, rate, burst)?;
        for subscriber in &world.subscribers {
            self.check_naks(subscriber)?;
            subscriber.all().try_for_each(|checked| self.check_receiver(checked))?;
        }
        Ok(())
    }

    /// Checks that NAKs are in proportion to the missing datagrams and their recovery time.
    fn check_naks(&self, subscriber: &Subscriber) -> Verdict {
        let counters = subscriber.all().map(|checked| checked.receiver.counters());
        // Datagrams dropped because the reorder buffer was full count as missing again.
        let each =
            counters.map(|counts| counts.recovered + counts.lost_datagrams + counts.overflowed);
        let missing: u64 = each.sum();
        let most = 100 + NAKS_EACH * missing + self.world.elapsed() / NAK_INTERVAL;
        let naks = subscriber.traffic.naks();
        ensure!(naks <= most, "{naks} NAKs, but {most} were allowed for {missing} datagrams");
        Ok(())
    }

    fn check_receiver(&self, checked: &CheckedReceiver) -> Verdict {
        let scenario = &self.world.scenario;
        if !scenario.is_gentle {
            return Ok(());
        }
        let lost: u64 = checked.ledgers.iter().map(Ledger::lost).sum();
        ensure!(lost == 0, "{lost} messages were lost without need");
        ensure!(checked.revivals == 0, "told that the publisher died, but it goes on");
        let truth = &self.world.truths[checked.session];
        match checked.left {
            Some((_, CloseReason::Died)) => {
                let crashed = scenario.ending == Ending::Crash;
                let joined = checked.ledgers.iter().any(Ledger::has_left);
                ensure!(crashed || !joined, "told that the publisher died, but it has not");
            }
            Some((_, CloseReason::Closed)) => ensure!(truth.is_closed, "not closed"),
            Some((_, why)) => ensure!(false, "the end was {why:?}, which cannot be"),
            None => {}
        }
        Ok(())
    }

    fn outcome(&mut self) -> Outcome {
        let mut outcome = Outcome::default();
        for subscriber in &self.world.subscribers {
            outcome.naks += subscriber.traffic.frames(Kind::Nak);
            for (number, checked) in subscriber.all().enumerate() {
                outcome.joined_again += u64::from(number > 0 && !checked.ledgers.is_empty());
                outcome.joined_again += checked.revivals;
                outcome.revived += checked.revivals;
                let counters = checked.receiver.counters();
                outcome.gave_up += counters.lost_datagrams;
                outcome.recovered += counters.recovered;
                outcome.rebuilt += counters.rebuilt;
                outcome.overflowed += counters.overflowed;
                outcome.longest_gap = outcome.longest_gap.max(counters.recovery_max);
                outcome.read += checked.ledgers.iter().map(Ledger::read).sum::<u64>();
                let topics = &self.world.scenario.topics;
                let is_late = |it: &&Ledger| it.read() > 0 && topics[it.topic()].1 > 0;
                outcome.late_topics += checked.ledgers.iter().filter(is_late).count() as u64;
                outcome.overtaken += checked.ledgers.iter().map(Ledger::overtaken).sum::<u64>();
                outcome.lost += checked.ledgers.iter().map(Ledger::lost).sum::<u64>();
                match checked.left {
                    Some((_, CloseReason::Closed)) => outcome.closed += 1,
                    Some((_, CloseReason::Died)) => outcome.died += 1,
                    Some((_, CloseReason::Evicted)) => outcome.evicted += 1,
                    Some((_, _)) | None => {}
                }
            }
        }
        (outcome.subscribers, outcome.timed_out) = self.world.publisher.roster.totals();
        outcome.parity = self.world.publisher.traffic.frames(Kind::Parity);
        outcome.repairs = self.world.publisher.traffic.repairs();
        outcome.gentle = u64::from(self.world.scenario.is_gentle);
        outcome.refusals = self.world.publisher.refusals;
        outcome.elapsed = self.world.elapsed();
        outcome
    }
}
