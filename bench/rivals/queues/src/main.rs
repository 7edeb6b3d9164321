//! Queues between threads of one process: each library as a case of this program, which sends a
//! load through it, checks every message and prints one result line.

mod cases;
mod idle;
mod load;
mod pair;
mod stream;
mod tally;

use anyhow::{Context, Result};
use clap::{Args, Parser, Subcommand, ValueEnum};

use cases::{Built, CASES};
use load::Load;

/// Measures one queue between threads
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    part: Part,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// Lists what was built: peer, side, version, and the rows it takes part in
    List,
    /// Measures one run
    Run(Run),
}

#[derive(Args, Debug)]
struct Run {
    /// Side to measure, as `list` names it
    #[arg(long)]
    side: String,
    #[command(flatten)]
    load: Load,
}

fn main() -> Result<()> {
    match Cli::parse().part {
        Part::List => list(),
        Part::Run(run) => println!("{}", run.measure()?),
    }
    Ok(())
}

fn list() {
    for case in CASES.iter().flat_map(|cases| cases.iter()) {
        let values = case.rows.iter().filter_map(ValueEnum::to_possible_value);
        let rows: Vec<String> = values.map(|value| value.get_name().to_owned()).collect();
        println!("{} {} {} {}", case.peer, case.side, case.version(), rows.join(" "));
    }
}

impl Run {
    fn measure(&self) -> Result<rivals_kit::Line> {
        self.load.check()?;
        let mut cases = CASES.iter().flat_map(|cases| cases.iter());
        let case = cases
            .find(|case| case.side == self.side && case.rows.contains(&self.load.row))
            .with_context(|| format!("no {} in this row; see `list`", self.side))?;
        let (built, way) = (case.build)(&self.load)?;
        let mut line = match built {
            Built::Stream(stream) => stream::run(stream, &self.load)?,
            Built::Pair(pair) => pair::run(pair, &self.load)?,
        };
        line.add("way", way);
        Ok(line)
    }
}
