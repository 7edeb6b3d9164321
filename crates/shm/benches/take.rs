//! `take` against `poll`, over shared memory as between processes and as between threads: the time
//! to read a backlog on one thread, which a busy machine hardly disturbs, and the rates of one
//! publisher and one subscriber on two threads. Both in interleaved pairs.
//!
//! `cargo bench -p lanecast-shm --bench take`; prints the median ratios of rates, and each pair's
//! rates on two threads.
#![forbid(unsafe_code)]

use lanecast_shm::{Domain, DomainSettings, Subscriber, Visibility};
use lanecast_transport::{Claim, ClaimError, Event, Publish, Subscribe, Transport};
use std::hint::black_box;
use std::time::{Duration, Instant};

const PAIRS: usize = 9;
const LENGTH: usize = 100;
const LIMIT: usize = 256;
/// Messages of a backlog: a few reads, short enough to be undisturbed mostly.
const BACKLOG: u64 = 1_000;

/// Reads `count` messages by polls or runs; returns a checksum.
fn read(subscriber: &mut Subscriber, count: u64, by_run: bool) -> u64 {
    let (mut read, mut sum) = (0, 0);
    let mut handler = |event: Event<'_>| {
        if let Event::Message(message) = event {
            read += 1;
            sum += u64::from(message.bytes()[0]);
        }
        read
    };
    let mut done = 0;
    while done < count {
        if by_run {
            for event in &subscriber.take(LIMIT) {
                done = handler(event);
            }
        } else {
            subscriber.poll(LIMIT, |event| done = handler(event));
        }
    }
    sum
}

/// Median over `rounds` pairs of the time to read a backlog by polls, divided by that by runs.
fn backlog_ratio(domain: &Domain, rounds: usize) -> f64 {
    let mut subscriber = domain.subscriber(&["backlog"]).expect("a subscriber");
    let mut publisher = domain.publisher("backlog").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, Duration::from_secs(10)), "the subscriber joins");
    let mut time = |by_run: bool| {
        (0..BACKLOG).for_each(|number| publisher.send(&[number as u8; LENGTH]).expect("room"));
        let start = Instant::now();
        black_box(read(&mut subscriber, BACKLOG, by_run));
        start.elapsed().as_secs_f64()
    };
    let mut ratios: Vec<f64> = (0..rounds)
        .map(|round| {
            let first = time(round % 2 == 0);
            let second = time(round % 2 == 1);
            if round % 2 == 0 { second / first } else { first / second }
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios[rounds / 2]
}

/// Receives `count` messages by polls or runs; returns messages per second.
fn rate(domain: &Domain, count: u64, by_run: bool) -> f64 {
    let mut subscriber = domain.subscriber(&["take"]).expect("a subscriber");
    let mut publisher = domain.publisher("take").expect("a publisher");
    assert!(publisher.wait_for_subscribers(1, Duration::from_secs(10)), "the subscriber joins");
    let writer = std::thread::spawn(move || {
        let mut sent = 0;
        while sent < count {
            match publisher.try_claim(LENGTH) {
                Ok(mut claim) => {
                    claim[..8].copy_from_slice(&sent.to_le_bytes());
                    claim.commit();
                    sent += 1;
                }
                Err(ClaimError::BackPressured(_)) => std::hint::spin_loop(),
                Err(other) => panic!("{other}"),
            }
        }
        publisher
    });
    let (mut read, mut sum) = (0u64, 0u64);
    let mut handler = |event: Event<'_>| {
        if let Event::Message(message) = event {
            read += 1;
            sum = sum.wrapping_add(u64::from(message.bytes()[0]));
        }
        read
    };
    let start = Instant::now();
    let mut done = 0;
    while done < count {
        let work = if by_run {
            let run = subscriber.take(LIMIT);
            let mut work = 0;
            for event in &run {
                done = handler(event);
                work += 1;
            }
            work
        } else {
            subscriber.poll(LIMIT, |event| done = handler(event))
        };
        subscriber.wait(work);
    }
    let seconds = start.elapsed().as_secs_f64();
    black_box(sum);
    drop(writer.join().expect("the writer"));
    count as f64 / seconds
}

fn main() {
    // A test run of the benches: each path once.
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (pairs, count) = if is_bench { (PAIRS, 20_000_000) } else { (1, 10_000) };
    for (name, visibility) in [("shm", Visibility::Host), ("threads", Visibility::Process)] {
        let directory = tempfile::TempDir::new_in("/dev/shm").expect("a directory");
        let settings = DomainSettings {
            directory: directory.path().join("domain"),
            visibility,
            local_join: visibility == Visibility::Process,
            ..DomainSettings::default()
        };
        let domain = Domain::open(settings).expect("a domain");
        let rounds = if is_bench { 5_000 } else { 1 };
        println!("{name}: take/poll of a backlog: {:.3}", backlog_ratio(&domain, rounds));
        let mut ratios = Vec::new();
        for pair in 0..pairs {
            let first = rate(&domain, count, pair % 2 == 0);
            let second = rate(&domain, count, pair % 2 == 1);
            let (take, poll) = if pair % 2 == 0 { (first, second) } else { (second, first) };
            println!("{name}: take {:.2} M/s, poll {:.2} M/s", take / 1e6, poll / 1e6);
            ratios.push(take / poll);
        }
        ratios.sort_by(f64::total_cmp);
        println!("{name}: take/poll, median of {pairs} pairs: {:.3}", ratios[pairs / 2]);
    }
}
