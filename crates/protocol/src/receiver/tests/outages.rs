//! Outages: broken streams, processes that stood still, and what was said into the void.

use super::super::*;
use super::source::{RECEIVER, SESSION, Source, TopicState};
use super::subscriber::{Subscriber, settings};
use lanecast_wire::net::{FrameWriter, SessionBody, TopicEntry, WelcomeBody, flag};

/// Kind of the next frame.
fn next_frame(subscriber: &mut Subscriber, now: Nanos) -> Option<(Kind, u16)> {
    let bytes = subscriber.transmit(now)?;
    Frame::split(&bytes).map(|(frame, _)| (frame.kind, frame.flags))
}

#[test]
fn a_stream_that_is_tried_again_and_again_does_not_live_for_ever() {
    let source = Source::new(7, 1, 0);
    let stream = ReceiverSettings { stream: true, ..settings() };
    let mut subscriber = Subscriber::joined(stream, &source);
    let over = 10 + settings().recovery;
    for now in (10..over).step_by(100_000_000) {
        subscriber.receiver.disconnected();
        subscriber.pass(now + 1);
        if now % 3 == 0 {
            subscriber.receiver.reconnected(now + 2);
        }
        assert_eq!(subscriber.left, [None]);
    }
    subscriber.pass(over);
    assert_eq!(subscriber.left, [Some(CloseReason::Died)]);
}

#[test]
fn a_sender_whose_host_refuses_is_dead_after_the_liveness() {
    let source = Source::new(7, 1, 0);
    let (liveness, recovery) = (settings().liveness, settings().recovery);
    for (refuses, silence) in [(true, liveness), (false, recovery)] {
        let stream = ReceiverSettings { stream: true, ..settings() };
        let mut subscriber = Subscriber::joined(stream, &source);
        subscriber.receiver.disconnected();
        subscriber.receiver.set_connection_refused(refuses);
        // Its owner sleeps until it is due.
        let mut now = 0;
        while subscriber.left == [None] {
            now = subscriber.receiver.next_deadline().expect("it lives").max(now + 1);
            assert!(now < 2 * recovery, "it is never over");
            subscriber.leap(now);
        }
        assert_eq!(subscriber.left, [Some(CloseReason::Died)]);
        assert!(now >= silence && now < silence + liveness, "after {now}: {refuses}");
    }
}

#[test]
fn a_stream_that_is_heard_again_lives_on() {
    let mut source = Source::new(7, 1, 0);
    let stream = ReceiverSettings { stream: true, ..settings() };
    let mut subscriber = Subscriber::joined(stream, &source);
    subscriber.receiver.disconnected();
    let late = settings().recovery - 10;
    subscriber.pass(late);
    subscriber.receiver.reconnected(late);
    source.publish(0, 9, false);
    source.close();
    subscriber.hear(late, &source.datagrams[0].0);
    let patience = settings().liveness.max(settings().recovery);
    subscriber.pass(late + patience - 1);
    assert_eq!(subscriber.left, [None]);
    subscriber.pass(late + patience);
    assert_eq!(subscriber.left, [Some(CloseReason::Died)]);
}

#[test]
fn a_silent_connection_is_given_up_before_its_sender() {
    let source = Source::new(7, 1, 0);
    let stream = ReceiverSettings { stream: true, ..settings() };
    let mut subscriber = Subscriber::joined(stream, &source);
    let receiver = &mut subscriber.receiver;
    let liveness = receiver.liveness();
    let silent = receiver.stream_timeout_at().expect("it is connected");
    assert!(silent < liveness && receiver.next_deadline().is_some_and(|due| due <= silent));
    receiver.bytes_arrived(silent);
    let silent = receiver.stream_timeout_at().expect("part of a frame has come");
    assert!(silent > liveness / 2 + 100);
    receiver.disconnected();
    assert_eq!(receiver.stream_timeout_at(), None);
    receiver.reconnected(silent);
    assert_eq!(receiver.stream_timeout_at(), Some(silent + liveness / 2));
    subscriber.pass(silent + 1);
    assert_eq!(subscriber.left, [None]);
}

#[test]
fn a_session_that_seemed_dead_goes_on_and_tells_what_was_missed() {
    for stream in [true, false] {
        let mut source = Source::new(7, 1, 0);
        let settings = ReceiverSettings { stream, ..settings() };
        let mut subscriber = Subscriber::joined(settings, &source);
        let datagrams = |source: &mut Source, count: usize| {
            for _ in 0..count {
                source.publish(0, 9, false);
                source.close();
            }
        };
        datagrams(&mut source, 5);
        subscriber.hear(5, &source.datagrams[0].0);
        assert!(!subscriber.receiver.revive(6), "it lives");
        let over = 100 * crate::SECOND;
        subscriber.pass(over);
        assert_eq!(subscriber.left, [Some(CloseReason::Died)]);
        (subscriber.left, subscriber.next) = (vec![None], vec![5]);
        assert!(subscriber.receiver.revive(over + 1));
        assert!(!subscriber.receiver.revive(over + 1), "once");
        subscriber.receiver.reconnected(over + 1);
        let join = subscriber.transmit(over + 1).expect("a Join");
        let (frame, _) = Frame::split(&join).expect("a frame");
        let fec = if stream { 0 } else { flag::FEC };
        assert_eq!((frame.flags, frame.sequence), (flag::RESUME | fec, source.sequence(1)));
        // The sender keeps none of the four that it missed.
        let mut out = Vec::new();
        let answer = source.welcome(&join);
        let (frame, _) = Frame::split(&answer).expect("a frame");
        subscriber.receiver.on_frame(over + 2, &frame, 0, &mut out);
        let why = if stream { LossReason::Skipped } else { LossReason::Gone };
        let lost = Delivery::Lost { slot: 0, first: 1, count: 4, why };
        assert_eq!(out, [Delivery::Joined { slot: 0 }, lost], "counted from where it had left");
        datagrams(&mut source, 1);
        subscriber.hear(over + 3, &source.datagrams[5].0);
        assert_eq!(subscriber.next, [6]);
    }
}

