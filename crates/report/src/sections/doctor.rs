//! Findings about the machine: what disturbs measurements on it.

use crate::cases::Cases;
use crate::document::{Block, Section, Table, Words};
use crate::line::{Kind, Line};
use crate::number;

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let blocks: Vec<Block> = cases.of_kind(Kind::Doctor).flat_map(examination).collect();
    (!blocks.is_empty()).then(|| Section::new("doctor", "What disturbs this machine", blocks))
}

/// One examination: its verdict, its findings, and the gaps it measured.
fn examination(line: &Line) -> Vec<Block> {
    let findings: Vec<String> =
        (0..line.list("findings").len()).map(|at| format!("findings[{at}]")).collect();
    let calm = !findings.iter().any(|path| line.is(&format!("{path}.state"), "disturbs"));
    let title = line.text("verdict").unwrap_or("Examined").to_owned();
    let from = Words::from("Found by ").line(line.id, line.place());
    let columns = ["check", "state", "found", "effect", "mend"];
    let mut checks = Table::new("The checks, the worst first", &columns);
    checks.rows = findings.iter().map(|path| row(line, path)).collect();
    let mut gaps = Table::new(
        "How each CPU was interrupted",
        &[">CPU", ">longest gap", ">over 1 µs", ">time in these", ">interrupts a second", "mostly"],
    );
    let watched = 0..line.list("gaps").len();
    gaps.rows = watched.map(|at| gaps_row(line, &format!("gaps[{at}]"))).collect();
    let verdict = Block::Verdict { calm, title, words: vec![from] };
    [verdict].into_iter().chain([checks, gaps].into_iter().filter_map(Table::block)).collect()
}

fn row(line: &Line, path: &str) -> Vec<Words> {
    let members = ["title", "state", "found", "effect", "mend"];
    members.map(|name| line.word(&format!("{path}.{name}"))).to_vec()
}

fn gaps_row(line: &Line, path: &str) -> Vec<Words> {
    let at = |member: &str| format!("{path}.{member}");
    vec![
        line.count(&at("cpu")),
        line.cell(&at("longest_gap_ns"), number::time),
        line.count(&at("long_gaps")),
        line.cell(&at("lost_share"), number::percent),
        line.count(&at("interrupts_per_second")),
        line.word(&at("interrupts_mostly")),
    ]
}
