//! Messages that a publisher sends again to a store that misses them.

use crate::edges::exchange;
use crate::parts::{MemoryLog, NOW, Outlet, SESSION, groups, store_at};
use lanecast_persistence::{Source, SourceSettings};
use lanecast_wire::store::StoreFrame;

/// A store that was away lacks more than one answer holds.
#[test]
fn everything_that_a_publisher_still_has_comes_without_waiting_for_retries() {
    let (mut store, mut log, mut out) = (store_at(0), MemoryLog::default(), Outlet::default());
    let mut source = Source::new(SourceSettings::new(groups()), SESSION, 0, NOW);
    exchange(&mut source, &mut store, &mut log, &mut out);
    let (body, count) = ([7; 1000], 500);
    for _ in 0..count {
        source.check_room(body.len()).expect("within the flight");
        source.sent(&body);
    }
    store.on_message(SESSION, count - 1, &body, NOW, &mut log, &mut out);
    let (mut requests, mut resends) = (0, 0);
    while !out.frames.is_empty() {
        let mut answers = Outlet::default();
        for bytes in std::mem::take(&mut out.frames) {
            let (_, frame) = StoreFrame::read(&bytes).expect("as it was written");
            requests += u32::from(matches!(frame, StoreFrame::Want { .. }));
            source.on_frame(0, &frame, NOW, &mut answers);
        }
        for bytes in answers.frames {
            let (address, frame) = StoreFrame::read(&bytes).expect("as it was written");
            resends += usize::from(matches!(frame, StoreFrame::Resend { .. }));
            store.on_frame(address, &frame, NOW, &mut log, &mut out);
        }
        store.on_persisted(&log, &mut out);
    }
    assert_eq!(source.stable(), count);
    let frames = (count as usize).div_ceil(SourceSettings::new(groups()).longest_frame / 1100);
    assert!(resends <= frames, "{resends} frames of messages, {frames} hold them all");
    assert!(requests as usize <= resends / 8 + 2, "{requests} requests");
}
