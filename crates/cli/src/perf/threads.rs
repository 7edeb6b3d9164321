//! Arguments and runner that the measurements between threads share.
//!
//! This process starts one process for each repetition, one at a time, and waits for its lines.

use super::files::{FilesArgs, Times};
use super::priority;
use super::progress::Progress;
use super::record::Record;
use crate::child::{ChildProcess, Deadline};
use crate::output::{print_line, warn, words};
use anyhow::bail;
use lanecast_base::parse_duration;
use lanecast_measure::smx::{RunLength, Skipped};
use lanecast_measure::{
    DeliveryErrors, Head, Kind, PriorityChange, PriorityRequest, expected_time, parse_number,
};
use serde::Serialize;
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The exit status for options that do not go together.
const REFUSED: u8 = 2;
/// The longest that a run can be asked to take.
const LONGEST: Duration = Duration::from_secs(600);
/// Constant part of a run's limit, added to its expected time.
const SLACK: Duration = Duration::from_secs(20);
/// Factor on the expected time of a run that gives its limit.
const SLOWNESS: u32 = 10;
/// Least expected rate of a run with a fixed number of messages.
const LEAST_RATE: f64 = 20_000.0;
/// The counts of a line that must be nought.
const WRONG: [&str; 4] = ["lost", "duplicated", "disordered", "damaged"];

/// Arguments about how much is measured, and where the figures go.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadsArgs {
    /// Shorter, and less often
    #[arg(long)]
    pub(super) quick: bool,

    /// Time of each repetition
    #[arg(long, value_name = "DURATION", value_parser = time)]
    time: Option<Duration>,

    /// Send so many messages instead, all producers together
    #[arg(short = 'n', long, value_name = "COUNT", conflicts_with = "time")]
    #[arg(value_parser = messages)]
    messages: Option<u64>,

    /// Repetitions of the series [default: 5, with --quick 3]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: Option<u32>,

    /// CPUs of the threads, producers first, such as 1,0 [default: what lanecast doctor proposes]
    #[arg(long, value_name = "CPUS", value_delimiter = ',')]
    pub(super) cpus: Vec<usize>,

    /// Print the measurement lines, and nothing else
    #[arg(long)]
    json: bool,

    /// Measure in this process, once: what each repetition does in a process of its own
    #[arg(long, hide = true)]
    pub(super) own_session: bool,

    #[command(flatten)]
    files: FilesArgs,
}

/// One run of a series.
#[derive(Debug)]
pub(super) struct Turn {
    /// Title of the run.
    pub(super) what: String,
    /// The command line that measures it, but for what this module adds.
    pub(super) words: Vec<String>,
}

/// Names of one kind of measurement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    pub(super) name: &'static str,
    /// Default time of a repetition, without and with `--quick`.
    pub(super) time: Duration,
    pub(super) quick: Duration,
}

impl ThreadsArgs {
    /// Length of each case.
    pub(super) fn length(&self, series: Series) -> RunLength {
        let usual = if self.quick { series.quick } else { series.time };
        match self.messages {
            Some(messages) => RunLength::Messages(messages),
            None => RunLength::Time(self.time.unwrap_or(usual)),
        }
    }

