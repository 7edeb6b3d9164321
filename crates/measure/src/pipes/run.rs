//! One repetition of a case: messages between two threads, and their time.

use super::case::{Case, Experiment, Transport};
use super::link::{Reads, Writes};
use super::reference::Reference;
use super::{piped, sockets};
use crate::baseline::Baseline;
use crate::priority::PriorityChange;
use crate::smx::RunLength;
use crate::threads::{DeliveryCheck, DeliveryErrors, Failed, Outcome, Quota, Role, ThreadGroup};
use lanecast_ring::signal::{PollSet, Semaphore, SocketSignal};
use serde::Serialize;

/// Parameters of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The case.
    pub case: Case,
    /// Length of the run.
    pub length: RunLength,
    /// The CPU of the thread that sends, or begins.
    pub producer_cpu: usize,
    /// The CPU of the other one.
    pub consumer_cpu: usize,
    /// Change of the process's priority.
    pub raise: PriorityChange,
}

/// One repetition: a line of kind `pipes`.
#[derive(Clone, Debug, Serialize)]
pub struct PipesResult {
    /// Parameters of the run.
    #[serde(flatten)]
    pub case: Case,
    /// Result of the exchange.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Wake-ups of sleeping readers, in both directions; none for sockets, where the system does
    /// not count them.
    pub signals: Option<u64>,
    /// Reference figures of the document.
    pub reference: Option<Reference>,
    /// Which repetition, counted from 1.
    pub repetition: u32,
    /// Number of repetitions.
    pub repetitions: u32,
}

/// Result of an end.
#[derive(Clone, Debug, Default)]
struct End {
    /// Messages sent; of a ping-pong, rounds.
    sent: u64,
    /// Check of the received messages, to be compared with the sent ones.
    seen: Option<DeliveryCheck>,
    /// Signals given.
    signals: Option<u64>,
}

/// Measures once, in new threads.
///
/// # Errors
/// If a thread, a CPU or a transport cannot be had.
pub fn run(settings: &Settings) -> Result<PipesResult, Failed> {
    let Case { batch, wait, .. } = settings.case;
    match settings.case.transport {
        Transport::Socketpair => measure(settings, sockets::pair(batch)?, sockets::pair(batch)?),
        Transport::Pollset => {
            let pair = || piped::pair(PollSet::new(), wait);
            measure(settings, pair()?, pair()?)
        }
        Transport::Semaphore => {
            let pair = || piped::pair(Semaphore::new(), wait);
            measure(settings, pair()?, pair()?)
        }
        Transport::SocketSignal => {
            let pair = || piped::pair(SocketSignal::new()?, wait);
            measure(settings, pair()?, pair()?)
        }
    }
}

fn measure<W: Writes + Send, R: Reads + Send>(
    settings: &Settings,
    there: (W, R),
    back: (W, R),
) -> Result<PipesResult, Failed> {
    let Settings { case, length, producer_cpu, consumer_cpu, raise } = *settings;
    let baseline = Baseline::measure(producer_cpu, consumer_cpu);
    let mut group = ThreadGroup::new();
    match case.experiment {
        Experiment::PingPong => {
            group.join(Role::Producer, producer_cpu, || ask(there.0, back.1, length));
            group.join(Role::Consumer, consumer_cpu, || answer(there.1, back.0));
        }
        Experiment::Throughput => {
            group.join(Role::Producer, producer_cpu, || send(there.0, length, case.batch));
            group.join(Role::Consumer, consumer_cpu, || receive(there.1));
        }
    }
    let shares = group.run()?;
    let sent: u64 = shares.iter().map(|share| share.found.sent).sum();
    let signals = shares.iter().filter_map(|share| share.found.signals).reduce(|a, b| a + b);
    let mut wrong = DeliveryErrors::default();
    for share in &shares {
        let seen = share.found.seen.clone();
        wrong = wrong.and(seen.map(|seen| seen.against(&[sent])).unwrap_or_default());
    }
    let outcome = Outcome::new(sent, wrong, baseline, raise, shares);
    let reference = Reference::of(&case);
    Ok(PipesResult { case, outcome, signals, reference, repetition: 1, repetitions: 1 })
}

/// Sends one message, waits until it comes back, sends the next one.
fn ask(mut writer: impl Writes, mut reader: impl Reads, length: RunLength) -> End {
    let (mut quota, mut seen, mut round) = (Quota::new(length, 1), DeliveryCheck::new(1), 0);
    while let Some(portion) = quota.next() {
        for _ in 0..portion {
            writer.write_and_flush(round);
            reader.read(|message| seen.see_word(message));
            round += 1;
        }
    }
    End { sent: round, seen: Some(seen), signals: writer.close() }
}

/// Sends back what comes.
fn answer(mut reader: impl Reads, mut writer: impl Writes) -> End {
    let mut seen = DeliveryCheck::new(1);
    while reader.read(|message| {
        seen.see_word(message);
        writer.write_and_flush(message);
    }) {}
    End { sent: 0, seen: Some(seen), signals: writer.close() }
}

/// Sends as much as possible, in batches.
fn send(mut writer: impl Writes, length: RunLength, batch: usize) -> End {
    let (mut quota, batch, mut number) = (Quota::new(length, batch), batch as u64, 0);
    while let Some(portion) = quota.next() {
        let end = number + portion;
        while number < end {
            let next = end.min(number + batch);
            if batch == 1 {
                writer.write_and_flush(number);
            } else {
                (number..next).for_each(|message| writer.write(message));
                writer.flush();
            }
            number = next;
        }
    }
    End { sent: number, seen: None, signals: writer.close() }
}

/// Receives until the end.
fn receive(mut reader: impl Reads) -> End {
    let mut seen = DeliveryCheck::new(1);
    while reader.read(|message| seen.see_word(message)) {}
    End { sent: 0, seen: Some(seen), signals: None }
}
