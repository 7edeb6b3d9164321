//! Actors on a fabric, driven by events.

use crate::dice::Dice;
use crate::ensure;
use crate::fault::Fault;
use crate::hearing::Hearing;
use crate::history::What;
use crate::medium::{Event, Medium};
use crate::network::{Network, owner};
use crate::publisher::Publisher;
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
    pub medium: Medium,
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
    dice: Dice,
}

impl World {
    /// Creates the simulation of `scenario`.
    pub fn new(scenario: Scenario) -> Self {
        let mut dice = Dice::new(scenario.seed ^ 1);
        let mut network = Network::new(scenario.weather, dice.fork());
        for subscriber in 0..scenario.subscribers.len() {
            network.set_path(host(subscriber), PUBLISHER, scenario.back);
        }
        if let Some(egress) = scenario.egress {
            network.set_egress(PUBLISHER, egress);
        }
        let mut medium = Medium::new(network, dice.fork());
        let began = medium.now;
        for (at, fault) in &scenario.faults {
            medium.agenda.enter(began + at, Event::Befalls(*fault));
        }
        for (topic, (_, at)) in scenario.topics.iter().enumerate() {
            medium.agenda.enter(began + at, Event::Adds(topic));
        }
        medium.agenda.enter(began + 1, Event::Publishes);
        medium.agenda.enter(began, Event::Announces);
        let plans = scenario.subscribers.iter().cloned().enumerate();
        let bytes = scenario.sender.datagram_bytes;
        let subscribers =
            plans.map(|(number, plan)| Subscriber::new(number, plan, bytes, dice.fork())).collect();
        Self {
            publisher: Publisher::new(&scenario, began, dice.fork()),
            truths: vec![Publisher::truth(&scenario, scenario.sender.session)],
            scenario,
            medium,
            subscribers,
            announces: true,
            began,
            events: 0,
            dice,
        }
    }

    /// Time since the start.
    pub const fn elapsed(&self) -> Nanos {
        self.medium.now - self.began
    }

    /// Runs all events before `until`.
    pub fn run_until(&mut self, until: Nanos) -> Verdict {
        while let Some(at) = self.medium.agenda.next_at().filter(|at| *at <= until) {
            self.events += 1;
            ensure!(self.events < EVENTS_MAX, "there is no end of events: {}", self.state());
            self.medium.now = self.medium.now.max(at);
            if let Some((_, event)) = self.medium.agenda.take() {
                self.happen(event)?;
            }
        }
        self.medium.now = self.medium.now.max(until);
        Ok(())
    }

    /// Whether no event is left.
    pub fn is_silent(&self) -> bool {
        self.medium.agenda.next_at().is_none()
    }

    /// State of all actors, in words.
    pub fn state(&self) -> String {
        let state = |subscriber: &Subscriber| {
            let told = subscriber.hearings.iter().map(Hearing::state).collect::<Vec<_>>();
            format!("{} [{}]", subscriber.socket(), told.join("; "))
        };
        let told: Vec<_> = self.subscribers.iter().map(state).collect();
        let sender = self.publisher.sender.as_ref();
        let (receivers, due) = (sender.map(Sender::receivers), sender.map(Sender::next_deadline));
        let now = self.medium.now;
        let topics = self.truths.last().map(|truth| &truth.topics);
        let published: Vec<_> = topics.into_iter().flatten().map(TopicTruth::published).collect();
        let told = told.join(", ");
        format!("now {now}, {receivers:?} receivers, due {due:?}, {published:?} published, {told}")
    }

    fn happen(&mut self, event: Event) -> Verdict {
        let Self { medium, publisher, subscribers, truths, .. } = self;
        match event {
            Event::Arrives { from, to, bytes } => {
                match subscribers.iter_mut().find(|subscriber| subscriber.socket() == to) {
                    Some(subscriber) => subscriber.arrive(medium, truths, bytes),
                    None => publisher.arrive(medium, from, bytes),
                }
            }
            Event::Wakes(crate::medium::Who::Publisher) => publisher.wake(medium),
            Event::Wakes(crate::medium::Who::Subscriber(number)) => {
                subscribers[number].wake(medium, truths)
            }
            Event::Publishes => publisher.publish(medium, &mut truths[publisher.session]),
            Event::Adds(topic) => {
                publisher.add_topic(topic, &mut truths[publisher.session])?;
                publisher.go_on(medium)
            }
            Event::Announces => self.announce(),
            Event::Befalls(fault) => self.befall(fault),
            Event::Connects(number) => self.connect(number),
            Event::Resets(number) => {
                publisher.reset(number);
                Ok(())
            }
            Event::Flows(number, true) => {
                let at = medium.connections[number].subscriber;
                subscribers[at].go_on(medium, truths)
            }
            Event::Flows(_, false) => publisher.go_on(medium),
        }
    }

