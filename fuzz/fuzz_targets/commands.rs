//! Any bytes, read as a command, as records and as options: refused or consistent, never a panic;
//! what was read can be written, and is read as the same.
#![no_main]

use lanecast_wire::command::{
    Field, Header, HeaderWriter, Options, Records, Shape, frame_bytes, message_payload,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(Some(length)) = frame_bytes(bytes, 1 << 20) {
        assert!(length <= bytes.len());
    }
    if let Ok((payload, _)) = message_payload(bytes) {
        read(payload);
    }
    read(bytes);
    for (header, body) in Records::new(bytes).flatten() {
        assert!(header.len() + body.len() <= bytes.len());
    }
});

fn read(bytes: &[u8]) {
    let Ok(header) = Header::parse(bytes) else { return };
    assert_eq!(header.len() + header.body().len(), bytes.len());
    let (_, _) = (header.command(), header.acks());
    let mut out = Vec::new();
    let mut writer = HeaderWriter::record(&mut out);
    for &field in Field::ALL {
        let (number, _) = (header.number(field), header.flag(field));
        let Some(text) = header.text(field) else { continue };
        writer = match field.shape() {
            Shape::Text => writer.text(field, &text),
            Shape::Number | Shape::Flag => writer.number(field, number.ok().flatten().unwrap_or(0)),
        };
        if field == Field::Options
            && let Ok(options) = Options::parse(&text)
        {
            assert!(options.iter().all(|(name, _)| name.len() <= text.len()));
        }
    }
    writer.end();
    let again = Header::parse(&out).expect("it was written here");
    for &field in Field::ALL {
        assert_eq!(again.text(field).is_some(), header.text(field).is_some());
        if field.shape() == Shape::Text {
            assert_eq!(again.text(field), header.text(field));
        }
    }
}