/// While no receiver is known messages take no datagrams, so their count says nothing of how many
/// may be missing.
#[test]
fn data_sent_to_no_receiver_is_announced_by_the_next_head() {
    const UNSENT: u64 = 100_000;
    for closes in [true, false] {
        let mut source = Source::new(7, 1, 0);
        let mut subscriber = Subscriber::joined(settings(), &source);
        source.publish(0, 9, false);
        source.close();
        subscriber.hear(5, &source.datagrams[0].0);
        subscriber.pass(100 * crate::SECOND);
        assert_eq!(subscriber.left, [Some(CloseReason::Died)]);
        let now = 100 * crate::SECOND + 1;
        assert!(subscriber.receiver.revive(now));
        let join = subscriber.transmit(now).expect("a Join");
        let mut out = Vec::new();
        let mut hear = |bytes: &[u8]| {
            let (frame, _) = Frame::split(bytes).expect("a frame");
            subscriber.receiver.on_frame(now, &frame, size_of::<FrameHeader>(), &mut out);
        };
        // The Welcome tells where its start is, which may be long before the present.
        hear(&source.welcome(&join));
        let TopicState { fragment, message } = &mut source.topics[0];
        (*fragment, *message) = (*fragment + UNSENT, *message + UNSENT);
        if closes {
            hear(&source.session_frame(flag::CLOSED));
        } else {
            source.publish(0, 9, false);
            source.close();
            hear(&source.datagrams[1].0);
        }
        let why = LossReason::Gone;
        let lost = Delivery::Lost { slot: 0, first: 1, count: UNSENT, why };
        assert_eq!(out[..2], [Delivery::Joined { slot: 0 }, lost]);
        let is_end = matches!(out[2], Delivery::Left { why: CloseReason::Closed, .. });
        assert!(out.len() == 3 && is_end == closes, "{out:?}");
    }
}

#[test]
fn a_receiver_that_stood_still_waits_before_it_gives_up() {
    let mut source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    for _ in 0..2 {
        source.publish(0, 9, false);
        source.close();
    }
    subscriber.hear(5, &source.datagrams[1].0);
    subscriber.pass(10);
    let awake = 10 + 2 * settings().recovery;
    subscriber.leap(awake);
    assert_eq!((&subscriber.left[..], subscriber.lost_any()), (&[None][..], false));
    subscriber.hear(awake + 1, &source.datagrams[0].0);
    assert_eq!(subscriber.next, [2]);
    subscriber.leap(awake + 1 + 2 * settings().liveness);
    subscriber.pass(awake + 3 * settings().liveness);
    assert_eq!(subscriber.left, [Some(CloseReason::Died)], "it does not wait for ever");
}

#[test]
fn a_forgotten_receiver_says_nothing_else_until_it_knows_where_it_goes_on() {
    let source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    while subscriber.transmit(4).is_some() {}
    subscriber.hear(5, &source.forgets());
    let join = subscriber.transmit(6).expect("a Join");
    let now = 6 + settings().liveness / 5;
    let frames: Vec<_> = std::iter::from_fn(|| next_frame(&mut subscriber, now)).collect();
    assert_eq!(frames, [(Kind::Join, flag::RESUME | flag::FEC)], "no Status");
    subscriber.hear(now, &source.welcome(&join));
    assert_eq!(next_frame(&mut subscriber, now), Some((Kind::Status, 0)));
}

#[test]
fn messages_published_without_receivers_are_counted_as_lost() {
    const MESSAGES: u64 = 1 << 20;
    let source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    let begin = source.next_sequence();
    subscriber.hear(5, &source.forgets());
    let join = subscriber.transmit(6).expect("a Join");
    assert_eq!(Frame::split(&join).map(|(frame, _)| frame.flags), Some(flag::RESUME | flag::FEC));
    let welcome = WelcomeBody {
        receiver: RECEIVER.into(),
        echo: 6.into(),
        longest: 10_000.into(),
        window: 64.into(),
        receivers: 1.into(),
        pid: 1.into(),
        liveness_ms: 0.into(),
        fec_data: 0,
        fec_parity: 0,
        fec_delay_us: 0.into(),
    };
    let entry = TopicEntry {
        topic: 0.into(),
        name: 0.into(),
        reserved: 0.into(),
        fragment: MESSAGES.into(),
        message: MESSAGES.into(),
    };
    let mut buffer = [0; 256];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Welcome, 0, SESSION, begin);
    assert!(writer.add(&welcome) && writer.add_topic(entry, &source.names[0]));
    let length = writer.finish();
    subscriber.hear(7, &buffer[..length]);
    assert_eq!(subscriber.next, [MESSAGES], "though no datagrams carried them");
    assert_eq!(subscriber.receiver.counters().lost, MESSAGES);
}

