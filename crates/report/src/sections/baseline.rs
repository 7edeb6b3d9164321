//! Bare sockets, one way.

use crate::cases::Cases;
use crate::document::{Block, ColumnOf, Section, Table};
use crate::line::{Kind, Line};
use crate::number;

/// The member `way` in words.
const WAYS: [(&str, &str); 4] = [
    ("singly", "one by one"),
    ("several", "packed, many datagrams with one call"),
    ("segments", "packed, cut by the system"),
    ("gathered", "many with one write"),
];

const COLUMNS: [ColumnOf<Line>; 13] = [
    ("line", Line::link),
    ("over", |line| {
        let transport = line.text("transport");
        transport.map(|transport| format!("bare {transport}").into()).unwrap_or_default()
    }),
    ("messages", |line| {
        let way = WAYS.iter().find(|(name, _)| line.is("way", name));
        way.map_or_else(|| line.word("way"), |(_, words)| (*words).into())
    }),
    (">size", |line| line.size("size")),
    (">datagram", |line| line.size("datagram_bytes")),
    (">rate", |line| line.cell("rate", number::rate)),
    (">sent", |line| line.count("sent")),
    (">lost", |line| line.count("lost")),
    (">time", |line| line.cell("duration_ns", number::time)),
    (">window", |line| line.word("window")),
    ("clock", |line| line.word("clock")),
    (">CPU", |line| line.count("cpus.ran_on")),
    (">receiver's CPU", |line| line.count("receiver.cpus.ran_on")),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let lines = cases.of_kind(Kind::Baseline).filter(|line| line.is("experiment", "one-way"));
    let table = Table::of("One way, as many messages as possible", &COLUMNS, lines).block()?;
    let intro = "Bare sockets over the loopback interface, between two threads of one process: the \
                 sender never has more under way than the receiver has room for, and every message \
                 is numbered and counted. No protocol over these sockets can be faster than this \
                 machine was here. No card and no cable is in the way.";
    Some(Section::new("baseline", "Bare sockets, one way", vec![Block::Words(intro.into()), table]))
}
