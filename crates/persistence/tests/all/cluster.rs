//! A publisher and stores by name, whose frames are delivered one after the other; publishers and
//! stores end and come back between any two of them.

use crate::parts::{MemoryLog, TOPIC};
use core::ops::Range;
use lanecast_persistence::{
    GroupRule, Source, SourceEvent, SourceOutlet, SourceSettings, Store, StoreGroups, StoreLog,
    StoreOutlet, StoreSettings,
};
use lanecast_wire::store::{Ballot, LogRecord, Members, Run, StoreAddress, StoreFrame};
use std::collections::VecDeque;

pub(crate) const SOURCE: u64 = 7;
/// Clients from this number on are publishers; those below are stores.
const FIRST_SESSION: u64 = 100;
const MILLISECOND: u64 = 1_000_000;

/// Frames under way: sender, receiver, bytes.
type Frames = Vec<(u64, To, Vec<u8>)>;

#[derive(Clone, Debug)]
enum To {
    Client(u64),
    Store(String),
}

/// Frames and events of one call.
struct Out<'a> {
    from: u64,
    /// Names of the publisher's stores.
    list: &'a [String],
    frames: Frames,
    events: Vec<SourceEvent>,
}

impl Out<'_> {
    fn send(&mut self, client: u64, to: To, frame: &StoreFrame<'_>) {
        let mut bytes = Vec::new();
        frame.write(StoreAddress { client, source: SOURCE, topic: TOPIC }, &mut bytes);
        self.frames.push((self.from, to, bytes));
    }
}

impl SourceOutlet for Out<'_> {
    fn request(&mut self, store: usize, frame: &StoreFrame<'_>) {
        self.send(self.from, To::Store(self.list[store].clone()), frame);
    }

    fn event(&mut self, event: SourceEvent) {
        self.events.push(event);
    }
}

impl StoreOutlet for Out<'_> {
    fn reply(&mut self, client: u64, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.send(client, To::Client(client), frame);
    }

    fn request(&mut self, store: &str, _: &str, _: u64, frame: &StoreFrame<'_>) {
        self.send(self.from, To::Store(store.to_owned()), frame);
    }
}

/// A store and its disk.
struct Host {
    name: String,
    incarnation: u64,
    store: Option<Store>,
    log: MemoryLog,
}

/// The stores, and the publisher's run.
pub(crate) struct Cluster {
    hosts: Vec<Host>,
    source: Option<Source>,
    list: Vec<String>,
    session: u64,
    number: u64,
    now: u64,
    flying: VecDeque<(u64, To, Vec<u8>)>,
    /// Events of all runs.
    pub(crate) events: Vec<SourceEvent>,
    /// The message that each run has sent under each sequence, as it was told to be stable.
    pub(crate) stable: Vec<Vec<u8>>,
    unstable: Vec<(u64, Vec<u8>)>,
}

impl Cluster {
    pub(crate) fn new(names: &[&str]) -> Self {
        let mut cluster = Self {
            hosts: Vec::new(),
            source: None,
            list: Vec::new(),
            session: FIRST_SESSION,
            number: 0,
            now: 1_000 * MILLISECOND,
            flying: VecDeque::new(),
            events: Vec::new(),
            stable: Vec::new(),
            unstable: Vec::new(),
        };
        for (incarnation, name) in (50..).zip(names) {
            let (name, log) = ((*name).to_owned(), MemoryLog::default());
            cluster.hosts.push(Host { name, incarnation, store: None, log });
        }
        names.iter().for_each(|name| cluster.start(name));
        cluster
    }

    fn host(&mut self, name: &str) -> &mut Host {
        self.hosts.iter_mut().find(|host| host.name == name).expect("a store")
    }

    /// A store comes back with what is on its disk.
    pub(crate) fn start(&mut self, name: &str) {
        let host = self.host(name);
        // Answers to few messages, so that copies take several.
        let settings = StoreSettings { longest_frame: 30, ..StoreSettings::default() };
        host.store = Some(host.log.restore(Store::new(settings, host.incarnation)));
    }

    pub(crate) fn stop(&mut self, name: &str) {
        self.host(name).store = None;
        if let (Some(index), Some(source)) = (self.index(name), &mut self.source) {
            source.on_disconnected(index);
        }
    }

    /// Another publisher has opened a run at this store, and died.
    pub(crate) fn promise(&mut self, name: &str) {
        let session = FIRST_SESSION + 1_000;
        let open = StoreFrame::Open { ballot: Ballot { epoch: 1 << 40, session } };
        let mut bytes = Vec::new();
        let address = StoreAddress { client: session, source: SOURCE, topic: TOPIC };
        open.write(address, &mut bytes);
        self.flying.push_back((session, To::Store(name.to_owned()), bytes));
    }

