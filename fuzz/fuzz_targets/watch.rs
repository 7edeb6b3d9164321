//! Bytes of the connections by which members of a group watch each other: a watcher of the member
//! of the first byte reads the rest, in pieces. A connection counts as the member's after the right
//! greeting alone, whose end would be a crash, and only answers may follow it.
#![no_main]

use lanecast_fuzz::Script;
use lanecast_wire::group::watch::{
    WATCH_ANSWER, WATCH_GREETING, WATCH_PROBE, WatchedBytes, WatchedStream, are_probes,
    watch_greeting,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut script = Script::new(bytes);
    let member = script.near(1);
    let greeting = watch_greeting(member);
    let mut stream = WatchedStream::new(member);
    // What came in all: the true greeting where the script says so, then any bytes.
    let mut came = Vec::new();
    while let Some(act) = script.act() {
        let count = usize::from(act & 31);
        let piece = match act >> 5 {
            0..=3 => {
                let end = WATCH_GREETING.min(came.len() + count);
                greeting.get(came.len()..end).unwrap_or_default().to_vec()
            }
            4 => vec![WATCH_ANSWER; count],
            5 => vec![WATCH_PROBE; count],
            _ => script.bytes(count).to_vec(),
        };
        assert_eq!(are_probes(&piece), piece.iter().all(|byte| *byte == b'?'));
        let (was_greeted, before) = (stream.is_greeted(), came.len());
        let read = stream.read(&piece);
        came.extend(&piece);
        let (head, rest) = came.split_at(came.len().min(WATCH_GREETING));
        let is_right = greeting.starts_with(head) && rest.iter().all(|byte| *byte == b'!');
        assert_eq!(read == WatchedBytes::Foreign, !is_right, "{came:?}");
        if !is_right {
            // The connection is closed: nothing more is read, and it was no crash before.
            assert!(was_greeted || !stream.is_greeted());
            return;
        }
        let is_greeted = came.len() >= WATCH_GREETING;
        assert_eq!(stream.is_greeted(), is_greeted);
        let has_answer = rest.len() > before.saturating_sub(WATCH_GREETING);
        let wanted = match (has_answer, is_greeted && !was_greeted) {
            (true, _) => WatchedBytes::Answered,
            (false, true) => WatchedBytes::Greeted,
            (false, false) => WatchedBytes::Partial,
        };
        assert_eq!(read, wanted, "{came:?}");
    }
});
