//! A sender among receivers that the tests play.

mod hostile;
mod joining;
mod keep_warm;
mod outages;
mod parity;
mod repairing;
mod streaming;
mod subscribers;

use super::receiver_state::ReceiverState;
use super::*;
use crate::{MILLISECOND, SECOND};
use lanecast_transport::{IncompleteReason, IncompleteSubscriber};
use lanecast_wire::net::{
    Blocks, ChallengeBody, DATAGRAM_MIN, FrameWriter, JoinBody, LeaveBody, NakBody, Range,
    SessionBody, StatusBody, TopicHead, WelcomeBody, flag, list, topics,
};

const SESSION: u64 = 42;

fn address(last: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], last))
}

fn group() -> SocketAddr {
    SocketAddr::from(([239, 1, 1, 1], 9_000))
}

fn settings(distribution: Distribution) -> SenderSettings {
    let first_sequence = u64::MAX - 3;
    let window_bytes = 64 << 10;
    SenderSettings {
        session: SESSION,
        first_sequence,
        distribution,
        window_bytes,
        ..SenderSettings::default()
    }
}

/// A sender with the topics "a" and "b".
fn sender(settings: SenderSettings) -> Sender {
    let mut sender = Sender::new(settings, 0);
    assert_eq!((sender.add_topic("a"), sender.add_topic("b")), (Ok(0), Ok(1)));
    sender
}

/// Whether messages on the topic are written to the window.
fn is_subscribed(sender: &Sender, topic: u32) -> bool {
    sender.session.packetizer.topics[topic as usize].subscribed
}

/// Number of receivers that have lost messages, or are gone without having read everything.
fn left_behind(sender: &mut Sender) -> usize {
    let report = sender.subscribers().completion();
    let still_reads = |it: &&IncompleteSubscriber| {
        it.has_left() || matches!(it.reason, IncompleteReason::Behind { .. })
    };
    let behind = report.incomplete().iter().filter(still_reads).count();
    report.incomplete().len() - behind + report.omitted()
}

fn publish(sender: &mut Sender, topic: u32, len: usize) {
    sender.stage(topic, len).expect("room").fill(topic as u8);
    assert_eq!(sender.publish(), 1);
    sender.flush();
}

