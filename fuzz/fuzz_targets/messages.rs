//! Messages of every kind from any bytes, read for paths and merged with one another.
//!
//! The first byte chooses the kind and where a delta starts; the rest is a message and a delta.
#![no_main]

use lanecast_filter::difference::difference;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::merge::merge;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

/// Paths that short inputs have.
const PATHS: [&str; 8] = ["/1", "/1[1]", "/a", "/a/b", "/a/@b", "/a[1]/b", "/abcdefgh", "/a[0]"];

thread_local! {
    static READERS: RefCell<Vec<(Format, FieldSet, Reader)>> = RefCell::new(readers());
    static ROW: RefCell<Row> = RefCell::new(Row::new());
}

fn readers() -> Vec<(Format, FieldSet, Reader)> {
    let readers = MessageType::ALL.map(|kind| {
        let format = Format::new(kind).with_separators(b';', b'=').expect("they differ");
        let mut fields = FieldSet::new(format);
        for path in PATHS {
            fields.slot_for_all_values(&path.parse().expect("a path")).expect("room");
            fields.slot(&path.parse().expect("a path")).expect("room");
        }
        let reader = Reader::new(&fields);
        (format, fields, reader)
    });
    readers.into()
}

/// Values of a message lie within it or are absent.
fn read(fields: &mut FieldSet, reader: &mut Reader, message: &[u8]) {
    ROW.with_borrow_mut(|row| {
        let result = reader.read(message, row);
        for path in PATHS {
            let slot = fields.slot(&path.parse().expect("a path")).expect("room");
            fields.release(slot);
            let count = row.values(slot, message).count();
            assert_eq!(count, row.count(slot));
            assert!(count <= message.len() && (result.is_ok() || count == 0));
            let text = row.text(slot, message);
            assert!(text.is_none_or(|text| text.len() <= message.len()));
            assert_eq!(
                row.number(slot, message).is_some(),
                row.value(slot, message).number().is_some()
            );
        }
        if let Err(error) = result {
            assert!(error.offset <= message.len(), "{error}");
        }
    });
}

fuzz_target!(|bytes: &[u8]| {
    let [choice, bytes @ ..] = bytes else { return };
    READERS.with_borrow_mut(|readers| {
        let (format, fields, reader) = &mut readers[usize::from(choice % 5)];
        let (base, delta) = bytes.split_at(bytes.len() * usize::from(choice / 5) / 52);
        [base, delta, bytes].into_iter().for_each(|message| read(fields, reader, message));
        let (mut merged, mut changes) = (Vec::new(), Vec::new());
        if merge(*format, base, delta, &mut merged).is_err() {
            assert!(merged.is_empty());
            return;
        }
        // Differences can be merged, but unread parts of the base may be malformed.
        if difference(*format, base, &merged, &[], &mut changes).is_ok() {
            let mut again = Vec::new();
            merge(*format, base, &changes, &mut again).expect("a difference is a delta");
        }
    });
});
