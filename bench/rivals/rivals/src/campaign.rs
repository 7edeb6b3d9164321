//! The run as a whole: every cell, every pair, every side in turn.
//!
//! ```text
//!   cell 1: lanecast aeron iceoryx2 bare | lanecast aeron iceoryx2 bare | ...   (pairs)
//!   cell 2: ...
//! ```
//!
//! Neighbours in time share the state of the machine; the ratio within a pair means something
//! where two figures from different minutes would not.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::cell::Cell;
use crate::disturbance::{Disturbance, Watch};
use crate::interrupt;
use crate::measurement::Measurement;
use crate::options::Options;
use crate::row::Row;
use crate::sides::{Cpus, Repetition, Side, Standing};

/// A first repetition shorter than this share of the wanted time is repeated.
const SHORTEST_SHARE: f64 = 0.5;
const MOST_MESSAGES: f64 = 2e9;
/// Fewer messages than this at a rate have no median.
const LEAST_PACED: f64 = 10.0;

/// Result of one repetition.
#[derive(Clone, Debug)]
pub struct Run {
    /// When it began, in nanoseconds since 1970.
    pub started_unix_ns: u64,
    /// Disturbances during it.
    pub disturbance: Disturbance,
    /// The figures, or the reason why there are none.
    pub result: Result<Measurement, String>,
}

/// All repetitions of one side in one cell, in the order of the pairs.
#[derive(Clone, Debug)]
pub struct SideRuns {
    /// The side.
    pub side: String,
    /// Version of the side.
    pub version: String,
    /// With which others it is compared, between hosts.
    pub standing: Standing,
    /// Repetitions of the side.
    pub runs: Vec<Run>,
}

/// All that was measured in one cell.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The cell.
    pub cell: Cell,
    /// The sides that took part, lanecast first.
    pub sides: Vec<SideRuns>,
}

impl Run {
    /// The figures, if there are any.
    pub fn measurement(&self) -> Option<&Measurement> {
        self.result.as_ref().ok()
    }
}

/// Measures all cells of one row.
pub fn run_row(row: Row, sides: &[Box<dyn Side>], options: &Options) -> Vec<Outcome> {
    let takes_part = |side: &&dyn Side, cell: &Cell| match row {
        Row::Bare => side.name() == "bare",
        _ => side.takes(cell),
    };
    let measured = Cell::of_row(row, options).into_iter().map(|cell| {
        let present = sides.iter().map(AsRef::as_ref);
        let present: Vec<&dyn Side> = present.filter(|side| takes_part(side, &cell)).collect();
        run_cell(cell, &present, options)
    });
    measured.filter(|outcome| !outcome.sides.is_empty()).collect()
}

fn run_cell(cell: Cell, sides: &[&dyn Side], options: &Options) -> Outcome {
    let empty = |side: &&dyn Side| SideRuns {
        side: side.name().to_owned(),
        version: side.version(),
        standing: side.standing(),
        runs: vec![],
    };
    let mut all: Vec<SideRuns> = sides.iter().map(empty).collect();
    for pair in 1..=options.pairs() {
        for (side, so_far) in sides.iter().zip(&mut all) {
            if interrupt::asked() {
                break;
            }
            let mut run = run_once(cell, *side, &so_far.runs, options);
            if so_far.runs.is_empty() && was_too_short(&run, &cell, options) {
                run = run_once(cell, *side, &[run], options);
            }
            eprintln!(
                "{} {pair}/{} {}: {}",
                title(&cell),
                options.pairs(),
                side.name(),
                brief(&run)
            );
            so_far.runs.push(run);
        }
    }
    Outcome { cell, sides: all }
}

fn run_once(cell: Cell, side: &dyn Side, before: &[Run], options: &Options) -> Run {
    let last = before.iter().rev().find_map(Run::measurement);
    let flat_out = last.map_or_else(|| side.likely_rate(&cell), Measurement::lasting_rate);
    // A side of which everything was lost has no rate, and what has none would never end.
    let flat_out = if flat_out.is_normal() && flat_out > 0.0 {
        flat_out.max(1.0)
    } else {
        side.likely_rate(&cell)
    };
    let rate = if cell.rate > 0 { cell.rate as f64 } else { flat_out };
    let least = if cell.rate > 0 { LEAST_PACED } else { 1.0 };
    let messages = (rate * options.seconds()).clamp(least, MOST_MESSAGES);
    let seconds = (messages / rate).max(options.seconds());
    let repetition =
        Repetition { cell, messages: messages as u64, seconds, cpus: cpus_of(&cell, options) };
    let (started_unix_ns, watch) = (unix_ns(), Watch::start());
    let result = side.measure(&repetition).map_err(|error| format!("{error:#}"));
    Run { started_unix_ns, disturbance: watch.stop(), result }
}

fn cpus_of(cell: &Cell, options: &Options) -> Cpus {
    let publisher = options.publisher_cpu;
    Cpus { publisher, subscriber: if cell.one_cpu { publisher } else { options.subscriber_cpu } }
}

