//! Whole sessions: joining, giving up, ends, streams and outages.

use super::super::*;
use super::source::{RECEIVER, SESSION, Source};
use super::subscriber::{Subscriber, settings};
use crate::rng::Rng;
use lanecast_wire::net::{ChallengeBody, FrameWriter, JoinBody, Range, SessionBody, flag, names};
use std::collections::BTreeSet;

/// One message in each of `count` datagrams, on topics 0, 1, 0, 1 ...
fn alternating(count: u32, settings: ReceiverSettings) -> (Source, Subscriber) {
    let mut source = Source::new(u64::MAX - 1, 2, 40);
    let subscriber = Subscriber::joined(settings, &source);
    for number in 0..count {
        source.publish(number % 2, 20, false);
        source.close();
    }
    (source, subscriber)
}

fn hear(subscriber: &mut Subscriber, source: &Source, now: Nanos, indexes: &[usize]) {
    indexes.iter().for_each(|index| subscriber.hear(now, &source.datagrams[*index].0));
}

/// A frame that says that `count` datagrams from `first` on are no longer kept.
fn gone(first: u64, count: u32) -> Vec<u8> {
    let mut buffer = [0; 64];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Void, flag::GONE, SESSION, 0);
    let range = Range { first: first.into(), count: count.into(), reserved: 0.into() };
    assert!(writer.add(&range));
    let length = writer.finish();
    buffer[..length].to_vec()
}

fn kinds(subscriber: &mut Subscriber, now: Nanos) -> Vec<Kind> {
    let frames = std::iter::from_fn(|| subscriber.transmit(now));
    frames.map(|bytes| Frame::split(&bytes).expect("a frame").0.kind).collect()
}

#[test]
fn a_missing_datagram_delays_only_its_own_topic() {
    let (source, mut subscriber) = alternating(6, settings());
    hear(&mut subscriber, &source, 5, &[0, 1, 3, 4, 5]);
    assert_eq!(subscriber.next, [1, 3], "topic 1 goes on, topic 0 waits");
    hear(&mut subscriber, &source, 6, &[2]);
    assert_eq!(subscriber.next, [3, 3]);
    assert_eq!(subscriber.receiver.counters().recovered_messages, 1);
    let record = subscriber.receiver.next_gap_record().expect("a record");
    assert_eq!((record.after, record.count, record.end), (0, 1, GapEnd::Open));
    let record = subscriber.receiver.next_gap_record().expect("a record");
    assert_eq!((record.after, record.count, record.end), (1, 1, GapEnd::Late));
}

/// A Session frame of a group of this size, from the beginning of the session.
fn group_of(receivers: u32, source: &Source) -> Vec<u8> {
    let mut buffer = [0; 64];
    let sequence = source.sequence(0);
    let mut writer = FrameWriter::new(&mut buffer, Kind::Session, 0, SESSION, sequence);
    let body = SessionBody { receivers: receivers.into(), reserved: 0.into() };
    assert!(writer.add_data_header(0, 0) && writer.add(&body));
    let length = writer.finish();
    buffer[..length].to_vec()
}

/// Receivers behind one lossy link miss the same datagrams at the same time; their seeds may be
/// anything, their numbers included.
#[test]
fn receivers_of_a_large_group_ask_at_different_times() {
    for seed_of in [|number| number, |_| 1, |number| number ^ 1] {
        let asks_at = |number: u64| {
            let (receiver, seed) = (number, seed_of(number));
            let settings = ReceiverSettings { receiver, seed, multicast: true, ..settings() };
            let mut source = Source::new(7, 1, 40);
            let mut subscriber = Subscriber::new(settings, &source.names);
            let join = subscriber.transmit(1).expect("a Join");
            // A round trip of a millisecond.
            subscriber.hear(1_000_001, &source.welcome(&join));
            subscriber.hear(2_000_000, &group_of(100, &source));
            source.publish(0, 20, false);
            source.close();
            source.publish(0, 20, false);
            source.close();
            hear(&mut subscriber, &source, 2_000_000, &[1]);
            let mut times = (2_000_000..1_000_000_000).step_by(10_000);
            times.find(|now| kinds(&mut subscriber, *now).contains(&Kind::Nak)).expect("a NAK")
        };
        let times: BTreeSet<Nanos> = (1_000..1_020).map(asks_at).collect();
        assert!(times.len() > 10, "20 receivers ask at {times:?}");
    }
}

