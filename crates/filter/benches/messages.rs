//! Cost of reading one order, by message type. `cargo bench -p lanecast-filter --bench messages`,
//! or `-- --quick` for a short run.
#![forbid(unsafe_code)]

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group};
use lanecast_filter::fields::{FieldSet, Slot};
use lanecast_filter::message_type::MessageType;
use lanecast_filter::reader::Reader;
use lanecast_filter::row::Row;
use std::hint::black_box;

/// Distinct messages, as many as fit the L2 cache.
const MESSAGES: usize = 1_024;

/// Tags of an order with their names and XML paths.
const NAMES: [(u32, &str, &str); 10] = [
    (35, "MsgType", "/FIXML/Order/@Typ"),
    (55, "Symbol", "/FIXML/Order/@Sym"),
    (54, "Side", "/FIXML/Order/@Side"),
    (38, "OrderQty", "/FIXML/Order/OrdQty/@Qty"),
    (44, "Price", "/FIXML/Order/@Px"),
    (11, "ClOrdID", "/FIXML/Order/@ID"),
    (1, "Account", "/FIXML/Order/@Acct"),
    (40, "OrdType", "/FIXML/Order/@OrdTyp"),
    (59, "TimeInForce", "/FIXML/Order/@TmInForce"),
    (60, "TransactTime", "/FIXML/Order/@TxnTm"),
];

/// The values of order `number`, in the order of `NAMES`.
fn order(number: usize) -> [String; 10] {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
    [
        ["D", "8", "G", "F", "AE"][mixed % 5].into(),
        format!("S{:04}", mixed % 10_000),
        (1 + mixed % 2).to_string(),
        (1 + mixed % 10_000).to_string(),
        format!("{}.{:02}", 10 + mixed % 490, mixed % 100),
        format!("ord{number:07}"),
        format!("acc{:03}", mixed % 500),
        "2".into(),
        "0".into(),
        format!("20260102-10:{:02}:{:02}", mixed % 60, mixed % 59),
    ]
}

fn message(message_type: MessageType, number: usize) -> Vec<u8> {
    let pairs = NAMES.iter().zip(order(number));
    let text: String = match message_type {
        MessageType::Fix => pairs.map(|((tag, ..), value)| format!("{tag}={value}\u{1}")).collect(),
        MessageType::Nvfix => {
            pairs.map(|((_, name, _), value)| format!("{name}={value}\u{1}")).collect()
        }
        MessageType::Json => {
            let is_text = |name| !matches!(name, "OrderQty" | "Price");
            let members = pairs.map(|((_, name, _), value)| match is_text(*name) {
                true => format!("\"{name}\":\"{value}\""),
                false => format!("\"{name}\":{value}"),
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(","))
        }
        MessageType::Xml => {
            let (mut order, mut inner) = (String::new(), String::new());
            for ((.., path), value) in pairs {
                let (element, attribute) = path.rsplit_once("/@").expect("an attribute");
                let text = format!(" {attribute}=\"{value}\"");
                if element.ends_with("Qty") { &mut inner } else { &mut order }.push_str(&text);
            }
            format!("<FIXML><Order{order}><OrdQty{inner}/></Order></FIXML>")
        }
        MessageType::Binary => unreachable!("it has no fields"),
    };
    text.into_bytes()
}

/// The path of the field `name` in `message_type`.
fn path(message_type: MessageType, name: &(u32, &str, &str)) -> String {
    match message_type {
        MessageType::Fix => format!("/{}", name.0),
        MessageType::Xml => name.2.into(),
        _ => format!("/{}", name.1),
    }
}

struct Bench {
    messages: Vec<Vec<u8>>,
    reader: Reader,
    slots: Vec<Slot>,
}

impl Bench {
    /// Orders of which the `wanted` fields are read, by index in `NAMES`. With `is_full`, an absent
    /// field makes the reader scan to the end.
    fn new(message_type: MessageType, wanted: &[usize], is_full: bool) -> Self {
        let mut fields = FieldSet::new(message_type);
        let mut want = |text: &str| fields.slot(&text.parse().expect(text)).expect("room");
        let slots: Vec<Slot> =
            wanted.iter().map(|index| want(&path(message_type, &NAMES[*index]))).collect();
        if is_full {
            want(&path(message_type, &(99, "Missing", "/FIXML/Missing")));
        }
        let messages = (0..MESSAGES).map(|number| message(message_type, number)).collect();
        Self { messages, reader: Reader::new(&fields), slots }
    }

    fn run(mut self, group: &mut BenchmarkGroup<'_, WallTime>, name: &str) {
        let mut row = Row::new();
        group.bench_function(name, |bencher| {
            let mut index = 0;
            bencher.iter(|| {
                index = (index + 1) % MESSAGES;
                self.reader.read(black_box(&self.messages[index]), &mut row).expect("well formed");
                black_box(row.has_several(self.slots[0]))
            });
        });
    }
}

const ALL: [usize; 10] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];

fn messages(criterion: &mut Criterion) {
    for message_type in [MessageType::Fix, MessageType::Nvfix, MessageType::Json, MessageType::Xml]
    {
        let mut group = criterion.benchmark_group(message_type.name());
        group.throughput(Throughput::Elements(1));
        Bench::new(message_type, &ALL, true).run(&mut group, "10 fields, to the end");
        Bench::new(message_type, &[0, 1, 3], true).run(&mut group, "3 fields, to the end");
        Bench::new(message_type, &[0, 1, 3], false).run(&mut group, "3 of the first 4 fields");
        Bench::new(message_type, &[6, 8, 9], false).run(&mut group, "3 of the last 4 fields");
    }
}

/// Cost of a numeric access, which is cached.
fn numbers(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("fix");
    let mut bench = Bench::new(MessageType::Fix, &[0, 1, 3], false);
    let mut row = Row::new();
    group.bench_function("3 of the first 4 fields, one of them a number", |bencher| {
        let mut index = 0;
        bencher.iter(|| {
            index = (index + 1) % MESSAGES;
            let bytes = black_box(&bench.messages[index]);
            bench.reader.read(bytes, &mut row).expect("well formed");
            black_box(row.number(bench.slots[2], bytes))
        });
    });
}

criterion_group!(groups, messages, numbers);

fn main() {
    groups();
    Criterion::default().configure_from_args().final_summary();
}
