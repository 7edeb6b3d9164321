//! Exhaustive exploration of small scopes: every order of deliveries, with a few losses, a crash or
//! a partition, and messages sent at any moment.
//!
//! Time passes only when no frame is in flight, except for `late` times. A state that was seen
//! before is not explored again; it is known by its members, frames and budgets.

use crate::digest::hash;
use crate::ensure;
use crate::group::event::OwnedEvent;
use crate::group::oracle::Oracle;
use crate::group::outlet::Collector;
use crate::part::Part;
use crate::payload::Sizes;
use crate::rng::SimRng;
use crate::violation::{Verdict, Violation};
use lanecast_membership::{Departure, GroupSettings, Member, MemberId, MemberInfo, Order};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use std::collections::HashSet;
use std::rc::Rc;

/// Most steps to bring a state to its end, once its choices are exhausted.
const TAIL_MAX: u32 = 20_000;

/// Budgets of an exploration.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct Scope {
    /// Members.
    pub members: usize,
    /// Messages, sent by the members in turn, alternately in total and in the sender's order.
    pub messages: u8,
    /// Frames that may be lost.
    pub losses: u8,
    /// Members that may crash; all others are told at once.
    pub crashes: u8,
    /// Partitions of the first member from the others, who are told; each heals at any later time.
    pub partitions: u8,
    /// Ticks with frames in flight.
    pub late: u8,
    /// Ticks in all, before the state goes to its end without choices.
    pub ticks: u8,
    /// Most states to explore.
    pub states: usize,
}

/// Findings of an exploration without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Explored {
    /// Different states.
    pub states: usize,
    /// States that went to their end.
    pub ends: usize,
    /// Different states in which a member has installed another view than that of the beginning.
    pub changes: usize,
    /// Whether no state was left out.
    pub is_complete: bool,
}

/// A step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Deliver(usize),
    Lose(usize),
    Tick,
    Send,
    Crash(usize),
    Cut,
    Heal,
}

/// In flight to a member.
#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
enum Flying {
    Frame { to: usize, from: usize, bytes: Rc<[u8]> },
    Gone { to: usize, id: MemberId },
}

impl Flying {
    const fn to(&self) -> usize {
        match *self {
            Self::Frame { to, .. } | Self::Gone { to, .. } => to,
        }
    }
}

/// Steps of a path, the latest first.
#[derive(Debug)]
struct Path(Option<Rc<Path>>, String);

#[derive(Clone, Debug)]
struct State {
    now: Nanos,
    members: Vec<Option<Part<Member>>>,
    flying: Vec<Flying>,
    oracle: Part<Oracle>,
    left: Scope,
    sent: u8,
    is_cut: bool,
    path: Option<Rc<Path>>,
}

/// Explores `scope` from a view of all members.
///
/// # Errors
/// The violation, with the steps that lead to it.
pub fn explore(scope: Scope) -> Verdict<Explored> {
    let start = State::agreed(scope)?;
    let (mut seen, mut explored) = (HashSet::new(), Explored::default());
    seen.insert(start.digest());
    let installed = start.oracle.installed;
    let mut stack = vec![start];
    explored.is_complete = true;
    while let Some(state) = stack.pop() {
        let choices = state.choices();
        if choices.is_empty() {
            explored.ends += 1;
            state.finish()?;
            continue;
        }
        for choice in choices {
            let mut next = state.clone();
            next.step(choice).map_err(|violation| next.told(&violation))?;
            if seen.len() >= scope.states {
                explored.is_complete = false;
                continue;
            }
            if !seen.insert(next.digest()) {
                continue;
            }
            explored.changes += usize::from(next.oracle.installed > installed);
            stack.push(next);
        }
    }
    explored.states = seen.len();
    Ok(explored)
}

/// Settings that keep frames apart from the change of the view rare.
fn settings() -> GroupSettings {
    GroupSettings {
        heartbeat: SECOND,
        hang_timeout: 5 * SECOND,
        join_timeout: 50 * MILLISECOND,
        gather: MILLISECOND,
        window: 64 << 10,
        ..GroupSettings::default()
    }
}

