//! Runs one test: stores, a subscriber and a publisher as processes of their own.

use super::arguments::{LiveCpus, PersistReportArgs};
use crate::child::{ChildProcess, Deadline};
use crate::perf::store_process::{StoreArguments, StoreProcess};
use crate::temp_domain::TempDomain;
use lanecast_measure::persistent::{
    CeilingSettings, LIVE_CASES, PersistCase, PersistMode, ceiling,
};
use lanecast_measure::smx::Skipped;
use lanecast_measure::{Head, Kind};
use serde_json::Value;
use std::time::{Duration, Instant};

/// Constant part of a test's limit, added to its expected time.
const SLACK: Duration = Duration::from_secs(60);
/// Factor on the expected time of a test that gives its limit.
const SLOWNESS: u32 = 20;
/// Longest time of the bare program.
const CEILING_TIME: Duration = Duration::from_secs(5);
const STORES: [&str; 3] = ["a", "b", "c"];
const TOPICS: [&str; 3] = ["topic1", "topic2", "topic3"];
/// Members of a subscriber's line that are the conditions of its thread.
const CONDITIONS: [&str; 10] = [
    "transport",
    "wait",
    "window",
    "touch",
    "clock",
    "clock_cost_ns",
    "recording_cost_ns",
    "cpus",
    "raise",
    "interference",
];
/// Percentiles of the live path that are compared, and the members for the ratio and its bound.
const COMPARED: [(&str, &str, &str); 2] = [
    ("p50_ns", "p50_of_none", "asked_p50_of_none"),
    ("p99_ns", "p99_of_none", "asked_p99_of_none"),
];

/// A measurement line, and whether every message arrived and is safe.
pub(super) type Measured = (String, bool);

/// Runs the tests of a series.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    head: Head,
    domain: TempDomain,
    arguments: &'a PersistReportArgs,
    /// Messages of a flight.
    flight: usize,
    cpus: LiveCpus,
    repetition: u32,
    /// Rate of the bare program, and with one source-paced store.
    ceiling_rate: Option<f64>,
    spp_rate: Option<f64>,
}

impl<'a> Runner<'a> {
    pub(super) fn new(
        arguments: &'a PersistReportArgs,
        flight: usize,
        cpus: LiveCpus,
    ) -> anyhow::Result<Self> {
        let domain = TempDomain::build("persist")?;
        let (head, repetition, ceiling_rate, spp_rate) = (Head::now(), 0, None, None);
        Ok(Self { head, domain, arguments, flight, cpus, repetition, ceiling_rate, spp_rate })
    }

    /// Begins a repetition: its rates are compared with each other.
    pub(super) fn begin(&mut self, repetition: u32) {
        self.head = Head::now();
        (self.repetition, self.ceiling_rate, self.spp_rate) = (repetition, None, None);
    }

    /// The line of a test that was not measured.
    pub(super) fn skipped(&self, why: String) -> anyhow::Result<String> {
        let skipped = Skipped { experiment: "persist", why };
        Ok(self.head.line(Kind::Skipped, &skipped)?)
    }

    /// Measures what a bare program can write where the stores' data are.
    pub(super) fn ceiling(&mut self, stop: &dyn Fn() -> bool) -> anyhow::Result<Measured> {
        let place = TempDomain::on_disk("ceiling", self.arguments.data.as_deref())?;
        let settings = CeilingSettings {
            size: self.arguments.size,
            batch: self.flight,
            messages: self.arguments.messages(),
            time: CEILING_TIME,
        };
        let found = ceiling(&place.path(""), settings, stop)?;
        self.ceiling_rate = Some(found.rate);
        let mut line: Value = serde_json::from_str(&self.head.line(Kind::Persist, &found)?)?;
        line["case"] = "ceiling".into();
        self.count(&mut line);
        Ok((line.to_string(), true))
    }

    fn count(&self, line: &mut Value) {
        line["repetition"] = self.repetition.into();
        line["repetitions"] = self.arguments.repetitions.into();
    }

