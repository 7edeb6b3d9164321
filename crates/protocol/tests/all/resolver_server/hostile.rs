//! Clients that send nonsense, want too much, or never read.

use crate::{entry, split};
use lanecast_protocol::SECOND;
use lanecast_protocol::resolution::RejectReason;
use lanecast_protocol::resolver_server::{
    FRAME_MIN, ResolverServer, ResolverServerSettings, UNIDENTIFIED_MAX,
};
use lanecast_protocol::rng::Rng;
use lanecast_wire::net::{Frame, FrameWriter, Kind, NAME_MAX, advert_flag, query_flag};
use std::net::SocketAddr;

pub(super) fn from() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 9))
}

fn small_settings() -> ResolverServerSettings {
    ResolverServerSettings {
        daemon: 99,
        clients_max: 4,
        client_topics_max: 10,
        topics_max: 24,
        queued_max: 8,
        ..ResolverServerSettings::default()
    }
}

fn small() -> ResolverServer {
    ResolverServer::new(small_settings(), 0)
}

/// A frame of `names`: an Advert of a session, or a Query.
pub(super) fn frame(resolver: u64, session: Option<u64>, names: &[String]) -> Vec<u8> {
    let mut buffer = vec![0; 60_000];
    let kind = if session.is_some() { Kind::Advert } else { Kind::Query };
    let mut writer = FrameWriter::new(&mut buffer, kind, 0, resolver, 0);
    match session {
        Some(session) => {
            let mut entry = writer.add_entry(entry(session, 0), 0).expect("room");
            assert!(names.iter().all(|name| writer.add_entry_name(&mut entry, name)));
        }
        None => assert!(names.iter().all(|name| writer.add_name(name))),
    }
    let length = writer.finish();
    buffer.truncate(length);
    buffer
}

pub(super) fn numbered(count: usize, prefix: &str) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

fn why(resolver_server: &mut ResolverServer, client: u64) -> Option<RejectReason> {
    let refused = resolver_server.next_rejected()?;
    assert_eq!(refused.client, client);
    Some(refused.why)
}

#[test]
fn nonsense_ends_the_connection_with_its_reason() {
    let mut resolver_server = small();
    let good = frame(5, Some(7), &numbered(1, "a"));
    let mut cases = vec![
        frame(0, None, &[]),
        frame(99, None, &[]),
        frame(5, None, &["x".repeat(NAME_MAX + 1)]),
        frame(5, Some(7), &["x".repeat(NAME_MAX + 1)]),
    ];
    for kind in [Kind::Data, Kind::Join, Kind::Eject] {
        let mut bytes = good.clone();
        bytes[3] = kind as u8;
        cases.push(bytes);
    }
    // The entry says that there is another name.
    let mut bytes = good.clone();
    bytes[24 + 66] = 2;
    cases.push(bytes);
    let count = cases.len() as u64;
    for (index, bytes) in cases.into_iter().enumerate() {
        let client = resolver_server.connect(0, from()).expect("room");
        resolver_server.on_frame(0, client, &split(&bytes));
        assert_eq!(
            why(&mut resolver_server, client),
            Some(RejectReason::Malformed),
            "case {index}"
        );
        let mut buffer = [0; FRAME_MIN];
        assert_eq!(resolver_server.next_frame(0, client, &mut buffer), None);
        let length = resolver_server.write_eject(5, RejectReason::Malformed, &mut buffer);
        assert_eq!(split(&buffer[..length]).kind, Kind::Eject);
    }
    assert_eq!((resolver_server.counters().malformed, resolver_server.clients()), (count, 0));
    assert_eq!(resolver_server.topics(), 0);
    // Who changes its number is no better.
    let client = resolver_server.connect(0, from()).expect("room");
    resolver_server.on_frame(0, client, &split(&good));
    resolver_server.on_frame(0, client, &split(&frame(6, None, &[])));
    assert_eq!(why(&mut resolver_server, client), Some(RejectReason::Malformed));
}

#[test]
fn malformed_entries_are_counted_and_the_others_taken() {
    let mut resolver_server = small();
    let client = resolver_server.connect(0, from()).expect("room");
    let mut bytes = frame(5, Some(7), &numbered(1, "a"));
    bytes[24 + 70] = 77;
    resolver_server.on_frame(0, client, &split(&bytes));
    resolver_server.on_frame(0, client, &split(&frame(5, Some(8), &numbered(1, "a"))));
    assert_eq!((resolver_server.counters().malformed_entries, resolver_server.sessions()), (1, 1));
}

#[test]
fn sessions_belong_to_their_first_announcer() {
    let mut resolver_server = small();
    let clients = [1, 2].map(|_| resolver_server.connect(0, from()).expect("room"));
    resolver_server.on_frame(0, clients[0], &split(&frame(5, Some(7), &numbered(1, "a"))));
    resolver_server.on_frame(0, clients[1], &split(&frame(6, Some(7), &numbered(1, "b"))));
    let mut end = frame(6, Some(7), &[]);
    end[24 + 71] = advert_flag::GONE;
    resolver_server.on_frame(0, clients[1], &split(&end));
    assert_eq!((resolver_server.counters().foreign, resolver_server.topics()), (2, 1));
    resolver_server.disconnect(0, clients[0]);
    resolver_server.on_frame(0, clients[1], &split(&end));
    assert_eq!((resolver_server.counters().foreign, resolver_server.sessions()), (3, 1));
}