impl State {
    /// All members in one view, and nothing in flight.
    fn agreed(scope: Scope) -> Verdict<Self> {
        let mut oracle = Oracle::default();
        let mut members = Vec::new();
        let now = SECOND;
        for number in 0..scope.members {
            let id = MemberId(number as u64 + 1);
            let info = MemberInfo { id, incarnation: id.0, name: format!("m{number}"), port: 0 };
            oracle.add(info.clone(), Sizes::Even(8), false);
            let member = Member::new(settings(), info, "explored", id.0, now);
            members.push(Some(Part::new(member.map_err(|error| Violation(error.to_string()))?)));
        }
        let mut state = Self {
            now,
            members,
            flying: Vec::new(),
            oracle: Part::new(oracle),
            left: scope,
            sent: 0,
            is_cut: false,
            path: None,
        };
        state.run_to_end("agreed at first")?;
        state.path = None;
        Ok(state)
    }

    fn live(&self) -> Vec<MemberId> {
        self.members.iter().flatten().map(|member| member.me().id).collect()
    }

    fn told(&self, violation: &Violation) -> Violation {
        let (mut steps, mut path) = (Vec::new(), self.path.clone());
        while let Some(step) = path {
            steps.push(step.1.clone());
            path = step.0.clone();
        }
        steps.reverse();
        Violation(format!("{}\n{violation}", steps.join("\n")))
    }

    fn digest(&self) -> u64 {
        let Self { now, members, flying, oracle, left, sent, is_cut, path: _ } = self;
        hash(&(now, members, flying, oracle, left, sent, is_cut))
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        if self.left.ticks == 0 && self.flying.is_empty() {
            return choices;
        }
        for (number, flying) in self.flying.iter().enumerate() {
            // Equal frames to one member are one choice.
            if number > 0 && self.flying[number - 1] == *flying {
                continue;
            }
            choices.push(Choice::Deliver(number));
            if self.left.losses > 0 && matches!(flying, Flying::Frame { .. }) {
                choices.push(Choice::Lose(number));
            }
        }
        if self.left.ticks > 0 && (self.flying.is_empty() || self.left.late > 0) {
            choices.push(Choice::Tick);
        }
        if self.sent < self.left.messages {
            choices.push(Choice::Send);
        }
        if self.left.crashes > 0 {
            let there = |number: &usize| self.members[*number].is_some();
            choices.extend((0..self.members.len()).filter(there).map(Choice::Crash));
        }
        if self.is_cut {
            choices.push(Choice::Heal);
        } else if self.left.partitions > 0 {
            choices.push(Choice::Cut);
        }
        choices
    }

    fn step(&mut self, choice: Choice) -> Verdict {
        let told = match choice {
            Choice::Deliver(number) | Choice::Lose(number) => {
                format!("{choice:?}: {}", describe(&self.flying[number]))
            }
            _ => format!("{choice:?} at {} us", self.now / 1_000),
        };
        self.path = Some(Rc::new(Path(self.path.take(), told)));
        match choice {
            Choice::Deliver(number) => {
                let flying = self.flying.remove(number);
                let to = flying.to();
                self.call(to, |member, now, out| match &flying {
                    Flying::Frame { bytes, .. } => member.on_frame(now, bytes, out),
                    Flying::Gone { id, .. } => {
                        member.on_peer_gone(now, *id, Departure::Crashed, out);
                    }
                })
            }
            Choice::Lose(number) => {
                self.left.losses -= 1;
                self.flying.remove(number);
                Ok(())
            }
            Choice::Tick => {
                self.left.ticks -= 1;
                self.left.late -= u8::from(!self.flying.is_empty());
                self.tick()
            }
            Choice::Send => self.send(),
            Choice::Crash(number) => {
                self.left.crashes -= 1;
                let gone = self.members[number].take();
                // Frames that it has sent are under way still.
                self.flying.retain(|flying| flying.to() != number);
                let Some(gone) = gone else { return Ok(()) };
                let others = (0..self.members.len()).filter(|to| self.members[*to].is_some());
                let id = gone.me().id;
                self.flying.extend(others.map(|to| Flying::Gone { to, id }));
                self.flying.sort();
                Ok(())
            }
            Choice::Cut => {
                self.left.partitions -= 1;
                self.is_cut = true;
                self.flying.retain(|flying| match flying {
                    Flying::Frame { to, from, .. } => (*to == 0) == (*from == 0),
                    Flying::Gone { .. } => true,
                });
                // The connections between the sides break.
                for to in 0..self.members.len() {
                    let others = self.members.iter().enumerate();
                    let cut = others.filter(|(other, _)| (*other == 0) != (to == 0));
                    let ids = cut.filter_map(|(_, member)| Some(member.as_ref()?.me().id));
                    self.flying.extend(ids.map(|id| Flying::Gone { to, id }));
                }
                self.flying.sort();
                Ok(())
            }
            Choice::Heal => {
                self.is_cut = false;
                Ok(())
            }
        }
    }

