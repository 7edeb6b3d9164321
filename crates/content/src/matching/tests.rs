//! The session of matching messages over real transports, without the session of all messages.

use super::*;
use crate::Subscriber;
use lanecast::Context;
use std::time::{Duration, Instant};

/// Serves and polls until `done` of the events so far: messages by their number, losses.
fn listen(
    matching: &mut Matching<Context>,
    subscriber: &mut Subscriber<Context>,
    (seen, active): (&mut Vec<std::ops::Range<u64>>, usize),
    done: impl Fn(&[std::ops::Range<u64>]) -> bool,
) {
    let start = Instant::now();
    while subscriber.active_streams() != active || !done(seen) {
        assert!(start.elapsed() < Duration::from_secs(60), "{seen:?}");
        matching.serve();
        subscriber.poll(64, |event| match event {
            Event::Message(message) => seen.push(message.number()..message.number() + 1),
            Event::Lost(gap) => seen.push(gap.first..gap.first + gap.count),
            _ => {}
        });
    }
}

/// Frames that the session has no room for, as no claim checked it, are a loss that subscribers
/// are told of.
#[test]
fn refused_frames_are_a_told_loss() {
    let settings = [("transports", "shm"), ("shm.visibility", "process")];
    let settings = settings.into_iter().chain([("shm.window", "64KiB")]);
    let builder = settings.fold(Context::builder(), |builder, (key, value)| {
        builder.set(key, value).expect("a setting")
    });
    let context = builder.build().expect("a context");
    let settings = || ContentSettings::new(lanecast_filter::message_type::MessageType::Fix);
    let mut matching = Matching::new(&context, "t", settings()).expect("a session");
    let opened = Subscriber::new(&context, "t", "/38 = 1", &settings());
    let mut subscriber = opened.expect("a subscriber");
    let mut seen = Vec::new();
    listen(&mut matching, &mut subscriber, (&mut seen, 1), |_| true);
    let body = [b"38=1\x0158=".as_slice(), &[b'x'; 4_000], b"\x01"].concat();
    let mut next = 0;
    for round in 1..4 {
        let (mut frames, mut lengths) = (Vec::new(), Vec::new());
        (0..40).for_each(|at| matching.collect(at, &body, &mut frames, &mut lengths));
        assert_eq!(lengths.len(), 40, "all match");
        let unpublished = matching.unpublished();
        matching.publish_batch(40, &frames, &lengths);
        let lost = matching.unpublished() - unpublished;
        assert!((1..40).contains(&lost), "40 are more than a window: {lost}");
        next += 40;
        listen(&mut matching, &mut subscriber, (&mut seen, 1), |seen| {
            seen.last().is_some_and(|last| last.end == next)
        });
        assert!(seen.iter().map(|it| it.start).eq(starts(&seen)), "{seen:?}");
        assert_eq!(seen.last().map(|last| last.end - last.start), Some(lost), "{seen:?}");
        assert_eq!(matching.filters(), 1, "active again, in round {round}");
    }
}

/// The room of a batch stays when the open datagram is sent, and is enough for datagrams that
/// are padded.
fn the_room_of_a_batch_stays(transports: &str, length: usize, port: u16) {
    let run = std::process::id() as u16;
    let group = format!("239.194.{}.{}:{port}", run >> 8, run & 0xff);
    let settings = [("transports", transports), ("net.window", "64KiB")];
    let settings = settings.into_iter().chain([("net.resolver_group", &*group)]);
    let builder = settings.fold(Context::builder(), |builder, (key, value)| {
        builder.set(key, value).expect("a setting")
    });
    let context = builder.build().expect("a context");
    let settings = || ContentSettings::new(lanecast_filter::message_type::MessageType::Fix);
    let mut matching = Matching::new(&context, "t", settings()).expect("a session");
    let opened = Subscriber::new(&context, "t", "/38 = 1", &settings());
    let mut subscriber = opened.expect("a subscriber");
    listen(&mut matching, &mut subscriber, (&mut Vec::new(), 1), |_| true);
    let body = [b"38=1\x0158=".as_slice(), &vec![b'x'; length], b"\x01"].concat();
    let mut published = 0;
    matching.session.pack();
    // Batches leave a datagram open, of which the next one finds the tail.
    for count in [11, 5, 2].into_iter().flat_map(|count| std::iter::repeat_n(count, 200)) {
        if matching.reserve_batch(count, count * body.len(), body.len()).is_err() {
            continue;
        }
        matching.session.flush();
        let (mut frames, mut lengths) = (Vec::new(), Vec::new());
        (0..count as u64).for_each(|at| matching.collect(at, &body, &mut frames, &mut lengths));
        matching.publish_batch(count as u64, &frames, &lengths);
        assert_eq!(matching.unpublished(), 0, "{transports}: {count} times {length} bytes");
        published += frames.len();
    }
    assert!(published > 16 << 10, "{transports}: a good part of the window: {published}");
}

