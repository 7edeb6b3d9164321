//! The report as text: for each row a table, for each cell a line per side.

mod cells;
mod hosts;
mod table;
mod threads;

use crate::campaign::{Outcome, SideRuns, title};
use crate::options::Options;
use crate::row::Row;
use crate::summary::{figure, p50, rate, ratio};
use cells::{actual, clock, failed, intended, lost, millions, range, ratio_text, whole};
use table::Table;

/// The text of one row of the comparison.
pub fn text(row: Row, outcomes: &[Outcome], options: &Options) -> String {
    let head = headline(row, options);
    let body = match row {
        Row::Bare => bare(outcomes),
        Row::Rate | Row::Touch => rates(outcomes),
        Row::Fanout => fanout(outcomes),
        Row::Latency | Row::Wake => latencies(outcomes),
        Row::Pingpong | Row::PingpongPark => threads::round_trips(outcomes),
        row if row.is_round_trip() => hosts::round_trips(outcomes),
        row if row.is_between_hosts() => hosts::rates(outcomes),
        _ => threads::rates(outcomes),
    };
    format!("{head}\n{body}")
}

/// Every repetition that failed, lost or damaged messages, one line each.
pub fn troubles(outcomes: &[Outcome]) -> Vec<String> {
    let mut troubles = Vec::new();
    for outcome in outcomes {
        for side in &outcome.sides {
            for (pair, run) in side.runs.iter().enumerate() {
                let what = match &run.result {
                    Err(reason) => format!("failed: {reason}"),
                    Ok(measurement) if measurement.lost + measurement.damaged == 0 => continue,
                    Ok(measurement) if measurement.damaged == 0 && may_lose(outcome, side) => {
                        continue;
                    }
                    Ok(measurement) => {
                        format!("lost {}, damaged {}", measurement.lost, measurement.damaged)
                    }
                };
                let cell = &outcome.cell;
                troubles.push(format!("{}, {}, pair {}: {what}", side.side, title(cell), pair + 1));
            }
        }
    }
    troubles
}

/// Whether a loss is a figure and no trouble: bare datagrams, and peers where packets are lost on
/// purpose.
fn may_lose(outcome: &Outcome, side: &SideRuns) -> bool {
    side.standing.drops() || (outcome.cell.loss > 0 && !side.standing.own)
}

fn headline(row: Row, options: &Options) -> String {
    let what = match row {
        Row::Bare => "bare: the machine's own limits, one way from CPU to CPU",
        Row::Rate => "rate: 1 publisher, 1 subscriber, flat out, header touched, sequence checked",
        Row::Touch => {
            "touch: the same, every byte written and read; bare = copy bandwidth as messages"
        }
        Row::Latency => {
            "latency: one way, from the real send (due = from the intended one); bare = cache line"
        }
        Row::Fanout => "fanout: 1 publisher, n subscribers on one CPU, flat out; slowest counts",
        Row::Wake => "wake: a sleeping subscriber woken by a message; bare = futex",
        row if row.is_between_hosts() => hosts::headline(row),
        row => threads::headline(row),
    };
    let better = match row {
        Row::Latency | Row::Wake | Row::Pingpong | Row::PingpongPark => {
            "; ratio lanecast/side of p50, less is better"
        }
        row if row.is_round_trip() => "; times from the intended sending, less is better",
        row if row.is_between_hosts() => "; more is better",
        Row::Bare => "",
        _ => "; ratio lanecast/side, more is better",
    };
    format!(
        "{what}\n  medians (min..max) of {} pairs of {} s{better}",
        options.pairs(),
        options.seconds()
    )
}

fn rates(outcomes: &[Outcome]) -> String {
    let mut table = Table::new(["size", "side", "M msgs/s", "(min..max)", "GB/s", "lost", "ratio"]);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let Some(summary) = figure(runs, rate) else {
                table.add(failed(outcome, runs, 7));
                continue;
            };
            table.add(vec![
                outcome.cell.size.to_string(),
                runs.side.clone(),
                millions(summary.median),
                range(&summary, millions),
                format!("{:.2}", outcome.cell.bytes_per_s(summary.median) / 1e9),
                lost(runs),
                ratio_text(ratio(outcome, &runs.side, rate), runs),
            ]);
        }
    }
    table.to_string()
}

