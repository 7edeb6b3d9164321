//! Members on a simulated network, driven by events.

use crate::ensure;
use crate::group::event::OwnedEvent;
use crate::group::fabric::{GroupEvent, GroupFabric, Parcel, StreamKey};
use crate::group::fault::GroupFault;
use crate::group::note::Note;
use crate::group::oracle::Oracle;
use crate::group::outlet::Collector;
use crate::group::process::{Process, Running, Slot, check_departures};
use crate::group::scenario::{GroupScenario, Place};
use crate::group::tamper::Tamper;
use crate::link::LinkConditions;
use crate::violation::{Verdict, Violation};
use lanecast_membership::{Departure, Member, MemberId, MemberInfo, Order, SendError};
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos};
use std::rc::Rc;

/// Most events of a run.
const EVENTS_MAX: u64 = 5_000_000;
/// Most ticks at one moment.
const TICKS_MAX: u32 = 50;

/// State of a simulation.
#[derive(Debug)]
pub struct GroupWorld {
    /// Scenario of the run.
    pub scenario: GroupScenario,
    /// Network and time.
    pub fabric: GroupFabric,
    /// The members' places.
    pub slots: Vec<Slot>,
    /// Checks all events.
    pub oracle: Oracle,
    /// A defect put in on purpose, to show that the oracle finds it.
    pub tamper: Tamper,
    handled: u64,
}

impl GroupWorld {
    /// Creates the simulation of `scenario`.
    pub fn new(scenario: GroupScenario) -> Self {
        let slot = |place: &Place| Slot { messages: place.messages, ..Slot::default() };
        Self {
            fabric: GroupFabric::new(&scenario),
            slots: scenario.places.iter().map(slot).collect(),
            scenario,
            oracle: Oracle::default(),
            tamper: Tamper::None,
            handled: 0,
        }
    }

    /// Ids of the members that run and do not leave.
    pub fn live(&self) -> Vec<MemberId> {
        let processes = self.slots.iter().filter_map(|slot| slot.process.as_ref());
        processes.filter(|process| process.is_live()).map(|process| process.id).collect()
    }

    /// Names of the members that run and do not leave.
    pub fn live_names(&self) -> Vec<&str> {
        self.live().iter().map(|id| &*self.oracle.log(*id).info.name).collect()
    }

    /// Whether all messages were accepted that live members want to send.
    pub fn has_sent_all(&self) -> bool {
        let live = |slot: &&Slot| slot.process.as_ref().is_some_and(Process::is_live);
        self.slots.iter().filter(live).all(|slot| slot.messages == 0)
    }

    /// Runs all events before `until`.
    pub fn run_until(&mut self, until: Nanos) -> Verdict {
        while let Some(at) = self.fabric.events.next_at().filter(|at| *at <= until) {
            self.handled += 1;
            ensure!(self.handled < EVENTS_MAX, "there is no end of events: {}", self.state());
            self.fabric.now = self.fabric.now.max(at);
            if let Some((_, event)) = self.fabric.events.take() {
                self.handle(event)?;
            }
        }
        self.fabric.now = self.fabric.now.max(until);
        Ok(())
    }

    /// State of all members, in words.
    pub fn state(&self) -> String {
        let mut words = format!("at {} us:", self.fabric.elapsed() / MICROSECOND);
        for (number, slot) in self.slots.iter().enumerate() {
            let process = slot.process.as_ref();
            let view = process.and_then(|process| self.oracle.log(process.id).view.as_ref());
            words += &format!("\n  m{number} {}", slot.describe(view));
        }
        words
    }

    fn process(&mut self, slot: usize, incarnation: u32) -> Option<&mut Process> {
        let process = self.slots[slot].process.as_mut();
        process.filter(|process| process.incarnation == incarnation)
    }