fn written(kind: (Kind, u16), sequence: u64, fill: impl FnOnce(&mut FrameWriter<'_>)) -> Vec<u8> {
    control_queue::compose(kind, (SESSION, sequence), 1_472, fill)
}

fn join(receiver: u64, cookie: u64, flags: u16, sequence: u64, names: &[&str]) -> Vec<u8> {
    written((Kind::Join, flags), sequence, |writer| {
        let body = JoinBody {
            receiver: receiver.into(),
            cookie: cookie.into(),
            echo: 5.into(),
            window: 64.into(),
            tag: 0.into(),
        };
        assert!(writer.add(&body));
        names.iter().for_each(|name| assert!(writer.add_name(name)));
    })
}

fn status(receiver: u64, read: u64, limit: u64) -> Vec<u8> {
    status_of(1_000, receiver, read, limit)
}

/// Status of a receiver that knows the begin of `topics`.
fn status_of(topics: u32, receiver: u64, read: u64, limit: u64) -> Vec<u8> {
    status_from((topics, 0), receiver, read, limit)
}

/// The same, from a receiver that is so far away.
fn status_from((topics, round_trip): (u32, u32), receiver: u64, read: u64, limit: u64) -> Vec<u8> {
    written((Kind::Status, 0), read, |writer| {
        let body = StatusBody {
            receiver: receiver.into(),
            received: read.into(),
            limit: limit.into(),
            echo: 0.into(),
            tag: 0.into(),
            lost: 0.into(),
            topics: topics.into(),
            round_trip: round_trip.into(),
        };
        assert!(writer.add(&body));
    })
}

fn leave(receiver: u64) -> Vec<u8> {
    written((Kind::Leave, 0), 0, |writer| {
        assert!(writer.add(&LeaveBody { receiver: receiver.into() }));
    })
}

fn nak(receiver: u64, flags: u16, ranges: &[(u64, u32)]) -> Vec<u8> {
    let first = ranges.first().map_or(0, |(first, _)| *first);
    written((Kind::Nak, flags), first, |writer| {
        assert!(writer.add(&NakBody { receiver: receiver.into() }));
        for (first, count) in ranges {
            let range =
                Range { first: (*first).into(), count: (*count).into(), reserved: 0.into() };
            assert!(writer.add(&range));
        }
    })
}

fn hear(sender: &mut Sender, now: Nanos, from: SocketAddr, bytes: &[u8]) {
    let (frame, _) = Frame::split(bytes).expect("a frame");
    sender.on_frame(now, from, &frame);
}

/// Everything that goes out now: each datagram and where to.
fn sent(sender: &mut Sender, now: Nanos) -> Vec<(SocketAddr, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(transmit) = sender.next_transmit(now) {
        assert!(transmit.bytes.len() <= 65_507);
        let datagrams = transmit.bytes.chunks(transmit.segment);
        assert!(datagrams.len() <= 64);
        all.extend(datagrams.map(|bytes| (transmit.to, bytes.to_vec())));
        sender.transmitted(now);
        assert!(all.len() < 100_000, "it never ends");
    }
    for (_, bytes) in &all {
        let (frame, rest) = Frame::split(bytes).expect("a frame");
        assert!(rest.is_empty() && frame.session == SESSION);
    }
    all
}

/// Frames of a kind: destination, flags, sequence.
fn of_kind(sent: &[(SocketAddr, Vec<u8>)], kind: Kind) -> Vec<(SocketAddr, u16, u64)> {
    let frames = sent.iter().filter_map(|(to, bytes)| Some((*to, Frame::split(bytes)?.0)));
    let frames = frames.filter(|(_, frame)| frame.kind == kind);
    frames.map(|(to, frame)| (to, frame.flags, frame.sequence)).collect()
}

/// Lets a receiver in by way of a challenge; the start that its Welcome names.
fn let_in(sender: &mut Sender, now: Nanos, receiver: u64, flags: u16, names: &[&str]) -> u64 {
    let from = address(receiver as u16);
    hear(sender, now, from, &join(receiver, 0, flags, 0, names));
    let answers = sent(sender, now);
    let (frame, _) = Frame::split(&answers.last().expect("a challenge").1).expect("a frame");
    assert_eq!(frame.kind, Kind::Challenge);
    let (challenge, _) = ChallengeBody::split(frame.body).expect("a body");
    hear(sender, now, from, &join(receiver, challenge.cookie.get(), flags, 0, names));
    let answers = sent(sender, now);
    let welcome = of_kind(&answers, Kind::Welcome);
    assert_eq!((welcome.len(), welcome[0].0), (1, from));
    welcome[0].2
}

#[test]
fn without_receivers_messages_are_published_and_the_window_rolls() {
    let mut each = sender(settings(Distribution::Unicast));
    let mut grouped = sender(settings(Distribution::Multicast(group())));
    for _ in 0..1_000 {
        publish(&mut each, 0, 1_000);
        publish(&mut grouped, 0, 1_000);
        assert_eq!(of_kind(&sent(&mut grouped, 1), Kind::Data).len(), 1);
    }
    assert!(sent(&mut each, 1).is_empty());
    assert_eq!((each.counters().unsubscribed, grouped.counters().unsubscribed), (1_000, 0));
    assert!(each.is_drained() && !each.has_data_to_send() && grouped.is_drained());
    assert!(!is_subscribed(&each, 0) && is_subscribed(&grouped, 0));
}

#[test]
fn a_group_is_sent_to_no_further_than_its_slowest_can_take() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    for _ in 0..20 {
        publish(&mut sender, 0, 100);
    }
    hear(&mut sender, 1, address(1), &status(1, start, start.wrapping_add(5)));
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), 20, "no promise is taken back");
    let end = start.wrapping_add(20);
    for _ in 0..100 {
        publish(&mut sender, 0, 100);
    }
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), 44);
    hear(&mut sender, 1, address(1), &status(1, end, end.wrapping_add(64)));
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), 20);
    assert!(!sender.is_drained());
    let read = start.wrapping_add(84);
    hear(&mut sender, 1, address(1), &status(1, read, read.wrapping_add(64)));
    sent(&mut sender, 1);
    let end = start.wrapping_add(120);
    hear(&mut sender, 1, address(1), &status(1, end, end.wrapping_add(64)));
    assert!(sender.is_drained());
}