/// Datagrams behind it hold the room, and wait for it.
#[test]
fn a_datagram_behind_a_loss_needs_no_room_if_no_other_is_missing_before_it() {
    let settings = ReceiverSettings { reorder_bytes_max: 600, ..settings() };
    let (source, mut subscriber) = alternating(16, settings);
    hear(&mut subscriber, &source, 5, &[0, 1]);
    hear(&mut subscriber, &source, 6, &[8, 9, 10, 11, 12, 13, 14, 15]);
    assert!(subscriber.receiver.counters().overflowed > 0, "no room for all");
    // The messages before it are lost: it is not the next of its topic.
    subscriber.hear(7, &gone(source.sequence(2), 4));
    hear(&mut subscriber, &source, 8, &[6]);
    assert!(subscriber.next[0] >= 4 && subscriber.next[1] == 1, "{:?}", subscriber.next);
    hear(&mut subscriber, &source, 9, &[7]);
    assert!(subscriber.next[1] >= 4, "{:?}", subscriber.next);
    hear(&mut subscriber, &source, 10, &[8, 9, 10, 11, 12, 13, 14, 15]);
    assert_eq!(subscriber.next, [8, 8]);
    assert_eq!(subscriber.lost, [vec![1, 2], vec![1, 2]]);
}

/// Every second datagram is missing until no more gaps are tracked, and no datagram finds room.
#[test]
fn a_datagram_without_room_beyond_the_most_gaps_is_received_later() {
    let settings = ReceiverSettings { reorder_bytes_max: 600, ..settings() };
    let (source, mut subscriber) = alternating(9_000, settings);
    hear(&mut subscriber, &source, 5, &[0]);
    (3..9_000).step_by(2).for_each(|index| hear(&mut subscriber, &source, 6, &[index]));
    // Those that come next then, none of which finds room.
    (3_000..9_000).for_each(|index| hear(&mut subscriber, &source, 7, &[index]));
    let counters = *subscriber.receiver.counters();
    assert!(counters.overflowed > 8_000, "{}", counters.overflowed);
    (1..9_000).for_each(|index| hear(&mut subscriber, &source, 8, &[index]));
    assert_eq!(subscriber.next, [4_500, 4_500]);
    assert_eq!(subscriber.lost, [vec![], vec![]], "each comes once");
    assert_eq!(subscriber.receiver.counters().lost_datagrams, 0);
}

#[test]
fn a_loss_is_told_when_the_time_for_recovery_is_over() {
    let (source, mut subscriber) = alternating(4, settings());
    hear(&mut subscriber, &source, 5, &[0, 1, 3]);
    subscriber.hear(7, &source.session_frame(0));
    let over = 5 + settings().recovery;
    subscriber.hear(over - 1, &source.session_frame(0));
    subscriber.pass(over - 1);
    assert!(!subscriber.lost_any());
    let times = settings().gap_times();
    assert_eq!(subscriber.receiver.session.tracker.next_expiry(times), Some(over));
    subscriber.pass(over);
    assert_eq!(subscriber.lost, [vec![1], vec![]]);
    assert_eq!(subscriber.receiver.counters().lost_datagrams, 1);
}

