//! Room in a selection of topics, handed over between the threads that make some and the subscriber
//! that sleeps until there is some for topics that were refused.
//!
//! [`AwaitedRoom`] and [`TopicSelection`] are those of products. The subscriber's loop looks as
//! `Subscriber::poll` and `Subscriber::sleep` do, and sleeps on the signal alone: a room that wakes
//! no sleeper is a deadlock.

use super::check_sleep;
use crate::awaited_room::AwaitedRoom;
use crate::wake_signal::WakeSignal;
use lanecast_base::sync::Mutex;
use lanecast_os::futex;
use lanecast_transport::{AdmittedTopics, TopicPattern, TopicSelection};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;

/// A subscriber's selection with room for one topic, which another session takes.
struct Model {
    topics: TopicSelection,
    signal: Arc<WakeSignal>,
    room: Arc<AwaitedRoom>,
}

impl Model {
    fn new() -> (Self, AdmittedTopics) {
        let pattern = TopicPattern::wildcard("a.*").unwrap();
        let topics = TopicSelection::of_patterns(vec![pattern], 1);
        let signal = Arc::default();
        let room = AwaitedRoom::new(&topics, &signal);
        let mut admitted = topics.admission();
        assert!(admitted.admit("a.1"));
        (Self { topics, signal, room }, admitted)
    }

    /// Polls and sleeps until `join` has joined what waits for room.
    fn run_until_joined(&self, mut join: impl FnMut() -> bool) {
        loop {
            let seen_epoch = self.signal.epoch();
            if self.room.is_there() {
                self.room.withdraw();
                if join() {
                    return;
                }
            }
            self.sleep(seen_epoch);
        }
    }

    /// As `Subscriber::sleep`.
    fn sleep(&self, seen_epoch: u32) {
        if self.room.may_sleep(seen_epoch) {
            futex::wait_any(&[(self.signal.word(), seen_epoch)], Duration::MAX);
        }
    }

    /// A topic of a joined session, that the session's image keeps while it is refused.
    fn join_topic(&self) {
        let mut wanted = self.topics.admission();
        // As `StreamTable::note_topics` and `StreamTable::admit_refused`.
        let mut join = || {
            let is_admitted = wanted.admit("a.2");
            if !is_admitted {
                self.room.request();
            }
            is_admitted
        };
        if !join() {
            self.run_until_joined(join);
        }
    }
}

#[test]
fn a_sleeping_subscriber_is_woken_by_room() {
    check_sleep(|| {
        let (model, admitted) = Model::new();
        let ended = thread::spawn(move || drop(admitted));
        model.join_topic();
        ended.join().unwrap();
    });
}

#[test]
fn room_that_is_taken_meanwhile_wakes_when_it_is_made_again() {
    check_sleep(|| {
        let (model, admitted) = Model::new();
        let topics = model.topics.clone();
        let others = thread::spawn(move || {
            drop(admitted);
            let _ = topics.admission().admit("a.3");
        });
        model.join_topic();
        others.join().unwrap();
    });
}

/// A session that another thread opens, and that is not joined for want of room: the in-process
/// registry keeps it for the subscriber.
#[test]
fn a_session_that_other_threads_refuse_is_joined_when_there_is_room() {
    check_sleep(|| {
        let (model, admitted) = Model::new();
        let model = Arc::new(model);
        // The registry's record of a session that waits, under its lock: `None` before it opens.
        let is_pending = Arc::new(Mutex::new(None));
        // As `Member::join`; a joined session wakes too, as by `Subscription::push`.
        let join = |model: &Model, is_pending: &mut Option<bool>| {
            if model.topics.takes("a.2") {
                *is_pending = Some(false);
                return model.signal.wake();
            }
            if is_pending.replace(true) != Some(true) {
                model.topics.refuse();
            }
            model.room.request_for_subscriber();
        };
        let opener = thread::spawn({
            let (model, is_pending) = (Arc::clone(&model), Arc::clone(&is_pending));
            move || join(&model, &mut is_pending.lock().unwrap())
        });
        let ended = thread::spawn(move || drop(admitted));
        // As `Subscriber::join_awaited` and `LocalDomain::retry`.
        loop {
            let seen_epoch = model.signal.epoch();
            if model.room.is_there() {
                model.room.withdraw();
                let mut is_pending = is_pending.lock().unwrap();
                if *is_pending == Some(true) {
                    join(&model, &mut is_pending);
                }
            }
            if *is_pending.lock().unwrap() == Some(false) {
                break;
            }
            model.sleep(seen_epoch);
        }
        opener.join().unwrap();
        ended.join().unwrap();
    });
}