    /// The same, without a word to the publisher: its connection stands.
    pub(crate) fn freeze(&mut self, name: &str) {
        self.host(name).store = None;
    }

    /// Retention of a store gives up the messages before `first`.
    pub(crate) fn trim(&mut self, name: &str, first: u64) {
        let Host { store: Some(store), log, .. } = self.host(name) else { return };
        store.trim(TOPIC, SOURCE, first, log).expect("room");
    }

    /// Sequences of the messages that a store has.
    pub(crate) fn messages(&mut self, name: &str) -> Range<u64> {
        let store = self.host(name).store.as_ref().expect("it runs");
        let mut streams = store.summaries().map(|it| it.first..it.next);
        streams.next().expect("a stream")
    }

    /// A store comes back without its data.
    pub(crate) fn wipe(&mut self, name: &str) {
        self.stop(name);
        let host = self.host(name);
        (host.log, host.incarnation) = (MemoryLog::default(), host.incarnation + 100);
        self.start(name);
    }

    fn index(&self, name: &str) -> Option<usize> {
        self.list.iter().position(|it| it == name)
    }

    /// Starts a publisher with these groups of stores; the one before has died.
    pub(crate) fn publish_with(&mut self, groups: &[&[&str]], rule: GroupRule) {
        let groups = groups.iter().map(|group| group.to_vec()).collect();
        let groups = StoreGroups::new(groups, rule).expect("groups");
        self.list = groups.names().map(str::to_owned).collect();
        let settings = SourceSettings { longest_frame: 100, ..SourceSettings::new(groups) };
        self.session += 1;
        self.number = 0;
        self.unstable.clear();
        self.source = Some(Source::new(settings, self.session, 0, self.now));
        self.events.clear();
        self.tick();
    }

    /// The same with one group.
    pub(crate) fn publish(&mut self, stores: &[&str]) {
        self.publish_with(&[stores], GroupRule::Any);
    }

    /// Time goes on to the next requests.
    pub(crate) fn tick(&mut self) {
        self.now += 100 * MILLISECOND;
        let (now, list) = (self.now, self.list.clone());
        for (index, host) in (0..).zip(&mut self.hosts) {
            let Host { store: Some(store), log, .. } = host else { continue };
            let mut out = Out { from: index, list: &list, frames: Vec::new(), events: Vec::new() };
            store.tick(now, log, &mut out);
            self.flying.extend(out.frames);
        }
        self.with_source(|source, out| {
            source.tick(now, out);
        });
    }

