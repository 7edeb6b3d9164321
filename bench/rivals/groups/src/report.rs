//! The tables: medians and extremes of each case, its failures, and ratios pair by pair.

use crate::member::Ordering;
use crate::outcome::{Outcome, Percentiles};
use crate::rows::{Figure, Table};
use crate::side::Case;

/// One run of a case: its outcome, or the reason why it has none.
pub type Run = Result<Outcome, String>;

/// Prints a table of the runs of each case, of which `asked` were to be made.
pub fn show(table: &Table, runs: &[Vec<Run>], asked: usize) {
    println!("\n{}", table.title);
    println!(
        "  {:<27} {:>6} {:>34}  {:>9} {:>7} {:>6} {:>6} {:>6} {:>4} {:>8}  more",
        "side",
        "runs",
        table.figure.unit(),
        "steady/s",
        "lost",
        "twice",
        "gaps",
        "damage",
        "cut",
        "CPU µs"
    );
    for (case, runs) in table.cases.iter().zip(runs) {
        let there: Vec<&Outcome> = runs.iter().flatten().collect();
        let figures: Vec<f64> = runs.iter().filter_map(|run| figure(table, run)).collect();
        let sum = |value: fn(&Outcome) -> u64| there.iter().map(|it| value(it)).sum::<u64>();
        let steady = there.iter().map(|outcome| outcome.steady).collect();
        let cpu = sum(|it| it.cpu_ns) as f64 / 1e3 / sum(|it| it.received).max(1) as f64;
        println!(
            "  {:<27} {:>6} {:>34}  {:>9.0} {:>7} {:>6} {:>6} {:>6} {:>4} {cpu:>8.2}  {}",
            name(case),
            format!("{}/{asked}", figures.len()),
            spread(figures),
            middle(steady).unwrap_or(0.0),
            sum(|it| it.lost),
            sum(|it| it.duplicated),
            sum(|it| it.disordered),
            sum(|it| it.damaged),
            sum(|it| it.incomplete),
            more(table.figure, case, &there),
        );
    }
    for (own, peer) in &table.ratios {
        let pairs = runs[*own].iter().zip(&runs[*peer]);
        let ratios: Vec<f64> = pairs
            .filter_map(|(own, peer)| Some(figure(table, own)? / figure(table, peer)?))
            .collect();
        let (own, peer) = (name(&table.cases[*own]), name(&table.cases[*peer]));
        println!("  {own} / {peer}: {}", of_all(ratios, asked, "pairs"));
    }
    for (case, runs) in table.cases.iter().zip(runs) {
        for line in failures(table, runs, asked) {
            println!("  {}: {line}", name(case));
        }
    }
}

/// The figure of a run, if it has one.
fn figure(table: &Table, run: &Run) -> Option<f64> {
    run.as_ref().ok().and_then(|outcome| table.figure.of(outcome))
}

/// A line for the runs that are not in the median, and one for each that failed.
pub fn failures(table: &Table, runs: &[Run], asked: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let good = runs.iter().filter(|run| figure(table, run).is_some()).count();
    if good < asked {
        lines.push(format!("{asked} runs asked for, {} begun, {good} in the median", runs.len()));
    }
    for (number, run) in (1..).zip(runs) {
        match run {
            Err(why) => lines.push(format!("run {number} failed: {why}")),
            Ok(outcome) if table.figure.of(outcome).is_none() => {
                let faults = outcome.faults().join(", ");
                lines.push(format!("run {number} has no {}: {faults}", table.figure.unit()));
            }
            Ok(_) => {}
        }
    }
    lines
}

/// Name of a case in its table.
pub fn name(case: &Case) -> String {
    let order = if case.order == Ordering::Total { " total" } else { "" };
    let wait = case.wait.map(|wait| format!(" {wait}")).unwrap_or_default();
    let (mtu, loss) = match (case.side.is_tool(), case.frames) {
        (true, true) => (format!(" MTU {}", case.mtu.unwrap_or(1500)), String::new()),
        (false, true) => (String::new(), format!(" {} %", case.loss)),
        (_, false) => Default::default(),
    };
    let members = case.members;
    format!("{}{order}{wait}{loss}{mtu} N={members}", case.side.name())
}

