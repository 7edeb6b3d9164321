//! Latency by message size and rate.

use super::chart::{Curve, by_percentile};
use super::{histogram, rate};
use crate::cases::{Cases, Group, TIMES, slowest};
use crate::document::{Block, Chart, Origin, Section, Table, Words, cell};
use crate::number;
use crate::since::Since;
use crate::spread::words;

pub(super) fn section(cases: &Cases<'_>) -> Option<Section> {
    let groups = cases.of("latency");
    if groups.is_empty() {
        return rate::skipped(cases, "latency", "Latency");
    }
    let intro = "One way, at a fixed rate. From the actual time of sending is what the document's \
                 tools show. From the intended time is what a reader waits: there, a message that \
                 was sent late because something stood still counts as late.";
    let mut blocks = vec![
        Block::Words(intro.into()),
        Block::Table(table(cases, groups)),
        Block::Charts(charts(cases, groups)),
    ];
    blocks.extend(histograms(cases, groups));
    Some(Section::new("latency", "Latency", blocks))
}

fn table(cases: &Cases<'_>, groups: &[Group<'_>]) -> Table {
    let mut table =
        Table::new("Latency by message size and rate", &[">size", ">asked", "file", "from"]);
    TIMES.iter().for_each(|(name, _)| table.column(&format!(">{name}")));
    table.column(">doc. min");
    table.column(">doc. mean");
    for group in groups {
        for since in Since::BOTH {
            let set = cases.set_name(group.set);
            let mut row = vec![
                rate::bytes(group),
                Words::from(number::asked(group.case.rate_asked.unwrap_or(0))),
                if set.is_empty() { Words::new() } else { set.into() },
                since.name().into(),
            ];
            let times = TIMES.iter().map(|(_, name)| words(group.time(since, name)));
            row.extend(times);
            if row[4..].iter().all(Words::is_empty) {
                continue;
            }
            // The document's tools measure from the actual time only.
            if since == Since::Actual {
                row.push(cell(group.reference("min_ns", number::time)));
                row.push(cell(group.reference("mean_ns", number::time)));
            } else {
                row.extend([Words::new(), Words::new()]);
            }
            table.rows.push(row);
        }
    }
    table.without_empty_columns()
}

/// Charts by percentile for each size and start time, with a curve for each rate.
fn charts(cases: &Cases<'_>, groups: &[Group<'_>]) -> Vec<Chart> {
    let mut sizes: Vec<_> = groups.iter().map(|group| (group.case.size, group.set)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut charts = Vec::new();
    for (size, set) in sizes {
        for since in Since::BOTH {
            let shown = groups.iter().filter(|group| group.case.size == size && group.set == set);
            let curves: Vec<Curve<'_>> = shown
                .enumerate()
                .filter_map(|(at, group)| {
                    let run = group.typical(since)?;
                    let name = number::asked(group.case.rate_asked.unwrap_or(0));
                    Curve::of(name, Origin::Own(at), run, &slowest(run, since)?)
                })
                .collect();
            let title = format!(
                "{} B, from the {} time {}",
                size.unwrap_or(0),
                since.name(),
                cases.set_name(set)
            );
            charts.extend(by_percentile(title.trim_end().to_owned(), &curves));
        }
    }
    charts
}

/// The histograms of all cases, folded away.
fn histograms(cases: &Cases<'_>, groups: &[Group<'_>]) -> Option<Block> {
    let found = groups.iter().filter_map(|group| {
        let run = group.typical(Since::Intended)?;
        let title = format!(
            "{} B at {}, from the intended time {}",
            group.case.size.unwrap_or(0),
            number::asked(group.case.rate_asked.unwrap_or(0)),
            cases.set_name(group.set)
        );
        histogram::of(title.trim_end().to_owned(), run, &slowest(run, Since::Intended)?)
    });
    let blocks: Vec<Block> = found.collect();
    let title = format!(
        "{}, evenly spaced and logarithmic",
        number::plural(blocks.len(), "histogram", "histograms")
    );
    (!blocks.is_empty()).then_some(Block::Fold { title, blocks })
}
