//! What the server does for clients that wait.

use super::*;
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
    let settings = Settings::at((Ipv4Addr::LOCALHOST, 0).into());
    let mut server = Server::open(settings).expect("a server");
    let at = server.address().expect("an address");
    let mut stream = TcpStream::connect(at).expect("it listens");
    turn_until(&mut server, "a client", |server| server.clients() == 1);
    let id = ClientId(0);
    // A long query that is not answered yet.
    let query = server.hub.client(id).expect("it is here").count_query(1 << 20);
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    frame.extend_from_slice(br#"{"c":"flush"}"#);
    end_frame(&mut frame, start);
    stream.write_all(&frame).expect("it listens");
    turn_until(&mut server, "a client that waits", |server| server.hub.is_stopped(id));
    drop(stream);
    let mut wakes = 0;
    for _ in 0..100 {
        let mut ready = Vec::new();
        server.poller.wait(Some(Duration::from_millis(1)), &mut ready).expect("it waits");
        wakes += ready.len();
    }
    assert!(wakes <= 1, "it woke {wakes} times for one end");
    assert_eq!(server.clients(), 1, "what it sent is still to be done");
    drop(query);
    turn_until(&mut server, "the end", |server| server.clients() == 0);
    assert_eq!(server.counters().commands, 1);
}
