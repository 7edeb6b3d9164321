//! Memory damaged while publishers and subscribers use it.

use super::rng::Rng;
use super::{PATIENCE, Scene, WINDOW_BYTES, until};
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_os::LockByte;
use lanecast_transport::{
    ClaimError, CloseReason, Event, LossReason, Overwritten, Publish, Subscribe, Transport,
};
use lanecast_wire::shm::{
    GATE_LIVE_OFFSET, GateLive, RING_LIVE_OFFSET, RingLive, SLOT_BYTES, SLOTS_OFFSET, Slot,
    TOPICS_OFFSET,
};
use std::fs::File;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

fn open(scene: &Scene, publisher: &impl Publish, kind: &str) -> File {
    let path = scene.path().join(format!("{}.{kind}", publisher.session()));
    File::options().read(true).write(true).open(path).expect("the session's file")
}

/// Spoils `length` bytes from `offset` on.
fn spoil(file: &File, rng: &mut Rng, offset: usize, length: usize) {
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, offset as u64).expect("the bytes");
    rng.spoil(&mut bytes);
    file.write_all_at(&bytes, offset as u64).expect("the bytes");
}

#[test]
fn a_spoiled_gate_does_not_stop_the_publisher() {
    let mut rng = Rng::new();
    for scene in Scene::remote_and_local() {
        for case in 0..200 {
            let mut publisher = scene.domain.publisher("t").expect("a publisher");
            let mut subscriber = scene.domain.subscriber(&["t"]).expect("a subscriber");
            assert!(publisher.wait_for_subscribers(1, PATIENCE));
            let gate = open(&scene, &publisher, "gate");
            let mut left = false;
            for round in 0..20 {
                let slots = rng.below(2) == 0;
                let (offset, length) =
                    if slots { (SLOTS_OFFSET, size_of::<Slot>()) } else { (GATE_LIVE_OFFSET, 256) };
                spoil(&gate, &mut rng, offset, length);
                for _ in 0..20 {
                    match publisher.try_send(&[round; 700]) {
                        Ok(()) | Err(ClaimError::BackPressured(_)) => {}
                        Err(other) => panic!("case {case}: {other}"),
                    }
                }
                subscriber.poll(64, |event| left |= matches!(event, Event::Left(..)));
            }
            drop(subscriber);
            // The publisher evicts the reader, regardless of the damage.
            until("room", || publisher.try_send(&[0; 8_000]).is_ok());
            assert!(
                !publisher.drain(PATIENCE).timed_out(),
                "case {case}: no subscriber is left to read"
            );
        }
    }
}

#[test]
fn a_reader_with_an_invalid_cursor_is_evicted_and_told() {
    for scene in Scene::remote_and_local() {
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
                Event::Lost(gap) => {
                    assert_eq!((gap.first, gap.count), (0, 101), "all that was published");
                    told.push(format!("{:?}", gap.why));
                }
                Event::Left(_, why) => told.push(format!("left {why}")),
                _ => {}
            });
            told.len() == 2
        });
        assert_eq!(
            told,
            [format!("{:?}", LossReason::Evicted), format!("left {}", CloseReason::Evicted)]
        );
    }
}

