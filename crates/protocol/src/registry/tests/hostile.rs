//! Clients that send nonsense, want too much, or never read.

use super::hall::split;
use super::*;
use crate::chance::Chance;

fn from() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 9))
}

fn small() -> Registry {
    let settings = Settings {
        daemon: 99,
        clients_max: 4,
        client_topics_max: 10,
        topics_max: 24,
        untold_max: 8,
        ..Settings::default()
    };
    Registry::new(settings, 0)
}

/// A frame of `names`: an Advert of a session, or a Query.
fn frame(resolver: u64, session: Option<u64>, names: &[String]) -> Vec<u8> {
    let mut buffer = vec![0; 60_000];
    let kind = if session.is_some() { Kind::Advert } else { Kind::Query };
    let mut writer = FrameWriter::new(&mut buffer, kind, 0, resolver, 0);
    match session {
        Some(session) => {
            let mut entry = writer.add_entry(announcement(session).entry(0), 0).expect("room");
            assert!(names.iter().all(|name| writer.add_entry_name(&mut entry, name)));
        }
        None => assert!(names.iter().all(|name| writer.add_name(name))),
    }
    let length = writer.finish();
    buffer.truncate(length);
    buffer
}

fn numbered(count: usize, prefix: &str) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number}")).collect()
}

fn why(registry: &mut Registry, client: u64) -> Option<Refusal> {
    let refused = registry.next_refused()?;
    assert_eq!(refused.client, client);
    Some(refused.why)
}

#[test]
fn nonsense_ends_the_connection_with_its_reason() {
    let mut registry = small();
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
        let client = registry.connect(0, from()).expect("room");
        registry.on_frame(0, client, &split(&bytes));
        assert_eq!(why(&mut registry, client), Some(Refusal::Malformed), "case {index}");
        let mut buffer = [0; FRAME_MIN];
        assert_eq!(registry.next_frame(0, client, &mut buffer), None);
        let length = registry.farewell(5, Refusal::Malformed, &mut buffer);
        assert_eq!(split(&buffer[..length]).kind, Kind::Eject);
    }
    assert_eq!((registry.counters().malformed, registry.clients()), (count, 0));
    assert_eq!(registry.topics(), 0);
    // Who changes its number is no better.
    let client = registry.connect(0, from()).expect("room");
    registry.on_frame(0, client, &split(&good));
    registry.on_frame(0, client, &split(&frame(6, None, &[])));
    assert_eq!(why(&mut registry, client), Some(Refusal::Malformed));
}

#[test]
fn entries_without_sense_are_counted_and_the_others_taken() {
    let mut registry = small();
    let client = registry.connect(0, from()).expect("room");
    let mut bytes = frame(5, Some(7), &numbered(1, "a"));
    bytes[24 + 70] = 77;
    registry.on_frame(0, client, &split(&bytes));
    registry.on_frame(0, client, &split(&frame(5, Some(8), &numbered(1, "a"))));
    assert_eq!((registry.counters().senseless, registry.sessions()), (1, 1));
}

#[test]
fn sessions_belong_to_whom_told_them_first() {
    let mut registry = small();
    let clients = [1, 2].map(|_| registry.connect(0, from()).expect("room"));
    registry.on_frame(0, clients[0], &split(&frame(5, Some(7), &numbered(1, "a"))));
    registry.on_frame(0, clients[1], &split(&frame(6, Some(7), &numbered(1, "b"))));
    let mut end = frame(6, Some(7), &[]);
    end[24 + 71] = advert_flag::GONE;
    registry.on_frame(0, clients[1], &split(&end));
    assert_eq!((registry.counters().foreign, registry.topics()), (2, 1));
    registry.disconnect(0, clients[0]);
    registry.on_frame(0, clients[1], &split(&end));
    assert_eq!((registry.counters().foreign, registry.sessions()), (3, 1));
}

