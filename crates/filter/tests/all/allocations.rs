//! Warm readers allocate nothing, whatever they read.
#![forbid(unsafe_code)]

use allocation_counter::measure;
use lanecast_filter::fields::FieldSet;
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;

#[test]
fn a_warm_reader_allocates_nothing() {
    let cases: [(MessageType, &[&str], &[&str]); 4] = [
        (
            MessageType::Fix,
            &["/55", "/448[1]", "/99"],
            &["35=D\x0155=IBM\x01448=a\x01448=b\x01", "5=x"],
        ),
        (
            MessageType::Nvfix,
            &["/Symbol", "/TransactTime"],
            &["Symbol=IBM\x01TransactTime=1\x01", "="],
        ),
        (
            MessageType::Json,
            &["/a", "/l/q", "/l[1]/q", "/never"],
            &[r#"{"a":"\u0041","l":[{"q":1},{"q":[2,3]}],"\u0062":1}"#, r#"{"a":"\x"}"#, "[1"],
        ),
        (
            MessageType::Xml,
            &["/a/@b", "/a/c", "/a/c[1]"],
            &["<a b='&lt;'><c>1</c><d><e/></d><c>2</c></a>", "<a><c></a>", "<a"],
        ),
    ];
    for (message_type, paths, messages) in cases {
        let mut fields = FieldSet::new(message_type);
        for path in paths {
            fields.slot(&path.parse().expect("a path")).expect("room");
        }
        let (mut reader, mut row) = (Reader::new(&fields), Row::new());
        let mut read_all = || {
            for message in messages {
                let _ = reader.read(message.as_bytes(), &mut row);
            }
        };
        read_all();
        let allocations = measure(|| (0..100).for_each(|_| read_all()));
        assert_eq!(allocations.count_total, 0, "{message_type}: {allocations:?}");
    }
}
