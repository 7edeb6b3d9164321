//! Rings with one producer.

use super::exchange::{Case, End, Found};
use super::row::Row;
use crate::smx::RunLength;
use crate::threads::{Block, DeliveryCheck, Failed, Quota, Role, ThreadGroup, tag};
use lanecast_ring::rings::{self, Consumer, ExclusiveConsumer, Producer};

/// Runs a row with one producer.
pub(super) fn run<const WORDS: usize>(case: &Case, length: RunLength) -> Result<Found, Failed> {
    let build = rings::single_producer(case.capacity, Block::<WORDS>::default)?;
    let mut build = build.wait(case.wait);
    let (mut consumers, mut exclusive_consumer) = (Vec::new(), None);
    match case.row {
        Row::Singly => exclusive_consumer = Some(build.exclusive_consumer()?),
        Row::Diamond => {
            let (first, second) = (build.consumer()?, build.consumer()?);
            let third = build.after(&[&first, &second])?;
            consumers.extend([first, second, third]);
        }
        row => {
            for _ in 0..row.consumers() {
                consumers.push(build.consumer()?);
            }
        }
    }
    let producer = build.producer()?;
    let seats = &case.seats;
    let mut group = ThreadGroup::new();
    group.join(Role::Producer, seats.producers[0], || produce(producer, case.batch, length, 0));
    let (most, mut cpus) = (most_at_once(case.capacity), seats.consumers.iter());
    for consumer in consumers {
        let Some(cpu) = cpus.next() else { break };
        group.join(Role::Consumer, *cpu, move || drain(consumer, most));
    }
    if let (Some(exclusive_consumer), Some(cpu)) = (exclusive_consumer, cpus.next()) {
        group.join(Role::Consumer, *cpu, move || pop(exclusive_consumer));
    }
    Ok(Found::each_sees_all(group.run()?))
}

/// The most that a consumer takes before it releases it.
pub(super) const fn most_at_once(capacity: usize) -> usize {
    if capacity < 4 { 1 } else { capacity / 4 }
}

/// Sends as much as possible, one by one or in batches that are written in place.
pub(super) fn produce<const WORDS: usize>(
    mut producer: Producer<Block<WORDS>>,
    batch: usize,
    length: RunLength,
    number: usize,
) -> End {
    let (mut quota, mut at) = (Quota::new(length, batch), tag(number));
    while let Some(portion) = quota.next() {
        let sent = match batch {
            1 => push(&mut producer, at, portion),
            batch => claim(&mut producer, at, portion, batch as u64),
        };
        at += sent;
        if sent < portion {
            break;
        }
    }
    End::sent(at - tag(number))
}

/// Sends one by one; returns the number sent, less than `count` if all consumers have gone.
fn push<const WORDS: usize>(producer: &mut Producer<Block<WORDS>>, first: u64, count: u64) -> u64 {
    (0..count).find(|at| producer.push(Block::new(first + at)).is_err()).unwrap_or(count)
}

fn claim<const WORDS: usize>(
    producer: &mut Producer<Block<WORDS>>,
    first: u64,
    count: u64,
    batch: u64,
) -> u64 {
    let mut sent = 0;
    while sent < count {
        let Ok(mut claim) = producer.claim(batch.min(count - sent) as usize) else { break };
        let number = first + sent;
        for (block, at) in claim.iter_mut().zip(number..) {
            *block = Block::new(at);
        }
        sent += claim.len() as u64;
        claim.commit();
    }
    sent
}

/// Reads all available messages in place.
fn drain<const WORDS: usize>(mut consumer: Consumer<Block<WORDS>>, most: usize) -> End {
    let mut seen = DeliveryCheck::new(1);
    loop {
        let work = consumer.drain(most, |blocks| seen.see(blocks));
        if work == 0 && consumer.is_closed() {
            return End::seen(seen);
        }
        consumer.wait(work);
    }
}

/// Takes one message after the other.
fn pop<const WORDS: usize>(mut exclusive_consumer: ExclusiveConsumer<Block<WORDS>>) -> End {
    let mut seen = DeliveryCheck::new(1);
    loop {
        let mut work = 0;
        while let Some(block) = exclusive_consumer.pop() {
            seen.see(&[block]);
            work += 1;
        }
        if work == 0 && exclusive_consumer.is_closed() {
            return End::seen(seen);
        }
        exclusive_consumer.wait(work);
    }
}
