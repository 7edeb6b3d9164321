//! What a report says, section by section. Each is left out where no line speaks of it.

mod batches;
mod cells;
mod chart;
mod comparison;
mod difference;
mod doctor;
mod fanout;
mod floor;
mod histogram;
mod jitter;
mod latency;
mod machine;
mod pipes;
mod rate;
mod rings;
mod rivals;
mod round_trips;
mod single;
mod summary;

use crate::cases::Cases;
use crate::document::{Document, Section};
use crate::number;
use crate::read::Lines;

/// The experiments of a series that have sections of their own.
const EXPERIMENTS: [&str; 9] =
    ["size", "workload", "slow", "latency", "generic", "receivers", "numa", "pipes", "rings"];

/// The report on `lines`.
pub(crate) fn document(lines: &Lines) -> Document {
    let cases = Cases::new(&lines.lines);
    let sections: [fn(&Cases<'_>) -> Option<Section>; 20] = [
        machine::section,
        doctor::section,
        rate::size,
        rate::workload,
        rate::slow,
        latency::section,
        rate::generic,
        rate::receivers,
        rate::numa,
        rate::others,
        round_trips::section,
        floor::section,
        pipes::section,
        rings::section,
        fanout::section,
        single::section,
        single::logs,
        jitter::section,
        rivals::section,
        comparison::section,
    ];
    let found = sections.into_iter().filter_map(|section| section(&cases));
    let sections = std::iter::once(summary::section(&cases, lines.unknown)).chain(found).collect();
    Document { title: "Measurements".to_owned(), subtitle: subtitle(&cases), sections }
}

/// Who measured, on what, when.
fn subtitle(cases: &Cases<'_>) -> String {
    let heads = || cases.lines.iter().map(|line| &line.head);
    let version = heads().find_map(|head| head.version.as_deref());
    let cpu = heads().find_map(|head| head.host.as_ref()?.cpu.as_deref());
    let moment = heads().filter_map(|head| head.started_unix_ns).min().map(number::moment);
    let parts = [
        version.map(|version| format!("lanecast {version}")),
        cpu.map(str::to_owned),
        moment.map(|moment| format!("{moment} UTC")),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