#[test]
fn only_what_was_read_is_overwritten() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    while sender.stage(0, 1_000).is_ok() {
        sender.publish();
        sender.flush();
    }
    assert_eq!(sender.stage(0, 1_000), Err(StageError::WindowFull));
    let count = of_kind(&sent(&mut sender, 1), Kind::Data).len() as u64;
    assert!(count > 50, "{count}");
    assert_eq!(sender.stage(0, 1_000), Err(StageError::WindowFull), "sent, but not read");
    let read = start.wrapping_add(2);
    hear(&mut sender, 1, address(1), &status(1, read, read.wrapping_add(64)));
    publish(&mut sender, 0, 1_000);
}

#[test]
fn a_receiver_without_interest_in_a_datagram_neither_gets_it_nor_delays_others() {
    let mut sender = sender(settings(Distribution::Unicast));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["b"]);
    assert_eq!(sender.receivers(), 2);
    let mut end = start;
    for _ in 0..1_000 {
        publish(&mut sender, 1, 1_000);
        end = end.wrapping_add(1);
        let data = of_kind(&sent(&mut sender, 1), Kind::Data);
        assert_eq!(data.iter().map(|data| data.0).collect::<Vec<_>>(), [address(2)]);
        hear(&mut sender, 1, address(2), &status(2, end, end.wrapping_add(64)));
    }
    publish(&mut sender, 0, 10);
    let data = sent(&mut sender, 1);
    let (frame, _) = Frame::split(&data[0].1).expect("a frame");
    let (header, blocks) = frame.data().expect("a header");
    assert_eq!((header.skipped.get(), frame.sequence), (1_000, end));
    assert_eq!(Blocks::new(blocks).map(|(block, _)| block.fragment.get()).collect::<Vec<_>>(), [0]);
}

#[test]
fn a_receiver_that_stands_still_is_ejected() {
    let mut settings = settings(Distribution::Multicast(group()));
    settings.pacing = Pacing::SlowestOrEject(200 * MILLISECOND);
    let mut sender = sender(settings);
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    let_in(&mut sender, 1, 2, 0, &["a"]);
    for _ in 0..100 {
        publish(&mut sender, 0, 100);
    }
    let mut now = 1;
    while sender.receivers() == 2 {
        now += 10 * MILLISECOND;
        sent(&mut sender, now);
        hear(&mut sender, now, address(1), &status(1, start, start));
        let read = start.wrapping_add(64);
        hear(&mut sender, now, address(2), &status(2, read, read.wrapping_add(64)));
        sender.on_time(now);
        assert!(now < SECOND, "no receiver is ejected");
    }
    assert!(now > 200 * MILLISECOND);
    let out = sent(&mut sender, now);
    let ejected: Vec<_> = of_kind(&out, Kind::Eject).iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(ejected, [(address(1), flag::STALLED)]);
    assert_eq!(of_kind(&out, Kind::Data).len(), 36, "the others go on");
}

#[test]
fn the_silent_are_forgotten() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let_in(&mut sender, 1, 1, 0, &["a"]);
    for now in [SECOND / 2, SECOND] {
        sender.on_time(now);
        assert_eq!(sender.receivers(), 1);
    }
    let asked = of_kind(&sent(&mut sender, SECOND), Kind::Session);
    assert!(asked.iter().any(|one| one.1 & flag::PROBE != 0), "it is asked before it is given up");
    sender.on_time(SECOND + 2);
    assert_eq!((sender.receivers(), sender.counters().joined, sender.counters().died), (0, 1, 1));
}

