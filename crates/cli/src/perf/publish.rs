//! `lanecast perf pub`.

use super::arguments::{PerMille, in_flight, parse_cpu};
use super::context::ContextArgs;
use super::files::{Files, FilesArgs, Times};
use super::jitter;
use super::persistence;
use super::priority::PriorityArgs;
use super::readers::{self, ReadersArgs};
use super::transports::{Opened, TransportWork, with_transport};
use super::um::UmArgs;
use crate::output::{INCOMPLETE, print, print_error, print_line, printed};
use lanecast_base::clock::Clock;
use lanecast_base::parse_duration;
use lanecast_measure::publisher::{self, Arrival, Hooks, Settings, is_flat_out};
use lanecast_measure::record::HIGHEST_NUMBER;
use lanecast_measure::{
    Flags, Head, Kind, LinearShape, Pinning, PriorityChange, PublisherResult, Setup, Touch,
    parse_number, report,
};
use lanecast_transport::Transport;
use std::process::ExitCode;
use std::time::Duration;

/// The CPU of the sending thread, unless another is asked for.
const DEFAULT_CPU: usize = 1;

const NO_TIMES: &str = "this publisher records no times: it does with -f 1 and a rate (-r)";

/// Arguments of `perf pub`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(after_help = "With --transport thread, receiving threads beside the publisher say what \
    they read, too.\n\
    Exit status: 0 all was sent, 1 error or interrupted, 2 wrong arguments, \
    3 a receiving thread lost messages.")]
pub(crate) struct PubArgs {
    /// CPU of the sending thread; -1 for any [default: 1, if there is one]
    #[arg(short = 'a', long = "cpu", value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    cpu: Option<i64>,

    /// Sum of 1: a timestamp in each message, 2: non-blocking, 4: the generic (copying) call
    #[arg(short = 'f', long, value_name = "BITS", default_value = "0x00", value_parser = flags)]
    flags: Flags,

    /// If not 0, only run the jitter test, over so many readings of the clock
    #[arg(short = 'j', long, value_name = "LOOPS", default_value = "0")]
    #[arg(value_parser = parse_number::<u64>)]
    jitter_loops: u64,

    /// Longest time to wait, at the end, until all have read everything
    #[arg(short = 'l', long, value_name = "MS", default_value = "1000")]
    #[arg(value_parser = parse_number::<u64>)]
    linger_ms: u64,

    /// Length of each message in bytes; 24 or more for timestamps, 8 or more to check the order
    #[arg(short = 'm', long = "size", value_name = "BYTES", default_value = "25")]
    #[arg(value_parser = parse_number::<usize>)]
    size: usize,

    /// Messages to measure
    #[arg(short = 'n', long = "messages", value_name = "COUNT", default_value = "10000000")]
    #[arg(value_parser = parse_number::<u64>)]
    messages: u64,

    /// Measure for so long instead, such as 2s
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    #[arg(conflicts_with = "messages")]
    time: Option<Duration>,

    /// Messages a second; 0 or 999999999 for as many as possible
    #[arg(short = 'r', long, value_name = "RATE", default_value = "1000000")]
    #[arg(value_parser = parse_number::<u64>)]
    rate: u64,

    /// Messages due together; 1 for even spacing. The rate holds on average
    #[arg(long, value_name = "COUNT", default_value = "1", value_parser = parse_number::<u64>)]
    burst: u64,

    /// The topic; several with commas between, which get messages in turn
    #[arg(short = 't', long, value_name = "TOPICS", default_value = "smx_perf")]
    #[arg(value_delimiter = ',', value_parser = super::arguments::topic)]
    topic: Vec<String>,

    /// Warm-up: number of messages, and messages per second if not as --warmup-rate says
    #[arg(short = 'w', long, value_name = "COUNT[,RATE]", default_value = "10000")]
    #[arg(value_parser = warmup)]
    warmup: (u64, Option<u64>),

    /// Messages a second of the warm-up; 0 for as many as possible
    #[arg(long, value_name = "RATE", default_value = "10000", value_parser = parse_number::<u64>)]
    warmup_rate: u64,

    /// Count in linear buckets how long each call takes that sends a message, and print these
    #[arg(short = 'H', long, value_name = "BUCKETS,NS_PER_BUCKET")]
    histogram: Option<LinearShape>,

