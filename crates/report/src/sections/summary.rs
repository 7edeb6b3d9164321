//! Summary: measurements, the most important figures, and their doubts.

use super::machine::machines;
use crate::cases::{Cases, Group};
use crate::document::{Block, Figure, Section, Tile, Words};
use crate::line::{Kind, Line};
use crate::number::{self, plural};
use crate::since::Since;
use crate::spread::Spread;

/// Series without an `experiment` of their own.
const BETWEEN_THREADS: [&str; 2] = ["pipes", "rings"];

pub(super) fn section(cases: &Cases<'_>, unknown: usize) -> Section {
    let mut blocks = vec![Block::Words(what(cases, unknown))];
    let tiles: Vec<Tile> =
        [rate(cases), latency(cases), gap(cases), wrong(cases)].into_iter().flatten().collect();
    if !tiles.is_empty() {
        blocks.push(Block::Tiles(tiles));
    }
    blocks.extend(trust(cases));
    Section::new("summary", "In short", blocks)
}

/// Names of lines of each kind, one and several.
const KINDS: [(Kind, &str, &str); 16] = [
    (Kind::Run, "run", "runs"),
    (Kind::Publisher, "publisher", "publishers"),
    (Kind::Subscriber, "subscriber", "subscribers"),
    (Kind::Jitter, "jitter test", "jitter tests"),
    (Kind::Rival, "run beside other libraries", "runs beside other libraries"),
    (Kind::Pipes, "run of a pipe", "runs of pipes"),
    (Kind::Rings, "run of a ring", "runs of rings"),
    (Kind::Fanout, "run of fan-out", "runs of fan-out"),
    (Kind::Group, "run of a group", "runs of groups"),
    (Kind::Persist, "run with or without stores", "runs with and without stores"),
    (Kind::Ping, "run of round trips", "runs of round trips"),
    (Kind::Pong, "side that answered", "sides that answered"),
    (Kind::Baseline, "run of bare sockets", "runs of bare sockets"),
    (Kind::Doctor, "examination of the machine", "examinations of the machine"),
    (Kind::Log, "interval of a log", "intervals of logs"),
    (Kind::Skipped, "experiment left out", "experiments left out"),
];

/// The number of lines of each kind, and of files.
fn what(cases: &Cases<'_>, unknown: usize) -> Words {
    let parts = KINDS.into_iter().filter_map(|(kind, one, many)| {
        let count = cases.of_kind(kind).count();
        (count > 0).then(|| plural(count, one, many))
    });
    let mut files: Vec<&str> = cases.lines.iter().map(|line| line.file.as_str()).collect();
    files.dedup();
    let what = parts.collect::<Vec<_>>().join(", ");
    let mut text = match (files.len(), what.is_empty()) {
        (_, true) => "There are no measurements in what was read.".to_owned(),
        (1, _) => format!("{what}, from {}.", files[0]),
        (count, _) => format!("{what}, from {count} files."),
    };
    if unknown > 0 {
        let lines = plural(unknown, "line is", "lines are");
        text += &format!(" {lines} of a kind that this version does not know.");
    }
    Words::from(text)
}

/// The rate at the slowest message size.
fn rate(cases: &Cases<'_>) -> Option<Tile> {
    let found = cases.of("size").iter().filter_map(|group| Some((group.rate()?, group)));
    let (spread, group) = found.min_by(|a, b| a.0.median.value.total_cmp(&b.0.median.value))?;
    let size = group.case.size.unwrap_or(0);
    let label = "Rate, flat out, at the slowest size".to_owned();
    let note = Words::from(format!("{size} B, one subscriber")).text(of_repetitions(&spread));
    Some(Tile { label, value: spread.words(), note })
}

/// The lowest and the highest median latency of all cases.
fn latency(cases: &Cases<'_>) -> Option<Tile> {
    let label = "Median latency, one way".to_owned();
    let time = |group: &Group<'_>| group.time(Since::Intended, "p50_ns");
    if let Some(all) = Spread::of(cases.of("latency").iter().filter_map(time).map(|s| s.median)) {
        let note = format!("the range over {}", plural(all.count, "case", "cases"));
        let value = match all.count {
            1 => Words::new().figure(all.median),
            _ => Words::new().figure(all.least).text(" to ").figure(all.most),
        };
        return Some(Tile { label, value, note: note.into() });
    }
    cases.of_kind(Kind::Subscriber).find_map(|line| {
        let value = Words::new().figure(line.figure("latency.intended.p50_ns", number::time)?);
        Some(Tile { label: label.clone(), value, note: Words::from(line.place()) })
    })
}

/// The longest interruption of any jitter test.
fn gap(cases: &Cases<'_>) -> Option<Tile> {
    let gaps =
        cases.of_kind(Kind::Jitter).filter_map(|line| line.figure("ts_max_ns", number::time));
    let spread = Spread::of(gaps)?;
    Some(Tile {
        label: "Longest interruption".to_owned(),
        value: Words::new().figure(spread.most),
        note: "of a thread that only reads the clock".into(),
    })
}

/// Messages lost, repeated or damaged, summed over all lines.
fn wrong(cases: &Cases<'_>) -> Option<Tile> {
    use Kind::{Baseline, Fanout, Group, Persist, Ping, Pipes, Rings, Run, Subscriber};
    let counted = [Run, Subscriber, Persist, Ping, Baseline, Fanout, Group, Pipes, Rings];
    let lines = cases.lines.iter().filter(|line| counted.contains(&line.kind));
    let lines: Vec<&Line> = lines.collect();
    let worst = lines.iter().max_by_key(|line| line.wrong())?;
    let sum = lines.iter().fold(0u64, |sum, line| sum.saturating_add(line.wrong()));
    let figure = Figure::new(sum as f64, number::count(sum), worst.id, "lost, summed over lines");
    Some(Tile {
        label: "Lost, repeated or damaged".to_owned(),
        value: Words::new().figure(figure),
        note: format!("in {}", plural(lines.len(), "line", "lines")).into(),
    })
}

