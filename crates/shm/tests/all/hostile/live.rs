//! Memory spoiled under the hands of those who use it.

use super::dice::Dice;
use super::{PATIENCE, Scene, WINDOW_BYTES, until};
use lanecast_carrier::{Carrier, ClaimError, Event, LossReason, Publish, Subscribe, Why};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, RING_LIVE_OFFSET, RingLive, SLOTS_OFFSET, Slot, TOPICS_OFFSET,
};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;

fn open(scene: &Scene, publisher: &impl Publish, kind: &str) -> File {
    let path = scene.path().join(format!("{}.{kind}", publisher.session()));
    File::options().read(true).write(true).open(path).expect("the session's file")
}

/// Spoils `length` bytes from `offset` on.
fn spoil(file: &File, dice: &mut Dice, offset: usize, length: usize) {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset as u64).expect("the bytes");
    dice.spoil(&mut bytes);
    file.write_all_at(&bytes, offset as u64).expect("the bytes");
}

#[test]
fn a_spoiled_gate_does_not_stop_the_publisher() {
    let mut dice = Dice::new();
    for scene in Scene::by_both_doors() {
        for case in 0..200 {
            let mut publisher = scene.domain.publisher("t").expect("a publisher");
            let mut subscriber = scene.domain.subscriber(&["t"]).expect("a subscriber");
            assert!(publisher.wait_for_subscribers(1, PATIENCE));
            let gate = open(&scene, &publisher, "gate");
            let mut left = false;
            for round in 0..20 {
                let slots = dice.below(2) == 0;
                let (offset, length) =
                    if slots { (SLOTS_OFFSET, size_of::<Slot>()) } else { (GATE_LIVE_OFFSET, 256) };
                spoil(&gate, &mut dice, offset, length);
                for _ in 0..20 {
                    match publisher.offer(&[round; 700]) {
                        Ok(()) | Err(ClaimError::BackPressured(_)) => {}
                        Err(other) => panic!("case {case}: {other}"),
                    }
                }
                subscriber.poll(64, |event| left |= matches!(event, Event::Left(..)));
            }
            drop(subscriber);
            // Whatever was written, the publisher frees itself.
            until("room", || publisher.offer(&[0; 8_000]).is_ok());
            assert!(publisher.drain(PATIENCE), "case {case}: nobody is left to read");
        }
    }
}

#[test]
fn a_cursor_of_nonsense_is_evicted_and_told() {
    for scene in Scene::by_both_doors() {
        let mut publisher = scene.domain.publisher("t").expect("a publisher");
        let mut subscriber = scene.domain.subscriber(&["t"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        publisher.send(b"before").expect("room");
        let gate = open(&scene, &publisher, "gate");
        let cursor = (SLOTS_OFFSET + offset_of!(Slot, cursor)) as u64;
        gate.write_all_at(&0x7777_7777_7777u64.to_le_bytes(), cursor).expect("the slot");
        for _ in 0..100 {
            publisher.send(&[1; 8_000]).expect("room, once the nonsense is evicted");
        }
        let mut told = Vec::new();
        until("the end", || {
            subscriber.poll(64, |event| match event {
                Event::Lost(gap) => told.push(format!("{:?}", gap.why)),
                Event::Left(_, why) => told.push(format!("left {why}")),
                _ => {}
            });
            told.len() == 2
        });
        assert_eq!(told, [format!("{:?}", LossReason::Evicted), format!("left {}", Why::Evicted)]);
    }
}

#[test]
fn a_commit_word_of_nonsense_is_told_as_damage() {
    for scene in Scene::by_both_doors() {
        let mut publisher = scene.domain.publisher("t").expect("a publisher");
        let mut subscriber = scene.domain.subscriber(&["t"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        publisher.send(b"whole").expect("room");
        publisher.send(b"spoiled").expect("room");
        let ring = open(&scene, &publisher, "ring");
        let data = ring.metadata().expect("its length").len() - WINDOW_BYTES;
        ring.write_all_at(&0xdead_beefu32.to_le_bytes(), data + 16).expect("the second frame");
        let mut told = Vec::new();
        until("the end", || {
            subscriber.poll(64, |event| match event {
                Event::Joined(_) => told.push("joined".to_owned()),
                Event::Message(message) => told.push(format!("{} bytes", message.bytes().len())),
                Event::Lost(gap) => told.push(format!("{:?} {}", gap.why, gap.first)),
                Event::Left(_, why) => told.push(format!("left {why}")),
                _ => {}
            });
            told.len() >= 4
        });
        assert_eq!(told, ["joined", "5 bytes", "Damaged 1", "left damaged"]);
        assert_eq!(subscriber.streams(), 0);
    }
}

#[test]
fn a_spoiled_ring_does_not_stop_the_subscriber() {
    let mut dice = Dice::new();
    for scene in Scene::by_both_doors() {
        for case in 0..400 {
            let mut publisher = scene.domain.publisher("t").expect("a publisher");
            let mut subscriber = scene.domain.subscriber(&["t", "u"]).expect("a subscriber");
            assert!(publisher.wait_for_subscribers(1, PATIENCE));
            let ring = open(&scene, &publisher, "ring");
            let data = ring.metadata().expect("its length").len() as usize - WINDOW_BYTES as usize;
            for round in 0..4 {
                for number in 0..20 {
                    match publisher.offer(&vec![number; usize::from(number) * 9]) {
                        Ok(()) | Err(ClaimError::BackPressured(_)) => {}
                        Err(other) => panic!("case {case}: {other}"),
                    }
                }
                match dice.below(3) {
                    0 => spoil(&ring, &mut dice, RING_LIVE_OFFSET, size_of::<RingLive>()),
                    1 => spoil(&ring, &mut dice, TOPICS_OFFSET, 8 * 256),
                    _ => spoil(&ring, &mut dice, data, 4_096 * (round + 1)),
                }
                // Whoever looks for a topic here looks at the spoiled table.
                drop(scene.domain.subscriber(&["v"]).expect("a subscriber"));
                for _ in 0..5 {
                    let work = subscriber.poll(64, |event| {
                        std::hint::black_box(&event);
                    });
                    if work > 0 {
                        subscriber.wait(work);
                    }
                }
            }
            drop(subscriber);
            until("room", || publisher.offer(&[0; 8_000]).is_ok());
        }
    }
}
