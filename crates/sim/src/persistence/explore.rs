//! Exhaustive exploration of small scopes: every order of deliveries and synchronizations, with a
//! few crashes and stores that lose their data, and messages sent at any moment.
//!
//! Frames of one sender to one receiver keep their order. Time passes only when nothing is under
//! way. A state that was seen before is not explored again; it is known by the text of its parts.

use super::collected::{Collected, FIRST_SESSION, SOURCE, TOPIC};
use super::log::SimLog;
use super::oracle::Oracle;
use crate::digest::digest;
use crate::ensure;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{
    GroupRule, Source, SourceEvent, SourceSettings, Store, StoreGroups, StoreLog, StoreSettings,
};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::store::{StoreFrame, StoreState};
use std::collections::HashSet;
use std::rc::Rc;

/// Most steps to bring a state to its end, once its choices are exhausted.
const TAIL_MAX: u32 = 5_000;

/// Budgets of an exploration.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq)]
pub struct StoreScope {
    /// Stores, in one group.
    pub stores: usize,
    /// Messages.
    pub messages: u8,
    /// Stores that may crash, with what they have not synchronized; they come back at any time.
    pub store_crashes: u8,
    /// Stores that may lose their data.
    pub wipes: u8,
    /// Publishers that may crash; the next one starts at once.
    pub publisher_crashes: u8,
    /// Times at which requests are repeated, before the state goes to its end without choices.
    pub ticks: u8,
    /// Most states to explore.
    pub states: usize,
}

/// Findings of an exploration without violations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoresExplored {
    /// Different states.
    pub states: usize,
    /// States that went to their end.
    pub ends: usize,
    /// Ends at which all messages are stable.
    pub drained: usize,
    /// Whether no state was left out.
    pub is_complete: bool,
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
    Tick,
}

/// Under way between two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Flying {
    Frame { from: u64, to: u64, bytes: Rc<[u8]> },
    Message { session: u64, store: usize, number: u64, body: Rc<[u8]> },
}

impl Flying {
    /// Sender and receiver; messages travel apart from frames.
    const fn way(&self) -> (u64, u64, bool) {
        match *self {
            Self::Frame { from, to, .. } => (from, to, false),
            Self::Message { session, store, .. } => (session, store as u64, true),
        }
    }
}

#[derive(Clone, Debug)]
struct StorePart {
    store: Option<Store>,
    log: SimLog,
    incarnation: u64,
}

#[derive(Clone, Debug)]
struct State {
    now: Nanos,
    stores: Vec<StorePart>,
    source: Source,
    session: u64,
    start: u64,
    bodies: Vec<Rc<[u8]>>,
    flying: Vec<Flying>,
    oracle: Oracle,
    left: StoreScope,
    path: Option<Rc<Path>>,
}

/// Steps of a path, the latest first.
#[derive(Debug)]
struct Path(Option<Rc<Path>>, String);

