//! A third host sends nonsense, lies and echoes: the other two go on as if it were not there.

use crate::play::{PATIENT, check_whole, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Host, Network, possible};

const GROUP: &str = "239.192.71.2:14400";
const RESOLVER_GROUP: &str = "239.192.71.1:14390";
/// Memory that a flood may cost, in KiB: buffers that fill up for the first time.
const GROWTH_MAX: u64 = 32 << 10;
/// A flood of this length, and what is told while it lasts.
const COUNT: u64 = 10_000;

/// Counts the bytes that the attacker sends, and what is sent to it alone or by resolution.
const COUNT_BYTES: &str = "table inet flood {\n\
    counter sent {}\ncounter answered {}\n\
    chain out {\ntype filter hook output priority 0;\n\
    oifname eth0 meta l4proto udp counter name sent\n}\n\
    chain in {\ntype filter hook prerouting priority raw;\n\
    iifname eth0 ip daddr != 239.192.71.2 meta l4proto { tcp, udp } counter name answered\n}\n}\n";

fn bytes(host: &Host, counter: &str) -> Result<u64> {
    let text = host.nft(&format!("list counter inet flood {counter}\n"))?;
    let mut words = text.split_whitespace().skip_while(|word| *word != "bytes");
    let found = words.find_map(|word| word.parse().ok());
    found.with_context(|| format!("no bytes in {text:?}"))
}

fn flood(transport: &str) -> Result<()> {
    let net = Network::bridged(3)?;
    let attacker = net.host(2);
    attacker.nft(COUNT_BYTES)?;
    let mut source = Actor::start(
        net.host(0),
        &format!("publish transport={transport} {PATIENT} subscribers=1 count=1000 rate=5000"),
    )?;
    let session = source.tells("session")?;
    // rm:10.77.0.1:54004:...
    let address =
        source.tells("source")?.splitn(4, ':').skip(1).take(2).collect::<Vec<_>>().join(":");
    let mut reader = subscriber(net.host(1), PATIENT)?;
    source.tells("reached")?;
    let before = [source.memory()?, reader.memory()?];
    let mut attack = Actor::start(
        attacker,
        &format!(
            "attack address={} session={session} group={GROUP} \
             targets={address},{GROUP},{RESOLVER_GROUP}",
            attacker.v4()
        ),
    )?;
    attack.tells("attacking")?;
    source.say(&format!("send {COUNT}"))?;
    source.tells("reached")?;
    reader.reads(1_000 + COUNT)?;
    // Who comes meanwhile is let in.
    let mut late = subscriber(net.host(1), PATIENT)?;
    late.tells("joined")?;
    source.say("send 100")?;
    source.tells("reached")?;
    attack.end()?;
    let (repeated, lies) = (attack.tells_number("repeated")?, attack.tells_number("sent")?);
    attack.finish()?;
    let after = [source.memory()?, reader.memory()?];
    let (sent, answered) = (bytes(attacker, "sent")?, bytes(attacker, "answered")?);
    println!("{transport}: {lies} lies and {repeated} echoes of {sent} bytes, {answered} answered");
    println!("{transport}: memory in KiB {before:?}, then {after:?}");
    for (before, after) in before.iter().zip(after) {
        ensure!(after < before + GROWTH_MAX, "memory grew from {before} KiB to {after} KiB");
    }
    ensure!(lies > 100, "there was no flood");
    ensure!(answered < sent, "{answered} bytes answered to {sent}");
    source.end()?;
    for (mut reader, first) in [(reader, 0), (late, 1_000 + COUNT)] {
        let left = reader.parts()?;
        check_whole(&left, 1_100 + COUNT)?;
        ensure!(left.first == first, "{left:?}");
        reader.finish()?;
    }
    source.finish()?;
    Ok(())
}

#[test]
fn a_flood_neither_kills_nor_confuses_nor_is_amplified() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    crate::play::ALL.iter().try_for_each(|transport| flood(transport).context(*transport))
}

/// A publisher that is flooded before it has any subscriber lets the first one in.
#[test]
fn a_flooded_publisher_is_found() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    let targets = format!("{GROUP},{RESOLVER_GROUP}");
    let part = format!("attack address={} session=1 targets={targets}", net.host(2).v4());
    let mut attack = Actor::start(net.host(2), &part)?;
    attack.tells("attacking")?;
    for transport in crate::play::ALL {
        let words = format!("{PATIENT} subscribers=1 count=1000");
        let mut source = publisher(net.host(0), transport, &words)?;
        let mut reader = subscriber(net.host(1), PATIENT)?;
        source.tells("reached")?;
        source.end()?;
        check_whole(&reader.parts()?, 1_000).context(transport)?;
        reader.finish()?;
        source.finish()?;
    }
    attack.finish()?;
    Ok(())
}
