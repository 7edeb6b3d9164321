use super::*;
use crate::ring_writer::RingWriter;
use crate::segment::Segment;
use crate::session;
use crate::settings::{DomainSettings, Visibility};

const WINDOW: u64 = 64 << 10;
const MESSAGES: usize = 1_000;

/// A reader of messages with the flush on, if the processor has it.
fn flushing_reader(segment: &Segment) -> RingReader<Segment> {
    let longest = segment.limits().longest_message;
    let mut reader = RingReader::join(segment.clone(), 0, longest);
    for _ in 0..1_000 {
        if !reader.flush.is_on() {
            reader.flush.end_lap();
        }
    }
    reader.next_flush = reader.walk.at;
    // No lap ends, so that none is timed.
    reader.lap_end = reader.walk.at.plus(u64::MAX / 2);
    reader
}

#[test]
fn flushed_lines_are_written_and_read_again_on_every_lap() {
    let settings = DomainSettings {
        visibility: Visibility::Process,
        window_bytes: WINDOW,
        ..DomainSettings::default()
    };
    let segment = session::create(&settings).expect("a session").segment;
    // Positions wrap around within the first lap.
    let start = Position::new(0u64.wrapping_sub(WINDOW / 2));
    let mut writer = RingWriter::new(segment.clone(), start);
    writer.add_topic();
    let mut reader = flushing_reader(&segment);
    let was_on = reader.flush.is_on();
    for index in 0..MESSAGES {
        let (length, byte) = (index * 37 % 4_000, index as u8);
        let bytes = frame_bytes(length as u64);
        assert!(writer.has_space(writer.at().plus(bytes).plus(FRAME_ALIGN)), "room for {index}");
        let body = segment.byte(writer.at().plus(FRAME_HEADER));
        // SAFETY: the window has room for the message, and its reader has not come there.
        unsafe { core::ptr::write_bytes(body.as_ptr(), byte, length) };
        writer.commit(writer.at(), 0, length as u32, bytes);
        let Next::Frame(frame) = reader.peek() else { panic!("message {index} is missing") };
        assert_eq!(frame.length as usize, length);
        let body = segment.byte(frame.body).as_ptr();
        // SAFETY: the writer does not write there before the reader has released it.
        let read = unsafe { core::slice::from_raw_parts(body, length) };
        assert!(read.iter().all(|found| *found == byte), "message {index}");
        reader.pass(frame.length);
        if index % 3 == 0 {
            reader.release();
        }
    }
    assert_eq!(reader.peek(), Next::Empty);
    assert_eq!(reader.flush.is_on(), was_on);
    reader.leave();
}
