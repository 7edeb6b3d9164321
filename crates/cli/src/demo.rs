//! `lanecast demo`: real input through real processes, one of them killed on the way.

mod actors;
mod ticks;
mod verdict;

use crate::output::print_json;
use crate::table::{grouped, rate, render, table, time};
use actors::{PublisherFigures, SubscriberFigures};
use anyhow::{Context as _, bail};
use indicatif::{ProgressBar, ProgressStyle};
use lanecast_base::sync::{AtomicBool, Ordering};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Arguments of `demo`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Starts a publisher that streams a generated file of market-data lines and \
    three subscribers, all processes of their own; kills one subscriber (kill -9) in the middle of \
    the flat-out part.\nExit status: 0 every survivor got every message, 1 error, \
    3 something was lost."
)]
pub(crate) struct DemoArgs {
    /// How long each of the two parts takes, in seconds
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
}

/// How many subscribers there are; the last one is killed.
const SUBSCRIBERS: usize = 3;
/// Longer than any part takes: a hanging demonstration ends with an error.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(arguments: &DemoArgs) -> anyhow::Result<ExitCode> {
    match &arguments.role {
        Some(Role::Publisher { directory, file, seconds, rate, readers }) => {
            actors::publish(directory, file, Duration::from_secs(*seconds), *rate, *readers)
        }
        Some(Role::Subscriber { directory }) => actors::subscribe(directory),
        None => direct(arguments),
    }
}

/// A directory of the demonstration's own, removed at its end.
struct Stage(PathBuf);

impl Stage {
    fn build() -> anyhow::Result<Self> {
        let shm = Path::new("/dev/shm");
        let parent = if shm.is_dir() { shm.to_owned() } else { std::env::temp_dir() };
        let number = lanecast_os::process::random()?;
        let path = parent.join(format!("lanecast-demo-{number:016x}"));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A process of the demonstration; it does not outlive it.
struct Actor {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Actor {
    fn start(words: &[&str]) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's file")?;
        let mut child =
            Command::new(program).arg("demo").args(words).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().map(BufReader::new);
        Ok(Self { child, output })
    }

    /// The next line that it prints, as data.
    fn read<T: DeserializeOwned>(&mut self) -> anyhow::Result<T> {
        let mut line = String::new();
        if let Some(output) = &mut self.output {
            output.read_line(&mut line)?;
        }
        if line.is_empty() {
            bail!("process {} of the demonstration ended without a result", self.child.id());
        }
        Ok(serde_json::from_str(&line)?)
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn direct(arguments: &DemoArgs) -> anyhow::Result<ExitCode> {
    let stage = Stage::build()?;
    let domain = stage.0.join("domain");
    let file = stage.0.join("ticks.txt");
    ticks::generate(&file, arguments.lines)?;
    let progress = progress(arguments);
    let paths = [domain.to_string_lossy(), file.to_string_lossy()];
    let mut subscribers = (0..SUBSCRIBERS)
        .map(|_| Actor::start(&["subscriber", &paths[0]]))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let (seconds, rate) = (arguments.seconds.to_string(), arguments.rate.to_string());
    let readers = SUBSCRIBERS.to_string();
    let words = ["publisher", &paths[0], &paths[1], &seconds, &rate, &readers];
    let mut publisher = Actor::start(&words)?;
    let watchdog = Watchdog::start(
        subscribers.iter().chain([&publisher]).map(|actor| actor.child.id()).collect(),
        PATIENCE + Duration::from_secs(2 * arguments.seconds),
    );

    // The publisher prints a line when its steady part is over.
    let steady: PublisherFigures = publisher.read()?;
    progress.set_message("flat out");
    std::thread::sleep(Duration::from_millis(500 * arguments.seconds));
    let mut victim = subscribers.remove(SUBSCRIBERS - 1);
    let victim_pid = victim.child.id();
    victim.child.kill()?;
    victim.child.wait()?;
    progress.set_message("flat out, one subscriber killed");
    let flat_out: PublisherFigures = publisher.read()?;
    let survivors = subscribers
        .iter_mut()
        .map(Actor::read)
        .collect::<anyhow::Result<Vec<SubscriberFigures>>>()?;
    publisher.child.wait()?;
    watchdog.stop();
    progress.finish_and_clear();

    let outcome = verdict::Outcome::new(steady, flat_out, survivors, victim_pid);
    if arguments.json {
        print_json(&outcome)?;
    } else {
        print_outcome(&outcome, &file, arguments)?;
    }
    Ok(ExitCode::from(if outcome.is_complete() { 0 } else { 3 }))
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

/// Ends the actors if the demonstration hangs, so that reading from them ends with an error.
struct Watchdog(Arc<AtomicBool>);

impl Watchdog {
    fn start(pids: Vec<u32>, patience: Duration) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let watched = Arc::clone(&over);
        std::thread::spawn(move || {
            let start = Instant::now();
            while start.elapsed() < patience {
                if watched.load(Ordering::Relaxed) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(200));
            }
            for pid in pids {
                eprintln!("lanecast: process {pid} of the demonstration hangs and is ended");
                let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
            }
        });
        Self(over)
    }

    fn stop(self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn print_outcome(
    outcome: &verdict::Outcome,
    file: &Path,
    arguments: &DemoArgs,
) -> anyhow::Result<()> {
    let mut output = std::io::stdout().lock();
    let lines = grouped(arguments.lines);
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    writeln!(
        output,
        "One publisher streams {name} ({lines} lines of market data) to {SUBSCRIBERS} others."
    )?;
    writeln!(output)?;
    let columns = ["process", ">pid", ">messages", ">lost", ">steady p50", ">p99", ">p99.9"];
    let mut processes = table(&[&columns[..], &["became of it"][..]].concat());
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
    processes.add_row(row("publisher", publisher.pid, sent, blanks(), fate));
    for survivor in &outcome.survivors {
        let cells = [
            grouped(outcome.lost(survivor)),
            time(survivor.p50_ns),
            time(survivor.p99_ns),
            time(survivor.p99_9_ns),
        ];
        let messages = grouped(survivor.received);
        processes.add_row(row("subscriber", survivor.pid, messages, cells, survivor.fate.clone()));
    }
    let stall = time(publisher.longest_wait_ns);
    let fate = format!("killed (kill -9); the publisher never waited longer than {stall}");
    processes.add_row(row("subscriber", outcome.victim_pid, "?".into(), blanks(), fate));
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
