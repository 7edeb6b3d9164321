//! Runs, put together by case: repetitions of one case are one figure with a spread.

use crate::distribution::Distribution;
use crate::document::Figure;
use crate::line::{Line, Record};
use crate::number;
use crate::series::{Case, Published, Rival, Run, Skipped};
use crate::since::Since;
use crate::spread::Spread;
use std::collections::BTreeMap;

/// The lines of a report, as the sections want them.
#[derive(Debug)]
pub(crate) struct Cases<'a> {
    pub(crate) lines: &'a [Line],
    /// The series of runs that are compared with one another: mostly one for each file.
    pub(crate) sets: Vec<String>,
    /// By experiment.
    groups: BTreeMap<&'a str, Vec<Group<'a>>>,
}

/// The repetitions of one case in one set.
#[derive(Clone, Debug)]
pub(crate) struct Group<'a> {
    pub(crate) set: usize,
    pub(crate) case: Case,
    pub(crate) runs: Vec<Repetition<'a>>,
}

/// One repetition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repetition<'a> {
    pub(crate) line: &'a Line,
    pub(crate) run: &'a Run,
}

impl<'a> Cases<'a> {
    pub(crate) fn new(lines: &'a [Line]) -> Self {
        let mut cases = Self { lines, sets: Vec::new(), groups: BTreeMap::new() };
        let mut seen: BTreeMap<(&str, &str, Case, u64), usize> = BTreeMap::new();
        for line in lines {
            let Record::Run(run) = &line.record else { continue };
            let Some(experiment) = run.experiment.as_deref() else { continue };
            let case = run.case.clone().unwrap_or_default();
            // A repetition that comes again in the same file belongs to another series.
            let again = run.repetition.map_or(0, |repetition| {
                let key = (line.file.as_str(), experiment, case.clone(), repetition);
                let times = seen.entry(key).or_default();
                *times += 1;
                *times - 1
            });
            let set = cases.set(&line.file, again);
            let groups = cases.groups.entry(experiment).or_default();
            let run = Repetition { line, run };
            match groups.iter_mut().find(|group| group.set == set && group.case == case) {
                Some(group) => group.runs.push(run),
                None => groups.push(Group { set, case, runs: vec![run] }),
            }
        }
        for groups in cases.groups.values_mut() {
            groups.sort_by(|a, b| (&a.case, a.set).cmp(&(&b.case, b.set)));
        }
        cases
    }

    /// The set of the `again`th series of `file`.
    fn set(&mut self, file: &str, again: usize) -> usize {
        let name = if again == 0 { file.to_owned() } else { format!("{file} ({})", again + 1) };
        let known = self.sets.iter().position(|set| *set == name);
        known.unwrap_or_else(|| {
            self.sets.push(name);
            self.sets.len() - 1
        })
    }

    /// The groups of an experiment, by case and then by set.
    pub(crate) fn of(&self, experiment: &str) -> &[Group<'a>] {
        self.groups.get(experiment).map_or(&[], Vec::as_slice)
    }

    /// Every experiment's groups.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'a str, &Group<'a>)> {
        let pairs = self.groups.iter();
        pairs.flat_map(|(name, groups)| groups.iter().map(move |group| (*name, group)))
    }

    /// The set's name where there are several; else nothing needs saying.
    pub(crate) fn set_name(&self, set: usize) -> &str {
        if self.sets.len() > 1 { &self.sets[set] } else { "" }
    }

    /// Why `experiment` was left out.
    pub(crate) fn skipped(&self, experiment: &str) -> Option<(&'a Line, &'a Skipped)> {
        self.lines.iter().find_map(|line| match &line.record {
            Record::Skipped(skipped) if skipped.experiment.as_deref() == Some(experiment) => {
                Some((line, skipped))
            }
            _ => None,
        })
    }

    /// The lines of other libraries.
    pub(crate) fn rivals(&self) -> impl Iterator<Item = (&'a Line, &'a Rival)> {
        self.lines.iter().filter_map(|line| match &line.record {
            Record::Rival(rival) => Some((line, &**rival)),
            _ => None,
        })
    }
}

impl<'a> Group<'a> {
    /// The publisher's rate.
    pub(crate) fn rate(&self) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(Repetition::rate))
    }

    /// A time of the distribution; of several subscribers, that of the one it is worst for.
    pub(crate) fn time(&self, since: Since, name: &str, pick: Pick) -> Option<Spread> {
        Spread::of(self.runs.iter().filter_map(|run| run.time(since, name, pick)))
    }

    /// What the source document says, and the line that says so.
    pub(crate) fn published(
        &self,
        name: &str,
        pick: fn(&Published) -> Option<f64>,
        show: fn(f64) -> number::Quantity,
    ) -> Option<Figure> {
        self.runs.iter().find_map(|run| {
            let value = pick(run.run.published.as_ref()?)?;
            Some(Figure::new(value, show(value), run.line.id, format!("published.{name}")))
        })
    }

    /// The repetition whose median latency is the median one.
    pub(crate) fn typical(&self, since: Since) -> Option<Repetition<'a>> {
        let median = self.time(since, "p50_ns", P50)?.median;
        self.runs.iter().find(|run| run.line.id == median.line).copied()
    }
}

/// Which time of a distribution is meant.
pub(crate) type Pick = fn(&Distribution) -> Option<f64>;

pub(crate) const P50: Pick = |times| times.p50_ns.map(|ns| ns as f64);
pub(crate) const P99: Pick = |times| times.p99_ns.map(|ns| ns as f64);

/// The times that tables show: column, member, which.
pub(crate) const TIMES: [(&str, &str, Pick); 8] = [
    ("min", "min_ns", |times| times.min_ns.map(|ns| ns as f64)),
    ("mean", "mean_ns", |times| times.mean_ns),
    ("p50", "p50_ns", P50),
    ("p90", "p90_ns", |times| times.p90_ns.map(|ns| ns as f64)),
    ("p99", "p99_ns", P99),
    ("p99.9", "p99_9_ns", |times| times.p99_9_ns.map(|ns| ns as f64)),
    ("p99.99", "p99_99_ns", |times| times.p99_99_ns.map(|ns| ns as f64)),
    ("max", "max_ns", |times| times.max_ns.map(|ns| ns as f64)),
];

impl<'a> Repetition<'a> {
    fn rate(&self) -> Option<Figure> {
        let rate = self.run.publisher.as_ref()?.rate?;
        Some(Figure::new(rate, number::rate(rate), self.line.id, "publisher.rate"))
    }

    fn time(&self, since: Since, name: &str, pick: Pick) -> Option<Figure> {
        let times = self
            .run
            .subscribers()
            .iter()
            .enumerate()
            .filter_map(|(at, one)| Some((at, pick(since.of(one)?)?)));
        let (at, ns) = times.max_by(|a, b| a.1.total_cmp(&b.1))?;
        let member = format!("subscribers[{at}].latency.{}.{name}", since.name());
        Some(Figure::new(ns, number::time(ns), self.line.id, member))
    }

    /// The distribution to draw: of the subscriber with the highest median.
    pub(crate) fn times(&self, since: Since) -> Option<&'a Distribution> {
        let all = self.run.subscribers().iter().filter_map(|one| since.of(one));
        all.max_by_key(|times| times.p50_ns)
    }
}
