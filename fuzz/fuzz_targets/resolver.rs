//! A resolver in a group with an honest other one, and frames that the script says.
#![no_main]

use lanecast_fuzz::{Near, Script, frame};
use lanecast_protocol::resolution::{
    Announcement, Resolver, ResolverEvent, ResolverSettings, SessionTransport,
};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_transport::{TopicPattern, TopicSelection};
use lanecast_wire::net::Frame;
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeSet;
use std::net::SocketAddr;

const HERE: u64 = 1;
const THERE: u64 = 2;
const OWN: u64 = 11;
const HONEST: u64 = 12;
const NAMES: [&str; 4] = ["a", "b", "mine", "absent"];
const AT_ONCE_MAX: usize = 20_000;
/// An outage ends this long after its cause.
const PATIENCE: Nanos = 60 * SECOND;

struct Stage {
    here: Resolver,
    there: Resolver,
    now: Nanos,
    found: BTreeSet<u64>,
}

fn announcement(session: u64) -> Announcement {
    Announcement {
        session,
        transport: SessionTransport::Unicast,
        control: SocketAddr::from(([127, 0, 0, 1], session as u16)),
        group: None,
        host: 0,
        domain: 0,
        pid: 0,
        datagram_bytes: 1_472,
    }
}

impl Stage {
    fn new() -> Self {
        let resolver = |resolver| {
            let settings = ResolverSettings {
                resolver,
                topics_max: 64,
                seed: resolver,
                ..ResolverSettings::default()
            };
            Resolver::new(settings, 0)
        };
        let (mut here, mut there) = (resolver(HERE), resolver(THERE));
        here.publish(announcement(OWN), "mine").expect("a name");
        ["a", "absent"].into_iter().for_each(|name| here.subscribe(name).expect("a name"));
        let pattern = TopicPattern::wildcard("n*").expect("a pattern");
        here.subscribe_pattern(1, &TopicSelection::of_patterns(vec![pattern], 8));
        there.publish(announcement(HONEST), "a").expect("a name");
        there.subscribe("mine").expect("a name");
        Self { here, there, now: 0, found: BTreeSet::new() }
    }

    fn turn(&mut self) {
        let mut buffer = [0; 1_472];
        for turn in 0.. {
            let Some(length) = self.here.next_transmit(self.now, &mut buffer) else { break };
            assert!(turn < AT_ONCE_MAX, "it never ends");
            hear(&mut self.there, self.now, HERE as u16, &buffer[..length]);
        }
        while let Some(length) = self.there.next_transmit(self.now, &mut buffer) {
            hear(&mut self.here, self.now, THERE as u16, &buffer[..length]);
        }
        while let Some(event) = self.here.next_event() {
            match event {
                ResolverEvent::Found { announcement, topic } => {
                    let is_wanted = topic.starts_with('n') || &*topic == "a";
                    assert!(is_wanted, "only what is wanted");
                    self.found.insert(announcement.session);
                }
                ResolverEvent::Gone { session } => _ = self.found.remove(&session),
            }
        }
        while self.there.next_event().is_some() {}
        let due = self.here.next_deadline();
        assert!(due.is_none_or(|due| due > self.now), "due at {due:?}, it is {}", self.now);
    }

    fn lie(&mut self, script: &mut Script<'_>) {
        let teller = script.one_of(&[3, THERE, 4, HERE]);
        let near = Near {
            session: teller,
            sequence: 0,
            number: 0,
            ids: &[HONEST, OWN, 13, 14, 15, 0],
            clocks: &[0],
            names: &NAMES,
        };
        let bytes = frame(script, &near);
        hear(&mut self.here, self.now, 3, &bytes);
    }
}

fn hear(resolver: &mut Resolver, now: Nanos, from: u16, bytes: &[u8]) {
    let (frame, _) = Frame::split(bytes).expect("a frame");
    resolver.on_frame(now, SocketAddr::from(([127, 0, 0, 1], from)), &frame);
}

fuzz_target!(|bytes: &[u8]| {
    let script = &mut Script::new(bytes);
    let mut stage = Stage::new();
    while let Some(act) = script.act() {
        match act % 8 {
            0 => stage.turn(),
            1 => {
                stage.now += Nanos::from(script.short()) * MILLISECOND / 16;
                stage.turn();
            }
            2 => stage.here.session_lost(stage.now, script.one_of(&[HONEST, OWN, 13])),
            _ => stage.lie(script),
        }
    }
    let limit = stage.now as u128 * 4_000_000 / 1_000_000_000 + (64 << 10) + 2 * 1_472;
    assert!(u128::from(stage.here.counters().bytes) <= limit, "within the budget");
    stage.turn();
    // Whatever was told: once the liars are silent and what cannot be reached is said to be lost,
    // the honest one is found.
    [HONEST, OWN, 13, 14, 15]
        .into_iter()
        .for_each(|session| stage.here.session_lost(stage.now, session));
    stage.found.clear();
    let end = stage.now + PATIENCE;
    while !stage.found.contains(&HONEST) {
        assert!(stage.now < end, "deaf");
        stage.now += 50 * MILLISECOND;
        stage.turn();
    }
});
