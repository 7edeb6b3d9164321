//! Frames that no resolver sends.

use super::*;
use crate::MILLISECOND;
use crate::rng::Rng;
use lanecast_transport::TopicPattern;

fn announcement(session: u64) -> Announcement {
    Announcement {
        session,
        transport: SessionTransport::Unicast,
        control: SocketAddr::from(([0, 0, 0, 0], 4_000)),
        group: None,
        host: 1,
        domain: 0,
        pid: 9,
        datagram_bytes: 1_472,
    }
}

#[test]
fn hostile_frames_neither_panic_nor_grow() {
    let mut rng = Rng::new(11);
    let settings = ResolverSettings { resolver: 1, topics_max: 100, ..ResolverSettings::default() };
    let mut it = Resolver::new(settings, 0);
    it.subscribe("a").expect("a name");
    it.publish(announcement(0x5e55), "b").expect("a name");
    let mut found = 0;
    for round in 0..100_000 {
        let mut buffer = [0; 512];
        let kind = if round % 2 == 0 { Kind::Advert } else { Kind::Query };
        let mut writer = FrameWriter::new(&mut buffer, kind, 0, rng.next_u64(), 0);
        match kind {
            Kind::Advert => {
                let flags = (rng.below(40) == 0).into();
                let mut entry = announcement(rng.below(300)).entry(flags);
                entry.transport = rng.below(5) as u8;
                let mut open = writer.add_entry(entry, 1).expect("room");
                let name = ["a", "b", "c"][rng.below(3) as usize];
                assert!(writer.add_entry_name(&mut open, name));
            }
            _ => assert!(writer.add_name("b") && writer.add_name("a")),
        }
        let length = writer.finish();
        for _ in 0..rng.below(4) {
            let at = 24 + rng.below(length as u64 - 24) as usize;
            buffer[at] = rng.next_u64() as u8;
        }
        let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
        let now = round * MILLISECOND;
        it.on_frame(now, SocketAddr::from(([10, 0, 0, 3], 14_390)), &frame);
        found += std::iter::from_fn(|| it.next_event()).count();
        let mut buffer = [0; DATAGRAM_MIN];
        while it.next_transmit(now, &mut buffer).is_some() {}
    }
    let ResolverCounters { overflowed, malformed, frames: heard, adverts, .. } = *it.counters();
    assert!(found > 0 && overflowed > 0 && malformed > 0 && heard == 100_000);
    assert!((1_000..=20_000).contains(&adverts), "at most one per 5 ms: {adverts}");
    let kept = it.state.subscriptions.publishers("a").map(|(_, publishers)| publishers.len());
    assert!(kept.is_some_and(|kept| kept <= 100), "{kept:?}");
}

/// A resolver's Advert of these sessions, each of one topic.
fn hear(it: &mut Resolver, sessions: &[(u64, &str)]) {
    let mut buffer = [0; 512];
    let mut writer = FrameWriter::new(&mut buffer, Kind::Advert, 0, 7, 0);
    for (session, topic) in sessions {
        let mut open = writer.add_entry(announcement(*session).entry(0), 1).expect("room");
        assert!(writer.add_entry_name(&mut open, topic));
    }
    let length = writer.finish();
    let (frame, _) = Frame::split(&buffer[..length]).expect("a frame");
    it.on_frame(0, SocketAddr::from(([10, 0, 0, 3], 14_390)), &frame);
}

fn found(it: &mut Resolver) -> Vec<(u64, String)> {
    let found = std::iter::from_fn(|| it.next_event()).filter_map(|event| match event {
        ResolverEvent::Found { announcement, topic } => {
            Some((announcement.session, topic.to_string()))
        }
        ResolverEvent::Gone { .. } => None,
    });
    found.collect()
}

#[test]
fn topics_without_room_are_reported_again_and_joined_ones_stay() {
    let mut it = Resolver::new(ResolverSettings { resolver: 1, ..Default::default() }, 0);
    let pattern = TopicPattern::wildcard("a.*").expect("a pattern");
    let selection = TopicSelection::of_patterns(vec![pattern], 1);
    it.subscribe_pattern(1, &selection);
    let both = [(1, "a.1"), (2, "a.2")];
    hear(&mut it, &both);
    let told = both.map(|(session, topic)| (session, topic.to_owned()));
    assert_eq!(found(&mut it), told);
    // The subscriber has joined the first, and refused the second.
    let mut admitted = selection.admission();
    assert!(admitted.admit("a.1") && !admitted.admit("a.2"));
    hear(&mut it, &both);
    assert_eq!(found(&mut it), []);
    // A subscriber by name, and another pattern, come and go.
    it.subscribe("a.1").expect("a name");
    it.unsubscribe("a.1");
    it.subscribe_pattern(2, &selection);
    it.unsubscribe_pattern(2);
    found(&mut it);
    drop(admitted);
    it.find_again(1);
    assert_eq!(found(&mut it), told);
    it.find_again(2);
    assert_eq!(found(&mut it), [], "it is gone");
}
