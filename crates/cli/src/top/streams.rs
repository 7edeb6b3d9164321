//! Sessions and their subscribers as sheets.

use crate::printable::{list, printable};
use crate::sessions::{Session, Subscriber, wait_name};
use crate::table::{byte_rate, rate, size};
use crate::top::sheet::{Cell, Column, Row, Sheet, Tone};

/// The most columns of a session's topics; wider terminals there are not.
const TOPICS: usize = 400;

const STREAMS: [Column; 10] = [
    Column::text("topics", 0, 0),
    Column::text("session", 16, 9),
    Column::number("pid", 7, 5),
    Column::text("process", 16, 8),
    Column::number("rate", 10, 1),
    Column::number("bytes/s", 10, 4),
    Column::text("window", 11, 2),
    Column::number("subs", 4, 6),
    Column::number("no room", 9, 7),
    Column::text("state", 6, 3),
];

/// Column of the rate in the table of streams.
pub(crate) const STREAM_RATE: usize = 4;

const SUBSCRIBERS: [Column; 9] = [
    Column::text("subscriber", 0, 0),
    Column::number("pid", 7, 6),
    Column::text("lag", 11, 1),
    Column::number("bytes", 10, 8),
    Column::number("messages", 11, 9),
    Column::number("rate", 10, 2),
    Column::number("sleeps", 9, 7),
    Column::text("wait", 9, 5),
    Column::text("state", 22, 3),
];

/// All sessions.
pub(crate) fn streams(sessions: &[Session]) -> Sheet {
    Sheet { columns: &STREAMS, rows: sessions.iter().map(stream).collect() }
}

fn stream(session: &Session) -> Row {
    let Session { report, rates } = session;
    let held = rates.back_pressured;
    let subscribers = report.subscribers.len();
    let cells = vec![
        Cell::text(list(&report.topics, TOPICS)),
        Cell::text(session.number()).with_tone(Tone::Faint),
        Cell::ordinal(report.publisher.pid.into()),
        Cell::text(printable(&report.name)),
        Cell::amount(rates.messages, rate(rates.messages)),
        Cell::amount(rates.bytes, byte_rate(rates.bytes)),
        Cell::bar(session.fill()),
        Cell::amount(subscribers as f64, subscribers.to_string()),
        Cell::amount(held, rate(held)).with_tone(if held > 0.0 {
            Tone::Warning
        } else {
            Tone::Faint
        }),
        Cell::text(session.state().into()).with_tone(tone(session.state())),
    ];
    Row { name: session.number(), cells }
}

/// The subscribers of a session, the one with the largest lag first.
pub(crate) fn subscribers(session: &Session) -> Sheet {
    let mut rows: Vec<_> = session.subscribers().map(|subscriber| row(&subscriber)).collect();
    rows.sort_by(|(a, _), (b, _)| b.cmp(a));
    Sheet { columns: &SUBSCRIBERS, rows: rows.into_iter().map(|(_, row)| row).collect() }
}

fn row(subscriber: &Subscriber<'_>) -> (u64, Row) {
    let (report, rates) = (subscriber.report, subscriber.rates);
    let state = if subscriber.holds_publisher_up() {
        let is_stopped = subscriber.state() == "stopped";
        let words = if is_stopped { "stopped, holds it up" } else { "holds the publisher up" };
        Cell::text(words.into()).with_tone(Tone::Bad)
    } else {
        Cell::text(subscriber.state().into()).with_tone(tone(subscriber.state()))
    };
    let cells = vec![
        Cell::text(printable(&report.name)),
        Cell::ordinal(report.process.pid.into()),
        Cell::bar(subscriber.fill()),
        Cell::amount(report.lag_bytes as f64, size(report.lag_bytes)),
        Cell::amount(subscriber.lag_messages().unwrap_or(0) as f64, subscriber.behind()),
        Cell::amount(rates.messages, rate(rates.messages)),
        Cell::amount(rates.sleeps, rate(rates.sleeps)),
        Cell::text(wait_name(report.wait).into()),
        state,
    ];
    (report.lag_bytes, Row { name: report.slot.to_string(), cells })
}

fn tone(state: &str) -> Tone {
    match state {
        "alive" => Tone::Good,
        "closed" => Tone::Faint,
        "stopped" => Tone::Warning,
        _ => Tone::Bad,
    }
}