    fn with_source(&mut self, call: impl FnOnce(&mut Source, &mut Out<'_>)) {
        let Some(source) = &mut self.source else { return };
        let (list, from) = (self.list.clone(), self.session);
        let mut out = Out { from, list: &list, frames: Vec::new(), events: Vec::new() };
        call(source, &mut out);
        self.flying.extend(out.frames);
        for event in &out.events {
            self.check(event);
        }
        self.events.extend(out.events);
    }

    /// A run goes on behind all that was stable, and nothing else becomes stable in its place.
    fn check(&mut self, event: &SourceEvent) {
        match event {
            SourceEvent::Registered { next } => {
                let stable = self.stable.len() as u64;
                assert!(*next >= stable, "a run begins at {next}, and {stable} are stable");
                // What was not told to be stable, and is kept.
                for _ in stable..*next {
                    self.stable.push(b"inherited".to_vec());
                }
            }
            SourceEvent::Stable { next } => {
                while (self.stable.len() as u64) < *next {
                    let sequence = self.stable.len() as u64;
                    let sent = self.unstable.iter().find(|(it, _)| *it == sequence);
                    self.stable.push(sent.expect("a message of this run").1.clone());
                }
            }
            _ => {}
        }
    }

    /// Delivers the next frame; returns whether there was one.
    pub(crate) fn deliver(&mut self) -> bool {
        let Some((from, to, bytes)) = self.flying.pop_front() else { return false };
        let (now, list) = (self.now, self.list.clone());
        let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
        let index = match &to {
            To::Client(client) if *client >= FIRST_SESSION => {
                let sender = self.hosts[from as usize].name.clone();
                if *client == self.session
                    && let Some(index) = self.index(&sender)
                {
                    self.with_source(|source, out| source.on_frame(index, &frame, now, out));
                }
                return true;
            }
            To::Client(client) => *client as usize,
            To::Store(name) => {
                self.hosts.iter().position(|it| it.name == *name).expect("a store's name")
            }
        };
        let Host { store: Some(store), log, .. } = &mut self.hosts[index] else { return true };
        let from = index as u64;
        let mut out = Out { from, list: &list, frames: Vec::new(), events: Vec::new() };
        store.on_frame(address, &frame, now, log, &mut out);
        store.on_persisted(log, &mut out);
        self.flying.extend(out.frames);
        true
    }

    /// Lets so many intervals of requests pass.
    pub(crate) fn run(&mut self, ticks: usize) {
        for _ in 0..ticks {
            while self.deliver() {}
            self.tick();
        }
        while self.deliver() {}
    }

    /// Publishes messages that reach all stores which run, but for those that are `deaf`.
    pub(crate) fn send(&mut self, count: usize, deaf: &[&str]) {
        for _ in 0..count {
            let source = self.source.as_mut().expect("a publisher");
            let body = format!("{} of {}", source.next(), self.session).into_bytes();
            source.check_room(body.len()).expect("a run that is registered");
            let sequence = source.sent(&body);
            let (session, number, now) = (self.session, self.number, self.now);
            self.number += 1;
            self.unstable.push((sequence, body.clone()));
            let list = self.list.clone();
            for (index, host) in (0..).zip(&mut self.hosts) {
                let is_deaf = deaf.contains(&host.name.as_str());
                let (Some(store), false) = (&mut host.store, is_deaf) else { continue };
                let (frames, events) = (Vec::new(), Vec::new());
                let mut out = Out { from: index, list: &list, frames, events };
                store.on_message(session, number, &body, now, &mut host.log, &mut out);
                store.on_persisted(&host.log, &mut out);
                self.flying.extend(out.frames);
            }
        }
    }

    pub(crate) fn is_registered(&self) -> bool {
        self.source.as_ref().is_some_and(Source::is_registered)
    }

    /// Names of the members, in ascending order; none while they change.
    pub(crate) fn members(&self) -> Vec<String> {
        let members = self.source.as_ref().map(Source::members);
        let stores = members.filter(|it| !it.is_joint()).map_or(&[][..], |it| &it.stores);
        let mut names: Vec<String> = stores.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names
    }

    /// Stores of a stream that an earlier build has recorded, without groups.
    pub(crate) fn with_members_of_an_earlier_build(names: &[&str]) -> Self {
        let mut cluster = Self::new(names);
        let stores = cluster.hosts.iter().map(|it| (it.name.clone(), it.incarnation)).collect();
        let members = Members::without_groups(1, stores);
        let ballot = Ballot { epoch: 3, session: 9 };
        let runs = vec![Run { ballot, start: 0 }];
        for host in &mut cluster.hosts {
            for record in [
                LogRecord::Stream { stream: 0, topic: TOPIC, source: SOURCE },
                LogRecord::Promised { stream: 0, ballot },
                LogRecord::Began {
                    stream: 0,
                    number: 0,
                    first: 0,
                    members: members.clone(),
                    runs: runs.clone(),
                },
            ] {
                host.log.append(&record).expect("room");
            }
        }
        names.iter().for_each(|name| cluster.start(name));
        cluster
    }

    /// Sessions whose messages a store takes for those of a stream.
    pub(crate) fn sessions(&self, name: &str) -> usize {
        let host = self.hosts.iter().find(|host| host.name == name).expect("a store");
        let words = format!("{:?}", host.store);
        let sessions = words.split_once("by_session: {").expect("a field").1;
        let sessions = sessions.split_once('}').expect("its end").0;
        sessions.split(',').filter(|it| !it.is_empty()).count()
    }

    /// The last `Waiting`: silent, wiped and unlisted stores, and newcomers.
    pub(crate) fn waiting(&self) -> Option<[Vec<String>; 4]> {
        self.events.iter().rev().find_map(|event| match event {
            SourceEvent::Waiting { silent, wiped, unlisted, newcomers } => {
                Some([silent, wiped, unlisted, newcomers].map(Clone::clone))
            }
            _ => None,
        })
    }

    /// Checks that a run is registered, and that a message becomes stable.
    #[track_caller]
    pub(crate) fn assert_lives(&mut self) {
        self.run(40);
        assert!(self.is_registered(), "{:?}", self.waiting());
        let before = self.stable.len();
        self.send(1, &[]);
        self.run(20);
        assert_eq!(self.stable.len(), before + 1, "{:?}", self.events);
    }

    /// Checks that a run is not registered, and which stores it waits for.
    #[track_caller]
    pub(crate) fn assert_waits(&mut self, waiting: [&[&str]; 4]) {
        self.run(60);
        assert!(!self.is_registered());
        let names = waiting.map(|names| names.iter().map(|it| (*it).to_owned()).collect());
        assert_eq!(self.waiting(), Some(names));
    }
}
