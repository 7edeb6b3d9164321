//! Actors on a fabric, driven by events.

use crate::checked_receiver::CheckedReceiver;
use crate::ensure;
use crate::fabric::{Event, Fabric};
use crate::fault::Fault;
use crate::history::What;
use crate::network::{Network, owner};
use crate::publisher::Publisher;
use crate::rng::SimRng;
use crate::scenario::{ANNOUNCE, PUBLISHER, Scenario, host};
use crate::subscriber::Subscriber;
use crate::truth::{TopicTruth, Truth};
use crate::violation::Verdict;
use lanecast_protocol::Nanos;
use lanecast_protocol::sender::{Distribution, Sender};
use std::net::SocketAddr;

/// Most events of a run.
const EVENTS_MAX: u64 = 3_000_000;

/// State of a simulation.
#[derive(Debug)]
pub struct World {
    /// Scenario of the run.
    pub scenario: Scenario,
    /// Fabric of all actors.
    pub fabric: Fabric,
    /// The publisher's process.
    pub publisher: Publisher,
    /// The subscribers' processes.
    pub subscribers: Vec<Subscriber>,
    /// Published messages, by session.
    pub truths: Vec<Truth>,
    /// Sessions are announced.
    pub announces: bool,
    began: Nanos,
    events: u64,
    rng: SimRng,
}

impl World {
    /// Creates the simulation of `scenario`.
    pub fn new(scenario: Scenario) -> Self {
        let mut rng = SimRng::new(scenario.seed ^ 1);
        let mut network = Network::new(scenario.conditions, rng.fork());
        for subscriber in 0..scenario.subscribers.len() {
            network.set_path(host(subscriber), PUBLISHER, scenario.back);
        }
        if let Some(egress) = scenario.egress {
            network.set_egress(PUBLISHER, egress);
        }
        let mut fabric = Fabric::new(network, rng.fork());
        let began = fabric.now;
        for (at, fault) in &scenario.faults {
            fabric.events.add(began + at, Event::Befalls(*fault));
        }
        for (topic, (_, at)) in scenario.topics.iter().enumerate() {
            fabric.events.add(began + at, Event::Adds(topic));
        }
        fabric.events.add(began + 1, Event::Publishes);
        fabric.events.add(began, Event::Announces);
        let plans = scenario.subscribers.iter().cloned().enumerate();
        let bytes = scenario.sender.datagram_bytes;
        let subscribers =
            plans.map(|(number, plan)| Subscriber::new(number, plan, bytes, rng.fork())).collect();
        Self {
            publisher: Publisher::new(&scenario, began, rng.fork()),
            truths: vec![Publisher::truth(&scenario, scenario.sender.session)],
            scenario,
            fabric,
            subscribers,
            announces: true,
            began,
            events: 0,
            rng,
        }
    }

    /// Time since the start.
    pub const fn elapsed(&self) -> Nanos {
        self.fabric.now - self.began
    }

    /// Runs all events before `until`.
    pub fn run_until(&mut self, until: Nanos) -> Verdict {
        while let Some(at) = self.fabric.events.next_at().filter(|at| *at <= until) {
            self.events += 1;
            ensure!(self.events < EVENTS_MAX, "there is no end of events: {}", self.state());
            self.fabric.now = self.fabric.now.max(at);
            if let Some((_, event)) = self.fabric.events.take() {
                self.handle(event)?;
            }
        }
        self.fabric.now = self.fabric.now.max(until);
        Ok(())
    }

    /// Whether no event is left.
    pub fn is_silent(&self) -> bool {
        self.fabric.events.next_at().is_none()
    }

    /// State of all actors, in words.
    pub fn state(&self) -> String {
        let state = |subscriber: &Subscriber| {
            let told =
                subscriber.checked_receivers.iter().map(CheckedReceiver::state).collect::<Vec<_>>();
            format!("{} [{}]", subscriber.socket(), told.join("; "))
        };
        let told: Vec<_> = self.subscribers.iter().map(state).collect();
        let sender = self.publisher.sender.as_ref();
        let (receivers, due) = (sender.map(Sender::receivers), sender.map(Sender::next_deadline));
        let now = self.fabric.now;
        let topics = self.truths.last().map(|truth| &truth.topics);
        let published: Vec<_> = topics.into_iter().flatten().map(TopicTruth::published).collect();
        let told = told.join(", ");
        format!("now {now}, {receivers:?} receivers, due {due:?}, {published:?} published, {told}")
    }

