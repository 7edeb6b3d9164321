//! Ends processes at random instructions, some two hundred times; the survivors account for
//! every message.
//!
//! The moments follow from a seed, printed on failure; `SEED` sets it.

use super::child::{Child, delay};
use super::ledger::message;
use super::witness::Witness;
use super::{PATIENCE, Scene, until};
use lanecast_base::sync::{AtomicBool, AtomicU64, Ordering};
use lanecast_shm::inspect;
use lanecast_transport::{CloseReason, Publish, Transport};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

const SUBSCRIBER_KILLS: u64 = 120;
const PUBLISHER_KILLS: u64 = 100;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn new() -> Self {
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
        let seed: u64 =
            seed.unwrap_or_else(|| clock().map_or(1, |time| time.as_nanos() as u64)) | 1;
        println!("SEED={seed}");
        Self(seed)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// A moment of 0 to 3 ms, passed on a busy core.
    fn moment(&mut self) {
        delay(Duration::from_nanos(self.below(3_000_000)));
    }
}

#[test]
fn subscribers_die_at_any_instruction_and_nothing_is_missed() {
    let mut dice = Dice::new();
    let scene = Scene::new();
    let domain = scene.domain();
    let witness = Witness::new(&domain);
    let mut publisher = domain.publisher("t").expect("a publisher");
    let session = publisher.session().0;
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    let (sent, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (count, stopped) = (Arc::clone(&sent), Arc::clone(&stop));
    let writer = thread::spawn(move || {
        for number in 0.. {
            if stopped.load(Ordering::Relaxed) {
                break;
            }
            publisher.send(&message(number)).expect("room");
            count.store(number + 1, Ordering::Relaxed);
        }
        assert!(!publisher.close(PATIENCE).timed_out(), "the living have read everything");
    });
    for round in 0..SUBSCRIBER_KILLS {
        // Killed while starting and joining, while reading, or while the publisher is blocked.
        // By turns in a poll, or in a take, with a run in hand, or as that is dropped.
        let (read, runs) = (if round % 3 == 2 { 3 } else { 0 }, round / 3 % 2);
        let part = format!("subscriber read={read} runs={runs}");
        let mut victim = Child::start(&scene.path(), &part);
        victim.tells(if round % 3 == 0 { "began" } else { "joined" });
        dice.moment();
        victim.kill();
        let before = sent.load(Ordering::Relaxed);
        until("the publisher to go on", || sent.load(Ordering::Relaxed) > before + 200);
    }
    stop.store(true, Ordering::Relaxed);
    writer.join().expect("the writer");
    until("the farewell", || witness.end(session).is_some());
    let all = sent.load(Ordering::Relaxed);
    assert_eq!(witness.end(session), Some((0, all, CloseReason::Closed)), "every message, once");
    println!("{SUBSCRIBER_KILLS} subscribers killed, {all} messages accounted for");
}

#[test]
fn publishers_die_at_any_instruction_and_all_see_the_same() {
    let mut dice = Dice::new();
    let scene = Scene::new();
    let (domain, other) = (scene.domain(), scene.domain());
    let witnesses = [Witness::new(&domain), Witness::new(&other)];
    let mut all = 0;
    for round in 0..PUBLISHER_KILLS {
        // Killed while starting, while waiting for subscribers, while publishing, or while
        // blocked by a subscriber that does not read.
        let blocked = round % 4 == 3;
        let slow_part = format!("subscriber read=3 runs={}", round / 4 % 2);
        let slow_consumer = blocked.then(|| Child::start(&scene.path(), &slow_part));
        let part = if blocked { "publisher subscribers=3" } else { "publisher subscribers=2" };
        let mut victim = Child::start(&scene.path(), part);
        let session = match round % 4 {
            0 => {
                victim.tells("began");
                None
            }
            1 => Some(victim.tells_number("session")),
            _ => {
                let session = victim.tells_number("session");
                victim.tells("publishing");
                Some(session)
            }
        };
        dice.moment();
        victim.kill();
        if let Some(session) = session {
            all += check_end(&scene, &witnesses, session, round % 4 != 1);
        }
        drop(slow_consumer);
    }
    until("the last files to be reclaimed", || {
        drop(scene.domain());
        inspect(&scene.path()).expect("the directory").is_empty()
    });
    until("every end to be told", || witnesses.iter().all(Witness::is_done));
    println!("{PUBLISHER_KILLS} publishers killed, {all} messages accounted for");
}

/// Both witnesses were told the same; returns how many messages there were.
fn check_end(scene: &Scene, witnesses: &[Witness; 2], session: u64, all_had_joined: bool) -> u64 {
    let gone = || {
        let sessions = inspect(&scene.path()).expect("the directory");
        !sessions.iter().flatten().any(|report| report.session == session && report.is_alive)
    };
    // A publisher killed before all had joined may never be seen by some.
    until("its end to be told", || {
        let told = witnesses.iter().filter(|witness| witness.end(session).is_some()).count();
        told == 2 || (!all_had_joined && gone())
    });
    let ends = [witnesses[0].end(session), witnesses[1].end(session)];
    if all_had_joined {
        let (first, next, why) = ends[0].expect("told");
        assert_eq!((first, why), (0, CloseReason::Died));
        assert_eq!(ends[0], ends[1], "both were told the same");
        return next;
    }
    assert!(ends.into_iter().flatten().all(|(_, _, why)| why == CloseReason::Died));
    0
}
