//! `lanecast perf sub`.

use super::arguments::PerMille;
use super::arguments::parse_cpu;
use super::context::ContextArgs;
use super::files::{FilesArgs, Times};
use super::persistence::{self, PersistenceRequest};
use super::priority::PriorityArgs;
use super::transports::{Opened, TransportWork, with_transport};
use super::um::UmArgs;
use crate::delivery::DeliveryArgs;
use crate::output::{INCOMPLETE, print, print_line, printed};
use lanecast_measure::subscriber::{self, Notice, Settings};
use lanecast_measure::{
    Head, Kind, LinearShape, Pinning, PriorityChange, Setup, SubscriberResult, Touch, parse_number,
    report,
};
use lanecast_transport::Transport;
use std::cell::RefCell;
use std::process::ExitCode;

/// The CPU of the receiving thread, unless another is asked for.
const DEFAULT_CPU: usize = 0;

/// Arguments of `perf sub`. Numbers are decimal, or hexadecimal after 0x.
#[derive(Debug, clap::Args)]
#[command(after_help = "Runs until interrupted (Ctrl-C), and then prints its result.\n\
    Exit status: 0 every message arrived once, 1 error, 2 wrong arguments, \
    3 messages were lost, repeated or damaged.\n\
    With -p, a subscriber that was killed goes on where it had come to when it is started again.")]
pub(crate) struct SubArgs {
    /// CPU of the receiving thread, from the first stream on; -1 for any [default: 0]
    #[arg(short = 'a', long = "cpu", value_name = "CPU", value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    cpu: Option<i64>,

    /// Only count and check the order: no latencies
    #[arg(short = 'f', long)]
    fast: bool,

    /// Count latencies in linear buckets, too, and print these at the end
    #[arg(short = 'H', long, value_name = "BUCKETS,NS_PER_BUCKET", conflicts_with = "fast")]
    histogram: Option<LinearShape>,

    /// Empty iterations per message, as work
    #[arg(short = 's', long, value_name = "COUNT", default_value = "0")]
    #[arg(value_parser = parse_number::<u64>)]
    spin: u64,

    /// The topic; several with commas between
    #[arg(short = 't', long, value_name = "TOPICS", default_value = "smx_perf")]
    #[arg(value_delimiter = ',', value_parser = super::arguments::topic)]
    topic: Vec<String>,

    /// Lose so many per cent of the datagrams that arrive, to try recovery (rm and ru)
    #[arg(short = 'L', long, value_name = "PERCENT", default_value = "0")]
    #[arg(value_parser = super::arguments::loss)]
    loss: PerMille,

    /// Part of each message to read: header or whole
    #[arg(long, value_name = "PART", default_value = "header")]
    touch: Touch,

    /// End with the first publisher that ends
    #[arg(short = 'E', long)]
    once: bool,

    #[command(flatten)]
    um: UmArgs,

    /// With -p r: do not hold the publisher back; messages that the stores give up before they are
    /// received count as lost
    #[arg(long)]
    non_blocking: bool,

    /// Print the result as one JSON object, and nothing else
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    files: FilesArgs,

    #[command(flatten)]
    priority: PriorityArgs,

    #[command(flatten)]
    pub(crate) context: ContextArgs,

    // Last: options that follow it would stand under its heading.
    #[command(flatten)]
    delivery: DeliveryArgs,
}

impl SubArgs {
    fn times(&self) -> Times {
        if self.fast { Times::None("-f records no latencies: leave it out") } else { Times::One }
    }

    fn settings(&self, place: Pinning, setup: Setup, unordered: bool) -> Settings {
        Settings {
            topics: self.topic.clone(),
            place,
            fast: self.fast,
            linear: self.histogram,
            spin: self.spin,
            touch: self.touch,
            unordered,
            once: self.once,
            setup,
        }
    }

    fn print_result(&self, result: &SubscriberResult, line: &str) -> anyhow::Result<()> {
        if self.json {
            return Ok(print_line(line)?);
        }
        if let Some(linear) = &result.linear {
            print(&report::linear(linear))?;
        }
        print(&report::subscriber_end(result))?;
        Ok(print(&report::conditions(&result.conditions))?)
    }
}

pub(super) fn run(arguments: &SubArgs, stop: &dyn Fn() -> bool) -> anyhow::Result<ExitCode> {
    arguments.context.check_outward("lanecast perf pub")?;
    let files = arguments.files.open(arguments.times())?;
    let head = Head::now();
    let place = Pinning::on_this_host(arguments.cpu, DEFAULT_CPU)?;
    let raise = arguments.priority.apply()?;
    let mut context = arguments.um.context(&arguments.context, persistence::RECEIVER)?;
    if let Some(persistence) = &mut context.persistence {
        persistence.resumes = true;
    }
    PersistenceRequest::set_non_blocking(context.persistence.as_mut(), arguments.non_blocking)?;
    let (receiver_loss, delivery) = (arguments.loss, arguments.delivery);
    let context = ContextArgs { receiver_loss, delivery, ..context };
    let subscribing = SubscribeWork { arguments, context: &context, place, raise, stop };
    let result = with_transport(&context, subscribing)?;
    let line = head.line(Kind::Subscriber, &result)?;
    // The files first: they matter more than what is printed.
    files.write(std::slice::from_ref(&line))?;
    let status = ExitCode::from(if result.figures.is_complete() { 0 } else { INCOMPLETE });
    printed(arguments.print_result(&result, &line), status)
}

/// A subscriber with valid arguments, ready to run.
struct SubscribeWork<'a> {
    arguments: &'a SubArgs,
    context: &'a ContextArgs,
    place: Pinning,
    raise: PriorityChange,
    stop: &'a dyn Fn() -> bool,
}

impl TransportWork for SubscribeWork<'_> {
    type Outcome = SubscriberResult;

    fn over<C: Transport + Sync>(self, opened: &Opened<C>) -> anyhow::Result<SubscriberResult> {
        let Self { arguments, context, place, raise, stop } = self;
        let setup = opened.setup(opened.subscriber_wait, raise);
        let settings = arguments.settings(place, setup, opened.is_unordered);
        if !arguments.json {
            print_line(&report::subscriber_options(&settings, &context.config_names()))?;
        }
        // A reader of the lines that has gone away ends the run.
        let failed = RefCell::new(None);
        let stop = || stop() || failed.borrow().is_some();
        let mut notify = |notice: Notice<'_>| {
            if !arguments.json
                && let Err(error) = print(&lines(notice))
            {
                failed.borrow_mut().get_or_insert(error);
            }
        };
        let recovered = opened.counts.recovered;
        let result = subscriber::run(&opened.transport, &settings, recovered, &stop, &mut notify)?;
        failed.take().map_or(Ok(result), |error| Err(error.into()))
    }
}

fn lines(notice: Notice<'_>) -> String {
    match notice {
        Notice::Joined(stream) => report::joined(stream),
        Notice::Lost(gap) => report::lost(gap),
        Notice::Left(result) | Notice::Stopped(result) => report::stream_result(result),
        _ => String::new(),
    }
}