    fn handle(&mut self, event: Event) -> Verdict {
        let Self { fabric, publisher, subscribers, truths, .. } = self;
        match event {
            Event::Arrives { from, to, bytes } => {
                match subscribers.iter_mut().find(|subscriber| subscriber.socket() == to) {
                    Some(subscriber) => subscriber.arrive(fabric, truths, bytes),
                    None => publisher.arrive(fabric, from, bytes),
                }
            }
            Event::Wakes(crate::fabric::ActorId::Publisher) => publisher.wake(fabric),
            Event::Wakes(crate::fabric::ActorId::Subscriber(number)) => {
                subscribers[number].wake(fabric, truths)
            }
            Event::Publishes => publisher.publish(fabric, &mut truths[publisher.session]),
            Event::Adds(topic) => {
                publisher.add_topic(topic, &mut truths[publisher.session])?;
                publisher.poll(fabric)
            }
            Event::Announces => self.announce(),
            Event::Befalls(fault) => self.apply(fault),
            Event::Connects(number) => self.connect(number),
            Event::Resets(number) => {
                publisher.reset(number);
                Ok(())
            }
            Event::Flows(number, true) => {
                let at = fabric.connections[number].subscriber;
                subscribers[at].poll(fabric, truths)
            }
            Event::Flows(_, false) => publisher.poll(fabric),
        }
    }

    /// Announces the session to all subscribers that can be reached.
    fn announce(&mut self) -> Verdict {
        if !self.announces {
            return Ok(());
        }
        self.fabric.after(ANNOUNCE, Event::Announces);
        let session = self.publisher.session;
        if !self.publisher.is_there() || self.truths[session].is_closed {
            return Ok(());
        }
        let late = self.scenario.sender.late_join;
        for subscriber in &mut self.subscribers {
            if !self.fabric.network.is_cut(PUBLISHER, subscriber.host()) {
                let (fabric, truths) = (&mut self.fabric, &self.truths);
                subscriber.on_announced(fabric, truths, session, Publisher::address(), late)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, number: usize) -> Verdict {
        let connection = &self.fabric.connections[number];
        let (who, session) = (connection.subscriber, connection.session);
        let network = &self.fabric.network;
        let there = !network.is_cut(PUBLISHER, host(who)) && !network.is_cut(host(who), PUBLISHER);
        let asked = !connection.is_broken && session == self.publisher.session;
        if there && asked && self.publisher.accept(&mut self.fabric, number) {
            self.fabric.connections[number].is_open = true;
            return self.subscribers[who].connected(&mut self.fabric, &self.truths, number);
        }
        self.subscribers[who].disconnected(&mut self.fabric, number);
        self.subscribers[who].poll(&mut self.fabric, &self.truths)
    }

    fn group(&self) -> Option<SocketAddr> {
        match self.scenario.sender.distribution {
            Distribution::Multicast(group) => Some(group),
            Distribution::Unicast | Distribution::Stream => None,
        }
    }

    fn apply(&mut self, fault: Fault) -> Verdict {
        let told = owner(Publisher::address()).map_or(0, |(_, socket)| socket);
        self.fabric.note(told, What::Fault(format!("{fault:?}")));
        let group = self.group();
        let Self { fabric, publisher, subscribers, truths, .. } = self;
        let began = self.began;
        match fault {
            Fault::Cut(from, to, until) => {
                fabric.network.cut(from, to);
                fabric.cuts.insert((from, to), began + until);
            }
            Fault::Heal(from, to) => fabric.network.heal(from, to),
            Fault::LinkConditions(conditions) => fabric.network.set_fabric(conditions),
            Fault::Suspend(who) => subscribers[who].suspend(fabric.now),
            Fault::Resume(who) => return subscribers[who].resume(fabric, truths),
            Fault::Stall(who) => return subscribers[who].set_stalled(true, fabric, truths),
            Fault::Unstall(who) => return subscribers[who].set_stalled(false, fabric, truths),
            Fault::Crash(who) => subscribers[who].crash(fabric),
            Fault::Start(who) => subscribers[who].start(fabric, group),
            Fault::Leave(who) => return subscribers[who].leave(fabric, truths),
            Fault::WantAll(who) => return subscribers[who].subscribe_all(fabric, truths),
            Fault::Break(who) => subscribers[who].break_off(fabric),
            Fault::SuspendPublisher => publisher.suspend(),
            Fault::ResumePublisher => return publisher.resume(fabric),
            Fault::CrashPublisher => self.crash_publisher(),
            Fault::RestartPublisher => return self.restart_publisher(),
        }
        Ok(())
    }

    /// The publisher's process dies, and its connections with it.
    pub fn crash_publisher(&mut self) {
        for number in self.publisher.crash(&mut self.fabric) {
            let who = self.fabric.connections[number].subscriber;
            self.subscribers[who].disconnected(&mut self.fabric, number);
        }
    }

    fn restart_publisher(&mut self) -> Verdict {
        let session = self.truths.len();
        let truth = Publisher::truth(&self.scenario, self.rng.any());
        if !self.publisher.restart(&mut self.fabric, session, &truth) {
            return Ok(());
        }
        self.truths.push(truth);
        let elapsed = self.elapsed();
        for topic in 0..self.scenario.topics.len() {
            if self.scenario.topics[topic].1 <= elapsed {
                self.publisher.add_topic(topic, &mut self.truths[session])?;
            }
        }
        self.publisher.poll(&mut self.fabric)
    }
}
