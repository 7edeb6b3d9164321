//! Streams of a store's checkpoint from any bytes: refused, or read and written again as they
//! were; and a store that takes them over and goes on.
#![no_main]

use lanecast_persistence::{Store, StoreSettings};
use lanecast_wire::store::{CHECKPOINT_VERSION, LogRecord, StreamCheckpoint, StreamPositions};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut store = Store::new(StoreSettings::default(), 9);
    let (mut rest, mut streams, mut again) = (bytes, 0_u32, Vec::new());
    while let Some((stream, behind)) = StreamCheckpoint::read(rest, CHECKPOINT_VERSION) {
        again.clear();
        stream.write(&mut again);
        let read = StreamCheckpoint::read(&again, CHECKPOINT_VERSION);
        assert_eq!(read, Some((stream.clone(), [].as_slice())));
        let next = stream.copied.unwrap_or(stream.next);
        if store.restore(stream).is_ok() {
            let record = LogRecord::Message { stream: streams, sequence: next, body: b"next" };
            store.replay(&record).expect("it goes on");
            streams += 1;
        }
        rest = behind;
        if let Some((positions, behind)) = StreamPositions::read(rest) {
            again.clear();
            positions.write(&mut again);
            assert_eq!(StreamPositions::read(&again), Some((positions, [].as_slice())));
            rest = behind;
        }
    }
    assert_eq!(store.checkpoint().count(), streams as usize);
    let kept: Vec<_> = store.checkpoint().collect();
    let mut second = Store::new(StoreSettings::default(), 9);
    for stream in &kept {
        second.restore(stream.clone()).expect("each is there once");
    }
    assert!(second.checkpoint().eq(kept.iter().cloned()));
    // The offsets of the lists, in case nothing was read from the front.
    let _ = StreamPositions::read(bytes);
});
