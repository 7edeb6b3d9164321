//! The protocol between ring writer and ring readers, explored by loom: the code of products, on
//! the model checker's memory.
//!
//! The body of a message is an `UnsafeCell`, so a reader that reads too early, or a writer that
//! overwrites too early, is reported as a data race. Run by `make test`:
//! `cargo test --config tests/loom.toml -p lanecast-shm --lib`.

mod descriptor;
mod held_run;
mod memory;
mod room;
mod stop;

use self::memory::{Bodies, Model};
use crate::memory::Memory;
use crate::ring_reader::{Next, RingReader};
use crate::ring_writer::{Eviction, RingWriter};
use crate::slot_roster::SlotRoster;
use lanecast_base::Position;
use lanecast_base::sync::{Ordering, without_light_fences};
use lanecast_transport::{DepartureReason, PublisherEvent};
use lanecast_wire::shm::frame_bytes;
use loom::sync::Arc;
use loom::thread;

const TOPIC: u32 = 0;
const LENGTH: u32 = 8;
const LONGEST: u32 = 8;
const LONG: std::time::Duration = std::time::Duration::from_secs(1);

type Writer = RingWriter<Arc<Model>>;
type Reader = RingReader<Arc<Model>>;

/// Explores a model without sleepers.
fn check(model: impl Fn() + Sync + Send + 'static) {
    without_light_fences(|| check_sleep(model));
}

/// Explores a model with sleepers, whose light fences are full ones.
fn check_sleep(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    if builder.preemption_bound.is_none() {
        builder.preemption_bound = Some(3);
    }
    builder.check(model);
}

/// Writes and commits a message, if there is space.
fn publish(writer: &mut Writer, number: u64) -> bool {
    let at = writer.at();
    if !writer.has_space(at.plus(frame_bytes(u64::from(LENGTH)))) {
        return false;
    }
    writer.memory().bodies.write(at, number);
    writer.commit(writer.at(), TOPIC, LENGTH, frame_bytes(u64::from(LENGTH)));
    true
}

/// Reads one message, if there is one.
fn read(reader: &mut Reader, bodies: &Bodies) -> Option<u64> {
    match reader.peek() {
        Next::Frame(frame) => {
            assert_eq!((frame.topic.topic(), frame.length), (TOPIC, LENGTH));
            reader.pass(frame.length);
            let number = bodies.read(frame.body);
            // Messages are numbered from 1 and take 16 bytes: a stale one has another number.
            assert_eq!(number, frame.body.get() / 16 + 1);
            Some(number)
        }
        Next::Empty => None,
        Next::Broken => panic!("a frame that was never written"),
    }
}

/// Reads until `count` messages have come, in order from `first` on.
fn read_all(reader: &mut Reader, bodies: &Bodies, first: u64, count: u64) {
    let mut expected = first;
    while expected < first + count {
        match read(reader, bodies) {
            Some(number) => {
                assert_eq!(number, expected);
                expected += 1;
                reader.release();
            }
            None => thread::yield_now(),
        }
    }
}

fn start(frames: usize, slots: usize) -> (Arc<Model>, Writer) {
    let model = Arc::new(Model::new(frames, slots));
    let mut writer = RingWriter::new(Arc::clone(&model), Position::new(0));
    writer.add_topic();
    model.ring().topics.store(1, Ordering::Relaxed);
    (model, writer)
}

#[test]
fn a_committed_message_is_whole() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
            assert!(publish(&mut writer, 2));
        });
        read_all(&mut reader, &model.bodies, 1, 2);
        sender.join().unwrap();
    });
}

#[test]
fn a_counted_reader_gets_the_next_message() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        let sender = thread::spawn(move || {
            let mut readers = writer.gating_readers();
            let is_counted = readers.any(|(index, lease, _)| writer.has_joined(index, lease));
            drop(readers);
            assert!(publish(&mut writer, 1));
            is_counted
        });
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        if sender.join().unwrap() {
            assert_eq!(read(&mut reader, &model.bodies), Some(1));
        }
    });
}

