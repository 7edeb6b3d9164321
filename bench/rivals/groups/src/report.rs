//! The tables: medians and extremes of each case, and ratios pair by pair.

use crate::member::Ordering;
use crate::outcome::Outcome;
use crate::rows::{Figure, Table};
use crate::side::Case;

/// Prints a table of the outcomes of each case.
pub fn show(table: &Table, outcomes: &[Vec<Option<Outcome>>]) {
    println!("\n{}", table.title);
    println!(
        "  {:<24} {:>2} {:>34}  {:>9} {:>6} {:>6} {:>6} {:>6} {:>8}  more",
        "side",
        "n",
        table.figure.unit(),
        "steady/s",
        "lost",
        "twice",
        "gaps",
        "cut",
        "CPU µs"
    );
    for (case, outcomes) in table.cases.iter().zip(outcomes) {
        let there: Vec<&Outcome> = outcomes.iter().flatten().collect();
        let figures = there.iter().filter_map(|outcome| table.figure.of(outcome)).collect();
        let sum = |value: fn(&Outcome) -> u64| there.iter().map(|it| value(it)).sum::<u64>();
        let steady = there.iter().map(|outcome| outcome.steady).collect();
        let cpu = sum(|it| it.cpu_ns) as f64 / 1e3 / sum(|it| it.received).max(1) as f64;
        println!(
            "  {:<24} {:>2} {:>34}  {:>9.0} {:>6} {:>6} {:>6} {:>6} {cpu:>8.2}  {}",
            name(case),
            there.len(),
            spread(figures),
            middle(steady).unwrap_or(0.0),
            sum(|it| it.lost),
            sum(|it| it.duplicated),
            sum(|it| it.disordered),
            sum(|it| it.incomplete),
            more(table.figure, case, &there),
        );
    }
    for (own, peer) in &table.ratios {
        let figure =
            |outcome: &Option<Outcome>| outcome.as_ref().and_then(|it| table.figure.of(it));
        let pairs = outcomes[*own].iter().zip(&outcomes[*peer]);
        let ratios: Vec<f64> =
            pairs.filter_map(|(own, peer)| Some(figure(own)? / figure(peer)?)).collect();
        let count = ratios.len();
        println!(
            "  {} / {}: {} ({count} pairs)",
            name(&table.cases[*own]),
            name(&table.cases[*peer]),
            spread(ratios)
        );
    }
}

fn name(case: &Case) -> String {
    let order = if case.order == Ordering::Total { " total" } else { "" };
    let wait = case.wait.map(|wait| format!(" {wait}")).unwrap_or_default();
    let loss = if case.frames { format!(" {} %", case.loss) } else { String::new() };
    format!("{}{order}{wait}{loss}", case.side.name())
}

/// Values of this figure alone.
fn more(figure: Figure, case: &Case, outcomes: &[&Outcome]) -> String {
    let count = |has: fn(&Outcome) -> bool| outcomes.iter().filter(|it| has(it)).count();
    match figure {
        Figure::Rate if case.order == Ordering::Total => {
            format!("one order in {}", count(|it| it.one_order == Some(true)))
        }
        Figure::Rate => String::new(),
        Figure::Time => {
            let us = |value: fn(&Outcome) -> u64| {
                middle(outcomes.iter().map(|it| value(it) as f64 / 1e3).collect()).unwrap_or(0.0)
            };
            format!("p90 {:.1}, p99 {:.1}", us(|it| it.p90_ns), us(|it| it.p99_ns))
        }
        Figure::View => {
            let pauses = outcomes.iter().map(|it| it.pause_ns as f64 / 1e6).collect();
            format!(
                "survivors agree in {}; longest pause {} ms",
                count(|it| it.agree == Some(true)),
                spread(pauses)
            )
        }
    }
}

fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// Median, least and most.
fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (values.first(), values.last()) else { return "-".into() };
    let digits = if *most < 1000.0 { 2 } else { 0 };
    let median = values[values.len() / 2];
    format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]")
}
