//! Processes' counters and errors as sheets.

use crate::counters::Process;
use crate::printable::printable;
use crate::table::{grouped, rate};
use crate::top::sheet::{Cell, Column, Row, Sheet, Tone};
use lanecast_stats::ErrorReport;

const COUNTERS: [Column; 5] = [
    Column::text("counter", 0, 0),
    Column::number("pid", 7, 3),
    Column::text("process", 16, 4),
    Column::number("value", 14, 1),
    Column::number("rate", 10, 2),
];

/// Column of the process's number in the table of counters.
pub(crate) const COUNTER_PID: usize = 1;

const ERRORS: [Column; 5] = [
    Column::text("error", 0, 0),
    Column::number("pid", 7, 2),
    Column::text("process", 16, 4),
    Column::number("times", 9, 1),
    Column::number("last", 12, 3),
];

/// Column of the age in the table of errors.
pub(crate) const ERROR_AGE: usize = 4;

/// All counters of all processes.
pub(crate) fn counters(processes: &[Process]) -> Sheet {
    let rows = processes.iter().flat_map(|process| {
        let report = &process.report;
        report.counters.iter().enumerate().map(move |(index, counter)| {
            let growth = process.rate(index);
            let tone = if growth.is_some_and(|rate| rate > 0.0) { Tone::Good } else { Tone::Faint };
            let shown = growth.map_or_else(|| "-".into(), rate);
            let value = Cell::amount(counter.value as f64, grouped(counter.value));
            let rate = Cell::amount(growth.unwrap_or(0.0), shown).with_tone(tone);
            row(process, &process.label(index), index, [value, rate])
        })
    });
    Sheet { columns: &COUNTERS, rows: rows.collect() }
}

/// All distinct errors of all processes; `unix_ns` is now.
pub(crate) fn errors(processes: &[Process], unix_ns: u64) -> Sheet {
    let rows = processes.iter().flat_map(|process| {
        process.report.errors.iter().enumerate().map(move |(index, error)| {
            row(process, &error.text, index, error_cells(error, unix_ns))
        })
    });
    Sheet { columns: &ERRORS, rows: rows.collect() }
}

fn error_cells(error: &ErrorReport, unix_ns: u64) -> [Cell; 2] {
    let age = unix_ns.saturating_sub(error.last_unix_ns);
    // The latest first: the least age is the largest amount.
    let last = Cell::amount(-(age as f64), ago(age / 1_000_000_000));
    [Cell::amount(error.count as f64, grouped(error.count)), last]
}

/// Time in the past, such as `3 min ago`.
fn ago(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s ago"),
        120..7200 => format!("{} min ago", seconds / 60),
        7200..172_800 => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / 86_400),
    }
}

fn row(process: &Process, text: &str, index: usize, last: [Cell; 2]) -> Row {
    let report = &process.report;
    let mut cells = vec![
        Cell::text(printable(text)),
        Cell::ordinal(report.process.pid.into()),
        Cell::text(printable(&report.name)),
    ];
    cells.extend(last);
    Row { name: format!("{} {index}", report.path.display()), cells }
}

#[cfg(test)]
mod tests {
    use super::ago;

    #[test]
    fn times_past_are_short() {
        let times = [0, 119, 120, 7199, 7200, 172_800, u64::MAX / 1_000_000_000].map(ago);
        let short = ["0 s ago", "119 s ago", "2 min ago", "119 min ago", "2 h ago", "2 d ago"];
        assert_eq!(times[..6], short);
        assert_eq!(times[6], "213503 d ago");
    }
}
