//! A member's received messages: checked, counted and timed.

use super::check::SenderCheck;
use super::config::{GroupConfig, TransportKind};
use super::interval::IntervalSample;
use super::payload::Payload;
use super::result::{MemberResult, SenderCount};
use super::transport::SenderId;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Most samples kept for the measurement line. The `-f` file has all.
const SAMPLES_MAX: usize = 10_000;
/// Between two readings of the CPU time while messages arrive.
const CPU_INTERVAL: Duration = Duration::from_millis(20);

/// The messages of one sender.
#[derive(Debug)]
struct Sender {
    id: u64,
    /// The identity in the transport, known from its first message on.
    from: Option<SenderId>,
    check: SenderCheck,
}

/// All messages received.
#[derive(Debug)]
pub(super) struct Reception {
    payload: Payload,
    size: usize,
    num_msgs: u64,
    expected: u64,
    log_interval: u64,
    processing_delay: Duration,
    senders: Vec<Sender>,
    /// Different measured messages.
    pub(super) received: u64,
    pub(super) warm_ups: u64,
    damaged: u64,
    started: Option<Instant>,
    ended: Instant,
    /// Whether other members are threads of the same process.
    shares_process: bool,
    cpu_at_start: u64,
    cpu_ns: u64,
    /// When the CPU time was last read.
    cpu_read: Option<Instant>,
    /// Count and time at the beginning of the current interval.
    interval: (u64, u64),
    pub(super) samples: Vec<IntervalSample>,
    /// Samples that were not told yet.
    pub(super) untold: Vec<IntervalSample>,
    /// When a message was last received.
    pub(super) progress: Instant,
}

impl Reception {
    pub(super) fn new(config: &GroupConfig, now: Instant) -> Self {
        Self {
            payload: Payload::new(config.msg_size),
            size: config.msg_size,
            num_msgs: config.num_msgs,
            expected: config.expected(),
            log_interval: config.log_interval,
            processing_delay: config.processing_delay,
            senders: Vec::new(),
            received: 0,
            warm_ups: 0,
            damaged: 0,
            started: None,
            ended: now,
            shares_process: config.transport == TransportKind::GroupThreads,
            cpu_at_start: 0,
            cpu_ns: 0,
            cpu_read: None,
            interval: (0, 0),
            samples: Vec::new(),
            untold: Vec::new(),
            progress: now,
        }
    }

    /// Expects the messages of these senders.
    pub(super) fn expect(&mut self, ids: impl Iterator<Item = u64>) {
        let sender = |id| Sender { id, from: None, check: SenderCheck::default() };
        self.senders = ids.map(sender).collect();
        self.senders.sort_by_key(|sender| sender.id);
    }

    pub(super) const fn payload(&self) -> &Payload {
        &self.payload
    }

    /// Takes a message; returns its sender, if it is one.
    pub(super) fn take(&mut self, from: SenderId, bytes: &[u8]) -> Option<u64> {
        let data = self.payload.read(bytes).filter(|data| data.number < u64::MAX);
        let sender = data.and_then(|data| {
            let sender = self.senders.iter_mut().find(|sender| sender.id == data.sender)?;
            // Another member cannot have sent it.
            let is_own = *sender.from.get_or_insert(from) == from;
            let is_known = data.is_warm_up || data.number < self.num_msgs;
            (is_own && is_known).then_some((data, sender))
        });
        let Some((data, sender)) = sender else {
            self.damaged += 1;
            return None;
        };
        if data.is_warm_up {
            self.warm_ups += 1;
            return Some(data.sender);
        }
        if self.started.is_none() {
            self.started = Some(Instant::now());
            self.cpu_at_start = cpu_ns(self.shares_process);
        }
        let before = sender.check.received;
        sender.check.see(data.number);
        self.received += sender.check.received - before;
        if !self.processing_delay.is_zero() {
            std::thread::sleep(self.processing_delay);
        }
        if self.received > before_interval(self.interval.0, self.log_interval) {
            self.end_interval();
        }
        if self.received == self.expected {
            self.touch();
        }
        Some(data.sender)
    }

    /// Takes note that messages were received at this moment.
    pub(super) fn touch(&mut self) {
        self.ended = Instant::now();
        self.progress = self.ended;
        // Reading a file for each thread after every poll would take longer than the messages.
        let is_recent = |read: Instant| self.ended.duration_since(read) < CPU_INTERVAL;
        if self.received < self.expected && self.cpu_read.is_some_and(is_recent) {
            return;
        }
        self.cpu_read = Some(self.ended);
        self.cpu_ns = cpu_ns(self.shares_process).saturating_sub(self.cpu_at_start);
    }

    #[cold]
    fn end_interval(&mut self) {
        let elapsed_ns = self.started.map_or(0, |start| nanoseconds(start.elapsed()));
        let sample = IntervalSample::new(self.received, elapsed_ns, self.interval, self.size);
        self.interval = (self.received, elapsed_ns);
        if self.samples.len() < SAMPLES_MAX {
            self.samples.push(sample);
        }
        self.untold.push(sample);
    }

    /// Whether the messages of all senders for which `is_wanted` are complete.
    pub(super) fn is_whole(&self, is_wanted: impl Fn(u64) -> bool) -> bool {
        let mut wanted = self.senders.iter().filter(|sender| is_wanted(sender.id));
        wanted.all(|sender| sender.check.received == self.num_msgs)
    }

    /// The result. Of a sender that `has_died`, only messages before its last received one are
    /// missed.
    pub(super) fn result(&self, has_died: impl Fn(u64) -> bool) -> MemberResult {
        let elapsed = self.started.map_or(Duration::ZERO, |start| self.ended - start);
        let sum = |of: fn(&SenderCheck) -> u64| {
            self.senders.iter().map(|sender| of(&sender.check)).sum::<u64>()
        };
        let lost = self.senders.iter().map(|sender| {
            let count = if has_died(sender.id) { sender.check.next() } else { self.num_msgs };
            sender.check.lost(count)
        });
        let count = |sender: &Sender| SenderCount {
            id: format!("{:016x}", sender.id),
            received: sender.check.received,
        };
        MemberResult {
            received: self.received,
            lost: lost.sum(),
            duplicated: sum(|check| check.duplicated),
            disordered: sum(|check| check.disordered),
            damaged: self.damaged,
            elapsed_ns: nanoseconds(elapsed),
            cpu_ns: self.cpu_ns,
            by_sender: self.senders.iter().map(count).collect(),
            ..MemberResult::default()
        }
        .with_rates(self.size)
    }
}

/// The count that ends the interval begun at `first`, less one.
const fn before_interval(first: u64, length: u64) -> u64 {
    first.saturating_add(length) - 1
}

pub(super) fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of this thread, or of all threads of this process, in nanoseconds; 0 if the system does
/// not tell.
fn cpu_ns(of_thread: bool) -> u64 {
    let read = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    if of_thread {
        return read(Path::new("/proc/thread-self/schedstat")).unwrap_or(0);
    }
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return 0 };
    threads.filter_map(|thread| read(&thread.ok()?.path().join("schedstat"))).sum()
}
