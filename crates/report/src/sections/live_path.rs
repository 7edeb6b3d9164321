//! Latency of the live path at a fixed rate, with a store beside it and without.

use super::chart::{Curve, by_percentile};
use super::persist_cases::{Group, spread};
use crate::cases::TIMES;
use crate::document::{Block, Chart, Origin, Table, Words};
use crate::number;
use crate::since::Since;
use crate::spread::words;

pub(super) fn blocks(groups: &[Group<'_>], several: bool) -> Vec<Block> {
    if groups.is_empty() {
        return Vec::new();
    }
    let intro = "The live path: messages on a schedule, from publisher to subscriber, without a \
                 store and with one that keeps them beside. The two tests of a repetition follow \
                 each other, which first by turns, with the same CPUs, rate and length; messages \
                 are written whole. From the intended time of sending, a message that was sent \
                 late because something else had the CPU counts as late. A store without a CPU of \
                 its own shares those of the two.";
    let mut blocks = vec![Block::Words(intro.into())];
    let tables = [times(groups, several), ratios(groups, several), conditions(groups, several)];
    blocks.extend(tables.into_iter().map(Block::Table));
    blocks.push(Block::Charts(chart(groups, several).into_iter().collect()));
    blocks
}

/// The name of a group's test, and of its file if there are several.
fn name((case, file): (&str, &str), several: bool) -> String {
    if several { format!("{case}, {file}") } else { case.to_owned() }
}

fn times(groups: &[Group<'_>], several: bool) -> Table {
    let columns = ["test", ">size", ">asked"];
    let mut table = Table::new("Latency one way, from the intended time of sending", &columns);
    TIMES.iter().for_each(|(name, _)| table.column(&format!(">{name}")));
    for (key, lines) in groups {
        let path = Since::Intended.path("");
        let first = lines[0];
        let mut row = vec![name(*key, several).into(), first.size("size"), first.asked()];
        let member = |(_, member): &(&str, &str)| {
            words(spread(lines, &format!("{path}.{member}"), number::time))
        };
        row.extend(TIMES.iter().map(member));
        table.rows.push(row);
    }
    table
}

/// Ratios to the test without a store of the same repetition, with their range.
fn ratios(groups: &[Group<'_>], several: bool) -> Table {
    let columns = ["test", ">p50 to none", ">asked", ">p99 to none", ">asked", ">repetitions"];
    let mut table = Table::new("To the live path without a store", &columns);
    for (key, lines) in groups {
        let first = lines[0];
        let ratio = |path| words(spread(lines, path, number::ratio));
        table.rows.push(vec![
            name(*key, several).into(),
            ratio("p50_of_none"),
            first.cell("asked_p50_of_none", number::ratio),
            ratio("p99_of_none"),
            first.cell("asked_p99_of_none", number::ratio),
            number::count(lines.len() as u64).text().into(),
        ]);
    }
    table
}

/// Counts and conditions of the tests.
fn conditions(groups: &[Group<'_>], several: bool) -> Table {
    let columns = [
        "test",
        ">samples",
        ">lost",
        "wait",
        "clock",
        ">publisher's CPU",
        ">subscriber's CPU",
        ">store's CPU",
    ];
    let mut table = Table::new("Under these conditions", &columns);
    for (key, lines) in groups {
        let first = lines[0];
        let counted = |path| words(spread(lines, path, number::whole));
        let store_cpu = match (first.whole("stores"), first.whole("store_cpu")) {
            (Some(0), _) => Words::new(),
            (_, None) => "any".into(),
            _ => first.count("store_cpu"),
        };
        table.rows.push(vec![
            name(*key, several).into(),
            counted("latency.intended.samples"),
            counted("lost"),
            first.word("wait"),
            first.word("clock"),
            first.count("cpus.ran_on"),
            first.count("receiver.cpus.ran_on"),
            store_cpu,
        ]);
    }
    table
}

fn chart(groups: &[Group<'_>], several: bool) -> Option<Chart> {
    let curves = groups.iter().enumerate().filter_map(|(at, group)| curve(group, at, several));
    let curves: Vec<Curve<'_>> = curves.collect();
    by_percentile("Live path by percentile, from the intended time".to_owned(), &curves)
}

/// The curve of a test: of its repetition with the median p50.
fn curve<'a>((key, lines): &Group<'a>, at: usize, several: bool) -> Option<Curve<'a>> {
    let path = Since::Intended.path("");
    let median = spread(lines, &format!("{path}.p50_ns"), number::time)?.median;
    let line = *lines.iter().find(|line| line.id == median.line)?;
    Curve::of(name(*key, several), Origin::Own(at), line, &path)
}