#[test]
fn the_room_of_batches_stays() {
    let datagrams = [10, 100, 620, 690, 1_300, 3_000].map(|length| ("ru", length));
    let connections = [10, 620, 3_700, 5_000].map(|length| ("tcp", length));
    for ((transports, length), port) in datagrams.into_iter().chain(connections).zip(39_900..) {
        the_room_of_a_batch_stays(transports, length, port);
    }
}

/// The first numbers of ranges that follow one another from 0 on.
fn starts(seen: &[std::ops::Range<u64>]) -> impl Iterator<Item = u64> {
    let ends = seen.iter().map(|it| it.end).take(seen.len() - 1);
    std::iter::once(0).chain(ends.collect::<Vec<_>>())
}

/// A subscriber whose control stream had left, as its program was stopped, and has come back: it
/// learns at once that its filter is not in force, and not by the loss of a message.
#[test]
fn a_subscriber_that_comes_back_loses_nothing() {
    let settings = [("transports", "shm"), ("shm.visibility", "process")];
    let builder = settings.into_iter().fold(Context::builder(), |builder, (key, value)| {
        builder.set(key, value).expect("a setting")
    });
    let context = builder.build().expect("a context");
    let settings = || ContentSettings::new(lanecast_filter::message_type::MessageType::Fix);
    let mut matching = Matching::new(&context, "back", settings()).expect("a session");
    let opened = Subscriber::new(&context, "back", "/38 = 1", &settings());
    let mut subscriber = opened.expect("a subscriber");
    listen(&mut matching, &mut subscriber, (&mut Vec::new(), 1), |_| true);
    let session = matching.filters.subscribers().next().expect("a filter");
    matching.next_number = 7;
    matching.control_events.push_back((session, ControlEvent::Departed));
    assert_eq!(matching.serve(), 1);
    let (start, mut has_lapsed) = (Instant::now(), false);
    while !has_lapsed || subscriber.active_streams() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "lapsed: {has_lapsed}");
        subscriber.poll(64, |event| match event {
            Event::FilterInactive(_) => has_lapsed = true,
            Event::Lost(gap) => panic!("{gap:?}"),
            _ => {}
        });
        matching.serve();
    }
    matching.reserve(5, try_find_room).expect("room");
    matching.publish(b"38=1\x01");
    let mut seen = Vec::new();
    listen(&mut matching, &mut subscriber, (&mut seen, 1), |seen| !seen.is_empty());
    assert!(seen.len() == 1 && seen[0] == (7..8), "{seen:?}");
}

/// A context of one process, whose windows are small.
fn context() -> Context {
    let settings = [("transports", "shm"), ("shm.visibility", "process")];
    let settings = settings.into_iter().chain([("shm.window", "64KiB")]);
    let builder = settings.fold(Context::builder(), |builder, (key, value)| {
        builder.set(key, value).expect("a setting")
    });
    builder.build().expect("a context")
}

/// Requests are sent with each poll.
fn impatient() -> ContentSettings {
    let format = lanecast_filter::message_type::MessageType::Fix;
    ContentSettings { retry_interval: Duration::ZERO, ..ContentSettings::new(format) }
}

/// Publishes batches until frames have no room; returns the number of the next message.
fn overflow(matching: &mut Matching<Context>) -> u64 {
    let body = [b"38=1\x0158=".as_slice(), &[b'x'; 4_000], b"\x01"].concat();
    let (mut frames, mut lengths) = (Vec::new(), Vec::new());
    (0..40).for_each(|at| matching.collect(at, &body, &mut frames, &mut lengths));
    matching.publish_batch(40, &frames, &lengths);
    assert!(matching.unpublished() > 0, "40 are more than a window");
    matching.next_number
}

