//! The publisher's events and reports: which receivers came, went, why, and what they had read.

use super::*;
use lanecast_transport::{DepartureReason, PublisherEvent};

/// Polls: id of the subscriber, and reason of its departure; `(0, None)` for room.
fn events(sender: &mut Sender) -> Vec<(u64, Option<DepartureReason>)> {
    let mut events = Vec::new();
    sender.subscribers().poll_events(|event| {
        events.push(match event {
            PublisherEvent::SubscriberJoined(info) => (info.id.0, None),
            PublisherEvent::SubscriberLeft(info, reason) => (info.id.0, Some(reason)),
            _ => (0, None),
        });
    });
    events
}

#[test]
fn receivers_are_told_by_topic_address_and_reason() {
    let mut sender = sender(settings(Distribution::Unicast));
    let_in(&mut sender, 1, 7, 0, &["unknown"]);
    assert_eq!(events(&mut sender), [], "it subscribes to no topic of the session");
    sender.add_topic("unknown").expect("room");
    let mut addresses = Vec::new();
    sender.subscribers().poll_events(|event| {
        if let PublisherEvent::SubscriberJoined(info) = event {
            addresses.push(info.address.clone());
        }
    });
    assert_eq!(addresses, [address(7).to_string()]);
    let_in(&mut sender, 1, 8, 0, &["a"]);
    hear(&mut sender, 2, address(7), &leave(7));
    (0..=8).for_each(|quarters| sender.on_time(quarters * SECOND / 4));
    let (left, timed_out) = (Some(DepartureReason::Left), Some(DepartureReason::TimedOut));
    assert_eq!(events(&mut sender), [(1, left), (2, None), (2, timed_out)]);
    assert_eq!(events(&mut sender), []);
}

#[test]
fn an_ejected_receiver_is_evicted_and_a_replaced_one_has_died() {
    let mut settings = settings(Distribution::Unicast);
    settings.pacing = Pacing::SlowestOrEject(200 * MILLISECOND);
    let mut sender = sender(settings);
    let_in(&mut sender, 1, 1, 0, &["a"]);
    // Another process at the same address.
    let from = address(1);
    hear(&mut sender, 1, from, &join(5, 0, 0, 0, &["a"]));
    let answers = sent(&mut sender, 1);
    let (frame, _) = Frame::split(&answers.last().expect("a challenge").1).expect("a frame");
    let (challenge, _) = ChallengeBody::split(frame.body).expect("a body");
    hear(&mut sender, 1, from, &join(5, challenge.cookie.get(), 0, 0, &["a"]));
    let died = Some(DepartureReason::Died);
    assert_eq!(events(&mut sender), [(1, None), (1, died), (2, None)]);
    while sender.stage(0, 1_000).is_ok() {
        sender.publish();
        sender.flush();
    }
    for step in 1..=4 {
        sender.on_time(step * SECOND / 8);
    }
    let evicted = Some(DepartureReason::Evicted);
    assert_eq!(events(&mut sender), [(2, evicted), (0, None)], "which makes room, too");
    let report = sender.subscribers().completion();
    assert!(!report.is_complete() && !report.timed_out(), "{report}");
}

#[test]
fn room_is_told_once_for_a_refused_message() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    assert_eq!(events(&mut sender).len(), 1);
    let mut end = start;
    while sender.stage(0, 1_000).is_ok() {
        sender.publish();
        sender.flush();
        end = end.wrapping_add(1);
    }
    assert_eq!(events(&mut sender), [], "nothing is read");
    sent(&mut sender, 1);
    hear(&mut sender, 1, address(1), &status(1, end, end.wrapping_add(64)));
    assert_eq!(events(&mut sender), [(0, None)]);
    assert_eq!(events(&mut sender), []);
    publish(&mut sender, 0, 1_000);
}

#[test]
fn a_report_tells_how_far_each_receiver_is() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    publish(&mut sender, 0, 100);
    publish(&mut sender, 0, 100);
    let end = start.wrapping_add(2);
    hear(&mut sender, 2, address(1), &status(1, end, end.wrapping_add(64)));
    let report = sender.subscribers().completion();
    let [behind] = report.incomplete() else { panic!("one is behind: {report}") };
    let IncompleteReason::Behind { bytes, .. } = behind.reason else { panic!("{report}") };
    assert!((200..400).contains(&bytes) && report.complete() == 1, "{report}");
    assert_eq!(behind.subscriber.address, address(2).to_string());
    // Both leave: one having read everything, the other after the first datagram.
    hear(&mut sender, 2, address(1), &leave(1));
    hear(&mut sender, 2, address(2), &leave(2));
    let report = sender.subscribers().completion();
    let [early] = report.incomplete() else { panic!("one left early: {report}") };
    assert!(early.has_left() && report.is_complete() && report.complete() == 1, "{report}");
}

#[test]
fn the_last_progress_of_a_receiver_comes_with_its_leave() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    hear(&mut sender, 1, address(1), &status(1, start, start.wrapping_add(64)));
    publish(&mut sender, 0, 100);
    let last = written((Kind::Leave, 0), start.wrapping_add(1), |writer| {
        assert!(writer.add(&LeaveBody { receiver: 1.into() }));
    });
    hear(&mut sender, 2, address(1), &last);
    let report = sender.subscribers().completion();
    assert_eq!((report.complete(), report.incomplete().len()), (1, 0), "{report}");
}

/// A receiver that has only uncounted messages to read has read everything, before and after it
/// leaves; one that has a message to read before them has not.
#[test]
fn uncounted_messages_leave_nothing_to_read() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    // The last one is in the open datagram, which ends before an uncounted one.
    sender.stage(0, 100).expect("room").fill(0);
    sender.publish();
    let send_uncounted = |sender: &mut Sender| {
        sender.flush();
        sender.stage(0, 20).expect("room").fill(0);
        assert_eq!(sender.publish_uncounted(), 1);
    };
    send_uncounted(&mut sender);
    send_uncounted(&mut sender);
    let read = start.wrapping_add(1);
    hear(&mut sender, 2, address(1), &status(1, read, read.wrapping_add(64)));
    let complete = |sender: &mut Sender| {
        let report = sender.subscribers().completion();
        (report.complete(), report.timed_out())
    };
    assert_eq!((complete(&mut sender), sender.is_drained()), ((1, true), false));
    hear(&mut sender, 3, address(2), &status(2, read, read.wrapping_add(64)));
    assert_eq!((complete(&mut sender), sender.is_drained()), ((2, false), true));
    let last = written((Kind::Leave, 0), read, |writer| {
        assert!(writer.add(&LeaveBody { receiver: 2.into() }));
    });
    hear(&mut sender, 4, address(2), &last);
    send_uncounted(&mut sender);
    assert_eq!((complete(&mut sender), sender.is_drained()), ((2, false), true));
    publish(&mut sender, 0, 100);
    assert_eq!((complete(&mut sender), sender.is_drained()), ((0, true), false), "a message");
    let end = read.wrapping_add(4);
    hear(&mut sender, 5, address(1), &status(1, end, end.wrapping_add(64)));
    assert_eq!((complete(&mut sender), sender.is_drained()), ((1, false), true));
}
