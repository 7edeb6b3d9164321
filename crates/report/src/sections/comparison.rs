//! The same case in several files: whether the figures agree, and possible reasons if not.

use super::chart::{Curve, by_percentile};
use super::difference::{self, AGREEMENT};
use super::summary::shape;
use crate::cases::{Case, Cases, Group, slowest};
use crate::document::{Block, Figure, Origin, Section, Table, Words};
use crate::line::{Kind, Line};
use crate::number;
use crate::since::Since;
use crate::spread::{Spread, words};

/// The most overlays drawn; the table has all cases.
const DRAWN: usize = 6;

/// The most cases named with the reasons they share; the table has all.
const NAMED: usize = 6;

/// One figure in two series: the first one that has it, and a later one.
struct Pair<'a> {
    case: String,
    what: &'static str,
    names: [String; 2],
    spreads: [Spread; 2],
    /// Whether the two must agree: medians must.
    counts: bool,
    /// Reasons for a difference.
    reasons: Vec<String>,
    lines: [&'a Line; 2],
}

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let mut pairs = of_runs(cases);
    pairs.extend(of_single_lines(cases));
    if pairs.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "The same case, there and here",
        &["case", "figure", "there", ">median there", "here", ">median here", ">difference"],
    );
    table.rows = pairs.iter().map(row).collect();
    let blocks = vec![verdict(&pairs), Block::Table(table), Block::Charts(overlays(cases))];
    Some(Section::new("comparison", "Comparison of runs", blocks))
}

fn change(pair: &Pair<'_>) -> f64 {
    let [there, here] = &pair.spreads;
    let change = here.median.value / there.median.value - 1.0;
    if change.is_finite() { change } else { 0.0 }
}

fn row(pair: &Pair<'_>) -> Vec<Words> {
    let [there, here] = &pair.spreads;
    let change = change(pair);
    let member = format!("{} / {} − 1", pair.lines[1].place(), pair.lines[0].place());
    let shown = Figure::new(change, number::change(change), here.median.line, member);
    vec![
        pair.case.as_str().into(),
        pair.what.into(),
        pair.names[0].as_str().into(),
        words(Some(there.clone())),
        pair.names[1].as_str().into(),
        words(Some(here.clone())),
        Words::new().figure(shown),
    ]
}

/// The number of medians that agree; for the others, possible reasons.
fn verdict(pairs: &[Pair<'_>]) -> Block {
    let judged: Vec<&Pair<'_>> = pairs.iter().filter(|pair| pair.counts).collect();
    let apart: Vec<&&Pair<'_>> =
        judged.iter().filter(|pair| change(pair).abs() > AGREEMENT).collect();
    let agree = judged.len() - apart.len();
    let title = format!("{agree} of {} medians agree within 5%", judged.len());
    // Many cases share their reasons, apart from numbers in them: each reason is given once.
    let mut groups: Vec<(Vec<String>, &[String], Vec<String>)> = Vec::new();
    for pair in &apart {
        let name = format!("{} ({})", pair.case, number::change(change(pair)).text());
        let shapes: Vec<String> = pair.reasons.iter().map(|reason| shape(reason)).collect();
        match groups.iter_mut().find(|(known, ..)| *known == shapes) {
            Some((.., cases)) => cases.push(name),
            None => groups.push((shapes, &pair.reasons, vec![name])),
        }
    }
    let words = groups.into_iter().map(|(_, reasons, mut cases)| {
        let more = cases.len().saturating_sub(NAMED);
        cases.truncate(NAMED);
        let cases = cases.join("; ");
        let cases = if more > 0 { format!("{cases}; and {more} more") } else { cases };
        let why = match (reasons.is_empty(), more > 0 || cases.contains("; ")) {
            (true, _) => "nothing on the lines says why: repeat both, in turns".to_owned(),
            (false, true) => format!("{}, and alike", reasons.join("; ")),
            (false, false) => reasons.join("; "),
        };
        Words::from(format!("{cases}: {why}."))
    });
    Block::Verdict { calm: apart.is_empty(), title, words: words.collect() }
}

/// Pairs of groups: the first set that has the case, with each later one.
fn of_runs<'a>(cases: &Cases<'a>) -> Vec<Pair<'a>> {
    let mut pairs = Vec::new();
    for (experiment, here) in cases.all() {
        let same = cases.of(experiment).iter().filter(|group| group.case == here.case);
        let Some(there) = same.min_by_key(|group| group.set).filter(|one| one.set < here.set)
        else {
            continue;
        };
        let timed = [there, here].map(|group| group.time(Since::Intended, "p50_ns"));
        let far = [there, here].map(|group| group.time(Since::Intended, "p99_ns"));
        let found = match timed {
            [Some(a), Some(b)] => vec![("p50", [a, b], true)],
            _ => both([there.rate(), here.rate()])
                .map(|both| ("rate", both, true))
                .into_iter()
                .collect(),
        };
        let far = both(far).map(|both| ("p99", both, false));
        for (what, spreads, counts) in found.into_iter().chain(far) {
            pairs.push(Pair {
                case: case_name(experiment, &here.case),
                what,
                names: [there.set, here.set].map(|set| cases.sets[set].clone()),
                lines: [there.runs[0], here.runs[0]],
                spreads,
                counts,
                reasons: why(there, here),
            });
        }
    }
    pairs
}