    /// The generic (copying) call: the same as -f 4
    #[arg(short = 'g', long)]
    generic: bool,

    /// Lose so many per cent of the datagrams that are sent, to try recovery (rm and ru)
    #[arg(short = 'L', long, value_name = "PERCENT", default_value = "0")]
    #[arg(value_parser = super::arguments::loss)]
    loss: PerMille,

    /// Part of each message to write: header or whole
    #[arg(long, value_name = "PART", default_value = "header")]
    touch: Touch,

    /// Wait for so many subscribers before the first message
    #[arg(long, value_name = "COUNT", value_parser = parse_number::<usize>)]
    wait_subscribers: Option<usize>,

    /// Otherwise: how long subscribers are given to find this publisher
    #[arg(long, value_name = "MS", default_value = "500", value_parser = parse_number::<u64>)]
    resolution_ms: u64,

    /// Print the result as one JSON object, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    um: UmArgs,

    #[command(flatten)]
    readers: ReadersArgs,

    #[command(flatten)]
    files: FilesArgs,

    #[command(flatten)]
    priority: PriorityArgs,

    #[command(flatten)]
    pub(crate) context: ContextArgs,
}

fn flags(text: &str) -> Result<Flags, String> {
    let bits = parse_number::<u8>(text).map_err(|error| error.to_string())?;
    Flags::from_bits(bits).map_err(|error| error.to_string())
}

impl PubArgs {
    /// `readers` threads of this process subscribe.
    fn settings(&self, place: Pinning, setup: Setup, readers: usize) -> Settings {
        let pause = Arrival::Pause(Duration::from_millis(self.resolution_ms));
        let arrival = if readers > 0 { Arrival::Subscribers(readers) } else { pause };
        Settings {
            topics: self.topic.clone(),
            size: self.size,
            messages: self.messages(),
            rate: self.rate,
            time: self.time,
            burst: self.burst,
            warmup: self.warmup.0,
            warmup_rate: self.warmup.1.unwrap_or(self.warmup_rate),
            flags: Flags { generic: self.flags.generic || self.generic, ..self.flags },
            touch: self.touch,
            place,
            arrival: self.wait_subscribers.map_or(arrival, Arrival::Subscribers),
            linger: Duration::from_millis(self.linger_ms),
            calls: self.histogram,
            setup,
        }
    }

    /// As many as were asked for, or as fit into the time; without a schedule, the time ends them.
    fn messages(&self) -> u64 {
        match self.time {
            None => self.messages,
            Some(_) if is_flat_out(self.rate) => HIGHEST_NUMBER.saturating_sub(self.warmup.0),
            Some(time) => (self.rate as f64 * time.as_secs_f64()).round() as u64,
        }
    }

    /// Lateness is recorded for stamped messages that have a schedule, latency for all stamped
    /// messages that are read here.
    fn times(&self, readers: usize) -> Times {
        if self.jitter_loops > 0 {
            return Times::One;
        }
        match usize::from(!is_flat_out(self.rate)) + readers {
            _ if !self.flags.timestamp => Times::None(NO_TIMES),
            0 => Times::None(NO_TIMES),
            1 => Times::One,
            _ => Times::Several,
        }
    }

    fn options(&self, settings: &Settings, context: &ContextArgs) -> String {
        report::publisher_options(settings, &context.config_names(), self.jitter_loops)
    }

    /// Arguments of the context, with those of single letters applied.
    fn context(&self) -> anyhow::Result<ContextArgs> {
        let context = self.um.context(&self.context, persistence::SENDER)?;
        Ok(ContextArgs { source_loss: self.loss, ..context })
    }
}

/// Parses a warm-up: messages, and messages per second.
fn warmup(text: &str) -> Result<(u64, Option<u64>), String> {
    let number = |text| parse_number::<u64>(text).map_err(|error| error.to_string());
    match text.split_once(',') {
        Some((count, rate)) => Ok((number(count)?, Some(number(rate)?))),
        None => Ok((number(text)?, None)),
    }
}