    /// Time goes on to the next tick of any member.
    fn tick(&mut self) -> Verdict {
        let at = self.members.iter().flatten().map(|member| member.next_tick()).min();
        self.now = self.now.max(at.unwrap_or(self.now));
        for number in 0..self.members.len() {
            let due = self.members[number].as_ref().is_some_and(|m| m.next_tick() <= self.now);
            if due {
                self.call(number, |member, now, out| member.on_tick(now, out))?;
            }
        }
        Ok(())
    }

    /// The next member in turn sends its message, or forgoes it if it may not.
    fn send(&mut self) -> Verdict {
        let number = usize::from(self.sent) % self.members.len();
        let order = if self.sent.is_multiple_of(2) { Order::Total } else { Order::Sender };
        self.sent += 1;
        let now = self.now;
        let Some(member) = &mut self.members[number] else { return Ok(()) };
        let id = member.me().id;
        let payload = self.oracle.change().log(id).truth.to_all.next_payload();
        let mut out = Collector::new(0, SimRng::new(0));
        if let Ok(sequence) = member.change().try_send(now, &payload, order, &mut out) {
            self.oracle.change().sent(id, order, sequence)?;
        }
        self.settle(number, out)
    }

    fn call(
        &mut self,
        number: usize,
        call: impl FnOnce(&mut Member, Nanos, &mut Collector),
    ) -> Verdict {
        let now = self.now;
        let Some(member) = &mut self.members[number] else { return Ok(()) };
        let mut out = Collector::new(0, SimRng::new(0));
        call(member.change(), now, &mut out);
        self.settle(number, out)
    }

    fn settle(&mut self, from: usize, out: Collector) -> Verdict {
        let Some(member) = &self.members[from] else { return Ok(()) };
        let (id, stable) = (member.me().id, member.stable());
        if let Some(path) = &self.path
            && !out.events.is_empty()
        {
            let told = |event: &OwnedEvent| match event {
                OwnedEvent::View(view, _) => format!("{id}: VIEW {}", view.id),
                event => format!("{id}: {event:?}"),
            };
            let told: Vec<_> = out.events.iter().map(told).collect();
            self.path = Some(Rc::new(Path(Some(path.clone()), told.join("; "))));
        }
        let oracle = self.oracle.change();
        oracle.events(id, &out.events)?;
        oracle.stable(id, stable)?;
        for frame in out.frames {
            for (to, member) in self.members.iter().enumerate() {
                let Some(member) = member else { continue };
                let wanted = frame.to.is_none_or(|to| to == member.me().id);
                let passes = !self.is_cut || (to == 0) == (from == 0);
                if to != from && wanted && passes {
                    self.flying.push(Flying::Frame { to, from, bytes: frame.bytes.clone() });
                }
            }
        }
        self.flying.sort();
        Ok(())
    }

    /// Goes on without choices until all agree: frames arrive in order, and nothing is lost.
    fn finish(mut self) -> Verdict {
        self.is_cut = false;
        self.run_to_end("agreed in the end").map_err(|violation| self.told(&violation))
    }

    fn run_to_end(&mut self, what: &str) -> Verdict {
        let until = self.now + 20 * SECOND;
        for _ in 0..TAIL_MAX {
            let live = self.live();
            let agrees = self.flying.is_empty() && self.oracle.agrees(&live);
            if agrees && self.oracle.missing(&live).is_empty() {
                return Ok(());
            }
            ensure!(
                self.now < until,
                "not {what}: {:?}",
                live.iter()
                    .map(|id| self.oracle.log(*id).view.as_ref().map(|view| &view.id))
                    .collect::<Vec<_>>()
            );
            if self.flying.is_empty() {
                self.step_quietly(Choice::Tick)?;
            } else {
                self.step_quietly(Choice::Deliver(0))?;
            }
        }
        Err(Violation(format!("not {what} after {TAIL_MAX} steps")))
    }

    /// A step outside of the budgets.
    fn step_quietly(&mut self, choice: Choice) -> Verdict {
        let left = self.left;
        self.left = Scope { ticks: 1, late: 1, ..left };
        let verdict = self.step(choice);
        self.left = left;
        verdict
    }
}

fn describe(flying: &Flying) -> String {
    match flying {
        Flying::Frame { to, from, bytes } => {
            let kind = bytes.get(1).copied().unwrap_or_default();
            format!("{} of {from} to {to}", crate::group::note::kind(kind))
        }
        Flying::Gone { to, id } => format!("word to {to} that {id} is gone"),
    }
}
