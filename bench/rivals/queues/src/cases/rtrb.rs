//! rtrb: a ring for one producer and one consumer.

use anyhow::Result;
use rtrb::chunks::ChunkError;
use rtrb::{Consumer, Producer, RingBuffer};

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{Pair, end};
use crate::stream::{Feed, Stream, drained, each, polled, runs};
use crate::tally::Tally;

pub const CASES: &[Case] = &[
    Case {
        peer: "rtrb",
        side: "rtrb",
        package: Some("rtrb"),
        rows: &[Row::Queue, Row::Pop, Row::Pingpong],
        build: singly,
    },
    Case {
        peer: "rtrb",
        side: "rtrb-chunks",
        package: Some("rtrb"),
        rows: &[Row::Queue, Row::Batch],
        build: in_chunks,
    },
];

fn singly(load: &Load) -> Result<(Built, &'static str)> {
    let idle = Idle::new(load);
    let (put, mut take) = RingBuffer::new(load.capacity);
    if load.row != Row::Pingpong {
        let drain = polled(idle, move || take.pop().ok());
        let stream = Stream { feeds: vec![pushes(put, idle)], drains: vec![drain] };
        return Ok((Built::Stream(stream), "push; pop"));
    }
    let (mut put, mut waiting) = (put, idle);
    let (mut back, mut taken_back) = RingBuffer::new(load.capacity);
    let mut answering = idle;
    let near = end(
        move |value| put.push(value).expect("a ring with at most one value in it"),
        move || waiting.until(|| taken_back.pop().ok()),
    );
    let far = end(
        move |value| back.push(value).expect("a ring with at most one value in it"),
        move || answering.until(|| take.pop().ok()),
    );
    Ok((Built::Pair(Pair { near, far }), "push; pop"))
}

fn in_chunks(load: &Load) -> Result<(Built, &'static str)> {
    let idle = Idle::new(load);
    let (put, mut take) = RingBuffer::new(load.capacity);
    let drain = drained(idle, move |tally| drain(&mut take, tally));
    let (feed, way) = match load.row {
        Row::Queue => (pushes(put, idle), "push; read_chunk of all"),
        _ => (chunks(put, idle, load.batch), "write_chunk; read_chunk of all"),
    };
    Ok((Built::Stream(Stream { feeds: vec![feed], drains: vec![drain] }), way))
}

fn pushes(mut put: Producer<u64>, mut idle: Idle) -> Box<dyn Feed> {
    each(move |value| idle.until(|| put.push(value).ok()))
}

fn chunks(mut put: Producer<u64>, mut idle: Idle, batch: u64) -> Box<dyn Feed> {
    runs(batch, move |values| {
        let wanted = (values.end - values.start) as usize;
        idle.until(|| match put.write_chunk_uninit(wanted) {
            Ok(chunk) => Some(chunk.fill_from_iter(values.clone())),
            Err(ChunkError::TooFewSlots(_)) => None,
        });
    })
}

fn drain(take: &mut Consumer<u64>, tally: &mut Tally) -> bool {
    let there = take.slots();
    let Ok(chunk) = take.read_chunk(there) else { return false };
    let (first, second) = chunk.as_slices();
    tally.slice(first);
    tally.slice(second);
    chunk.commit_all();
    there > 0
}
