//! Descriptors of ends in the model: the writer signals the reader's event, in its own process, or
//! the reader's pipe, in another; or a third thread sleeps on the words that wake an end, and
//! signals the end's event. A signal that is missing ends the model in a deadlock.

use super::{LENGTH, LONG, LONGEST, check_sleep, publish, read, read_all, start};
use crate::arming::{self, SeenValue};
use crate::loom::memory::{Model, PIPE};
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

/// Ways by which a writer signals a reader's descriptor itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direct {
    /// The event of a reader in its own process.
    Event,
    /// The pipe of a reader in another process.
    Pipe,
}

impl Direct {
    /// The reader's event, as `Image::watch` connects it: the next empty poll announces sleep.
    fn connect(self, model: &Arc<Model>) -> (std::sync::Arc<ArmedEvent>, Option<SlotEvent>) {
        if self == Self::Pipe {
            model.slot(0).pipe.store(PIPE, Ordering::Relaxed);
            return (std::sync::Arc::clone(&model.pipe), None);
        }
        let event = std::sync::Arc::new(ArmedEvent::new().unwrap());
        let events = std::sync::Arc::clone(&model.events);
        let registered = SlotEvent::register(events, 0, std::sync::Arc::clone(&event));
        (event, Some(registered))
    }
}

/// After an empty poll, as `Subscriber::update_wakeup`.
fn arm(reader: &RingReader<Arc<Model>>, event: &ArmedEvent, has_pipe: bool) {
    if arming::has_to_arm(event, has_pipe) {
        let fence = || _ = reader.memory().heavy_fence();
        arming::arm_subscriber(event, || reader.announce_sleep(), fence, || reader.has_news());
    }
}

fn each_of_two_messages_signals_the_descriptor(direct: Direct) {
    check_sleep(move || {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || {
            assert!(publish(&mut writer, 1));
            assert!(publish(&mut writer, 2));
        });
        let (event, registered) = direct.connect(&model);
        for _ in 0..2 {
            while read(&mut reader, &model.bodies).is_none() {
                arm(&reader, &event, direct == Direct::Pipe);
                event.wait_uncleared(None);
            }
        }
        drop(registered);
        sender.join().unwrap();
    });
}

fn the_close_signals_the_descriptor(direct: Direct) {
    check_sleep(move || {
        let (model, mut writer) = start(4, 1);
        let reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let sender = thread::spawn(move || writer.close());
        let (event, registered) = direct.connect(&model);
        while !reader.is_closed() {
            arm(&reader, &event, direct == Direct::Pipe);
            event.wait_uncleared(None);
        }
        drop(registered);
        sender.join().unwrap();
    });
}

#[test]
fn a_writer_of_the_same_process_signals_a_descriptor_that_an_empty_poll_armed() {
    each_of_two_messages_signals_the_descriptor(Direct::Event);
}

#[test]
fn a_writer_of_another_process_signals_the_pipe_that_an_empty_poll_armed() {
    each_of_two_messages_signals_the_descriptor(Direct::Pipe);
}

#[test]
fn the_close_by_a_writer_of_the_same_process_signals_an_armed_descriptor() {
    the_close_signals_the_descriptor(Direct::Event);
}

#[test]
fn the_close_by_a_writer_of_another_process_signals_the_pipe() {
    the_close_signals_the_descriptor(Direct::Pipe);
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
            arm(&reader, &event, false);
            // Not cleared: the descriptor stays readable until the next empty poll.
            event.wait_uncleared(None);
        }
        sender.join().unwrap();
        stop(&model, &model.slot(0).wake, watcher);
    });
}

/// A slot still shows the pipe of its last owner when the next one takes it.
#[test]
fn a_reader_without_a_pipe_is_woken_in_the_slot_of_one_that_had_one() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        model.slot(0).pipe.store(PIPE, Ordering::Relaxed);
        let taker = Arc::clone(&model);
        let taker = thread::spawn(move || {
            // As `write_slot_owner`.
            taker.slot(0).pipe.store(0, Ordering::Relaxed);
            let mut reader = RingReader::join(Arc::clone(&taker), 0, LONGEST);
            while read(&mut reader, &taker.bodies).is_none() && !reader.is_closed() {
                if let Some((expected, _)) = reader.prepare_sleep(|| reader.has_news()) {
                    taker.sleep(&taker.slot(0).wake, expected, LONG);
                }
                reader.cancel_sleep();
            }
        });
        assert!(publish(&mut writer, 1));
        writer.close();
        taker.join().unwrap();
    });
}

/// The pipe of a subscriber can be refused to the writer: the wake-up thread is there for that.
#[test]
fn a_pipe_that_cannot_be_opened_leaves_the_word() {
    check_sleep(|| {
        let (model, mut writer) = start(4, 1);
        let mut reader = RingReader::join(Arc::clone(&model), 0, LONGEST);
        let event = Arc::new(ArmedEvent::new().unwrap());
        let watcher = watch(&model, &event, |model| &model.slot(0).wake, false);
        let sender = thread::spawn(move || assert!(publish(&mut writer, 1)));
        model.slot(0).pipe.store(PIPE + 1, Ordering::Relaxed);
        while read(&mut reader, &model.bodies).is_none() {
            arm(&reader, &event, true);
            event.wait_uncleared(None);
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
            arm(&reader, &event, false);
            event.wait_uncleared(None);
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
                    if !event.is_armed() && arming::arm_publisher(&event, &mut writer, |_| {}, end)
                    {
                        break;
                    }
                    writer.forget_limit();
                    event.wait_uncleared(None);
                }
                assert!(publish(&mut writer, 2));
            }
        });
        read_all(&mut reader, &model.bodies, 1, 2);
        sender.join().unwrap();
        stop(&model, &model.gate().publisher_wake, watcher);
    });
}
