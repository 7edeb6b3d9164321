//! lanecast's own rings, as its documentation says to use them: whoever finds nothing leaves the
//! waiting to the ring's strategy.

use anyhow::Result;
use lanecast_base::WaitStrategy;
use lanecast_ring::rings::{self, Consumer, Producer, Taker};

use super::{Built, Case};
use crate::idle::Idle;
use crate::load::{Load, Row};
use crate::pair::{End, Pair, end};
use crate::stream::{Drain, Feed, Stream, drained, each, polled, runs};

const PACKAGE: Option<&str> = Some("lanecast-ring");

pub const CASES: &[Case] = &[
    Case {
        peer: "lanecast",
        side: "lanecast",
        package: PACKAGE,
        rows: &[Row::Queue, Row::Batch, Row::Multicast, Row::Diamond],
        build: drained_in_slices,
    },
    Case { peer: "lanecast", side: "lanecast", package: PACKAGE, rows: &[Row::Pop], build: popped },
    Case {
        peer: "lanecast",
        side: "lanecast-pop",
        package: PACKAGE,
        rows: &[Row::Queue],
        build: popped,
    },
    Case {
        peer: "lanecast",
        side: "lanecast",
        package: PACKAGE,
        rows: &[Row::Pingpong, Row::PingpongPark],
        build: round_trips,
    },
    Case {
        peer: "lanecast",
        side: "lanecast-spin-park",
        package: PACKAGE,
        rows: &[Row::Pingpong, Row::PingpongPark],
        build: round_trips_that_may_sleep,
    },
];

/// How both ends of a ring wait.
fn strategy(load: &Load) -> WaitStrategy {
    match load.row {
        Row::Multicast | Row::Diamond | Row::Mpmc => WaitStrategy::SpinYield,
        Row::PingpongPark => WaitStrategy::Park,
        _ => WaitStrategy::BusySpin,
    }
}

fn drained_in_slices(load: &Load) -> Result<(Built, &'static str)> {
    let mut build = rings::single_producer(load.capacity, || 0_u64)?.wait(strategy(load));
    let first = build.consumer()?;
    let mut consumers = vec![first];
    match load.row {
        Row::Multicast => consumers.extend([build.consumer()?, build.consumer()?]),
        Row::Diamond => {
            let second = build.consumer()?;
            let last = build.after(&[&consumers[0], &second])?;
            consumers.extend([second, last]);
        }
        _ => (),
    }
    let feed = feed(build.producer()?, load.batch);
    let drains = consumers.into_iter().map(slices).collect();
    let way = if load.batch > 1 { "claim; drained as slices" } else { "push; drained as slices" };
    Ok((Built::Stream(Stream { feeds: vec![feed], drains }), way))
}

fn feed(mut ring: Producer<u64>, batch: u64) -> Box<dyn Feed> {
    if batch == 1 {
        return each(move |value| ring.push(value).expect("consumers stay"));
    }
    runs(batch, move |mut values| {
        while !values.is_empty() {
            let wanted = (values.end - values.start) as usize;
            let mut claim = ring.claim(wanted).expect("consumers stay");
            claim.iter_mut().zip(&mut values).for_each(|(slot, value)| *slot = value);
            claim.commit();
        }
    })
}

fn slices(mut ring: Consumer<u64>) -> Box<dyn Drain> {
    drained(Idle::inside(), move |tally| {
        let work = ring.drain(usize::MAX, |values| tally.slice(values));
        ring.wait(work);
        work > 0
    })
}

fn popped(load: &Load) -> Result<(Built, &'static str)> {
    let (mut put, ring) = rings::unicast(load.capacity, || 0_u64, strategy(load))?;
    let feed = each(move |value| put.push(value).expect("the consumer stays"));
    let mut pops = Pops { ring, since_dry: 0 };
    let drain = polled(Idle::inside(), move || pops.one_or_wait());
    Ok((Built::Stream(Stream { feeds: vec![feed], drains: vec![drain] }), "push; pop"))
}

/// Takes values singly, and tells the ring's strategy how many there were before none was there.
struct Pops {
    ring: Taker<u64>,
    since_dry: usize,
}

impl Pops {
    #[inline(always)]
    fn one_or_wait(&mut self) -> Option<u64> {
        let value = self.ring.pop();
        if value.is_some() {
            self.since_dry += 1;
        } else {
            self.wait();
        }
        value
    }

    #[cold]
    fn wait(&mut self) {
        if self.since_dry > 0 {
            self.ring.wait(self.since_dry);
            self.since_dry = 0;
        }
        self.ring.wait(0);
    }
}

fn round_trips(load: &Load) -> Result<(Built, &'static str)> {
    Ok((Built::Pair(pair(load, strategy(load))?), "push; pop"))
}

fn round_trips_that_may_sleep(load: &Load) -> Result<(Built, &'static str)> {
    Ok((Built::Pair(pair(load, WaitStrategy::SpinPark)?), "push; pop (spins before it sleeps)"))
}

fn pair(load: &Load, strategy: WaitStrategy) -> Result<Pair> {
    let (there, take) = rings::unicast(load.capacity, || 0_u64, strategy)?;
    let (back, taken_back) = rings::unicast(load.capacity, || 0_u64, strategy)?;
    Ok(Pair { near: both(there, taken_back), far: both(back, take) })
}

fn both(mut put: Producer<u64>, ring: Taker<u64>) -> Box<dyn End> {
    let mut pops = Pops { ring, since_dry: 0 };
    let mut waits = Idle::inside();
    end(
        move |value| put.push(value).expect("the other end stays"),
        move || waits.until(|| pops.one_or_wait()),
    )
}