#[test]
fn data_that_the_sender_dropped_is_lost_at_once() {
    let (source, mut subscriber) = alternating(6, settings());
    hear(&mut subscriber, &source, 5, &[0, 5]);
    subscriber.hear(6, &gone(source.sequence(1), 2));
    assert_eq!(subscriber.lost, [vec![], vec![]], "the next of both topics may still come");
    hear(&mut subscriber, &source, 7, &[3, 4]);
    assert_eq!(subscriber.lost, [vec![1], vec![0]]);
    assert_eq!(subscriber.next, [3, 3]);
}

#[test]
fn a_gap_is_asked_for_at_once_and_a_duplicate_is_counted() {
    let (source, mut subscriber) = alternating(4, settings());
    assert_eq!(kinds(&mut subscriber, 3), [Kind::Status]);
    hear(&mut subscriber, &source, 5, &[0, 2, 2]);
    assert_eq!(subscriber.receiver.next_deadline(), Some(5));
    assert_eq!(kinds(&mut subscriber, 5), [Kind::Nak]);
    assert_eq!(subscriber.receiver.counters().duplicates, 1);
    assert_eq!(subscriber.receiver.counters().naks, 1);
}

#[test]
fn a_silent_sender_has_died_and_nothing_is_hushed_up() {
    let (source, mut subscriber) = alternating(4, settings());
    hear(&mut subscriber, &source, 5, &[0, 1]);
    subscriber.hear(6, &Source::session_frame(&source, 0)[..]);
    let over = 6 + settings().liveness;
    subscriber.pass(over - 1);
    assert_eq!(subscriber.left, [None, None]);
    subscriber.pass(over);
    assert_eq!(subscriber.left, [Some(CloseReason::Died); 2]);
    assert_eq!(subscriber.lost, [vec![1], vec![1]], "the session frame told how far it came");
    subscriber.pass(over + 1);
    assert_eq!(subscriber.transmit(over), None);
}

#[test]
fn a_loss_at_the_end_is_told_as_far_as_it_was_counted() {
    let (source, mut subscriber) = alternating(6, settings());
    hear(&mut subscriber, &source, 5, &[0, 1, 5]);
    subscriber.pass(5 + settings().liveness);
    assert_eq!(subscriber.left, [Some(CloseReason::Died); 2]);
    assert_eq!(subscriber.lost, [vec![], vec![1]]);
}

#[test]
fn a_closed_session_ends_when_all_has_come_and_says_so() {
    let (source, mut subscriber) = alternating(4, settings());
    assert_eq!(kinds(&mut subscriber, 3), [Kind::Status]);
    hear(&mut subscriber, &source, 5, &[0, 1, 3]);
    subscriber.hear(6, &source.session_frame(flag::CLOSED));
    assert_eq!(subscriber.left, [None, None]);
    hear(&mut subscriber, &source, 7, &[2]);
    assert_eq!(subscriber.left, [Some(CloseReason::Closed); 2]);
    let goodbye = [Kind::Status, Kind::Leave, Kind::Leave, Kind::Leave];
    assert_eq!(kinds(&mut subscriber, 8), goodbye, "nothing is missing, read or not");
}

#[test]
fn frames_without_events_need_no_reading() {
    let (source, mut subscriber) = alternating(2, settings());
    hear(&mut subscriber, &source, 5, &[0, 1]);
    let read = |subscriber: &mut Subscriber, now| {
        subscriber.receiver.session.status.send_soon();
        let status = subscriber.transmit(now).expect("a status");
        Frame::split(&status).expect("a frame").0.sequence
    };
    // Further on than what came, without a word of any topic.
    let ahead = Source::new(source.next_sequence().wrapping_add(40), 0, 0);
    subscriber.hear(6, &ahead.session_frame(0));
    subscriber.hear(7, &gone(source.next_sequence(), 40));
    assert!(!subscriber.lost_any(), "it may have been nothing that this one wants");
    assert_eq!(read(&mut subscriber, 8), source.sequence(0), "there are messages to read");
    subscriber.receiver.consumed_all();
    assert_eq!(read(&mut subscriber, 9), ahead.next_sequence());
    let further = Source::new(ahead.next_sequence().wrapping_add(9), 0, 0);
    subscriber.hear(10, &further.session_frame(0));
    subscriber.hear(11, &gone(ahead.next_sequence(), 9));
    assert_eq!(read(&mut subscriber, 12), further.next_sequence());
}

