//! Runs one case: receivers, then the publisher, each a process of its own.

use crate::child::{ChildProcess, Deadline};
use crate::perf::ContextArgs;
use crate::temp_domain::TempDomain;
use lanecast_base::WaitStrategy;
use lanecast_measure::smx::{
    Api, Case, Experiment, Placement, Reference, Run, RunLength, Skipped, Turn,
};
use lanecast_measure::{Baseline, Head, Kind};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Constant part of a run's limit, added to its expected time.
const SLACK: Duration = Duration::from_secs(20);
/// Factor on the expected time of a run that gives its limit.
const SLOWNESS: u32 = 10;
/// Longest time that a publisher waits, at its end, for its receivers.
const LINGER_MS: u32 = 10_000;
/// Approximate time of reading the clock, to derive the number of readings.
const JITTER_READING: Duration = Duration::from_nanos(20);
/// Warm-up, in seconds of the case's rate; flat out, as if that were a million a second.
const WARM_UP_SECONDS: f64 = 0.1;
const WARM_UP_RATE: u64 = 1_000_000;
/// Members of a line that stand once for the whole run, or say again what the others do.
const LEFT_OUT: [&str; 5] = ["schema", "kind", "version", "host", "streams"];

/// Starts the processes of a series.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    head: Head,
    domain: TempDomain,
    placement: Placement,
    context: &'a ContextArgs,
}

