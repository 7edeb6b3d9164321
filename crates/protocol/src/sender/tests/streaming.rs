//! Connections.

use super::*;

fn hear_on(sender: &mut Sender, now: Nanos, link: u64, bytes: &[u8]) {
    let (frame, _) = Frame::split(bytes).expect("a frame");
    sender.on_stream_frame(now, link, &frame);
}

/// Takes what there is, in portions of at most `portion` bytes.
fn take(sender: &mut Sender, link: u64, portion: usize) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let bytes = sender.stream_bytes(2, link);
        let count = bytes.len().min(portion);
        all.extend_from_slice(&bytes[..count]);
        if count == 0 {
            return all;
        }
        sender.stream_written(2, link, count);
    }
}

/// The sequences of the data frames in a stream that consists of whole frames.
fn data(mut bytes: &[u8]) -> Vec<u64> {
    let mut sequences = Vec::new();
    while !bytes.is_empty() {
        let (frame, rest) = Frame::split(bytes).expect("whole frames");
        if frame.kind == Kind::Data {
            sequences.push(frame.sequence);
        }
        bytes = rest;
    }
    sequences
}

/// A sender with one connection, whose receiver wants the topic "a".
fn connected(pacing: Pacing) -> Sender {
    let mut sender = sender(SenderSettings { pacing, ..settings(Distribution::Stream) });
    sender.connect(1, 1, address(9));
    hear_on(&mut sender, 1, 1, &join(1, 0, 0, 0, &["a"]));
    assert_eq!(sender.receivers(), 1, "a connection needs no challenge");
    sender
}

#[test]
fn streams_are_whole_frames_however_they_are_taken() {
    for portion in [1, 7, 100, 100_000] {
        let mut sender = connected(Pacing::Slowest);
        let start = sender.session.packetizer.visible();
        for number in 0..50 {
            publish(&mut sender, number % 2, 100 + number as usize);
            if number % 7 == 0 {
                sender.probe(u64::from(number) * SECOND);
            }
        }
        let taken = take(&mut sender, 1, portion);
        let expected: Vec<u64> = (0..25).map(|number| start.wrapping_add(number)).collect();
        assert_eq!(data(&taken), expected, "b is not wanted, and takes no number");
    }
}

#[test]
fn a_frame_that_was_begun_is_finished_though_the_window_rolls() {
    let mut sender = connected(Pacing::None);
    take(&mut sender, 1, 1_000);
    publish(&mut sender, 0, 1_000);
    let mut taken = sender.stream_bytes(2, 1)[..10].to_vec();
    sender.stream_written(2, 1, 10);
    for _ in 0..1_000 {
        publish(&mut sender, 0, 1_000);
    }
    taken.extend(take(&mut sender, 1, 999));
    let sequences = data(&taken);
    assert!(sequences.len() < 100, "{}", sequences.len());
    assert!(sequences[1].wrapping_sub(sequences[0]) > 500, "what it missed is lost");
}

#[test]
fn a_connection_that_broke_is_resumed() {
    let mut sender = connected(Pacing::Slowest);
    let start = sender.session.packetizer.visible();
    for _ in 0..10 {
        publish(&mut sender, 0, 100);
    }
    take(&mut sender, 1, 1_000);
    sender.disconnect(1);
    assert_eq!(sender.receivers(), 1, "it may come back");
    publish(&mut sender, 0, 100);
    assert!(sender.stream_bytes(2, 1).is_empty());
    sender.connect(3, 2, address(9));
    hear_on(&mut sender, 3, 2, &join(1, 0, flag::RESUME, start.wrapping_add(4), &["a"]));
    let taken = take(&mut sender, 2, 1_000);
    let sequences: Vec<u64> = data(&taken).iter().map(|one| one.wrapping_sub(start)).collect();
    assert_eq!(sequences, [4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(sender.receivers(), 1);
}

#[test]
fn a_removed_receiver_is_told_before_its_connection_closes() {
    let mut sender = connected(Pacing::SlowestOrEject(200 * MILLISECOND));
    take(&mut sender, 1, 1_000);
    assert!(!sender.has_rejected_connections(), "no receiver was ejected");
    while sender.stage(0, 1_000).is_ok() {
        sender.publish();
        sender.flush();
    }
    let mut now = MILLISECOND;
    while sender.receivers() == 1 {
        now += MILLISECOND;
        sender.on_time(now);
        assert!(now < SECOND, "no receiver is ejected");
    }
    assert!(sender.has_rejected_connections(), "it has not heard of it");
    let taken = take(&mut sender, 1, 100_000);
    let mut rest = &taken[..];
    let mut last = None;
    while let Some((frame, after)) = Frame::split(rest) {
        (last, rest) = (Some((frame.kind, frame.flags)), after);
    }
    assert_eq!(last, Some((Kind::Eject, flag::STALLED)));
    assert!(sender.has_rejected_connections(), "it may lie in the system's buffers");
    sender.disconnect(1);
    assert!(!sender.has_rejected_connections());
}

#[test]
fn a_connection_without_a_receiver_is_overdue_after_the_liveness() {
    let mut sender = connected(Pacing::Slowest);
    let liveness = sender.session.settings.liveness;
    sender.connect(5, 2, address(9));
    assert_eq!(sender.unjoined_connections().collect::<Vec<_>>(), [2]);
    assert!(sender.next_deadline().is_some_and(|due| due <= 5 + liveness));
    assert_eq!(sender.overdue_connection(4 + liveness), None);
    assert_eq!(sender.overdue_connection(5 + liveness), Some(2));
    sender.disconnect(2);
    assert_eq!(sender.overdue_connection(Nanos::MAX), None, "the other has joined");
    // Its receiver comes by another connection: the former one has none.
    sender.connect(6, 3, address(9));
    hear_on(&mut sender, 7, 3, &join(1, 0, flag::RESUME, 0, &["a"]));
    assert_eq!(sender.unjoined_connections().collect::<Vec<_>>(), [1]);
    assert_eq!(sender.overdue_connection(7 + liveness), Some(1));
    // It falls silent: its connection does not stay for ever either.
    sender.disconnect(1);
    (8..12).for_each(|quarters| sender.on_time(quarters * liveness / 4));
    assert_eq!((sender.receivers(), sender.unjoined_connections().count()), (0, 1));
}

#[test]
fn connections_that_stay_silent_take_no_places_of_receivers() {
    let mut sender = connected(Pacing::Slowest);
    let most = (sender.session.settings.receivers_max + UNJOINED_MAX) as u64;
    (2..=2 * most).for_each(|link| sender.connect(5, link, address(9)));
    assert_eq!(sender.unjoined_connections().count() as u64, most - 1);
}

#[test]
fn resuming_over_and_over_searches_no_more_than_its_budget() {
    let mut sender = connected(Pacing::Slowest);
    let start = sender.session.packetizer.visible();
    (0..200).for_each(|_| publish(&mut sender, 0, 10));
    // Topic "b" is in none of them: each time all are searched.
    let resume = join(1, 0, flag::RESUME, start, &["a", "b"]);
    let before = sender.counters().joins_deferred;
    (0..10_000).for_each(|_| hear_on(&mut sender, 2, 1, &resume));
    let refused = sender.counters().joins_deferred - before;
    assert!(refused > 9_000, "only {refused} were put off");
    hear_on(&mut sender, 2 + SECOND, 1, &resume);
    assert_eq!(sender.counters().joins_deferred - before, refused, "later it is answered");
}
