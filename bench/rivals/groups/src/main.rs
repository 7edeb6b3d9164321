//! Groups side by side: lanecast, JGroups and Corosync, a member in each network namespace.
//!
//! ```text
//!   rows -> cases, taking turns -> run: a network, a member on each host -> outcome -> report
//! ```
#![forbid(unsafe_code)]

mod clock;
mod member;
mod message;
mod outcome;
mod reception;
mod report;
mod rows;
mod run;
mod side;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use rivals_kit::placement;
use serde_json::json;

use member::MemberArgs;
use outcome::Outcome;
use rows::{Row, Table, Wanted};
use side::{Case, Peer, Programs, Side};

/// Messages of the first repetition of `lanecast perf group`.
const FIRST_MESSAGES: u64 = 100_000;

/// lanecast's groups beside JGroups and Corosync, in network namespaces.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    part: Option<Part>,

    /// As `run.sh` has it; says nothing here
    #[arg(long, hide = true)]
    groups: bool,

    /// Rows
    #[arg(long, value_enum, value_delimiter = ',')]
    #[arg(default_value = "rate,order,latency,loss,pingpong,kill,hang")]
    rows: Vec<Row>,

    /// Sides
    #[arg(long, value_enum, value_delimiter = ',', default_value = "lanecast,jgroups,corosync")]
    peers: Vec<Peer>,

    /// Numbers of members, for rate and order
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    members: Vec<usize>,

    /// Bytes of a message, for rate
    #[arg(long, value_delimiter = ',', default_value = "1000,2500,5000")]
    sizes: Vec<usize>,

    /// Per cent of packets that every member loses on arrival
    #[arg(long, value_delimiter = ',', default_value = "1,5")]
    losses: Vec<u32>,

    /// Repetitions, interleaved
    #[arg(long, default_value_t = 5)]
    pairs: usize,

    /// Time in which members send; JGroups twice that
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,

    /// Round trips of one repetition
    #[arg(long, default_value_t = 20_000)]
    rounds: u64,

    /// CPUs of the members; empty: nothing is pinned
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    cpus: Vec<usize>,

    /// All members on all these CPUs; otherwise each on one of them, in turn
    #[arg(long)]
    share_cpus: bool,

    /// Show all lines of all members
    #[arg(long)]
    verbose: bool,

    /// One short repetition of lanecast's side: does it work at all?
    #[arg(long)]
    smoke: bool,

    /// A line of JSON for each repetition
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The program lanecast
    #[arg(long)]
    lanecast: Option<PathBuf>,

    /// Folder of the Java classes
    #[arg(long)]
    java: Option<PathBuf>,

    /// Script of Corosync's hosts
    #[arg(long)]
    corosync: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Part {
    /// One member of lanecast
    #[command(hide = true)]
    Member(MemberArgs),
    /// Becomes another program, in a raised session of its own
    #[command(hide = true)]
    Raise {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        command: Vec<OsString>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    rivals_kit::ending(match arguments.part {
        Some(Part::Member(member)) => member.run().map(|()| ExitCode::SUCCESS),
        Some(Part::Raise { command }) => raise(&command).map(|()| ExitCode::SUCCESS),
        None => arguments.run(),
    })
}

/// Does not return unless the program cannot be started.
fn raise(command: &[OsString]) -> Result<()> {
    placement::end_with_parent()?;
    // A group that cannot be raised runs all the same.
    let _ = placement::raise();
    let (program, arguments) = command.split_first().context("no program given")?;
    let error = Command::new(program).args(arguments).exec();
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

impl Arguments {
    fn run(mut self) -> Result<ExitCode> {
        ensure!(
            lanecast_system_tests::possible(),
            "groups are measured in network namespaces: that needs root, ip (apt-get install \
             iproute2) and nft (apt-get install nftables)"
        );
        if self.smoke {
            self.rows = vec![Row::Rate];
            self.peers = vec![Peer::Lanecast];
            (self.members, self.sizes) = (vec![2], vec![1000]);
            (self.pairs, self.seconds) = (1, 0.2);
        }
        let own = std::env::current_exe()?;
        let beside = |name: &str| own.with_file_name(name);
        let programs = Programs {
            lanecast: self.lanecast.clone().unwrap_or_else(|| beside("lanecast")),
            java: self.java.clone().unwrap_or_default(),
            corosync: (beside("rivals-corosync"), self.corosync.clone().unwrap_or_default()),
            cpus: self.cpus.clone(),
            pins_each: !self.share_cpus,
            is_verbose: self.verbose,
        };
        let mut peers = self.peers.clone();
        peers.retain(|peer| {
            let missing = programs.missing(*peer);
            if let Some(why) = missing {
                eprintln!("{peer:?} is left out: {why}");
            }
            missing.is_none()
        });
        let wanted = Wanted {
            members: self.members.clone(),
            sizes: self.sizes.clone(),
            losses: self.losses.clone(),
            send_ms: (self.seconds * 1000.0) as u64,
            rounds: self.rounds,
        };
        let mut json = self.json.as_ref().map(File::create).transpose()?;
        let mut is_good = true;
        for row in &self.rows {
            for table in wanted.tables(*row, |side: Side| peers.contains(&side.peer())) {
                is_good &= self.compare(&programs, &table, &mut json)?;
            }
        }
        Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Measures all cases of a table in turn; false if lanecast lost anything.
    fn compare(&self, programs: &Programs, table: &Table, json: &mut Option<File>) -> Result<bool> {
        let mut outcomes: Vec<Vec<Option<Outcome>>> = vec![Vec::new(); table.cases.len()];
        let mut rates: HashMap<usize, f64> = HashMap::new();
        let mut is_good = true;
        for repetition in 0..self.pairs {
            for (place, case) in table.cases.iter().enumerate() {
                // A member's share of what all received in the time.
                let share = |rate: &f64| rate * self.seconds / case.members as f64;
                let messages = rates.get(&place).map_or(FIRST_MESSAGES, |rate| share(rate) as u64);
                let measured = run::measure(programs, case, messages.max(1000), repetition);
                let outcome = match measured {
                    Ok(outcome) => Some(outcome),
                    Err(error) => {
                        eprintln!("{}, {}: {error:#}", table.title, case.side.name());
                        None
                    }
                };
                if let (Some(outcome), Some(file)) = (&outcome, json.as_mut()) {
                    writeln!(file, "{}", line(table, case, repetition, outcome))?;
                }
                if case.side.peer() == Peer::Lanecast {
                    is_good &= outcome.as_ref().is_some_and(|it| {
                        it.lost + it.duplicated + it.disordered + it.incomplete == 0
                            && it.one_order != Some(false)
                            && it.agree != Some(false)
                    });
                }
                rates.extend(outcome.as_ref().map(|outcome| (place, outcome.rate)));
                outcomes[place].push(outcome);
            }
        }
        report::show(table, &outcomes);
        Ok(is_good)
    }
}

/// The line of one repetition.
fn line(table: &Table, case: &Case, repetition: usize, outcome: &Outcome) -> serde_json::Value {
    json!({
        "experiment": "groups",
        "row": table.title,
        "repetition": repetition,
        "case": case,
        "outcome": outcome,
    })
}
