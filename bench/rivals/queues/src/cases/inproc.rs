//! ØMQ between threads: two PAIR sockets over `inproc`, which is the pipe of the Y-suite inside.

use anyhow::{Context as _, Result};
use zmq::{Context, DONTWAIT, PAIR, Socket};

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end_over};
use crate::stream::{Stream, blocking, each};

const ADDRESS: &str = "inproc://rivals";
const SIZE: usize = size_of::<u64>();

pub const CASES: &[Case] = &[Case {
    peer: "zmq",
    side: "zmq",
    package: Some("zmq"),
    rows: &[Row::Queue, Row::Pop, Row::Pingpong, Row::PingpongPark, Row::Pipe],
    build,
}];

fn build(load: &Load) -> Result<(Built, &'static str)> {
    let (context, high_water) = (Context::new(), i32::try_from(load.capacity)?);
    let socket = || -> Result<Socket> {
        let socket = context.socket(PAIR)?;
        socket.set_sndhwm(high_water)?;
        socket.set_rcvhwm(high_water)?;
        // What is left when it is over has been checked and need not be sent.
        socket.set_linger(0)?;
        Ok(socket)
    };
    let (near, far) = (socket()?, socket()?);
    near.bind(ADDRESS).context("cannot bind a socket")?;
    far.connect(ADDRESS).context("cannot connect a socket")?;
    Ok(match load.row {
        Row::Pingpong => {
            let (near, far) = (spins(near, Idle::new(load)), spins(far, Idle::new(load)));
            (Built::Pair(Pair { near, far }), "PAIR: send; recv DONTWAIT")
        }
        Row::PingpongPark => {
            (Built::Pair(Pair { near: sleeps(near), far: sleeps(far) }), "PAIR: send; recv")
        }
        _ => {
            let feed = each(move |value| send(&near, value));
            let drain = blocking(move || receive(&far, 0).expect("a socket that stays open"));
            (Built::Stream(Stream { feeds: vec![feed], drains: vec![drain] }), "PAIR: send; recv")
        }
    })
}

fn send(socket: &Socket, value: u64) {
    socket.send(&value.to_le_bytes()[..], 0).expect("a socket that stays open");
}

fn receive(socket: &Socket, flags: i32) -> Option<u64> {
    let mut bytes = [0; SIZE];
    let count = socket.recv_into(&mut bytes, flags).ok()?;
    assert_eq!(count, SIZE, "a message of another length");
    Some(u64::from_le_bytes(bytes))
}

fn spins(socket: Socket, mut idle: Idle) -> Box<dyn End> {
    end_over(
        socket,
        |socket, value| send(socket, value),
        move |socket| idle.until(|| receive(socket, DONTWAIT)),
    )
}

fn sleeps(socket: Socket) -> Box<dyn End> {
    end_over(
        socket,
        |socket, value| send(socket, value),
        |socket| receive(socket, 0).expect("a socket that stays open"),
    )
}
