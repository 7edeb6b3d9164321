//! The sides of a comparison: lanecast, the peers, and the machine itself.

pub mod aeron;
pub mod bare;
pub mod iceoryx2;
pub mod kernel;
pub mod lanecast;
pub mod lmax;
pub mod network;
mod programs;
pub mod queues;
pub mod zmq;

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::cell::Cell;
use crate::measurement::Measurement;
use crate::process::{Program, Running};
use crate::row::Row;
use crate::scratch::Domain;

/// Time limit for a program to become ready.
const READY_LIMIT: Duration = Duration::from_secs(20);
/// Time that a repetition may take beside its warm-up and load: starting, joining, ending.
const SLACK: Duration = Duration::from_secs(25);
/// The same again where packets are lost: what repairs one loss after the other falls far behind.
const LOSSY_SLACK: Duration = Duration::from_secs(60);
/// A repetition may be this much slower than expected before it is given up.
const SLOWNESS: f64 = 10.0;
/// Longest warm-up, except of peers that need more.
const LONGEST_WARMUP_S: f64 = 0.3;
/// Longest limit of a repetition, whatever its expected time.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// CPUs of the measured threads.
#[derive(Clone, Copy, Debug)]
pub struct Cpus {
    /// The publisher's.
    pub publisher: usize,
    /// Every subscriber's.
    pub subscriber: usize,
}

/// One repetition that is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// The measured case.
    pub cell: Cell,
    /// Messages of the measured part.
    pub messages: u64,
    /// Seconds that they are expected to take.
    pub seconds: f64,
    /// CPUs of the measured threads.
    pub cpus: Cpus,
}

/// With which others a side is compared, between hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// Whether it is lanecast, by one of its transports.
    pub own: bool,
    /// Whether it is bare sockets: what the machine itself can do.
    pub floor: bool,
    /// Protocol: `udp`, `multicast`, `tcp`. A floor counts for its own family only.
    pub family: String,
}

impl Standing {
    /// Whether it loses what a receiver has no room for, as it should.
    pub fn drops(&self) -> bool {
        self.floor && self.family != "tcp"
    }
}

/// One side of the comparison.
pub trait Side {
    /// Name in the report.
    fn name(&self) -> &str;

    /// Version in the report.
    fn version(&self) -> String;

    /// With which others it is compared, between hosts.
    fn standing(&self) -> Standing {
        Standing::default()
    }

    /// Whether it can do what the cell asks for.
    fn takes(&self, cell: &Cell) -> bool;

    /// Messages per second to expect flat out. Decides only how many messages the first
    /// repetition has; later ones go by what was measured.
    fn likely_rate(&self, cell: &Cell) -> f64;

    /// Runs one repetition in a fresh domain.
    ///
    /// # Errors
    ///
    /// When a program fails, hangs or reports nothing.
    fn measure(&self, repetition: &Repetition) -> Result<Measurement>;
}

impl Repetition {
    /// The moment after which the programs are killed.
    pub fn deadline(&self) -> Instant {
        let lossy = if self.cell.loss > 0 { LOSSY_SLACK } else { Duration::ZERO };
        Instant::now() + SLACK + lossy + self.time(SLOWNESS)
    }

    /// A multiple of the expected time. An infinite one, from a side that reported a rate near
    /// zero, is replaced by the longest limit.
    pub fn time(&self, times: f64) -> Duration {
        let time = Duration::try_from_secs_f64(self.seconds * times);
        time.map_or(LONGEST, |time| time.min(LONGEST))
    }

    /// Seconds of load before what is measured, and as many as that at most.
    fn warmup_s(&self) -> f64 {
        self.seconds.clamp(0.0, LONGEST_WARMUP_S)
    }

    /// The argument for it that all peers understand.
    fn warmup_argument(&self) -> String {
        format!("--warmup-ms={}", (self.warmup_s() * 1000.0) as u64)
    }

    /// The command line that all peers understand.
    pub fn load_arguments(&self, domain: &Domain, cpu: usize) -> Vec<String> {
        let cell = &self.cell;
        let mut arguments = vec![
            format!("--cpu={cpu}"),
            format!("--size={}", cell.size),
            format!("--messages={}", self.messages),
            format!("--rate={}", cell.rate),
            format!("--touch={}", cell.touch()),
            format!("--subscribers={}", cell.subscribers),
            format!("--domain={}", domain.name()),
        ];
        if cell.stamped() {
            arguments.push("--latency".into());
        }
        arguments
    }
}

/// Messages or round trips per second that even the slowest queue between threads gets near: the
/// first repetition of a quick one is then short, and repeated.
fn slow_queue_rate(cell: &Cell) -> f64 {
    match cell.row {
        Row::PingpongPark => 20e3,
        Row::Pingpong => 200e3,
        Row::Multicast | Row::Diamond | Row::Pipe => 1e6,
        _ => 3e6,
    }
}

/// Starts the subscribers, then the publisher, and waits for all of them. Returns what each
/// subscriber printed.
///
/// # Errors
///
/// When a program fails, or does not end in time.
fn run_stream(
    subscriber: &Program,
    publisher: &Program,
    repetition: &Repetition,
    says_ready: bool,
) -> Result<Vec<String>> {
    let deadline = repetition.deadline();
    let mut subscribers = Vec::<Running>::new();
    for _ in 0..repetition.cell.subscribers {
        subscribers.push(subscriber.start()?);
    }
    if says_ready {
        subscribers.iter_mut().try_for_each(|running| running.wait_ready(READY_LIMIT))?;
    }
    let mut publisher = publisher.start()?;
    let printed = subscribers.iter_mut().map(|running| running.wait(deadline)).collect();
    // A publisher that failed is the reason for whatever its subscribers report.
    publisher.wait(deadline)?;
    printed
}
