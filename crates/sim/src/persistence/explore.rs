//! Exhaustive exploration of small scopes: every order of deliveries and synchronizations, with a
//! few crashes and stores that lose their data, and messages sent at any moment.
//!
//! Frames of one sender to one receiver keep their order. Time passes only when nothing is under
//! way. A state that was seen before is not explored again; it is known by the digests of its
//! parts.
//!
//! Parts meet in frames only, and are deterministic: the step of one part depends on its state, the
//! time and its input, whatever the others are doing. So each such step is computed once, and a
//! state of the whole is a few digests. Four more savings leave out no behaviour:
//!
//! - **A store that cannot fail any more has a fast disk.** Its frames can wait on their way, which
//!   a caller sees as it would see a slow disk.
//! - **Frames that change nothing are delivered at once.** A reply of a store that cannot fail any
//!   more: the publisher's knowledge of a store comes from that store's frames, which keep their
//!   order, so the reply would change nothing at any later moment either. Time, which could make a
//!   difference, waits until all is delivered; and a change of members, after which the publisher
//!   looks for the next one when any reply comes, happens once if one store loses its data once:
//!   other scopes go without this saving. And frames that a publisher which has crashed left under
//!   way to a store that cannot fail any more: a store takes less of an old run as it goes on,
//!   never more.
//! - **What a publisher that has crashed left under way arrives at once, or too late.** Once no
//!   store can fail any more, the next publisher's Open reaches each of them, and from then on
//!   nothing of the old run changes a store. Before that, all that the next publisher learns of a
//!   store is which runs it has promised and which members it knows, and these do not change with
//!   old messages; it counts messages only in answers to Open. So whether an old message arrives
//!   now or shortly before Open makes no difference to any part in the end: it is delivered before
//!   everything else, or never. Old frames and old messages to one store still come in any order.
//!   Members do change if a store loses its data: such scopes go without this saving.
//!
//! - **A store whose last answer was not read can wait with its next input** (a persistent set).
//!   What it does then only takes from its own ways and adds to one that is not empty, so it
//!   commutes with every step of the others, until the publisher has read the answer: one order of
//!   them is enough. That holds if no store can fail any more, and the input is none after which a
//!   store asks another one for copies.
//!
//! A test compares the ends of small scopes with and without these savings.
//!
//! A scope in which any one of several stores may fail is explored as one scope for each of them.

mod parts;

use super::collected::{FIRST_SESSION, SOURCE, TOPIC};
use super::oracle::Oracle;
use crate::digest::{digest, hash};
use crate::ensure;
use crate::part::Part;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{Source, SourceEvent, StoreLog};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::store::StoreState;
use parts::{Flying, SourceInput, Steps, StoreInput, StoreList, StorePart};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fmt;
use std::rc::Rc;

/// Most steps to bring a state to its end, once its choices are exhausted.
const TAIL_MAX: usize = 5_000;

/// Budgets of an exploration.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct StoreScope {
    /// Stores, in one group.
    pub stores: usize,
    /// Stores that the first publisher names, and those that come after it: a bit for each; 0 for
    /// all. Scopes in which they differ go without savings.
    pub lists: [u8; 2],
    /// Messages.
    pub messages: u8,
    /// The only store that may fail; `None` if any may.
    pub failing: Option<usize>,
    /// Stores that may crash, with what they have not synchronized; they come back at any time.
    pub store_crashes: u8,
    /// Stores that may lose their data.
    pub wipes: u8,
    /// Publishers that may crash; the next one starts at once.
    pub publisher_crashes: u8,
    /// Times at which requests are repeated, before the state goes to its end without choices.
    pub ticks: u8,
    /// Frames that change nothing are delivered at once, where that leaves out no behaviour.
    pub saves_idle: bool,
    /// Most states to explore.
    pub states: usize,
}

/// Findings of an exploration without violations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoresExplored {
    /// Different states.
    pub states: usize,
    /// States that went to their end.
    pub ends: usize,
    /// Ends at which all messages are stable.
    pub drained: usize,
    /// Different ends: digests of what is on the disks, and of the messages that were stable.
    pub outcomes: BTreeSet<u64>,
    /// Whether no state was left out.
    pub is_complete: bool,
}

/// The end of a state.
#[derive(Clone, Copy, Debug)]
struct End {
    is_drained: bool,
    outcome: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Deliver(usize),
    Synchronize(usize),
    Send,
    CrashStore(usize),
    Wipe(usize),
    StartStore(usize),
    CrashPublisher,
    /// Frames and messages to a store of publishers that have crashed arrive too late.
    Forget(usize),
    Tick,
}

