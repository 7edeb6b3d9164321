//! Topics by pattern: hundreds of each source are found in many frames, while the first ones are
//! being joined. All have to join soon, also where the first Query, its answers or anything else
//! is lost, and for few frames.

use crate::programs::{Programs, Shape};
use crate::seeds::seeds;
use lanecast_protocol::{MICROSECOND, MILLISECOND, Nanos, SECOND};
use lanecast_wire::net::Kind;

/// Time in which all topics join, unless anything may be lost.
const LIMIT: Nanos = 1_500 * MILLISECOND;
/// Time after which publishers advertise seldom, so that Queries find their topics.
const QUIET: Nanos = 2_150 * MILLISECOND;
/// Names that fit in a Join at least.
const JOIN_NAMES: usize = 60;

fn shape() -> Shape {
    let topics = if std::env::var_os("LONG_TESTS").is_some() { 1_000 } else { 250 };
    // Each program has one source, whose topics another program's receiver joins.
    Shape { programs: 4, sources: 1, topics, has_pattern: true }
}

/// Lets everything join, within the time; returns the time and the frames of receivers it took.
fn join(programs: &mut Programs, limit: Nanos, what: &str) -> (Nanos, u64) {
    let (began, then) = (programs.now, programs.work);
    programs.look();
    while !programs.have_joined() {
        let took = (programs.now - began) / MILLISECOND;
        assert!(programs.now < began + limit, "{what}: not all have joined after {took} ms");
        programs.run_until(programs.now + MILLISECOND);
    }
    (programs.now - began, programs.work.since(&then).receivers)
}

/// Every topic has joined once, and hears what is published.
fn check_all_hear(programs: &mut Programs, what: &str) {
    (0..programs.shape.all_sources()).for_each(|source| programs.publish(source));
    let end = programs.now + 5 * SECOND;
    while !programs.all_read(1, None) {
        assert!(programs.now < end, "{what}: a topic is deaf");
        programs.run_until(programs.now + MILLISECOND);
    }
}

#[test]
fn all_topics_of_a_pattern_join_soon_whatever_is_lost_at_first() {
    let shape = shape();
    let joins = (shape.topics.div_ceil(JOIN_NAMES) * shape.all_sources()) as u64;
    for seed in seeds(0..12) {
        for (lost, time) in [
            (None, 0),
            (Some(Kind::Query), 50),
            (Some(Kind::Advert), 90),
            (Some(Kind::Join), 10),
            (Some(Kind::Welcome), 30),
        ] {
            let what = format!("SEED={seed}, {lost:?} lost");
            let mut programs = Programs::new(shape, seed);
            programs.run_until(programs.now + QUIET);
            programs.lost = lost.map(|kind| (kind, programs.now + time * MILLISECOND));
            let (took, frames) = join(&mut programs, LIMIT, &what);
            // Each name is asked for once, and twice where Joins or answers are lost; a Join with
            // a cookie more, and a Status for each Welcome.
            let most = 2 * joins + 8 * shape.all_sources() as u64;
            assert!(frames <= most, "{what}: {frames} frames, {most} at most");
            assert!(lost.is_some() || took <= 10 * MILLISECOND, "{what}: {took} ns");
            check_all_hear(&mut programs, &what);
        }
    }
}

#[test]
fn all_topics_of_a_pattern_join_where_anything_may_be_lost() {
    for seed in seeds(0..12) {
        for loss in [10, 100] {
            let what = format!("SEED={seed}, {loss} of 1,000 lost");
            let mut programs = Programs::new(shape(), seed);
            programs.run_until(programs.now + QUIET);
            programs.loss = loss;
            let limit = if loss < 50 { LIMIT } else { 4 * SECOND };
            join(&mut programs, limit, &what);
            check_all_hear(&mut programs, &what);
        }
    }
}

/// Found at the rate of resolvers, for tens of milliseconds, by programs that share few CPUs and
/// hear frames late: while some topics are found, others are asked for, and the answers to those
/// before are under way.
#[test]
fn thousands_of_topics_of_a_pattern_join_as_soon_as_they_are_found() {
    let shape = Shape { programs: 2, sources: 3, topics: 1_000, has_pattern: true };
    for seed in seeds(0..2) {
        for jitter in [300 * MICROSECOND, 3 * MILLISECOND, 15 * MILLISECOND] {
            let what = format!("SEED={seed}, up to {jitter} ns late");
            let mut programs = Programs::new(shape, seed);
            programs.run_until(programs.now + QUIET);
            programs.jitter = jitter;
            let (took, frames) = join(&mut programs, LIMIT, &what);
            assert!(took <= LIMIT / 3, "{what}: {took} ns");
            let most = (4 * shape.topics.div_ceil(JOIN_NAMES) + 8) * shape.all_sources();
            assert!(frames <= most as u64, "{what}: {frames} frames, {most} at most");
            check_all_hear(&mut programs, &what);
        }
    }
}
