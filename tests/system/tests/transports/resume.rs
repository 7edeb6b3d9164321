//! Outages that are shorter than the liveness: the same streams go on, and nothing is lost.

use crate::play::{ALL, check_whole, has_time, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Loss, Network, Traffic, possible, wait_for};
use rustix::process::Signal;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the publisher; each subscriber has read everything, in one stream.
fn end_whole(mut source: Actor, readers: Vec<Actor>) -> Result<()> {
    source.end()?;
    let sent = source.tells_number("sent")?;
    for mut reader in readers {
        let left = reader.parts().and_then(|left| check_whole(&left, sent));
        left.with_context(|| reader.story())?;
        reader.finish()?;
    }
    source.finish()?;
    Ok(())
}

/// Waits until it has read more.
fn reads_on(reader: &Actor) -> Result<()> {
    let so_far = reader.read();
    let more = || Ok((reader.read() >= so_far + 1_000).then_some(()));
    wait_for("new messages", PATIENCE, more).with_context(|| reader.story())
}

/// An outage of four seconds, after which a connection's system sends again at 6.2 s: too late for
/// the liveness.
#[test]
fn a_cut_that_the_system_outwaits_the_liveness_in_loses_nothing() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in ALL {
        let net = Network::bridged(2)?;
        let liveness = "liveness=6000";
        let words = format!("{liveness} subscribers=1 rate=2000");
        let source = publisher(net.host(0), transport, &words)?;
        let mut reader = subscriber(net.host(1), liveness)?;
        reader.reads(500)?;
        let outage = next_seconds(4)?;
        net.lose(&Loss::per_mille(1000).during(outage.clone()))?;
        wait_for_end(&outage)?;
        reads_on(&reader).with_context(|| transport.to_owned())?;
        end_whole(source, vec![reader]).with_context(|| transport.to_owned())?;
    }
    Ok(())
}

/// The next whole seconds since 1970. An outage that the kernel ends lasts no longer, while one
/// that is ended by a command lasts for as long as a busy machine takes to run it.
fn next_seconds(count: u64) -> Result<Range<u64>> {
    let begin = unix_seconds()? + 1;
    Ok(begin..begin + count)
}

fn unix_seconds() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
}

fn wait_for_end(outage: &Range<u64>) -> Result<()> {
    let is_over = || Ok((unix_seconds()? >= outage.end).then_some(()));
    wait_for("the end of the outage", PATIENCE, is_over)
}

/// Chance that a run can be repeated with.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    /// Lets the load go on for a while: how long is the chance of the test.
    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(200 + self.below(1_400)));
    }
}

/// Loses all packets between the first host and this one.
fn lose_all(net: &Network, host: usize, outage: &Range<u64>) -> Result<()> {
    let all = Loss::per_mille(1000).during(outage.clone());
    net.host(host).lose(&all)?;
    let address = net.host(host).v4().into();
    net.host(0).lose(&all.of(Traffic::From(address)))
}

/// A host is cut off, packets get lost in bursts, a process stands still: by turns.
#[test]
fn streams_live_through_cuts_bursts_of_loss_and_stops() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(4)?;
    let source = publisher(net.host(0), "tcp", "subscribers=3 rate=2000")?;
    let hosts = &net.hosts()[1..];
    let readers = hosts.iter().map(|host| subscriber(host, ""));
    let mut readers = readers.collect::<Result<Vec<_>>>()?;
    for reader in &mut readers {
        reader.reads(500)?;
    }
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for round in 0..if has_time() { 60 } else { 6 } {
        let victim = dice.below(3) as usize;
        // From now on for one to two seconds.
        let begin = unix_seconds()?;
        let outage = begin..begin + 2;
        match round % 3 {
            0 => {
                lose_all(&net, 1 + victim, &outage)?;
                wait_for_end(&outage)?;
            }
            1 => {
                let loss = Loss::per_mille(50 + dice.below(150) as u32);
                net.lose(&loss.during(outage.clone()))?;
                wait_for_end(&outage)?;
            }
            _ => {
                readers[victim].signal(Signal::STOP)?;
                dice.pause();
                readers[victim].signal(Signal::CONT)?;
            }
        }
        net.lose_nothing()?;
        // All have caught up before the next: together they would be longer than the liveness.
        readers.iter().try_for_each(reads_on)?;
    }
    for reader in &readers {
        ensure!(!reader.has_told("left"), "a stream has ended: {}", reader.story());
    }
    end_whole(source, readers)
}

/// Subscribers leave in the middle of a stream over a path that loses packets, their last ones
/// among them: the publisher, which waits for its slowest subscriber, learns of it.
#[test]
fn the_departure_of_a_subscriber_survives_losses() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    net.lose(&Loss::per_mille(50))?;
    // Longer than anything is waited for.
    let liveness = "liveness=120000";
    let words = format!("{liveness} subscribers=1 window=65536");
    let source = publisher(net.host(0), "tcp", &words)?;
    let mut stays = subscriber(net.host(1), liveness)?;
    for _ in 0..if has_time() { 100 } else { 6 } {
        // Slow: there is always something that it has not read.
        let mut leaves = subscriber(net.host(2), &format!("{liveness} work=200"))?;
        leaves.reads(200)?;
        leaves.finish()?;
        // Many times what the window holds.
        let so_far = stays.read();
        stays.reads(so_far + 2_000)?;
    }
    net.lose_nothing()?;
    end_whole(source, vec![stays])
}