/// A process of the group that holds a slot and writes its words without reading messages.
struct Scribbler {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Scribbler {
    /// Writes `words` of each turn, a cursor and a lease, into slot `index`.
    fn start(gate: File, index: usize, words: fn(u64) -> (u64, u64)) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let lock =
            LockByte::try_take(gate, 1 + index as u64).expect("locks work").expect("a place");
        let at = |offset: usize| (SLOTS_OFFSET + index * SLOT_BYTES + offset) as u64;
        let (cursor_at, lease_at) = (at(offset_of!(Slot, cursor)), at(offset_of!(Slot, lease)));
        let used_at = (GATE_LIVE_OFFSET + offset_of!(GateLive, used)) as u64;
        let write = move |turn| {
            let (cursor, lease) = words(turn);
            lock.file().write_all_at(&cursor.to_le_bytes(), cursor_at).expect("the slot");
            lock.file().write_all_at(&lease.to_le_bytes(), lease_at).expect("the slot");
            lock.file().write_all_at(&u64::MAX.to_le_bytes(), used_at).expect("the gate");
        };
        write(0);
        let thread = std::thread::spawn(move || {
            for turn in 1.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                write(turn);
                // The pace of its lies: often within the liveness.
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Self { over, thread: Some(thread) }
    }
}

impl Drop for Scribbler {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Neither an arbitrary new cursor nor a new lease is progress.
#[test]
fn a_reader_that_moves_without_reading_is_evicted() {
    let scribblers: [fn(u64) -> (u64, u64); 3] = [
        |turn| (0x7777_7777_7777 + 16 * turn, 1),
        |turn| (0x7777_7777_7777, 2 * turn + 1),
        |turn| (if turn % 2 == 0 { 0 } else { u64::MAX - 16 * turn }, 2 * turn + 1),
    ];
    for scene in Scene::remote_and_local() {
        for words in scribblers {
            let mut publisher = scene.domain.publisher("t").expect("a publisher");
            let _scribbler = Scribbler::start(open(&scene, &publisher, "gate"), 5, words);
            // Ten windows.
            for _ in 0..80 {
                until("room", || publisher.try_send(&[1; 8_000]).is_ok());
            }
        }
    }
}

/// Without an eviction policy messages are read in place; a process that writes another's slot can
/// have them overwritten, and the copy reports that.
#[test]
fn a_message_overwritten_in_the_handler_is_reported() {
    for scene in Scene::remote_and_local() {
        let mut publisher = scene.domain.publisher("t").expect("a publisher");
        let mut subscriber = scene.domain.subscriber(&["t"]).expect("a subscriber");
        assert!(publisher.wait_for_subscribers(1, PATIENCE));
        publisher.send(b"mine").expect("room");
        let gate = open(&scene, &publisher, "gate");
        let cursor = (SLOTS_OFFSET + offset_of!(Slot, cursor)) as u64;
        let mut copies = Vec::new();
        until("the message", || {
            subscriber.poll(1, |event| {
                let Event::Message(message) = event else { return };
                copies.push(message.to_vec());
                gate.write_all_at(&0x7777_7777_7777u64.to_le_bytes(), cursor).expect("the slot");
                (0..20).for_each(|_| publisher.send(&[1; 8_000]).expect("room"));
                copies.push(message.to_vec());
            });
            !copies.is_empty()
        });
        assert_eq!(copies, [Ok(b"mine".to_vec()), Err(Overwritten)]);
    }
}

#[test]
fn an_invalid_commit_word_is_reported_as_damage() {
    for scene in Scene::remote_and_local() {
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
                Event::Lost(gap) => {
                    told.push(format!("{:?} {}+{}", gap.why, gap.first, gap.count));
                }
                Event::Left(_, why) => told.push(format!("left {why}")),
                _ => {}
            });
            told.len() >= 4
        });
        assert_eq!(told, ["joined", "5 bytes", "Damaged 1+1", "left damaged"]);
        assert_eq!(subscriber.streams(), 0);
    }
}

#[test]
fn a_spoiled_ring_does_not_stop_the_subscriber() {
    let mut rng = Rng::new();
    for scene in Scene::remote_and_local() {
        for case in 0..400 {
            let mut publisher = scene.domain.publisher("t").expect("a publisher");
            let mut subscriber = scene.domain.subscriber(&["t", "u"]).expect("a subscriber");
            assert!(publisher.wait_for_subscribers(1, PATIENCE));
            let ring = open(&scene, &publisher, "ring");
            let data = ring.metadata().expect("its length").len() as usize - WINDOW_BYTES as usize;
            for round in 0..4 {
                for number in 0..20 {
                    match publisher.try_send(&vec![number; usize::from(number) * 9]) {
                        Ok(()) | Err(ClaimError::BackPressured(_)) => {}
                        Err(other) => panic!("case {case}: {other}"),
                    }
                }
                match rng.below(3) {
                    0 => spoil(&ring, &mut rng, RING_LIVE_OFFSET, size_of::<RingLive>()),
                    1 => spoil(&ring, &mut rng, TOPICS_OFFSET, 8 * 256),
                    _ => spoil(&ring, &mut rng, data, 4_096 * (round + 1)),
                }
                // A subscriber that searches for a topic reads the damaged table.
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
            until("room", || publisher.try_send(&[0; 8_000]).is_ok());
        }
    }
}