#[test]
fn an_eviction_and_leaving_end_it() {
    let (source, mut subscriber) = alternating(2, settings());
    subscriber.hear(5, &source.eject());
    assert_eq!(subscriber.left, [Some(CloseReason::Evicted); 2]);
    let (_, mut subscriber) = alternating(2, settings());
    subscriber.receiver.leave();
    assert_eq!(kinds(&mut subscriber, 8), [Kind::Leave; 3]);
    assert_eq!(subscriber.receiver.next_deadline(), None);
}

#[test]
fn a_join_is_repeated_and_answers_a_challenge() {
    let source = Source::new(0, 1, 0);
    let mut subscriber = Subscriber::new(settings(), &source.names);
    let join = subscriber.transmit(100).expect("a Join");
    assert_eq!(subscriber.transmit(100), None);
    let again = subscriber.receiver.next_deadline().expect("a time");
    assert!(again > 100 && subscriber.transmit(again).is_some());
    let echo =
        Frame::split(&join).map(|(frame, _)| *JoinBody::split(frame.body).expect("a body").0);
    let mut buffer = [0; 64];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Challenge, 0, SESSION, 0);
    let echo = echo.expect("a frame").echo;
    let body = ChallengeBody { receiver: RECEIVER.into(), cookie: 99.into(), echo };
    assert!(writer.add(&body));
    let length = writer.finish();
    subscriber.hear(again + 1, &buffer[..length]);
    let join = subscriber.transmit(again + 1).expect("a Join at once");
    let (frame, _) = Frame::split(&join).expect("a frame");
    assert_eq!(JoinBody::split(frame.body).expect("a body").0.cookie.get(), 99);
    subscriber.pass(settings().recovery);
    assert_eq!(subscriber.receiver.phase(), Phase::Closed, "no sender has admitted it");
}

#[test]
fn topics_of_an_earlier_join_are_heard_while_more_are_joined() {
    let mut source = Source::new(0, 2, 40);
    let mut subscriber = Subscriber::new(settings(), &source.names);
    // There is only one topic at first.
    let before = Source::new(0, 1, 40);
    let join = subscriber.transmit(1).expect("a Join");
    subscriber.hear(2, &before.welcome(&join));
    // The answer may have further frames, so it waits a little.
    let join = subscriber.transmit(3_000_000).expect("a Join for the other");
    subscriber.hear(3_000_001, &before.welcome(&join));
    assert_eq!(subscriber.joined, [1, 0]);
    // It has heard elsewhere that there is the second, and asks; meanwhile the session tells it.
    subscriber.receiver.subscribe("topic 1");
    subscriber.hear(3_000_002, &source.welcome(&join));
    assert_eq!(subscriber.joined, [1, 1]);
    source.publish(1, 20, false);
    source.close();
    hear(&mut subscriber, &source, 3_000_003, &[0]);
    assert_eq!(subscriber.next, [0, 1]);
}

