//! How the machine interrupts a thread.

use super::chart::{Curve, by_percentile};
use super::histogram;
use super::rate::figure;
use crate::cases::Cases;
use crate::document::{Block, Figure, Section, Table, Voice, Words};
use crate::line::{Line, Record};
use crate::number::{self, Quantity};
use crate::outcome::Jitter;

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let found: Vec<(&Line, &Jitter)> = cases
        .lines
        .iter()
        .filter_map(|line| match &line.record {
            Record::Jitter(jitter) => Some((line, &**jitter)),
            _ => None,
        })
        .collect();
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "Gaps between readings of the clock, taken back to back",
        &[
            "line",
            ">CPU",
            "clock",
            ">readings",
            ">shortest",
            ">document",
            ">p99.99",
            ">longest",
            ">document",
            ">over 1 µs",
            ">time in these",
        ],
    );
    table.rows = found.iter().map(|(line, jitter)| row(line, jitter)).collect();
    let curves = found.iter().enumerate().filter_map(|(at, (line, jitter))| {
        let times = jitter.gaps.as_ref()?;
        Some(Curve { name: line.place(), voice: Voice::Own(at), line: line.id, times })
    });
    let curves: Vec<Curve<'_>> = curves.collect();
    let intro = "A thread does nothing but read the clock. The shortest gap is what a reading \
                 costs, and the longest is how long the machine was away. On the document's \
                 machine, gaps of more than 100 µs were common.";
    let mut blocks = vec![Block::Words(intro.into()), Block::Table(table.without_empty_columns())];
    let chart = by_percentile("Gaps by percentile".to_owned(), &curves);
    blocks.push(Block::Charts(chart.into_iter().collect()));
    blocks.extend(curves.iter().filter_map(|curve| {
        histogram::of(format!("Gaps, {}", curve.name), curve.line, curve.times)
    }));
    Some(Section::new("jitter", "Jitter", blocks))
}

fn row(line: &Line, jitter: &Jitter) -> Vec<Words> {
    let show = |value: Option<f64>, show: fn(f64) -> Quantity, member: &str| {
        value.map(|value| figure(Figure::new(value, show(value), line.id, member)))
    };
    let count = |value: f64| number::count(value as u64);
    let time = |value: Option<u64>, member| show(value.map(|ns| ns as f64), number::time, member);
    let far = jitter.gaps.as_ref().and_then(|gaps| gaps.p99_99_ns);
    let published = jitter.published.as_ref();
    let cpu = jitter.cpus.as_ref().and_then(|cpus| cpus.ran_on);
    let cells = [
        Some(Words::new().line(line.id, line.place())),
        show(cpu.map(|cpu| cpu as f64), count, "cpus.ran_on"),
        jitter.clock.as_deref().map(Words::from),
        show(jitter.loops.map(|loops| loops as f64), count, "loops"),
        time(jitter.ts_min_ns, "ts_min_ns"),
        show(published.and_then(|published| published.min_ns), number::time, "published.min_ns"),
        time(far, "gaps.p99_99_ns"),
        time(jitter.ts_max_ns, "ts_max_ns"),
        show(published.and_then(|published| published.max_ns), number::time, "published.max_ns"),
        show(jitter.long_gaps.map(|gaps| gaps as f64), count, "long_gaps"),
        show(jitter.lost_share, number::percent, "lost_share"),
    ];
    cells.into_iter().map(Option::unwrap_or_default).collect()
}
