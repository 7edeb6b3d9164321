//! Runs that are held while a process dies, or is evicted.

use super::child::Child;
use super::ledger::{Account, Ledger, fill, message};
use super::{PATIENCE, Scene, until};
use lanecast_shm::SlowConsumerPolicy;
use lanecast_transport::{ClaimError, CloseReason, Event, Publish, Run, Subscribe, Transport};
use std::time::Duration;

#[test]
fn a_subscriber_killed_with_a_run_in_hand_frees_the_publisher() {
    let scene = Scene::new();
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    for _ in 0..10 {
        let mut holder = Child::start(&scene.path(), "run_holder");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        let mut number = 0;
        fill(&mut publisher, &mut number);
        assert!(holder.tells_number("held") > 0);
        assert_eq!(holder.tells("whole"), "true");
        fill(&mut publisher, &mut number);
        let refused = publisher.try_send(&message(number));
        assert!(matches!(refused, Err(ClaimError::BackPressured(_))), "the run gates it");
        holder.kill();
        publisher.send(&message(number)).expect("room");
        until("the place to be free", || publisher.subscribers() == 0);
    }
    assert_eq!(scene.session().expect("the session").evictions, 0, "the dead are no evictions");
}

#[test]
fn a_held_run_outlives_its_publisher() {
    let scene = Scene::new();
    let mut subscriber = scene.domain().subscriber(&["t"]).expect("a subscriber");
    for _ in 0..10 {
        let mut publisher = Child::start(&scene.path(), "publisher subscribers=1");
        let session = publisher.tells_number("session");
        let account = kill_behind_a_held_run(&mut subscriber, &mut publisher, session, || ());
        assert_eq!((account.left, account.lost), (Some(CloseReason::Died), false));
    }
}

/// Reads `session` to its end by runs, of which one is held while the publisher is killed, and
/// `held` called; what it holds is checked afterwards.
pub(super) fn kill_behind_a_held_run(
    subscriber: &mut impl Subscribe,
    publisher: &mut Child,
    session: u64,
    held: impl Fn(),
) -> Account {
    let mut ledger = Ledger::default();
    let mut is_killed = false;
    until("the end of the stream", || {
        let run = subscriber.take(50);
        let events: Vec<Event<'_>> = run.iter().collect();
        let is_message = matches!(events.first(), Some(Event::Message(_)));
        if is_message && !is_killed && ledger.account(session).is_some_and(|it| it.next > 200) {
            // Waits for the process: of its memory only this one's is left from here on.
            publisher.kill();
            is_killed = true;
            held();
        }
        events.iter().for_each(|event| ledger.enter(event).expect("in order, whole, once"));
        let work = events.len();
        drop(run);
        subscriber.wait(work);
        ledger.account(session).is_some_and(|account| account.left.is_some())
    });
    assert!(is_killed, "the stream ended before");
    ledger.account(session).expect("it had joined").clone()
}

#[test]
fn a_run_in_hand_stays_whole_through_an_eviction() {
    let mut scene = Scene::new();
    scene.slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(150));
    let mut publisher = scene.domain().publisher("t").expect("a publisher");
    let mut holder = Child::start(&scene.path(), "run_holder");
    assert!(publisher.wait_for_subscribers(1, PATIENCE));
    publisher.send(&message(0)).expect("room");
    assert!(holder.tells_number("held") > 0);
    assert_eq!(holder.tells("whole"), "true");
    // More than a window: where the messages stood in the ring is written over.
    (1..500).for_each(|number| publisher.send(&message(number)).expect("room"));
    assert_eq!(scene.session().expect("the session").evictions, 1);
    holder.say("go on");
    assert_eq!(holder.tells("intact"), "true");
    assert_eq!(holder.tells("after"), "lost,left");
    holder.ends();
}
