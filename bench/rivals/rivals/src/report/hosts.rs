//! Tables of the rows between hosts: what each side did, then who did how much of what another did.

use crate::campaign::{Outcome, Run, SideRuns};
use crate::cell::Cell;
use crate::measurement::{Measurement, Percentiles};
use crate::row::Row;
use crate::summary::{Summary, figure, rate, ratio_between};

use super::cells::{lost, millions, range};
use super::table::Table;

/// Title of a row.
pub fn headline(row: Row) -> &'static str {
    match row {
        Row::UdpPingpong => "udp-pingpong: there and back to one address, both ends spin",
        Row::RmPingpong => "rm-pingpong: there and back over two groups, through a bridge",
        Row::TcpPingpong => "tcp-pingpong: there and back over streams",
        Row::XdpPingpong => "xdp-pingpong: there and back past the kernel's stack, and by sockets",
        Row::BlockPingpong => "block-pingpong: there and back, both ends sleep each time",
        Row::Idle => "idle: there and back after a second of silence, and without any",
        Row::Oneway => "oneway: 1 publisher, 1 subscriber, flat out",
        Row::XdpOneway => "xdp-oneway: flat out past the kernel's stack, and by sockets",
        Row::Fanout3 => "fanout3: 1 publisher, 3 subscribers that share a CPU; slowest counts",
        Row::LossPingpong => "loss-pingpong: there and back while both hosts lose what comes in",
        _ => "loss-oneway: 1 publisher, 1 subscriber, while both hosts lose what comes in",
    }
}

/// Times of round trips, from the intended time of sending.
pub fn round_trips(outcomes: &[Outcome]) -> String {
    let head = [
        "size",
        "loss",
        "asked /s",
        "side",
        "p50 us",
        "(min..max)",
        "p90",
        "p99",
        "p99.9",
        "max",
        "p50 sent",
        "of steady",
        "samples",
        "lost",
    ];
    let columns = head.len();
    let mut table = Table::new(head);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let first = load(&outcome.cell, runs);
            let Some(median) = figure(runs, p50) else {
                table.add(failed(first, columns));
                continue;
            };
            let figures = vec![
                micros(median.median),
                range(&median, micros),
                intended(runs, |times| Some(times.p90_ns)),
                intended(runs, |times| Some(times.p99_ns)),
                intended(runs, |times| times.p99_9_ns),
                intended(runs, |times| Some(times.max_ns)),
                figure(runs, |m| Some(m.latency?.actual.p50_ns))
                    .map_or_else(String::new, |sent| micros(sent.median)),
                of_steady(outcomes, outcome, runs),
                samples(runs),
                lost(runs),
            ];
            table.add([first, figures].concat());
        }
    }
    format!("{table}\n{}", ratios(outcomes, &[("p50", p50), ("p99", p99), ("p99.9", p99_9)]))
}

/// Messages per second that each subscriber got.
pub fn rates(outcomes: &[Outcome]) -> String {
    let head = ["size", "loss", "asked /s", "side", "M msgs/s", "(min..max)", "GB/s", "lost"];
    let columns = head.len();
    let mut table = Table::new(head);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let first = load(&outcome.cell, runs);
            let Some(summary) = figure(runs, rate) else {
                table.add(failed(first, columns));
                continue;
            };
            let figures = vec![
                millions_of_few(summary.median),
                range(&summary, millions_of_few),
                format!("{:.3}", outcome.cell.bytes_per_s(summary.median) / 1e9),
                lost(runs),
            ];
            table.add([first, figures].concat());
        }
    }
    format!("{table}\n{}", ratios(outcomes, &[("rate", rate)]))
}

type Pick = fn(&Measurement) -> Option<f64>;

/// Every side beside the floors of its family, and beside the one that it varies, and lanecast
/// beside every peer, repetition by repetition.
fn ratios(outcomes: &[Outcome], picks: &[(&str, Pick)]) -> String {
    let head: Vec<&str> = ["size", "loss", "asked /s", "side", "to"]
        .into_iter()
        .chain(picks.iter().flat_map(|(name, _)| [*name, "(min..max)"]))
        .collect();
    let mut table = Table::of(&head);
    for outcome in outcomes {
        for (runs, other) in pairs(outcome) {
            let found = picks.iter().map(|(_, pick)| ratio_between(runs, other, pick));
            let found: Vec<_> = found.collect();
            if found.iter().all(Option::is_none) {
                continue;
            }
            let mut row = load(&outcome.cell, runs);
            row.push(other.side.clone());
            for ratio in found {
                row.push(ratio.map_or_else(String::new, |ratio| places(ratio.median)));
                row.push(ratio.map_or_else(String::new, |ratio| range(&ratio, places)));
            }
            table.add(row);
        }
    }
    if table.is_empty() { String::new() } else { format!("  ratios, side/to\n{table}") }
}

