//! Receivers that the system refuses barriers after the process has registered for them: a writer
//! may not see that one sleeps, and send no signal.

use super::super::*;
use crate::signal::{PollSet, Semaphore};
use lanecast_base::WaitStrategy;
use lanecast_os::barrier;
use lanecast_os::refusal::without_barriers;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Writes until a value finds the reader asleep, and signals none; returns the last value, or
/// `None` if the reader is gone.
fn write_unheard(writer: &mut Writer<u64>) -> Option<u64> {
    for value in 1.. {
        match writer.write_and_flush(value) {
            Peer::Asleep => return Some(value),
            Peer::Gone => return None,
            Peer::Awake => thread::yield_now(),
        }
    }
    None
}

/// Lets `receive` take the values of a writer that never signals, and its end.
fn check_unheard(
    mut writer: Writer<u64>,
    mut receive: impl FnMut() -> Option<u64> + Send + 'static,
) {
    if !barrier::register() {
        return eprintln!("skipped: the system has no barriers to refuse");
    }
    let (report, reports) = mpsc::channel();
    let receiver = thread::spawn(|| {
        without_barriers(move || {
            while let Some(value) = receive() {
                report.send(value).unwrap();
            }
        });
    });
    if let Some(last) = write_unheard(&mut writer) {
        (1..=last).for_each(|value| assert_eq!(reports.recv_timeout(PATIENCE), Ok(value)));
    }
    drop(writer);
    let ended = reports.recv_timeout(PATIENCE);
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "the end is seen");
    receiver.join().unwrap();
}

#[test]
fn a_receiver_looks_for_what_it_is_not_told() {
    let (writer, reader) = unbounded();
    let mut receiver = Receiver::new(reader, Semaphore::new(), WaitStrategy::Park);
    check_unheard(writer, move || receiver.recv().ok());
}

#[test]
fn a_fan_in_looks_for_what_it_is_not_told() {
    let (writer, reader) = unbounded();
    let mut receiver = FanIn::new(vec![reader], PollSet::new(), WaitStrategy::Park);
    check_unheard(writer, move || receiver.recv().ok().map(|(_, value)| value));
}

#[test]
fn a_reader_without_barriers_says_so() {
    let (_writer, mut reader) = unbounded::<u64>();
    assert!(reader.is_covered());
    without_barriers(move || {
        for _ in 0..10 {
            assert!(!reader.check());
            assert_eq!(reader.is_covered(), !barrier::register());
        }
    });
}
