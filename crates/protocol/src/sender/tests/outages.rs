//! Outages: receivers that were forgotten, connections that broke, a process that stood still.

use super::*;

#[test]
fn who_stood_still_does_not_blame_the_receivers() {
    let mut sender = sender(settings(Distribution::Group(group())));
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
    sender.connect(1, 1);
    let further = join(1, 0, flag::FURTHER, 0, &["b"]);
    let (frame, _) = Frame::split(&further).expect("a frame");
    sender.on_stream_frame(1, 1, &frame);
    let (answer, _) = Frame::split(sender.stream_bytes(1)).expect("a frame");
    assert_eq!((answer.kind, answer.flags), (Kind::Eject, flag::STRANGER));
    assert_eq!(sender.receivers(), 0);
}

#[test]
fn topics_begin_anew_on_a_new_connection() {
    let mut sender = sender(settings(Distribution::Stream));
    let asks = join(1, 0, 0, 0, &["a"]);
    let (asks, _) = Frame::split(&asks).expect("a frame");
    sender.connect(1, 1);
    sender.on_stream_frame(1, 1, &asks);
    publish(&mut sender, 0, 10);
    // The Welcome never came through.
    sender.disconnect(1);
    sender.connect(2, 2);
    sender.on_stream_frame(2, 2, &asks);
    let (frame, _) = Frame::split(sender.stream_bytes(2)).expect("a frame");
    let (_, rest) = WelcomeBody::split(frame.body).expect("a body");
    let told: Vec<_> = topics(rest).map(|(entry, _)| entry.message.get()).collect();
    assert_eq!((frame.kind, told), (Kind::Welcome, vec![1]));
}
