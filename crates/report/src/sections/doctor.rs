//! What disturbs measurements on this machine.

use super::rate::figure;
use crate::cases::Cases;
use crate::doctor::{CpuGaps, Doctor, Finding};
use crate::document::{Block, Figure, Section, Table, Words};
use crate::line::{Line, Record};
use crate::number::{self, Quantity};

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let found = cases.lines.iter().filter_map(|line| match &line.record {
        Record::Doctor(doctor) => Some((line, &**doctor)),
        _ => None,
    });
    let blocks: Vec<Block> = found.flat_map(|(line, doctor)| examination(line, doctor)).collect();
    (!blocks.is_empty()).then(|| Section::new("doctor", "What disturbs this machine", blocks))
}

/// One examination: its verdict, what was found, and what was measured.
fn examination(line: &Line, doctor: &Doctor) -> Vec<Block> {
    let findings = doctor.findings.as_deref().unwrap_or_default();
    let disturbs = |finding: &&Finding| finding.state.as_deref() == Some("disturbs");
    let calm = !findings.iter().any(|finding| disturbs(&finding));
    let verdict = doctor.verdict.clone().unwrap_or_else(|| "Examined".to_owned());
    let from = Words::from("Found by ").line(line.id, line.place());
    let mut blocks = vec![Block::Verdict { calm, title: verdict, words: vec![from] }];
    let columns = ["check", "state", "found", "effect", "mend"];
    let mut checks = Table::new("The checks, the worst first", &columns);
    checks.rows = findings.iter().map(row).collect();
    let mut gaps = Table::new(
        "How each CPU was interrupted",
        &[">CPU", ">longest gap", ">over 1 µs", ">time in these", ">interrupts a second", "mostly"],
    );
    let watched = doctor.gaps.iter().flatten().enumerate();
    gaps.rows = watched.map(|(at, cpu)| gaps_row(line, at, cpu)).collect();
    let tables = [checks, gaps].into_iter().filter(|table| !table.rows.is_empty());
    blocks.extend(tables.map(|table| Block::Table(table.without_empty_columns())));
    blocks
}

fn row(finding: &Finding) -> Vec<Words> {
    let texts = [&finding.title, &finding.state, &finding.found, &finding.effect, &finding.mend];
    texts.into_iter().map(|text| text.as_deref().map(Words::from).unwrap_or_default()).collect()
}

fn gaps_row(line: &Line, at: usize, cpu: &CpuGaps) -> Vec<Words> {
    let cell = |value: Option<f64>, show: fn(f64) -> Quantity, member: &str| {
        let member = format!("gaps[{at}].{member}");
        let found = value.map(|value| Figure::new(value, show(value), line.id, member));
        found.map(figure).unwrap_or_default()
    };
    let count = |count: f64| number::count(count as u64);
    let whole = |value: Option<u64>| value.map(|value| value as f64);
    vec![
        cell(whole(cpu.cpu), count, "cpu"),
        cell(whole(cpu.longest_gap_ns), number::time, "longest_gap_ns"),
        cell(whole(cpu.long_gaps), count, "long_gaps"),
        cell(cpu.lost_share, number::percent, "lost_share"),
        cell(cpu.interrupts_per_second, count, "interrupts_per_second"),
        cpu.interrupts_mostly.as_deref().map(Words::from).unwrap_or_default(),
    ]
}
