//! The machine itself as a side: what no transport can pass.

use anyhow::{Context, Result, bail};

use rivals_kit::Line;

use super::{Repetition, Side};
use crate::cell::Cell;
use crate::measurement::{Latency, Measurement, spread};
use crate::process::Program;
use crate::row::Row;

/// The machine: cache line, copy, wake-up.
#[derive(Debug)]
pub struct Bare;

impl Side for Bare {
    fn name(&self) -> &str {
        "bare"
    }

    fn version(&self) -> String {
        "this machine".into()
    }

    fn takes(&self, cell: &Cell) -> bool {
        experiment(cell).is_some()
    }

    fn likely_rate(&self, _cell: &Cell) -> f64 {
        1.0
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let cell = &repetition.cell;
        let Some(experiment) = experiment(cell) else { bail!("nothing bare to compare with") };
        let own = std::env::current_exe().context("cannot find this program's own file")?;
        let measured = repetition.time(1.0);
        let text = Program::new("the bare experiment", &own)
            .args(["bare"])
            .args(experiment)
            .args(["--from-cpu", &repetition.cpus.publisher.to_string()])
            .args(["--to-cpu", &repetition.cpus.subscriber.to_string()])
            .args(["--rate", &cell.rate.max(1).to_string()])
            .args(["--duration-ms", &measured.as_millis().to_string()])
            .start()?
            .wait(repetition.deadline())?;
        read(&Line::parse(&text), cell)
    }
}

/// The experiment that bounds a cell.
fn experiment(cell: &Cell) -> Option<&'static [&'static str]> {
    match cell.row {
        Row::Wake => Some(&["wake"]),
        Row::Touch | Row::Queue | Row::Pop | Row::Batch | Row::Pipe => Some(&["copy"]),
        Row::Bare | Row::Latency => Some(&["line"]),
        Row::Pingpong => Some(&["rounds"]),
        Row::PingpongPark => Some(&["rounds", "--asleep"]),
        Row::Rate | Row::Fanout | Row::Multicast | Row::Diamond | Row::Mpmc => None,
        _ => None,
    }
}

/// Description of the experiment beside queues between threads.
fn way(cell: &Cell) -> &'static str {
    match cell.row {
        Row::Queue | Row::Pop | Row::Batch | Row::Pipe => "copy bandwidth as messages",
        Row::Pingpong => "one cache line",
        Row::PingpongPark => "futex",
        _ => "",
    }
}

/// A bandwidth becomes the rate of messages that would need all of it.
fn read(line: &Line, cell: &Cell) -> Result<Measurement> {
    let rate = match line.number("bytes_per_s") {
        Some(bytes_per_s) => bytes_per_s / cell.size as f64,
        None => line.number("rate").context("no rate")?,
    };
    let latency = match line.get("p50_ns") {
        Some(_) => {
            let actual = spread(line, "")?;
            Some(Latency { actual, intended: actual })
        }
        None => None,
    };
    Ok(Measurement {
        rate,
        received: line.number("received").unwrap_or_default() as u64,
        lost: 0,
        damaged: 0,
        lost_in_warmup: 0,
        latency,
        clock: line.get("clock").unwrap_or_default().to_owned(),
        clock_cost_ns: line.number("clock_cost_ns").unwrap_or_default(),
        way: way(cell).to_owned(),
    })
}