    fn handle(&mut self, event: GroupEvent) -> Verdict {
        match event {
            GroupEvent::Starts(slot) => self.start(slot),
            GroupEvent::Befalls(number) => {
                let (_, fault) = self.scenario.faults[number].clone();
                self.apply(&fault)
            }
            GroupEvent::Arrives(slot, incarnation, bytes) => self.arrive(slot, incarnation, bytes),
            GroupEvent::Releases(key) => self.release(key),
            GroupEvent::Answers(slot, incarnation, prober) => {
                self.answer(slot, incarnation, prober);
                Ok(())
            }
            GroupEvent::Wakes(slot, incarnation) => self.wake(slot, incarnation),
            GroupEvent::Serves(slot, incarnation) => self.serve(slot, incarnation),
            GroupEvent::Sends(slot, incarnation) => self.send_burst(slot, incarnation),
            GroupEvent::Signal(slot, incarnation, gone, why) => {
                let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
                if process.running != Running::Runs {
                    return Ok(());
                }
                self.fabric.note(slot, Note::IsTold(gone));
                self.call(slot, |member, now, out| {
                    member.on_peer_gone(now, gone, why, out);
                })
            }
        }
    }

    fn start(&mut self, slot: usize) -> Verdict {
        if self.slots[slot].process.is_some() {
            return Ok(());
        }
        self.slots[slot].incarnations += 1;
        let incarnation = self.slots[slot].incarnations;
        let id = MemberId(self.fabric.rng.any());
        let place = &self.scenario.places[slot];
        let started = place.clock.micros(self.fabric.now, &mut self.fabric.rng);
        let name = format!("m{}", place.name);
        let info = MemberInfo { id, incarnation: started, name, port: 0 };
        let former = self.slots[slot].latest_start.replace(started);
        self.fabric.totals.early += u64::from(former >= Some(started));
        self.oracle.add(info.clone(), place.sizes, self.scenario.settings.state);
        let (settings, rng) = (&self.scenario.settings, self.fabric.rng.fork());
        let process = Process::start(settings, info, incarnation, self.fabric.now, rng);
        self.slots[slot].process = Some(process);
        self.fabric.renew_streams(slot);
        self.fabric.note(slot, Note::Starts(id));
        self.slots[slot].sends_at = None;
        self.send_after(slot, 1);
        self.call(slot, |member, now, out| member.on_tick(now, out))
    }

    /// Plans the next burst of a process, unless an earlier one is planned.
    fn send_after(&mut self, slot: usize, pause: Nanos) {
        let at = self.fabric.now + pause;
        let Slot { process: Some(process), sends_at, .. } = &mut self.slots[slot] else { return };
        if sends_at.is_none_or(|planned| planned > at) {
            *sends_at = Some(at);
            self.fabric.events.add(at, GroupEvent::Sends(slot, process.incarnation));
        }
    }

    fn arrive(&mut self, slot: usize, incarnation: u32, bytes: Rc<[u8]>) -> Verdict {
        let (pace, most) =
            (self.scenario.places[slot].pace, self.scenario.places[slot].socket_bytes);
        let now = self.fabric.now;
        let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
        match process.running {
            Running::HasLeft => return Ok(()),
            Running::Runs if pace == 0 => return self.hear(slot, &bytes),
            Running::Runs | Running::Hangs => {}
        }
        if !process.queue(bytes, most) {
            self.fabric.totals.lost += 1;
            return Ok(());
        }
        if process.running == Running::Runs && process.inbox.len() == 1 {
            process.busy_until = process.busy_until.max(now) + pace;
            let at = process.busy_until;
            self.fabric.events.add(at, GroupEvent::Serves(slot, incarnation));
        }
        Ok(())
    }

    /// Hands over what has come by a stream.
    fn release(&mut self, key: StreamKey) -> Verdict {
        let (from, to, _) = key;
        while let Some(parcel) = self.fabric.release(key) {
            match parcel {
                Parcel::Frame(incarnation, bytes) => self.arrive(to, incarnation, bytes)?,
                Parcel::Probe(incarnation, prober) => {
                    self.fabric.answer_soon(to, incarnation, (from, prober));
                }
                Parcel::Answer(incarnation, id) => {
                    let process = self.process(to, incarnation);
                    if process.is_some_and(|process| process.running == Running::Runs) {
                        self.call(to, |member, now, _| member.on_answer(now, id))?;
                    }
                }
            }
        }
        Ok(())
    }

