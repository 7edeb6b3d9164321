//! Queues between threads, lanecast's among them: all are cases of one program of this workspace,
//! which knows how each is used at its best.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use super::{Repetition, Side};
use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::options::Peer;
use crate::process::Program;
use crate::row::Row;

const PROGRAM: &str = "rivals-queues";
/// Peer to which lanecast's own cases belong.
const OWN: &str = "lanecast";
/// Version of a part of the compiler or the kernel.
const NO_VERSION: &str = "-";

/// One case of the program.
#[derive(Debug)]
pub struct Queue {
    program: PathBuf,
    peer: String,
    name: String,
    version: String,
    rows: Vec<Row>,
}

/// All cases that were built.
///
/// # Errors
///
/// When the program has not been built or does not run.
pub fn all(folder: &Path) -> Result<Vec<Queue>> {
    let program = folder.join(PROGRAM);
    ensure!(program.is_file(), "not built: no {PROGRAM}");
    let output = Command::new(&program).arg("list").output()?;
    ensure!(output.status.success(), "{PROGRAM} does not run");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| read(&program, line)).collect()
}

/// Reads a line of the list: peer, side, version, rows.
fn read(program: &Path, line: &str) -> Result<Queue> {
    let mut words = line.split_whitespace().map(str::to_owned);
    let mut word = || words.next().with_context(|| format!("{PROGRAM} lists \"{line}\""));
    let (peer, name, version) = (word()?, word()?, word()?);
    let rows = words.map(|row| {
        Row::from_str(&row, false).map_err(|error| anyhow::anyhow!("{PROGRAM} lists {error}"))
    });
    Ok(Queue {
        program: program.to_owned(),
        peer,
        name,
        version,
        rows: rows.collect::<Result<_>>()?,
    })
}

impl Queue {
    /// Whether it is lanecast's own.
    pub fn is_own(&self) -> bool {
        self.peer == OWN
    }

    /// Whether it belongs to a peer of the command line.
    pub fn is_of(&self, peer: Peer) -> bool {
        peer.name() == self.peer
    }
}

impl Side for Queue {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> String {
        if self.version == NO_VERSION { String::new() } else { self.version.clone() }
    }

    fn takes(&self, cell: &Cell) -> bool {
        self.rows.contains(&cell.row)
    }

    fn likely_rate(&self, cell: &Cell) -> f64 {
        super::slow_queue_rate(cell)
    }

    fn measure(&self, repetition: &Repetition) -> Result<Measurement> {
        let Cell { row, batch, producers, subscribers, .. } = repetition.cell;
        let text = Program::new(PROGRAM, &self.program)
            .args(["run", "--side", &self.name, "--row", &row.to_string()])
            .args([format!("--batch={batch}"), format!("--messages={}", repetition.messages)])
            .args([format!("--producers={producers}"), format!("--consumers={subscribers}")])
            .args([format!("--producer-cpu={}", repetition.cpus.publisher)])
            .args([format!("--consumer-cpu={}", repetition.cpus.subscriber)])
            .start()?
            .wait(repetition.deadline())?;
        Measurement::joined(vec![Measurement::from_line(&text)?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_tells_who_takes_part_in_what() {
        let path = Path::new("queues");
        let queue = read(path, "crossbeam segqueue 0.3.14 pop pingpong-park").expect("a line");
        assert_eq!((queue.name(), queue.version()), ("segqueue", "0.3.14".to_owned()));
        assert!(queue.is_of(Peer::Crossbeam) && !queue.is_of(Peer::Std) && !queue.is_own());
        assert!(queue.takes(&Cell::alone(Row::PingpongPark)));
        assert!(!queue.takes(&Cell::alone(Row::Queue)));
        assert!(read(path, "std std").is_err());
        assert!(read(path, "std std - no-such-row").is_err());
    }
}
