//! `lanecast perf ping`.

use super::arguments::{in_flight, parse_cpu};
use super::context::ContextArgs;
use super::files::Times;
use super::persistence;
use super::pong;
use super::round_trip::{ReceiveThread, RoundTripArgs, progress, tell};
use super::transports::{Opened, TransportWork, with_transport};
use crate::output::{INCOMPLETE, print, print_error, print_line, printed};
use crate::usage::refuse;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_measure::ping::{
    DOCUMENT_MESSAGES, DOCUMENT_RATE, DOCUMENT_SIZE, Hooks, Notice, PingError, PingResult,
    PongResult, Settings, Threads, ping,
};
use lanecast_measure::{
    Head, Kind, LinearShape, Pinning, PriorityChange, Setup, parse_number, report,
};
use lanecast_transport::Transport;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

/// Neither thread has a CPU of its own unless it is asked for.
const ANY_CPU: i64 = -1;

/// Arguments of `perf ping`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Needs a pong on the other side: lanecast perf pong. With --transport thread, \
    a thread of this process is the pong.\n\
    Two threads are hot: one sends, one receives; with the pong that is three, so on a machine of \
    two CPUs use --one-thread.\n\
    Without -m, -n, -r and -H it is the streaming test of the UM latency document: 500000 messages \
    of 24 bytes, 50000 a second, in 300 buckets of a microsecond.\n\
    The histogram is of round trips since messages were really sent; the lines before it, and \
    --json, have them since the schedule wanted them sent, too.\n\
    Exit status: 0 every message came back once, 1 error or interrupted, 2 wrong arguments, \
    3 messages were lost."
)]
pub(crate) struct PingArgs {
    /// CPU of the sending thread; -1 for any
    #[arg(short = 'A', long, value_name = "CPU", default_value_t = ANY_CPU)]
    #[arg(value_parser = parse_cpu, allow_negative_numbers = true)]
    send_cpu: i64,

    /// CPU of the receiving thread, from the pong's arrival on; -1 for any
    #[arg(short = 'a', long, value_name = "CPU", default_value_t = ANY_CPU)]
    #[arg(value_parser = parse_cpu, allow_negative_numbers = true)]
    receive_cpu: i64,

    /// With --transport thread: CPU of the pong; -1 for any
    #[arg(long, value_name = "CPU", value_parser = parse_cpu, allow_negative_numbers = true)]
    pong_cpu: Option<i64>,

    /// Count round trips in linear buckets, and print these
    #[arg(short = 'H', long, value_name = "BUCKETS,NS_PER_BUCKET", default_value = "300,1000")]
    histogram: LinearShape,

    /// Longest time to wait for missing answers, and until the pong has read everything
    #[arg(short = 'l', long, value_name = "MS", default_value = "1000")]
    #[arg(value_parser = parse_number::<u64>)]
    linger_ms: u64,

    /// Length of each message in bytes; 16 or more
    #[arg(short = 'm', long = "size", value_name = "BYTES", default_value_t = DOCUMENT_SIZE)]
    #[arg(value_parser = parse_number::<usize>)]
    size: usize,

    /// Messages to measure
    #[arg(short = 'n', long = "messages", value_name = "COUNT")]
    #[arg(default_value_t = DOCUMENT_MESSAGES, value_parser = parse_number::<u64>)]
    messages: u64,

    /// Messages a second; 0 or 999999999 for as many as possible
    #[arg(short = 'r', long, value_name = "RATE", default_value_t = DOCUMENT_RATE)]
    #[arg(value_parser = parse_number::<u64>)]
    rate: u64,

    /// Warm-up: number of messages, and messages per second
    #[arg(short = 'w', long, value_name = "LOOPS,RATE", default_value = "0,0")]
    #[arg(value_parser = super::arguments::warmup)]
    warmup: super::arguments::Warmup,

    /// One thread both sends and receives
    #[arg(long)]
    one_thread: bool,

    #[command(flatten)]
    both: RoundTripArgs,
}

impl PingArgs {
    fn settings(&self, places: Places, setup: Setup) -> Settings {
        Settings {
            topics: self.both.topics.clone(),
            size: self.size,
            messages: self.messages,
            rate: self.rate,
            warmup: self.warmup.loops,
            warmup_rate: self.warmup.rate,
            histogram: self.histogram,
            generic: self.both.generic,
            threads: if self.one_thread { Threads::One } else { Threads::Two },
            sender: places.sender,
            receiver: places.receiver,
            linger: Duration::from_millis(self.linger_ms),
            polls_publisher: self.both.keep_warm.is_some(),
            setup,
        }
    }