    /// A process answers a probe, unless it does not run.
    fn answer(&mut self, slot: usize, incarnation: u32, prober: (usize, u32)) {
        let Some(process) = self.process(slot, incarnation) else { return };
        match process.running {
            Running::HasLeft => {}
            Running::Hangs => self.fabric.answer_soon(slot, incarnation, prober),
            Running::Runs => {
                let id = process.id;
                self.fabric.answer(slot, id, prober);
            }
        }
    }

    /// A slow process handles its next frame.
    fn serve(&mut self, slot: usize, incarnation: u32) -> Verdict {
        // Calm in the end, so that all can catch up.
        let heals = self.fabric.elapsed() > self.scenario.healed;
        let pace = if heals { 1_000 } else { self.scenario.places[slot].pace };
        let now = self.fabric.now;
        let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
        if process.running != Running::Runs {
            return Ok(());
        }
        let Some(bytes) = process.next_frame() else { return Ok(()) };
        if !process.inbox.is_empty() {
            process.busy_until = now + pace;
            self.fabric.events.add(now + pace, GroupEvent::Serves(slot, incarnation));
        }
        self.hear(slot, &bytes)
    }

    fn hear(&mut self, slot: usize, bytes: &[u8]) -> Verdict {
        self.fabric.note(slot, Note::Hears { head: Note::head(bytes), bytes: bytes.len() });
        let now = self.fabric.now;
        if let Some(process) = &mut self.slots[slot].process {
            process.suspicions.on_frame(now, bytes);
        }
        self.call(slot, |member, now, out| member.on_frame(now, bytes, out))
    }

    fn wake(&mut self, slot: usize, incarnation: u32) -> Verdict {
        let now = self.fabric.now;
        let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
        if process.wakes_at != Some(now) || process.running != Running::Runs {
            return Ok(());
        }
        process.wakes_at = None;
        self.call(slot, |member, now, out| member.on_tick(now, out))?;
        let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
        process.idle_ticks =
            if process.member.next_tick() > now { 0 } else { process.idle_ticks + 1 };
        let (ticks, due) = (process.idle_ticks, process.member.next_tick());
        ensure!(ticks < TICKS_MAX, "m{slot} is due at {due} again and again, and it is {now}");
        Ok(())
    }

    /// Calls a member, and handles its frames and events.
    fn call(
        &mut self,
        slot: usize,
        call: impl FnOnce(&mut Member, Nanos, &mut Collector),
    ) -> Verdict {
        let now = self.fabric.now;
        let Some(process) = &mut self.slots[slot].process else { return Ok(()) };
        let has_backlog = !process.inbox.is_empty();
        let ((), out) = process.call(|member, out| {
            member.set_backlog(now, has_backlog);
            call(member, now, out);
        });
        self.settle(slot, out)
    }

    fn settle(&mut self, slot: usize, mut out: Collector) -> Verdict {
        let Some(process) = &mut self.slots[slot].process else { return Ok(()) };
        self.tamper.change(&mut out);
        let id = process.id;
        let now = self.fabric.now;
        let is_told_once = process.suspicions.on_events(now, id, &out.events);
        for event in &out.events {
            self.fabric.note(slot, Note::Event(event.clone()));
        }
        is_told_once?;
        self.fabric.totals.refused_frames += out.refused;
        self.oracle.events(id, &out.events)?;
        self.oracle.stable(id, process.member.stable())?;
        if out.events.contains(&OwnedEvent::Left) {
            process.running = Running::HasLeft;
            self.fabric.totals.replaced += u64::from(!process.leaves);
            self.fabric.end_streams(&self.slots, id);
        }
        let Some(process) = &mut self.slots[slot].process else { return Ok(()) };
        for frame in &out.frames {
            process.frames[usize::from(frame.to.is_some())] += 1;
        }
        out.frames.iter().for_each(|frame| self.fabric.transmit(&self.slots, slot, frame));
        out.probes.iter().for_each(|id| self.fabric.probe(&self.slots, slot, *id));
        if self.scenario.is_gentle {
            check_departures(&self.slots, id, &out.events)?;
        }
        self.schedule(slot);
        let writable = out.events.contains(&OwnedEvent::Writable);
        for event in out.events {
            if let OwnedEvent::StateRequested { to, token } = event {
                let length = self.scenario.places[slot].state_bytes;
                let state = self.oracle.provide(id, to, token, length);
                self.call(slot, |member, now, out| {
                    _ = member.provide_state(now, token, state, out);
                })?;
            }
        }
        if writable {
            self.send_after(slot, MICROSECOND);
        }
        Ok(())
    }

