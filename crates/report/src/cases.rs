//! Runs grouped by case: the repetitions of a case make one figure with a spread.

use crate::document::Figure;
use crate::line::{Kind, Line};
use crate::number::{self, Quantity};
use crate::since::Since;
use crate::spread::Spread;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The lines of a report, grouped for the sections.
#[derive(Debug)]
pub(crate) struct Cases<'a> {
    pub(crate) lines: &'a [Line],
    /// Names of the series that are compared with one another: mostly one for each file.
    pub(crate) sets: Vec<String>,
    /// Groups by experiment.
    groups: BTreeMap<&'a str, Vec<Group<'a>>>,
}

/// The parameters of a run: the member `case`.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
#[serde(default)]
pub(crate) struct Case {
    pub(crate) size: Option<u64>,
    pub(crate) rate_asked: Option<u64>,
    pub(crate) spin: Option<u64>,
    pub(crate) receivers: Option<u64>,
    pub(crate) api: Option<String>,
    pub(crate) fast: Option<bool>,
    pub(crate) cross_numa: Option<bool>,
}

/// The repetitions of one case in one series.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) set: usize,
    pub(crate) case: Case,
    pub(crate) runs: Vec<&'a Line>,
}

impl<'a> Cases<'a> {
    pub(crate) fn new(lines: &'a [Line]) -> Self {
        let mut cases = Self { lines, sets: Vec::new(), groups: BTreeMap::new() };
        let mut seen: BTreeMap<(&str, &str, Case, u64), usize> = BTreeMap::new();
        for line in cases.of_kind(Kind::Run) {
            let Some(experiment) = line.text("experiment") else { continue };
            let case = line.at("case").and_then(|case| Case::deserialize(case).ok());
            let case = case.unwrap_or_default();
            // The same repetition again in the same file belongs to another series.
            let again = line.whole("repetition").map_or(0, |repetition| {
                let key = (line.file.as_str(), experiment, case.clone(), repetition);
                let times = seen.entry(key).or_default();
                *times += 1;
                *times - 1
            });
            let set = cases.set(&line.file, again);
            let groups = cases.groups.entry(experiment).or_default();
            match groups.iter_mut().find(|group| group.set == set && group.case == case) {
                Some(group) => group.runs.push(line),
                None => groups.push(Group { set, case, runs: vec![line] }),
            }
        }
        for groups in cases.groups.values_mut() {
            groups.sort_by(|a, b| (&a.case, a.set).cmp(&(&b.case, b.set)));
        }
        cases
    }

    /// The index of the `again`th series of `file`.
    fn set(&mut self, file: &str, again: usize) -> usize {
        let name = if again == 0 { file.to_owned() } else { format!("{file} ({})", again + 1) };
        let known = self.sets.iter().position(|set| *set == name);
        known.unwrap_or_else(|| {
            self.sets.push(name);
            self.sets.len() - 1
        })
    }

    /// All lines of `kind`.
    pub(crate) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &'a Line> + use<'a> {
        self.lines.iter().filter(move |line| line.kind == kind)
    }

    /// The lines of `kind` by `key` and file.
    pub(crate) fn grouped<K: Ord>(
        &self,
        kind: Kind,
        key: impl Fn(&'a Line) -> K,
    ) -> BTreeMap<(K, &'a str), Vec<&'a Line>> {
        let mut groups: BTreeMap<_, Vec<&Line>> = BTreeMap::new();
        for line in self.of_kind(kind) {
            groups.entry((key(line), line.file.as_str())).or_default().push(line);
        }
        groups
    }

    /// Whether lines of `kind` are of more than one file, so that tables name the files.
    pub(crate) fn has_several_files(&self, kind: Kind) -> bool {
        let first = self.of_kind(kind).next();
        self.of_kind(kind).any(|line| first.is_some_and(|first| first.file != line.file))
    }

    /// The groups of an experiment, by case and then by series.
    pub(crate) fn of(&self, experiment: &str) -> &[Group<'a>] {
        self.groups.get(experiment).map_or(&[], Vec::as_slice)
    }

    /// The groups of all experiments.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, &Group<'a>)> {
        let pairs = self.groups.iter();
        pairs.flat_map(|(name, groups)| groups.iter().map(move |group| (*name, group)))
    }

    /// The name of a series; empty if there is only one.
    pub(crate) fn set_name(&self, set: usize) -> &str {
        if self.sets.len() > 1 { &self.sets[set] } else { "" }
    }

    /// The line that says why `experiment` was left out.
    pub(crate) fn skipped(&self, experiment: &str) -> Option<&'a Line> {
        self.of_kind(Kind::Skipped).find(|line| line.is("experiment", experiment))
    }
}

impl<'a> Group<'a> {
    /// The publisher's rate.
    pub(crate) fn rate(&self) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| run.figure("publisher.rate", number::rate)))
    }

    /// The member `name` of the latency; of several subscribers, the worst one's.
    pub(crate) fn time(&self, since: Since, name: &str) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| worst(run, since, name)))
    }

    /// A reference figure of the source document.
    pub(crate) fn reference(&self, name: &str, show: fn(f64) -> Quantity) -> Option<Figure> {
        let path = format!("reference.{name}");
        self.runs.iter().find_map(|run| run.figure(&path, show))
    }

    /// The repetition with the median of the median latencies.
    pub(crate) fn typical(&self, since: Since) -> Option<&'a Line> {
        let median = self.time(since, "p50_ns")?.median;
        self.runs.iter().find(|run| run.id == median.line).copied()
    }
}

/// The largest `name` of all subscribers of a run.
fn worst(run: &Line, since: Since, name: &str) -> Option<Figure> {
    let of = |path: String| run.figure(&format!("{path}.{name}"), number::time);
    latencies(run, since).filter_map(of).max_by(|a, b| a.value.total_cmp(&b.value))
}

/// The path of the distribution to draw: of the subscriber with the highest median.
pub(crate) fn slowest(run: &Line, since: Since) -> Option<String> {
    let known = latencies(run, since).filter(|path| run.at(path).is_some());
    known.max_by_key(|path| run.whole(&format!("{path}.p50_ns")))
}

fn latencies(run: &Line, since: Since) -> impl Iterator<Item = String> {
    let subscribers = 0..run.list("subscribers").len();
    subscribers.map(move |at| since.path(&format!("subscribers[{at}].")))
}

/// The times that tables show: column and member.
pub(crate) const TIMES: [(&str, &str); 8] = [
    ("min", "min_ns"),
    ("mean", "mean_ns"),
    ("p50", "p50_ns"),
    ("p90", "p90_ns"),
    ("p99", "p99_ns"),
    ("p99.9", "p99_9_ns"),
    ("p99.99", "p99_99_ns"),
    ("max", "max_ns"),
];

/// Experiments with a section of their own.
pub(crate) const EXPERIMENTS: [&str; 9] =
    ["size", "workload", "slow", "latency", "generic", "receivers", "numa", "pipes", "rings"];
