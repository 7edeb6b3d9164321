//! The actors of a run, with the real machines, and their event loop.

use super::collected::{Collected, FIRST_RECEIVER, FIRST_SESSION, LIVES, SOURCE, TOPIC};
use super::event::Event;
use super::log::SimLog;
use super::oracle::Oracle;
use super::outcome::StoreOutcome;
use super::processes::{PublisherProcess, StoreProcess};
use super::receivers::{Forgotten, ReceiverProcess};
use super::scenario::StoreScenario;
use super::standstill::Standstill;
use super::store_lists::StoreLists;
use super::tamper::StoreTamper;
use crate::ensure;
use crate::event_queue::EventQueue;
use crate::rng::SimRng;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{Receiver, Source, SourceEvent, Store};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::store::StoreState;
use std::collections::HashMap;

/// One run.
#[derive(Debug)]
pub struct World {
    scenario: StoreScenario,
    tamper: StoreTamper,
    rng: SimRng,
    now: Nanos,
    queue: EventQueue<Event>,
    /// Arrival of the last frame on each way: frames keep their order.
    arrivals: HashMap<(u64, u64), Nanos>,
    stores: Vec<StoreProcess>,
    publishers: Vec<PublisherProcess>,
    receivers: Vec<ReceiverProcess>,
    /// Retention has taken the messages before this one, at some store.
    trimmed: u64,
    names: Vec<String>,
    lists: StoreLists,
    oracle: Oracle,
    outcome: StoreOutcome,
    faults_left: usize,
    is_quiet: bool,
}

/// Runs a seed.
///
/// # Errors
/// If a promise is broken.
pub fn run(seed: u64) -> Result<StoreOutcome, Violation> {
    World::new(StoreScenario::draw(seed), StoreTamper::Nothing).run()
}

/// Runs a seed whose publishers and receivers name other stores in each life.
///
/// # Errors
/// If a promise is broken.
pub fn run_lists(seed: u64) -> Result<StoreOutcome, Violation> {
    World::new(StoreScenario::draw_lists(seed), StoreTamper::Nothing).run()
}

