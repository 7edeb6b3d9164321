//! A report: lines that were read, and the forms they are rendered in.

use crate::line::{Kind, Line};
use crate::read::{self, Lines, ReadError};
use crate::since::Since;
use crate::source::Source;
use crate::{hgrm, hlog, html, sections, text};

/// Measurement lines that were read.
#[derive(Clone, Debug)]
pub struct Report {
    lines: Lines,
}

/// Reasons for not writing a `.hgrm` or `.hlog`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoTimes {
    /// No line holds a distribution with its buckets.
    #[error(
        "no line holds times: latencies are recorded with perf pub -f 1 and a perf sub without -f"
    )]
    None,
    /// More than one distribution; the text by percentile holds one.
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
    /// The first wrong line, by file and number.
    pub fn read(sources: &[Source]) -> Result<Self, ReadError> {
        Ok(Self { lines: read::read(sources)? })
    }

    /// A report on one line alone, named by its place (`run.jsonl:3`) or its number on the page;
    /// none if there is no such line.
    pub fn only(&self, line: &str) -> Option<Self> {
        let is_meant = |one: &&Line| one.place() == line || one.id.to_string() == line;
        let found = self.lines.lines.iter().find(is_meant)?;
        Some(Self {
            lines: Lines {
                lines: vec![found.clone().placed(1, found.file.clone(), found.number)],
                unknown: 0,
            },
        })
    }

    /// The number of lines read.
    pub fn line_count(&self) -> usize {
        self.lines.lines.len()
    }

    /// A self-contained page: it loads nothing from the network.
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

/// The distributions with buckets on `line`; of latencies, those of `since` only.
fn entries<'a>(line: &'a Line, since: &[Since]) -> Vec<hlog::Entry<'a>> {
    // The directory of the file would only make tags long.
    let file = line.file.rsplit('/').next().unwrap_or_default();
    let entry = |(name, duration_ns, path): Named| {
        let times = line.times(&path).filter(|times| times.has_buckets())?;
        Some(hlog::Entry {
            tag: format!("{file}:{}{name}", line.number),
            started_unix_ns: line.whole("started_unix_ns").unwrap_or(0),
            duration_ns: duration_ns.unwrap_or(0),
            times,
        })
    };
    distributions(line, since).into_iter().filter_map(entry).collect()
}

/// A distribution: its name in tags, how long its measurement took, and its path.
type Named = (String, Option<u64>, String);

fn distributions(line: &Line, since: &[Since]) -> Vec<Named> {
    let latencies = |name: &str, prefix: &str| -> Vec<Named> {
        let duration_ns = line.whole(&format!("{prefix}duration_ns"));
        let named =
            |since: &Since| (format!("{name}/{}", since.name()), duration_ns, since.path(prefix));
        since.iter().map(named).collect()
    };
    let single = |name: &str, path: &str| {
        vec![(name.to_owned(), line.whole("duration_ns"), path.to_owned())]
    };
    match line.kind {
        Kind::Subscriber | Kind::Ping | Kind::Baseline | Kind::Persist => latencies("", ""),
        Kind::Run => (0..line.list("subscribers").len())
            .flat_map(|at| latencies(&format!("/{at}"), &format!("subscribers[{at}].")))
            .collect(),
        Kind::Publisher => single("/lateness", "lateness"),
        Kind::Jitter => single("/gaps", "gaps"),
        Kind::Log => {
            let tag = line.text("tag").map(|tag| format!("/{tag}"));
            single(&tag.unwrap_or_default(), "")
        }
        Kind::Fanout => {
            let duration_ns = line.real("seconds").map(|seconds| (seconds * 1e9) as u64);
            vec![(String::new(), duration_ns, "latency".to_owned())]
        }
        Kind::Skipped
        | Kind::Pong
        | Kind::Rival
        | Kind::Doctor
        | Kind::Pipes
        | Kind::Rings
        | Kind::Group => Vec::new(),
    }
}
