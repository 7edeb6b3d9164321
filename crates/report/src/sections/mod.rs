//! The sections of a report. A section without lines is left out.

mod baseline;
mod batches;
mod chart;
mod comparison;
mod difference;
mod doctor;
mod fanout;
mod group;
mod histogram;
mod jitter;
mod latency;
mod live_path;
mod machine;
mod persist;
mod persist_cases;
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

/// The report on `lines`.
pub(crate) fn document(lines: &Lines) -> Document {
    let cases = Cases::new(&lines.lines);
    let sections: [fn(&Cases<'_>) -> Option<Section>; 22] = [
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
        persist::section,
        baseline::section,
        pipes::section,
        rings::section,
        fanout::section,
        group::section,
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

/// Version, processor and time of the measurements.
fn subtitle(cases: &Cases<'_>) -> String {
    let first = |path| cases.lines.iter().find_map(|line| line.text(path));
    let moments = cases.lines.iter().filter_map(|line| line.whole("started_unix_ns"));
    let parts = [
        first("version").map(|version| format!("lanecast {version}")),
        first("host.cpu").map(str::to_owned),
        moments.min().map(|moment| format!("{} UTC", number::moment(moment))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
