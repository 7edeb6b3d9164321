//! Packets get lost at random, both ways, from the first one on: messages do not.

use crate::play::{ALL, PATIENT, check_whole, has_time, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Loss, Network, possible};

/// Sends messages of all lengths on two topics from one host to `subscribers` others, all of
/// which lose `per_mille` of what arrives.
fn nothing_is_lost(transport: &str, subscribers: usize, per_mille: u32, count: u64) -> Result<()> {
    let net = Network::bridged(1 + subscribers)?;
    net.send_frames()?;
    net.lose(&Loss::per_mille(per_mille))?;
    let common = format!("{PATIENT} topics=2 longest=4000");
    let words = format!("{common} rate=4000 count={count} subscribers={subscribers}");
    let mut source = publisher(net.host(0), transport, &words)?;
    let hosts = &net.hosts()[1..];
    let readers = hosts.iter().map(|host| subscriber(host, &common));
    let readers = readers.collect::<Result<Vec<_>>>()?;
    source.tells("reached")?;
    source.end()?;
    ensure!(source.tells_number("sent")? == count, "it has sent less");
    ensure!(source.tells("drained")? == "true", "something was not read");
    for (mut reader, host) in readers.into_iter().zip(hosts) {
        for _ in 0..2 {
            check_whole(&reader.parts()?, count / 2)?;
        }
        reader.end()?;
        let times = reader.tells("times")?;
        let lost = host.lost()?;
        println!("{transport} at {per_mille}/1000: {lost} packets lost, {times}");
        ensure!(lost > 0, "the network has lost nothing");
        reader.finish()?;
    }
    source.finish()?;
    Ok(())
}

fn on_all_transports(per_mille: u32, count: u64) -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let count = if has_time() { 10 * count } else { count };
    for transport in ALL {
        // The kernel's own recovery is slow.
        let count = if transport == "tcp" { count * 10 / u64::from(per_mille) } else { count };
        let result = nothing_is_lost(transport, 1, per_mille, count);
        result.with_context(|| format!("{transport} at {per_mille} of a thousand"))?;
    }
    Ok(())
}

#[test]
fn one_percent_is_repaired() -> Result<()> {
    on_all_transports(10, 20_000)
}

#[test]
fn five_percent_are_repaired() -> Result<()> {
    on_all_transports(50, 10_000)
}

#[test]
fn twenty_percent_are_repaired() -> Result<()> {
    on_all_transports(200, 5_000)
}

#[test]
fn three_subscribers_of_a_group_lose_nothing() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    nothing_is_lost("rm", 3, 50, if has_time() { 100_000 } else { 10_000 })
}

/// A publisher that closes while its last messages, and the news of its end, get lost.
#[test]
fn the_tail_of_a_closed_session_is_repaired() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let rounds = if has_time() { 100 } else { 8 };
    for transport in ALL {
        let net = Network::pair()?;
        net.lose(&Loss::per_mille(200))?;
        // What a publisher does not know of its subscribers' end keeps it for this long.
        let liveness = "liveness=3000";
        let mut reader = subscriber(net.host(1), liveness)?;
        for round in 0..rounds {
            let words = format!("{liveness} count=50 subscribers=1 linger=0");
            let mut source = publisher(net.host(0), transport, &words)?;
            source.tells("reached")?;
            source.end()?;
            let left = reader.parts().and_then(|left| check_whole(&left, 50));
            left.with_context(|| format!("{transport}, round {round}"))?;
            source.finish()?;
        }
        reader.finish()?;
    }
    Ok(())
}
