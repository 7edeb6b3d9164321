//! `lanecast journal dump`.

use super::arguments::JournalArgs;
use crate::printable::printable;
use crate::stop;
use crate::table::utc;
use lanecast_journal::{Reader, Record, Start};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;
use std::time::Duration;

/// Longest wait for one record.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Arguments of `dump`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A line has: sequence, time, topic, client:client's sequence, flags, \
    length, body.\nExit status: 0 done, 1 damaged or removed records, or an error.")]
pub(crate) struct DumpArgs {
    #[command(flatten)]
    journal: JournalArgs,

    /// Begin with this record; by default with the oldest
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "since_ns")]
    from: Option<u64>,

    /// Begin with the first record of this time, in nanoseconds since 1970
    #[arg(long, value_name = "TIME")]
    since_ns: Option<u64>,

    /// End after so many records
    #[arg(long, value_name = "N")]
    count: Option<u64>,

    /// Only records of the topic with this number
    #[arg(long, value_name = "NUMBER")]
    topic: Option<u32>,

    /// At the end, wait for more; until Ctrl-C or --count
    #[arg(short, long)]
    follow: bool,

    /// Print one JSON object on each line
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: &DumpArgs) -> anyhow::Result<ExitCode> {
    let stop = stop::flag()?;
    let start = match (arguments.from, arguments.since_ns) {
        (Some(sequence), _) => Start::Sequence(sequence),
        (None, Some(unix_ns)) => Start::Time(unix_ns),
        (None, None) => Start::Oldest,
    };
    let mut cursor = Reader::open(arguments.journal.directory())?.cursor(start)?;
    let mut output = BufWriter::new(stdout().lock());
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        match cursor.read() {
            Ok(Some(record)) => {
                if arguments.topic.is_none_or(|topic| topic == record.topic) {
                    let line = if arguments.json { json_line(&record) } else { line(&record) };
                    writeln!(output, "{line}")?;
                    left -= 1;
                }
            }
            Ok(None) if !arguments.follow => break,
            Ok(None) => {
                output.flush()?;
                cursor.wait(CHECK_INTERVAL);
            }
            Err(error) => {
                output.flush()?;
                return Err(error.into());
            }
        }
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn line(record: &Record<'_>) -> String {
    format!(
        "{:>8}  {}  {:>4}  {}:{}  {:#06x}  {:>5}  {}",
        record.sequence,
        utc(record.unix_ns),
        record.topic,
        record.client,
        record.client_sequence,
        record.flags,
        record.body.len(),
        printable(&String::from_utf8_lossy(record.body)),
    )
}

fn json_line(record: &Record<'_>) -> String {
    let mut object = json!({
        "sequence": record.sequence, "unix_ns": record.unix_ns, "topic": record.topic,
        "client": record.client, "client_sequence": record.client_sequence,
        "flags": record.flags,
    });
    match std::str::from_utf8(record.body) {
        Ok(text) => object["body"] = text.into(),
        Err(_) => object["body_hex"] = hex(record.body).into(),
    }
    object.to_string()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
