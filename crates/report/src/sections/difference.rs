//! Reasons why two measurements of the same case differ.

use crate::line::{Kind, Line};
use crate::number::{self, plural};
use serde_json::Value;

/// The largest relative difference of medians that agree.
pub(super) const AGREEMENT: f64 = 0.05;

/// Conditions that differ between two lines, in words.
pub(super) fn reasons(one: &Line, other: &Line) -> Vec<String> {
    let (one, other) = (circumstances(one), circumstances(other));
    let mut reasons = Vec::new();
    for (name, value) in &one {
        let there = other.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        if let Some(there) = there.filter(|there| *there != value) {
            reasons.push(format!("{name}: {value} there, {there} here"));
        }
    }
    reasons
}

/// Changes of the baseline: whether the machine itself was faster or slower.
pub(super) fn baselines(one: &[&Line], other: &[&Line]) -> Vec<String> {
    let members = [
        ("a cache line's way to the other CPU and back", "baseline.line_ns"),
        ("a fixed loop", "baseline.loop_ns"),
    ];
    let found = members.into_iter().filter_map(|(name, path)| {
        let (before, after) = (median(one, path)?, median(other, path)?);
        let change = after / before - 1.0;
        (change.is_finite() && change.abs() > AGREEMENT).then(|| {
            format!(
                "the machine was not the same: {name} took {} there, {} here ({})",
                number::time(before).text(),
                number::time(after).text(),
                number::change(change).text()
            )
        })
    });
    found.collect()
}

/// The number of doubtful lines on both sides; none if there are none.
pub(super) fn doubts(one: &[&Line], other: &[&Line]) -> Option<String> {
    let count = |lines: &[&Line]| lines.iter().filter(|line| !line.doubts().is_empty()).count();
    let (there, here) = (count(one), count(other));
    (there + here > 0).then(|| {
        let there = plural(there, "doubtful line", "doubtful lines");
        format!("{there} there, {here} here")
    })
}

fn median(runs: &[&Line], path: &str) -> Option<f64> {
    let mut found: Vec<f64> = runs.iter().filter_map(|run| run.real(path)).collect();
    found.sort_by(f64::total_cmp);
    found.get(found.len().checked_sub(1)? / 2).copied()
}

/// Conditions of the whole line that may make a difference.
const OF_LINE: [(&str, &str); 5] = [
    ("version", "version"),
    ("processor", "host.cpu"),
    ("CPUs", "host.cpus"),
    ("kernel", "host.kernel"),
    ("governor", "host.governor"),
];

/// Conditions of each thread that may make a difference.
const OF_THREAD: [(&str, &str); 7] = [
    ("transport", "transport"),
    ("waiting", "wait"),
    ("window", "window"),
    ("touch", "touch"),
    ("clock", "clock"),
    ("priority", "raise"),
    ("CPU", "cpus.ran_on"),
];

/// All known conditions of `line`, by name.
fn circumstances(line: &Line) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |name: String, path: &str| {
        let value = line.at(path).map(|value| match value {
            Value::String(text) => text.clone(),
            number => number.to_string(),
        });
        found.extend(value.map(|value| (name, value)));
    };
    OF_LINE.iter().for_each(|(name, path)| add((*name).to_owned(), path));
    let members: &[(&str, &str)] = match line.kind {
        Kind::Pipes | Kind::Rings => &[],
        // A jitter test's priority is no condition of what it finds.
        Kind::Jitter => &[("clock", "clock"), ("CPU", "cpus.ran_on")],
        _ => &OF_THREAD,
    };
    for (whose, prefix) in line.parties() {
        members.iter().for_each(|(name, path)| {
            add(format!("{whose}{name}"), &format!("{prefix}{path}"));
        });
    }
    found
}
