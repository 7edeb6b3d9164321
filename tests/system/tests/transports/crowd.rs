//! Many hosts with a subscriber each: the publisher starts, all cables are cut and mended, and one
//! host loses almost everything. Traffic, memory and CPU time are bounded.
//!
//! With 6 hosts; with `LONG_TESTS=1`, 200.

use crate::play::{has_time, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Loss, Network, Sent, possible, wait_for};
use std::time::{Duration, Instant};

/// Hosts, the publisher's included.
const FEW: usize = 6;
const MANY: usize = 200;
/// The liveness of all sides: an outage is longer, the pauses of a busy machine are not.
const WORDS: &str = "liveness=10000 length=100";
/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_secs(120);
/// Messages of each round, one in each datagram, and how many there are in a second.
const MESSAGES: u64 = 200;
const RATE: u64 = 200;
/// The most heartbeats between two messages, by which the loss of the first would be noticed: after
/// two round trips, which are 50 µs at least, then each after twice the time before.
const HEARTBEATS_MAX: u64 = 6;
/// A time in which nothing is sent but heartbeats.
const IDLE: Duration = Duration::from_secs(2);
/// The most CPU time of the publisher: for each packet that its host sends, for each second that it
/// waits for its next message, and for its start. Generous: a packet takes some 20 µs unoptimised.
const PACKET_TIME: Duration = Duration::from_micros(100);
const SECOND_TIME: Duration = Duration::from_millis(100);
const START_TIME: Duration = Duration::from_millis(200);
/// The most memory of a process, and of its growth after the first round, in KiB.
const MEMORY_MAX: u64 = 64 << 10;
const GROWTH_MAX: u64 = 8 << 10;

/// A publisher on the first host, and a subscriber on each other one.
struct Crowd {
    net: Network,
    source: Actor,
    readers: Vec<Actor>,
    /// Messages that all have read.
    read: u64,
    transport: &'static str,
}

impl Crowd {
    /// Subscribers first: all join at the same time.
    fn start(transport: &'static str) -> Result<Self> {
        let net = Network::bridged(if has_time() { MANY } else { FEW })?;
        let readers = net.hosts()[1..].iter().map(|host| subscriber(host, WORDS));
        let readers = readers.collect::<Result<Vec<_>>>()?;
        let words = format!("{WORDS} subscribers={} count=0 rate={RATE}", readers.len());
        let began = Instant::now();
        let mut source = publisher(net.host(0), transport, &words)?;
        source.tells_within("publishing", PATIENCE)?;
        let crowd = Self { net, source, readers, read: 0, transport };
        let (count, sent) = (crowd.readers.len() as u64, crowd.sent()?);
        crowd.tell("joined", began, sent)?;
        // Answers to Joins, which hosts repeat that wait for a CPU; and ten times a second one to
        // each subscriber that is asked how far it is.
        let most = 40 * count * (1 + began.elapsed().as_secs()) + 400;
        ensure!(sent.packets <= most, "{sent:?} until all had joined");
        let worked = crowd.source.cpu_time()?;
        let most = START_TIME + working_time(sent, began.elapsed());
        ensure!(worked <= most, "the publisher took {worked:?} until all had joined");
        Ok(crowd)
    }

    /// Traffic that the publisher's host has sent.
    fn sent(&self) -> Result<Sent> {
        self.net.host(0).sent()
    }

    /// Copies of each datagram.
    fn copies(&self) -> u64 {
        if self.transport == "rm" { 1 } else { self.readers.len() as u64 }
    }

    /// Prints what something has cost.
    fn tell(&self, what: &str, began: Instant, sent: Sent) -> Result<()> {
        let memory = self.readers.iter().map(Actor::memory).collect::<Result<Vec<_>>>()?;
        println!(
            "{} {what} after {} ms: {} packets, {} bytes; KiB: publisher {}, subscribers {} to {}; \
             CPU ms: publisher {}, subscribers {} in all",
            self.transport,
            began.elapsed().as_millis(),
            sent.packets,
            sent.bytes,
            self.source.memory()?,
            memory.iter().min().context("a subscriber")?,
            memory.iter().max().context("a subscriber")?,
            self.source.cpu_time()?.as_millis(),
            self.reader_time()?.as_millis(),
        );
        Ok(())
    }

    fn reader_time(&self) -> Result<Duration> {
        self.readers.iter().map(Actor::cpu_time).sum()
    }