#[test]
fn limits_hold_for_each_client_and_for_all() {
    let mut resolver_server = small();
    let connect =
        |resolver_server: &mut ResolverServer| resolver_server.connect(0, from()).expect("room");
    let client = connect(&mut resolver_server);
    resolver_server.on_frame(0, client, &split(&frame(5, None, &numbered(11, "w"))));
    assert_eq!(why(&mut resolver_server, client), Some(RejectReason::TooManyTopics));
    assert_eq!(resolver_server.topics(), 0, "its wants go with it");
    let client = connect(&mut resolver_server);
    resolver_server.on_frame(0, client, &split(&frame(5, Some(7), &numbered(6, "p"))));
    resolver_server.on_frame(0, client, &split(&frame(5, Some(8), &numbered(6, "p"))));
    assert_eq!(why(&mut resolver_server, client), Some(RejectReason::TooManyTopics));
    // Ten are left behind, and make room when it is needed.
    assert_eq!((resolver_server.topics(), resolver_server.sessions()), (10, 2));
    for resolver in [6, 7] {
        let client = connect(&mut resolver_server);
        resolver_server.on_frame(0, client, &split(&frame(resolver, None, &numbered(10, "w"))));
    }
    assert_eq!(
        (resolver_server.topics(), resolver_server.counters().expired, resolver_server.clients()),
        (24, 1, 2)
    );
    let client = connect(&mut resolver_server);
    resolver_server.on_frame(0, client, &split(&frame(8, None, &numbered(5, "w"))));
    assert_eq!(why(&mut resolver_server, client), Some(RejectReason::Full));
}

#[test]
fn clients_that_say_nothing_take_no_places_of_those_that_do() {
    let mut resolver_server = small();
    let connect = |resolver_server: &mut ResolverServer| resolver_server.connect(0, from());
    let silent: Vec<u64> =
        (0..UNIDENTIFIED_MAX).map(|_| connect(&mut resolver_server).expect("room")).collect();
    for resolver in 1..=4 {
        let client = connect(&mut resolver_server).expect("room");
        resolver_server.on_frame(0, client, &split(&frame(resolver, None, &[])));
        assert!(resolver_server.is_connected(client), "{resolver}");
    }
    let unidentified = resolver_server.unidentified().map(|(client, _)| client);
    assert_eq!(unidentified.collect::<Vec<_>>(), silent, "the oldest first");
    assert_eq!(connect(&mut resolver_server), Err(RejectReason::Full), "bounded in any case");
    // One of them turns out to be a fifth, and one to be a known resolver that comes back.
    resolver_server.on_frame(0, silent[0], &split(&frame(5, None, &[])));
    assert_eq!(why(&mut resolver_server, silent[0]), Some(RejectReason::Full));
    let former = silent[UNIDENTIFIED_MAX - 1] + 2;
    resolver_server.on_frame(0, silent[1], &split(&frame(2, None, &[])));
    assert_eq!(why(&mut resolver_server, former), Some(RejectReason::Replaced));
    assert!(resolver_server.is_connected(silent[1]));
}

#[test]
fn a_peer_that_never_reads_costs_no_more_than_the_replies() {
    let mut resolver_server = small();
    let [reader, publisher] = [1, 2].map(|_| resolver_server.connect(0, from()).expect("room"));
    resolver_server.on_frame(0, reader, &split(&frame(5, None, &["a".into()])));
    // The same again and again is told once.
    for _ in 0..1_000 {
        resolver_server.on_frame(0, publisher, &split(&frame(6, Some(7), &["a".into()])));
        resolver_server.on_frame(0, reader, &split(&frame(5, None, &["a".into()])));
    }
    assert_eq!(resolver_server.next_rejected(), None);
    for session in 8..16 {
        resolver_server.on_frame(0, publisher, &split(&frame(6, Some(session), &["a".into()])));
    }
    assert_eq!(why(&mut resolver_server, reader), Some(RejectReason::SlowConsumer));
    assert_eq!(resolver_server.clients(), 1);
}

#[test]
fn a_peer_that_never_reads_is_not_told_of_endless_ends() {
    let mut resolver_server = small();
    let [reader, publisher] = [1, 2].map(|_| resolver_server.connect(0, from()).expect("room"));
    let query = frame(5, None, &["a".into()]);
    let mut withdrawal = query.clone();
    // The flags follow magic, version and kind.
    withdrawal[4..6].copy_from_slice(&query_flag::WITHDRAW.to_le_bytes());
    let mut ends = 0;
    while resolver_server.is_connected(reader) {
        // Not wanted when it begins, and wanted when it ends: only its end is told.
        resolver_server.on_frame(0, reader, &split(&withdrawal));
        resolver_server.on_frame(0, publisher, &split(&frame(6, Some(7 + ends), &["a".into()])));
        resolver_server.on_frame(0, reader, &split(&query));
        let mut end = frame(6, Some(7 + ends), &[]);
        end[24 + 71] = advert_flag::GONE;
        resolver_server.on_frame(0, publisher, &split(&end));
        ends += 1;
        assert!(ends < 100, "all of them are kept");
    }
    assert_eq!((why(&mut resolver_server, reader), ends), (Some(RejectReason::SlowConsumer), 9));
    assert_eq!(resolver_server.topics(), 0);
}