#[test]
fn nothing_is_overwritten_before_it_was_read() {
    check(|| {
        // Two frames and the empty word behind them: the third message waits until the first is
        // read.
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            for number in 1..=4 {
                while !publish(&mut writer, number) {
                    thread::yield_now();
                }
            }
        });
        read_all(&mut reader, &model.bodies, 1, 4);
        sender.join().unwrap();
    });
}

#[test]
fn a_batch_becomes_visible_as_a_whole() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            let bytes = frame_bytes(u64::from(LENGTH));
            let first = writer.at();
            assert!(writer.has_space(first.plus(2 * bytes)));
            for index in 0..2 {
                let at = first.plus(index * bytes);
                writer.stage(at, TOPIC, LENGTH, bytes);
                writer.memory().bodies.write(at, index + 1);
            }
            writer.commit_batch(LENGTH, first.plus(2 * bytes));
        });
        if read(&mut reader, &model.bodies) == Some(1) {
            assert_eq!(read(&mut reader, &model.bodies), Some(2), "the batch came in parts");
        }
        sender.join().unwrap();
    });
}

#[test]
fn one_release_frees_several_messages() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let _ = publish(&mut writer, 3) && publish(&mut writer, 4);
        });
        assert_eq!(read(&mut reader, &model.bodies), Some(1));
        assert_eq!(read(&mut reader, &model.bodies), Some(2));
        reader.release();
        sender.join().unwrap();
    });
}

#[test]
fn a_reader_that_leaves_has_finished_reading() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let _ = publish(&mut writer, 3) && publish(&mut writer, 4);
        });
        assert_eq!(read(&mut reader, &model.bodies), Some(1));
        reader.leave();
        sender.join().unwrap();
    });
}

#[test]
fn a_slot_gets_a_new_owner() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1) && publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let _ = publish(&mut writer, 3) && publish(&mut writer, 4);
        });
        assert_eq!(read(&mut reader, &model.bodies), Some(1));
        // The owner dies without leaving, and the next one joins.
        let _reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        sender.join().unwrap();
    });
}

#[test]
fn a_new_owner_is_known_before_it_is_checked() {
    check(|| {
        let (model, writer) = start(3, 1);
        let checker = thread::spawn(move || {
            let owner = writer
                .gating_readers()
                .next()
                .map(|(index, ..)| writer.memory().slot(index).pid.load(Ordering::Relaxed));
            assert!(owner.is_none_or(|pid| pid == 7), "checked as the last owner");
        });
        model.slot(0).pid.store(7, Ordering::Relaxed);
        let _reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        checker.join().unwrap();
    });
}

#[test]
fn a_joining_reader_is_gated_on_or_starts_later() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        assert!(publish(&mut writer, 1));
        let sender = thread::spawn(move || {
            // Up to the limit computed before the reader joined, and beyond it.
            let _ = publish(&mut writer, 2) && publish(&mut writer, 3) && publish(&mut writer, 4);
        });
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let _ = read(&mut reader, &model.bodies);
        sender.join().unwrap();
        // From its first position on, it finds every message, whole and in order.
        while read(&mut reader, &model.bodies).is_some() {}
        assert_eq!(reader.at().get(), model.head());
    });
}

#[test]
fn a_joining_reader_learns_the_number_of_its_first_message() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        assert!(publish(&mut writer, 1));
        let sender = thread::spawn(move || {
            let _ = publish(&mut writer, 2) && publish(&mut writer, 3);
        });
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let most = reader.first_number_max(TOPIC);
        sender.join().unwrap();
        let Next::Frame(frame) = reader.peek() else {
            assert_eq!((reader.at().get(), most), (model.head(), 3), "it joined behind all three");
            return;
        };
        // The messages' own numbers start at 1, and their topic's at 0.
        let number = read(&mut reader, &model.bodies).map(|number| number - 1);
        assert_eq!(frame.topic.number_up_to(most), number);
        assert_eq!(reader.count(TOPIC), 3);
    });
}