    /// Runs a test flat out.
    pub(super) fn measure(
        &mut self,
        case: &PersistCase,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<Measured> {
        let (sent, received) = self.run(case, None, stop)?;
        Ok(self.line(case, sent, &received))
    }

    /// Runs the tests of the live path, which go first in turn: a machine that gets slower, or
    /// faster, favours neither. Gives them in the order of their cases.
    pub(super) fn measure_live(&self, stop: &dyn Fn() -> bool) -> [anyhow::Result<Measured>; 2] {
        let run = |case: &PersistCase| -> anyhow::Result<(Value, bool)> {
            let (sent, received) = self.run(case, Some(self.arguments.rate), stop)?;
            Ok(self.live_line(case, sent, &received))
        };
        let [none, store] = &LIVE_CASES;
        let (without, mut with);
        if self.repetition % 2 == 1 {
            without = run(none);
            with = run(store);
        } else {
            with = run(store);
            without = run(none);
        }
        if let (Ok((base, _)), Ok((line, _))) = (&without, &mut with) {
            for (percentile, ratio, _) in COMPARED {
                let of = |line: &Value| line["latency"]["intended"][percentile].as_f64();
                let base = of(base).filter(|base| *base > 0.0);
                line[ratio] = of(line).zip(base).map(|(with, without)| with / without).into();
            }
        }
        [without, with]
            .map(|found| found.map(|(line, is_complete)| (line.to_string(), is_complete)))
    }

    /// Runs the processes of a test at `rate`, or flat out; gives the lines of the publisher and of
    /// the subscriber.
    fn run(
        &self,
        case: &PersistCase,
        rate: Option<u64>,
        stop: &dyn Fn() -> bool,
    ) -> anyhow::Result<(Value, Value)> {
        let expected = self.arguments.expected(rate);
        let until = Instant::now() + SLACK + expected.saturating_mul(SLOWNESS);
        let deadline = Deadline { until, stop };
        let names = &STORES[..case.stores];
        let store = StoreArguments {
            transport: self.arguments.transport,
            domain: self.domain.path("domain"),
            config: &self.arguments.config,
            interface: self.arguments.interface.as_deref(),
            io: None,
            cpu: self.cpus.store.filter(|_| rate.is_some()),
        };
        let start = |name: &&str| StoreProcess::start(name, &store, self.arguments.data.as_deref());
        let _stores = names.iter().map(start).collect::<anyhow::Result<Vec<_>>>()?;
        let common = self.common(case, names);
        let process =
            |role, own: &[String]| ChildProcess::start(role, &[own, common.as_slice()].concat());
        let mut subscriber = process("subscriber", &self.subscriber(rate))?;
        let mut publisher = process("publisher", &self.publisher(rate))?;
        let sent: Value = publisher.read(&deadline)?;
        let received: Value = subscriber.read(&deadline)?;
        for process in [publisher, subscriber] {
            process.finish(&deadline)?;
        }
        Ok((sent, received))
    }

    /// The line of a test of the live path: with the subscriber's latency, its conditions, and the
    /// store's CPU.
    fn live_line(&self, case: &PersistCase, mut line: Value, received: &Value) -> (Value, bool) {
        line["latency"] = received["latency"].clone();
        let members = CONDITIONS.iter().map(|name| ((*name).to_owned(), received[*name].clone()));
        line["receiver"] = Value::Object(members.collect());
        line["store_cpu"] = self.cpus.store.filter(|_| case.stores > 0).into();
        for ((.., asked), at) in COMPARED.into_iter().zip(0..) {
            line[asked] = case.asked_of_none.map(|asked| asked[at]).into();
        }
        let is_complete = self.add_counts(case, &mut line, received);
        (line, is_complete)
    }

    /// The publisher's line, with the case, the subscriber's counts and the comparisons.
    fn line(&mut self, case: &PersistCase, mut line: Value, received: &Value) -> Measured {
        // Only messages that are safe count: those in flight at the end take their time, too.
        let ns = |value: &Value| value.as_u64().unwrap_or(0) as f64;
        let time = ns(&line["duration_ns"]) + ns(&line["persistence"]["drained_ns"]);
        let rate = ns(&line["sent"]) * 1e9 / time.max(1.0);
        if case.mode == Some(PersistMode::Source) {
            self.spp_rate = Some(rate);
        }
        let of = |base: Option<f64>| base.filter(|base| *base > 0.0).map(|base| rate / base);
        let is_store_backed = case.mode.is_some();
        line["rate"] = rate.into();
        line["bytes_per_second"] = (rate * self.arguments.size as f64).into();
        line["document_rate"] = case.document_rate.into();
        line["of_ceiling"] = of(self.ceiling_rate.filter(|_| is_store_backed)).into();
        line["of_spp"] = of(self.spp_rate.filter(|_| is_store_backed)).into();
        line["asked_of_ceiling"] = case.asked_of_ceiling.into();
        line["asked_of_spp"] = case.asked_of_spp.into();
        let is_complete = self.add_counts(case, &mut line, received);
        (line.to_string(), is_complete)
    }

    /// Adds the case and the subscriber's counts; returns whether every message arrived and is
    /// safe.
    fn add_counts(&self, case: &PersistCase, line: &mut Value, received: &Value) -> bool {
        line["kind"] = Kind::Persist.name().into();
        line["command"] = self.head.command.clone().into();
        line["case"] = case.case.into();
        line["stores"] = case.stores.into();
        line["topics"] = case.topics.into();
        for name in ["received", "recovered", "lost", "reported_lost", "duplicated", "damaged"] {
            line[name] = received[name].clone();
        }
        self.count(line);
        let count = |name: &str| line[name].as_u64().unwrap_or(0);
        count("received") == count("sent") + count("warmup")
            && ["lost", "reported_lost", "duplicated", "damaged"].iter().all(|it| count(it) == 0)
            && line["persistence"]["left_in_flight"].as_u64().unwrap_or(0) == 0
    }

    /// Words of the publisher: with a rate, each message has its times and is written whole, since
    /// one that is kept is copied whole.
    fn publisher(&self, rate: Option<u64>) -> Vec<String> {
        let arguments = self.arguments;
        let warmup = format!("{},{}", arguments.warmup.loops, arguments.warmup.rate);
        let (size, messages) = (arguments.size.to_string(), arguments.messages().to_string());
        let cpu = pinned(rate.and(self.cpus.publisher));
        let (flags, touch) = if rate.is_some() { ("1", "whole") } else { ("0", "header") };
        let rate = rate.unwrap_or(0).to_string();
        ["perf", "pub", "-m", &size, "-n", &messages, "-r", &rate, "-w", &warmup, "-l", "20000"]
            .into_iter()
            .chain(["--wait-subscribers", "1", "-f", flags, "-a", &cpu, "--touch", touch])
            .map(str::to_owned)
            .collect()
    }

    /// Words of the subscriber: flat out, it records no latencies.
    fn subscriber(&self, rate: Option<u64>) -> Vec<String> {
        let cpu = pinned(rate.and(self.cpus.subscriber));
        let fast = if rate.is_some() { None } else { Some("-f") };
        let words = ["perf", "sub", "-E", "-a", &cpu];
        words.into_iter().chain(fast).map(str::to_owned).collect()
    }

    /// Options of both sides.
    fn common(&self, case: &PersistCase, stores: &[&str]) -> Vec<String> {
        let arguments = self.arguments;
        let topics = TOPICS[..case.topics].join(",");
        let domain = self.domain.path("domain").to_string_lossy().into_owned();
        let mut words = vec!["--json", "--own-session", "-t", &topics];
        words.extend(["--transport", arguments.transport.name(), "--directory", &domain]);
        let own = TOPICS.iter().zip(stores).map(|(topic, store)| format!("{topic}={store}"));
        let (own, stores) = (own.collect::<Vec<_>>(), stores.join(","));
        if let Some(mode) = case.mode {
            words.extend(["-p", mode.name()]);
            if case.has_store_each {
                words.extend(own.iter().flat_map(|it| ["--topic-stores", it]));
            } else {
                words.extend(["--stores", &stores]);
            }
        }
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        for file in &arguments.config {
            words.extend(["-c".to_owned(), file.to_string_lossy().into_owned()]);
        }
        let wait = arguments.wait.map(|wait| wait.name().to_owned());
        let window = arguments.window.map(|window| window.to_string());
        let options = [("--wait", wait), ("--window", window)];
        let interface = ("--interface", arguments.interface.clone());
        for (option, value) in options.into_iter().chain([interface]) {
            words.extend(value.into_iter().flat_map(|value| [option.to_owned(), value]));
        }
        words
    }
}

/// A CPU as `-a` takes it.
fn pinned(cpu: Option<usize>) -> String {
    cpu.map_or_else(|| "-1".to_owned(), |cpu| cpu.to_string())
}
