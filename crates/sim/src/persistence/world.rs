//! A run of processes with the real machines: their event loop.

pub mod runs;

use super::actors::Actors;
use super::checks::{check_begun, check_end, check_left};
use super::collected::{Collected, FIRST_RECEIVER, FIRST_SESSION, LIVES, SOURCE, TOPIC, Told};
use super::event::{Event, SessionChange};
use super::log::SimLog;
use super::oracle::Oracle;
use super::outcome::StoreOutcome;
use super::processes::PublisherProcess;
use super::receivers::{Forgotten, ReceiverProcess};
use super::registered_runs::RegisteredRuns;
use super::scenario::StoreScenario;
use super::sessions::Sessions;
use super::standstill::Standstill;
use super::store_lists::StoreLists;
use super::tamper::StoreTamper;
use super::timeline::{Timeline, Way, live_to_receiver, live_to_store};
use crate::rng::SimRng;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{DurableLoss, Receiver, Source, SourceEvent, Store};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};

/// One run.
#[derive(Debug)]
pub struct World {
    scenario: StoreScenario,
    tamper: StoreTamper,
    time: Timeline,
    actors: Actors,
    /// Retention has taken the messages before this one, at some store.
    trimmed: u64,
    names: Vec<String>,
    lists: StoreLists,
    oracle: Oracle,
    runs: RegisteredRuns,
    outcome: StoreOutcome,
    is_quiet: bool,
}

