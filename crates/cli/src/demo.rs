//! `lanecast demo`: real input through real processes, one of them killed on the way.

mod actors;
mod content;
mod control;
mod group;
mod store;
mod summary;
mod ticks;

use crate::child::ChildProcess;
use crate::output::{print_error, print_json, print_line, standard_output};
use crate::table::{grouped, rate, render, time};
use crate::temp_domain::TempDomain;
use actors::{PublisherFigures, SubscriberFigures};
use control::Control;
use indicatif::{ProgressBar, ProgressStyle};
use lanecast_report::TextTable;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Starts a publisher that streams a generated file of market-data lines and \
    three subscribers, all processes of their own; kills one subscriber (kill -9) in the middle of \
    the flat-out part. Then publishes a generated day of FIX orders and quotes to a content server \
    with 50 subscribers, and works out by other means what must come of it. Then a group of four \
    processes loses one. Last, a subscriber is killed and gets what it missed from a store.\n\
    Exit status: 0 every subscriber got what it should, 1 error, 3 something was lost or wrong."
)]
pub(crate) struct DemoArgs {
    /// Length of each of the two parts, in seconds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,

    /// Messages per second in the steady part
    #[arg(long, default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    rate: u64,

    /// Lines in the generated file
    #[arg(long, default_value_t = 100_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    lines: u64,

    /// FIX messages of the generated day in the content part (0: leave that part out)
    #[arg(long, default_value_t = 2_000_000)]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=100_000_000))]
    orders: u64,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(subcommand)]
    role: Option<Role>,
}

/// The processes that the demonstration starts.
#[derive(Debug, clap::Subcommand)]
enum Role {
    #[command(hide = true)]
    Publisher { directory: PathBuf, file: PathBuf, seconds: u64, rate: u64, readers: usize },
    #[command(hide = true)]
    Subscriber { directory: PathBuf },
    #[command(hide = true)]
    Member { directory: PathBuf, name: String },
    #[command(hide = true)]
    Store { directory: PathBuf, data: PathBuf },
    #[command(hide = true)]
    Durable { directory: PathBuf, until: u64 },
}

/// Number of subscribers; the last one is killed.
const SUBSCRIBERS: usize = 3;
/// Longer than any part takes: a hanging demonstration ends with an error.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(arguments: &DemoArgs) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Some(Role::Publisher { directory, file, seconds, rate, readers }) => {
            actors::publish(directory, file, Duration::from_secs(*seconds), *rate, *readers)
        }
        Some(Role::Subscriber { directory }) => actors::subscribe(directory),
        Some(Role::Member { directory, name }) => group::member(directory, name),
        Some(Role::Store { directory, data }) => store::keep(directory, data),
        Some(Role::Durable { directory, until }) => store::subscribe(directory, *until),
        None => direct(arguments),
    }
}

/// Results of all parts.
#[derive(Debug, Serialize)]
struct Outcomes {
    #[serde(flatten)]
    messages: summary::Outcome,
    content: Option<content::Outcome>,
    group: group::Outcome,
    store: store::Outcome,
}

fn direct(arguments: &DemoArgs) -> anyhow::Result<ExitCode> {
    let stop = crate::stop::flag()?;
    let stage = TempDomain::build("demo")?;
    let file = stage.path("ticks.txt");
    ticks::generate(&file, arguments.lines)?;
    let progress = progress(arguments);
    let control = Control { step: &|step| progress.set_message(step), stop: &stop };
    let (messages, complaints) = messages(arguments, &stage.path("domain"), &file, &control)?;
    if !complaints.is_empty() {
        progress.suspend(|| print_error(&complaints));
    }
    if !arguments.json {
        progress.suspend(|| print_outcome(&messages, &file, arguments))?;
    }
    let content = match arguments.orders {
        0 => None,
        count => Some(content::run(count, &control)?),
    };
    if !arguments.json
        && let Some(content) = &content
    {
        progress.suspend(|| print_line(&format!("\n{}", content.words())))?;
    }
    let group = group::run(&control)?;
    if !arguments.json {
        progress.suspend(|| print_line(&format!("\n{}", group.words())))?;
    }
    let store = store::run(&control)?;
    progress.finish_and_clear();
    let outcomes = Outcomes { messages, content, group, store };
    if arguments.json {
        print_json(&outcomes)?;
    } else {
        print_line(&format!("\n{}", outcomes.store.words()))?;
    }
    let is_right = outcomes.content.as_ref().is_none_or(content::Outcome::is_right)
        && outcomes.group.is_right()
        && outcomes.store.is_right();
    Ok(ExitCode::from(if outcomes.messages.is_complete() && is_right { 0 } else { 3 }))
}

