//! A held run in the model: its messages are not overwritten, and those it did not yield come
//! again.

use super::{LONGEST, Reader, check, publish, read, start};
use crate::ring_reader::{Next, RingReader, Walk};
use lanecast_base::Position;
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
