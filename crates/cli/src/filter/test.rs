//! `lanecast filter test`.

use super::arguments::FilterArgs;
use super::evaluator::Evaluator;
use super::excerpt::shortened;
use crate::content::Lines;
use crate::output::{standard_output, warn};
use crate::printable::{printable, printable_json};
use lanecast_filter::malformed::Malformed;
use lanecast_filter::ternary::Ternary;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Arguments of `test`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Each line is a message; empty lines are passed over.\n\
    Examples:\n  \
    lanecast filter test \"/55 = 'IBM' and /38 >= 5000\" --type fix orders.txt\n  \
    lanecast sub orders --server | lanecast filter test \"/qty / 2 > 10\" --verbose\n\
    Exit status: 0 a message met it, 1 none did, 2 an error, or a message that cannot be read.")]
pub(crate) struct TestArgs {
    #[command(flatten)]
    filter: FilterArgs,

    /// File to read messages from; standard input for - and without a file
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,

    /// Print every message, what the filter says of it, and why
    #[arg(short, long)]
    verbose: bool,
}

/// A message as `--json` shows it.
#[derive(Debug, Serialize)]
struct Verdict<'a> {
    line: u64,
    truth: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<String>,
    /// Values as filters write them.
    fields: BTreeMap<String, Vec<String>>,
    message: std::borrow::Cow<'a, str>,
}

pub(super) fn run(arguments: &TestArgs) -> anyhow::Result<ExitCode> {
    let filter = arguments.filter.parse()?;
    let mut evaluator = Evaluator::new(&filter, arguments.filter.kind.kind)?;
    let mut lines = Lines::open(arguments.file.as_deref())?;
    let mut output = BufWriter::new(standard_output());
    let is_terminal = io::stdout().is_terminal();
    let (mut has_match, mut has_error) = (false, false);
    while let Some(line) = lines.next()? {
        let mut message = line.clone();
        arguments.filter.kind.meant(&mut message);
        let truth = evaluator.truth(&message);
        has_match |= truth == Ok(Ternary::True);
        has_error |= truth.is_err();
        match truth {
            Err(error) if !arguments.verbose => {
                warn(&format!("line {}: {error}", lines.number));
            }
            Ok(Ternary::False | Ternary::Unknown) if !arguments.verbose => {}
            truth if arguments.filter.json => {
                let verdict = verdict(&evaluator, lines.number, truth, &line, &message);
                writeln!(output, "{}", printable_json(serde_json::to_string(&verdict)?))?;
            }
            truth if arguments.verbose => {
                let shown = printable(&String::from_utf8_lossy(&line));
                let why = reasons(&evaluator, truth, &message);
                writeln!(output, "{:<10} {shown}\n{:<10} {why}", word(truth), "")?;
            }
            _ if is_terminal => {
                writeln!(output, "{}", printable(&String::from_utf8_lossy(&line)))?;
            }
            _ => {
                output.write_all(&line)?;
                output.write_all(b"\n")?;
            }
        }
        if lines.may_wait() {
            output.flush()?;
        }
    }
    output.flush()?;
    Ok(ExitCode::from(match (has_error, has_match) {
        (true, _) => 2,
        (false, true) => 0,
        (false, false) => 1,
    }))
}

fn word(truth: Result<Ternary, Malformed>) -> &'static str {
    match truth {
        Ok(Ternary::True) => "true",
        Ok(Ternary::False) => "false",
        Ok(Ternary::Unknown) => "unknown",
        Err(_) => "malformed",
    }
}

/// The condition that failed, and what was looked at.
fn reasons(evaluator: &Evaluator, truth: Result<Ternary, Malformed>, message: &[u8]) -> String {
    if let Err(error) = truth {
        return error.to_string();
    }
    let seen = evaluator.evidence(message).into_iter().map(|(path, values)| match &*values {
        [] => format!("{path} absent"),
        values => format!("{path} = {}", values.join(" and ")),
    });
    let seen = seen.collect::<Vec<_>>().join(", ");
    printable(&match evaluator.objection(message) {
        Some((text, truth)) => format!("{} is {}: {seen}", shortened(text), word(Ok(truth))),
        None => seen,
    })
}

fn verdict<'a>(
    evaluator: &Evaluator,
    line: u64,
    truth: Result<Ternary, Malformed>,
    typed: &'a [u8],
    message: &[u8],
) -> Verdict<'a> {
    let (because, fields) = match truth {
        Err(error) => (Some(error.to_string()), BTreeMap::new()),
        Ok(_) => {
            let objection = evaluator.objection(message);
            let words = |(text, truth)| format!("{text} is {}", word(Ok(truth)));
            (objection.map(words), evaluator.evidence(message).into_iter().collect())
        }
    };
    let message = String::from_utf8_lossy(typed);
    Verdict { line, truth: word(truth), because, fields, message }
}
