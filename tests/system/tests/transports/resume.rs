//! Outages that are shorter than the liveness: the same streams go on, and nothing is lost.

use crate::play::{ALL, check_whole, has_time, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Loss, Network, possible, wait_for};
use rustix::process::Signal;
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
        let begin = unix_seconds()? + 1;
        let end = begin + 4;
        net.lose(&Loss::per_mille(1000).during(begin..end))?;
        wait_for("the end of the outage", PATIENCE, || Ok((unix_seconds()? >= end).then_some(())))?;
        reads_on(&reader).with_context(|| transport.to_owned())?;
        end_whole(source, vec![reader]).with_context(|| transport.to_owned())?;
    }
    Ok(())
}

fn unix_seconds() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs())
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

    fn pause(&mut self) {
        std::thread::sleep(Duration::from_millis(200 + self.below(1_400)));
    }
}

/// One of the cables is cut, packets get lost in bursts, a process stands still: by turns.
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
    for _ in 0..if has_time() { 60 } else { 8 } {
        let victim = dice.below(3) as usize;
        match dice.below(3) {
            0 => {
                net.cut(1 + victim)?;
                dice.pause();
                net.heal(1 + victim)?;
            }
            1 => {
                net.lose(&Loss::per_mille(50 + dice.below(150) as u32))?;
                dice.pause();
                net.lose_nothing()?;
            }
            _ => {
                readers[victim].signal(Signal::STOP)?;
                dice.pause();
                readers[victim].signal(Signal::CONT)?;
            }
        }
        // All have caught up before the next: together they would be longer than the liveness.
        readers.iter().try_for_each(reads_on)?;
    }
    for reader in &readers {
        ensure!(!reader.has_told("left"), "a stream has ended: {}", reader.story());
    }
    end_whole(source, readers)
}
