//! Frames that keep the way to receivers warm: in silence, one an interval, and no more than that.

use super::*;
use crate::MICROSECOND;

const INTERVAL: Nanos = 100 * MICROSECOND;
/// A silence, and the frames in it: the first one follows an interval after its begin.
const SILENCE: Nanos = 50 * MILLISECOND;
const FRAMES: usize = (SILENCE / INTERVAL) as usize - 1;

fn warming(distribution: Distribution) -> Sender {
    sender(SenderSettings { keep_warm: Some(INTERVAL), ..settings(distribution) })
}

/// Whether it is a Session frame without topics, and asks nothing.
fn is_warming(bytes: &[u8]) -> bool {
    let (frame, _) = Frame::split(bytes).expect("a frame");
    if frame.kind != Kind::Session || frame.flags != 0 {
        return false;
    }
    let (_, rest) = frame.data().expect("a header");
    SessionBody::split(rest).is_some_and(|(_, heads)| heads.is_empty())
}

/// Runs from one deadline to the next; returns who was sent how many warming frames.
fn silence(sender: &mut Sender, from: Nanos, until: Nanos) -> Vec<(SocketAddr, usize)> {
    let (mut now, mut counts) = (from, Vec::<(SocketAddr, usize)>::new());
    while let Some(due) = sender.next_deadline().filter(|due| *due < until) {
        // Only the first one may have passed before.
        assert!(due > now || now == from, "a deadline that stays in the past");
        now = due.max(from + 1);
        sender.on_time(now);
        for (to, bytes) in sent(sender, now) {
            if !is_warming(&bytes) {
                continue;
            }
            assert!(bytes.len() <= 64, "{} bytes", bytes.len());
            match counts.iter_mut().find(|(address, _)| *address == to) {
                Some((_, count)) => *count += 1,
                None => counts.push((to, 1)),
            }
        }
    }
    counts
}

#[test]
fn a_group_gets_one_an_interval_in_silence() {
    let mut sender = warming(Distribution::Multicast(group()));
    assert_eq!(silence(&mut sender, 0, SILENCE), [], "there is no receiver");
    let from = SILENCE;
    let_in(&mut sender, from, 1, 0, &["a"]);
    let_in(&mut sender, from, 2, 0, &["a"]);
    let counts = silence(&mut sender, from, from + SILENCE);
    assert_eq!(counts.len(), 1, "{counts:?}");
    // The first one at once: the silence began before.
    assert!((FRAMES..=FRAMES + 2).contains(&counts[0].1), "{counts:?}");
}

#[test]
fn receivers_get_one_in_turn_and_only_those_with_topics() {
    let mut sender = warming(Distribution::Unicast);
    for receiver in 1..=4 {
        let_in(&mut sender, 1, receiver, 0, &["a"]);
    }
    let_in(&mut sender, 1, 5, 0, &["elsewhere"]);
    let counts = silence(&mut sender, 1, SILENCE);
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    assert!((FRAMES - 1..=FRAMES + 2).contains(&all), "{counts:?}");
    assert_eq!(counts.len(), 4, "{counts:?}");
    assert!(counts.iter().all(|(_, count)| count.abs_diff(FRAMES / 4) <= 2), "{counts:?}");
    for receiver in 1..=4 {
        hear(&mut sender, SILENCE, address(receiver as u16), &leave(receiver));
    }
    assert_eq!(silence(&mut sender, SILENCE, 2 * SILENCE), [], "no receiver is left");
}

#[test]
fn data_takes_the_place_of_the_frames() {
    for distribution in [Distribution::Unicast, Distribution::Multicast(group())] {
        let mut sender = warming(distribution);
        let start = let_in(&mut sender, 1, 1, 0, &["a"]);
        for number in 0..400 {
            let now = 2 + number * INTERVAL / 2;
            publish(&mut sender, 0, 24);
            sender.on_time(now);
            let warm = sent(&mut sender, now).iter().filter(|(_, it)| is_warming(it)).count();
            assert_eq!(warm, 0, "beside message {number}");
            let read = start.wrapping_add(number + 1);
            hear(&mut sender, now, address(1), &status(1, read, read.wrapping_add(64)));
        }
    }
}