/// Which sides stand beside which.
fn pairs(outcome: &Outcome) -> impl Iterator<Item = (&SideRuns, &SideRuns)> {
    outcome.sides.iter().flat_map(|runs| {
        outcome.sides.iter().filter_map(move |other| {
            let (one, two) = (&runs.standing, &other.standing);
            let is_floor = !one.floor && two.floor && one.family == two.family;
            let is_peer = one.own && !two.own && !two.floor;
            (is_floor || is_peer || varies(&runs.side, &other.side)).then_some((runs, other))
        })
    })
}

/// Whether a side is another one with an option, which its name adds: `lanecast-ru-key`.
fn varies(side: &str, other: &str) -> bool {
    side.strip_prefix(other).is_some_and(|rest| rest.starts_with('-'))
}

/// The first columns of every table.
fn load(cell: &Cell, runs: &SideRuns) -> Vec<String> {
    let or_nothing = |number: u64, text: String| if number > 0 { text } else { String::new() };
    vec![
        cell.size.to_string(),
        or_nothing(cell.loss.into(), format!("{} %", cell.loss)),
        or_nothing(cell.rate, cell.rate.to_string()),
        runs.side.clone(),
    ]
}

fn failed(mut row: Vec<String>, columns: usize) -> Vec<String> {
    row.push("failed".into());
    row.resize(columns, String::new());
    row
}

/// After silence, how many times the median without silence.
fn of_steady(outcomes: &[Outcome], outcome: &Outcome, runs: &SideRuns) -> String {
    let quickest = outcomes.iter().max_by_key(|other| other.cell.rate);
    let steady = quickest.filter(|other| other.cell.rate > outcome.cell.rate);
    let same = steady.and_then(|other| other.sides.iter().find(|side| side.side == runs.side));
    let ratio = same.and_then(|same| ratio_between(runs, same, p50));
    ratio.map_or_else(String::new, |ratio| places(ratio.median))
}

fn p50(measurement: &Measurement) -> Option<f64> {
    Some(measurement.latency?.intended.p50_ns)
}

fn p99(measurement: &Measurement) -> Option<f64> {
    Some(measurement.latency?.intended.p99_ns)
}

fn p99_9(measurement: &Measurement) -> Option<f64> {
    measurement.latency?.intended.p99_9_ns
}

fn intended(runs: &SideRuns, pick: impl Fn(&Percentiles) -> Option<f64>) -> String {
    let summary = figure(runs, |measurement| pick(&measurement.latency?.intended));
    summary.map_or_else(String::new, |summary: Summary| micros(summary.median))
}

/// Round trips that were timed, over all repetitions.
fn samples(runs: &SideRuns) -> String {
    let latencies = runs.runs.iter().filter_map(Run::measurement).filter_map(|run| run.latency);
    latencies.map(|latency| latency.intended.samples).sum::<u64>().to_string()
}

fn micros(ns: f64) -> String {
    format!("{:.1}", ns / 1e3)
}

fn millions_of_few(rate: f64) -> String {
    if rate < 1e6 { format!("{:.4}", rate / 1e6) } else { millions(rate) }
}

fn places(ratio: f64) -> String {
    let places = if ratio < 0.1 { 4 } else { 2 };
    format!("{ratio:.places$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sides::Standing;

    fn side(name: &str, own: bool, floor: bool, family: &str) -> SideRuns {
        let standing = Standing { own, floor, family: family.to_owned() };
        SideRuns { side: name.to_owned(), version: String::new(), standing, runs: vec![] }
    }

    #[test]
    fn floors_stand_beside_their_family_and_peers_beside_lanecast() {
        let outcome = Outcome {
            cell: Cell::alone(Row::Oneway),
            sides: vec![
                side("lanecast-ru", true, false, "udp"),
                side("lanecast-tcp", true, false, "tcp"),
                side("udp-gso", false, true, "udp"),
                side("tcp-batched", false, true, "tcp"),
                side("zmq", false, false, "tcp"),
            ],
        };
        let names: Vec<_> =
            pairs(&outcome).map(|(one, two)| (one.side.as_str(), two.side.as_str())).collect();
        let expected = [
            ("lanecast-ru", "udp-gso"),
            ("lanecast-ru", "zmq"),
            ("lanecast-tcp", "tcp-batched"),
            ("lanecast-tcp", "zmq"),
            ("zmq", "tcp-batched"),
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn sides_with_an_option_stand_beside_those_without() {
        let outcome = Outcome {
            cell: Cell::alone(Row::XdpPingpong),
            sides: vec![
                side("lanecast-ru", true, false, "udp"),
                side("lanecast-ru-xdp", true, false, "udp"),
                side("udp", false, true, "udp"),
                side("udp-uring", false, true, "udp"),
            ],
        };
        let names: Vec<_> =
            pairs(&outcome).map(|(one, two)| (one.side.as_str(), two.side.as_str())).collect();
        let expected = [
            ("lanecast-ru", "udp"),
            ("lanecast-ru", "udp-uring"),
            ("lanecast-ru-xdp", "lanecast-ru"),
            ("lanecast-ru-xdp", "udp"),
            ("lanecast-ru-xdp", "udp-uring"),
            ("udp-uring", "udp"),
        ];
        assert_eq!(names, expected);
    }
}