#[test]
fn a_late_receiver_believes_one_long_jump_to_where_the_sender_is() {
    let source = Source::new(7, 1, 0);
    let mut subscriber =
        Subscriber::joined(ReceiverSettings { late_join: true, ..settings() }, &source);
    let mut session = |now: Nanos, ahead: u64| {
        let mut buffer = [0; 64];
        let sequence = source.next_sequence().wrapping_add(ahead);
        let mut writer = FrameWriter::new(&mut buffer, Kind::Session, 0, SESSION, sequence);
        let body = SessionBody { receivers: 1.into(), reserved: 0.into() };
        assert!(writer.add_data_header(0, 1 << 20) && writer.add(&body));
        let length = writer.finish();
        subscriber.hear(now, &buffer[..length]);
        subscriber.receiver.counters().implausible
    };
    assert_eq!(session(5, 50_000), 0);
    assert_eq!(session(6, 100_000), 1, "once");
}

#[test]
fn topics_that_the_session_does_not_have_are_asked_for_again() {
    let source = Source::new(7, 1, 0);
    let names = [source.names[0].clone(), "to come".to_owned()];
    let mut subscriber = Subscriber::new(settings(), &names);
    let (mut now, mut asked) = (1, Vec::new());
    while now < 20_000_000_000 {
        subscriber.pass(now);
        while let Some(bytes) = subscriber.transmit(now) {
            let kind = Frame::split(&bytes).map(|(frame, _)| frame.kind);
            if kind == Some(Kind::Join) {
                asked.push(now);
                subscriber.hear(now, &source.welcome(&bytes));
            }
        }
        subscriber.hear(now, &source.session_frame(0));
        now = subscriber.receiver.next_deadline().unwrap_or(now).max(now + 1);
    }
    assert!((6..12).contains(&asked.len()), "{asked:?}");
    assert!(asked.last().is_some_and(|last| *last > 15_000_000_000), "{asked:?}");
}

#[test]
fn messages_missed_by_a_forgotten_receiver_are_gone_before_its_welcome() {
    let mut source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    subscriber.hear(5, &source.forgets());
    // No receiver was joined when these three were published.
    source.topics[0] = TopicState { fragment: 3, message: 3 };
    source.publish(0, 9, false);
    source.close();
    let (frame, _) = Frame::split(&source.datagrams[0].0).expect("a frame");
    let mut out = Vec::new();
    subscriber.receiver.on_frame(6, &frame, size_of::<FrameHeader>(), &mut out);
    let why = LossReason::Gone;
    assert_eq!(out[0], Delivery::Lost { slot: 0, first: 0, count: 3, why });
}

#[test]
fn time_does_not_count_while_the_frames_stay_unread() {
    let mut source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    for _ in 0..3 {
        source.publish(0, 9, false);
        source.close();
    }
    subscriber.hear(5, &source.datagrams[0].0);
    subscriber.hear(6, &source.datagrams[2].0);
    subscriber.receiver.set_paused(true, 7);
    let pause = 3 * settings().recovery.max(settings().liveness);
    let (mut now, mut statuses) = (7, 0);
    while now < pause {
        while let Some((kind, _)) = next_frame(&mut subscriber, now) {
            assert_eq!(kind, Kind::Status, "an answer to it would stay unread");
            statuses += 1;
        }
        now = subscriber.receiver.next_deadline().expect("it lives").max(now + 1);
        subscriber.receiver.set_paused(true, now);
        subscriber.leap(now);
    }
    assert!(statuses > pause / settings().liveness, "{statuses} statuses keep it alive");
    subscriber.receiver.set_paused(false, now);
    subscriber.leap(now + 1);
    assert_eq!((&subscriber.left[..], subscriber.receiver.missing()), (&[None][..], 1));
    assert!(!subscriber.lost_any());
    subscriber.hear(now + 2, &source.datagrams[1].0);
    assert_eq!(subscriber.next, [3]);
}

#[test]
fn a_join_goes_on_after_a_pause() {
    let source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::new(settings(), &source.names);
    subscriber.receiver.set_paused(true, 1);
    assert_eq!((subscriber.transmit(2), subscriber.receiver.next_deadline()), (None, None));
    let late = 3 * settings().recovery.max(settings().liveness);
    subscriber.receiver.set_paused(false, late);
    subscriber.leap(late);
    let join = subscriber.transmit(late).expect("a Join");
    subscriber.hear(late + 1, &source.welcome(&join));
    assert_eq!(subscriber.receiver.phase(), Phase::Live);
}
