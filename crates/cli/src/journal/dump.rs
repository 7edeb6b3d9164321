//! `lanecast journal dump`.

use super::arguments::JournalArgs;
use crate::output::{ReaderCheck, standard_output};
use crate::printable::{printable, printable_json};
use crate::stop;
use crate::table::utc;
use crate::usage::refuse;
use lanecast_journal::{Reader, Record, Replay, ReplayEnd, ReplayPace, ReplayStep, Start};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

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

    /// End in front of the record with this sequence
    #[arg(long, value_name = "SEQUENCE", conflicts_with = "until_ns")]
    until: Option<u64>,

    /// End in front of the first record of this time or later, in nanoseconds since 1970
    #[arg(long, value_name = "TIME")]
    until_ns: Option<u64>,

    /// Replay so many records per second
    #[arg(long, value_name = "N", conflicts_with = "speed")]
    rate: Option<f64>,

    /// Replay at the recorded distances, divided by this: 2 is twice as fast
    #[arg(long, value_name = "FACTOR")]
    speed: Option<f64>,

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
    let pace = arguments.pace()?;
    let stop = stop::flag()?;
    let start = match (arguments.from, arguments.since_ns) {
        (Some(sequence), _) => Start::Sequence(sequence),
        (None, Some(unix_ns)) => Start::Time(unix_ns),
        (None, None) => Start::Oldest,
    };
    let cursor = Reader::open(arguments.journal.directory())?.cursor(start)?;
    let mut replay = Replay::new(cursor, arguments.end(), pace);
    let (mut output, mut reader) = (BufWriter::new(standard_output()), ReaderCheck::new());
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 && !stop() {
        match replay.step() {
            Ok(ReplayStep::Record(record)) => {
                if arguments.topic.is_none_or(|topic| topic == record.topic) {
                    let line = if arguments.json { json_line(&record) } else { line(&record) };
                    writeln!(output, "{line}")?;
                    left -= 1;
                }
            }
            Ok(ReplayStep::Due(at)) => {
                output.flush()?;
                reader.check()?;
                thread::sleep(at.saturating_duration_since(Instant::now()).min(CHECK_INTERVAL));
            }
            Ok(ReplayStep::Waiting) if arguments.follow => {
                output.flush()?;
                reader.check()?;
                replay.cursor().wait(CHECK_INTERVAL);
            }
            Ok(_) => break,
            Err(error) => {
                output.flush()?;
                return Err(error.into());
            }
        }
    }
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

impl DumpArgs {
    const fn end(&self) -> ReplayEnd {
        ReplayEnd { sequence: self.until, unix_ns: self.until_ns }
    }

    fn pace(&self) -> anyhow::Result<ReplayPace> {
        let (number, pace) = match (self.rate, self.speed) {
            (Some(rate), _) => (rate, ReplayPace::Rate(rate)),
            (None, Some(factor)) => (factor, ReplayPace::Speed(factor)),
            (None, None) => return Ok(ReplayPace::Full),
        };
        if !(number > 0.0 && number.is_finite()) {
            refuse!("{number} is no pace: give --rate or --speed a number above 0");
        }
        Ok(pace)
    }
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
    printable_json(object.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