impl World {
    /// The world of a scenario, with a defect.
    pub fn new(scenario: StoreScenario, tamper: StoreTamper) -> Self {
        let mut rng = SimRng::new(scenario.seed).fork();
        let actors = Actors::new(&scenario, &mut rng);
        Self {
            time: Timeline::new(&scenario, rng),
            actors,
            trimmed: 0,
            names: scenario.names(),
            lists: StoreLists::new(&scenario),
            oracle: Oracle::default(),
            runs: RegisteredRuns::default(),
            outcome: StoreOutcome::default(),
            is_quiet: false,
            scenario,
            tamper,
        }
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// If a promise is broken.
    pub fn run(mut self) -> Result<StoreOutcome, Violation> {
        self.run_to_end()?;
        self.end_sessions()?;
        self.outcome.stable = self.oracle.stable();
        (self.outcome.frames, self.outcome.lost) = self.time.counts();
        Ok(self.outcome)
    }

    /// Runs until the faults are over, and everything is where it belongs.
    fn run_to_end(&mut self) -> Verdict {
        for store in 0..self.actors.stores.len() {
            self.time.add(0, Event::StartStore(store));
        }
        self.time.add(0, Event::StartPublisher);
        for receiver in 0..self.actors.receivers.len() {
            let at = self.time.rng.up_to(self.scenario.fault_time / 2);
            self.time.add(at, Event::StartReceiver(receiver));
        }
        let times = (0..self.scenario.faults).map(|_| self.scenario.fault_time);
        times.for_each(|end| self.time.add_by(end, Event::Fault));
        self.run_until(self.scenario.fault_time)?;
        self.end_faults();
        let mut standstill = Standstill::default();
        loop {
            self.run_until(self.time.now + SECOND)?;
            let received: u64 = self.actors.receivers.iter().filter_map(|it| it.next()).sum();
            let is_complete = self.actors.are_complete(&self.oracle, &self.scenario);
            if is_complete || standstill.is_reached(self.oracle.stable() + received) {
                break;
            }
        }
        check_end(&self.actors, &self.scenario, &self.oracle, &mut self.outcome)
    }

    fn run_until(&mut self, end: Nanos) -> Verdict {
        while let Some(event) = self.time.take(end) {
            self.oracle.set_time(self.time.now);
            self.happen(event)?;
        }
        Ok(())
    }

    fn end_faults(&mut self) {
        self.is_quiet = true;
        self.time.end_loss();
        // Processes of before may wait for stores that they do not name.
        if self.scenario.has_lists() {
            self.actors.living().into_iter().for_each(|it| self.end_publisher(it));
            self.actors.publishers.iter_mut().for_each(|it| it.source = None);
            self.actors.receivers.iter_mut().for_each(ReceiverProcess::crash);
        }
        for store in 0..self.actors.stores.len() {
            self.actors.stores[store].cut_until = 0;
            if self.actors.stores[store].store.is_none() {
                self.time.add_now(Event::StartStore(store));
            }
        }
        if self.actors.living().is_empty() {
            self.time.add_now(Event::StartPublisher);
        }
        for receiver in 0..self.actors.receivers.len() {
            self.time.add_now(Event::StartReceiver(receiver));
        }
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
                let mut at = None;
                self.with_store(store, life, |it, log, now, out| at = Some(it.tick(now, log, out)));
                if let Some(at) = at {
                    self.time.add_due(at, Event::TickStore(store, life));
                }
            }
            Event::Synchronize(store, life) => {
                self.actors.stores[store].is_synchronizing = false;
                self.actors.stores[store].log.synchronize(&mut self.time.rng);
                self.with_store(store, life, |it, log, _, out| it.on_persisted(log, out));
            }
            Event::ToPublisher { publisher, store, life, frame } => {
                if self.actors.stores[store].life == life
                    && let Some((_, frame)) = self.tamper.read(&frame)?
                {
                    let Some(place) = self.actors.publishers[publisher].list.place(store) else {
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
                if at != Nanos::MAX && self.actors.publishers[publisher].source.is_some() {
                    self.time.add_due(at, Event::TickPublisher(publisher));
                }
            }
            Event::Publish(publisher) => self.publish(publisher),
            Event::Fault => self.fault(),
            Event::StartStore(store) => self.start_store(store),
            Event::StartPublisher => self.start_publisher(),
            Event::StartReceiver(receiver) => self.start_receiver(receiver),
            Event::Consume(receiver, life) => self.consume(receiver, life),
            Event::SessionAtStore { store, life, session, is_there } => {
                self.with_store(store, life, |it, _, _, _| it.on_session(session, is_there));
            }
            Event::Readmit { receiver, life, publisher } => {
                self.sessions().readmit(receiver, life, publisher);
            }
            Event::FindAgain { store, life, publisher } => {
                self.sessions().find_again(store, life, publisher);
            }
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
        let process = &mut self.actors.stores[index];
        let (Some(store), true) = (&mut process.store, process.life == life) else { return };
        let mut out = Collected { client: index as u64, ..Collected::default() };
        process.log.set_time(self.time.now);
        call(store, &mut process.log, self.time.now, &mut out);
        self.oracle.on_written(process.log.take_written());
        if process.log.is_pending() && !process.is_synchronizing {
            process.is_synchronizing = true;
            self.time.add_within(self.scenario.sync, Event::Synchronize(index, life));
        }
        for (client, frame) in out.replies {
            if client < FIRST_SESSION {
                self.send_to_store(index as u64, client as usize, frame);
            } else if client >= FIRST_RECEIVER {
                self.send_to_receiver(index, client, frame);
            } else if let Some(at) = self.arrival((index as u64, client), index) {
                let publisher = (client - FIRST_SESSION) as usize;
                self.time.add(at, Event::ToPublisher { publisher, store: index, life, frame });
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
                if self.actors.stores[store].life == store_life =>
            {
                let Some((address, frame)) = self.tamper.read(&frame)? else { return Ok(()) };
                let list = self.actors.receivers[receiver].list.as_ref();
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
            Event::SessionAtReceiver { receiver, life, session, change } => {
                return self.with_receiver(receiver, life, |it, _, _| match change {
                    SessionChange::Joined => it.on_joined(session),
                    SessionChange::CutOff => it.on_cut_off(session),
                    SessionChange::Left => it.on_left(session),
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
                    let at = at.clamp(self.time.now + 1, self.time.now + MILLISECOND);
                    self.time.add(at, Event::TickReceiver(receiver, life));
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn send_to_receiver(&mut self, store: usize, client: u64, frame: Vec<u8>) {
        let Some(at) = self.arrival((store as u64, client), store) else { return };
        let receiver = ((client - FIRST_RECEIVER) / LIVES) as usize;
        let life = ((client - FIRST_RECEIVER) % LIVES) as u32;
        let store_life = self.actors.stores[store].life;
        self.time.add(at, Event::ToReceiver { receiver, life, store, store_life, frame });
    }

    fn with_receiver(
        &mut self,
        index: usize,
        life: u32,
        call: impl FnOnce(&mut Receiver, Nanos, &mut Collected),
    ) -> Verdict {
        let process = &mut self.actors.receivers[index];
        let (Some(receiver), true) = (&mut process.receiver, process.life == life) else {
            return Ok(());
        };
        let client = FIRST_RECEIVER + index as u64 * LIVES + u64::from(life);
        let mut out = Collected { client, ..Collected::default() };
        call(receiver, self.time.now, &mut out);
        let (trimmed, data) = (self.trimmed, self.outcome.wipes > 0);
        let forgotten = Forgotten { data, receivers: data || self.scenario.has_lists() };
        for told in out.told {
            if let Told::Lost { first, why: DurableLoss::NotStored, .. } = told {
                process.check_not_stored(first, &self.actors.stores, self.time.now)?;
            }
            process.on_told(told, &self.oracle, trimmed, forgotten, &mut self.outcome)?;
        }
        process.note_acknowledged();
        let list = process.list.clone();
        for (place, frame) in out.requests {
            let store = list.as_ref().map_or(place, |list| list.store(place));
            self.send_to_store(client, store, frame);
        }
        if self.actors.depart(index, &mut self.outcome)? {
            self.time.add_within(800 * MILLISECOND, Event::StartReceiver(index));
        }
        Ok(())
    }

    fn start_receiver(&mut self, index: usize) {
        let list = self.lists.draw(&self.actors.stores, self.is_quiet, &mut self.time.rng);
        let process = &mut self.actors.receivers[index];
        if !process.start(&self.scenario, list, index as u64, &self.oracle, self.time.now) {
            return;
        }
        let life = process.life;
        self.time.add_now(Event::TickReceiver(index, life));
        self.time.add_now(Event::Consume(index, life));
        self.sessions().greet_receiver(index);
    }

    /// The program consumes what it was handed out, now and then.
    fn consume(&mut self, index: usize, life: u32) {
        if self.actors.receivers[index].life != life {
            return;
        }
        self.actors.receivers[index].consume(self.time.now);
        self.time.add_within(50 * MILLISECOND, Event::Consume(index, life));
    }

    fn send_to_store(&mut self, from: u64, store: usize, frame: Vec<u8>) {
        if self.tamper.swallows(&frame) {
            return;
        }
        if from < FIRST_SESSION && self.actors.is_cut(from as usize, self.time.now) {
            return;
        }
        if let Some(at) = self.arrival((from, store as u64), store) {
            let life = self.actors.stores[store].life;
            self.time.add(at, Event::ToStore { store, life, frame });
        }
    }

    fn arrival(&mut self, way: Way, store: usize) -> Option<Nanos> {
        let is_cut = self.actors.is_cut(store, self.time.now);
        self.time.arrival(way, is_cut)
    }

    fn with_publisher(
        &mut self,
        index: usize,
        call: impl FnOnce(&mut Source, Nanos, &mut Collected) -> u64,
    ) -> Verdict {
        let process = &mut self.actors.publishers[index];
        let Some(source) = &mut process.source else { return Ok(()) };
        let (session, list) = (process.session, process.list.clone());
        let mut out = Collected { client: session, ..Collected::default() };
        let before = source.members().version;
        call(source, self.time.now, &mut out);
        let has_changed = source.is_registered() && source.members().version != before;
        self.outcome.members_changed += u64::from(has_changed);
        for (place, frame) in out.requests {
            self.send_to_store(session, list.store(place), frame);
        }
        out.events.into_iter().try_for_each(|event| self.on_event(index, event))
    }

    fn on_event(&mut self, index: usize, event: SourceEvent) -> Verdict {
        let run = self.actors.publishers[index].run();
        match event {
            SourceEvent::Registered { next } => {
                self.outcome.runs += 1;
                let is_other = self.lists.on_registered(&self.actors.publishers[index].list);
                self.outcome.other_lists += u64::from(is_other);
                self.actors.publishers[index].start = next;
                let (oracle, outcome) = (&mut self.oracle, &mut self.outcome);
                if let Some(run) = run {
                    self.runs.on_registered(run, next)?;
                    check_begun(&self.actors, run, next, oracle, outcome)?;
                }
                self.time.add_now(Event::Publish(index));
            }
            SourceEvent::Stable { next } => {
                run.into_iter().for_each(|run| self.runs.on_stable(run, next));
                let PublisherProcess { start, bodies, .. } = &self.actors.publishers[index];
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
                self.actors.publishers[index].is_superseded = true;
                self.end_session(index);
            }
            _ => {}
        }
        Ok(())
    }

    fn publish(&mut self, index: usize) {
        let process = &mut self.actors.publishers[index];
        let Some(source) = &mut process.source else { return };
        if process.is_superseded || self.is_quiet {
            return;
        }
        let mut body = source.next().to_le_bytes().to_vec();
        body.extend(process.session.to_le_bytes());
        body.resize(16 + self.time.rng.within(0..=40) as usize, 7);
        if source.check_room(body.len()).is_ok() {
            let sequence = source.sent(&body);
            let (number, session) = (process.bodies.len() as u64, process.session);
            process.bodies.push(body.clone());
            self.oracle.on_sent(sequence, &body);
            for store in 0..self.actors.stores.len() {
                if let Some(at) = self.arrival(live_to_store(session, store), store) {
                    let (life, body) = (self.actors.stores[store].life, body.clone());
                    self.time.add(at, Event::Live { store, life, session, number, body });
                }
            }
            for receiver in 0..self.actors.receivers.len() {
                if self.actors.receivers[receiver].is_cut_off(session) {
                    continue;
                }
                // Shared with the stores' links: a cut of the first one reaches no receiver.
                let arrival = self.arrival(live_to_receiver(session, receiver), 0);
                // A program that starts later takes no part in what was sent before.
                let process = &self.actors.receivers[receiver];
                if let Some(at) = arrival.filter(|_| process.is_living()) {
                    let (life, body) = (process.life, body.clone());
                    let event = Event::LiveToReceiver { receiver, life, session, number, body };
                    self.time.add(at, event);
                }
            }
        }
        self.time.add_within(2 * self.scenario.pace, Event::Publish(index));
    }

    fn fault(&mut self) {
        let store = self.time.rng.within(0..=self.actors.stores.len() as u64 - 1) as usize;
        let later = self.time.now + self.time.rng.up_to(800 * MILLISECOND);
        match self.time.rng.within(0..=15) {
            0..=2 => self.crash_store(store, later),
            3 => (0..self.actors.stores.len()).for_each(|store| self.crash_store(store, later)),
            4..=5 => {
                self.actors.stores[store].cut_until = later;
                if self.time.rng.percent(50) {
                    self.sessions().lose_store(store, later);
                }
            }
            6 if self.scenario.may_wipe => self.wipe(store, later),
            7 if self.scenario.may_fork => self.time.add_now(Event::StartPublisher),
            8 => self.trim(store),
            kind @ (9..=11 | 14..=15) if !self.actors.receivers.is_empty() => {
                let count = self.actors.receivers.len() as u64;
                let receiver = self.time.rng.within(0..=count - 1) as usize;
                self.fault_of_receiver(kind, receiver, later);
            }
            _ => {
                let living = self.actors.living();
                if !living.is_empty() {
                    let victim = self.time.rng.pick(&living);
                    self.end_publisher(victim);
                    self.outcome.publisher_crashes += 1;
                    self.time.add(later, Event::StartPublisher);
                }
            }
        }
    }

    fn fault_of_receiver(&mut self, kind: u64, receiver: usize, later: Nanos) {
        let is_final = self.time.rng.percent(50);
        match kind {
            9 => {
                self.actors.receivers[receiver].crash();
                self.time.add(later, Event::StartReceiver(receiver));
            }
            10..=11 => {
                let back = (!is_final).then_some(later);
                self.outcome.evictions += self.sessions().evict(receiver, back);
            }
            _ => self.actors.receivers[receiver].leave(!is_final, self.time.now),
        }
    }

    /// A publisher ends, with a crash or without.
    fn end_publisher(&mut self, index: usize) {
        self.actors.publishers[index].source = None;
        self.end_session(index);
    }

    fn end_session(&mut self, publisher: usize) {
        let session = self.actors.publishers[publisher].session;
        self.oracle.on_ended(session);
        self.sessions().end(session);
    }

    const fn sessions(&mut self) -> Sessions<'_> {
        Sessions { actors: &mut self.actors, time: &mut self.time }
    }

    fn crash_store(&mut self, index: usize, back: Nanos) {
        if !self.actors.crash_store(index, &mut self.time.rng, self.tamper) {
            return;
        }
        self.outcome.store_crashes += 1;
        self.time.add(back, Event::StartStore(index));
    }

    /// A store loses its data, unless it is the last that knows of the stream.
    fn wipe(&mut self, index: usize, back: Nanos) {
        if self.actors.is_last_to_know(index) {
            return;
        }
        self.crash_store(index, back);
        self.outcome.wipes += 1;
        self.actors.stores[index].log.wipe();
        if self.tamper != StoreTamper::KeepIncarnation {
            self.actors.stores[index].incarnation = self.time.rng.any();
        }
    }

    /// Retention gives up the older half of what is stable.
    fn trim(&mut self, index: usize) {
        let receivers = self.actors.staying();
        let first = self.actors.stores[index].trimmed(self.oracle.stable() / 2, &receivers);
        self.trimmed = self.trimmed.max(first);
        self.outcome.trims += 1;
        let life = self.actors.stores[index].life;
        self.with_store(index, life, |it, log, _, _| _ = it.trim(TOPIC, SOURCE, first, log));
    }

    fn start_store(&mut self, index: usize) {
        let process = &mut self.actors.stores[index];
        if process.store.is_some() {
            return;
        }
        process.store = Some(process.restored());
        let life = process.life;
        self.time.add_now(Event::TickStore(index, life));
        self.sessions().greet_store(index);
    }

    fn start_publisher(&mut self) {
        let living = self.actors.living().len();
        if living > usize::from(self.scenario.may_fork && !self.is_quiet) {
            return;
        }
        let index = self.actors.publishers.len();
        let session = FIRST_SESSION + index as u64;
        // A clock that stands still: order must not depend on it.
        let epoch = if self.time.rng.percent(30) { 0 } else { self.time.now / 1_000 };
        let list = self.lists.of_publisher(&self.actors.stores, self.is_quiet, &mut self.time.rng);
        let publisher = PublisherProcess::new(&self.scenario, list, session, epoch, self.time.now);
        self.actors.publishers.push(publisher);
        self.sessions().begin(index);
        self.time.add_now(Event::TickPublisher(index));
    }

    /// The last publishers end, and some receivers do not take part in their sessions any more: all
    /// are told of the end, also where all stores start again.
    fn end_sessions(&mut self) -> Verdict {
        if self.outcome.wipes > 0 {
            return Ok(());
        }
        for receiver in 0..self.actors.receivers.len() {
            self.actors.expect_left(receiver);
            if self.time.rng.percent(50) {
                self.outcome.evictions += self.sessions().evict(receiver, None);
                self.outcome.left_unseen += 1;
            }
        }
        let living = self.actors.living();
        let ended: Vec<u64> = living.iter().map(|it| self.actors.publishers[*it].session).collect();
        living.into_iter().for_each(|it| self.end_publisher(it));
        // Stores that start after the end have not seen it.
        if self.time.rng.percent(30) {
            for store in 0..self.actors.stores.len() {
                let back = self.time.now + self.time.rng.up_to(SECOND);
                self.crash_store(store, back);
            }
        }
        self.run_until(self.time.now + 10 * SECOND)?;
        check_left(&self.actors, &ended)
    }
}