fn both([one, other]: [Option<Spread>; 2]) -> Option<[Spread; 2]> {
    Some([one?, other?])
}

fn why(there: &Group<'_>, here: &Group<'_>) -> Vec<String> {
    let mut reasons = difference::baselines(&there.runs, &here.runs);
    reasons.extend(difference::reasons(there.runs[0], here.runs[0]));
    reasons.extend(difference::doubts(&there.runs, &here.runs));
    reasons
}

/// Lines of the same kind and load in different files; a file's first stands for it.
fn of_single_lines<'a>(cases: &Cases<'a>) -> Vec<Pair<'a>> {
    let found: Vec<(String, &'static str, Figure, &Line)> =
        cases.lines.iter().filter_map(single).collect();
    let mut pairs: Vec<Pair<'a>> = Vec::new();
    for (at, (name, what, figure, here)) in found.iter().enumerate() {
        let same = |one: &&(String, &'static str, Figure, &Line)| one.0 == *name && one.1 == *what;
        let is_first_of_file = !found[..at].iter().filter(same).any(|one| one.3.file == here.file);
        let first = found.iter().find(same).filter(|one| one.3.file != here.file);
        let Some((_, _, figure_there, there)) = first.filter(|_| is_first_of_file) else {
            continue;
        };
        let spreads = [figure_there, figure].map(|figure| Spread::of([figure.clone()]));
        let Some(spreads) = both(spreads) else { continue };
        let mut reasons = difference::reasons(there, here);
        reasons.extend(difference::doubts(&[there], &[here]));
        let names = [there.file.clone(), here.file.clone()];
        let (case, lines) = (name.clone(), [*there, *here]);
        pairs.push(Pair { case, what, names, spreads, counts: true, reasons, lines });
    }
    pairs
}

/// The case, the name and the figure by which a single line is compared.
fn single(line: &Line) -> Option<(String, &'static str, Figure, &Line)> {
    let p50 = || Some(("p50", line.figure("latency.intended.p50_ns", number::time)?));
    let rate = || Some(("rate", line.figure("rate", number::rate)?));
    let asked = || line.whole("rate_asked").map(number::asked);
    let (name, (what, figure)) = match line.kind {
        Kind::Publisher => (format!("publisher, {} B, {}", line.whole("size")?, asked()?), rate()?),
        Kind::Subscriber => {
            let spin = line.whole("spin").unwrap_or(0);
            let name =
                if spin > 0 { format!("subscriber, spin {spin}") } else { "subscriber".into() };
            (name, p50().or_else(rate)?)
        }
        Kind::Jitter => ("jitter".into(), ("p50", line.figure("gaps.p50_ns", number::time)?)),
        Kind::Ping => {
            let (transport, wait) = (line.text("transport")?, line.text("wait"));
            let (wait, size) = (wait.unwrap_or_default(), line.whole("size")?);
            (format!("round trip, {transport}, {wait}, {size} B, {}", asked()?), p50()?)
        }
        _ => return None,
    };
    Some((name, what, figure, line))
}

fn case_name(experiment: &str, case: &Case) -> String {
    let parts = [
        Some(experiment.to_owned()),
        case.size.map(|size| format!("{size} B")),
        case.rate_asked.filter(|rate| *rate > 0).map(number::asked),
        case.spin.filter(|spin| *spin > 0).map(|spin| format!("spin {spin}")),
        case.receivers.filter(|count| *count > 1).map(|count| format!("{count} receivers")),
        case.api.clone().filter(|_| experiment == "generic"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Latency by percentile, the series over one another.
fn overlays(cases: &Cases<'_>) -> Vec<crate::document::Chart> {
    let groups = cases.of("latency");
    let mut charts = Vec::new();
    for (at, first) in groups.iter().enumerate() {
        if groups[..at].iter().any(|known| known.case == first.case) {
            continue;
        }
        let same = groups.iter().filter(|group| group.case == first.case);
        let curves = same.filter_map(|group| {
            let run = group.typical(Since::Intended)?;
            let (name, origin) = (cases.sets[group.set].clone(), Origin::Own(group.set));
            Curve::of(name, origin, run, &slowest(run, Since::Intended)?)
        });
        let curves: Vec<Curve<'_>> = curves.collect();
        if curves.len() > 1 {
            let title = format!("{}, from the intended time", case_name("latency", &first.case));
            charts.extend(by_percentile(title, &curves));
        }
    }
    charts.truncate(DRAWN);
    charts
}