fn fanout(outcomes: &[Outcome]) -> String {
    let mut table = Table::new([
        "size",
        "side",
        "subs",
        "M msgs/s",
        "(min..max)",
        "of 1:1 / n",
        "lost",
        "ratio",
    ]);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let Some(summary) = figure(runs, rate) else {
                table.add(failed(outcome, runs, 8));
                continue;
            };
            let subscribers = outcome.cell.subscribers;
            let share = rate_alone(outcomes, outcome, &runs.side)
                .map(|alone| summary.median * subscribers as f64 / alone);
            table.add(vec![
                outcome.cell.size.to_string(),
                runs.side.clone(),
                subscribers.to_string(),
                millions(summary.median),
                range(&summary, millions),
                share.map_or_else(String::new, |share| format!("{:.0} %", share * 100.0)),
                lost(runs),
                ratio_text(ratio(outcome, &runs.side, rate), runs),
            ]);
        }
    }
    table.to_string()
}

/// The rate of the same side and size with one subscriber.
fn rate_alone(outcomes: &[Outcome], like: &Outcome, side: &str) -> Option<f64> {
    let alone = outcomes
        .iter()
        .find(|other| other.cell.size == like.cell.size && other.cell.subscribers == 1)?;
    let runs = alone.sides.iter().find(|runs| runs.side == side)?;
    figure(runs, rate).map(|summary| summary.median)
}

fn latencies(outcomes: &[Outcome]) -> String {
    let mut table = Table::new([
        "size",
        "side",
        "asked /s",
        "reached",
        "min ns",
        "p50 ns",
        "(min..max)",
        "p90",
        "p99",
        "p50 due",
        "p90 due",
        "p99 due",
        "lost",
        "clock ns",
        "ratio",
    ]);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let Some(median) = figure(runs, p50) else {
                table.add(failed(outcome, runs, 15));
                continue;
            };
            table.add(vec![
                outcome.cell.size.to_string(),
                runs.side.clone(),
                outcome.cell.rate.to_string(),
                figure(runs, rate).map_or_else(String::new, |rate| format!("{:.0}", rate.median)),
                actual(runs, |latency| latency.min_ns),
                whole(median.median),
                range(&median, whole),
                actual(runs, |latency| latency.p90_ns),
                actual(runs, |latency| latency.p99_ns),
                intended(runs, |latency| latency.p50_ns),
                intended(runs, |latency| latency.p90_ns),
                intended(runs, |latency| latency.p99_ns),
                lost(runs),
                clock(runs),
                ratio_text(ratio(outcome, &runs.side, p50), runs),
            ]);
        }
    }
    table.to_string()
}

fn bare(outcomes: &[Outcome]) -> String {
    let mut table =
        Table::new(["what", "rate /s", "min ns", "p50 ns", "(min..max)", "p90", "p99", "GB/s"]);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let what = match outcome.cell.row {
                Row::Touch => "copy",
                Row::Wake => "futex wake",
                _ => "cache line",
            };
            let latency = figure(runs, p50);
            let Some(summary) = figure(runs, rate) else {
                table.add(failed(outcome, runs, 8));
                continue;
            };
            let bytes = outcome.cell.bytes_per_s(summary.median) / 1e9;
            let is_copy = outcome.cell.row == Row::Touch;
            table.add(vec![
                what.into(),
                if is_copy { String::new() } else { outcome.cell.rate.to_string() },
                actual(runs, |latency| latency.min_ns),
                latency.map_or_else(String::new, |p50| whole(p50.median)),
                latency.map_or_else(String::new, |p50| range(&p50, whole)),
                actual(runs, |latency| latency.p90_ns),
                actual(runs, |latency| latency.p99_ns),
                if is_copy { format!("{bytes:.1}") } else { String::new() },
            ]);
        }
    }
    table.to_string()
}
