//! A held run in the model: its messages are not overwritten, and those it did not yield come
//! again. If the publisher evicts its holder, no byte that it overwrites passes for a message.
//!
//! `ShmRun` and `CopiedRun` share memory with the publisher through `RingReader` alone, whose code
//! these models run: `walk`, `peek_at` and `step` while a run is held, `pass_to` and `release` when
//! it is dropped, `is_evicted` after copying, and the lease that each message carries. All else in
//! them is cells of the subscriber's thread (what was yielded, numbers, limits), which the
//! conformance suite tests. The drop's release hands the cursor over as that of a poll: with a
//! sleeping writer here, with the descriptor of a refused claim in `descriptor`. The death of a
//! holder is that of any reader (`a_slot_gets_a_new_owner`).

use super::{
    LENGTH, LONG, LONGEST, Reader, Writer, check, check_sleep, publish, read, read_all, start,
};
use crate::memory::Memory;
use crate::ring_reader::{Next, RingReader, Walk};
use crate::ring_writer::Eviction;
use lanecast_base::Position;
use lanecast_transport::{Lease, Message, SessionId, Stream, TopicId};
use lanecast_wire::shm::frame_bytes;
use loom::sync::Arc;
use loom::thread;

/// Steps over the next message of `walk`, if there is one, and returns its body's position.
fn step(reader: &Reader, walk: &mut Walk) -> Option<Position> {
    let Next::Frame(frame) = reader.peek_at(walk) else { return None };
    reader.step(walk, frame.length);
    Some(frame.body)
}

#[test]
fn a_held_run_is_not_overwritten() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let _ = publish(&mut writer, 3) && publish(&mut writer, 4);
        });
        let mut walk = reader.walk();
        let held = [(); 2].map(|()| step(&reader, &mut walk).expect("both are committed"));
        // Read only now, as from a run that is held, and again.
        for _ in 0..2 {
            assert_eq!(held.map(|body| model.bodies.read(body)), [1, 2]);
        }
        // The drop of the run: only the first event was yielded.
        let mut yielded = reader.walk();
        step(&reader, &mut yielded);
        reader.pass_to(yielded);
        reader.release();
        assert_eq!(read(&mut reader, &model.bodies), Some(2), "it comes again");
        sender.join().unwrap();
    });
}

/// A writer that sleeps until there is room is woken by the drop of the run, and writes over its
/// messages only then.
#[test]
fn a_dropped_run_wakes_a_sleeping_writer() {
    check_sleep(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let end = writer.at().plus(frame_bytes(u64::from(LENGTH)));
            while !writer.has_space(end) {
                writer.sleep(LONG, |writer| writer.has_space(end));
            }
            assert!(publish(&mut writer, 3));
        });
        let mut walk = reader.walk();
        let held = [(); 2].map(|()| step(&reader, &mut walk).expect("both are committed"));
        assert_eq!(held.map(|body| model.bodies.read(body)), [1, 2]);
        reader.pass_to(walk);
        reader.release();
        read_all(&mut reader, &model.bodies, 3, 1);
        sender.join().unwrap();
    });
}

/// Evicts the only reader, and writes over the first of the two messages that it has not passed.
fn evict_and_overwrite(mut writer: Writer) {
    let (index, lease, _) = writer.gating_readers().next().unwrap();
    writer.evict(index, lease, Eviction::Stalled);
    writer.update_limit();
    let bytes = frame_bytes(u64::from(LENGTH));
    assert!(writer.has_space(writer.at().plus(bytes)));
    writer.memory().bodies.garble(writer.at(), 3);
    writer.commit(writer.at(), 0, LENGTH, bytes);
    assert!(writer.has_space(writer.at().plus(bytes)), "the evicted reader gates no more");
    writer.memory().bodies.garble(writer.at(), 4);
}

/// As `CopiedRun::copy`: the messages are copied one after another, and then the lease is looked
/// at.
#[test]
fn a_copied_run_is_whole_or_its_reader_is_evicted() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || evict_and_overwrite(writer));
        let (mut walk, mut copies) = (reader.walk(), Vec::new());
        while copies.len() < 2
            && let Some(body) = step(&reader, &mut walk)
        {
            copies.push(model.bodies.glimpse(body));
        }
        if reader.is_evicted() {
            assert!(!matches!(reader.peek(), Next::Frame(_)), "a message after an eviction");
        } else {
            assert_eq!(copies, [1, 2], "whole copies, without an eviction");
            // Held, and then dropped: the next look finds the eviction, or the next message.
            reader.pass_to(walk);
            reader.release();
            assert!(!matches!(reader.peek(), Next::Frame(_)), "a message after an eviction");
        }
        sender.join().unwrap();
        assert!(reader.is_evicted(), "in the end");
    });
}

/// As `ShmRun` without a policy, whose messages are read in place: each of them tells.
#[test]
fn a_run_in_place_tells_of_its_eviction() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || evict_and_overwrite(writer));
        let mut walk = reader.walk();
        if let Some(body) = step(&reader, &mut walk) {
            let (topic, source) = ("t".to_owned(), "shm:1".to_owned());
            let (session, topic_id) = (SessionId(1), TopicId(0));
            let stream = Stream { session, topic, topic_id, pid: 1, source };
            let lease = Lease::until(&model.ring().evicted[reader.index()], reader.lease());
            let message = Message::new(b"", &stream, 0, lease);
            // Twice, as from a run that is held.
            for _ in 0..2 {
                let number = model.bodies.glimpse(body);
                assert!(number == 1 || !message.is_intact(), "overwritten, and taken for intact");
            }
        }
        sender.join().unwrap();
    });
}