    /// Runs every turn in a process of its own, again and again.
    pub(super) fn conduct(
        &self,
        series: Series,
        turns: &[Turn],
        left_out: &[String],
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<ExitCode> {
        let files = self.files.open(Times::None(
            "messages between threads have no time of their \
            own here: their density is in the .jsonl",
        ))?;
        PriorityChange::by(PriorityRequest::Auto);
        let (head, mut record) = (Head::now(), Record::default());
        for why in left_out {
            record.lines.push(skipped(&head, series, why)?);
        }
        let repetitions = self.repetitions.unwrap_or(if self.quick { 3 } else { 5 });
        let length = self.length(series);
        let each = expected(length);
        let rounds = u32::try_from(turns.len()).unwrap_or(u32::MAX).saturating_mul(repetitions);
        let mut progress = Progress::new(each.saturating_mul(rounds));
        let all = (1..=repetitions).flat_map(|at| turns.iter().map(move |turn| (at, turn)));
        for (repetition, turn) in all.take_while(|_| !stop()) {
            let what = format!("{} ({repetition}/{repetitions})", turn.what);
            progress.begin(&what, each);
            let until = Instant::now() + SLACK + each.saturating_mul(SLOWNESS);
            match measured(series, turn, length, &Deadline { until, stop }) {
                Ok(mut line) => {
                    // One command has made all of them; its line says what was varied.
                    line["command"] = head.command.clone().into();
                    line["repetition"] = repetition.into();
                    line["repetitions"] = repetitions.into();
                    record.keep(line.to_string(), wrong(&line).is_none());
                    wrong(&line).iter().for_each(|wrong| warn(&format!("{what}: {wrong}")));
                }
                Err(_) if stop() => {}
                Err(error) => {
                    let why = format!("{what}: {}", words(&error));
                    warn(&why);
                    record.fail(skipped(&head, series, &why)?);
                }
            }
        }
        progress.finish();
        record.publish(self.json, files)?;
        if stop() {
            bail!("interrupted: the figures so far are written");
        }
        if record.failed > 0 {
            bail!("{} of {rounds} runs failed: their figures are worth nothing", record.failed);
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Makes this process the measured one, and prints what `measure` finds.
    pub(super) fn measure<R: Serialize>(
        &self,
        kind: Kind,
        wrong: fn(&R) -> &DeliveryErrors,
        measure: impl FnOnce(PriorityChange) -> anyhow::Result<R>,
    ) -> anyhow::Result<ExitCode> {
        let head = Head::now();
        priority::leave_session()?;
        let result = measure(PriorityChange::by(PriorityRequest::Auto))?;
        print_line(&head.line(kind, &result)?)?;
        Ok(if wrong(&result).is_any() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Says what is wrong with the options.
pub(super) fn refuse(why: &str) -> ExitCode {
    warn(why);
    ExitCode::from(REFUSED)
}

/// The line of one turn, from a process of its own.
fn measured(
    series: Series,
    turn: &Turn,
    length: RunLength,
    deadline: &Deadline<'_>,
) -> anyhow::Result<Value> {
    let length = match length {
        RunLength::Messages(messages) => ["-n".to_owned(), messages.to_string()],
        RunLength::Time(time) => ["--time".to_owned(), lanecast_base::format_duration(time)],
    };
    let fixed = ["perf", series.name, "--json", "--own-session"].map(str::to_owned);
    let words = [&fixed[..], &length, &turn.words].concat();
    let mut actor = ChildProcess::start("measuring process", &words)?;
    let line = actor.read(deadline)?;
    actor.finish(deadline)?;
    Ok(line)
}

/// Description of the messages that were lost, repeated or damaged.
fn wrong(line: &Value) -> Option<String> {
    let count = |name: &&str| line[name].as_u64().unwrap_or(1);
    let found = WRONG.iter().filter(|name| count(name) > 0);
    let words: Vec<_> = found.map(|name| format!("{} {name}", count(name))).collect();
    (!words.is_empty()).then(|| format!("messages were not what was sent: {}", words.join(", ")))
}

fn skipped(head: &Head, series: Series, why: &str) -> anyhow::Result<String> {
    let skipped = Skipped { experiment: series.name, why: why.to_owned() };
    Ok(head.line(Kind::Skipped, &skipped)?)
}

fn expected(length: RunLength) -> Duration {
    let overhead = Duration::from_millis(70);
    overhead
        + match length {
            RunLength::Time(time) => time,
            RunLength::Messages(messages) => expected_time(messages, LEAST_RATE),
        }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    let fits = (Duration::from_millis(1)..=LONGEST).contains(&time);
    if fits { Ok(time) } else { Err("a run takes between 1ms and 10min".to_owned()) }
}

fn messages(text: &str) -> Result<u64, String> {
    const MOST: u64 = 1_000_000_000_000;
    match parse_number::<u64>(text).map_err(|error| error.to_string())? {
        count @ 1..=MOST => Ok(count),
        _ => Err(format!("a run has between 1 and {MOST} messages")),
    }
}

/// A list as the command line takes it.
pub(super) fn listed<T: ToString>(items: &[T]) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whatever_is_wrong_with_a_line_is_said() {
        let right = json!({"lost": 0, "duplicated": 0, "disordered": 0, "damaged": 0});
        assert_eq!(wrong(&right), None);
        for name in WRONG {
            let mut line = right.clone();
            line[name] = 3.into();
            assert!(wrong(&line).unwrap().ends_with(&format!(": 3 {name}")));
        }
        assert!(wrong(&json!({})).is_some(), "a line without counts proves nothing");
    }

    #[test]
    fn absurd_lengths_are_refused() {
        for text in ["0s", "999us", "11min", "x"] {
            assert!(time(text).is_err(), "{text}");
        }
        for text in ["0", "-1", "1000000000001", "many"] {
            assert!(messages(text).is_err(), "{text}");
        }
        assert_eq!((time("1ms").is_ok(), messages("1")), (true, Ok(1)));
    }
}
