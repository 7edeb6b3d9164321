//! The crate `disruptor`: one ring, consumers that poll it, in any dependency.

use anyhow::Result;
use disruptor::{BusySpin, EventPoller, Producer, SingleProducerBarrier, build_single_producer};

use super::case::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end};
use crate::stream::{Feed, Stream, drained, each, runs};

pub const CASES: &[Case] = &[Case {
    peer: "disruptor",
    side: "disruptor",
    package: Some("disruptor"),
    rows: &[Row::Queue, Row::Pop, Row::Batch, Row::Multicast, Row::Diamond, Row::Pingpong],
    build,
}];

/// A consumer's end; a macro, because what a consumer waits for is a type that has no public name.
macro_rules! polls {
    ($poller:expr, $idle:expr) => {{
        let mut poller = $poller;
        drained($idle, move |tally| match poller.poll() {
            Ok(mut events) => {
                (&mut events).for_each(|value| tally.one(*value));
                true
            }
            Err(_) => false,
        })
    }};
}

fn build(load: &Load) -> Result<(Built, &'static str)> {
    if load.row == Row::Pingpong {
        return Ok((Built::Pair(round_trips(load)), "publish; poll"));
    }
    let idle = Idle::new(load);
    let ring = build_single_producer(load.capacity, || 0_u64, BusySpin);
    let (first, ring) = ring.new_event_poller();
    let stream = match load.row {
        Row::Multicast => {
            let (second, ring) = ring.new_event_poller();
            let (third, ring) = ring.new_event_poller();
            let drains = vec![polls!(first, idle), polls!(second, idle), polls!(third, idle)];
            Stream { feeds: vec![feed(ring.build(), load)], drains }
        }
        Row::Diamond => {
            let (second, ring) = ring.new_event_poller();
            let (last, ring) = ring.and_then().new_event_poller();
            let drains = vec![polls!(first, idle), polls!(second, idle), polls!(last, idle)];
            Stream { feeds: vec![feed(ring.build(), load)], drains }
        }
        _ => Stream { feeds: vec![feed(ring.build(), load)], drains: vec![polls!(first, idle)] },
    };
    let way = if load.batch > 1 { "batch_publish; poll of all" } else { "publish; poll of all" };
    Ok((Built::Stream(stream), way))
}

/// Spins while the ring is full, the library's only strategy: its producer has a CPU for itself.
fn feed(mut ring: impl Producer<u64> + Send + 'static, load: &Load) -> Box<dyn Feed> {
    if load.batch == 1 {
        return each(move |value| ring.publish(|slot| *slot = value));
    }
    runs(load.batch, move |values| {
        let count = (values.end - values.start) as usize;
        ring.batch_publish(count, |slots| {
            slots.zip(values).for_each(|(slot, value)| *slot = value);
        });
    })
}

fn round_trips(load: &Load) -> Pair {
    let ring = || build_single_producer(load.capacity, || 0_u64, BusySpin).new_event_poller();
    let ((take, there), (taken_back, back)) = (ring(), ring());
    let idle = Idle::new(load);
    Pair { near: both(there.build(), taken_back, idle), far: both(back.build(), take, idle) }
}

fn both(
    mut put: impl Producer<u64> + Send + 'static,
    mut take: EventPoller<u64, SingleProducerBarrier>,
    mut idle: Idle,
) -> Box<dyn End> {
    end(
        move |value| {
            put.publish(|slot| *slot = value);
        },
        move || idle.until(|| (&mut take.poll().ok()?).next().copied()),
    )
}
