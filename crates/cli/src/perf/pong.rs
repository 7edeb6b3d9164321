//! `lanecast perf pong`.

use super::arguments::{in_flight, parse_cpu};
use super::context::ContextArgs;
use super::files::Times;
use super::persistence;
use super::round_trip::{ReceiveThread, RoundTripArgs, progress, tell};
use super::transports::{Opened, TransportWork, with_transport};
use crate::output::{INCOMPLETE, print, print_error, print_line, printed};
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_measure::ping::{Notice, PingError, PongHooks, PongResult, PongSettings, pong};
use lanecast_measure::{Head, Kind, Pinning, PriorityChange, report};
use lanecast_transport::Transport;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};
use std::time::Duration;

/// Time a pong waits at its end until its pings have read everything.
const LINGER: Duration = Duration::from_secs(1);
const NO_TIMES: &str = "a pong measures no times: its ping does";
/// Between two looks of the main thread at the stop flag.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// Arguments of `perf pong`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(after_help = "Sends every message back as it is, in the thread that receives it, until \
    it is interrupted (Ctrl-C), or with -E until the ping has left.\n\
    Exit status: 0 every message was sent back, 1 error, 2 wrong arguments, \
    3 messages were lost.")]
pub(crate) struct PongArgs {
    /// CPU of the receiving thread, from the ping's arrival on; -1 for any
    #[arg(short = 'a', long, value_name = "CPU", default_value = "-1", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    receive_cpu: i64,

    /// End when all pings have left
    #[arg(short = 'E', long)]
    exit_on_end: bool,

    #[command(flatten)]
    both: RoundTripArgs,
}

/// Settings of a pong.
pub(super) fn settings<C: Transport>(
    both: &RoundTripArgs,
    place: Pinning,
    opened: &Opened<C>,
    raise: PriorityChange,
) -> PongSettings {
    PongSettings {
        topics: both.topics.clone(),
        generic: both.generic,
        place,
        once: false,
        linger: LINGER,
        polls_publisher: both.keep_warm.is_some(),
        setup: opened.setup(opened.subscriber_wait, raise),
    }
}

/// A pong in a thread of the ping's process.
pub(super) fn beside<C: Transport>(
    opened: &Opened<C>,
    settings: &PongSettings,
    is_off: &AtomicBool,
) -> Result<PongResult, PingError> {
    let stop = || is_off.load(Ordering::Relaxed);
    let recovered = opened.counts.recovered;
    pong(&opened.transport, settings, PongHooks { stop: &stop, recovered, notify: &mut |_| {} })
}

pub(super) fn run(arguments: &PongArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let both = &arguments.both;
    both.context.check_outward("lanecast perf ping")?;
    let files = both.files.open(Times::None(NO_TIMES))?;
    let place = Pinning::on_this_host(Some(arguments.receive_cpu), 0)?;
    let head = Head::now();
    let raise = both.priority.apply()?;
    let context = both.context(persistence::RECEIVER)?;
    let ponging = PongWork { arguments, context: &context, place, raise, stop };
    let result = with_transport(&context, ponging)?;
    let line = head.line(Kind::Pong, &result)?;
    // The files first: they matter more than what is printed.
    files.write(std::slice::from_ref(&line))?;
    let shown = if both.json { print_line(&line) } else { print(&report::pong_end(&result)) };
    printed(shown.map_err(Into::into), verdict(&result))
}

/// Says on standard error what went wrong; the exit status.
fn verdict(result: &PongResult) -> ExitCode {
    if let Some(left) = in_flight(result.persistence.as_ref()) {
        print_error(&left);
        return ExitCode::from(INCOMPLETE);
    }
    if result.is_complete() {
        return ExitCode::SUCCESS;
    }
    let (traffic, answered) = (&result.traffic, result.answered);
    let (received, lost) = (traffic.received, traffic.reported_lost);
    print_error(&format!(
        "{received} messages came and {lost} were lost; {answered} were sent back"
    ));
    ExitCode::from(INCOMPLETE)
}

/// A pong with valid arguments, ready to run.
struct PongWork<'a> {
    arguments: &'a PongArgs,
    context: &'a ContextArgs,
    place: Pinning,
    raise: PriorityChange,
    stop: &'a dyn Fn() -> bool,
}

impl TransportWork for PongWork<'_> {
    type Outcome = PongResult;

    fn over<C: Transport + Sync>(self, opened: &Opened<C>) -> anyhow::Result<PongResult> {
        let Self { arguments, context, place, raise, stop } = self;
        let both = &arguments.both;
        let usual = settings(both, place, opened, raise);
        let settings = PongSettings { once: arguments.exit_on_end, ..usual };
        let (config, xml) = (both.context.config_names(), both.xml_name());
        if !both.json {
            print(&report::pong_options(&settings, &both.printed(&config, &xml)))?;
        }
        progress(&format!("answering over {}", context.transport.name()))?;
        let is_off = AtomicBool::new(false);
        if both.receive_thread == ReceiveThread::Context {
            return answer(opened, &settings, both.json, stop);
        }
        // The main thread only looks after the one that works.
        let off = || is_off.load(Ordering::Relaxed);
        thread::scope(|scope| {
            let work = || answer(opened, &settings, both.json, &off);
            let working = Builder::new().name("receiver".into()).spawn_scoped(scope, work)?;
            while !working.is_finished() {
                is_off.store(stop(), Ordering::Relaxed);
                thread::sleep(CHECK_INTERVAL);
            }
            working.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

/// Answers, and tells what happens.
fn answer<C: Transport>(
    opened: &Opened<C>,
    settings: &PongSettings,
    json: bool,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<PongResult> {
    // A reader of the lines that has gone away ends the run.
    let failed = Mutex::new(None);
    let is_off = AtomicBool::new(false);
    let mut notify = |notice: Notice<'_>| {
        if let Err(error) = tell(notice, json) {
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            is_off.store(true, Ordering::Relaxed);
        }
    };
    let stop = || stop() || is_off.load(Ordering::Relaxed);
    let recovered = opened.counts.recovered;
    let hooks = PongHooks { stop: &stop, recovered, notify: &mut notify };
    let result = pong(&opened.transport, settings, hooks);
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => {
            let io_fallback = opened.io_fallback.clone();
            Ok(PongResult { persistence: opened.flight(), io_fallback, ..result? })
        }
    }
}