/// A topic that found room waits for the number of its next message, while the writer is between
/// the stores of a commit word and of the head.
#[test]
fn a_reader_that_waits_for_numbers_is_woken() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || assert!(publish(&mut writer, 1)));
        while read(&mut reader, &model.bodies).is_none() {
            thread::yield_now();
        }
        while reader.next_number_max(TOPIC).is_none() {
            // As `Image::has_news`.
            if let Some((expected, _)) = reader.prepare_sleep(|| reader.knows_numbers()) {
                model.sleep(&model.slot(0).wake, expected, LONG);
            }
            reader.cancel_sleep();
        }
        assert_eq!(reader.next_number_max(TOPIC), Some(1));
        sender.join().unwrap();
    });
}

/// As `Subscriber::sleep`, with one fence for all its sessions.
#[test]
fn one_fence_shows_the_announcements_of_several_readers() {
    check_sleep(|| {
        let [(near, near_writer), (far, far_writer)] = [(); 2].map(|()| start(4, 1));
        let readers = [near, far].map(|model| RingReader::join(model, 0, LONGEST));
        let sender = thread::spawn(move || {
            for mut writer in [near_writer, far_writer] {
                assert!(publish(&mut writer, 1));
            }
        });
        let expected = readers.each_ref().map(RingReader::begin_sleep);
        readers[0].memory().heavy_fence();
        let has_news = readers.each_ref().map(RingReader::has_news);
        sender.join().unwrap();
        for (index, reader) in readers.iter().enumerate() {
            let wake = reader.memory().slot(0).wake.load(Ordering::Relaxed);
            assert!(has_news[index] || wake != expected[index], "it sleeps through a message");
        }
    });
}

#[test]
fn a_sleeping_reader_is_woken_by_a_message() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
        });
        // loom has no time: a sleep without a wake-up is reported as a deadlock.
        while read(&mut reader, &model.bodies).is_none() {
            sleep(&reader);
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_sleeping_reader_is_woken_by_the_close() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
            writer.close();
        });
        let mut number = None;
        while !reader.is_closed() {
            match read(&mut reader, &model.bodies) {
                Some(read) => number = Some(read),
                None => sleep(&reader),
            }
        }
        let number = number.or_else(|| read(&mut reader, &model.bodies));
        assert_eq!(number, Some(1), "the close overtook a message");
        sender.join().unwrap();
    });
}

/// Sleeps once, as a subscriber does.
fn sleep(reader: &Reader) {
    if let Some((expected, _)) = reader.prepare_sleep(|| reader.has_news()) {
        let memory = reader.memory();
        memory.sleep(&memory.slot(reader.index()).wake, expected, LONG);
    }
    reader.cancel_sleep();
}

#[test]
fn a_sleeping_writer_is_woken_by_a_reading() {
    check_sleep(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1));
        assert!(publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let end = writer.at().plus(frame_bytes(u64::from(LENGTH)));
            while !writer.has_space(end) {
                writer.sleep(LONG, |writer| writer.has_space(end));
            }
            assert!(publish(&mut writer, 3));
        });
        read_all(&mut reader, &model.bodies, 1, 3);
        sender.join().unwrap();
    });
}

#[test]
fn a_draining_writer_is_woken_by_the_last_reading() {
    check_sleep(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1));
        let drainer = thread::spawn(move || {
            let is_drained = |writer: &mut Writer| {
                let at = writer.at();
                writer.gating_readers().all(|(_, _, cursor)| cursor == at)
            };
            while !is_drained(&mut writer) {
                writer.sleep(LONG, is_drained);
            }
        });
        read_all(&mut reader, &model.bodies, 1, 1);
        drainer.join().unwrap();
    });
}

