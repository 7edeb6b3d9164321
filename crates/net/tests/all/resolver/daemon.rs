//! The daemon and clients of all kinds.

use super::client::{Client, Daemon, PATIENCE, advert, anywhere, query};
use lanecast_base::Agent;
use lanecast_net::{DaemonSettings, ResolverDaemon};
use lanecast_wire::net::{Kind, advert_flag, adverts, query_flag, refusal_flag};
use std::collections::BTreeSet;
use std::time::Instant;

/// The daemon still serves others.
fn assert_it_serves(daemon: &Daemon) {
    let mut publisher = Client::connect(daemon.address, 1_000);
    publisher.publish(99, &["served"]);
    let mut reader = Client::connect(daemon.address, 1_001);
    reader.query(0, &["served"]);
    let frame = reader.next().expect("an answer");
    let (entry, _) = adverts(&frame.body).next().expect("an entry");
    assert_eq!((frame.kind, entry.session.get()), (Kind::Advert, 99));
}

#[test]
fn nonsense_is_answered_by_a_reason_and_the_end() {
    let daemon = Daemon::start(&anywhere());
    let mut wrong = query(5, 0, &["a"]);
    wrong[3] = 200;
    let mut torn = advert(5, 7, &["a"]);
    torn[24 + 66] = 9;
    let http = b"GET / HTTP/1.1\r\nHost: resolver\r\n\r\n".to_vec();
    let noise: Vec<u8> = (0..100_000_u32).map(|it| (it.wrapping_mul(it) >> 7) as u8).collect();
    for bytes in [wrong, torn, http, noise, vec![0; 24]] {
        let mut client = Client::connect(daemon.address, 5);
        // The end of longer ones may come after the connection is closed.
        let _ = client.write(&bytes);
        assert_eq!(client.why(), refusal_flag::MALFORMED);
    }
    let mut half = Client::connect(daemon.address, 5);
    half.write(&advert(5, 7, &["a"])[..50]).expect("room");
    drop(half);
    assert_it_serves(&daemon);
}

#[test]
fn frames_may_come_byte_by_byte() {
    let daemon = Daemon::start(&anywhere());
    let mut publisher = Client::connect(daemon.address, 5);
    for byte in advert(5, 7, &["a"]) {
        publisher.write(&[byte]).expect("room");
    }
    let mut reader = Client::connect(daemon.address, 6);
    for byte in query(6, 0, &["a"]) {
        reader.write(&[byte]).expect("room");
    }
    let frame = reader.next().expect("an answer");
    let (entry, names) = adverts(&frame.body).next().expect("an entry");
    assert_eq!((entry.session.get(), names.collect::<Vec<_>>()), (7, vec!["a"]));
}

#[test]
fn one_client_too_many_is_told_so() {
    let daemon = Daemon::start(&DaemonSettings { clients_max: 2, ..anywhere() });
    let mut clients = [5, 6].map(|resolver| Client::connect(daemon.address, resolver));
    for client in &mut clients {
        client.query(0, &["a"]);
    }
    let mut tell = |session| {
        clients[0].publish(session, &["a"]);
        assert_eq!(clients[1].next().expect("news").kind, Kind::Advert);
    };
    // Both have a place now: the daemon may read a later connection before an earlier one.
    tell(8);
    let mut third = Client::connect(daemon.address, 7);
    third.query(0, &["a"]);
    assert_eq!(third.why(), refusal_flag::CROWDED);
    tell(9);
}

#[test]
fn a_connection_that_falls_silent_is_closed_and_its_sessions_may_be_down() {
    let daemon = Daemon::start(&anywhere());
    let mut watcher = Client::connect(daemon.address, 6);
    watcher.query(0, &["a"]);
    let mut silent = Client::connect(daemon.address, 5);
    silent.publish(7, &["a"]);
    let flags = |client: &mut Client| {
        let frame = client.next().expect("news");
        let (entry, _) = adverts(&frame.body).next().expect("an entry");
        (entry.session.get(), entry.flags)
    };
    assert_eq!(flags(&mut watcher), (7, 0));
    assert_eq!(flags(&mut watcher), (7, advert_flag::PERHAPS));
    // The same resolver comes back, and says no more of the session.
    let mut back = Client::connect(daemon.address, 5);
    back.query(query_flag::SYNC, &[]);
    assert_eq!(flags(&mut watcher), (7, advert_flag::GONE));
}

#[test]
fn more_topics_than_a_client_may_have_are_refused() {
    let daemon = Daemon::start(&DaemonSettings { client_topics_max: 100, ..anywhere() });
    let names: Vec<String> = (0..101).map(|number| format!("topic {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut greedy = Client::connect(daemon.address, 5);
    greedy.query(0, &names);
    assert_eq!(greedy.why(), refusal_flag::EXCESS);
    let mut greedy = Client::connect(daemon.address, 5);
    greedy.publish(7, &names);
    assert_eq!(greedy.why(), refusal_flag::EXCESS);
    assert_it_serves(&daemon);
}

#[test]
fn ten_thousand_topics_pass_a_daemon() {
    const COUNT: usize = 10_000;
    let daemon = Daemon::start(&anywhere());
    let names: Vec<String> = (0..COUNT).map(|number| format!("many.topics.{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let start = Instant::now();
    let mut publisher = Client::connect(daemon.address, 5);
    names.chunks(1_000).for_each(|names| publisher.publish(7, names));
    let mut reader = Client::connect(daemon.address, 6);
    names.chunks(1_000).for_each(|names| reader.query(0, names));
    let mut told = BTreeSet::new();
    while told.len() < COUNT {
        let frame = reader.next().expect("answers");
        for (_, names) in adverts(&frame.body) {
            told.extend(names.map(String::from));
        }
    }
    eprintln!("{COUNT} topics told after {:?}", start.elapsed());
    assert!(start.elapsed() < PATIENCE);
}

/// Programs that connect one after another, each with something to say.
#[test]
fn connections_that_keep_coming_keep_no_client_waiting() {
    let mut daemon = ResolverDaemon::open(&anywhere()).expect("a daemon");
    let address = daemon.address().expect("an address");
    let mut publisher = Client::connect(address, 5);
    while daemon.clients() == 0 {
        daemon.do_work();
    }
    publisher.publish(7, &["a"]);
    let mut others = Vec::new();
    while daemon.sessions() == 0 {
        let mut other = Client::connect(address, 1_000 + others.len() as u64);
        other.query(0, &["b"]);
        others.push(other);
        assert!(others.len() < 200, "the publisher is not read");
        if daemon.do_work() == 0 {
            daemon.idle();
        }
    }
}