    fn schedule(&mut self, slot: usize) {
        let Some(process) = &mut self.slots[slot].process else { return };
        if process.running != Running::Runs {
            return;
        }
        let at = process.member.next_tick().max(self.fabric.now);
        if at == Nanos::MAX || process.wakes_at.is_some_and(|wakes| wakes <= at) {
            return;
        }
        process.wakes_at = Some(at);
        self.fabric.events.add(at, GroupEvent::Wakes(slot, process.incarnation));
    }

    fn send_burst(&mut self, slot: usize, incarnation: u32) -> Verdict {
        if self.process(slot, incarnation).is_none()
            || self.slots[slot].sends_at != Some(self.fabric.now)
        {
            return Ok(());
        }
        self.slots[slot].sends_at = None;
        let place = self.scenario.places[slot].clone();
        for _ in 0..place.burst {
            let messages = self.slots[slot].messages;
            let Some(process) = self.process(slot, incarnation) else { return Ok(()) };
            if messages == 0 || !process.is_live() || process.running != Running::Runs {
                break;
            }
            if !self.send(slot, place.total, place.direct)? {
                break;
            }
            self.slots[slot].messages -= 1;
        }
        if self.slots[slot].messages > 0 && self.process(slot, incarnation).is_some() {
            let pause = place.pause.clamp(10 * MICROSECOND, 200 * MILLISECOND);
            let pause = pause / 2 + self.fabric.rng.up_to(pause);
            self.send_after(slot, pause);
        }
        Ok(())
    }

    /// Sends a message; false if it was refused.
    pub fn send(&mut self, slot: usize, total: u32, direct: u32) -> Verdict<bool> {
        let now = self.fabric.now;
        let order = if self.fabric.rng.percent(total) { Order::Total } else { Order::Sender };
        let is_direct = self.fabric.rng.percent(direct);
        let choice = self.fabric.rng.any() as usize;
        let Some(process) = &mut self.slots[slot].process else { return Ok(false) };
        let id = process.id;
        let log = self.oracle.logs.get_mut(&id);
        let log = log.ok_or_else(|| Violation(format!("{id} does not exist")))?;
        let others = log.view.iter().flat_map(|view| &view.members).filter(|to| to.id != id);
        let others: Vec<_> = others.map(|member| member.id).collect();
        let to = (is_direct && !others.is_empty()).then(|| others[choice % others.len()]);
        let payload = match to {
            Some(to) => log.truth.direct_to(to).next_payload(),
            None => log.truth.to_all.next_payload(),
        };
        let (sent, out) = process.call(|member, out| match to {
            Some(to) => member.try_send_to(now, to, &payload, out),
            None => member.try_send(now, &payload, order, out),
        });
        match sent {
            Ok(sequence) => match to {
                Some(to) => self.oracle.sent_to(id, to, sequence)?,
                None => self.oracle.sent(id, order, sequence)?,
            },
            Err(why) => {
                let has_view = self.oracle.log(id).view.is_some();
                ensure!(
                    has_view
                        || matches!(
                            why,
                            SendError::NoView | SendError::Changing | SendError::HasLeft
                        ),
                    "{id} may not send: {why}, but has no view"
                );
                self.fabric.totals.refused_sends += 1;
                self.fabric.note(slot, Note::IsRefused(why));
            }
        }
        self.settle(slot, out)?;
        Ok(sent.is_ok())
    }

