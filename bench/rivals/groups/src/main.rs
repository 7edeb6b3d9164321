//! Groups side by side: lanecast, JGroups and Corosync, a member in each network namespace.
//!
//! ```text
//!   rows -> series: cases in turn -> run: a network, a member on each host -> outcome -> report
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
mod series;
mod side;
mod times;

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use rivals_kit::placement;

use member::MemberArgs;
use rows::{Row, Wanted};
use series::Series;
use side::{Peer, Programs, Side};

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
    #[arg(default_value = "rate,order,scale,latency,loss,pingpong,kill,hang,mtu")]
    rows: Vec<Row>,

    /// Sides
    #[arg(long, value_enum, value_delimiter = ',', default_value = "lanecast,jgroups,corosync")]
    peers: Vec<Peer>,

    /// Numbers of members, for rate and order
    #[arg(long, value_delimiter = ',', default_value = "2,4")]
    members: Vec<usize>,

    /// Numbers of members, for scale
    #[arg(long, value_delimiter = ',', default_value = "4,6,8,10")]
    scale: Vec<usize>,

    /// Bytes of a message, for rate and mtu
    #[arg(long, value_delimiter = ',', default_value = "1000,2500,5000")]
    sizes: Vec<usize>,

    /// Per cent of packets that every member loses on arrival
    #[arg(long, value_delimiter = ',', default_value = "1,5")]
    losses: Vec<u32>,

    /// Repetitions, interleaved
    #[arg(long, default_value_t = 5)]
    pairs: usize,

    /// Time in which members send
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,

    /// Time before that in which they send, too, and nothing counts
    #[arg(long, default_value_t = 1.2)]
    warm_up: f64,

    /// Round trips of one repetition, and of its warm-up
    #[arg(long, default_value_t = 20_000)]
    rounds: u64,

    /// No repetition begins that would end after so many minutes
    #[arg(long)]
    minutes: Option<f64>,

    /// CPUs of the members; empty: nothing is pinned
    #[arg(long, value_delimiter = ',', default_value = "0,1")]
    cpus: Vec<usize>,

    /// All members on all these CPUs; otherwise each on one of them, in turn
    #[arg(long)]
    share_cpus: bool,

    /// Show all lines of all members
    #[arg(long)]
    verbose: bool,

    /// One short repetition of every row with one size: do all sides work at all?
    #[arg(long)]
    quick: bool,

    /// The same with one row of lanecast's side
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
        self.shorten();
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
            members: self.members,
            scale: self.scale,
            sizes: self.sizes,
            losses: self.losses,
            warm_ms: (self.warm_up * 1000.0) as u64,
            send_ms: (self.seconds * 1000.0) as u64,
            rounds: self.rounds,
        };
        let has = |side: Side| peers.contains(&side.peer());
        let series = Series {
            programs,
            tables: self.rows.iter().flat_map(|row| wanted.tables(*row, has)).collect(),
            pairs: self.pairs,
            limit: self.minutes.map(|minutes| Duration::from_secs_f64(minutes * 60.0)),
            json: self.json.map(File::create).transpose().context("cannot write the lines")?,
        };
        ensure!(!series.tables.is_empty(), "nothing to measure: no row has a side that is built");
        let is_missing = peers.len() < self.peers.len();
        let is_good = series.run();
        // A run that was to show that all sides work has not shown it.
        let is_shown = !(self.smoke || self.quick) || !is_missing;
        Ok(if is_good && is_shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Applies `--quick` and `--smoke`.
    fn shorten(&mut self) {
        if self.smoke || self.quick {
            (self.members, self.scale, self.sizes) = (vec![2], vec![4], vec![1000]);
            (self.losses, self.pairs, self.rounds) = (vec![5], 1, 500);
            (self.warm_up, self.seconds) = (0.1, 0.2);
        }
        if self.smoke {
            (self.rows, self.peers) = (vec![Row::Rate], vec![Peer::Lanecast]);
        }
    }
}