/// Values of this figure alone.
fn more(figure: Figure, case: &Case, outcomes: &[&Outcome]) -> String {
    let count = |has: fn(&Outcome) -> bool| outcomes.iter().filter(|it| has(it)).count();
    let runs = outcomes.len();
    match figure {
        Figure::Rate if case.order == Ordering::Total => {
            format!("one order in {} of {runs}", count(|it| it.one_order == Some(true)))
        }
        Figure::Rate if case.loss > 0 => {
            let sum = |value: fn(&Outcome) -> u64| outcomes.iter().map(|it| value(it)).sum::<u64>();
            let (others, all) = (sum(|it| it.of_others), sum(|it| it.received).max(1));
            format!("{:.1} % of others' messages", 100.0 * others as f64 / all as f64)
        }
        Figure::Rate | Figure::PerCpu => String::new(),
        Figure::Time => {
            let us = |value: fn(&Outcome) -> u64| {
                middle(outcomes.iter().map(|it| value(it) as f64 / 1e3).collect()).unwrap_or(0.0)
            };
            let due = format!(
                "p90 {:.1}, p99 {:.1}, all members together",
                us(|it| it.from_due.p90_ns),
                us(|it| it.from_due.p99_ns)
            );
            let has_sent = outcomes.iter().any(|it| it.from_sent != Percentiles::default());
            let sent = format!(
                "; from the actual sending p50 {:.1}, p90 {:.1}, p99 {:.1}",
                us(|it| it.from_sent.p50_ns),
                us(|it| it.from_sent.p90_ns),
                us(|it| it.from_sent.p99_ns)
            );
            if has_sent { due + &sent } else { due }
        }
        Figure::View => {
            let pauses = outcomes.iter().map(|it| it.pause_ns as f64 / 1e6).collect();
            format!(
                "survivors agree in {}, disagree in {} of {runs}; longest pause {} ms",
                count(|it| it.agree == Some(true)),
                count(|it| it.agree == Some(false)),
                spread(pauses)
            )
        }
    }
}

/// The middle value; of an even number the mean of both.
fn middle(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    let upper = *values.get(half)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[half - 1] + upper) / 2.0 })
}

/// Median, least and most, and how many there are if not all.
fn of_all(values: Vec<f64>, asked: usize, unit: &str) -> String {
    let count = values.len();
    let few = if count < asked { format!(" of {asked}") } else { String::new() };
    format!("{} ({count}{few} {unit})", spread(values))
}

/// Median, least and most.
fn spread(values: Vec<f64>) -> String {
    let least = values.iter().copied().min_by(f64::total_cmp);
    let most = values.iter().copied().max_by(f64::total_cmp);
    let (Some(least), Some(most), Some(median)) = (least, most, middle(values)) else {
        return "-".into();
    };
    let digits = if most < 1000.0 { 2 } else { 0 };
    format!("{median:.digits$} [{least:.digits$}–{most:.digits$}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_few_runs_say_so() {
        let table = Table {
            title: String::new(),
            figure: Figure::Rate,
            cases: Vec::new(),
            ratios: Vec::new(),
        };
        let good = Ok(Outcome { rate: 5.0, received: 1, ..Outcome::default() });
        let empty = Ok(Outcome { rate: 5.0, ..Outcome::default() });
        assert!(failures(&table, &[good.clone(), good.clone()], 2).is_empty());
        let lines = failures(&table, &[good, Err("no java".into()), empty], 4);
        let expected = [
            "4 runs asked for, 3 begun, 1 in the median",
            "run 2 failed: no java",
            "run 3 has no messages/s per member: nothing was received",
        ];
        assert_eq!(lines, expected);
        assert_eq!(of_all(vec![1.0, 3.0], 5, "pairs"), "2.00 [1.00–3.00] (2 of 5 pairs)");
        assert_eq!(of_all(vec![1.0, 3.0, 2.0], 3, "pairs"), "2.00 [1.00–3.00] (3 pairs)");
    }
}