    fn apply(&mut self, fault: &GroupFault) -> Verdict {
        self.fabric.note(0, Note::Fault(fault.clone()));
        if self.fabric.apply(fault, self.slots.len()) {
            return Ok(());
        }
        match *fault {
            GroupFault::Crash(slot, signal) => self.crash(slot, signal),
            GroupFault::Start(slot) => return self.start(slot),
            GroupFault::Hang(slot) => {
                if let Some(process) = &mut self.slots[slot].process
                    && process.running == Running::Runs
                {
                    process.running = Running::Hangs;
                    self.fabric.totals.hangs += 1;
                }
            }
            GroupFault::Resume(slot) => return self.resume(slot),
            GroupFault::Leave(slot) => return self.leave(slot),
            GroupFault::Refuse(slot, odds) => {
                if let Some(process) = &mut self.slots[slot].process {
                    process.refuses = odds;
                }
            }
            GroupFault::FalseAlarm(slot, other) => {
                let gone = self.slots[other].process.as_ref().map(|process| process.id);
                let at = self.slots[slot].process.as_ref().map(|process| process.incarnation);
                if let (Some(gone), Some(incarnation)) = (gone, at) {
                    // From no draw, so that a seed is what it was.
                    let is_stream = gone.0.is_multiple_of(2);
                    let why = if is_stream { Departure::Left } else { Departure::Crashed };
                    let told = GroupEvent::Signal(slot, incarnation, gone, why);
                    self.fabric.events.add(self.fabric.now, told);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The member of a process leaves.
    pub fn leave(&mut self, slot: usize) -> Verdict {
        let Some(process) = &mut self.slots[slot].process else { return Ok(()) };
        if process.running != Running::Runs || process.leaves {
            return Ok(());
        }
        process.leaves = true;
        self.fabric.totals.leaves += 1;
        self.call(slot, |member, now, out| member.leave(now, out))
    }

    fn crash(&mut self, slot: usize, signal: Option<Nanos>) {
        let Some(gone) = self.slots[slot].process.take() else { return };
        self.fabric.totals.crashes += 1;
        let Some(after) = signal else { return };
        for (other, there) in self.slots.iter().enumerate() {
            if let Some(process) = &there.process {
                let at = self.fabric.now + after + self.fabric.rng.up_to(after);
                let (incarnation, why) = (process.incarnation, Departure::Crashed);
                let told = GroupEvent::Signal(other, incarnation, gone.id, why);
                self.fabric.events.add(at, told);
            }
        }
    }

    fn resume(&mut self, slot: usize) -> Verdict {
        let now = self.fabric.now;
        let Some(process) = &mut self.slots[slot].process else { return Ok(()) };
        if process.running != Running::Hangs {
            return Ok(());
        }
        process.running = Running::Runs;
        process.wakes_at = None;
        let incarnation = process.incarnation;
        let pace = self.scenario.places[slot].pace;
        // The driver may poll first, or look at its clock first.
        if self.fabric.rng.percent(50) {
            self.call(slot, |member, now, out| member.on_tick(now, out))?;
        }
        if pace > 0 {
            self.fabric.events.add(now, GroupEvent::Serves(slot, incarnation));
        } else {
            while let Some(process) = &mut self.slots[slot].process
                && let Some(bytes) = process.next_frame()
            {
                self.hear(slot, &bytes)?;
            }
        }
        self.send_after(slot, 1);
        self.schedule(slot);
        Ok(())
    }

    /// Ends all faults: the network is calm, and every process runs, except for the dead.
    pub fn end_faults(&mut self) -> Verdict {
        self.fabric.heal(self.slots.len());
        self.fabric.network.set_fabric(LinkConditions::CALM);
        self.fabric.calm_streams();
        self.scenario.healed = self.scenario.healed.min(self.fabric.elapsed());
        for slot in 0..self.slots.len() {
            self.scenario.places[slot].pause = MILLISECOND;
            self.scenario.places[slot].pace = self.scenario.places[slot].pace.min(1_000);
            if let Some(process) = &mut self.slots[slot].process {
                process.refuses = 0;
            }
            self.resume(slot)?;
        }
        Ok(())
    }
}