/// Nanoseconds since 1970.
pub fn unix_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

fn was_too_short(run: &Run, cell: &Cell, options: &Options) -> bool {
    let Some(measurement) = run.measurement() else { return false };
    let seconds = measurement.received as f64 / measurement.rate;
    cell.rate == 0 && measurement.received > 0 && seconds < options.seconds() * SHORTEST_SHARE
}

/// Title of a cell.
pub fn title(cell: &Cell) -> String {
    let rate = if cell.rate > 0 { format!(" {}/s", cell.rate) } else { String::new() };
    let many =
        if cell.subscribers > 1 { format!(" 1:{}", cell.subscribers) } else { String::new() };
    if !cell.row.is_between_threads() {
        return format!("{} {} B{rate}{many}", cell.row_name(), cell.size);
    }
    let (place, Cell { producers, subscribers, batch, .. }) = (cell.place(), cell);
    format!("{} {producers}P-{subscribers}C batch {batch}, {place}", cell.row)
}

fn brief(run: &Run) -> String {
    match &run.result {
        Err(reason) => format!("failed: {reason}"),
        Ok(measurement) => {
            let p50 = measurement.latency.map(|latency| latency.actual.p50_ns);
            let p50 = p50.map(|p50| format!(", p50 {p50:.0} ns")).unwrap_or_default();
            format!("{:.3} M/s{p50}, lost {}", measurement.rate / 1e6, measurement.lost)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Result, bail};
    use clap::Parser;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        options: Options,
    }

    /// Writes down in which order it was asked.
    struct Scripted(&'static str, Rc<RefCell<Vec<&'static str>>>, bool);

    impl Side for Scripted {
        fn name(&self) -> &str {
            self.0
        }

        fn version(&self) -> String {
            "1".into()
        }

        fn takes(&self, _cell: &Cell) -> bool {
            true
        }

        fn likely_rate(&self, _cell: &Cell) -> f64 {
            1000.0
        }

        fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
            self.1.borrow_mut().push(self.0);
            if self.2 {
                bail!("no room");
            }
            Ok(Measurement {
                rate: 1000.0,
                received: repetition.messages,
                lost: 0,
                damaged: 0,
                lost_in_warmup: 0,
                latency: None,
                clock: String::new(),
                clock_cost_ns: 0.0,
                way: String::new(),
            })
        }
    }

    /// Tells a rate, and how many messages it counted.
    struct Told(f64, u64);

    impl Side for Told {
        fn name(&self) -> &str {
            "told"
        }

        fn version(&self) -> String {
            "1".into()
        }

        fn takes(&self, _cell: &Cell) -> bool {
            true
        }

        fn likely_rate(&self, _cell: &Cell) -> f64 {
            1000.0
        }

        fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
            assert!(repetition.seconds.is_finite() && repetition.messages > 0, "{repetition:?}");
            repetition.deadline();
            let Self(rate, received) = *self;
            Ok(Measurement {
                rate,
                received,
                lost: 0,
                damaged: 0,
                lost_in_warmup: 0,
                latency: None,
                clock: String::new(),
                clock_cost_ns: 0.0,
                way: String::new(),
            })
        }
    }

    #[test]
    fn whatever_a_side_tells_has_a_next_repetition() {
        let words = ["rivals", "--pairs", "3", "--rows", "queue"];
        let options = Cli::parse_from(words).options;
        // A copy tells bandwidth as a rate, and counts nothing: 3 GB/s are 375 million words.
        for rate in [3.75e8, 1e300, 1e-300, 0.0, f64::NAN, f64::INFINITY, -1.0] {
            for received in [0, 1] {
                let sides: Vec<Box<dyn Side>> = vec![Box::new(Told(rate, received))];
                let outcomes = run_row(Row::Queue, &sides, &options);
                assert_eq!(outcomes[0].sides[0].runs.len(), 3, "{rate}, {received}");
            }
        }
    }

    #[test]
    fn sides_take_turns_and_failures_stay_in_their_place() {
        let order = Rc::new(RefCell::new(Vec::new()));
        let sides: Vec<Box<dyn Side>> = vec![
            Box::new(Scripted("a", order.clone(), false)),
            Box::new(Scripted("b", order.clone(), true)),
        ];
        let words = ["rivals", "--sizes", "64", "--pairs", "3", "--seconds", "1"];
        let options = Cli::parse_from(words).options;
        let outcomes = run_row(Row::Rate, &sides, &options);
        assert_eq!(*order.borrow(), ["a", "b", "a", "b", "a", "b"]);
        assert_eq!(outcomes.len(), 1);
        assert!(outcomes[0].sides[0].runs.iter().all(|run| run.measurement().is_some()));
        assert!(outcomes[0].sides[1].runs.iter().all(|run| run.measurement().is_none()));
    }
}
