//! IPv6, and hosts with several interfaces.

use crate::play::{ALL, PATIENT, check_whole, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Host, Loss, Network, possible};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const COUNT: u64 = 2_000;

/// Sends some messages from the first host to the second.
fn talk(net: &Network, transport: &str, words: &str) -> Result<()> {
    let words = format!("{PATIENT} {words}");
    let source = format!("{words} subscribers=1 count={COUNT} longest=4000");
    let mut source = publisher(net.host(0), transport, &source)?;
    let mut reader = subscriber(net.host(1), &format!("{words} longest=4000"))?;
    source.tells("reached")?;
    for host in &net.hosts()[..2] {
        check_sockets(host)?;
    }
    source.end()?;
    check_whole(&reader.parts()?, COUNT)?;
    reader.finish()?;
    source.finish()?;
    Ok(())
}

/// No socket is bound to all addresses, or to one of another interface.
fn check_sockets(host: &Host) -> Result<()> {
    let list = host.run("ss", &["-Hlntu"], PATIENCE)?.good()?;
    let locals: Vec<&str> = list.lines().filter_map(|l| l.split_whitespace().nth(4)).collect();
    ensure!(!locals.is_empty(), "nothing listens at all: {list}");
    let good = ["10.77.0.", "239.", "[fd77::", "[ff15::"];
    let is_good = |local: &&str| good.iter().any(|start| local.starts_with(start));
    ensure!(locals.iter().all(is_good), "{locals:?}");
    Ok(())
}

#[test]
fn version_six_carries_the_same() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    net.lose(&Loss::per_mille(50))?;
    let words = "interface=fd77::/64 group=[ff15::77:2]:14400 resolver_group=[ff15::77:1]:14390";
    ALL.iter().try_for_each(|transport| talk(&net, transport, words).context(*transport))
}

#[test]
fn programs_that_know_each_other_need_no_multicast_to_meet() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    net.lose(&Loss::per_mille(50))?;
    let words = "resolver_group=none peers=10.77.0.1:7341,10.77.0.2:7341";
    ALL.iter().try_for_each(|transport| talk(&net, transport, words).context(*transport))
}

/// Counts what is sent or received by UDP and TCP on other interfaces than `eth0` and the loopback:
/// there a socket tries with itself whether the system cuts runs.
const WATCH: &str = "table inet watch {\n\
    counter strays {}\n\
    chain out {\ntype filter hook output priority 0;\n\
    oifname != { lo, eth0 } meta l4proto { tcp, udp } counter name strays\n}\n\
    chain in {\ntype filter hook input priority 0;\n\
    iifname != { lo, eth0 } meta l4proto { tcp, udp } counter name strays\n}\n}\n";

#[test]
fn nothing_leaves_or_listens_off_the_chosen_interface() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    for (number, host) in net.hosts().iter().enumerate() {
        let address = format!("10.66.0.{}/24", number + 1);
        for words in [
            &["link", "add", "eth1", "type", "veth", "peer", "name", "eth2"][..],
            &["link", "set", "eth2", "up"],
            &["address", "add", &address, "dev", "eth1"],
            &["link", "set", "eth1", "up"],
            // The worst case: whatever is not told where to go goes there.
            &["route", "replace", "224.0.0.0/4", "dev", "eth1"],
        ] {
            host.run("ip", words, PATIENCE)?.good()?;
        }
        host.nft(WATCH)?;
    }
    for transport in ALL {
        for interface in ["10.77.0.0/24", "eth0"] {
            let words = format!("interface={interface}");
            talk(&net, transport, &words).with_context(|| format!("{transport} by {interface}"))?;
        }
    }
    for host in net.hosts() {
        let strays = host.nft("list counter inet watch strays\n")?;
        ensure!(strays.contains("packets 0 bytes 0"), "{strays}");
    }
    Ok(())
}
