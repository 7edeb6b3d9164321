//! Changes as lines, where no terminal is.

use super::arguments::WatchArgs;
use super::change::{Change, ChangeKind, Update, read_update};
use crate::content::fields;
use crate::content::grid::Grid;
use crate::output::{ReaderCheck, print_error, standard_output};
use crate::printable::printable_json;
use crate::stop;
use lanecast_client::Client;
use serde_json::Value;
use std::collections::HashSet;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Longest delay until the stop flag is seen.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn run(arguments: &WatchArgs, mut client: Client) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let mut grid = Grid::new(arguments.records.kind, &arguments.columns, std::iter::empty())?;
    let mut known = HashSet::new();
    let (mut output, mut reader) = (BufWriter::new(standard_output()), ReaderCheck::new());
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        let mut event = client.next(Some(Duration::ZERO))?;
        if event.is_none() {
            output.flush()?;
            reader.check()?;
            event = client.next(Some(CHECK_INTERVAL))?;
        }
        let Some(event) = event else { continue };
        match read_update(event, |key| known.contains(&key))? {
            Update::Change(change) => {
                match change.kind {
                    ChangeKind::Removed => known.remove(&change.key),
                    _ => known.insert(change.key),
                };
                let line = if arguments.is_json() {
                    printable_json(object(arguments, &change))
                } else {
                    format!("{} {}", sign(change.kind), shown(&mut grid, &change.body))
                };
                writeln!(output, "{line}")?;
                left -= 1;
            }
            Update::Current => {}
            Update::Restart => {
                known.clear();
                print_error("the connection broke and is there again: all records follow anew");
            }
        }
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

const fn sign(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "+",
        ChangeKind::Changed => "~",
        ChangeKind::Removed => "-",
    }
}

/// The chosen fields, or the message as it is typed; without anything that controls a terminal.
fn shown(grid: &mut Grid, body: &[u8]) -> String {
    match grid.cells(body) {
        Ok(cells) if !cells.is_empty() => cells.join("\t"),
        _ => grid.whole(body),
    }
}

fn object(arguments: &WatchArgs, change: &Change) -> String {
    let quoted = |text: &str| Value::from(text).to_string();
    let mut members = vec![format!(r#""change":"{}""#, sign(change.kind))];
    let mut member = |name: &str, json: String| members.push(format!("\"{name}\":{json}"));
    if arguments.has_meta() {
        member("command", quoted(change.command));
        member("topic", quoted(arguments.records.topic()));
    }
    // A text, as it may be too great for a number of JSON.
    member("sow_key", quoted(&change.key.to_string()));
    change.reason.iter().for_each(|text| member("reason", quoted(text)));
    let correlation = change.correlation.as_ref().filter(|_| arguments.has_meta());
    correlation.into_iter().for_each(|text| member("correlation_id", quoted(text)));
    match fields::parse(arguments.records.kind.kind, &change.body) {
        Ok(fields) => member("message", fields.json()),
        Err(error) => {
            member("malformed", quoted(&error));
            member("text", quoted(&String::from_utf8_lossy(&change.body)));
        }
    }
    format!("{{{}}}", members.join(","))
}
