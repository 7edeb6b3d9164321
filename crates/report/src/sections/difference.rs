//! Why two measurements of the same thing may differ: in what their lines are not the same.

use crate::cases::Repetition;
use crate::conditions::Conditions;
use crate::line::{Line, Record};
use crate::number::{self, plural};

/// Above this, medians do not agree.
pub(super) const AGREEMENT: f64 = 0.05;

/// What is not the same on `one` line and on the `other`, in words.
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

/// What the yardsticks say: whether the machine itself was faster or slower.
pub(super) fn yardsticks(one: &[Repetition<'_>], other: &[Repetition<'_>]) -> Vec<String> {
    let yardsticks: [(&str, Measure); 2] = [
        ("a cache line's way to the other CPU and back", |run| run.run.yardstick.as_ref()?.line_ns),
        ("a fixed loop", |run| run.run.yardstick.as_ref()?.loop_ns),
    ];
    let found = yardsticks.into_iter().filter_map(|(name, pick)| {
        let (before, after) = (middle(one, pick)?, middle(other, pick)?);
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

/// How many doubts there are on the lines of both.
pub(super) fn doubts(one: &[&Line], other: &[&Line]) -> Option<String> {
    let count = |lines: &[&Line]| lines.iter().filter(|line| !line.doubts().is_empty()).count();
    let (there, here) = (count(one), count(other));
    (there + here > 0).then(|| {
        let there = plural(there, "doubtful line", "doubtful lines");
        format!("{there} there, {here} here")
    })
}

/// One of the yardsticks.
type Measure = fn(&Repetition<'_>) -> Option<f64>;

fn middle(runs: &[Repetition<'_>], pick: Measure) -> Option<f64> {
    let mut found: Vec<f64> = runs.iter().filter_map(pick).collect();
    found.sort_by(f64::total_cmp);
    found.get(found.len().checked_sub(1)? / 2).copied()
}

/// What may make a difference, by name.
fn circumstances(line: &Line) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut add = |name: String, value: Option<String>| {
        found.extend(value.map(|value| (name, value)));
    };
    add("version".to_owned(), line.head.version.clone());
    if let Some(host) = &line.head.host {
        add("processor".to_owned(), host.cpu.clone());
        add("CPUs".to_owned(), host.cpus.map(|cpus| cpus.to_string()));
        add("kernel".to_owned(), host.kernel.clone());
        add("governor".to_owned(), host.governor.clone());
    }
    for (who, conditions) in conditions(line) {
        let name = |what: &str| format!("{who}{what}");
        add(name("transport"), conditions.transport.clone());
        add(name("waiting"), conditions.wait.clone());
        add(name("window"), conditions.window.clone());
        add(name("touch"), conditions.touch.clone());
        add(name("clock"), conditions.clock.clone());
        add(name("priority"), conditions.raise.clone());
        add(name("CPU"), conditions.ran_on().map(|cpu| cpu.to_string()));
    }
    if let Record::Jitter(jitter) = &line.record {
        add("clock".to_owned(), jitter.clock.clone());
        let cpu = jitter.cpus.as_ref().and_then(|cpus| cpus.ran_on);
        add("CPU".to_owned(), cpu.map(|cpu| cpu.to_string()));
    }
    found
}

fn conditions(line: &Line) -> Vec<(String, &Conditions)> {
    match &line.record {
        Record::Publisher(publisher) => vec![(String::new(), &publisher.conditions)],
        Record::Subscriber(subscriber) => vec![(String::new(), &subscriber.conditions)],
        Record::Run(run) => {
            let publisher = run.publisher.iter();
            let publisher =
                publisher.map(|publisher| ("publisher's ".to_owned(), &publisher.conditions));
            let subscribers = run.subscribers().iter().enumerate().map(|(at, subscriber)| {
                let who = if at == 0 { String::new() } else { format!(" {}", at + 1) };
                (format!("subscriber{who}'s "), &subscriber.conditions)
            });
            publisher.chain(subscribers).collect()
        }
        Record::Ping(ping) => with_receiver(&ping.conditions, &ping.receiver),
        Record::Floor(floor) => with_receiver(&floor.conditions, &floor.receiver),
        Record::Pong(pong) => vec![(String::new(), &pong.conditions)],
        _ => Vec::new(),
    }
}

fn with_receiver<'a>(
    conditions: &'a Conditions,
    receiver: &'a Option<Conditions>,
) -> Vec<(String, &'a Conditions)> {
    let receiver = receiver.iter().map(|conditions| ("receiver's ".to_owned(), conditions));
    std::iter::once((String::new(), conditions)).chain(receiver).collect()
}