#[test]
fn a_closed_session_tells_its_end_until_all_have_left() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    let start = let_in(&mut sender, 1, 1, 0, &["a"]);
    publish(&mut sender, 0, 10);
    sender.close(1);
    assert_eq!(sender.stage(0, 1), Err(StageError::Closed));
    let mut told = 0;
    let mut now = 1;
    while now < 900 * MILLISECOND {
        let out = sent(&mut sender, now);
        told += of_kind(&out, Kind::Session).iter().filter(|one| one.1 & flag::CLOSED != 0).count();
        sender.on_time(now);
        now = sender.next_deadline().expect("it goes on").max(now + 1);
    }
    assert!((8..40).contains(&told), "{told}");
    let end = start.wrapping_add(1);
    hear(&mut sender, now, address(1), &status(1, end, end.wrapping_add(64)));
    assert!(sender.is_drained());
    sent(&mut sender, now);
    now += 500 * MILLISECOND;
    sender.on_time(now);
    let told = of_kind(&sent(&mut sender, now), Kind::Session);
    assert!(!told.is_empty(), "it may have missed the end so far");
    hear(&mut sender, now, address(1), &leave(1));
    sender.on_time(now + 500 * MILLISECOND);
    assert!(of_kind(&sent(&mut sender, now), Kind::Session).is_empty());
    assert_eq!(sender.next_deadline(), None);
}

#[test]
fn a_closed_session_without_receivers_tells_its_end_several_times() {
    let mut sender = sender(settings(Distribution::Multicast(group())));
    publish(&mut sender, 0, 10);
    assert!(!sender.is_finished(), "it is not closed");
    sender.close(1);
    let (mut told, mut now) = (0, 1);
    while !sender.is_finished() {
        sender.on_time(now);
        told += of_kind(&sent(&mut sender, now), Kind::Session).len();
        now = sender.next_deadline().unwrap_or(now).max(now + 1);
        assert!(now < SECOND, "it ends without receivers to wait for");
    }
    assert_eq!((told, sender.next_deadline()), (4, None));
}

#[test]
fn a_closed_session_waits_for_receivers_that_may_only_seem_dead() {
    for distribution in [Distribution::Multicast(group()), Distribution::Unicast] {
        let mut sender = sender(settings(distribution));
        let_in(&mut sender, 1, 1, 0, &["a"]);
        let died = SECOND + 2;
        for now in [SECOND / 2, SECOND, died] {
            sender.on_time(now);
        }
        assert_eq!(sender.receivers(), 0);
        sender.close(died);
        let last = died + SECOND - 1;
        let mut now = died;
        while now < last {
            sender.on_time(now);
            sent(&mut sender, now);
            now = sender.next_deadline().expect("it waits").clamp(now + 1, last);
            assert!(!sender.is_finished());
        }
        // Its frames come through again.
        hear(&mut sender, last, address(1), &status(1, 0, 64));
        let answer = of_kind(&sent(&mut sender, last), Kind::Eject);
        let answer: Vec<_> = answer.iter().map(|one| (one.0, one.1)).collect();
        assert_eq!(answer, [(address(1), flag::STRANGER)], "it is told to join again");
        let due = sender.next_deadline().expect("it looks again");
        assert!(due <= last + 1);
        sender.on_time(last + 1);
        assert!(sender.is_finished());
        assert_eq!(sender.next_deadline(), None);
        assert_eq!(of_kind(&sent(&mut sender, last + 1), Kind::Session), []);
    }
}