#[test]
fn a_query_that_is_withdrawn_is_not_kept() {
    let mut resolver_server = small();
    let [reader, publisher] = [1, 2].map(|_| resolver_server.connect(0, from()).expect("room"));
    resolver_server.on_frame(0, publisher, &split(&frame(6, Some(7), &["a".into()])));
    let flagged = |name: &str, flags: u16| {
        let mut bytes = frame(5, None, &[name.into()]);
        bytes[4..6].copy_from_slice(&flags.to_le_bytes());
        bytes
    };
    for (name, flags) in [("a", 0), ("a*", query_flag::PREFIXES)] {
        resolver_server.on_frame(0, reader, &split(&flagged(name, flags)));
        resolver_server.on_frame(0, reader, &split(&flagged(name, flags | query_flag::WITHDRAW)));
        let mut buffer = [0; FRAME_MIN];
        assert_eq!(resolver_server.next_frame(0, reader, &mut buffer), None, "{name}");
    }
    assert_eq!((resolver_server.topics(), resolver_server.next_rejected()), (1, None));
}

#[test]
fn silent_and_doubled_peers_are_disconnected() {
    let mut resolver_server = small();
    let silent = resolver_server.connect(0, from()).expect("room");
    assert_eq!(resolver_server.next_deadline(), Some(SECOND), "it is to be told that we live");
    let old = resolver_server.connect(SECOND, from()).expect("room");
    resolver_server.on_frame(SECOND, old, &split(&frame(5, Some(7), &numbered(1, "a"))));
    let new = resolver_server.connect(2 * SECOND, from()).expect("room");
    resolver_server.on_frame(2 * SECOND, new, &split(&frame(5, None, &[])));
    assert_eq!(why(&mut resolver_server, old), Some(RejectReason::Replaced));
    assert_eq!(resolver_server.sessions(), 1, "it has another connection");
    resolver_server.on_time(5 * SECOND);
    assert_eq!(why(&mut resolver_server, silent), Some(RejectReason::Silent));
    resolver_server.on_time(7 * SECOND);
    assert_eq!(why(&mut resolver_server, new), Some(RejectReason::Silent));
    resolver_server.on_time(66 * SECOND);
    assert_eq!(resolver_server.sessions(), 1);
    resolver_server.on_time(67 * SECOND);
    assert_eq!((resolver_server.sessions(), resolver_server.next_deadline()), (0, None));
}

#[test]
fn random_bytes_do_no_harm() {
    let mut rng = Rng::new(3);
    let mut resolver_server = small();
    let mut client = resolver_server.connect(0, from()).expect("room");
    let good = [frame(5, Some(7), &numbered(9, "name ")), frame(5, None, &numbered(9, "name "))];
    let mut refused = 0;
    for round in 0..20_000 {
        let mut bytes = good[round % 2].clone();
        for _ in 0..rng.below(4) {
            // Magic, version and length stay: without them the stream ends before we see it.
            let at = match rng.below(bytes.len() as u64) as usize {
                0..3 | 6..8 => 8,
                at => at,
            };
            bytes[at] = rng.next_u64() as u8;
        }
        let Some((frame, _)) = Frame::split(&bytes) else { continue };
        resolver_server.on_frame(round as u64, client, &frame);
        let mut buffer = [0; FRAME_MIN];
        while resolver_server.next_frame(round as u64, client, &mut buffer).is_some() {}
        if resolver_server.next_rejected().is_some() {
            refused += 1;
            client = resolver_server.connect(round as u64, from()).expect("room");
        }
        assert!(resolver_server.topics() <= 24 && resolver_server.clients() <= 1);
    }
    assert!(refused > 1_000, "{refused}");
}

#[test]
fn prefixes_are_limited_and_have_their_star() {
    let prefixes = |names: &[String]| {
        let mut bytes = frame(7, None, names);
        // The flags follow magic, version and kind.
        bytes[4..6].copy_from_slice(&query_flag::PREFIXES.to_le_bytes());
        bytes
    };
    let settings =
        ResolverServerSettings { daemon: 99, client_prefixes_max: 3, ..small_settings() };
    for (names, why) in [
        (vec!["a".to_owned()], RejectReason::Malformed),
        ((0..4).map(|n| format!("{n}*")).collect(), RejectReason::TooManyTopics),
    ] {
        let mut server = ResolverServer::new(settings.clone(), 0);
        let client = server.connect(0, from()).expect("room");
        server.on_frame(0, client, &split(&prefixes(&names)));
        assert_eq!(server.next_rejected().map(|it| it.why), Some(why));
        assert_eq!(server.topics(), 0, "nothing of it stays");
    }
}