/// Result of one run.
#[derive(Debug)]
pub(super) struct Measured {
    /// The measurement line.
    pub(super) line: String,
    /// Whether every message arrived once, as it was written.
    pub(super) is_complete: bool,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        head: Head,
        placement: Placement,
        context: &'a ContextArgs,
    ) -> anyhow::Result<Self> {
        Ok(Self { head, domain: TempDomain::build("smx")?, placement, context })
    }

    /// The line of what was not measured.
    pub(super) fn skipped(&self, experiment: Experiment, why: String) -> anyhow::Result<String> {
        Ok(self.head.line(Kind::Skipped, &Skipped { experiment, why })?)
    }

    /// Whether there is a second NUMA node.
    pub(super) fn has_nodes(&self) -> bool {
        self.placement.far.is_some()
    }

    /// Runs it; `stop` ends it early, as an error.
    pub(super) fn measure(&self, turn: &Turn, stop: &dyn Fn() -> bool) -> anyhow::Result<Measured> {
        let until = Instant::now() + SLACK + turn.step.expected() * SLOWNESS;
        let deadline = Deadline { until, stop };
        match turn.step.case {
            None => self.jitter(turn, &deadline),
            Some(case) => self.run(&case, turn, &deadline),
        }
    }

    fn jitter(&self, turn: &Turn, deadline: &Deadline<'_>) -> anyhow::Result<Measured> {
        let loops = match turn.step.length {
            RunLength::Time(time) => time.as_nanos() / JITTER_READING.as_nanos(),
            RunLength::Messages(loops) => loops.into(),
        };
        let words = words(&[
            &["perf", "jitter", "--json", "--own-session"],
            &["-a", &self.placement.publisher.to_string(), "-j", &loops.to_string()],
        ]);
        let mut actor = ChildProcess::start("jitter test", &words)?;
        let mut result: Value = actor.read(deadline)?;
        actor.finish(deadline)?;
        result["repetition"] = turn.repetition.into();
        result["repetitions"] = turn.repetitions.into();
        result["reference"] = serde_json::to_value(Reference::JITTER)?;
        Ok(Measured { line: result.to_string(), is_complete: true })
    }

    fn run(&self, case: &Case, turn: &Turn, deadline: &Deadline<'_>) -> anyhow::Result<Measured> {
        let (cpus, shared) = match self.placement.far {
            Some(far) if case.cross_numa => (vec![far; case.receivers], case.receivers > 1),
            _ => self.placement.receivers(case.receivers),
        };
        let wait = self.wait(shared);
        let baseline = Baseline::measure(self.placement.publisher, cpus[0]);
        let mut subscribers = cpus
            .iter()
            .map(|cpu| ChildProcess::start("receiver", &self.subscriber(case, *cpu, wait)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let mut publisher = ChildProcess::start("publisher", &self.publisher(case, turn, wait))?;
        let subscriber_results = subscribers
            .iter_mut()
            .map(|actor| actor.read(deadline).map(embedded))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let publisher_result = embedded(publisher.read(deadline)?);
        for actor in subscribers.into_iter().chain([publisher]) {
            actor.finish(deadline)?;
        }
        let is_complete = subscriber_results.iter().all(is_complete);
        let run = Run {
            experiment: turn.step.experiment,
            case: *case,
            repetition: turn.repetition,
            repetitions: turn.repetitions,
            baseline,
            publisher: publisher_result,
            subscribers: subscriber_results,
            reference: Reference::of(case),
        };
        Ok(Measured { line: self.head.line(Kind::Run, &run)?, is_complete })
    }

    /// Spinning is best on a CPU of one's own, and the worst on a shared one.
    fn wait(&self, shared: bool) -> WaitStrategy {
        let own = if shared { WaitStrategy::SpinPark } else { WaitStrategy::BusySpin };
        self.context.wait.unwrap_or(own)
    }

    fn subscriber(&self, case: &Case, cpu: usize, wait: WaitStrategy) -> Vec<String> {
        let (cpu, spin) = (cpu.to_string(), case.spin.to_string());
        let work: &[&str] = if case.fast { &["-f"] } else { &["-s", &spin] };
        let mut words = words(&[&["perf", "sub", "--once", "-a", &cpu], work]);
        words.extend(self.common(wait));
        words
    }

    fn publisher(&self, case: &Case, turn: &Turn, wait: WaitStrategy) -> Vec<String> {
        let (length, warm_up, warm_up_rate) = lengths(case, turn.step.length);
        let flags = u8::from(case.is_paced()) | if case.api == Api::Generic { 4 } else { 0 };
        let number = |name: &str, value: u64| [name.to_owned(), value.to_string()];
        let mut words = words(&[&["perf", "pub"]]);
        words.extend(length);
        words.extend(
            [
                number("-a", self.placement.publisher as u64),
                number("-f", flags.into()),
                number("-m", case.size as u64),
                number("-r", case.rate_asked),
                number("-w", warm_up),
                number("--warmup-rate", warm_up_rate),
                number("--wait-subscribers", case.receivers as u64),
                number("-l", LINGER_MS.into()),
            ]
            .concat(),
        );
        words.extend(self.common(wait));
        words
    }

    fn common(&self, wait: WaitStrategy) -> Vec<String> {
        let domain = self.domain.path("domain");
        let directory = self.context.directory.as_ref().unwrap_or(&domain);
        let mut words = words(&[
            &["--json", "--own-session", "--wait", wait.name()],
            &[
                "--directory",
                &directory.to_string_lossy(),
                "--transport",
                self.context.transport.name(),
            ],
        ]);
        for file in &self.context.config {
            words.extend(["-c".to_owned(), file.to_string_lossy().into_owned()]);
        }
        if let Some(window) = self.context.window {
            words.extend(["--window".to_owned(), window.to_string()]);
        }
        if let Some(interface) = &self.context.interface {
            words.extend(["--interface".to_owned(), interface.clone()]);
        }
        if let Some(io) = &self.context.io {
            words.extend(["--io".to_owned(), io.clone()]);
        }
        words
    }
}

/// The publisher's options for how much it sends, its warm-up, and the warm-up's rate.
fn lengths(case: &Case, length: RunLength) -> ([String; 2], u64, u64) {
    let warm_up_rate = if case.is_paced() { case.rate_asked } else { WARM_UP_RATE };
    match length {
        // The receiver sets the pace, so a warm-up by time would never end.
        RunLength::Messages(messages) => (["-n".into(), messages.to_string()], messages / 20, 0),
        RunLength::Time(time) => {
            let warm_up = (warm_up_rate as f64 * WARM_UP_SECONDS) as u64;
            (["--time".into(), lanecast_base::format_duration(time)], warm_up, warm_up_rate)
        }
    }
}

fn words(parts: &[&[&str]]) -> Vec<String> {
    parts.concat().into_iter().map(str::to_owned).collect()
}

/// The result without what the run's own line says once.
fn embedded(mut result: Value) -> Value {
    if let Value::Object(members) = &mut result {
        members.retain(|name, _| !LEFT_OUT.contains(&name.as_str()));
    }
    result
}

/// Whether a receiver got every message once, as it was written.
fn is_complete(subscriber: &Value) -> bool {
    ["lost", "reported_lost", "duplicated", "damaged"].iter().all(|count| subscriber[count] == 0)
}