pub(super) fn run(arguments: &PubArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    let places = arguments.readers.places(&arguments.context)?;
    let files = arguments.files.open(arguments.times(places.len()))?;
    let place = Pinning::on_this_host(arguments.cpu, DEFAULT_CPU)?;
    let raise = arguments.priority.apply()?;
    if arguments.jitter_loops > 0 {
        return only_jitter(arguments, place, raise, files, stop);
    }
    let head = Head::now();
    let context = arguments.context()?;
    let publishing = PublishWork { arguments, context: &context, head, place, places, raise, stop };
    let (lines, text, exit_code) = with_transport(&context, publishing)?;
    // The files first: they matter more than what is printed.
    files.write(&lines)?;
    printed(print(&text).map_err(Into::into), exit_code)
}

/// A publisher with valid arguments, ready to run.
struct PublishWork<'a> {
    arguments: &'a PubArgs,
    context: &'a ContextArgs,
    head: Head,
    place: Pinning,
    /// CPUs of the subscribers in this process.
    places: Vec<Pinning>,
    raise: PriorityChange,
    stop: &'a dyn Fn() -> bool,
}

impl TransportWork for PublishWork<'_> {
    /// The measurement lines, the text to print, and the exit status.
    type Outcome = (Vec<String>, String, ExitCode);

    fn over<C: Transport + Sync>(self, opened: &Opened<C>) -> anyhow::Result<Self::Outcome> {
        let Self { arguments, context, head, place, places, raise, stop } = self;
        let setup = opened.setup(opened.publisher_wait, raise);
        let settings = arguments.settings(place, setup, places.len());
        let readers = readers::settings(&places, &arguments.topic, arguments.touch, opened, raise);
        if !arguments.json {
            print_line(&arguments.options(&settings, context))?;
        }
        let mut printed = Ok(());
        let mut announce = |result: &PublisherResult| {
            if !arguments.json {
                let shown = PublisherResult { persistence: opened.flight(), ..result.clone() };
                printed = print(&report::publisher_result(&shown));
            }
        };
        let back_pressured = opened.counts.back_pressured;
        let hooks = Hooks { stop, back_pressured: &back_pressured, announce: &mut announce };
        let publish = || publisher::run(&opened.transport, &settings, hooks);
        let (mut result, read) = readers::beside(opened, &readers, publish)?;
        result.persistence = opened.flight();
        printed?;
        let mut lines = vec![head.line(Kind::Publisher, &result)?];
        for result in &read {
            lines.push(head.line(Kind::Subscriber, result)?);
        }
        let mut text = String::new();
        if arguments.json {
            lines.iter().for_each(|line| text += &format!("{line}\n"));
        } else {
            text += &report::publisher_end(&result);
            for (settings, result) in readers.iter().zip(&read) {
                text += &readers::text(settings, result, &context.config_names());
            }
        }
        let status = verdict(&result, &settings).unwrap_or_else(|| readers::verdict(&read));
        Ok((lines, text, status))
    }
}

/// The jitter test instead, with the publisher's option line before it.
fn only_jitter(
    arguments: &PubArgs,
    place: Pinning,
    raise: PriorityChange,
    files: Files,
    stop: &dyn Fn() -> bool,
) -> anyhow::Result<ExitCode> {
    if !arguments.json {
        // Neither window nor waiting is in the line, so none need be found out.
        let (wait, window) = (Default::default(), Default::default());
        let setup = Setup { wait, window, io: None, raise, clock: Clock::host() };
        print_line(
            &arguments.options(&arguments.settings(place, setup, 0), &arguments.context()?),
        )?;
    }
    let settings = jitter::settings(arguments.jitter_loops, place, raise);
    jitter::measure(settings, arguments.json, files, stop)
}

/// Says on standard error what makes the figures worth less than they look; the exit status, if
/// that settles it.
fn verdict(result: &PublisherResult, settings: &Settings) -> Option<ExitCode> {
    if result.interrupted {
        print_error(&format!(
            "interrupted after {} of {} messages",
            result.sent, settings.messages
        ));
        return Some(ExitCode::FAILURE);
    }
    if result.subscribers_at_start == 0 {
        print_error(&format!(
            "no subscriber of '{}': nothing held this publisher back",
            result.topic
        ));
    }
    if result.drained == Some(false) {
        print_error("a subscriber had not read everything when this publisher closed (see -l)");
    }
    if let Some(left) = in_flight(result.persistence.as_ref()) {
        print_error(&left);
        return Some(ExitCode::from(INCOMPLETE));
    }
    None
}
