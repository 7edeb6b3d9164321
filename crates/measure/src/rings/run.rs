//! One repetition of a row.

use super::exchange::{Case, Found};
use super::layout::Layout;
use super::reference::Reference;
use super::row::Row;
use super::{shared, single};
use crate::baseline::Baseline;
use crate::pipes::as_text;
use crate::priority::PriorityChange;
use crate::smx::RunLength;
use crate::threads::{Failed, Outcome};
use lanecast_base::WaitStrategy;
use serde::Serialize;

/// Parameters of a repetition.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The case.
    pub case: Case,
    /// Length of the run.
    pub length: RunLength,
    /// Change of the process's priority.
    pub raise: PriorityChange,
}

/// One repetition: a line of kind `rings`.
#[derive(Clone, Debug, Serialize)]
pub struct RingsResult {
    /// Producers and consumers.
    pub row: Row,
    /// Messages that were published together.
    pub batch: usize,
    /// The length of a message in bytes.
    pub size: usize,
    /// Capacity of a ring, in messages.
    pub capacity: usize,
    /// Wait strategy of both ends.
    #[serde(serialize_with = "as_text")]
    pub wait: WaitStrategy,
    /// Distribution of threads over CPUs.
    pub placement: Layout,
    /// Result of the exchange.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Reference figures of the slides.
    pub reference: Option<Reference>,
    /// Which repetition, counted from 1.
    pub repetition: u32,
    /// Number of repetitions.
    pub repetitions: u32,
}

/// Measures once, in new threads.
///
/// # Errors
/// If a thread, a CPU or the ring cannot be had, or the size is none of [`SIZES`](super::SIZES).
pub fn run(settings: &Settings) -> Result<RingsResult, Failed> {
    let Settings { case, length, raise } = settings;
    let (producer, consumer) = (case.seats.producers[0], case.seats.consumers[0]);
    let baseline = Baseline::measure(producer, consumer);
    let found = match case.size {
        8 => shaped::<1>(case, *length),
        16 => shaped::<2>(case, *length),
        32 => shaped::<4>(case, *length),
        64 => shaped::<8>(case, *length),
        128 => shaped::<16>(case, *length),
        256 => shaped::<32>(case, *length),
        size => Err(Failed::Size(size)),
    }?;
    let messages = found.sent.iter().sum();
    Ok(RingsResult {
        row: case.row,
        batch: case.batch,
        size: case.size,
        capacity: case.capacity,
        wait: case.wait,
        placement: case.seats.layout,
        outcome: Outcome::new(messages, found.wrong, baseline, *raise, found.shares),
        reference: Reference::of(case.row),
        repetition: 1,
        repetitions: 1,
    })
}

fn shaped<const WORDS: usize>(case: &Case, length: RunLength) -> Result<Found, Failed> {
    match case.row {
        Row::Unicast | Row::Singly | Row::Multicast | Row::Diamond => {
            single::run::<WORDS>(case, length)
        }
        Row::TwoByTwo | Row::FourByFour => shared::run::<WORDS>(case, length),
    }
}
