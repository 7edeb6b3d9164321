//! Headers and topic entries from any bytes: refused or consistent, never a panic.
#![no_main]

use lanecast_wire::shm::{GateHeader, RingHeader, TOPIC_NAME_MAX, TopicEntry, Word};
use libfuzzer_sys::fuzz_target;
use zerocopy::FromBytes;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, limits)) = RingHeader::read(bytes) {
        assert_eq!(header.file_bytes.get(), limits.file_bytes());
        assert!(limits.window_bytes.is_power_of_two());
        assert!(u64::from(limits.longest_message) <= limits.window_bytes / 8);
        let (session, places) = (header.session.get(), limits.subscribers_max);
        let _ = GateHeader::read(bytes, session, places);
    }
    let _ = GateHeader::read(bytes, 0, 64);
    if let Ok((entry, _)) = TopicEntry::read_from_prefix(bytes) {
        assert!(entry.name().is_none_or(|name| (1..=TOPIC_NAME_MAX).contains(&name.len())));
    }
    if let Some(word) = bytes.first_chunk() {
        let length = Word(u32::from_le_bytes(*word)).checked_length(8_192);
        assert!(length.is_none_or(|length| length <= 8_192));
    }
});