/// The second answer to a repeated Join has no word of a topic that was wanted after that Join.
#[test]
fn a_topic_wanted_while_answers_are_under_way_is_asked_for_at_once() {
    let source = Source::new(0, 3, 40);
    let mut subscriber = Subscriber::new(settings(), &source.names[..1]);
    (subscriber.next, subscriber.lost) = (vec![0; 3], vec![Vec::new(); 3]);
    (subscriber.joined, subscriber.left) = (vec![0; 3], vec![None; 3]);
    subscriber.bases = vec![None; 3];
    let join = subscriber.transmit(1).expect("a Join");
    subscriber.hear(2, &source.welcome(&join));
    subscriber.receiver.subscribe("topic 1");
    let once = subscriber.transmit(3).expect("a Join");
    assert_eq!(kinds(&mut subscriber, 4), [Kind::Status]);
    let late = subscriber.receiver.next_deadline().expect("the Join is not answered");
    let twice = subscriber.transmit(late).expect("the Join again");
    subscriber.hear(late + 1, &source.welcome(&once));
    assert_eq!(subscriber.joined, [1, 1, 0]);
    subscriber.receiver.subscribe("topic 2");
    subscriber.hear(late + 2, &source.welcome(&twice));
    let join = subscriber.transmit(late + 3).expect("a Join for the third");
    subscriber.hear(late + 4, &source.welcome(&join));
    assert_eq!(subscriber.joined, [1, 1, 1]);
}

/// An answer in two frames is no answer to the Join that follows the first of them.
#[test]
fn a_resume_tells_all_names_though_answers_have_several_frames() {
    let source = Source::new(7, 40, 3);
    let mut subscriber = Subscriber::new(settings(), &source.names);
    let mut now = 1;
    while subscriber.joined.contains(&0) {
        let join = subscriber.transmit(now).expect("a Join");
        subscriber.hear(now, &source.welcome(&join));
        now += 1;
    }
    subscriber.receiver.disconnected();
    subscriber.receiver.reconnected(now);
    let join = |subscriber: &mut Subscriber, now: Nanos| {
        let mut buffer = [0; 200];
        let length = subscriber.receiver.next_transmit(now, &mut buffer).expect("a Join");
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        assert_eq!(frame.flags & flag::RESUME, flag::RESUME);
        let (_, wanted) = JoinBody::split(frame.body).expect("a body");
        let wanted: Vec<String> = names(wanted).map(str::to_owned).collect();
        (wanted, source.welcome(&buffer[..length]))
    };
    let (first, welcome) = join(&mut subscriber, now);
    subscriber.hear(now, &welcome);
    // The second Join is lost.
    let (second, _) = join(&mut subscriber, now + 1);
    assert!(!second.iter().any(|name| first.contains(name)));
    subscriber.hear(now + 2, &welcome);
    let late = subscriber.receiver.next_deadline().expect("it is repeated");
    assert_eq!(join(&mut subscriber, late).0, second);
}

#[test]
fn a_topic_wanted_later_begins_where_its_join_was_heard() {
    let mut source = Source::new(7, 2, 40);
    // Its own window does not matter: it has read them.
    let settings = ReceiverSettings { window_datagrams: 1, ..settings() };
    let mut subscriber = Subscriber::new(settings, &source.names[..1]);
    (subscriber.next, subscriber.lost) = (vec![0; 2], vec![Vec::new(); 2]);
    (subscriber.joined, subscriber.left) = (vec![0; 2], vec![None; 2]);
    subscriber.bases = vec![None; 2];
    let join = subscriber.transmit(1).expect("a Join");
    subscriber.hear(2, &source.welcome(&join));
    subscriber.receiver.subscribe("topic 1");
    let join = subscriber.transmit(3).expect("a Join");
    let welcome = source.welcome(&join);
    for number in 0..4 {
        source.publish(number % 2, 20, false);
        source.close();
    }
    // The data overtakes the Welcome: it is asked for again.
    hear(&mut subscriber, &source, 4, &[0, 1]);
    subscriber.hear(5, &welcome);
    assert_eq!(subscriber.joined, [1, 1]);
    hear(&mut subscriber, &source, 6, &[2, 3, 1, 0]);
    assert_eq!(subscriber.next, [2, 2]);
    assert!(!subscriber.lost_any());
}