#[test]
fn a_reader_that_leaves_frees_the_writer() {
    check_sleep(|| {
        let (model, mut writer) = start(3, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1));
        assert!(publish(&mut writer, 2));
        let leaver = Arc::clone(&model);
        let sender = thread::spawn(move || {
            let end = writer.at().plus(frame_bytes(u64::from(LENGTH)));
            while !writer.has_space(end) {
                writer.sleep(LONG, |writer| writer.has_space(end));
            }
            assert!(publish(&mut writer, 3));
        });
        assert_eq!(read(&mut reader, &leaver.bodies), Some(1));
        reader.leave();
        sender.join().unwrap();
    });
}

/// Whatever the roster sees of a slot's owners, each joins once and leaves once, and one that has
/// left has shown all that it had read.
#[test]
fn a_roster_knows_each_owner_once() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        assert!(publish(&mut writer, 1));
        let owners = Arc::clone(&model);
        let reader = thread::spawn(move || {
            let mut first = RingReader::join(Arc::clone(&owners), 0, LONGEST);
            first.leave();
            // It dies: its slot goes to the next owner without a leave.
            let second = RingReader::join(Arc::clone(&owners), 0, LONGEST);
            let mut third = RingReader::join(Arc::clone(&owners), 0, LONGEST);
            third.leave();
            drop(second);
        });
        let mut roster = SlotRoster::new();
        let mut events = Vec::new();
        roster.update(writer.memory());
        note(&mut roster, &mut events);
        reader.join().unwrap();
        roster.update(writer.memory());
        note(&mut roster, &mut events);
        let reasons: Vec<_> = events.iter().filter_map(|(_, reason)| *reason).collect();
        assert_eq!((events.len(), reasons.len()), (6, 3), "{events:?}");
        let died = reasons.iter().filter(|reason| **reason == DepartureReason::Died).count();
        assert_eq!(died, 1, "{events:?}");
        let report = roster.completion_of_departed(writer.at());
        assert!(report.complete() >= 1, "the last one read everything: {report}");
    });
}

fn note(roster: &mut SlotRoster, events: &mut Vec<(u64, Option<DepartureReason>)>) {
    roster.membership.poll(|event| match event {
        PublisherEvent::SubscriberJoined(info) => events.push((info.id.0, None)),
        PublisherEvent::SubscriberLeft(info, reason) => events.push((info.id.0, Some(reason))),
        _ => {}
    });
}

#[test]
fn a_reader_of_overwritten_bytes_sees_its_eviction() {
    check(|| {
        let (model, mut writer) = start(3, 1);
        let reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        assert!(publish(&mut writer, 1));
        assert!(publish(&mut writer, 2));
        let sender = thread::spawn(move || {
            let (index, lease, _) = writer.gating_readers().next().unwrap();
            writer.evict(index, lease, Eviction::Stalled);
            writer.update_limit();
            // Overwrites the first message, which the reader may be reading.
            let at = writer.at();
            assert!(writer.has_space(at.plus(frame_bytes(u64::from(LENGTH)))));
            writer.memory().bodies.garble(at, 3);
            writer.commit(writer.at(), TOPIC, LENGTH, frame_bytes(u64::from(LENGTH)));
            assert!(writer.has_space(writer.at().plus(frame_bytes(u64::from(LENGTH)))));
            writer.memory().bodies.garble(writer.at(), 4);
        });
        if let Next::Frame(frame) = reader.peek() {
            let number = model.bodies.glimpse(frame.body);
            assert!(number == 1 || reader.is_evicted(), "torn, without an eviction");
        }
        sender.join().unwrap();
    });
}

#[test]
fn a_close_does_not_overtake_the_last_message() {
    check(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
            writer.close();
        });
        if reader.is_closed() {
            assert_eq!(read(&mut reader, &model.bodies), Some(1));
        }
        sender.join().unwrap();
    });
}