#[test]
fn limits_hold_for_each_client_and_for_all() {
    let mut registry = small();
    let connect = |registry: &mut Registry| registry.connect(0, from()).expect("room");
    let client = connect(&mut registry);
    registry.on_frame(0, client, &split(&frame(5, None, &numbered(11, "w"))));
    assert_eq!(why(&mut registry, client), Some(Refusal::Excess));
    assert_eq!(registry.topics(), 0, "its wants go with it");
    let client = connect(&mut registry);
    registry.on_frame(0, client, &split(&frame(5, Some(7), &numbered(6, "p"))));
    registry.on_frame(0, client, &split(&frame(5, Some(8), &numbered(6, "p"))));
    assert_eq!(why(&mut registry, client), Some(Refusal::Excess));
    // Ten are left behind, and make room when it is needed.
    assert_eq!((registry.topics(), registry.sessions()), (10, 2));
    for resolver in [6, 7] {
        let client = connect(&mut registry);
        registry.on_frame(0, client, &split(&frame(resolver, None, &numbered(10, "w"))));
    }
    assert_eq!((registry.topics(), registry.counters().expired, registry.clients()), (24, 1, 2));
    let client = connect(&mut registry);
    registry.on_frame(0, client, &split(&frame(8, None, &numbered(5, "w"))));
    assert_eq!(why(&mut registry, client), Some(Refusal::Crowded));
    connect(&mut registry);
    connect(&mut registry);
    assert_eq!(registry.connect(0, from()), Err(Refusal::Crowded));
}

#[test]
fn who_never_reads_costs_no_more_than_what_there_is_to_tell() {
    let mut registry = small();
    let [reader, publisher] = [1, 2].map(|_| registry.connect(0, from()).expect("room"));
    registry.on_frame(0, reader, &split(&frame(5, None, &["a".into()])));
    // The same again and again is told once.
    for _ in 0..1_000 {
        registry.on_frame(0, publisher, &split(&frame(6, Some(7), &["a".into()])));
        registry.on_frame(0, reader, &split(&frame(5, None, &["a".into()])));
    }
    assert_eq!(registry.next_refused(), None);
    for session in 8..16 {
        registry.on_frame(0, publisher, &split(&frame(6, Some(session), &["a".into()])));
    }
    assert_eq!(why(&mut registry, reader), Some(Refusal::Stalled));
    assert_eq!(registry.clients(), 1);
}

#[test]
fn who_says_nothing_is_let_go_and_so_is_who_comes_twice() {
    let mut registry = small();
    let silent = registry.connect(0, from()).expect("room");
    assert_eq!(registry.next_deadline(), Some(SECOND), "it is to be told that we live");
    let old = registry.connect(SECOND, from()).expect("room");
    registry.on_frame(SECOND, old, &split(&frame(5, Some(7), &numbered(1, "a"))));
    let new = registry.connect(2 * SECOND, from()).expect("room");
    registry.on_frame(2 * SECOND, new, &split(&frame(5, None, &[])));
    assert_eq!(why(&mut registry, old), Some(Refusal::Replaced));
    assert_eq!(registry.sessions(), 1, "it has another connection");
    registry.on_time(5 * SECOND);
    assert_eq!(why(&mut registry, silent), Some(Refusal::Silent));
    registry.on_time(7 * SECOND);
    assert_eq!(why(&mut registry, new), Some(Refusal::Silent));
    registry.on_time(66 * SECOND);
    assert_eq!(registry.sessions(), 1);
    registry.on_time(67 * SECOND);
    assert_eq!((registry.sessions(), registry.next_deadline()), (0, None));
}

#[test]
fn random_bytes_do_no_harm() {
    let mut chance = Chance::new(3);
    let mut registry = small();
    let mut client = registry.connect(0, from()).expect("room");
    let good = [frame(5, Some(7), &numbered(9, "name ")), frame(5, None, &numbered(9, "name "))];
    let mut refused = 0;
    for round in 0..20_000 {
        let mut bytes = good[round % 2].clone();
        for _ in 0..chance.below(4) {
            // Magic, version and length stay: without them the stream ends before we see it.
            let at = match chance.below(bytes.len() as u64) as usize {
                0..3 | 6..8 => 8,
                at => at,
            };
            bytes[at] = chance.any() as u8;
        }
        let Some((frame, _)) = Frame::split(&bytes) else { continue };
        registry.on_frame(round as u64, client, &frame);
        let mut buffer = [0; FRAME_MIN];
        while registry.next_frame(round as u64, client, &mut buffer).is_some() {}
        if registry.next_refused().is_some() {
            refused += 1;
            client = registry.connect(round as u64, from()).expect("room");
        }
        assert!(registry.topics() <= 24 && registry.clients() <= 1);
    }
    assert!(refused > 1_000, "{refused}");
}
