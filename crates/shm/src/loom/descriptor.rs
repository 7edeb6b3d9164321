//! Descriptors of ends in the model: a third thread sleeps on the words that wake an end, and
//! signals the end's event, or the writer does, in the reader's process. A signal that is missing
//! ends the model in a deadlock.

use super::{LENGTH, LONG, LONGEST, check_sleep, publish, read, read_all, start};
use crate::arming::{self, SeenValue};
use crate::loom::memory::Model;
use crate::memory::Memory;
use crate::ring_reader::RingReader;
use crate::slot_events::SlotEvent;
use lanecast_base::sync::{AtomicU32, Ordering};
use lanecast_os::event::ArmedEvent;
use lanecast_wire::shm::frame_bytes;
use loom::sync::Arc;
use loom::thread::{self, JoinHandle};

/// Added to the word by the end itself, to end its watcher.
const STOP: u32 = 1 << 16;

/// The wake-up thread, for one word: as `WakeupAgent`.
fn watch(
    model: &Arc<Model>,
    event: &Arc<ArmedEvent>,
    word: fn(&Arc<Model>) -> &AtomicU32,
    is_publisher: bool,
) -> JoinHandle<()> {
    let (model, event) = (Arc::clone(model), Arc::clone(event));
    thread::spawn(move || {
        let seen = SeenValue::default();
        while seen.get() < STOP {
            model.sleep(word(&model), seen.get(), LONG);
            if seen.take_change(word(&model)) {
                arming::notify(&event, is_publisher.then(|| model.gate()));
            }
        }
    })
}

fn stop(model: &Arc<Model>, word: &AtomicU32, watcher: JoinHandle<()>) {
    word.fetch_add(STOP, Ordering::Relaxed);
    model.wake(word);
    watcher.join().unwrap();
}

/// An event that the writer signals itself, as `Image::watch`: the next empty poll announces sleep.
fn register(model: &Arc<Model>) -> (std::sync::Arc<ArmedEvent>, SlotEvent) {
    let event = std::sync::Arc::new(ArmedEvent::new().unwrap());
    let events = std::sync::Arc::clone(&model.events);
    let registered = SlotEvent::register(events, 0, std::sync::Arc::clone(&event));
    (event, registered)
}

/// After an empty poll, as `Subscriber::update_wakeup`.
fn arm(reader: &RingReader<Arc<Model>>, event: &ArmedEvent) {
    if event.is_armed() {
        return;
    }
    let fence = || _ = reader.memory().heavy_fence();
    arming::arm_subscriber(event, || reader.announce_sleep(), fence, || reader.has_news());
}

#[test]
fn a_message_signals_a_descriptor_that_an_empty_poll_armed() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let event = Arc::new(ArmedEvent::new().unwrap());
        let watcher = watch(&model, &event, |model| &model.slot(0).wake, false);
        let sender = thread::spawn(move || assert!(publish(&mut writer, 1)));
        while read(&mut reader, &model.bodies).is_none() {
            arm(&reader, &event);
            // Not cleared: the descriptor stays readable until the next empty poll.
            event.wait_uncleared();
        }
        sender.join().unwrap();
        stop(&model, &model.slot(0).wake, watcher);
    });
}

#[test]
fn a_writer_of_the_same_process_signals_a_descriptor_that_an_empty_poll_armed() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
            assert!(publish(&mut writer, 2));
        });
        let (event, registered) = register(&model);
        for _ in 0..2 {
            while read(&mut reader, &model.bodies).is_none() {
                arm(&reader, &event);
                event.wait_uncleared();
            }
        }
        drop(registered);
        sender.join().unwrap();
    });
}

#[test]
fn the_close_by_a_writer_of_the_same_process_signals_an_armed_descriptor() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || writer.close());
        let (event, registered) = register(&model);
        while !reader.is_closed() {
            arm(&reader, &event);
            event.wait_uncleared();
        }
        drop(registered);
        sender.join().unwrap();
    });
}

/// Waiting on the subscriber and sleeping on its descriptor take turns.
#[test]
fn a_wait_that_finds_a_message_does_not_silence_an_armed_descriptor() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let event = Arc::new(ArmedEvent::new().unwrap());
        let watcher = watch(&model, &event, |model| &model.slot(0).wake, false);
        let sender = thread::spawn(move || assert!(publish(&mut writer, 1)));
        while read(&mut reader, &model.bodies).is_none() {
            arm(&reader, &event);
            // As `Subscriber::sleep` that returns at once.
            _ = reader.prepare_sleep();
            if !event.is_armed() {
                reader.cancel_sleep();
            }
            event.wait_uncleared();
        }
        sender.join().unwrap();
        stop(&model, &model.slot(0).wake, watcher);
    });
}

#[test]
fn the_close_signals_an_armed_descriptor() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let event = Arc::new(ArmedEvent::new().unwrap());
        let watcher = watch(&model, &event, |model| &model.slot(0).wake, false);
        let sender = thread::spawn(move || writer.close());
        while !reader.is_closed() {
            arm(&reader, &event);
            event.wait_uncleared();
        }
        sender.join().unwrap();
        stop(&model, &model.slot(0).wake, watcher);
    });
}

#[test]
fn a_reading_signals_the_descriptor_of_a_refused_claim() {
    check_sleep(|| {
        let (model, mut writer) = start(2, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let event = Arc::new(ArmedEvent::new().unwrap());
        let watcher = watch(&model, &event, |model| &model.gate().publisher_wake, true);
        assert!(publish(&mut writer, 1));
        let sender = thread::spawn({
            let event = Arc::clone(&event);
            move || {
                let end = writer.at().plus(frame_bytes(u64::from(LENGTH)));
                // As `GatedWriter::await_room`.
                while !writer.has_space(end) {
                    if !event.is_armed() && arming::arm_publisher(&event, &mut writer, || {}, end) {
                        break;
                    }
                    writer.forget_limit();
                    event.wait_uncleared();
                }
                assert!(publish(&mut writer, 2));
            }
        });
        read_all(&mut reader, &model.bodies, 1, 2);
        sender.join().unwrap();
        stop(&model, &model.gate().publisher_wake, watcher);
    });
}
