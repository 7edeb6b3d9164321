//! The report: read once, then given the forms that are wanted.

use crate::distribution::Distribution;
use crate::line::{Line, Record};
use crate::outcome::{Latency, Subscriber};
use crate::read::{self, Lines, ReadError};
use crate::since::Since;
use crate::source::Source;
use crate::{hgrm, hlog, html, sections, text};

/// Measurement lines that were read.
#[derive(Clone, Debug)]
pub struct Report {
    lines: Lines,
}

/// Why there is no `.hgrm` or `.hlog` to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTimes {
    /// No line holds a distribution with its buckets.
    #[error(
        "no line holds times: latencies are recorded with perf pub -f 1 and a perf sub without -f"
    )]
    None,
    /// The text by percentile has room for one distribution.
    #[error(
        "there are {0} distributions, and a .hgrm has room for one: choose with --line, or write a \
         .hlog"
    )]
    Several(usize),
}

impl Report {
    /// Reads `sources`, in order.
    ///
    /// # Errors
    ///
    /// Names the file and the line, and says what is wrong there.
    pub fn read(sources: &[Source]) -> Result<Self, ReadError> {
        Ok(Self { lines: read::read(sources)? })
    }

    /// The report on one line alone, by its place (`run.jsonl:3`) or its number on the page;
    /// none if there is no such line.
    pub fn only(&self, line: &str) -> Option<Self> {
        let is_meant = |one: &&Line| one.place() == line || one.id.to_string() == line;
        let found = self.lines.lines.iter().find(is_meant)?;
        Some(Self { lines: Lines { lines: vec![Line { id: 1, ..found.clone() }], unknown: 0 } })
    }

    /// How many lines were read.
    pub fn line_count(&self) -> usize {
        self.lines.lines.len()
    }

    /// One page, complete in itself: it asks the network for nothing.
    pub fn to_html(&self) -> String {
        html::page(&sections::document(&self.lines), &self.lines.lines)
    }

    /// Tables and small histograms, at most `width` characters wide where that is possible.
    pub fn to_text(&self, width: usize) -> String {
        text::render(&sections::document(&self.lines), width)
    }

    /// The only distribution, by percentile, as HdrHistogram's plotter and others read it; times
    /// in nanoseconds.
    ///
    /// # Errors
    ///
    /// If no line holds times, or more than one does.
    pub fn to_hgrm(&self, since: Since) -> Result<String, NoTimes> {
        let all = self.times(&[since]);
        match all.as_slice() {
            [] => Err(NoTimes::None),
            [only] => Ok(hgrm::write(only.times)),
            several => Err(NoTimes::Several(several.len())),
        }
    }

    /// Every distribution as an interval of HdrHistogram's log (version 2, compressed), tagged
    /// with its line; times in nanoseconds.
    ///
    /// # Errors
    ///
    /// If no line holds times.
    pub fn to_hlog(&self) -> Result<String, NoTimes> {
        let all = self.times(&Since::BOTH);
        if all.is_empty() { Err(NoTimes::None) } else { Ok(hlog::write(&all)) }
    }

    /// Every distribution that has buckets.
    fn times(&self, since: &[Since]) -> Vec<hlog::Entry<'_>> {
        self.lines.lines.iter().flat_map(|line| entries(line, since)).collect()
    }
}

/// The distributions on `line`; of latencies, those `since` the times that are wanted.
fn entries<'a>(line: &'a Line, since: &[Since]) -> Vec<hlog::Entry<'a>> {
    // Where the file lies is of no concern to whoever reads the log.
    let file = line.file.rsplit('/').next().unwrap_or_default();
    let entry = |(name, duration_ns, times): Named<'a>| {
        let times = times.filter(|times| times.has_buckets())?;
        Some(hlog::Entry {
            tag: format!("{file}:{}{name}", line.number),
            started_unix_ns: line.head.started_unix_ns.unwrap_or(0),
            duration_ns: duration_ns.unwrap_or(0),
            times,
        })
    };
    distributions(line, since).into_iter().filter_map(entry).collect()
}

/// A distribution: what it is of, how long it took, and what it is, if it is known.
type Named<'a> = (String, Option<u64>, Option<&'a Distribution>);

fn distributions<'a>(line: &'a Line, since: &[Since]) -> Vec<Named<'a>> {
    let latencies = |who: &str, subscriber: &'a Subscriber| -> Vec<Named<'a>> {
        let named = |since: &Since| {
            let name = format!("{who}/{}", since.name());
            (name, subscriber.counts.duration_ns, since.of(subscriber))
        };
        since.iter().map(named).collect()
    };
    match &line.record {
        Record::Subscriber(subscriber) => latencies("", subscriber),
        Record::Run(run) => {
            let subscribers = run.subscribers().iter().enumerate();
            subscribers.flat_map(|(at, one)| latencies(&format!("/{at}"), one)).collect()
        }
        Record::Publisher(publisher) => {
            let lateness = publisher.lateness.as_ref();
            vec![("/lateness".to_owned(), publisher.duration_ns, lateness)]
        }
        Record::Jitter(jitter) => {
            vec![("/gaps".to_owned(), jitter.duration_ns, jitter.gaps.as_ref())]
        }
        Record::Log(interval) => {
            let tag = interval.tag.as_deref().map(|tag| format!("/{tag}")).unwrap_or_default();
            vec![(tag, None, Some(&interval.times))]
        }
        Record::Ping(ping) => round_trips(&ping.latency, ping.duration_ns, since),
        Record::Fanout(fanout) => {
            let duration_ns = fanout.seconds.map(|seconds| (seconds * 1e9) as u64);
            vec![(String::new(), duration_ns, fanout.latency.as_ref())]
        }
        Record::Floor(floor) => round_trips(&floor.latency, floor.duration_ns, since),
        Record::Skipped(_)
        | Record::Pong(_)
        | Record::Rival(_)
        | Record::Doctor(_)
        | Record::Pipes(_)
        | Record::Rings(_) => Vec::new(),
    }
}

/// The distributions of round trips.
fn round_trips<'a>(
    latency: &'a Option<Latency>,
    duration_ns: Option<u64>,
    since: &[Since],
) -> Vec<Named<'a>> {
    let Some(latency) = latency else { return Vec::new() };
    let named = |since: &Since| (format!("/{}", since.name()), duration_ns, since.pick(latency));
    since.iter().map(named).collect()
}