#[derive(Clone, Debug)]
struct State {
    now: Nanos,
    stores: Vec<Part<StorePart>>,
    source: Part<Source>,
    session: u64,
    start: u64,
    bodies: Vec<Rc<[u8]>>,
    flying: Vec<Flying>,
    oracle: Part<Oracle>,
    left: StoreScope,
    saves_idle: bool,
    /// Frames and messages of publishers that have crashed are delivered before all others.
    settles_old: bool,
    path: Option<Rc<Path>>,
}

/// Steps of a path, the latest first.
#[derive(Debug)]
struct Path {
    before: Option<Rc<Path>>,
    at: Nanos,
    choice: Choice,
    delivered: Option<Flying>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.delivered {
            Some(flying) => write!(f, "deliver {flying}"),
            None => write!(f, "{:?} at {} ms", self.choice, self.at / MILLISECOND),
        }
    }
}

/// Explores `scope` from a publisher that is registered.
///
/// # Errors
/// The violation, with the steps that lead to it.
pub fn explore(scope: StoreScope) -> Verdict<StoresExplored> {
    let mut steps = Steps::default();
    let start = State::registered(scope, &mut steps)?;
    let (mut seen, mut tails) = (HashSet::new(), HashMap::new());
    let mut explored = StoresExplored { is_complete: true, ..StoresExplored::default() };
    seen.insert(start.digest());
    let mut stack = vec![start];
    while let Some(state) = stack.pop() {
        let choices = state.choices();
        if choices.is_empty() {
            let end = state.finish(&mut steps, &mut tails)?;
            explored.ends += 1;
            explored.drained += usize::from(end.is_drained);
            explored.outcomes.insert(end.outcome);
            continue;
        }
        for choice in choices {
            let mut next = state.clone();
            next.step(choice, &mut steps).map_err(|violation| next.told(&violation))?;
            next.settle(&mut steps)?;
            if seen.len() >= scope.states {
                explored.is_complete = false;
            } else if seen.insert(next.digest()) {
                stack.push(next);
            }
        }
    }
    explored.states = seen.len();
    Ok(explored)
}

impl State {
    /// The stores that the publisher names.
    fn list(&self) -> StoreList {
        let is_first = self.session == FIRST_SESSION;
        StoreList::new(self.left.lists[usize::from(!is_first)], self.stores.len())
    }

    fn registered(scope: StoreScope, steps: &mut Steps) -> Verdict<Self> {
        let stores = (0..scope.stores).map(|index| Part::new(StorePart::new(index)));
        let mut state = Self {
            now: SECOND,
            stores: stores.collect(),
            source: Part::new(
                StoreList::new(scope.lists[0], scope.stores).source(FIRST_SESSION, SECOND)?,
            ),
            session: FIRST_SESSION,
            start: 0,
            bodies: Vec::new(),
            flying: Vec::new(),
            oracle: Part::new(Oracle::default()),
            saves_idle: scope.saves_idle
                && scope.lists == [0; 2]
                && (scope.wipes == 0 || (scope.failing.is_some() && scope.wipes == 1)),
            settles_old: scope.saves_idle && scope.wipes == 0 && scope.lists == [0; 2],
            left: scope,
            path: None,
        };
        while state.go_on(steps)? {}
        ensure!(state.is_drained(), "no run is registered at first");
        state.path = None;
        Ok(state)
    }

    fn is_drained(&self) -> bool {
        self.source.is_registered() && self.source.stable() == self.source.next()
    }

    fn told(&self, violation: &Violation) -> Violation {
        let (mut steps, mut path) = (Vec::new(), self.path.as_ref());
        while let Some(step) = path {
            steps.push(step.to_string());
            path = step.before.as_ref();
        }
        steps.reverse();
        Violation(format!("{}\n{violation}", steps.join("\n")))
    }

    fn digest(&self) -> u64 {
        let Self { now, stores, source, session, start, bodies, flying, oracle, left, .. } = self;
        let left = (left.messages, left.store_crashes, left.wipes, left.publisher_crashes);
        let ticks = self.left.ticks;
        hash(&(now, stores, source, session, start, bodies, flying, oracle, left, ticks))
    }

    /// Whether a store may crash or lose its data from here on.
    fn may_fail(&self, store: usize) -> bool {
        let StoreScope { failing, store_crashes, wipes, .. } = self.left;
        store_crashes + wipes > 0 && failing.is_none_or(|it| it == store)
    }

