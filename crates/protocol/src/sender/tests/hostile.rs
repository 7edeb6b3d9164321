//! Frames that are made to hurt.

use super::*;
use crate::rng::Rng;
use crate::sequence::before;

/// A frame of any kind, half of them in the name of receiver 1, with numbers near the true ones.
fn nonsense(rng: &mut Rng, near: u64) -> Vec<u8> {
    let pick = |rng: &mut Rng| match rng.below(3) {
        0 => rng.next_u64(),
        _ => near.wrapping_add(rng.below(64)).wrapping_sub(32),
    };
    let kind = Kind::from_number(1 + rng.below(14) as u8).expect("a kind");
    let (flags, sequence) = (rng.below(8) as u16, pick(rng));
    written((kind, flags), sequence, |writer| {
        let receiver = if rng.below(2) == 0 { 1 } else { rng.next_u64() };
        let mut fits = writer.add(&receiver.to_le_bytes());
        for _ in 0..rng.below(80) {
            fits = fits && writer.add(&pick(rng).to_le_bytes());
        }
    })
}

#[test]
fn no_frame_of_any_kind_makes_it_panic_or_believe_nonsense() {
    for distribution in
        [Distribution::Unicast, Distribution::Multicast(group()), Distribution::Stream]
    {
        let mut sender = sender(settings(distribution));
        sender.connect(0, 1, address(9));
        if distribution != Distribution::Stream {
            let_in(&mut sender, 1, 1, 0, &["a", "b"]);
        }
        let mut rng = Rng::new(3);
        for round in 0..20_000u64 {
            if round % 16 == 0 && sender.stage(0, 100).is_ok() {
                sender.publish();
                sender.flush();
            }
            let now = round * 1_000;
            let bytes = nonsense(&mut rng, sender.session.sent);
            let (frame, _) = Frame::split(&bytes).expect("a frame");
            match distribution {
                Distribution::Stream => sender.on_stream_frame(now, 1, &frame),
                _ => sender.on_frame(now, address(1), &frame),
            }
            sender.on_time(now);
            if round % 64 == 0 {
                sent(&mut sender, now);
                let count = sender.stream_bytes(2, 1).len();
                sender.stream_written(now, 1, count / 2);
            }
            let believed = |receiver: &ReceiverState| {
                before(sender.session.packetizer.visible(), receiver.consumed)
            };
            assert!(!sender.session.receivers.iter().any(believed));
        }
        assert!(sender.counters().malformed > 1_000);
        assert!(sender.session.receivers.len() <= 64);
    }
}

#[test]
fn joins_without_an_address_of_their_own_leave_nothing_behind() {
    let mut sender = sender(settings(Distribution::Unicast));
    for receiver in 0..50_000 {
        hear(&mut sender, 1, address(receiver as u16), &join(receiver, receiver, 0, 0, &["a"]));
    }
    assert!(sender.session.receivers.is_empty() && sender.counters().control_dropped > 40_000);
    assert!(sent(&mut sender, 1).len() <= 1_024);
}

#[test]
fn frames_of_other_sessions_are_only_counted() {
    let mut sender = sender(settings(Distribution::Unicast));
    let mut bytes = join(1, 0, 0, 0, &["a"]);
    bytes[8] ^= 1;
    hear(&mut sender, 1, address(1), &bytes);
    assert!(sent(&mut sender, 1).is_empty());
    assert_eq!(sender.counters().malformed, 1);
}
