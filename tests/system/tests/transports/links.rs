//! Cables are cut, and one of the directions fails: subscribers go on, or are told and come back.

use crate::play::{ALL, PATIENT, check_whole, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Left, Loss, Network, possible, wait_for};
use std::time::{Duration, Instant};

/// Length of an outage that all should survive.
const SHORT: Duration = Duration::from_millis(1_500);
/// Liveness in the tests of longer outages.
const LIVENESS: &str = "liveness=2000";
/// Longer than anything takes that is waited for here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a scene with each transport.
fn each(scene: impl Fn(&Network, &str) -> Result<()>) -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in ALL {
        scene(&Network::bridged(2)?, transport).with_context(|| transport.to_owned())?;
    }
    Ok(())
}

/// Sends until the subscriber, which may have to be found and joined first, reads something new.
fn send_until_read(source: &mut Actor, reader: &Actor) -> Result<()> {
    // Reading what it has in hand does not show that it is joined, and a publisher that ends before
    // that does not wait for it.
    source.say("await 1")?;
    source.tells("joined")?;
    let before = reader.read();
    wait_for("new messages", PATIENCE, || {
        source.say("send 10")?;
        source.tells("reached")?;
        Ok((reader.read() > before).then_some(()))
    })
    .with_context(|| reader.story())
}

/// Ends the publisher; the subscriber's account, which goes up to its last message.
fn end_well(mut source: Actor, mut reader: Actor) -> Result<Left> {
    source.end()?;
    let sent = source.tells_number("sent")?;
    let last = loop {
        let left = reader.parts()?;
        if left.why == "closed" {
            ensure!(left.next == sent, "of {sent}: {left:?}");
            break left;
        }
    };
    reader.finish()?;
    source.finish()?;
    Ok(last)
}

#[test]
fn a_short_cut_loses_nothing() -> Result<()> {
    each(|net, transport| {
        let words = format!("{PATIENT} subscribers=1 rate=2000");
        let mut source = publisher(net.host(0), transport, &words)?;
        let mut reader = subscriber(net.host(1), PATIENT)?;
        reader.reads(500)?;
        net.cut(1)?;
        std::thread::sleep(SHORT);
        net.heal(1)?;
        let so_far = reader.read();
        reader.reads(so_far + 4_000)?;
        source.end()?;
        let sent = source.tells_number("sent")?;
        check_whole(&reader.parts()?, sent)?;
        reader.finish()?;
        source.finish()?;
        Ok(())
    })
}

#[test]
fn a_long_cut_is_told_and_healed() -> Result<()> {
    each(|net, transport| {
        let mut source = publisher(net.host(0), transport, &format!("{LIVENESS} count=0"))?;
        let mut reader = subscriber(net.host(1), LIVENESS)?;
        send_until_read(&mut source, &reader)?;
        net.cut(1)?;
        let start = Instant::now();
        source.say("send 10")?;
        let left = reader.parts()?;
        ensure!(left.why == "died", "{left:?}");
        println!("{transport}: told after {:?}", start.elapsed());
        // Much more than the window holds: the publisher no longer waits.
        source.say("send 100000")?;
        source.tells("reached")?;
        source.tells("reached")?;
        let start = Instant::now();
        net.heal(1)?;
        send_until_read(&mut source, &reader)?;
        println!("{transport}: back after {:?}", start.elapsed());
        // What was sent meanwhile was told as lost, each message of it.
        let again = end_well(source, reader)?;
        ensure!(again.first == left.next && again.lost > 0, "{left:?}, then {again:?}");
        Ok(())
    })
}

/// One direction fails for longer than anybody is silent: the one towards host `deaf`.
fn one_way(deaf: usize) -> Result<()> {
    each(|net, transport| {
        let mut source = publisher(net.host(0), transport, &format!("{LIVENESS} count=0"))?;
        let reader = subscriber(net.host(1), LIVENESS)?;
        send_until_read(&mut source, &reader)?;
        net.host(deaf).lose(&Loss::per_mille(1000))?;
        // The publisher must notice the missing subscribers; then sending is not blocked.
        source.say("send 100000")?;
        source.tells("reached")?;
        net.host(deaf).lose_nothing()?;
        let start = Instant::now();
        send_until_read(&mut source, &reader)?;
        println!("{transport}: back after {:?}", start.elapsed());
        end_well(source, reader).map(drop)
    })
}

#[test]
fn a_deaf_subscriber_hears_again() -> Result<()> {
    one_way(1)
}

#[test]
fn a_deaf_publisher_hears_again() -> Result<()> {
    one_way(0)
}

#[test]
fn a_publisher_started_while_the_cable_is_cut_is_found_later() -> Result<()> {
    each(|net, transport| {
        for publisher_first in [true, false] {
            net.cut(1)?;
            let words = format!("{PATIENT} subscribers=1 count=100");
            let (source, reader) = if publisher_first {
                let source = publisher(net.host(0), transport, &words)?;
                (source, subscriber(net.host(1), PATIENT)?)
            } else {
                let reader = subscriber(net.host(1), PATIENT)?;
                (publisher(net.host(0), transport, &words)?, reader)
            };
            // Both have advertised and queried several times without a receiver.
            std::thread::sleep(SHORT);
            let start = Instant::now();
            net.heal(1)?;
            let (mut source, mut reader) = (source, reader);
            reader.tells("joined")?;
            println!("{transport}: found after {:?}", start.elapsed());
            source.tells("reached")?;
            source.end()?;
            check_whole(&reader.parts()?, 100)?;
            reader.finish()?;
            source.finish()?;
        }
        Ok(())
    })
}
