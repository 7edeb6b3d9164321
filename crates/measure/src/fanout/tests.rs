use super::load::{stamp, stamped};
use super::*;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use lanecast_filter::{Filter, Message, Plan};
use lanecast_wire::command::frame_bytes;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

const LOADS: [Load; 2] = [
    Load { wanted: Wanted::All, subscribers: 7 },
    Load { wanted: Wanted::Quarter, subscribers: 7 },
];

#[test]
fn filters_let_through_what_is_owed() {
    for load in LOADS {
        let (orders, mut wanted) = (load.orders(), 0);
        for order in &orders {
            let passes = |subscriber: &usize| {
                let filter = Filter::parse(&load.filter(*subscriber)).expect("a filter");
                let mut fields = FieldSet::new(MessageType::Fix);
                let plan = Plan::new(&filter, &mut fields).expect("a plan");
                let mut row = Row::new();
                Reader::new(&fields).read(order.bytes(), &mut row).expect("an order");
                let environment = Environment { topic: "t", client: "", unix_ns: 0 };
                let bytes = order.bytes();
                plan.matches(&Message { row: &row, bytes, environment: &environment })
            };
            let passed = (0..load.subscribers).filter(passes).count() as u64;
            assert_eq!(passed, load.recipients(order), "{order:?}");
            wanted += passed;
        }
        let share = wanted as f64 / orders.len() as f64;
        let expected = if load.wanted == Wanted::All { 7.0 } else { 0.25 };
        assert!((share / expected - 1.0).abs() < 0.15, "{share}");
    }
}

#[test]
fn orders_carry_times() {
    let order = &LOADS[0].orders()[3];
    assert_eq!(stamped(order.bytes()), None);
    let mut bytes = order.bytes().to_vec();
    stamp(&mut bytes, 1_234_567_890_123_456_789);
    assert_eq!(stamped(&bytes), Some(1_234_567_890_123_456_789));
    assert_eq!(bytes.iter().filter(|byte| **byte == 1).count(), 10);
    assert_eq!(bytes.len(), order.bytes().len());
}

#[test]
fn without_a_server_everything_arrives() {
    for load in LOADS {
        for publishers in [1, 3] {
            let bursts = Bursts { publishers, count: 2, messages: 5_000 };
            let result = embedded(&load, bursts, [&[], &[]]).expect("it runs");
            let orders = load.orders();
            let share = |number| {
                let share = bursts.share(number) as usize;
                let expected =
                    orders.iter().cycle().take(share).map(|order| load.recipients(order));
                expected.sum::<u64>()
            };
            let expected: u64 = 2 * (0..publishers).map(share).sum::<u64>();
            assert_eq!((result.expected, result.lost, result.excess), (expected, 0, 0));
            assert!(result.delivered_per_second > 0.0 && result.latency.is_some());
        }
    }
}

/// A server with one subscriber that loses every `loses`th message.
fn relay(listener: &TcpListener, loses: usize) -> std::io::Result<u64> {
    let (mut to, _) = listener.accept()?;
    let mut asked = Vec::new();
    while frames(&mut to, &mut asked)?.len() < 2 {}
    let mut answer = Vec::new();
    commands::write_frame(&mut answer, br#"{"c":"ack","a":"processed","status":"success"}"#);
    to.write_all(&answer)?;
    let (mut from, _) = listener.accept()?;
    let (mut partial, mut number) = (Vec::new(), 0);
    while let Ok(frames) = frames(&mut from, &mut partial) {
        let mut out = Vec::new();
        for frame in frames {
            if frame.ends_with(b"\x01") {
                number += 1;
                if loses == 0 || number % loses != 0 {
                    commands::write_frame(&mut out, &frame);
                }
            }
        }
        to.write_all(&out)?;
    }
    // The subscriber hangs up, not the server.
    std::io::copy(&mut to, &mut std::io::sink())
}

fn frames(from: &mut TcpStream, partial: &mut Vec<u8>) -> std::io::Result<Vec<Vec<u8>>> {
    let mut buffer = [0; 4096];
    let count = from.read(&mut buffer)?;
    if count == 0 {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    partial.extend_from_slice(&buffer[..count]);
    let mut found = Vec::new();
    while let Some(total) = frame_bytes(partial, 1 << 20).expect("a length") {
        found.push(partial[4..total].to_vec());
        partial.drain(..total);
    }
    Ok(found)
}

#[test]
fn messages_lost_by_a_server_are_counted() {
    for (loses, lost) in [(0, 0), (1_000, 5)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let at = listener.local_addr().expect("bound");
        let server = std::thread::spawn(move || relay(&listener, loses));
        let load = Load { wanted: Wanted::All, subscribers: 1 };
        let bursts = Bursts { publishers: 1, count: 1, messages: 5_000 };
        let result = over_sockets(&Commands, at, &load, bursts, [&[], &[]]).expect("it runs");
        assert_eq!((result.expected, result.lost, result.excess), (5_000, lost, 0));
        assert_eq!(result.through, "lanecast");
        assert_eq!(server.join().expect("it ends").expect("no other connection ends"), 0);
    }
}

#[test]
fn a_server_that_refuses_is_an_error() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let at = listener.local_addr().expect("bound");
    let server = std::thread::spawn(move || {
        let (mut to, _) = listener.accept().expect("a connection");
        let mut out = Vec::new();
        commands::write_frame(&mut out, br#"{"c":"ack","a":"processed","status":"failure"}"#);
        to.write_all(&out).expect("it listens");
    });
    let load = Load { wanted: Wanted::All, subscribers: 1 };
    let bursts = Bursts { publishers: 1, count: 1, messages: 1 };
    let error = over_sockets(&Commands, at, &load, bursts, [&[], &[]]).expect_err("refused");
    assert!(error.to_string().contains("failure"), "{error}");
    server.join().expect("it ends");
}
