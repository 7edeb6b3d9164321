//! Resolvers and daemons, with connections that break or fall silent.

use crate::split;
use lanecast_protocol::resolution::{self, DaemonAction, RejectReason, Resolver, ResolverEvent};
use lanecast_protocol::resolver_server::{ResolverServer, ResolverServerSettings};
use lanecast_protocol::rng::Rng;
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// Resolvers and daemons, which may be down.
pub(super) struct Cluster {
    pub(super) now: Nanos,
    pub(super) daemons: Vec<Option<ResolverServer>>,
    pub(super) members: Vec<Member>,
    pub(super) settings: ResolverServerSettings,
    /// Most publishers that a member knows.
    pub(super) topics_max: usize,
    pub(super) bytes: usize,
    rng: Rng,
}

pub(super) struct Member {
    pub(super) resolver: Resolver,
    /// Client number at each daemon.
    links: Vec<Option<u64>>,
    /// Daemons cut off without a notice.
    pub(super) cut: Vec<bool>,
    pub(super) found: BTreeMap<u64, BTreeSet<String>>,
    pub(super) gone: usize,
}

impl Cluster {
    pub(super) fn new(daemons: usize, members: usize, seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let now = rng.next_u64() >> 8;
        let mut it = Self {
            now,
            daemons: (0..daemons).map(|_| None).collect(),
            members: Vec::new(),
            settings: ResolverServerSettings::default(),
            topics_max: resolution::ResolverSettings::default().topics_max,
            bytes: 0,
            rng,
        };
        (0..daemons).for_each(|daemon| it.start(daemon));
        (0..members).for_each(|_| it.join());
        it
    }

    pub(super) fn start(&mut self, daemon: usize) {
        let settings =
            ResolverServerSettings { daemon: self.rng.next_u64(), ..self.settings.clone() };
        self.daemons[daemon] = Some(ResolverServer::new(settings, self.now));
    }

    /// A daemon dies, and its connections break.
    pub(super) fn kill(&mut self, daemon: usize) {
        self.daemons[daemon] = None;
        for member in &mut self.members {
            if member.links[daemon].take().is_some() {
                member.resolver.daemon_disconnected(self.now, daemon);
            }
        }
    }

    pub(super) fn join(&mut self) {
        let (id, seed) = (self.rng.next_u64(), self.rng.next_u64());
        let settings = resolution::ResolverSettings {
            resolver: id,
            seed,
            has_group: false,
            topics_max: self.topics_max,
            ..resolution::ResolverSettings::default()
        };
        let mut resolver = Resolver::new(settings, self.now);
        let count = self.daemons.len();
        for daemon in 0..count {
            assert_eq!(resolver.add_daemon(self.now), daemon);
        }
        self.members.push(Member {
            resolver,
            links: vec![None; count],
            cut: vec![false; count],
            found: BTreeMap::new(),
            gone: 0,
        });
    }

    /// A member dies, and its connections break where they are not cut; another takes its place.
    pub(super) fn replace(&mut self, index: usize) {
        self.join();
        let dead = self.members.swap_remove(index);
        for (daemon, link) in dead.links.into_iter().enumerate() {
            if let (Some(client), Some(resolver_server)) = (link, &mut self.daemons[daemon])
                && !dead.cut[daemon]
            {
                resolver_server.disconnect(self.now, client);
            }
        }
    }

    /// Lets time pass until something holds; gives whether it did.
    pub(super) fn run_until(&mut self, time: Nanos, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now + time;
        loop {
            while self.turn() {}
            if holds(self) {
                return true;
            }
            let next = self.deadline().max(self.now + MILLISECOND);
            if next >= end {
                self.now = end;
                return false;
            }
            self.now = next;
        }
    }

    pub(super) fn run(&mut self, time: Nanos) {
        self.run_until(time, |_| false);
    }

    fn deadline(&self) -> Nanos {
        let members = self.members.iter().flat_map(|member| {
            let links = (0..member.links.len()).map(|it| member.resolver.daemon_deadline(it));
            links.chain(member.resolver.next_deadline())
        });
        let daemons = self.daemons.iter().flatten().filter_map(ResolverServer::next_deadline);
        members.chain(daemons).min().unwrap_or(Nanos::MAX)
    }

