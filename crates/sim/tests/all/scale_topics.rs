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
    Shape { programs, sources: 10, topics: 10, has_pattern: false }
}

/// A part of a run: its time, its work, and the memory that it keeps.
#[derive(Debug)]
struct Phase {
    took: Nanos,
    work: Work,
    /// The most duty cycles of one source.
    busiest: u64,
    memory: AllocationInfo,
}

impl Phase {
    /// No source has had more duty cycles than `each`, nor have receivers on average; resolvers
    /// have had one for each frame that one of them has sent, and each other has heard.
    #[track_caller]
    fn check_turns(&self, shape: Shape, each: u64) {
        let Self { busiest, work, .. } = self;
        assert!(*busiest <= each, "more than {each} duty cycles of one source: {self:?}");
        assert!(work.receiver_turns <= each * shape.all_sources() as u64, "{self:?}");
        let programs = shape.programs as u64;
        assert!(work.resolver_turns <= (work.resolution + 1) * (programs + 1), "{self:?}");
    }
}

/// Bytes that a phase has added to memory.
fn kept(phase: &Phase) -> u64 {
    phase.memory.bytes_current.max(0) as u64
}

/// The most duty cycles of one source, other than `except`, since each had so many.
fn most_turns(programs: &Programs, then: &[u64], except: Option<usize>) -> u64 {
    let turns = programs.source_turns();
    let since = turns.iter().zip(then).map(|(turns, then)| turns - then).enumerate();
    since.filter(|(source, _)| Some(*source) != except).map(|(_, turns)| turns).max().unwrap_or(0)
}

/// Runs until the condition holds, and prints what that took.
#[track_caller]
fn phase(programs: &mut Programs, what: &str, holds: impl Fn(&Programs) -> bool) -> Phase {
    let (began, then, turns) = (programs.now, programs.work, programs.source_turns());
    let memory = measure(|| {
        while !holds(programs) {
            assert!(programs.now < began + 60 * SECOND, "not {what}");
            programs.run_until(programs.now + MILLISECOND);
        }
    });
    let (took, work) = (programs.now - began, programs.work.since(&then));
    let (kept, most) = (memory.bytes_current / 1_024, memory.bytes_max / 1_024);
    let busiest = most_turns(programs, &turns, None);
    println!("{what} after {} ms: {work:?}, {kept} KiB kept, {most} at once", took / MILLISECOND);
    println!("{busiest} duty cycles of one source at most");
    Phase { took, work, busiest, memory }
}

/// A host whose programs have started, and resolved all their topics.
fn joined(shape: Shape) -> Programs {
    let mut started = None;
    let memory = measure(|| started = Some(Programs::new(shape, 7)));
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
    storm.check_turns(shape, 8);
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
    read.check_turns(shape, 8);

    for most in [4_096, 128] {
        let end = programs.now + 5 * SECOND;
        let idle = phase(&mut programs, "idle", |it| it.now >= end);
        // Ten Status a second, and as many heartbeats beside the answers to them.
        let Work { control, receivers, data, .. } = idle.work;
        assert!(control <= 110 * sources && receivers <= 60 * sources && data == 0, "{idle:?}");
        // Resolvers learn of each other at first, and of nothing more after that.
        assert!(kept(&idle) <= most * sources, "{idle:?}");
        // One for each frame that is sent, or heard.
        idle.check_turns(shape, 170);
    }

    programs.is_cut = true;
    let alone = phase(&mut programs, "given up", Programs::all_apart);
    alone.check_turns(shape, 20);
    programs.is_cut = false;
    let back = phase(&mut programs, "joined again", Programs::all_joined);
    assert!(back.took <= 15 * SECOND, "{back:?}");
    assert!(back.work.receivers <= 6 * sources && back.work.naks == 0, "{back:?}");
    assert!(back.work.data == 0 && kept(&back) <= SESSION_BYTES * sources, "{back:?}");
    back.check_turns(shape, 12);
}

#[test]
fn a_receiver_that_asks_for_everything_again_costs_its_source_alone() {
    const ROUNDS: u64 = 100;
    let shape = shape();
    let (sources, mut programs) = (shape.all_sources() as u64, joined(shape));
    programs.lossy = Some(0);
    let (then, turns) = (programs.work, programs.source_turns());
    for round in 1..=ROUNDS {
        (0..shape.all_sources()).for_each(|source| programs.publish(source));
        programs.run_until(programs.now + MILLISECOND);
        // The others read each round within its millisecond.
        assert!(programs.all_read(round, Some(0)), "round {round}");
    }
    // Five for each round: its publication, and the heartbeats until the next one.
    let others = most_turns(&programs, &turns, Some(programs.source_of(0)));
    assert!(others <= 5 * ROUNDS, "{others} duty cycles of a source whose receiver loses nothing");
    phase(&mut programs, "read by the last", |it| it.all_read(ROUNDS, None));
    // It has NAKs to answer beside its heartbeats, and its timers for repairs.
    let asked = most_turns(&programs, &turns, None);
    assert!(asked <= 8 * ROUNDS, "{asked} duty cycles of the source that is asked again");
    println!("{others} and {asked} duty cycles of one source");
    let work = programs.work.since(&then);
    // A tenth comes through, of repairs as well.
    assert!(work.repairs > ROUNDS && work.repairs <= 20 * ROUNDS, "{work:?}");
    assert!(work.naks <= 10 * ROUNDS, "{work:?}");
    assert!(work.data <= ROUNDS * sources + work.repairs, "{work:?}");
}
