//! Interruptions of a thread that only reads the clock.

use super::chart::{Curve, by_percentile};
use super::histogram;
use crate::cases::Cases;
use crate::document::{Block, ColumnOf, Origin, Section, Table};
use crate::line::{Kind, Line};
use crate::number;

const COLUMNS: [ColumnOf<Line>; 11] = [
    ("line", Line::link),
    (">CPU", |line| line.count("cpus.ran_on")),
    ("clock", |line| line.word("clock")),
    (">readings", |line| line.count("loops")),
    (">shortest", |line| line.cell("ts_min_ns", number::time)),
    (">document", |line| line.cell("reference.min_ns", number::time)),
    (">p99.99", |line| line.cell("gaps.p99_99_ns", number::time)),
    (">longest", |line| line.cell("ts_max_ns", number::time)),
    (">document", |line| line.cell("reference.max_ns", number::time)),
    (">over 1 µs", |line| line.count("long_gaps")),
    (">time in these", |line| line.cell("lost_share", number::percent)),
];

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let caption = "Gaps between readings of the clock, taken back to back";
    let table = Table::of(caption, &COLUMNS, cases.of_kind(Kind::Jitter)).block()?;
    let intro = "A thread does nothing but read the clock. The shortest gap is what a reading \
                 costs, and the longest is how long the machine was away. On the document's \
                 machine, gaps of more than 100 µs were common.";
    let curves = cases.of_kind(Kind::Jitter).enumerate();
    let curves =
        curves.filter_map(|(at, line)| Curve::of(line.place(), Origin::Own(at), line, "gaps"));
    let curves: Vec<Curve<'_>> = curves.collect();
    let chart = by_percentile("Gaps by percentile".to_owned(), &curves);
    let charts = Block::Charts(chart.into_iter().collect());
    let mut blocks = vec![Block::Words(intro.into()), table, charts];
    blocks.extend(
        cases
            .of_kind(Kind::Jitter)
            .filter_map(|line| histogram::of(format!("Gaps, {}", line.place()), line, "gaps")),
    );
    Some(Section::new("jitter", "Jitter", blocks))
}