    fn is_quiet(&self) -> bool {
        self.flying.is_empty() && !self.stores.iter().any(|part| part.log.is_pending())
    }

    /// Indexes of the frames and messages that are next on their ways.
    fn next_flying(&self) -> impl Iterator<Item = usize> {
        let ways: Vec<_> = self.flying.iter().map(Flying::way).collect();
        (0..ways.len()).filter(move |index| *index == 0 || ways[*index - 1] != ways[*index])
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let quiet = self.is_quiet();
        if self.left.ticks == 0 && quiet {
            return choices;
        }
        if let Some(store) = self.settling() {
            let is_old = |index: &usize| self.is_old(&self.flying[*index], store);
            choices.extend(self.next_flying().filter(is_old).map(Choice::Deliver));
            choices.push(Choice::Forget(store));
            return choices;
        }
        let waiting = self.waiting();
        let is_now = |index: &usize| !waiting.contains(&self.flying[*index].way().1);
        choices.extend(self.next_flying().filter(is_now).map(Choice::Deliver));
        for (index, part) in self.stores.iter().enumerate() {
            if part.store.is_none() {
                choices.push(Choice::StartStore(index));
                continue;
            }
            if part.log.is_pending() {
                choices.push(Choice::Synchronize(index));
            }
            let may_fail = self.may_fail(index);
            if may_fail && self.left.store_crashes > 0 {
                choices.push(Choice::CrashStore(index));
            }
            if may_fail && self.left.wipes > 0 {
                choices.push(Choice::Wipe(index));
            }
        }
        if self.left.messages > 0 && self.source.room(8).is_ok() {
            choices.push(Choice::Send);
        }
        if self.left.publisher_crashes > 0 {
            choices.push(Choice::CrashPublisher);
        }
        if quiet {
            choices.push(Choice::Tick);
        }
        choices
    }

    /// Whether a publisher that has crashed left this under way to a store.
    fn is_old(&self, flying: &Flying, store: usize) -> bool {
        let (from, to, _) = flying.way();
        from >= FIRST_SESSION && from != self.session && to == store as u64
    }

    /// The store that takes next, or never, what a publisher that has crashed left under way.
    fn settling(&self) -> Option<usize> {
        let stores = || 0..self.stores.len();
        let is_safe = |store| !self.may_fail(store) && self.stores[store].store.is_some();
        let has_old = |store: &usize| self.flying.iter().any(|it| self.is_old(it, *store));
        let store = stores().find(has_old)?;
        (self.settles_old && stores().all(is_safe)).then_some(store)
    }

    /// The stores whose next inputs can wait: the publisher has not read their last answers.
    fn waiting(&self) -> Vec<u64> {
        let stores = 0..self.stores.len() as u64;
        let is_safe = |(index, part): (usize, &Part<StorePart>)| {
            !self.may_fail(index) && part.store.is_some()
        };
        let is_between_stores = |it: &Flying| it.way().0 < stores.end && it.way().1 < stores.end;
        let saves = self.saves_idle
            && self.stores.iter().enumerate().all(is_safe)
            && !self.flying.iter().any(is_between_stores);
        let can_wait = |store: &u64| {
            let has_answered = self.flying.iter().any(|it| it.way().0 == *store);
            let may_copy = |it: &Flying| it.way().1 == *store && it.may_start_a_copy();
            has_answered && !self.flying.iter().any(may_copy)
        };
        stores.filter(|store| saves && can_wait(store)).collect()
    }

    /// Orders what is under way, and delivers what changes nothing.
    fn settle(&mut self, steps: &mut Steps) -> Verdict {
        // On different ways there is no order: states that differ in it only are the same.
        self.flying.sort_by_key(Flying::way);
        // The second of a way becomes the next one.
        while self.saves_idle
            && let Some(index) = self.next_idle(steps)?
        {
            self.flying.remove(index);
        }
        Ok(())
    }