#[test]
fn each_receiver_is_told_of_all_its_topics_in_turn() {
    let mut settings = settings(Distribution::Unicast);
    settings.datagram_bytes = DATAGRAM_MIN;
    let names: Vec<String> = (0..30).map(|number| format!("topic {number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut sender = Sender::new(settings, 0);
    names.iter().for_each(|name| _ = sender.add_topic(name));
    for receiver in [1, 2] {
        for names in names.chunks(10) {
            let_in(&mut sender, 1, receiver, 0, names);
        }
    }
    let mut told = [std::collections::BTreeSet::new(), std::collections::BTreeSet::new()];
    for beat in 1..=4 {
        sender.on_time(beat * SECOND / 10);
        for (to, bytes) in sent(&mut sender, beat * SECOND / 10) {
            let (frame, _) = Frame::split(&bytes).expect("a frame");
            let (_, heads) = SessionBody::split(frame.data().expect("data").1).expect("a body");
            let heads = list::<TopicHead>(heads).iter().map(|head| head.topic.get());
            told[usize::from(to == address(2))].extend(heads);
        }
    }
    assert_eq!(told.map(|topics| topics.len()), [30, 30]);
}

#[test]
fn the_data_rate_is_kept() {
    let mut settings = settings(Distribution::Multicast(group()));
    settings.data_rate = Some(1_000_000);
    let mut sender = sender(settings);
    let (mut now, mut bytes) = (1, 0);
    while now < SECOND {
        publish(&mut sender, 0, 1_000);
        while sender.has_data_to_send() && now < SECOND {
            let out = sent(&mut sender, now);
            bytes += out.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            sender.on_time(now);
            now = if sender.has_data_to_send() {
                sender.next_deadline().expect("a time").max(now + 1)
            } else {
                now
            };
        }
    }
    assert!((900_000..1_200_000).contains(&bytes), "{bytes}");
}

#[test]
fn a_rate_makes_nothing_due_that_receivers_hold_up() {
    let mut settings = settings(Distribution::Multicast(group()));
    settings.data_rate = Some(1_000_000_000);
    let mut sender = sender(settings);
    let_in(&mut sender, 1, 1, 0, &["a"]);
    for _ in 0..100 {
        publish(&mut sender, 0, 100);
    }
    assert_eq!(of_kind(&sent(&mut sender, 1), Kind::Data).len(), 64);
    assert!(sender.has_data_to_send());
    assert!(sender.next_deadline().is_none_or(|due| due > 1));
}

#[test]
fn the_data_rate_is_kept_on_connections() {
    const RATE: u64 = 1_000_000;
    let mut settings = settings(Distribution::Stream);
    (settings.data_rate, settings.window_bytes) = (Some(RATE), 1 << 20);
    let mut sender = sender(settings);
    sender.connect(1, 1, address(9));
    let bytes = join(1, 0, 0, 0, &["a"]);
    sender.on_stream_frame(1, 1, &Frame::split(&bytes).expect("a frame").0);
    for _ in 0..100 {
        publish(&mut sender, 0, 1_400);
    }
    // A socket that takes little at a time: a frame that was begun is finished at any rate.
    let write = |sender: &mut Sender, now: Nanos| {
        let mut written = 0;
        while let length @ 1.. = sender.stream_bytes(now, 1).len() {
            sender.stream_written(now, 1, length.min(1_000));
            written += length.min(1_000);
        }
        written
    };
    let burst = write(&mut sender, 1);
    assert!((1 << 16..(1 << 16) + 3_000).contains(&burst), "{burst}");
    let due = sender.next_deadline().expect("the rest waits");
    assert!((2..10 * MILLISECOND).contains(&due), "{due}");
    let more = write(&mut sender, 10 * MILLISECOND);
    assert!((7_000..12_000).contains(&more), "{more}");
    let now = 500 * MILLISECOND;
    write(&mut sender, now);
    assert!(sender.has_data_to_send(), "its window is full");
    sender.on_time(now);
    assert!(sender.next_deadline().is_some_and(|due| due > now));
}

#[test]
fn a_rate_makes_nothing_due_where_a_connection_is_missing() {
    let mut settings = settings(Distribution::Stream);
    (settings.data_rate, settings.window_bytes) = (Some(1_000), 1 << 20);
    let mut sender = sender(settings);
    sender.connect(1, 1, address(9));
    let bytes = join(1, 0, 0, 0, &["a"]);
    sender.on_stream_frame(1, 1, &Frame::split(&bytes).expect("a frame").0);
    for _ in 0..100 {
        publish(&mut sender, 0, 1_400);
    }
    while let length @ 1.. = sender.stream_bytes(1, 1).len() {
        sender.stream_written(1, 1, length.min(1_000));
    }
    sender.disconnect(1);
    let due = sender.next_deadline().expect("the rest waits");
    sender.on_time(due);
    assert!(sender.next_deadline().is_none_or(|next| next > due));
}
