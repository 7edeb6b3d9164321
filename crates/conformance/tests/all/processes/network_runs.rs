//! Runs that are held while a process dies, or is evicted, over each transport between hosts.

use super::child::Child;
use super::ledger::{Ledger, fill, message};
use super::network::Loopback;
use super::runs::kill_behind_a_held_run;
use super::witness::Witness;
use super::{PATIENCE, until};
use lanecast_net::{Pacing, TransportKind};
use lanecast_transport::{
    ClaimError, CloseReason, DepartureReason, Event, Publish, PublisherEvent, Run, Subscribe,
    Transport,
};
use std::time::Duration;

/// The longest that a publisher waits for a subscriber without progress, where it evicts.
const PATIENCE_WITH_STALLED: Duration = Duration::from_millis(300);

/// Time in which a publisher may learn what was read meanwhile.
const A_MOMENT: Duration = Duration::from_millis(10);

/// Runs `case` over all transports at once: each of them waits most of the time, for the silence
/// that counts as a death.
fn over_all_transports(case: fn(TransportKind)) {
    std::thread::scope(|scope| {
        TransportKind::ALL.into_iter().for_each(|kind| _ = scope.spawn(move || case(kind)));
    });
}

/// Waits until the publisher is told that a subscriber is gone; why.
fn departure(publisher: &mut impl Publish) -> DepartureReason {
    let mut reason = None;
    until("a departure to be told", || {
        publisher.poll_events(|event| {
            if let PublisherEvent::SubscriberLeft(_, why) = event {
                assert_eq!(reason.replace(why), None, "one is gone");
            }
        });
        reason.is_some()
    });
    reason.expect("told")
}

/// Two subscribers hold runs, and a third one has read everything: one of the two is killed, and
/// the others go on.
fn a_holder_is_killed(kind: TransportKind) {
    let loopback = Loopback::new(kind);
    let transport = loopback.open();
    let witness = Witness::new(&transport);
    let mut publisher = transport.publisher("t").expect("a publisher");
    let session = publisher.session().0;
    let [mut dying, mut living] =
        [(); 2].map(|()| Child::start_over(&loopback.words(), "run_holder"));
    assert!(publisher.wait_for_subscribers(3, PATIENCE), "{kind}: all join");
    let mut number = 0;
    fill(&mut publisher, &mut number);
    for holder in [&mut dying, &mut living] {
        assert!(holder.tells_number("held") > 0);
        assert_eq!(holder.tells("whole"), "true");
    }
    until("nothing but the runs to be unread, and no room", || {
        let report = publisher.drain(A_MOMENT);
        let before = number;
        fill(&mut publisher, &mut number);
        (report.complete(), report.incomplete().len(), number) == (1, 2, before)
    });
    dying.kill();
    let why = departure(&mut publisher);
    assert!(matches!(why, DepartureReason::Died | DepartureReason::TimedOut), "{kind}: {why}");
    let refused = publisher.try_send(&message(number));
    assert!(matches!(refused, Err(ClaimError::BackPressured(_))), "{kind}: the other run gates it");
    living.say("go on");
    assert_eq!(living.tells("intact"), "true", "{kind}");
    // Several windows: the dead one holds up nothing.
    for _ in 0..500 {
        publisher.send(&message(number)).expect("room");
        number += 1;
    }
    let report = publisher.close(PATIENCE);
    assert!(!report.timed_out(), "{kind}: {report}");
    assert_eq!((report.complete(), report.incomplete().len()), (2, 1), "{kind}: {report}");
    assert_eq!(living.tells("after"), "left", "{kind}: without a loss");
    living.ends();
    until("the end to be told", || witness.end(session).is_some());
    assert_eq!(witness.end(session), Some((0, number, CloseReason::Closed)), "{kind}");
}

#[test]
fn a_subscriber_killed_with_a_run_in_hand_frees_the_publisher_between_hosts() {
    over_all_transports(a_holder_is_killed);
}

/// A publisher is killed while a run of its messages is held: the run is whole for as long as it
/// lasts, and another subscriber is told of the death meanwhile.
fn a_publisher_is_killed(kind: TransportKind) {
    let loopback = Loopback::new(kind);
    let transport = loopback.open();
    let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
    let witness = Witness::new(&transport);
    let mut publisher = Child::start_over(&loopback.words(), "publisher subscribers=2");
    let session = publisher.tells_number("session");
    let account = kill_behind_a_held_run(&mut subscriber, &mut publisher, session, || {
        until("the other one to be told", || witness.end(session).is_some());
    });
    assert!(!account.lost, "{kind}: {account:?}");
    assert_eq!((account.first, account.left), (Some(0), Some(CloseReason::Died)), "{kind}");
    let (first, next, why) = witness.end(session).expect("told");
    assert_eq!((first, why), (0, CloseReason::Died), "{kind}");
    assert!(next > 200, "{kind}: {next}");
}

#[test]
fn a_held_run_outlives_its_publisher_between_hosts() {
    over_all_transports(a_publisher_is_killed);
}

/// A run that is held too long counts as stalled: its holder is evicted. What it holds stays whole,
/// and the end of the stream is told after it.
fn a_holder_is_evicted(kind: TransportKind) {
    let transport = Loopback::new(kind).open_with(Pacing::SlowestOrEject(PATIENCE_WITH_STALLED));
    let mut subscriber = transport.subscriber(&["t"]).expect("a subscriber");
    let mut publisher = transport.publisher("t").expect("a publisher");
    let session = publisher.session().0;
    assert!(publisher.wait_for_subscribers(1, PATIENCE), "{kind}: it joins");
    (0..20).for_each(|number| publisher.send(&message(number)).expect("room"));
    let (mut ledger, mut is_evicted) = (Ledger::default(), false);
    until("the end of the stream", || {
        let run = subscriber.take(50);
        let events: Vec<Event<'_>> = run.iter().collect();
        if !is_evicted && events.iter().any(|event| matches!(event, Event::Message(_))) {
            // Several windows: there is room once the holder is evicted.
            (20..500).for_each(|number| publisher.send(&message(number)).expect("room"));
            assert_eq!(departure(&mut publisher), DepartureReason::Evicted, "{kind}");
            is_evicted = true;
        }
        let is_over = |ledger: &Ledger| ledger.account(session).is_some_and(|it| it.left.is_some());
        for event in &events {
            if !is_over(&ledger) {
                ledger.enter(event).expect("in order, whole, once");
            }
        }
        let work = events.len();
        drop(run);
        subscriber.wait(work);
        is_over(&ledger)
    });
    let account = ledger.account(session).expect("it had joined");
    assert_eq!((account.first, account.left), (Some(0), Some(CloseReason::Evicted)), "{kind}");
    assert!(account.next >= 20, "{kind}: what came before the eviction is read: {account:?}");
}

#[test]
fn a_run_in_hand_stays_whole_through_an_eviction_between_hosts() {
    over_all_transports(a_holder_is_evicted);
}