    /// Sends a round, which all but `late` read; returns what that cost.
    fn round(&mut self, what: &str, late: usize) -> Result<Sent> {
        let (began, before) = (Instant::now(), self.sent()?);
        let worked = self.source.cpu_time()?;
        self.source.say(&format!("send {MESSAGES}"))?;
        self.source.tells_within("reached", PATIENCE)?;
        self.read += MESSAGES;
        for reader in &mut self.readers[late..] {
            reader.reads(self.read)?;
        }
        let sent = self.sent()?.since(before);
        self.tell(what, began, sent)?;
        let (worked, most) =
            (self.source.cpu_time()? - worked, working_time(sent, began.elapsed()));
        ensure!(worked <= most, "the publisher took {worked:?} of {most:?} to be {what}");
        Ok(sent)
    }

    /// No subscriber has lost a message, and memory has stayed within its bounds.
    fn check(&self, before: &[u64]) -> Result<()> {
        for (reader, before) in self.readers.iter().zip(before) {
            ensure!(!reader.has_told("lost"), "{}", reader.story());
            let memory = reader.memory()?;
            ensure!(memory <= MEMORY_MAX && memory <= before + GROWTH_MAX, "{memory}, {before}");
        }
        ensure!(
            self.source.memory()? <= MEMORY_MAX,
            "the publisher: {} KiB",
            self.source.memory()?
        );
        Ok(())
    }
}

/// The most CPU time of the publisher for so many packets in such a time.
fn working_time(sent: Sent, time: Duration) -> Duration {
    let seconds = u32::try_from(1 + time.as_secs()).unwrap_or(u32::MAX);
    PACKET_TIME * u32::try_from(sent.packets).unwrap_or(u32::MAX) + SECOND_TIME * seconds
}

fn bounded(transport: &'static str) -> Result<()> {
    let mut crowd = Crowd::start(transport)?;
    let (count, copies) = (crowd.readers.len() as u64, crowd.copies());
    let most = (1 + HEARTBEATS_MAX) * MESSAGES * copies + 40 * count + 400;
    let sent = crowd.round("read", 0)?;
    ensure!(sent.packets <= most, "{sent:?} for {MESSAGES} messages");
    let memory = crowd.readers.iter().map(Actor::memory).collect::<Result<Vec<_>>>()?;

    let (began, before, worked) = (Instant::now(), crowd.sent()?, crowd.reader_time()?);
    std::thread::sleep(IDLE);
    let (sent, worked) = (crowd.sent()?.since(before), crowd.reader_time()? - worked);
    crowd.tell("idle", began, sent)?;
    // Ten heartbeats a second, or twenty on a machine that is late; and two in a hundred of a CPU.
    ensure!(sent.packets <= 20 * (copies + 20) * (1 + began.elapsed().as_secs()), "{sent:?}");
    ensure!(worked <= began.elapsed() * count as u32 / 50, "idle subscribers took {worked:?}");

    let (began, before, worked) = (Instant::now(), crowd.sent()?, crowd.source.cpu_time()?);
    crowd.net.cut(0)?;
    for reader in &mut crowd.readers {
        reader.tells_within("left", PATIENCE)?;
    }
    crowd.net.heal(0)?;
    for reader in &mut crowd.readers {
        reader.tells_within("joined", PATIENCE)?;
    }
    let sent = crowd.sent()?.since(before);
    crowd.tell("cut and joined again", began, sent)?;
    let seconds = 1 + began.elapsed().as_secs();
    ensure!(sent.packets <= 40 * count + 20 * (copies + 20) * seconds, "{sent:?} in {seconds} s");
    let worked = crowd.source.cpu_time()? - worked;
    ensure!(worked <= working_time(sent, began.elapsed()), "the publisher took {worked:?}");
    crowd.round("read again", 0)?;

    // The first one loses nine of ten datagrams; the others are neither late nor asked.
    crowd.net.host(1).lose(&Loss::per_mille(900))?;
    let sent = crowd.round("read beside one that lost almost all", 1)?;
    ensure!(sent.packets <= most + 20 * MESSAGES, "{sent:?} beside one that asks again");
    crowd.net.host(1).lose_nothing()?;
    let (read, first) = (crowd.read, &mut crowd.readers[0]);
    wait_for("the last reader", PATIENCE, || Ok((first.read() == read).then_some(())))
        .with_context(|| first.story())?;
    crowd.check(&memory)
}

#[test]
fn many_hosts_cost_traffic_memory_and_time_in_proportion() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in ["rm", "ru"] {
        bounded(transport).with_context(|| transport)?;
    }
    Ok(())
}