    /// Does all that is due; gives whether anything was said.
    fn turn(&mut self) -> bool {
        let mut said = false;
        for daemon in self.daemons.iter_mut().flatten() {
            daemon.on_time(self.now);
        }
        for index in 0..self.members.len() {
            for daemon in 0..self.daemons.len() {
                self.act(index, daemon);
                said |= self.talk(index, daemon);
            }
            self.members[index].note(self.now);
        }
        said
    }

    fn act(&mut self, index: usize, daemon: usize) {
        let member = &mut self.members[index];
        let from = SocketAddr::from(([10, 0, 0, 1], 1_000));
        match member.resolver.next_daemon_action(self.now, daemon) {
            Some(DaemonAction::Connect) if member.cut[daemon] => {}
            Some(DaemonAction::Connect) => {
                let resolver_server = self.daemons[daemon].as_mut();
                match resolver_server.and_then(|it| it.connect(self.now, from).ok()) {
                    Some(client) => {
                        member.links[daemon] = Some(client);
                        member.resolver.daemon_connected(self.now, daemon);
                    }
                    None => member.resolver.daemon_disconnected(self.now, daemon),
                }
            }
            Some(DaemonAction::Close) => {
                let client = member.links[daemon].take();
                if let (Some(client), Some(it), false) =
                    (client, &mut self.daemons[daemon], member.cut[daemon])
                {
                    it.disconnect(self.now, client);
                }
            }
            None => {}
        }
    }

    fn talk(&mut self, index: usize, daemon: usize) -> bool {
        let member = &mut self.members[index];
        let (Some(client), Some(resolver_server)) =
            (member.links[daemon], &mut self.daemons[daemon])
        else {
            return false;
        };
        if member.cut[daemon] {
            return false;
        }
        let mut said = false;
        let mut buffer = [0; 2_048];
        let at = SocketAddr::from(([10, 0, 0, 99], 7_331));
        while let Some(length) = member.resolver.next_daemon_frame(self.now, daemon, &mut buffer) {
            resolver_server.on_frame(self.now, client, &split(&buffer[..length]));
            (said, self.bytes) = (true, self.bytes + length);
        }
        while let Some(length) = resolver_server.next_frame(self.now, client, &mut buffer) {
            let frame = split(&buffer[..length]);
            let taken = member.resolver.on_daemon_frame(self.now, daemon, at, &frame);
            assert_eq!(taken, Ok(()));
            (said, self.bytes) = (true, self.bytes + length);
        }
        while let Some(refused) = resolver_server.next_rejected() {
            // One whose other end is gone, or cut off.
            assert!(
                matches!(refused.why, RejectReason::Silent | RejectReason::Replaced),
                "{refused:?}"
            );
            for member in &mut self.members {
                let is_it = member.links[daemon] == Some(refused.client);
                if is_it && !member.cut[daemon] {
                    member.links[daemon] = None;
                    member.resolver.daemon_disconnected(self.now, daemon);
                }
            }
        }
        said
    }
}

impl Member {
    fn note(&mut self, now: Nanos) {
        assert_eq!(self.resolver.next_transmit(now, &mut [0; 512]), None, "there is no group");
        while let Some(event) = self.resolver.next_event() {
            match event {
                ResolverEvent::Found { announcement, topic } => {
                    let topics = self.found.entry(announcement.session).or_default();
                    topics.insert(topic.to_string());
                }
                ResolverEvent::Gone { session } => {
                    self.found.remove(&session);
                    self.gone += 1;
                }
            }
        }
    }

    /// Reports a session as lost.
    pub(super) fn lose(&mut self, now: Nanos, session: u64) {
        self.note(now);
        self.found.remove(&session);
        self.resolver.session_lost(now, session);
    }

    pub(super) fn has(&self, session: u64, topic: &str) -> bool {
        self.found.get(&session).is_some_and(|topics| topics.contains(topic))
    }
}