/// The ranges of messages and losses that `subscriber` polls until its stream has ended.
fn until_left(subscriber: &mut Subscriber<Context>) -> Vec<std::ops::Range<u64>> {
    let (start, mut seen, mut has_left) = (Instant::now(), Vec::new(), false);
    while !has_left {
        assert!(start.elapsed() < Duration::from_secs(60), "{seen:?}");
        subscriber.poll(64, |event| match event {
            Event::Message(message) => seen.push(message.number()..message.number() + 1),
            Event::Lost(gap) => seen.push(gap.first..gap.first + gap.count),
            Event::Left(..) => has_left = true,
            _ => {}
        });
    }
    seen
}

/// A subscriber requests its filter from a publisher once it has joined it, and not before, however
/// many requests to others that publisher hears.
#[test]
fn a_request_is_heard_by_the_publishers_that_it_names() {
    let context = context();
    let mut first = Matching::new(&context, "named", impatient()).expect("a session");
    let opened = Subscriber::new(&context, "named", "/38 = 1", &impatient());
    let mut subscriber = opened.expect("a subscriber");
    let start = Instant::now();
    while subscriber.streams() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the first publisher");
        subscriber.poll(64, |_| ());
    }
    let mut second = Matching::new(&context, "named", impatient()).expect("a session");
    while second.control.streams() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "the second publisher");
        second.serve();
    }
    // Requests are sent, and the second publisher has not been seen yet: nothing was polled.
    for _ in 0..10 {
        drop(subscriber.take(0));
        second.serve();
    }
    assert_eq!((subscriber.streams(), subscriber.active_streams()), (1, 0));
    assert_eq!((second.filters(), second.subscribers()), (0, 0), "it is not asked");
    first.serve();
    assert_eq!(first.filters(), 1, "it is asked");
    // What is sent once the second publisher counts the subscriber arrives.
    let mut seen = Vec::new();
    while second.subscribers() == 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "no request");
        subscriber.poll(64, |_| ());
        second.serve();
    }
    second.reserve(5, try_find_room).expect("room");
    second.publish(b"38=1\x01");
    listen(&mut second, &mut subscriber, (&mut seen, 2), |seen| !seen.is_empty());
    assert!(seen.len() == 1 && seen[0] == (0..1), "{seen:?}");
    listen(&mut first, &mut subscriber, (&mut seen, 2), |_| true);
}

/// After frames that had no room, the next message waits for the word of it: a message by the same
/// mark would hide the loss before it.
#[test]
fn the_next_message_does_not_hide_a_loss() {
    let context = context();
    let mut matching = Matching::new(&context, "hidden", impatient()).expect("a session");
    let opened = Subscriber::new(&context, "hidden", "/38 = 1", &impatient());
    let mut subscriber = opened.expect("a subscriber");
    listen(&mut matching, &mut subscriber, (&mut Vec::new(), 1), |_| true);
    let next = overflow(&mut matching);
    let mut seen = Vec::new();
    let mut note = |event: Event<'_>| match event {
        Event::Message(message) => seen.push(message.number()..message.number() + 1),
        Event::Lost(gap) => seen.push(gap.first..gap.first + gap.count),
        _ => {}
    };
    let start = Instant::now();
    while matching.reserve(5, try_find_room).is_err() {
        assert!(start.elapsed() < Duration::from_secs(60), "no room");
        subscriber.poll(64, &mut note);
    }
    matching.publish(b"38=1\x01");
    listen(&mut matching, &mut subscriber, (&mut seen, 1), |seen| {
        seen.last().is_some_and(|last| last.end > next)
    });
    assert!(seen.iter().map(|it| it.start).eq(starts(&seen)), "{seen:?}");
}

/// Messages that had no room are a told loss, even if the publisher ends before it says more.
#[test]
fn a_loss_is_told_at_the_end() {
    let context = context();
    let mut matching = Matching::new(&context, "ended", impatient()).expect("a session");
    let opened = Subscriber::new(&context, "ended", "/38 = 1", &impatient());
    let mut subscriber = opened.expect("a subscriber");
    listen(&mut matching, &mut subscriber, (&mut Vec::new(), 1), |_| true);
    let next = overflow(&mut matching);
    drop(matching);
    let seen = until_left(&mut subscriber);
    assert!(seen.iter().map(|it| it.start).eq(starts(&seen)), "{seen:?}");
    assert_eq!(seen.last().map(|last| last.end), Some(next), "{seen:?}");
}