/// The first part: one publisher and three subscribers in shared memory, one of them killed. Also
/// what the publisher complained of.
fn messages(
    arguments: &DemoArgs,
    domain: &Path,
    file: &Path,
    control: &Control<'_>,
) -> anyhow::Result<(summary::Outcome, String)> {
    let deadline = control.deadline(PATIENCE + Duration::from_secs(2 * arguments.seconds));
    let words = |role: &str, rest: &[String]| {
        [&["demo".into(), role.into(), domain.to_string_lossy().into_owned()], rest].concat()
    };
    let mut subscribers = (0..SUBSCRIBERS)
        .map(|_| ChildProcess::start("subscriber", &words("subscriber", &[])))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let numbers = [arguments.seconds, arguments.rate, SUBSCRIBERS as u64];
    let mut rest = vec![file.to_string_lossy().into_owned()];
    rest.extend(numbers.map(|number| number.to_string()));
    let mut publisher = ChildProcess::start("publisher", &words("publisher", &rest))?;

    // The publisher prints a line when its steady part is over.
    let steady: PublisherFigures = publisher.read(&deadline)?;
    (control.step)("flat out");
    control.sleep(Duration::from_millis(500 * arguments.seconds))?;
    let mut victim = subscribers.remove(SUBSCRIBERS - 1);
    victim.end();
    (control.step)("flat out, one subscriber killed");
    let flat_out: PublisherFigures = publisher.read(&deadline)?;
    let survivors = subscribers
        .iter_mut()
        .map(|subscriber| subscriber.read(&deadline))
        .collect::<anyhow::Result<Vec<SubscriberFigures>>>()?;
    let complaints = publisher.finish(&deadline)?;
    let outcome = summary::Outcome::new(steady, flat_out, survivors, victim.pid());
    Ok((outcome, complaints))
}

fn progress(arguments: &DemoArgs) -> ProgressBar {
    let bar = if arguments.json { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    if let Ok(style) = ProgressStyle::with_template("{spinner} {elapsed} {msg}") {
        bar.set_style(style);
    }
    bar.set_message("steady");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

fn print_outcome(
    outcome: &summary::Outcome,
    file: &Path,
    arguments: &DemoArgs,
) -> anyhow::Result<()> {
    let mut output = standard_output();
    let lines = grouped(arguments.lines);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    writeln!(
        output,
        "One publisher streams {name} ({lines} lines of market data) to {SUBSCRIBERS} others."
    )?;
    writeln!(output)?;
    let columns = ["process", ">pid", ">messages", ">lost", ">steady p50", ">p99", ">p99.9"];
    let mut processes = TextTable::new(&[&columns[..], &["state at the end"][..]].concat());
    let publisher = &outcome.flat_out;
    let blanks = || [String::new(), String::new(), String::new(), String::new()];
    let row = |name: &str, pid: u32, messages: String, cells: [String; 4], fate: String| {
        let mut row = vec![name.to_owned(), pid.to_string(), messages];
        row.extend(cells);
        row.push(fate);
        row
    };
    let sent = grouped(publisher.total);
    let fate = "sent everything, waited for readers, closed".to_owned();
    processes.row(row("publisher", publisher.pid, sent, blanks(), fate));
    for survivor in &outcome.survivors {
        let cells = [
            grouped(outcome.lost(survivor)),
            time(survivor.p50_ns),
            time(survivor.p99_ns),
            time(survivor.p99_9_ns),
        ];
        let messages = grouped(survivor.received);
        processes.row(row("subscriber", survivor.pid, messages, cells, survivor.fate.clone()));
    }
    let stall = time(publisher.longest_wait_ns);
    let fate = format!("killed (kill -9); the publisher never waited longer than {stall}");
    processes.row(row("subscriber", outcome.victim_pid, "?".into(), blanks(), fate));
    write!(output, "{}", render(&processes))?;
    writeln!(output)?;
    writeln!(output, "steady    {:>12}   asked for {}", rate(outcome.steady.rate), arguments.rate)?;
    writeln!(
        output,
        "flat out  {:>12}   {} B messages",
        rate(publisher.rate),
        publisher.mean_bytes
    )?;
    let clock = lanecast_base::clock::Clock::host();
    writeln!(
        output,
        "latency   from the intended send time to the end of reading, {} samples each, clock {}, \
         not pinned, {} CPUs, waiting: spin-park",
        grouped(outcome.steady.total),
        clock.name(),
        lanecast_os::affinity::online().len(),
    )?;
    writeln!(output)?;
    writeln!(output, "{}", outcome.words())?;
    Ok(())
}