    /// CPU of each thread.
    fn places(&self) -> anyhow::Result<Places> {
        let place = |asked| Pinning::on_this_host(Some(asked), 0);
        if self.one_thread && self.both.receive_thread == ReceiveThread::Own {
            refuse!(
                "-R x asks for a receiving thread, --one-thread for none: leave out one of them"
            );
        }
        if self.one_thread && self.receive_cpu != ANY_CPU && self.send_cpu == ANY_CPU {
            refuse!("with --one-thread, the one thread's CPU is that of -A");
        }
        if self.pong_cpu.is_some() && !self.both.context.stays_inside() {
            refuse!("--pong-cpu is for --transport thread: another process runs perf pong -a");
        }
        Ok(Places {
            sender: place(self.send_cpu)?,
            receiver: place(self.receive_cpu)?,
            pong: place(self.pong_cpu.unwrap_or(ANY_CPU))?,
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Places {
    sender: Pinning,
    receiver: Pinning,
    pong: Pinning,
}

pub(super) fn run(arguments: &PingArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let both = &arguments.both;
    let places = arguments.places()?;
    let files = both.files.open(Times::One)?;
    let head = Head::now();
    let raise = both.priority.apply()?;
    let context = both.context(persistence::SENDER)?;
    let pinging = PingWork { arguments, context: &context, places, raise, stop };
    let (result, beside) = with_transport(&context, pinging)?;
    let mut lines = vec![head.line(Kind::Ping, &result)?];
    for pong in beside.iter() {
        lines.push(head.line(Kind::Pong, pong)?);
    }
    // The files first: they matter more than what is printed.
    files.write(&lines)?;
    let shown = if both.json { lines.iter().try_for_each(|line| print_line(line)) } else { Ok(()) };
    printed(shown.map_err(Into::into), verdict(&result, arguments))
}

/// A ping with valid arguments, ready to run.
struct PingWork<'a> {
    arguments: &'a PingArgs,
    context: &'a ContextArgs,
    places: Places,
    raise: PriorityChange,
    stop: &'a dyn Fn() -> bool,
}

impl TransportWork for PingWork<'_> {
    /// Results of the ping, and of a pong in this process.
    type Outcome = (PingResult, Option<PongResult>);

    fn over<C: Transport + Sync>(self, opened: &Opened<C>) -> anyhow::Result<Self::Outcome> {
        let Self { arguments, context, places, raise, stop } = self;
        let both = &arguments.both;
        let settings = arguments.settings(places, opened.setup(opened.subscriber_wait, raise));
        let (config, xml) = (both.context.config_names(), both.xml_name());
        if !both.json {
            print(&report::ping_options(&settings, &both.printed(&config, &xml)))?;
        }
        if !context.stays_inside() {
            progress("waiting for a pong")?;
            return Ok((measure(opened, &settings, both.json, stop)?, None));
        }
        let is_off = AtomicBool::new(false);
        let pong = pong::settings(both, places.pong, opened, raise);
        thread::scope(|scope| {
            let answer = || pong::beside(opened, &pong, &is_off);
            let answering = Builder::new().name("pong".into()).spawn_scoped(scope, answer)?;
            let result = measure(opened, &settings, both.json, stop);
            is_off.store(true, Ordering::Relaxed);
            let pong = answering.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok((result?, Some(pong?)))
        })
    }
}

/// Measures, and prints what comes of it.
fn measure<C: Transport>(
    opened: &Opened<C>,
    settings: &Settings,
    json: bool,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<PingResult> {
    // A reader of the lines that has gone away ends the run.
    let failed = Mutex::new(None);
    let keep = |told: std::io::Result<()>| {
        if let Err(error) = told {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let stop = || stop() || has_failed();
    let notify = |notice: Notice<'_>| keep(tell(notice, json));
    let mut announce = |result: &PingResult| {
        if !json {
            keep(print(&report::ping_result(&with_context(result.clone(), opened))));
        }
    };
    let recovered = opened.counts.recovered;
    let hooks = Hooks { stop: &stop, recovered, notify: &notify, announce: &mut announce };
    let result: Result<PingResult, PingError> = ping(&opened.transport, settings, hooks);
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => Ok(with_context(result?, opened)),
    }
}

/// The result with what its transport knows of the run.
fn with_context<C: Transport>(result: PingResult, opened: &Opened<C>) -> PingResult {
    let io_fallback = opened.io_fallback.clone();
    PingResult { persistence: opened.flight(), io_fallback, ..result }
}

/// Says on standard error what went wrong; the exit status.
fn verdict(result: &PingResult, arguments: &PingArgs) -> ExitCode {
    let traffic = &result.traffic;
    if result.interrupted {
        let why = result.pong_left.map_or("", |_| ": the pong has left");
        let (sent, of) = (result.sent, arguments.messages);
        print_error(&format!("interrupted after {sent} of {of} messages{why}"));
        return ExitCode::FAILURE;
    }
    if let Some(left) = in_flight(result.persistence.as_ref()) {
        print_error(&left);
        return ExitCode::from(INCOMPLETE);
    }
    if result.is_complete() {
        return ExitCode::SUCCESS;
    }
    print_error(&format!(
        "of {} messages {} came back: {} told lost, {} repeated, {} damaged",
        result.sent + result.warmup,
        traffic.received,
        traffic.reported_lost,
        traffic.duplicated,
        traffic.damaged
    ));
    if traffic.duplicated > 0 {
        print_error("more than one pong answers on these topics: use others with --topics");
    }
    ExitCode::from(INCOMPLETE)
}