#[test]
fn frames_that_a_full_socket_refuses_do_not_gather() {
    for distribution in [Distribution::Unicast, Distribution::Multicast(group())] {
        let mut sender = warming(distribution);
        let_in(&mut sender, 1, 1, 0, &["a"]);
        let mut now = 1;
        while now < SILENCE {
            now += INTERVAL;
            sender.on_time(now);
            // Looked at, but never sent.
            assert!(sender.next_transmit(now).is_some());
        }
        let warm = sent(&mut sender, now).iter().filter(|(_, it)| is_warming(it)).count();
        assert!(warm <= 1, "{warm}");
    }
}

#[test]
fn the_data_rate_holds_for_the_frames() {
    for distribution in [Distribution::Unicast, Distribution::Multicast(group())] {
        let settings = settings(distribution);
        // A tenth of what the frames would take, of at least 40 bytes each.
        let rate = 40 * (SECOND / INTERVAL) / 10;
        let settings =
            SenderSettings { keep_warm: Some(INTERVAL), data_rate: Some(rate), ..settings };
        let mut sender = sender(settings);
        let start = let_in(&mut sender, 1, 1, 0, &["a"]);
        let (mut warm, mut now) = (0, 1);
        while now < 10 * SECOND {
            now += INTERVAL;
            sender.on_time(now);
            let frames = sent(&mut sender, now);
            warm += frames
                .iter()
                .map(|(_, it)| it)
                .filter(|it| is_warming(it))
                .map(Vec::len)
                .sum::<usize>();
            // It stays joined.
            if now % (100 * MILLISECOND) < INTERVAL {
                hear(&mut sender, now, address(1), &status(1, start, start.wrapping_add(64)));
            }
        }
        // Half of a burst comes at first, the other half stays for data.
        let most = 10 * rate as usize + (32 << 10) + 64;
        assert!(
            (10 * rate as usize - 64..most).contains(&warm),
            "{warm} bytes, at {rate} a second"
        );
    }
}

#[test]
fn none_leaves_while_they_are_suspended() {
    let mut sender = warming(Distribution::Unicast);
    let_in(&mut sender, 1, 1, 0, &["a"]);
    sender.suspend_warming(true);
    assert_eq!(silence(&mut sender, 1, SILENCE), []);
    sender.suspend_warming(false);
    let counts = silence(&mut sender, SILENCE, 2 * SILENCE);
    assert!(counts[0].1 >= FRAMES, "{counts:?}");
}

#[test]
fn a_closed_session_sends_none() {
    let mut sender = warming(Distribution::Unicast);
    let_in(&mut sender, 1, 1, 0, &["a"]);
    sender.close(1);
    assert_eq!(silence(&mut sender, 1, SILENCE), []);
}

#[test]
fn a_connection_gets_them_unless_it_is_full() {
    let mut sender = warming(Distribution::Stream);
    let asks = join(1, 0, 0, 0, &["a"]);
    let (asks, _) = Frame::split(&asks).expect("a frame");
    sender.connect(1, 1, address(9));
    sender.on_stream_frame(1, 1, &asks);
    let (mut now, mut written) = (1, Vec::new());
    while now < SILENCE {
        now += INTERVAL;
        sender.on_time(now);
        let bytes = sender.stream_bytes(now, 1).to_vec();
        sender.stream_written(now, 1, bytes.len());
        written.extend(bytes);
    }
    let (mut rest, mut warm) = (&written[..], 0);
    while let Some((_, after)) = Frame::split(rest) {
        warm += usize::from(is_warming(&rest[..rest.len() - after.len()]));
        rest = after;
    }
    assert!(rest.is_empty() && warm.abs_diff(FRAMES) <= 5, "{warm}");
    let before = sender.counters().session_frames;
    while now < 2 * SILENCE {
        now += INTERVAL;
        sender.on_time(now);
    }
    // Frames of the heartbeat, and one that waits.
    let more = sender.counters().session_frames - before;
    assert!(more <= 4, "{more} frames on a connection that takes nothing");
}