    /// Announces the session to all subscribers that can be reached.
    fn announce(&mut self) -> Verdict {
        if !self.announces {
            return Ok(());
        }
        self.medium.after(ANNOUNCE, Event::Announces);
        let session = self.publisher.session;
        if !self.publisher.is_there() || self.truths[session].is_closed {
            return Ok(());
        }
        let late = self.scenario.sender.late_join;
        for subscriber in &mut self.subscribers {
            if !self.medium.network.is_cut(PUBLISHER, subscriber.host()) {
                let (medium, truths) = (&mut self.medium, &self.truths);
                subscriber.hear_of(medium, truths, session, Publisher::address(), late)?;
            }
        }
        Ok(())
    }

    fn connect(&mut self, number: usize) -> Verdict {
        let connection = &self.medium.connections[number];
        let (who, session) = (connection.subscriber, connection.session);
        let network = &self.medium.network;
        let there = !network.is_cut(PUBLISHER, host(who)) && !network.is_cut(host(who), PUBLISHER);
        let asked = !connection.is_broken && session == self.publisher.session;
        if there && asked && self.publisher.accept(&mut self.medium, number) {
            self.medium.connections[number].is_open = true;
            return self.subscribers[who].connected(&mut self.medium, &self.truths, number);
        }
        self.subscribers[who].disconnected(&mut self.medium, number);
        self.subscribers[who].go_on(&mut self.medium, &self.truths)
    }

    fn group(&self) -> Option<SocketAddr> {
        match self.scenario.sender.distribution {
            Distribution::Multicast(group) => Some(group),
            Distribution::Unicast | Distribution::Stream => None,
        }
    }

    fn befall(&mut self, fault: Fault) -> Verdict {
        let told = owner(Publisher::address()).map_or(0, |(_, socket)| socket);
        self.medium.note(told, What::Fault(format!("{fault:?}")));
        let group = self.group();
        let Self { medium, publisher, subscribers, truths, .. } = self;
        let began = self.began;
        match fault {
            Fault::Cut(from, to, until) => {
                medium.network.cut(from, to);
                medium.cuts.insert((from, to), began + until);
            }
            Fault::Heal(from, to) => medium.network.heal(from, to),
            Fault::Weather(weather) => medium.network.set_fabric(weather),
            Fault::Suspend(who) => subscribers[who].suspend(medium.now),
            Fault::Resume(who) => return subscribers[who].resume(medium, truths),
            Fault::Stall(who) => return subscribers[who].set_stalled(true, medium, truths),
            Fault::Unstall(who) => return subscribers[who].set_stalled(false, medium, truths),
            Fault::Crash(who) => subscribers[who].crash(medium),
            Fault::Start(who) => subscribers[who].start(medium, group),
            Fault::Leave(who) => return subscribers[who].leave(medium, truths),
            Fault::WantAll(who) => return subscribers[who].want_all(medium, truths),
            Fault::Break(who) => subscribers[who].break_off(medium),
            Fault::SuspendPublisher => publisher.suspend(),
            Fault::ResumePublisher => return publisher.resume(medium),
            Fault::CrashPublisher => self.crash_publisher(),
            Fault::RestartPublisher => return self.restart_publisher(),
        }
        Ok(())
    }

    /// The publisher's process dies, and its connections with it.
    pub fn crash_publisher(&mut self) {
        for number in self.publisher.crash(&mut self.medium) {
            let who = self.medium.connections[number].subscriber;
            self.subscribers[who].disconnected(&mut self.medium, number);
        }
    }

    fn restart_publisher(&mut self) -> Verdict {
        let session = self.truths.len();
        let truth = Publisher::truth(&self.scenario, self.dice.any());
        if !self.publisher.restart(&mut self.medium, session, &truth) {
            return Ok(());
        }
        self.truths.push(truth);
        let elapsed = self.elapsed();
        for topic in 0..self.scenario.topics.len() {
            if self.scenario.topics[topic].1 <= elapsed {
                self.publisher.add_topic(topic, &mut self.truths[session])?;
            }
        }
        self.publisher.go_on(&mut self.medium)
    }
}
