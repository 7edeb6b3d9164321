//! Replay windows, and the bound of senders.

use crate::{keys, keys_of_one_id};
use lanecast_sealing::{KeySchedule, Opener, Refusal, SealMark, Sealer, SharedKeys};

/// Counters that may come out of order.
const REACH: u64 = 63 * 64;

fn schedule(bytes: &[u8]) -> KeySchedule {
    KeySchedule::new(&keys(bytes), "test", b"")
}

/// A sealed frame: its mark, and its bytes with the tag.
fn sealed(by: &mut Sealer, text: &[u8]) -> (SealMark, Vec<u8>) {
    let (mark, mut bytes) = (by.next(), text.to_vec());
    let tag = by.seal(b"header", &mut bytes);
    bytes.extend(tag);
    (mark, bytes)
}

fn open(by: &mut Opener, (mark, bytes): &(SealMark, Vec<u8>)) -> Result<Vec<u8>, Refusal> {
    let mut bytes = bytes.clone();
    let length = by.open(*mark, b"header", &mut bytes, 0)?;
    Ok(bytes[..length].to_vec())
}

#[test]
fn frames_come_in_any_order_within_the_window_and_once() {
    let keys = schedule(&[1]);
    let (mut sealer, mut opener) = (Sealer::new(&keys, 7, 1_000), Opener::new(keys.clone()));
    let frames: Vec<_> = (0..=REACH).map(|_| sealed(&mut sealer, b"text")).collect();
    let newest = frames.len() - 1;
    assert_eq!(open(&mut opener, &frames[newest]), Ok(b"text".to_vec()));
    // One behind the window, the first within it, and the rest from the newest to the oldest.
    assert_eq!(open(&mut opener, &frames[0]), Err(Refusal::Repeated));
    for frame in frames[1..newest].iter().rev() {
        assert!(open(&mut opener, frame).is_ok());
        assert_eq!(open(&mut opener, frame), Err(Refusal::Repeated));
    }
    assert_eq!(open(&mut opener, &frames[newest]), Err(Refusal::Repeated));
}

#[test]
fn a_forged_counter_does_not_move_the_window() {
    let keys = schedule(&[1]);
    let (mut sealer, mut opener) = (Sealer::new(&keys, 7, 0), Opener::new(keys.clone()));
    let (first, second) = (sealed(&mut sealer, b"one"), sealed(&mut sealer, b"two"));
    assert!(open(&mut opener, &first).is_ok());
    for counter in [1 << 40, u64::MAX - 1, u64::MAX] {
        let mut forged = second.clone();
        forged.0.counter = counter;
        assert!(open(&mut opener, &forged).is_err(), "{counter}");
    }
    assert_eq!(open(&mut opener, &second), Ok(b"two".to_vec()));
}

#[test]
fn strangers_take_no_place_and_of_many_senders_the_silent_ones_give_way() {
    let keys = schedule(&[1]);
    let mut opener = Opener::new(keys.clone());
    let forged = (SealMark { key: sealed_key(&keys), sender: 5, counter: 0 }, vec![0; 16]);
    assert_eq!(open(&mut opener, &forged), Err(Refusal::Forged));
    assert_eq!(opener.senders(), 0);

    let mut first = Sealer::new(&keys, 0, 0);
    let frame = sealed(&mut first, b"");
    assert!(open(&mut opener, &frame).is_ok());
    for sender in 1..4_200 {
        assert!(open(&mut opener, &sealed(&mut Sealer::new(&keys, sender, 0), b"")).is_ok());
        // The first one keeps speaking.
        assert!(open(&mut opener, &sealed(&mut first, b"")).is_ok());
    }
    assert_eq!(opener.senders(), 4_096);
    assert_eq!(open(&mut opener, &frame), Err(Refusal::Repeated), "it is still remembered");
}

fn sealed_key(keys: &KeySchedule) -> u16 {
    Sealer::new(keys, 0, 0).next().key
}

#[test]
fn purposes_contexts_and_keys_have_nothing_in_common() {
    let text = sealed(&mut Sealer::new(&schedule(&[1]), 7, 0), b"text");
    for other in [
        KeySchedule::new(&keys(&[1]), "other", b""),
        KeySchedule::new(&keys(&[1]), "test", b"context"),
    ] {
        assert_eq!(open(&mut Opener::new(other), &text), Err(Refusal::Forged));
    }
    assert_eq!(open(&mut Opener::new(schedule(&[2])), &text), Err(Refusal::UnknownKey));
}

#[test]
fn a_key_that_returns_sees_no_counter_twice() {
    let (one, two) = (schedule(&[1]), schedule(&[2, 1]));
    let (mut sealer, mut opener) = (Sealer::new(&one, 7, 0), Opener::new(two.clone()));
    let old = sealed(&mut sealer, b"old");
    assert!(open(&mut opener, &old).is_ok());
    sealer.set_keys(&two);
    assert!(open(&mut opener, &sealed(&mut sealer, b"new")).is_ok());
    sealer.set_keys(&one);
    assert_eq!(sealer.next().counter, 2);
    assert!(open(&mut opener, &sealed(&mut sealer, b"old key")).is_ok());
    // Keys that stay keep what was seen under them; those that go are unknown.
    opener.set_keys(one);
    assert_eq!(open(&mut opener, &old), Err(Refusal::Repeated));
    opener.set_keys(schedule(&[2]));
    assert_eq!(open(&mut opener, &old), Err(Refusal::UnknownKey));
    // A rotation that is taken back brings the counters back, and with them what was recorded.
    opener.set_keys(schedule(&[1]));
    assert_eq!(open(&mut opener, &old), Err(Refusal::Repeated));
    assert!(open(&mut opener, &sealed(&mut sealer, b"more")).is_ok());
    // Senders under keys that are gone count against the limit, and give way as all silent ones.
    opener.set_keys(schedule(&[2]));
    for sender in 10..4_106 {
        let frame = sealed(&mut Sealer::new(&schedule(&[2]), sender, 0), b"");
        assert!(open(&mut opener, &frame).is_ok());
    }
    assert_eq!(opener.senders(), 4_096);
}

/// A file with both is refused in words; between hosts such frames are what they are: forged.
#[test]
fn two_keys_of_one_id_open_nothing_of_each_other() {
    let lines = keys_of_one_id();
    let refusal = SharedKeys::parse(&lines.join("\n")).expect_err("one id").to_string();
    assert!(refusal.starts_with("line 2 holds a key whose id an earlier one has"), "{refusal}");
    let [one, other] =
        lines.map(|line| KeySchedule::new(&SharedKeys::parse(&line).expect("a key"), "test", b""));
    assert_eq!(sealed_key(&one), sealed_key(&other));
    let (mut sealer, mut opener) = (Sealer::new(&one, 7, 0), Opener::new(one.clone()));
    let old = sealed(&mut sealer, b"old");
    assert!(open(&mut opener, &old).is_ok());
    assert_eq!(open(&mut Opener::new(other.clone()), &old), Err(Refusal::Forged));
    // A change to the other one, and back: what was recorded in between is not taken again.
    sealer.set_keys(&other);
    let new = sealed(&mut sealer, b"new");
    assert_eq!(open(&mut opener, &new), Err(Refusal::Forged));
    opener.set_keys(other);
    assert_eq!(open(&mut opener, &old), Err(Refusal::Forged));
    assert!(open(&mut opener, &new).is_ok());
    // Neither key while both counters are remembered.
    opener.set_keys(schedule(&[1]));
    assert_eq!(opener.senders(), 2);
    opener.set_keys(one);
    assert_eq!(open(&mut opener, &old), Err(Refusal::Repeated));
}
