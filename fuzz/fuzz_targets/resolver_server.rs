//! A daemon that resolvers meet at, with clients that send whatever the script says.
#![no_main]

use lanecast_fuzz::{Near, Script, frame};
use lanecast_protocol::resolver_server::{FRAME_MIN, ResolverServer, ResolverServerSettings};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::{AdvertEntry, Frame, FrameWriter, Kind, advert_flag, adverts};
use libfuzzer_sys::fuzz_target;
use std::net::SocketAddr;
use zerocopy::FromZeros;

const DAEMON: u64 = 99;
const PUBLISHER: u64 = 5;
const SUBSCRIBER: u64 = 6;
const SESSION: u64 = 11;
const NAMES: [&str; 4] = ["a", "b", "c", "absent"];
const CLIENTS_MAX: usize = 8;
const TOPICS_MAX: usize = 40;
const AT_ONCE_MAX: usize = 10_000;

struct Stage {
    resolver_server: ResolverServer,
    now: Nanos,
    /// The honest publisher's client.
    honest: u64,
    hostile: [u64; 3],
}

fn from() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9))
}

/// The honest publisher's advertisement of its topic.
fn advert() -> Vec<u8> {
    let mut bytes = vec![0; 200];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Advert, 0, PUBLISHER, 0);
    let mut entry = AdvertEntry::new_zeroed();
    entry.session = SESSION.into();
    entry.control_port = 9.into();
    entry.control[10..16].copy_from_slice(&[0xff, 0xff, 127, 0, 0, 1]);
    entry.datagram_bytes = 1_472.into();
    entry.transport = 2;
    let mut open = writer.add_entry(entry, 1).expect("room");
    assert!(writer.add_entry_name(&mut open, "a"));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

fn query(resolver: u64, name: Option<&str>) -> Vec<u8> {
    let mut bytes = vec![0; 200];
    let mut writer = FrameWriter::new(&mut bytes, Kind::Query, 0, resolver, 0);
    assert!(name.is_none_or(|name| writer.add_name(name)));
    let length = writer.finish();
    bytes.truncate(length);
    bytes
}

impl Stage {
    fn new() -> Self {
        let settings = ResolverServerSettings {
            daemon: DAEMON,
            clients_max: CLIENTS_MAX,
            client_topics_max: 10,
            topics_max: TOPICS_MAX,
            queued_max: 8,
            ..ResolverServerSettings::default()
        };
        let mut resolver_server = ResolverServer::new(settings, 0);
        let honest = resolver_server.connect(0, from()).expect("room");
        let hostile = [(); 3].map(|()| resolver_server.connect(0, from()).expect("room"));
        let mut stage = Self { resolver_server, now: 0, honest, hostile };
        stage.hear(honest, &advert());
        stage
    }

    fn hear(&mut self, client: u64, bytes: &[u8]) {
        let (frame, _) = Frame::split(bytes).expect("a frame");
        self.resolver_server.on_frame(self.now, client, &frame);
        assert!(self.resolver_server.topics() <= TOPICS_MAX);
    }

    /// The honest one says that it lives; everybody reads everything.
    fn turn(&mut self) {
        self.hear(self.honest, &query(PUBLISHER, None));
        self.resolver_server.on_time(self.now);
        for client in self.hostile.into_iter().chain([self.honest]) {
            self.read(client, |_| {});
        }
        while let Some(refused) = self.resolver_server.next_rejected() {
            assert_ne!(refused.client, self.honest);
        }
        let due = self.resolver_server.next_deadline();
        assert!(due.is_none_or(|due| due > self.now), "due at {due:?}, it is {}", self.now);
    }

    fn read(&mut self, client: u64, mut each: impl FnMut(&Frame<'_>)) {
        let mut buffer = [0; FRAME_MIN];
        for turn in 0.. {
            let Some(length) = self.resolver_server.next_frame(self.now, client, &mut buffer)
            else {
                break;
            };
            assert!(turn < AT_ONCE_MAX, "it never ends");
            let (frame, rest) = Frame::split(&buffer[..length]).expect("a frame");
            assert!(rest.is_empty() && frame.session == DAEMON);
            each(&frame);
        }
    }

    fn lie(&mut self, script: &mut Script<'_>) {
        let which = usize::from(script.byte()) % self.hostile.len();
        let session = script.one_of(&[7, 8, 9, 0, DAEMON]);
        // A resolver that comes back takes its own place: its number is its own to keep.
        if [PUBLISHER, SUBSCRIBER].contains(&session) {
            return;
        }
        let ids = [SESSION, 12, 13, 14, 0];
        let near = Near { session, sequence: 0, number: 0, ids: &ids, clocks: &[0], names: &NAMES };
        let bytes = frame(script, &near);
        self.hear(self.hostile[which], &bytes);
    }

    fn come_back(&mut self, which: usize) {
        self.resolver_server.disconnect(self.now, self.hostile[which]);
        self.hostile[which] = self.resolver_server.connect(self.now, from()).expect("room");
    }

    /// A subscriber that comes now is told of the honest session.
    fn ask(&mut self) {
        let client = self.resolver_server.connect(self.now, from()).expect("room");
        self.hear(client, &query(SUBSCRIBER, Some("a")));
        let mut is_told = false;
        self.read(client, |frame| {
            for (entry, mut names) in adverts(frame.body) {
                let is_it = frame.kind == Kind::Advert && entry.session.get() == SESSION;
                assert!(!is_it || entry.flags & (advert_flag::GONE | advert_flag::PERHAPS) == 0);
                is_told |= is_it && names.any(|name| name == "a");
            }
        });
        assert!(is_told, "deaf");
    }
}

fuzz_target!(|bytes: &[u8]| {
    let script = &mut Script::new(bytes);
    let mut stage = Stage::new();
    while let Some(act) = script.act() {
        match act % 8 {
            0 => stage.turn(),
            1 => {
                // Never so long that the honest one is silent.
                stage.now += Nanos::from(script.short()) * MILLISECOND / 16;
                stage.turn();
            }
            2 => stage.come_back(usize::from(script.byte()) % 3),
            _ => stage.lie(script),
        }
    }
    // Until nothing is kept of clients that have gone.
    for _ in 0..35 {
        stage.now += 2 * SECOND;
        stage.turn();
    }
    stage.ask();
});