#[test]
fn a_stream_goes_on_after_an_outage_and_counts_what_it_missed() {
    let stream = ReceiverSettings { stream: true, ..settings() };
    let (mut source, mut subscriber) = alternating(10, stream);
    hear(&mut subscriber, &source, 5, &[0, 1, 2, 3, 6, 7]);
    assert_eq!(subscriber.lost, [vec![2], vec![2]], "the sender did not wait");
    assert_eq!(kinds(&mut subscriber, 6), [Kind::Status], "and no NAK helps");
    subscriber.receiver.disconnected();
    assert_eq!(subscriber.transmit(7), None);
    subscriber.pass(7 + settings().liveness);
    assert_eq!(subscriber.left, [None, None], "it may come back");
    subscriber.receiver.reconnected(8);
    let join = subscriber.transmit(8).expect("a Join");
    let (frame, _) = Frame::split(&join).expect("a frame");
    assert_eq!((frame.flags, frame.sequence), (flag::RESUME, source.sequence(8)));
    subscriber.hear(9, &source.welcome(&join));
    assert_eq!(subscriber.lost, [vec![2, 4], vec![2, 4]]);
    assert_eq!(subscriber.joined, [1, 1]);
    source.publish_some(5, &mut Rng::new(1));
    (10..source.datagrams.len()).for_each(|index| hear(&mut subscriber, &source, 10, &[index]));
    assert_eq!(subscriber.next, [source.count(0), source.count(1)]);
}

#[test]
fn a_batch_is_delivered_whole() {
    let mut source = Source::new(7, 1, 0);
    let mut subscriber = Subscriber::joined(settings(), &source);
    for more in [true, true, false] {
        source.publish(0, 30, more);
        source.close();
    }
    hear(&mut subscriber, &source, 5, &[0, 1]);
    assert_eq!(subscriber.next, [0]);
    hear(&mut subscriber, &source, 6, &[2]);
    assert_eq!(subscriber.next, [3]);
    assert_eq!(subscriber.receiver.session.topics.reorder_bytes(), 0);
}

#[test]
fn a_message_too_long_for_the_receiver_is_told_as_lost() {
    let mut source = Source::new(7, 1, 0);
    let short = ReceiverSettings { longest_message_max: 500, ..settings() };
    let mut subscriber = Subscriber::joined(short, &source);
    source.publish(0, 400, false);
    source.publish(0, 600, false);
    source.publish(0, 20, false);
    source.close();
    (0..source.datagrams.len()).for_each(|index| hear(&mut subscriber, &source, 5, &[index]));
    assert_eq!((&subscriber.next[..], &subscriber.lost[0][..]), (&[3][..], &[1][..]));
}

#[test]
fn more_topics_than_fit_in_a_join_are_all_joined_and_all_resumed() {
    let source = Source::new(7, 40, 3);
    let mut subscriber = Subscriber::new(settings(), &source.names);
    let mut now = 1;
    let join = |subscriber: &mut Subscriber, now: Nanos| {
        let mut buffer = [0; 200];
        let length = subscriber.receiver.next_transmit(now, &mut buffer)?;
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        if frame.kind == Kind::Join {
            subscriber.hear(now, &source.welcome(&buffer[..length]));
        }
        Some((frame.kind, frame.flags))
    };
    while subscriber.joined.contains(&0) {
        now += 1;
        assert!(now < 20, "a Join and a Welcome each time");
        let flags = if now == 2 { flag::FEC } else { flag::FURTHER | flag::FEC };
        assert_eq!(join(&mut subscriber, now), Some((Kind::Join, flags)));
    }
    assert!(subscriber.joined.iter().all(|times| *times == 1));
    subscriber.receiver.disconnected();
    subscriber.receiver.reconnected(now);
    let mut resumed = 0;
    while join(&mut subscriber, now) == Some((Kind::Join, flag::RESUME | flag::FEC)) {
        resumed += 1;
        now += 1;
    }
    assert!((3..20).contains(&resumed), "{resumed} Joins told all names again");
}
