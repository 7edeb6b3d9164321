//! Outages: receivers that were forgotten, connections that broke, a process that stood still.

use super::*;

#[test]
fn a_sender_that_stood_still_does_not_blame_its_receivers() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let_in(&mut sender, 1, 1, 0, &["a"]);
    sender.on_time(MILLISECOND);
    sender.on_time(10 * SECOND);
    assert_eq!(sender.receivers(), 1);
    sender.on_time(10 * SECOND + SECOND / 2);
    assert_eq!(sender.receivers(), 0, "it does not wait for ever");
}

#[test]
fn a_forgotten_receiver_is_not_let_in_for_some_of_its_topics_only() {
    let mut sender = sender(settings(Distribution::Stream));
    sender.connect(1, 1, address(9));
    let further = join(1, 0, flag::FURTHER, 0, &["b"]);
    let (frame, _) = Frame::split(&further).expect("a frame");
    sender.on_stream_frame(1, 1, &frame);
    let (answer, _) = Frame::split(sender.stream_bytes(2, 1)).expect("a frame");
    assert_eq!((answer.kind, answer.flags), (Kind::Eject, flag::STRANGER));
    assert_eq!(sender.receivers(), 0);
}

#[test]
fn topics_begin_anew_on_a_new_connection() {
    let mut sender = sender(settings(Distribution::Stream));
    let asks = join(1, 0, 0, 0, &["a"]);
    let (asks, _) = Frame::split(&asks).expect("a frame");
    sender.connect(1, 1, address(9));
    sender.on_stream_frame(1, 1, &asks);
    publish(&mut sender, 0, 10);
    // The Welcome never came through.
    sender.disconnect(1);
    sender.connect(2, 2, address(9));
    sender.on_stream_frame(2, 2, &asks);
    let (frame, _) = Frame::split(sender.stream_bytes(2, 2)).expect("a frame");
    let (_, rest) = WelcomeBody::split(frame.body).expect("a body");
    let told: Vec<_> = topics(rest).map(|(entry, _)| entry.message.get()).collect();
    assert_eq!((frame.kind, told), (Kind::Welcome, vec![1]));
}

#[test]
fn a_receiver_that_gave_up_what_it_was_not_sent_goes_on_at_the_end() {
    let mut settings = settings(Distribution::Unicast);
    settings.pacing = Pacing::Fastest;
    let mut sender = sender(settings);
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    // Neither may be sent more than two datagrams; the first reads all the time.
    for number in 0..200u64 {
        hear(&mut sender, 2, address(2), &status(2, start, start.wrapping_add(2)));
        let read = start.wrapping_add(number);
        hear(&mut sender, 2, address(1), &status(1, read, read.wrapping_add(2)));
        publish(&mut sender, 0, 1_000);
        sent(&mut sender, 2);
    }
    let end = start.wrapping_add(200);
    hear(&mut sender, 3, address(2), &status(2, end, end.wrapping_add(64)));
    assert_eq!(sender.counters().malformed, 0);
    publish(&mut sender, 0, 1_000);
    let sent = sent(&mut sender, 3);
    let got = of_kind(&sent, Kind::Data).iter().any(|(to, _, at)| (*to, *at) == (address(2), end));
    assert!(got, "it is sent to again");
    hear(&mut sender, 3, address(2), &status(2, end.wrapping_add(2), end.wrapping_add(64)));
    assert_eq!(sender.counters().malformed, 1, "unpublished data cannot be read");
}

#[test]
fn a_receiver_that_begins_behind_what_the_group_was_sent_is_heard() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let first = let_in(&mut sender, 1, 1, 0, &["a"]);
    (0..100).for_each(|_| publish(&mut sender, 0, 100));
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), 64, "the first reads nothing");
    let start = let_in(&mut sender, 1, 2, 0, &["a"]);
    assert_eq!(start, first.wrapping_add(100));
    let now = SECOND * 3 / 4;
    hear(&mut sender, now, address(1), &status(1, first, start));
    hear(&mut sender, now, address(2), &status(2, start, start.wrapping_add(64)));
    assert_eq!(sender.counters().malformed, 0);
    sender.on_time(SECOND / 2);
    sender.on_time(SECOND + SECOND / 4);
    assert_eq!(sender.receivers(), 2);
}

/// A receiver by connection 1 that has read `read` of two messages, and then falls silent.
fn silent(read: u64) -> (Sender, u64) {
    let mut sender = sender(settings(Distribution::Stream));
    let hear_on = |sender: &mut Sender, now, bytes: &[u8]| {
        let (frame, _) = Frame::split(bytes).expect("a frame");
        sender.on_stream_frame(now, 1, &frame);
    };
    sender.connect(1, 1, address(9));
    hear_on(&mut sender, 1, &join(1, 0, 0, 0, &["a"]));
    let start = sender.session.packetizer.visible();
    for _ in 0..2 {
        publish(&mut sender, 0, 10);
        let length = sender.stream_bytes(2, 1).len();
        sender.stream_written(2, 1, length);
    }
    while !sender.stream_bytes(2, 1).is_empty() {
        let length = sender.stream_bytes(2, 1).len();
        sender.stream_written(2, 1, length);
    }
    let read = start.wrapping_add(read);
    hear_on(&mut sender, 3, &status(1, read, read.wrapping_add(64)));
    assert_eq!((sender.receivers(), left_behind(&mut sender)), (1, 0));
    (0..=8).for_each(|quarters| sender.on_time(quarters * SECOND / 4));
    assert_eq!(sender.receivers(), 0);
    (sender, start)
}

#[test]
fn a_silent_receiver_is_left_behind_unless_it_has_read_everything() {
    let (mut sender, _) = silent(1);
    assert_eq!(left_behind(&mut sender), 1);
    let (mut sender, _) = silent(2);
    assert_eq!(left_behind(&mut sender), 0);
    publish(&mut sender, 0, 10);
    assert_eq!(left_behind(&mut sender), 1, "it has not read this one");
}

#[test]
fn a_returning_receiver_is_left_behind_only_if_it_missed_something() {
    for missed in [false, true] {
        let (mut sender, start) = silent(1);
        if missed {
            // No receiver is joined: it is counted, but not retained.
            publish(&mut sender, 0, 10);
        }
        sender.connect(3 * SECOND, 2, address(9));
        let back = join(1, 0, flag::RESUME, start.wrapping_add(1), &["a"]);
        let (frame, _) = Frame::split(&back).expect("a frame");
        sender.on_stream_frame(3 * SECOND, 2, &frame);
        assert_eq!((sender.receivers(), left_behind(&mut sender)), (1, usize::from(missed)));
    }
}

#[test]
fn a_leaver_is_not_left_behind_but_a_receiver_that_reports_loss_is() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    publish(&mut sender, 0, 10);
    let mut bytes = status(1, start, start.wrapping_add(64));
    hear(&mut sender, 2, address(1), &bytes);
    assert_eq!(left_behind(&mut sender), 0);
    // The field `lost`, behind the frame's header.
    bytes[24 + 36] = 3;
    (0..2).for_each(|_| hear(&mut sender, 2, address(1), &bytes));
    assert_eq!(left_behind(&mut sender), 1);
}