impl World {
    /// The world of a scenario, with a defect.
    pub fn new(scenario: StoreScenario, tamper: StoreTamper) -> Self {
        let names = scenario.names();
        let mut rng = SimRng::new(scenario.seed).fork();
        let store = |_: &String| StoreProcess::new(scenario.pending_max, rng.any());
        let stores = names.iter().map(store).collect();
        let receivers = (0..scenario.receivers).map(|_| ReceiverProcess::default()).collect();
        let (faults_left, lists) = (scenario.faults, StoreLists::new(&scenario));
        Self {
            scenario,
            tamper,
            rng,
            now: 0,
            queue: EventQueue::new(),
            arrivals: HashMap::new(),
            stores,
            publishers: Vec::new(),
            receivers,
            trimmed: 0,
            names,
            lists,
            oracle: Oracle::default(),
            outcome: StoreOutcome::default(),
            faults_left,
            is_quiet: false,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// If a promise is broken.
    pub fn run(mut self) -> Result<StoreOutcome, Violation> {
        for store in 0..self.stores.len() {
            self.queue.add(0, Event::StartStore(store));
        }
        self.queue.add(0, Event::StartPublisher);
        for receiver in 0..self.receivers.len() {
            let at = self.rng.up_to(self.scenario.fault_time / 2);
            self.queue.add(at, Event::StartReceiver(receiver));
        }
        for _ in 0..self.scenario.faults {
            let at = self.rng.up_to(self.scenario.fault_time);
            self.queue.add(at, Event::Fault);
        }
        self.run_until(self.scenario.fault_time)?;
        self.end_faults();
        let mut standstill = Standstill::default();
        loop {
            self.run_until(self.now + SECOND)?;
            let received: u64 = self.receivers.iter().filter_map(|it| it.next()).sum();
            if self.is_complete() || standstill.is_reached(self.oracle.stable() + received) {
                break;
            }
        }
        self.check_end()?;
        self.outcome.stable = self.oracle.stable();
        Ok(self.outcome)
    }

    fn run_until(&mut self, end: Nanos) -> Verdict {
        while self.queue.next_at().is_some_and(|at| at <= end) {
            let Some((at, event)) = self.queue.take() else { break };
            self.now = at;
            self.happen(event)?;
        }
        self.now = end;
        Ok(())
    }

    fn end_faults(&mut self) {
        self.is_quiet = true;
        self.scenario.loss = 0;
        // Those of before may wait for stores that they do not name.
        if self.scenario.has_lists() {
            self.publishers.iter_mut().for_each(|it| it.source = None);
            self.receivers.iter_mut().for_each(ReceiverProcess::crash);
        }
        for store in 0..self.stores.len() {
            self.stores[store].cut_until = 0;
            if self.stores[store].store.is_none() {
                self.queue.add(self.now, Event::StartStore(store));
            }
        }
        if self.living().is_empty() {
            self.queue.add(self.now, Event::StartPublisher);
        }
        for receiver in 0..self.receivers.len() {
            self.queue.add(self.now, Event::StartReceiver(receiver));
        }
    }

    fn is_complete(&self) -> bool {
        self.receivers.iter().all(|it| it.next() == Some(self.oracle.stable()))
            && self.living().iter().any(|index| self.is_drained(*index))
    }

    fn living(&self) -> Vec<usize> {
        (0..self.publishers.len()).filter(|index| self.publishers[*index].is_living()).collect()
    }

    fn happen(&mut self, event: Event) -> Verdict {
        match event {
            Event::ToStore { store, life, frame } => {
                let Some((address, frame)) = self.tamper.read(&frame)? else { return Ok(()) };
                self.with_store(store, life, |it, log, now, out| {
                    it.on_frame(address, &frame, now, log, out);
                })
            }
            Event::Live { store, life, session, number, body } => {
                self.with_store(store, life, |it, log, now, out| {
                    it.on_message(session, number, &body, now, log, out);
                });
            }
            Event::TickStore(store, life) => {
                if self.stores[store].life == life && self.stores[store].store.is_some() {
                    let mut at = 0;
                    self.with_store(store, life, |it, log, now, out| at = it.tick(now, log, out));
                    self.queue.add(at.max(self.now + 1), Event::TickStore(store, life));
                }
            }
            Event::Synchronize(store, life) => {
                self.stores[store].is_synchronizing = false;
                self.stores[store].log.synchronize(&mut self.rng);
                self.with_store(store, life, |it, log, _, out| it.on_persisted(log, out));
            }
            Event::ToPublisher { publisher, store, life, frame } => {
                if self.stores[store].life == life
                    && let Some((_, frame)) = self.tamper.read(&frame)?
                {
                    let Some(place) = self.publishers[publisher].list.place(store) else {
                        return Ok(());
                    };
                    return self.with_publisher(publisher, |source, now, out| {
                        source.on_frame(place, &frame, now, out);
                        0
                    });
                }
            }
            Event::TickPublisher(publisher) => {
                let mut at = Nanos::MAX;
                self.with_publisher(publisher, |source, now, out| {
                    at = source.tick(now, out);
                    0
                })?;
                if at != Nanos::MAX && self.publishers[publisher].source.is_some() {
                    self.queue.add(at.max(self.now + 1), Event::TickPublisher(publisher));
                }
            }
            Event::Publish(publisher) => self.publish(publisher),
            Event::Fault => self.fault()?,
            Event::StartStore(store) => self.start_store(store),
            Event::StartPublisher => self.start_publisher(),
            Event::StartReceiver(receiver) => self.start_receiver(receiver),
            Event::Consume(receiver, life) => self.consume(receiver, life),
            other => return self.happen_to_receiver(other),
        }
        Ok(())
    }

    fn with_store(
        &mut self,
        index: usize,
        life: u32,
        call: impl FnOnce(&mut Store, &mut SimLog, Nanos, &mut Collected),
    ) {
        let process = &mut self.stores[index];
        let (Some(store), true) = (&mut process.store, process.life == life) else { return };
        let mut out = Collected { client: index as u64, ..Collected::default() };
        call(store, &mut process.log, self.now, &mut out);
        if process.log.is_pending() && !process.is_synchronizing {
            process.is_synchronizing = true;
            let at = self.now + 1 + self.rng.up_to(self.scenario.sync);
            self.queue.add(at, Event::Synchronize(index, life));
        }
        for (client, frame) in out.replies {
            if client < FIRST_SESSION {
                self.send_to_store(index as u64, client as usize, frame);
            } else if client >= FIRST_RECEIVER {
                self.send_to_receiver(index, client, frame);
            } else if let Some(at) = self.arrival(index as u64, client, index) {
                let publisher = (client - FIRST_SESSION) as usize;
                self.queue.add(at, Event::ToPublisher { publisher, store: index, life, frame });
            }
        }
        for (name, frame) in out.others {
            let to = self.names.iter().position(|it| *it == name).expect("a store's name");
            self.send_to_store(index as u64, to, frame);
        }
    }

    fn happen_to_receiver(&mut self, event: Event) -> Verdict {
        match event {
            Event::ToReceiver { receiver, life, store, store_life, frame }
                if self.stores[store].life == store_life =>
            {
                let Some((address, frame)) = self.tamper.read(&frame)? else { return Ok(()) };
                let list = self.receivers[receiver].list.as_ref();
                let Some(place) = list.and_then(|list| list.place(store)) else { return Ok(()) };
                return self.with_receiver(receiver, life, |it, now, out| {
                    it.on_frame(place, address.source, &frame, now, out);
                });
            }
            Event::LiveToReceiver { receiver, life, session, number, body } => {
                return self.with_receiver(receiver, life, |it, now, out| {
                    it.on_live(session, number, &body, now, out);
                });
            }
            Event::TickReceiver(receiver, life) => {
                let mut at = Nanos::MAX;
                self.with_receiver(receiver, life, |it, now, out| {
                    it.tick(now, out);
                    at = it.due();
                })?;
                // Frames bring the time forward: it is looked at often enough.
                if at != Nanos::MAX {
                    let at = at.clamp(self.now + 1, self.now + MILLISECOND);
                    self.queue.add(at, Event::TickReceiver(receiver, life));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn send_to_receiver(&mut self, store: usize, client: u64, frame: Vec<u8>) {
        let Some(at) = self.arrival(store as u64, client, store) else { return };
        let receiver = ((client - FIRST_RECEIVER) / LIVES) as usize;
        let life = ((client - FIRST_RECEIVER) % LIVES) as u32;
        let store_life = self.stores[store].life;
        self.queue.add(at, Event::ToReceiver { receiver, life, store, store_life, frame });
    }

    fn with_receiver(
        &mut self,
        index: usize,
        life: u32,
        call: impl FnOnce(&mut Receiver, Nanos, &mut Collected),
    ) -> Verdict {
        let process = &mut self.receivers[index];
        let (Some(receiver), true) = (&mut process.receiver, process.life == life) else {
            return Ok(());
        };
        let client = FIRST_RECEIVER + index as u64 * LIVES + u64::from(life);
        let mut out = Collected { client, ..Collected::default() };
        call(receiver, self.now, &mut out);
        let (trimmed, data) = (self.trimmed, self.outcome.wipes > 0);
        let forgotten = Forgotten { data, receivers: data || self.scenario.has_lists() };
        for told in out.told {
            process.on_told(told, &self.oracle, trimmed, forgotten, &mut self.outcome)?;
        }
        let list = process.list.clone();
        for (place, frame) in out.requests {
            let store = list.as_ref().map_or(place, |list| list.store(place));
            self.send_to_store(client, store, frame);
        }
        Ok(())
    }

    fn start_receiver(&mut self, index: usize) {
        let list = self.lists.draw(&self.stores, self.is_quiet, &mut self.rng);
        let process = &mut self.receivers[index];
        if !process.start(&self.scenario, list, index as u64, self.now) {
            return;
        }
        let life = process.life;
        self.queue.add(self.now, Event::TickReceiver(index, life));
        self.queue.add(self.now, Event::Consume(index, life));
    }

    /// The program consumes what it was handed out, now and then.
    fn consume(&mut self, index: usize, life: u32) {
        if self.receivers[index].life != life {
            return;
        }
        self.receivers[index].consume(self.now);
        let pause = 1 + self.rng.up_to(50 * MILLISECOND);
        self.queue.add(self.now + pause, Event::Consume(index, life));
    }

    fn send_to_store(&mut self, from: u64, store: usize, frame: Vec<u8>) {
        if self.tamper.swallows(&frame) {
            return;
        }
        let is_cut = |world: &Self, index: usize| world.stores[index].cut_until > world.now;
        if from < FIRST_SESSION && is_cut(self, from as usize) {
            return;
        }
        if let Some(at) = self.arrival(from, store as u64, store) {
            let life = self.stores[store].life;
            self.queue.add(at, Event::ToStore { store, life, frame });
        }
    }

    /// When something arrives that is sent now; `None` if it is lost.
    fn arrival(&mut self, from: u64, to: u64, store: usize) -> Option<Nanos> {
        self.outcome.frames += 1;
        if self.stores[store].cut_until > self.now || self.rng.happens(self.scenario.loss) {
            self.outcome.lost += 1;
            return None;
        }
        let at = self.now + 1 + self.rng.up_to(self.scenario.delay);
        let last = self.arrivals.entry((from, to)).or_default();
        *last = (*last + 1).max(at);
        Some(*last)
    }

    fn with_publisher(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Source, Nanos, &mut Collected) -> u64,
    ) -> Verdict {
        let process = &mut self.publishers[index];
        let Some(source) = &mut process.source else { return Ok(()) };
        let (session, list) = (process.session, process.list.clone());
        let mut out = Collected { client: session, ..Collected::default() };
        let before = source.members().version;
        call(source, self.now, &mut out);
        let has_changed = source.is_registered() && source.members().version != before;
        self.outcome.members_changed += u64::from(has_changed);
        for (place, frame) in out.requests {
            self.send_to_store(session, list.store(place), frame);
        }
        out.events.into_iter().try_for_each(|event| self.on_event(index, event))
    }

    fn on_event(&mut self, index: usize, event: SourceEvent) -> Verdict {
        match event {
            SourceEvent::Registered { next } => {
                self.outcome.runs += 1;
                let is_other = self.lists.on_registered(&self.publishers[index].list);
                self.outcome.other_lists += u64::from(is_other);
                self.publishers[index].start = next;
                self.oracle.on_registered(next)?;
                self.check_begun(self.publishers[index].session, next)?;
                self.queue.add(self.now, Event::Publish(index));
            }
            SourceEvent::Stable { next } => {
                let PublisherProcess { start, bodies, .. } = &self.publishers[index];
                for sequence in self.oracle.stable().min(next).max(*start)..next {
                    let body = bodies.get((sequence - start) as usize);
                    let Some(body) = body else {
                        return Err(Violation(format!("message {sequence} is stable, not sent")));
                    };
                    self.oracle.on_stable(sequence, body)?;
                }
            }
            SourceEvent::Superseded { .. } => {
                self.outcome.superseded += 1;
                self.publishers[index].is_superseded = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// A run goes on at `next`: its stores have kept what was sent, and all of that is stable now.
    fn check_begun(&mut self, session: u64, next: u64) -> Verdict {
        for index in 0..self.stores.len() {
            let Some(state) = self.state(index).filter(|state| state.log.session == session) else {
                continue;
            };
            let kept = self.stores[index].kept(state.first..next.min(state.next));
            ensure!(
                kept.len() as u64 == next.min(state.next) - state.first,
                "store {index} lacks messages of its log"
            );
            for (sequence, body) in kept {
                self.oracle.on_kept(sequence, &body)?;
                if sequence >= self.oracle.stable() {
                    self.outcome.inherited += 1;
                    self.oracle.on_stable(sequence, &body)?;
                }
            }
        }
        Ok(())
    }

    /// The state of a store's disk.
    fn state(&self, index: usize) -> Option<StoreState> {
        self.stores[index].restored().state(TOPIC, SOURCE)
    }

    fn publish(&mut self, index: usize) {
        let process = &mut self.publishers[index];
        let Some(source) = &mut process.source else { return };
        if process.is_superseded || self.is_quiet {
            return;
        }
        let mut body = source.next().to_le_bytes().to_vec();
        body.extend(process.session.to_le_bytes());
        body.resize(16 + self.rng.within(0..=40) as usize, 7);
        if source.check_room(body.len()).is_ok() {
            let sequence = source.sent(&body);
            let (number, session) = (process.bodies.len() as u64, process.session);
            process.bodies.push(body.clone());
            self.oracle.on_sent(sequence, &body);
            for store in 0..self.stores.len() {
                if let Some(at) = self.arrival(session, (1 << 32) + store as u64, store) {
                    let (life, body) = (self.stores[store].life, body.clone());
                    self.queue.add(at, Event::Live { store, life, session, number, body });
                }
            }
            for receiver in 0..self.receivers.len() {
                let life = self.receivers[receiver].life;
                // Shared with the stores' links: a cut of the first one reaches no receiver.
                if let Some(at) = self.arrival(session, (1 << 33) + receiver as u64, 0) {
                    let body = body.clone();
                    let event = Event::LiveToReceiver { receiver, life, session, number, body };
                    self.queue.add(at, event);
                }
            }
        }
        let pause = 1 + self.rng.up_to(2 * self.scenario.pace);
        self.queue.add(self.now + pause, Event::Publish(index));
    }

    fn fault(&mut self) -> Verdict {
        self.faults_left = self.faults_left.saturating_sub(1);
        let store = self.rng.within(0..=self.stores.len() as u64 - 1) as usize;
        let later = self.now + self.rng.up_to(800 * MILLISECOND);
        match self.rng.within(0..=11) {
            0..=2 => self.crash_store(store, later),
            3 => (0..self.stores.len()).for_each(|store| self.crash_store(store, later)),
            4..=5 => self.stores[store].cut_until = later,
            6 if self.scenario.may_wipe => self.wipe(store, later),
            7 if self.scenario.may_fork => self.queue.add(self.now, Event::StartPublisher),
            8 => self.trim(store),
            9 if !self.receivers.is_empty() => {
                let receiver = self.rng.within(0..=self.receivers.len() as u64 - 1) as usize;
                self.receivers[receiver].crash();
                self.queue.add(later, Event::StartReceiver(receiver));
            }
            _ => {
                let living = self.living();
                if !living.is_empty() {
                    let victim = self.rng.pick(&living);
                    self.publishers[victim].source = None;
                    self.outcome.publisher_crashes += 1;
                    self.queue.add(later, Event::StartPublisher);
                }
            }
        }
        Ok(())
    }

    fn crash_store(&mut self, index: usize, back: Nanos) {
        if !self.stores[index].crash(&mut self.rng, self.tamper) {
            return;
        }
        self.outcome.store_crashes += 1;
        self.publishers.iter_mut().for_each(|it| it.on_disconnected(index));
        self.receivers.iter_mut().for_each(|it| it.on_disconnected(index));
        self.queue.add(back, Event::StartStore(index));
    }

    /// A store loses its data, unless it is the last that knows of the stream.
    fn wipe(&mut self, index: usize, back: Nanos) {
        let knows = |other: usize| {
            other != index && self.state(other).is_some_and(|state| state.members.version > 0)
        };
        if !(0..self.stores.len()).any(knows) {
            return;
        }
        self.crash_store(index, back);
        self.outcome.wipes += 1;
        self.stores[index].log.wipe();
        if self.tamper != StoreTamper::KeepIncarnation {
            self.stores[index].incarnation = self.rng.any();
        }
    }

    /// Retention gives up the older half of what is stable.
    fn trim(&mut self, index: usize) {
        let first = self.oracle.stable() / 2;
        self.trimmed = self.trimmed.max(first);
        self.outcome.trims += 1;
        let life = self.stores[index].life;
        self.with_store(index, life, |store, log, _, _| {
            let _ = store.trim(TOPIC, SOURCE, first, log);
        });
    }

    fn start_store(&mut self, index: usize) {
        let process = &mut self.stores[index];
        if process.store.is_some() {
            return;
        }
        process.store = Some(process.restored());
        self.queue.add(self.now, Event::TickStore(index, process.life));
    }

    fn start_publisher(&mut self) {
        let living = self.living().len();
        if living > usize::from(self.scenario.may_fork && !self.is_quiet) {
            return;
        }
        let index = self.publishers.len();
        let session = FIRST_SESSION + index as u64;
        // A clock that stands still: order must not depend on it.
        let epoch = if self.rng.percent(30) { 0 } else { self.now / 1_000 };
        let list = self.lists.of_publisher(&self.stores, self.is_quiet, &mut self.rng);
        let publisher = PublisherProcess::new(&self.scenario, list, session, epoch, self.now);
        self.publishers.push(publisher);
        self.queue.add(self.now, Event::TickPublisher(index));
    }

    fn check_end(&mut self) -> Verdict {
        for index in 0..self.stores.len() {
            let Some(state) = self.state(index) else { continue };
            let members = state.members.incarnation(&self.names[index]);
            ensure!(
                state.log.epoch == 0 || state.members.version > 0 || members.is_some(),
                "store {index} has begun a run without members"
            );
        }
        // A stream that lost the data of too many stores waits for good, as it must.
        if self.outcome.wipes > 0 {
            let is_well = self.living().iter().any(|index| self.is_drained(*index));
            self.outcome.healed_wipes += u64::from(is_well);
            return Ok(());
        }
        let living = self.living();
        ensure!(
            living.iter().any(|index| self.is_drained(*index)),
            "not all is stable at the end: {:?}, states {:?}",
            living.iter().map(|it| &self.publishers[*it].source).collect::<Vec<_>>(),
            (0..self.stores.len()).map(|it| self.state(it)).collect::<Vec<_>>()
        );
        self.receivers.iter().try_for_each(|it| it.check_end(&self.oracle))
    }

    /// Whether all is stable and, where lists change, the members are those that are named.
    fn is_drained(&self, index: usize) -> bool {
        let publisher = &self.publishers[index];
        publisher.is_drained() && (!self.scenario.has_lists() || publisher.is_settled())
    }
}
