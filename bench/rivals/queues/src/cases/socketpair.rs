//! Two Unix sockets that are a pair: what threads have without a library.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use anyhow::Result;

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end_over};
use crate::stream::{Drain, Stream, drained, each, runs};
use crate::tally::Tally;

const SIZE: usize = size_of::<u64>();
/// Bytes that one read may bring.
const AT_ONCE: usize = 64 << 10;

pub const CASES: &[Case] = &[
    Case {
        peer: "unix",
        side: "unix",
        package: None,
        rows: &[Row::Pipe, Row::PingpongPark],
        build: each_by_itself,
    },
    Case {
        peer: "unix",
        side: "unix-gathered",
        package: None,
        rows: &[Row::Pipe],
        build: gathered,
    },
];

/// Each message is a system call, as each flush of a pipe is visible at once.
fn each_by_itself(load: &Load) -> Result<(Built, &'static str)> {
    let (mut near, far) = UnixStream::pair()?;
    if load.row == Row::PingpongPark {
        return Ok((Built::Pair(Pair { near: both(near), far: both(far) }), "write; read"));
    }
    let feed = each(move |value| write(&mut near, &value.to_le_bytes()));
    let stream = Stream { feeds: vec![feed], drains: vec![drain(far)] };
    Ok((Built::Stream(stream), "a write for each message; read of 64 KiB"))
}

/// A write gathered by the writer, which is one system call.
fn gathered(load: &Load) -> Result<(Built, &'static str)> {
    let (mut near, far) = UnixStream::pair()?;
    let mut bytes = Vec::new();
    let feed = runs(load.batch, move |values| {
        bytes.clear();
        values.for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        write(&mut near, &bytes);
    });
    let stream = Stream { feeds: vec![feed], drains: vec![drain(far)] };
    Ok((Built::Stream(stream), "a write for each batch; read of 64 KiB"))
}

fn drain(mut socket: UnixStream) -> Box<dyn Drain> {
    let (mut bytes, mut partial) = (vec![0; AT_ONCE], 0);
    drained(Idle::inside(), move |tally| {
        let read = socket.read(&mut bytes[partial..]).expect("a socket that stays open");
        let there = partial + read;
        let rest = tell(&bytes[..there], tally);
        bytes.copy_within(there - rest..there, 0);
        partial = rest;
        true
    })
}

/// Hands whole values to the tally; returns how many bytes are left over.
fn tell(bytes: &[u8], tally: &mut Tally) -> usize {
    let (values, rest) = bytes.as_chunks::<SIZE>();
    values.iter().for_each(|value| tally.one(u64::from_le_bytes(*value)));
    rest.len()
}

fn both(socket: UnixStream) -> Box<dyn End> {
    end_over(
        socket,
        |socket, value| write(socket, &value.to_le_bytes()),
        |socket| {
            let mut bytes = [0; SIZE];
            socket.read_exact(&mut bytes).expect("a socket that stays open");
            u64::from_le_bytes(bytes)
        },
    )
}

fn write(socket: &mut UnixStream, bytes: &[u8]) {
    socket.write_all(bytes).expect("a socket that stays open");
}
