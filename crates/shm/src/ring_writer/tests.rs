use super::*;
use crate::session;
use crate::settings::{DomainSettings, Visibility};

/// Another process of the same user can write the counts.
#[test]
fn a_batch_counts_on_from_the_writer_s_own_numbers() {
    let settings = DomainSettings { visibility: Visibility::Process, ..DomainSettings::default() };
    let segment = session::create(&settings).expect("a session").segment;
    let mut writer = RingWriter::new(segment.clone(), Position::new(0));
    writer.add_topic();
    for count in 1..4 {
        segment.count(0).store(99, Ordering::Relaxed);
        let (at, bytes) = (writer.at(), frame_bytes(4));
        writer.stage(at, 0, 4, bytes);
        writer.commit_batch(4, at.plus(bytes));
        assert_eq!(segment.count(0).load(Ordering::Relaxed), count);
    }
}