fn of_repetitions(spread: &Spread) -> String {
    if spread.count > 1 { format!(", median of {}", spread.count) } else { String::new() }
}

/// Reasons to doubt the figures.
fn trust(cases: &Cases<'_>) -> Vec<Block> {
    if cases.lines.is_empty() {
        return Vec::new();
    }
    let doubtful: Vec<&Line> =
        cases.lines.iter().filter(|line| !line.doubts().is_empty()).collect();
    let mut against = general(cases);
    against.extend(alike(&doubtful));
    let of = plural(cases.lines.len(), "line", "lines");
    let title = match (doubtful.len(), against.is_empty()) {
        (0, true) => "Nothing speaks against these figures".to_owned(),
        (0, false) => "What to keep in mind".to_owned(),
        (1, _) => format!("Doubtful: 1 of {of} has doubts"),
        (count, _) => format!("Doubtful: {count} of {of} have doubts"),
    };
    let calm = against.is_empty();
    let all: Vec<Words> = doubtful.iter().map(|line| all_doubts(line)).collect();
    let mut blocks = vec![Block::Verdict { calm, title, words: against }];
    // The doubts of a single line are all listed above.
    if all.len() > 1 {
        let title = format!("The doubts of {}", plural(all.len(), "line", "lines"));
        blocks.push(Block::Fold { title, blocks: vec![Block::List(all)] });
    }
    blocks
}

fn all_doubts(line: &Line) -> Words {
    line.link().text(format!(": {}", line.doubts().join("; ")))
}

/// Doubts that differ in their numbers only, with the first line that has one.
struct Alike<'a> {
    shape: String,
    line: &'a Line,
    doubt: &'a str,
    count: usize,
}

/// A sentence without its numbers.
pub(super) fn shape(sentence: &str) -> String {
    sentence.replace(|c: char| c.is_ascii_digit() || ".+−".contains(c), "")
}

/// Gives each doubt once, with the number of lines that share it.
fn alike(doubtful: &[&Line]) -> Vec<Words> {
    let mut kinds: Vec<Alike<'_>> = Vec::new();
    for line in doubtful {
        let mut told: Vec<String> = Vec::new();
        for doubt in line.doubts() {
            let shape = shape(doubt);
            if told.contains(&shape) {
                continue;
            }
            told.push(shape.clone());
            match kinds.iter_mut().find(|known| known.shape == shape) {
                Some(known) => known.count += 1,
                None => kinds.push(Alike { shape, line, doubt, count: 1 }),
            }
        }
    }
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.count));
    let words = kinds.into_iter().map(|Alike { line, doubt, count, .. }| {
        let on = if count > 1 { format!("On {count} lines, such as ") } else { String::new() };
        Words::from(on).line(line.id, line.place()).text(format!(": {doubt}"))
    });
    words.collect()
}

/// Doubts about the machine, losses, and missing repetitions.
fn general(cases: &Cases<'_>) -> Vec<Words> {
    let mut found = Vec::new();
    for line in machines(cases.lines) {
        if let Some(hypervisor) = line.text("host.hypervisor") {
            found.push(Words::new().line(line.id, "The machine").text(format!(
                " is a virtual one ({hypervisor}): others may have its CPUs without being seen."
            )));
        }
        if let Some((load, cpus)) = line.real("host.load_average").zip(line.whole("host.cpus"))
            && load >= cpus as f64
        {
            let shown = number::Quantity { number: format!("{load:.1}"), unit: "" };
            let load = Figure::new(load, shown, line.id, "host.load_average");
            found.push(Words::from("The load was ").figure(load).text(format!(
                " when it started, on {}: something else was running.",
                plural(cpus as usize, "CPU", "CPUs")
            )));
        }
    }
    for line in cases.lines {
        let wrong = line.wrong();
        if wrong > 0 {
            let wrong = Figure::new(wrong as f64, number::count(wrong), line.id, "lost");
            found.push(
                line.link()
                    .text(": ")
                    .figure(wrong)
                    .text(" messages were lost, repeated or damaged."),
            );
        }
        if line.was_interrupted() {
            let words = line.link();
            found.push(words.text(": the sender was interrupted before the end."));
        }
    }
    found.extend(failed(cases));
    let runs = || cases.all().filter(|(_, group)| group.runs.len() == 1);
    if let Some((_, group)) = runs().next() {
        let cases = plural(runs().count(), "case has", "cases have");
        let words = Words::new().line(group.runs[0].id, cases);
        found.push(
            words.text(" one repetition only: nothing says how far apart two of them would be."),
        );
    }
    found
}

/// Repetitions that were left out, of experiments with other repetitions.
fn failed(cases: &Cases<'_>) -> Vec<Words> {
    let failed = cases.of_kind(Kind::Skipped).filter_map(|line| {
        let experiment = line.text("experiment").unwrap_or("an experiment");
        let why = line.text("why").unwrap_or("no reason is given");
        let words = line.link().text(format!(": left out of {experiment}: {why}."));
        let is_told = !cases.of(experiment).is_empty() || BETWEEN_THREADS.contains(&experiment);
        is_told.then_some(words)
    });
    failed.collect()
}
