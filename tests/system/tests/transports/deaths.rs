//! Processes stop, and die.

use crate::play::{ALL, PATIENT, check_whole, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Network, possible, wait_for};
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Silence after which the other side counts as dead.
const LIVENESS: Duration = Duration::from_secs(4);
/// A busy machine may take so much longer to notice.
const SLACK: Duration = Duration::from_secs(8);

#[test]
fn a_killed_publisher_is_noticed_and_its_successor_found() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let liveness = format!("liveness={}", LIVENESS.as_millis());
    let mut reader = subscriber(net.host(1), &liveness)?;
    for transport in ALL {
        for _ in 0..2 {
            let words = format!("{liveness} subscribers=1 rate=5000");
            let mut source =
                Actor::start(net.host(0), &format!("publish transport={transport} {words}"))?;
            let session = source.tells("session")?;
            ensure!(reader.tells("joined")?.ends_with(&session), "it joined another one");
            let so_far = reader.read();
            reader.reads(so_far + 500)?;
            source.kill()?;
            let start = Instant::now();
            let left = reader.parts()?;
            println!("{transport}: noticed after {:?}", start.elapsed());
            ensure!(left.why == "died", "{left:?}");
            ensure!(start.elapsed() < LIVENESS + SLACK, "after {:?}", start.elapsed());
        }
    }
    reader.finish()?;
    Ok(())
}

/// One subscriber is slow, one is stopped, one is killed: those that read lose nothing, and the
/// publisher waits no longer than it must.
fn good_and_bad_subscribers(transport: &str) -> Result<()> {
    let net = Network::bridged(5)?;
    let count = 20_000;
    let liveness = format!("liveness={} window=65536 length=100", LIVENESS.as_millis());
    let words = format!("{liveness} subscribers=4 count={count}");
    let mut source = publisher(net.host(0), transport, &words)?;
    let mut fast = subscriber(net.host(1), &liveness)?;
    let mut slow = subscriber(net.host(2), &format!("{liveness} work=50"))?;
    let mut stopped = subscriber(net.host(3), &format!("{liveness} work=100"))?;
    let mut killed = subscriber(net.host(4), &format!("{liveness} work=100"))?;
    stopped.reads(10)?;
    killed.reads(10)?;
    stopped.signal(Signal::STOP)?;
    killed.kill()?;
    source.tells("reached")?;
    source.end()?;
    ensure!(source.tells("drained")? == "true", "the good ones have not read everything");
    ensure!(source.tells("silent")? == "2", "the publisher is told of the two bad ones");
    for reader in [&mut fast, &mut slow] {
        check_whole(&reader.parts()?, count)?;
    }
    stopped.signal(Signal::CONT)?;
    // It was let go, or got to the end; what it was told adds up in any case.
    let left = stopped.parts()?;
    println!("{transport}: the stopped one: {left:?}");
    ensure!(left.next <= count, "{left:?}");
    for actor in [fast, slow, stopped, source] {
        actor.finish()?;
    }
    Ok(())
}

#[test]
fn subscribers_that_read_lose_nothing_by_those_that_do_not() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    ALL.iter().try_for_each(|transport| good_and_bad_subscribers(transport).context(*transport))
}

/// The publisher's pacing decides about a stopped subscriber.
fn stopped_under(transport: &str, pacing: &str) -> Result<()> {
    let net = Network::bridged(3)?;
    let count = 30_000;
    let common = format!("{PATIENT} window=65536 length=200");
    let words = format!("{common} {pacing} subscribers=2 count=0");
    let mut source = publisher(net.host(0), transport, &words)?;
    let mut good = subscriber(net.host(1), &common)?;
    let mut stopped = subscriber(net.host(2), &format!("{common} buffer=65536"))?;
    source.tells("publishing")?;
    source.say("send 100")?;
    stopped.reads(100)?;
    stopped.signal(Signal::STOP)?;
    source.say(&format!("send {count}"))?;
    source.tells("reached")?;
    source.tells("reached")?;
    stopped.signal(Signal::CONT)?;
    source.say("send 100")?;
    source.tells("reached")?;
    if pacing.contains("eject") {
        // Only a publisher that lives can tell it: on a busy machine it may begin to run late.
        let is_told = || Ok((stopped.has_told("left") || stopped.has_told("lost")).then_some(()));
        wait_for("word of its eviction", SLACK * 8, is_told).with_context(|| stopped.story())?;
    }
    source.end()?;
    let left = good.parts().with_context(|| format!("the stopped one: {}", stopped.story()))?;
    println!("{transport}, {pacing}: the good one: {left:?}");
    ensure!(left.why == "closed" && left.next == count + 200, "{left:?}");
    if pacing.contains("eject") {
        ensure!(left.lost == 0, "the publisher waits for it: {left:?}");
    }
    // It is told that it is evicted, or of a loss if that word did not reach it.
    let left = stopped.parts()?;
    println!("{transport}, {pacing}: the stopped one: {left:?}");
    if left.why != "evicted" || !pacing.contains("eject") {
        ensure!(left.why == "closed" && left.next == count + 200, "{left:?}");
        ensure!(left.lost > 0 && left.read + left.lost == count + 200, "{left:?}");
    }
    for actor in [good, stopped, source] {
        actor.finish()?;
    }
    Ok(())
}

fn stopped_under_all(pacing: &str) -> Result<()> {
    if !possible() {
        return Ok(());
    }
    ALL.iter().try_for_each(|transport| stopped_under(transport, pacing).context(*transport))
}

#[test]
fn a_stopped_subscriber_is_ejected_where_patience_has_an_end() -> Result<()> {
    stopped_under_all("pacing=eject patience=3000")
}

#[test]
fn a_stopped_subscriber_is_told_what_it_lost_where_the_fastest_sets_the_pace() -> Result<()> {
    stopped_under_all("pacing=fastest")
}

#[test]
fn a_stopped_subscriber_is_told_what_it_lost_where_nobody_is_waited_for() -> Result<()> {
    stopped_under_all("pacing=none")
}