/// Explores `scope` from a publisher that is registered.
///
/// # Errors
/// The violation, with the steps that lead to it.
pub fn explore(scope: StoreScope) -> Verdict<StoresExplored> {
    let start = State::registered(scope)?;
    let (mut seen, mut explored) = (HashSet::new(), StoresExplored::default());
    seen.insert(start.digest());
    let mut stack = vec![start];
    explored.is_complete = true;
    while let Some(state) = stack.pop() {
        let choices = state.choices();
        if choices.is_empty() {
            explored.ends += 1;
            explored.drained += usize::from(state.finish()?);
            continue;
        }
        for choice in choices {
            let mut next = state.clone();
            next.step(choice).map_err(|violation| next.told(&violation))?;
            next.sort_flying();
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

fn source(stores: usize, session: u64, now: Nanos) -> Verdict<Source> {
    let names = (0..stores).map(|store| store.to_string()).collect();
    let groups = StoreGroups::new(vec![names], GroupRule::Any);
    let groups = groups.map_err(|error| Violation(error.to_string()))?;
    let settings = SourceSettings {
        flight_messages: 8,
        flight_bytes: 64,
        retry: 100 * MILLISECOND,
        ..SourceSettings::new(groups)
    };
    Ok(Source::new(settings, session, 0, now))
}

fn store_settings() -> StoreSettings {
    // Requests of stores are due whenever those of the publisher are.
    StoreSettings { retry: 50 * MILLISECOND, ..StoreSettings::default() }
}

impl State {
    fn registered(scope: StoreScope) -> Verdict<Self> {
        let part = |index: usize| StorePart {
            store: Some(Store::new(store_settings(), index as u64 + 1)),
            log: SimLog::new(1_000),
            incarnation: index as u64 + 1,
        };
        let mut state = Self {
            now: SECOND,
            stores: (0..scope.stores).map(part).collect(),
            source: source(scope.stores, FIRST_SESSION, SECOND)?,
            session: FIRST_SESSION,
            start: 0,
            bodies: Vec::new(),
            flying: Vec::new(),
            oracle: Oracle::default(),
            left: scope,
            path: None,
        };
        state.run_to_end()?;
        ensure!(state.is_drained(), "no run is registered at first");
        state.path = None;
        Ok(state)
    }

    fn is_drained(&self) -> bool {
        self.source.is_registered() && self.source.stable() == self.source.next()
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

    /// Frames on different ways have no order: states that differ in it only are the same.
    fn sort_flying(&mut self) {
        self.flying.sort_by_key(Flying::way);
    }

    fn digest(&self) -> u64 {
        let Self { now, stores, source, session, start, bodies, flying, oracle, left, path: _ } =
            self;
        let disks: Vec<_> = stores.iter().map(|part| (&part.log, part.incarnation)).collect();
        let machines: Vec<_> = stores.iter().map(|part| &part.store).collect();
        let all = (now, disks, machines, source, session, start, bodies, flying, oracle, left);
        digest(&all)
    }

    fn choices(&self) -> Vec<Choice> {
        let mut choices = Vec::new();
        let quiet = self.flying.is_empty() && !self.stores.iter().any(|it| it.log.is_pending());
        if self.left.ticks == 0 && quiet {
            return choices;
        }
        let mut ways = HashSet::new();
        for (index, flying) in self.flying.iter().enumerate() {
            if ways.insert(flying.way()) {
                choices.push(Choice::Deliver(index));
            }
        }
        for (index, part) in self.stores.iter().enumerate() {
            match &part.store {
                None => choices.push(Choice::StartStore(index)),
                Some(_) => {
                    if part.log.is_pending() {
                        choices.push(Choice::Synchronize(index));
                    }
                    if self.left.store_crashes > 0 {
                        choices.push(Choice::CrashStore(index));
                    }
                    if self.left.wipes > 0 {
                        choices.push(Choice::Wipe(index));
                    }
                }
            }
        }
        if self.left.messages > 0 && self.source.room(8).is_ok() {
            choices.push(Choice::Send);
        }
        if self.left.publisher_crashes > 0 {
            choices.push(Choice::CrashPublisher);
        }
        if quiet && self.left.ticks > 0 {
            choices.push(Choice::Tick);
        }
        choices
    }

    fn step(&mut self, choice: Choice) -> Verdict {
        let told = match choice {
            Choice::Deliver(index) => format!("deliver {}", describe(&self.flying[index])),
            _ => format!("{choice:?} at {} ms", self.now / MILLISECOND),
        };
        self.path = Some(Rc::new(Path(self.path.take(), told)));
        match choice {
            Choice::Deliver(index) => {
                let flying = self.flying.remove(index);
                self.deliver(&flying)
            }
            Choice::Synchronize(index) => {
                self.stores[index].log.synchronize_all();
                self.with_store(index, |store, log, _, out| store.on_persisted(log, out))
            }
            Choice::Send => {
                self.left.messages -= 1;
                self.send();
                Ok(())
            }
            Choice::CrashStore(index) => {
                self.left.store_crashes -= 1;
                self.stop_store(index);
                Ok(())
            }
            Choice::Wipe(index) => {
                self.left.wipes -= 1;
                self.stop_store(index);
                self.stores[index].log.wipe();
                self.stores[index].incarnation += 100;
                Ok(())
            }
            Choice::StartStore(index) => {
                let part = &mut self.stores[index];
                let store = Store::new(store_settings(), part.incarnation);
                part.store = Some(part.log.restore(store));
                Ok(())
            }
            Choice::CrashPublisher => {
                self.left.publisher_crashes -= 1;
                self.session += 1;
                self.source = source(self.stores.len(), self.session, self.now)?;
                self.bodies.clear();
                // What it has sent is under way still; what was sent to it is lost.
                self.flying.retain(|flying| flying.way().1 < FIRST_SESSION);
                self.tick_source()
            }
            Choice::Tick => {
                self.left.ticks -= 1;
                self.tick()
            }
        }
    }

    fn stop_store(&mut self, index: usize) {
        let part = &mut self.stores[index];
        part.store = None;
        part.log.crash_unwritten();
        self.source.on_disconnected(index);
        self.flying.retain(|flying| flying.way().1 != index as u64);
    }

    fn send(&mut self) {
        let body: Rc<[u8]> = (self.session * 1_000 + self.source.next()).to_le_bytes().into();
        let sequence = self.source.sent(&body);
        self.oracle.on_sent(sequence, &body);
        let number = self.bodies.len() as u64;
        self.bodies.push(Rc::clone(&body));
        let session = self.session;
        let is_up = |store: &usize| self.stores[*store].store.is_some();
        let flying = (0..self.stores.len()).filter(is_up).map(|store| {
            let body = Rc::clone(&body);
            Flying::Message { session, store, number, body }
        });
        self.flying.extend(flying.collect::<Vec<_>>());
    }

    /// Time goes on to the next repetition of requests.
    fn tick(&mut self) -> Verdict {
        self.now += 100 * MILLISECOND;
        for index in 0..self.stores.len() {
            self.with_store(index, |store, log, now, out| {
                store.tick(now, log, out);
            })?;
        }
        self.tick_source()
    }

    fn tick_source(&mut self) -> Verdict {
        self.with_source(|source, now, out| {
            source.tick(now, out);
        })
    }

    fn deliver(&mut self, flying: &Flying) -> Verdict {
        match flying {
            Flying::Message { session, store, number, body } => {
                self.with_store(*store, |it, log, now, out| {
                    it.on_message(*session, *number, body, now, log, out);
                })
            }
            Flying::Frame { from, to, bytes } => {
                let Ok((address, frame)) = StoreFrame::read(bytes) else {
                    return Err(Violation("a frame that cannot be read".to_owned()));
                };
                if *to < FIRST_SESSION {
                    return self.with_store(*to as usize, |it, log, now, out| {
                        it.on_frame(address, &frame, now, log, out);
                    });
                }
                self.with_source(|it, now, out| it.on_frame(*from as usize, &frame, now, out))
            }
        }
    }

    fn with_store(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Store, &mut SimLog, Nanos, &mut Collected),
    ) -> Verdict {
        let part = &mut self.stores[index];
        let Some(store) = &mut part.store else { return Ok(()) };
        let from = index as u64;
        let mut out = Collected { client: from, ..Collected::default() };
        call(store, &mut part.log, self.now, &mut out);
        // While no store can crash, a slow disk is the same as a slow answer.
        if self.left.store_crashes == 0 && self.left.wipes == 0 {
            part.log.synchronize_all();
            store.on_persisted(&part.log, &mut out);
        }
        let replies = out.replies.into_iter();
        let others = out.others.into_iter().map(|(name, bytes)| {
            let to = name.parse().map_err(|_| Violation(format!("no store is called {name}")))?;
            Ok((to, bytes))
        });
        for sent in replies.map(Ok).chain(others) {
            let (to, bytes) = sent?;
            self.fly(from, to, bytes);
        }
        Ok(())
    }

    fn fly(&mut self, from: u64, to: u64, bytes: Vec<u8>) {
        let is_there = match usize::try_from(to).ok().and_then(|index| self.stores.get(index)) {
            Some(part) => part.store.is_some(),
            None => to == self.session,
        };
        if is_there {
            self.flying.push(Flying::Frame { from, to, bytes: bytes.into() });
        }
    }

    fn with_source(&mut self, call: impl FnOnce(&mut Source, Nanos, &mut Collected)) -> Verdict {
        let mut out = Collected { client: self.session, ..Collected::default() };
        call(&mut self.source, self.now, &mut out);
        for (store, bytes) in out.requests {
            self.fly(self.session, store as u64, bytes);
        }
        out.events.iter().try_for_each(|event| self.on_event(event))
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
                    let body = self.bodies.get((sequence - self.start) as usize);
                    let unsent = || Violation(format!("message {sequence} is stable, not sent"));
                    self.oracle.on_stable(sequence, body.ok_or_else(unsent)?)?;
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
        for part in &self.stores {
            let state = disk_state(part);
            let Some(state) = state.filter(|state| state.log.session == self.session) else {
                continue;
            };
            let mut kept = Vec::new();
            part.log.read(0, state.first, &mut |sequence, body| {
                kept.push((sequence, body.to_vec()));
                sequence + 1 < next
            });
            for (sequence, body) in kept.iter().filter(|(sequence, _)| *sequence < next) {
                self.oracle.on_kept(*sequence, body)?;
                if *sequence >= self.oracle.stable() {
                    self.oracle.on_stable(*sequence, body)?;
                }
            }
        }
        Ok(())
    }

    /// Everything comes back, and nothing else happens. Returns whether all is stable then.
    fn finish(mut self) -> Verdict<bool> {
        self.run_to_end().map_err(|violation| self.told(&violation))?;
        let (drained, stores) = (self.is_drained(), self.stores.len());
        // Fewer than half may lose their data.
        let lost = self.stores.iter().enumerate().filter(|(i, it)| it.incarnation != *i as u64 + 1);
        if 2 * lost.count() < stores && !drained {
            return Err(self.told(&Violation("not all is stable at the end".to_owned())));
        }
        Ok(drained)
    }

    fn run_to_end(&mut self) -> Verdict {
        for _ in 0..TAIL_MAX {
            if let Some(index) = self.stores.iter().position(|part| part.store.is_none()) {
                self.step(Choice::StartStore(index))?;
            } else if !self.flying.is_empty() {
                self.step(Choice::Deliver(0))?;
            } else if let Some(index) = self.stores.iter().position(|it| it.log.is_pending()) {
                self.step(Choice::Synchronize(index))?;
            } else if self.is_drained() || self.now > 20 * SECOND {
                return Ok(());
            } else {
                self.tick()?;
            }
        }
        Ok(())
    }
}

/// The state that a store's disk holds.
fn disk_state(part: &StorePart) -> Option<StoreState> {
    let store = part.log.restore(Store::new(store_settings(), part.incarnation));
    store.state(TOPIC, SOURCE)
}

fn describe(flying: &Flying) -> String {
    match flying {
        Flying::Message { session, store, number, .. } => {
            format!("message {number} of {session} to {store}")
        }
        Flying::Frame { from, to, bytes } => match StoreFrame::read(bytes) {
            Ok((_, frame)) => format!("{from} -> {to}: {frame:?}"),
            Err(error) => format!("{from} -> {to}: {error:?}"),
        },
    }
}
