//! What bare sockets can do one way.

use super::cells::Cells;
use crate::cases::Cases;
use crate::document::{Block, Section, Table, Words};
use crate::line::{Line, Record};
use crate::number;
use crate::round_trip::Floor;

/// How messages are handed to the system, in words.
const WAYS: [(&str, &str); 4] = [
    ("singly", "one by one"),
    ("several", "packed, many datagrams with one call"),
    ("segments", "packed, cut by the system"),
    ("gathered", "many with one write"),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let columns = [
        "line",
        "over",
        "messages",
        ">size",
        ">datagram",
        ">rate",
        ">sent",
        ">lost",
        ">time",
        ">window",
        "clock",
        ">CPU",
        ">receiver's CPU",
    ];
    let mut table = Table::new("One way, as many messages as possible", &columns);
    for line in cases.lines {
        let Record::Floor(floor) = &line.record else { continue };
        if floor.experiment.as_deref() == Some("one-way") {
            table.rows.push(row(line, floor));
        }
    }
    if table.rows.is_empty() {
        return None;
    }
    let intro = "Bare sockets over the loopback interface, between two threads of one process: the \
                 sender never has more under way than the receiver has room for, and every message \
                 is numbered and counted. No protocol over these sockets can be faster than this \
                 machine was here. No card and no cable is in the way.";
    let blocks = vec![Block::Words(intro.into()), Block::Table(table.without_empty_columns())];
    Some(Section::new("floor", "The floor, one way", blocks))
}

fn row(line: &Line, floor: &Floor) -> Vec<Words> {
    let cells = Cells { line };
    let way = WAYS.iter().find(|(name, _)| floor.way.as_deref() == Some(name));
    let way = way.map(|(_, words)| *words).or(floor.way.as_deref());
    let (conditions, receiver) = (&floor.conditions, floor.receiver.as_ref());
    vec![
        Words::new().line(line.id, line.place()),
        cells.text(conditions.transport.as_ref().map(|transport| format!("bare {transport}"))),
        cells.text(way),
        cells.text(floor.size.map(|size| format!("{size} B"))),
        cells.text(floor.datagram_bytes.map(|size| format!("{size} B"))),
        cells.show(floor.rate, number::rate, "rate"),
        cells.count(floor.sent, "sent"),
        cells.count(floor.lost, "lost"),
        cells.time(floor.duration_ns, "duration_ns"),
        cells.text(conditions.window.as_deref()),
        cells.text(conditions.clock.as_deref()),
        cells.count(conditions.ran_on(), "cpus.ran_on"),
        cells.count(receiver.and_then(|one| one.ran_on()), "receiver.cpus.ran_on"),
    ]
}