    /// The next of a way that changes nothing, now or later.
    fn next_idle(&self, steps: &mut Steps) -> Verdict<Option<usize>> {
        for index in self.next_flying() {
            if self.is_idle(&self.flying[index], steps)? {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn is_idle(&self, flying: &Flying, steps: &mut Steps) -> Verdict<bool> {
        let (from, to, _) = flying.way();
        let is_from_dead = from >= FIRST_SESSION && from != self.session;
        match flying {
            Flying::Frame { bytes, .. } if to >= FIRST_SESSION => {
                let input = SourceInput::Frame { from, bytes: Rc::clone(bytes) };
                if self.may_fail(from as usize) {
                    return Ok(false);
                }
                let step =
                    steps.source(&self.source, (self.session, self.list()), self.now, &input)?;
                let says_nothing = step.sent.is_empty() && step.events.is_empty();
                Ok(says_nothing && step.part.digest() == self.source.digest())
            }
            _ if is_from_dead && !self.may_fail(to as usize) => {
                let (index, input) = (to as usize, StoreInput::Deliver(flying.clone()));
                let part = &self.stores[index];
                let step = steps.store(part, index, self.now, &input, true)?;
                let reaches_none = step.sent.iter().all(|sent| sent.way().1 == from);
                Ok(reaches_none && step.part.digest() == part.digest())
            }
            _ => Ok(false),
        }
    }

    fn step(&mut self, choice: Choice, steps: &mut Steps) -> Verdict {
        let delivered = match choice {
            Choice::Deliver(index) => Some(self.flying.remove(index)),
            _ => None,
        };
        let (before, at) = (self.path.take(), self.now);
        self.path = Some(Rc::new(Path { before, at, choice, delivered: delivered.clone() }));
        match choice {
            Choice::Deliver(_) => match delivered {
                Some(flying) => self.deliver(flying, steps),
                None => Ok(()),
            },
            Choice::Synchronize(index) => self.store(index, &StoreInput::Synchronize, steps),
            Choice::Send => {
                self.left.messages -= 1;
                self.send(steps)
            }
            Choice::CrashStore(index) => {
                self.left.store_crashes -= 1;
                self.stop_store(index, &StoreInput::Crash, steps)
            }
            Choice::Wipe(index) => {
                self.left.wipes -= 1;
                self.stop_store(index, &StoreInput::Wipe, steps)
            }
            Choice::StartStore(index) => self.store(index, &StoreInput::Start, steps),
            Choice::CrashPublisher => {
                self.left.publisher_crashes -= 1;
                self.session += 1;
                self.source = Part::new(self.list().source(self.session, self.now)?);
                self.bodies.clear();
                // What it has sent is under way still; what was sent to it is lost.
                self.flying.retain(|flying| flying.way().1 < FIRST_SESSION);
                self.source(&SourceInput::Tick, steps)
            }
            Choice::Forget(store) => {
                let mut flying = std::mem::take(&mut self.flying);
                flying.retain(|it| !self.is_old(it, store));
                self.flying = flying;
                Ok(())
            }
            Choice::Tick => {
                self.left.ticks -= 1;
                self.tick(steps)
            }
        }
    }

    fn stop_store(&mut self, index: usize, input: &StoreInput, steps: &mut Steps) -> Verdict {
        self.store(index, input, steps)?;
        self.flying.retain(|flying| flying.way().1 != index as u64);
        self.source(&SourceInput::Disconnected(index), steps)
    }

    fn send(&mut self, steps: &mut Steps) -> Verdict {
        let sequence = self.source.next();
        let body: Rc<[u8]> = (self.session * 1_000 + sequence).to_le_bytes().into();
        self.source(&SourceInput::Send(Rc::clone(&body)), steps)?;
        self.oracle.change().on_sent(sequence, &body);
        let (session, number) = (self.session, self.bodies.len() as u64);
        for store in (0..self.stores.len()).filter(|it| self.stores[*it].store.is_some()) {
            let body = Rc::clone(&body);
            self.flying.push(Flying::Message { session, store, number, body });
        }
        self.bodies.push(body);
        Ok(())
    }

    /// Time goes on to the next repetition of requests.
    fn tick(&mut self, steps: &mut Steps) -> Verdict {
        self.now += 100 * MILLISECOND;
        for index in 0..self.stores.len() {
            self.store(index, &StoreInput::Tick, steps)?;
        }
        self.source(&SourceInput::Tick, steps)
    }

    fn deliver(&mut self, flying: Flying, steps: &mut Steps) -> Verdict {
        match flying {
            Flying::Frame { from, to, bytes } if to >= FIRST_SESSION => {
                self.source(&SourceInput::Frame { from, bytes }, steps)
            }
            to_store => {
                let index = to_store.way().1 as usize;
                self.store(index, &StoreInput::Deliver(to_store), steps)
            }
        }
    }

    fn store(&mut self, index: usize, input: &StoreInput, steps: &mut Steps) -> Verdict {
        // While it cannot fail, a slow disk is the same as a slow answer.
        let is_synchronous = !self.may_fail(index);
        let step = steps.store(&self.stores[index], index, self.now, input, is_synchronous)?;
        self.stores[index] = step.part.clone();
        step.sent.iter().for_each(|sent| self.fly(sent));
        Ok(())
    }

    fn source(&mut self, input: &SourceInput, steps: &mut Steps) -> Verdict {
        let step = steps.source(&self.source, (self.session, self.list()), self.now, input)?;
        self.source = step.part.clone();
        step.sent.iter().for_each(|sent| self.fly(sent));
        step.events.iter().try_for_each(|event| self.on_event(event))
    }

    fn fly(&mut self, flying: &Flying) {
        let to = flying.way().1;
        let is_there = match usize::try_from(to).ok().and_then(|index| self.stores.get(index)) {
            Some(part) => part.store.is_some(),
            None => to == self.session,
        };
        if is_there {
            self.flying.push(flying.clone());
        }
    }

    fn on_event(&mut self, event: &SourceEvent) -> Verdict {
        match event {
            SourceEvent::Registered { next } => {
                self.start = *next;
                self.oracle.on_registered(*next)?;
                self.check_logs(*next)
            }
            SourceEvent::Stable { next } => {
                for sequence in self.oracle.stable().max(self.start)..*next {
                    let body = self.bodies.get((sequence - self.start) as usize).cloned();
                    let unsent = || Violation(format!("message {sequence} is stable, not sent"));
                    let body = body.ok_or_else(unsent)?;
                    self.oracle.change().on_stable(sequence, &body)?;
                }
                Ok(())
            }
            SourceEvent::Superseded { by } => {
                Err(Violation(format!("superseded by {by:?}, and there is one publisher")))
            }
            _ => Ok(()),
        }
    }

    /// The stores of this run have kept what was sent; all before `next` is stable now.
    fn check_logs(&mut self, next: u64) -> Verdict {
        let mut kept = Vec::new();
        for part in &self.stores {
            let Some(state) = disk_state(part).filter(|it| it.log.session == self.session) else {
                continue;
            };
            part.log.read(0, state.first, &mut |sequence, _, body| {
                let is_before = sequence < next;
                if is_before {
                    kept.push((sequence, body.to_vec()));
                }
                is_before
            });
        }
        let oracle = self.oracle.change();
        for (sequence, body) in &kept {
            oracle.on_kept(*sequence, body)?;
            if *sequence >= oracle.stable() {
                oracle.on_stable(*sequence, body)?;
            }
        }
        Ok(())
    }

    /// Everything comes back, and nothing else happens. `tails` has the ends of the states that
    /// were passed before.
    fn finish(mut self, steps: &mut Steps, tails: &mut HashMap<u64, End>) -> Verdict<End> {
        let mut passed = Vec::new();
        let end = loop {
            self.flying.sort_by_key(Flying::way);
            let digest = self.digest();
            if let Some(end) = tails.get(&digest) {
                break *end;
            }
            passed.push(digest);
            let is_over = passed.len() > TAIL_MAX;
            if is_over || !self.go_on(steps).map_err(|violation| self.told(&violation))? {
                break End { is_drained: self.is_drained(), outcome: self.outcome() };
            }
        };
        tails.extend(passed.into_iter().map(|digest| (digest, end)));
        // Fewer than half may lose their data.
        let lost = self.stores.iter().enumerate().filter(|(index, it)| it.is_wiped(*index));
        if 2 * lost.count() < self.stores.len() && !end.is_drained {
            return Err(self.told(&Violation("not all is stable at the end".to_owned())));
        }
        Ok(end)
    }

    fn outcome(&self) -> u64 {
        let disks: Vec<u64> = self.stores.iter().map(|part| digest(&part.log)).collect();
        hash(&(&self.oracle, disks))
    }

    /// Does the next step to the end; returns whether there was one.
    fn go_on(&mut self, steps: &mut Steps) -> Verdict<bool> {
        if let Some(index) = self.stores.iter().position(|part| part.store.is_none()) {
            self.step(Choice::StartStore(index), steps)?;
        } else if !self.flying.is_empty() {
            self.step(Choice::Deliver(0), steps)?;
        } else if let Some(index) = self.stores.iter().position(|it| it.log.is_pending()) {
            self.step(Choice::Synchronize(index), steps)?;
        } else if self.is_drained() || self.now > 20 * SECOND {
            return Ok(false);
        } else {
            self.tick(steps)?;
        }
        Ok(true)
    }
}

/// The state that a store's disk holds.
fn disk_state(part: &StorePart) -> Option<StoreState> {
    part.restored().state(TOPIC, SOURCE)
}
