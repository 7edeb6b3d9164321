//! Thousands of topics on one host: start-up storm, mass reconnect, and a receiver that asks for
//! everything again. Bounds are on frames, bytes, duty cycles and memory, for each source.
//!
//! With 400 topics of 40 sources; with `LONG_TESTS=1`, 10,000 of 1,000, and as many receivers.

use crate::programs::{Programs, Shape, Work};
use allocation_counter::{AllocationInfo, measure};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};

/// Memory of a joined session of ten topics, at both of its ends and in the resolver.
const SESSION_BYTES: u64 = 16 << 10;

fn shape() -> Shape {
    let programs = if std::env::var_os("LONG_TESTS").is_some() { 100 } else { 4 };
    Shape { programs, sources: 10, topics: 10 }
}

/// A part of a run: its time, its work, and the memory that it keeps.
#[derive(Debug)]
struct Phase {
    took: Nanos,
    work: Work,
    memory: AllocationInfo,
}

/// Bytes that a phase has added to memory.
fn kept(phase: &Phase) -> u64 {
    phase.memory.bytes_current.max(0) as u64
}

/// Runs until the condition holds, and prints what that took.
#[track_caller]
fn phase(programs: &mut Programs, what: &str, holds: impl Fn(&Programs) -> bool) -> Phase {
    let (began, then) = (programs.now, programs.work);
    let memory = measure(|| {
        while !holds(programs) {
            assert!(programs.now < began + 60 * SECOND, "not {what}");
            programs.run_until(programs.now + MILLISECOND);
        }
    });
    let (took, work) = (programs.now - began, programs.work.since(&then));
    let (kept, most) = (memory.bytes_current / 1_024, memory.bytes_max / 1_024);
    println!("{what} after {} ms: {work:?}, {kept} KiB kept, {most} at once", took / MILLISECOND);
    Phase { took, work, memory }
}

/// A host whose programs have started, and resolved all their topics.
fn joined(shape: Shape) -> Programs {
    let mut started = None;
    let memory = measure(|| started = Some(Programs::new(shape)));
    let mut programs = started.expect("all programs");
    let sources = shape.all_sources() as u64;
    println!("{} KiB of {} topics at the start", memory.bytes_current / 1_024, shape.all_topics());
    // A window of 64 KiB and its topics, and three names for each topic in the resolvers.
    assert!(memory.bytes_current <= (160 << 10) * sources as i64, "{memory:?}");

    let storm = phase(&mut programs, "joined", Programs::all_joined);
    assert!(storm.took <= 1_500 * MILLISECOND, "{storm:?}");
    // Two Joins each, with a cookie between them, and a Status.
    assert!(storm.work.receivers <= 6 * sources && storm.work.control <= 6 * sources, "{storm:?}");
    assert!(kept(&storm) <= SESSION_BYTES * sources, "{storm:?}");
    programs
}

#[test]
fn a_storm_of_starts_and_reconnects_is_bounded() {
    let shape = shape();
    let (sources, mut programs) = (shape.all_sources() as u64, joined(shape));

    (0..shape.all_sources()).for_each(|source| programs.publish(source));
    let read = phase(&mut programs, "read", |it| it.all_read(1, None));
    assert!(read.work.data <= sources && read.work.repairs + read.work.naks == 0, "{read:?}");
    assert!(read.took <= 10 * MILLISECOND, "{read:?}");

    for most in [4_096, 128] {
        let end = programs.now + 5 * SECOND;
        let idle = phase(&mut programs, "idle", |it| it.now >= end);
        // Ten Status a second, and as many heartbeats beside the answers to them.
        let Work { control, receivers, data, .. } = idle.work;
        assert!(control <= 110 * sources && receivers <= 60 * sources && data == 0, "{idle:?}");
        // Resolvers learn of each other at first, and of nothing more after that.
        assert!(kept(&idle) <= most * sources, "{idle:?}");
    }

    programs.is_cut = true;
    phase(&mut programs, "given up", Programs::all_apart);
    programs.is_cut = false;
    let back = phase(&mut programs, "joined again", Programs::all_joined);
    assert!(back.took <= 15 * SECOND, "{back:?}");
    assert!(back.work.receivers <= 6 * sources && back.work.naks == 0, "{back:?}");
    assert!(back.work.data == 0 && kept(&back) <= SESSION_BYTES * sources, "{back:?}");
}

#[test]
fn a_receiver_that_asks_for_everything_again_costs_its_source_alone() {
    const ROUNDS: u64 = 100;
    let shape = shape();
    let (sources, mut programs) = (shape.all_sources() as u64, joined(shape));
    programs.lossy = Some(0);
    let then = programs.work;
    for round in 1..=ROUNDS {
        (0..shape.all_sources()).for_each(|source| programs.publish(source));
        programs.run_until(programs.now + MILLISECOND);
        // The others read each round within its millisecond.
        assert!(programs.all_read(round, Some(0)), "round {round}");
    }
    phase(&mut programs, "read by the last", |it| it.all_read(ROUNDS, None));
    let work = programs.work.since(&then);
    // A tenth comes through, of repairs as well.
    assert!(work.repairs > ROUNDS && work.repairs <= 20 * ROUNDS, "{work:?}");
    assert!(work.naks <= 10 * ROUNDS, "{work:?}");
    assert!(work.data <= ROUNDS * sources + work.repairs, "{work:?}");
}
