//! Subscriber threads beside a publisher, for a transport that stays in one process.

use super::arguments::parse_cpu;
use super::context::ContextArgs;
use super::transports::Opened;
use crate::output::INCOMPLETE;
use crate::usage::refuse;
use anyhow::bail;
use lanecast_base::sync::{AtomicBool, Ordering};
use lanecast_measure::publisher::PublisherError;
use lanecast_measure::subscriber::{self, Settings, SubscriberError};
use lanecast_measure::{Pinning, PriorityChange, PublisherResult, SubscriberResult, Touch, report};
use lanecast_transport::Transport;
use std::process::ExitCode;
use std::thread::{self, Builder};

/// The CPU of the one receiving thread, unless others are asked for.
const DEFAULT_CPU: usize = 0;

/// Arguments about the subscriber threads.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReadersArgs {
    /// With --transport thread: CPUs of the receiving threads, one each; -1 for any [default: 0]
    #[arg(long, value_name = "CPUS", value_delimiter = ',', value_parser = parse_cpu)]
    #[arg(allow_negative_numbers = true)]
    subscriber_cpus: Vec<i64>,
}

impl ReadersArgs {
    /// CPU of each receiving thread; none if the receivers are other processes.
    ///
    /// # Errors
    /// A CPU that does not exist, or threads that would have nothing to read.
    pub(super) fn places(&self, context: &ContextArgs) -> anyhow::Result<Vec<Pinning>> {
        if !context.stays_inside() {
            if !self.subscriber_cpus.is_empty() {
                refuse!(
                    "--subscriber-cpus is for --transport thread: other processes run perf sub"
                );
            }
            return Ok(Vec::new());
        }
        if self.subscriber_cpus.is_empty() {
            return Ok(vec![Pinning::on_this_host(None, DEFAULT_CPU)?]);
        }
        let place = |&cpu| Ok(Pinning::on_this_host(Some(cpu), DEFAULT_CPU)?);
        self.subscriber_cpus.iter().map(place).collect()
    }
}

/// Settings of each receiving thread: read all of one stream.
pub(super) fn settings<C: Transport>(
    places: &[Pinning],
    topics: &[String],
    touch: Touch,
    opened: &Opened<C>,
    raise: PriorityChange,
) -> Vec<Settings> {
    let reader = |&place| Settings {
        topics: topics.to_vec(),
        place,
        fast: false,
        linear: None,
        spin: 0,
        touch,
        unordered: false,
        once: true,
        setup: opened.setup(opened.subscriber_wait, raise),
    };
    places.iter().map(reader).collect()
}

/// Runs `publish` in this thread, and beside it a thread for each of `readers`.
///
/// # Errors
/// If a thread cannot be started, or either side fails.
pub(super) fn beside<C: Transport + Sync>(
    opened: &Opened<C>,
    readers: &[Settings],
    publish: impl FnOnce() -> Result<PublisherResult, PublisherError>,
) -> anyhow::Result<(PublisherResult, Vec<SubscriberResult>)> {
    let is_off = AtomicBool::new(false);
    let stop = || is_off.load(Ordering::Relaxed);
    let recovered = opened.counts.recovered;
    let read =
        |settings| subscriber::run(&opened.transport, settings, recovered, &stop, &mut |_| {});
    thread::scope(|scope| {
        let threads = readers.iter().map(|settings| {
            Builder::new().name("subscriber".into()).spawn_scoped(scope, move || read(settings))
        });
        let threads: Vec<_> = threads.collect();
        let all_there = threads.iter().all(Result::is_ok);
        let published = all_there.then(publish);
        // A stream that has begun ends by itself.
        let has_begun = matches!(published, Some(Ok(_)));
        is_off.store(!has_begun, Ordering::Relaxed);
        let mut results = Vec::new();
        for thread in threads {
            let result: Result<_, SubscriberError> =
                thread?.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            results.push(result?);
        }
        let Some(published) = published else { bail!("not all receiving threads were started") };
        Ok((published?, results))
    })
}

/// Output of a receiving thread: its options, its streams' results, its conditions.
pub(super) fn text(settings: &Settings, result: &SubscriberResult, config: &str) -> String {
    let streams: String = result.streams.iter().map(report::stream_result).collect();
    let options = report::subscriber_options(settings, config);
    let end = report::subscriber_end(result) + &report::conditions(&result.conditions);
    format!("{options}\n{streams}{end}")
}

/// The exit status of the receiving side.
pub(super) fn verdict(results: &[SubscriberResult]) -> ExitCode {
    let is_complete = results.iter().all(|result| result.figures.is_complete());
    ExitCode::from(if is_complete { 0 } else { INCOMPLETE })
}
