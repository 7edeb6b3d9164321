//! Clients that wait, over sockets.

use super::*;
use crate::config::storage::StorageConfig;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use lanecast_wire::command::{begin_frame, end_frame};
use std::io::Write;
use std::net::{Ipv4Addr, TcpStream};

/// Turns the server until something is so.
fn turn_until(server: &mut Server, what: &str, is_so: impl Fn(&Server) -> bool) {
    let start = std::time::Instant::now();
    while !is_so(server) {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        server.turn(Duration::from_millis(1)).expect("it goes on");
    }
}

#[test]
fn a_client_that_hangs_up_while_it_has_to_wait_wakes_the_server_once() {
    let config = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let mut server = Server::open(config).expect("a server");
    let at = server.address().expect("an address");
    let mut stream = TcpStream::connect(at).expect("it listens");
    turn_until(&mut server, "a client", |server| server.clients() == 1);
    let id = ClientId(0);
    // A long query that is not answered yet.
    let query = server.engine.state.clients.get_mut(id).expect("it is here").count_query(1 << 20);
    stream.write_all(&frame(r#"{"c":"flush"}"#)).expect("it listens");
    turn_until(&mut server, "a client that waits", |server| server.engine.is_paused(id));
    drop(stream);
    let mut wakes = 0;
    for _ in 0..100 {
        let mut ready = Vec::new();
        server.network.poller.wait(Some(Duration::from_millis(1)), &mut ready).expect("it waits");
        wakes += ready.len();
    }
    assert!(wakes <= 1, "it woke {wakes} times for one end");
    assert_eq!(server.clients(), 1, "what it sent is still to be done");
    drop(query);
    turn_until(&mut server, "the end", |server| server.clients() == 0);
    assert_eq!(server.counters().commands, 1);
}

#[test]
fn commands_of_a_client_that_left_an_answer_unread_are_executed() {
    let config = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let mut server = Server::open(config).expect("a server");
    let mut stream = TcpStream::connect(server.address().expect("an address")).expect("it listens");
    turn_until(&mut server, "a client", |server| server.clients() == 1);
    let id = ClientId(0);
    // With its answer unread, the end of the client resets the connection.
    stream.write_all(&frame(r#"{"c":"flush","cid":"1","a":"completed"}"#)).expect("it listens");
    turn_until(&mut server, "the answer", |server| server.counters().commands == 1);
    assert!(stream.peek(&mut [0]).is_ok_and(|count| count == 1));
    let query = server.engine.state.clients.get_mut(id).expect("it is here").count_query(1 << 20);
    let commands = [r#"{"c":"p","t":"t"}1"#, r#"{"c":"p","t":"t"}2"#].map(frame).concat();
    stream.write_all(&commands).expect("it listens");
    turn_until(&mut server, "a client that waits", |server| server.engine.is_paused(id));
    drop(stream);
    // The first write after the reset fails.
    for _ in 0..2 {
        let mut answer = frame(r#"{"c":"ack"}"#);
        server.engine.state.clients.reply(id, |out| out.append(&mut answer));
        server.turn(Duration::ZERO).expect("it goes on");
    }
    let connection = server.network.connections.get(id).expect("what it sent is to be done");
    assert!(connection.is_broken());
    drop(query);
    turn_until(&mut server, "the end", |server| server.clients() == 0);
    assert_eq!(server.counters().commands, 3);
}

#[test]
fn a_flood_of_connections_is_accepted_in_parts() {
    let config = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let mut server = Server::open(config).expect("a server");
    let at = server.address().expect("an address");
    let connected = || TcpStream::connect(at).expect("it listens");
    let streams: Vec<TcpStream> = (0..2 * ACCEPTS_MAX + 1).map(|_| connected()).collect();
    server.turn(Duration::from_secs(60)).expect("it goes on");
    assert_eq!(server.clients(), ACCEPTS_MAX);
    turn_until(&mut server, "all", |server| server.clients() == streams.len());
}

/// A frame with that payload.
fn frame(payload: &str) -> Vec<u8> {
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    frame.extend_from_slice(payload.as_bytes());
    end_frame(&mut frame, start);
    frame
}

#[test]
fn a_client_whose_commands_cost_much_goes_on_turn_by_turn_without_a_pause() {
    let config = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    let mut server = Server::open(config).expect("a server");
    let (subscriber, now) = (server.engine.connect(0).expect("room"), Now::read(&server.clock));
    for number in 0..500 {
        let command = format!(r#"{{"c":"subscribe","t":"^a{number}.*","sub_id":"{number}"}}"#);
        server.engine.execute(now, subscriber, command.as_bytes());
    }
    server.engine.on_time(now);
    let at = server.address().expect("an address");
    let mut stream = TcpStream::connect(at).expect("it listens");
    let commands = |at: usize| frame(&format!(r#"{{"c":"p","t":"t{at}"}}1"#));
    let bytes: Vec<u8> = (0..100).flat_map(commands).collect();
    stream.write_all(&bytes).expect("it listens");
    let (start, mut turns) = (std::time::Instant::now(), 0);
    let before = server.counters().commands;
    while server.counters().commands < before + 100 {
        assert!(start.elapsed() < Duration::from_secs(60), "it waits for nothing");
        // Would it sleep after each turn, all would take minutes.
        server.turn(Duration::from_secs(10)).expect("it goes on");
        turns += 1;
    }
    assert!(turns > 11, "nine topics a turn are enough: {turns} turns");
}

#[test]
fn a_server_stops_on_disk_failure_if_configured() {
    for (on_failure, ends) in [(OnFailure::Stop, true), (OnFailure::Continue, false)] {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("state");
        let mut config = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        config.topics = vec![topic.durable()];
        let segment_bytes = 16 << 10;
        config.storage =
            Some(StorageConfig { segment_bytes, on_failure, ..StorageConfig::at(&place) });
        let mut server = Server::open(config).expect("a server");
        let (client, now) =
            (server.engine.connect(0).expect("there is room"), Now::read(&server.clock));
        assert_eq!(server.failure(), None);
        // No segment can follow those that are there.
        std::fs::rename(&place, directory.path().join("away")).expect("a directory");
        let note = "x".repeat(2_000);
        let start = std::time::Instant::now();
        let has_failed = |server: &Server| {
            server.engine.state.catalog.store().is_some_and(|store| store.has_failed())
        };
        while !has_failed(&server) {
            assert!(start.elapsed() < Duration::from_secs(60), "the disk takes all");
            let payload = format!(r#"{{"c":"p","t":"orders"}}{{"id":1,"note":"{note}"}}"#);
            server.engine.execute(now, client, payload.as_bytes());
            server.engine.execute_deferred(now, client);
        }
        server.turn(Duration::ZERO).expect("it goes on");
        let word = server.next_log_line().expect("a word about it");
        assert!(word.contains("start the server again when the disk is repaired"), "{word}");
        assert_eq!(server.failure().is_some(), ends);
        assert_eq!((server.counters().disk_failed, server.next_log_line()), (1, None));
    }
}
