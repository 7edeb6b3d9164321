//! Tables of the rows between threads.

use crate::campaign::{Outcome, Run, SideRuns};
use crate::cell::Cell;
use crate::row::Row;
use crate::summary::{figure, p50, rate, ratio};

use super::cells::{actual, lost, millions, range, ratio_text, whole};
use super::table::Table;

/// Title of a row.
pub fn headline(row: Row) -> &'static str {
    match row {
        Row::Queue => "queue: 8-byte values, published one by one, drained as the library can",
        Row::Pop => "pop: 8-byte values, pushed and popped one by one",
        Row::Batch => "batch: 8-byte values, published and drained in batches",
        Row::Multicast => "multicast: each of 3 consumers on one CPU gets every value, yielding",
        Row::Diamond => "diamond: the third consumer gets what two others are done with, yielding",
        Row::Mpmc => "mpmc: each value to one of several consumers, both CPUs shared, yielding",
        Row::Pingpong => "pingpong: round trips, both ends spin; bare = one cache line",
        Row::PingpongPark => "pingpong-park: round trips, both ends sleep; bare = futex",
        _ => "pipe: 8-byte values one way, visible at once, one by one and in batches",
    }
}

/// Messages per second; the order of each stream and the sums have been checked.
pub fn rates(outcomes: &[Outcome]) -> String {
    let head = ["who", "batch", "side", "M msgs/s", "(min..max)", "ns", "lost", "ratio", "way"];
    let columns = head.len();
    let mut table = Table::new(head);
    for outcome in outcomes {
        let Cell { producers, subscribers, batch, .. } = outcome.cell;
        for runs in &outcome.sides {
            let first = vec![format!("{producers}P-{subscribers}C"), batch.to_string()];
            let Some(summary) = figure(runs, rate) else {
                table.add(failed(first, runs, columns));
                continue;
            };
            let figures = vec![
                runs.side.clone(),
                millions(summary.median),
                range(&summary, millions),
                format!("{:.2}", 1e9 / summary.median),
                lost(runs),
                ratio_text(ratio(outcome, &runs.side, rate), runs),
                way(runs),
            ];
            table.add([first, figures].concat());
        }
    }
    table.to_string()
}

/// Time of a round trip.
pub fn round_trips(outcomes: &[Outcome]) -> String {
    let head =
        ["where", "side", "min ns", "p50 ns", "(min..max)", "p90", "p99", "lost", "ratio", "way"];
    let columns = head.len();
    let mut table = Table::new(head);
    for outcome in outcomes {
        for runs in &outcome.sides {
            let first = vec![outcome.cell.place().to_owned()];
            let Some(median) = figure(runs, p50) else {
                table.add(failed(first, runs, columns));
                continue;
            };
            let figures = vec![
                runs.side.clone(),
                actual(runs, |latency| latency.min_ns),
                whole(median.median),
                range(&median, whole),
                actual(runs, |latency| latency.p90_ns),
                actual(runs, |latency| latency.p99_ns),
                lost(runs),
                ratio_text(ratio(outcome, &runs.side, p50), runs),
                way(runs),
            ];
            table.add([first, figures].concat());
        }
    }
    table.to_string()
}

fn failed(mut row: Vec<String>, runs: &SideRuns, columns: usize) -> Vec<String> {
    row.extend([runs.side.clone(), "failed".into()]);
    row.resize(columns, String::new());
    row
}

/// In which way the side was used.
fn way(runs: &SideRuns) -> String {
    let first = runs.runs.iter().find_map(Run::measurement);
    first.map(|run| run.way.clone()).unwrap_or_default()
}
