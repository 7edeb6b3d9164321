//! The kit itself: what it says of its networks is true.
#![forbid(unsafe_code)]

use anyhow::{Context, Result, bail, ensure};
use lanecast_system_tests::{Host, Loss, Network, Traffic, clear_stale, possible, wait_for};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longer than anything takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// As long as one datagram may take before it is sent again.
const AGAIN: Duration = Duration::from_millis(100);
/// For what must not arrive: many times as long as it would take.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn every_host_reaches_every_other() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    for here in net.hosts() {
        for there in net.hosts() {
            reach(here, there)?;
        }
    }
    Ok(())
}

#[test]
fn a_pair_shares_a_cable() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    reach(net.host(0), net.host(1))?;
    reach(net.host(1), net.host(0))
}

#[test]
fn a_group_is_heard_by_all() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    let group = Ipv4Addr::new(239, 77, 0, 1);
    let mut members = Vec::new();
    for host in &net.hosts()[1..] {
        let member = host.inside(|| UdpSocket::bind((group, 0)))??;
        host.inside(|| member.join_multicast_v4(&group, &host.v4()))??;
        member.set_read_timeout(Some(AGAIN))?;
        members.push(member);
    }
    let speaker = bind(net.host(0), net.host(0).v4().into())?;
    for member in &members {
        let port = member.local_addr()?.port();
        wait_for("the group", PATIENCE, || {
            speaker.send_to(b"all", (group, port))?;
            Ok(receive(member)?.map(drop))
        })?;
    }
    Ok(())
}

#[test]
fn about_the_asked_share_is_lost_and_all_of_it_is_counted() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    for (per_mille, bounds) in [(10, 10..=130), (200, 1000..=1400)] {
        // The system's own packets, of neighbours and groups, would be counted with the others.
        net.host(1).lose(&Loss::per_mille(per_mille).of(Traffic::Udp))?;
        let lost = lost_of(6000, &net)?;
        // Six standard deviations around the share are within these bounds.
        ensure!(bounds.contains(&lost), "{lost} of 6000 were lost at {per_mille} of a thousand");
    }
    net.lose_nothing()?;
    ensure!(lost_of(200, &net)? == 0, "something was lost");
    Ok(())
}

#[test]
fn only_the_chosen_traffic_is_lost() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(3)?;
    let [one, two, three] = [net.host(0), net.host(1), net.host(2)];
    let all = Loss::per_mille(1000);
    for address in one.addresses() {
        two.lose(&all.clone().of(Traffic::From(address)))?;
        silence(one, two, address)?;
        reach(three, two)?;
        reach(two, three)?;
    }
    two.lose(&all.clone().of(Traffic::Udp))?;
    silence(three, two, three.v4().into())?;
    stream(one, two, 1)?;
    two.lose(&all.clone().of(Traffic::Tcp))?;
    reach(one, two)?;
    ensure!(stream(one, two, 1).is_err(), "TCP got through");
    Ok(())
}

#[test]
fn a_cut_cable_is_silent_until_it_is_healed() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for net in [Network::bridged(3)?, Network::pair()?] {
        let (one, two) = (net.host(0), net.host(1));
        for round in 0..2 {
            net.cut(round)?;
            for address in one.addresses() {
                silence(one, two, address)?;
            }
            if let Some(three) = net.hosts().get(2) {
                reach(three, net.host(1 - round))?;
            }
            net.heal(round)?;
            reach(one, two)?;
            reach(two, one)?;
        }
    }
    Ok(())
}

#[test]
fn frames_are_sent_where_they_are_asked_for() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let bytes = 1 << 20;
    let frames_before = bytes / 1500;
    let whole = packets(&net, bytes)?;
    ensure!(whole < frames_before, "{whole} packets without being asked");
    net.send_frames()?;
    let frames = packets(&net, bytes)?;
    ensure!(frames >= frames_before, "only {frames} packets");
    net.set_mtu(9000)?;
    let larger = packets(&net, bytes)?;
    ensure!(larger < frames_before && larger > bytes / 9000, "{larger} packets of 9000 bytes");
    Ok(())
}

#[test]
fn programs_run_on_their_host_and_end_with_the_test() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let host = net.host(1);
    let list = host.run("ip", &["-brief", "address"], PATIENCE)?.good()?;
    ensure!(list.contains("10.77.0.2/24") && list.contains("fd77::2/64"), "{list}");
    ensure!(host.run("sh", &["-c", "exit 3"], PATIENCE)?.code == Some(3), "the status is wrong");
    let sleeper = host.spawn("sh", &["-c", "echo up; echo words >&2; exec sleep 60"])?;
    sleeper.until_out("up", PATIENCE)?;
    sleeper.until_err("words", PATIENCE)?;
    ensure!(sleeper.until_out("never", SILENCE).is_err(), "it waited for less");
    let pid = sleeper.pid();
    ensure!(is_alive(pid), "{pid} is not the sleeper");
    drop(sleeper);
    ensure!(!is_alive(pid), "{pid} still lives");
    ensure!(host.spawn("sleep", &["60"])?.kill()?.code.is_none(), "it was not killed");
    Ok(())
}

#[test]
fn nothing_is_left_even_by_a_panic() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let names = |net: &Network| net.hosts().iter().map(|host| host.name().to_owned()).collect();
    let net = Network::bridged(2)?;
    let mut all: Vec<String> = names(&net);
    ensure!(all.iter().all(|name| exists(name)), "not made: {all:?}");
    drop(net);
    let panic = std::panic::catch_unwind(|| {
        let net = Network::pair().unwrap();
        std::panic::panic_any(names(&net) as Vec<String>);
    });
    let told = panic.expect_err("it panics");
    all.extend(*told.downcast::<Vec<String>>().expect("the names"));
    ensure!(all.len() == 4 && !all.iter().any(|name| exists(name)), "left: {all:?}");
    Ok(())
}

#[test]
fn leftovers_of_a_dead_process_are_cleared_away() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let mut maker = Command::new("true").spawn()?;
    maker.wait()?;
    let name = format!("lc{}x0", maker.id());
    let net = Network::bridged(1)?;
    // Not on a host: what is mounted there is not seen outside.
    ensure!(Command::new("ip").args(["netns", "add", &name]).status()?.success(), "not made");
    let left = net.host(0).spawn("ip", &["netns", "exec", &name, "sleep", "60"])?;
    wait_for("the sleeper", PATIENCE, || {
        let inside = Command::new("ip").args(["netns", "pids", &name]).output()?;
        Ok((!inside.stdout.is_empty()).then_some(()))
    })?;
    clear_stale()?;
    ensure!(!exists(&name), "{name} is still there");
    ensure!(left.finish(PATIENCE)?.code.is_none(), "the sleeper was not killed");
    ensure!(exists(net.host(0).name()), "it cleared away what is in use");
    Ok(())
}

fn exists(namespace: &str) -> bool {
    Path::new("/run/netns").join(namespace).exists()
}

fn is_alive(pid: u32) -> bool {
    Path::new("/proc").join(pid.to_string()).exists()
}

fn bind(host: &Host, address: IpAddr) -> Result<UdpSocket> {
    let socket = host.inside(|| UdpSocket::bind((address, 0)))??;
    socket.set_read_timeout(Some(AGAIN))?;
    Ok(socket)
}

/// A datagram, if one comes soon.
fn receive(socket: &UdpSocket) -> Result<Option<SocketAddr>> {
    match socket.recv_from(&mut [0; 64]) {
        Ok((_, from)) => Ok(Some(from)),
        // The kernel ends a timed wait early when it stops the process for work of its own.
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Sends until something arrives, by IPv4 and by IPv6.
fn reach(from: &Host, to: &Host) -> Result<()> {
    for (source, target) in from.addresses().into_iter().zip(to.addresses()) {
        let (sender, receiver) = (bind(from, source)?, bind(to, target)?);
        let seen = wait_for("a datagram", PATIENCE, || {
            // The first words after a cable is plugged in may find no route yet.
            let _ = sender.send_to(b"hello", receiver.local_addr()?);
            receive(&receiver)
        });
        let seen = seen.with_context(|| format!("{source} to {target}"))?;
        ensure!(seen == sender.local_addr()?, "it came from {seen}");
    }
    Ok(())
}

/// Sends for a while; nothing may arrive.
fn silence(from: &Host, to: &Host, source: IpAddr) -> Result<()> {
    let target = to.addresses()[usize::from(source.is_ipv6())];
    // A pulled cable may have taken the IPv6 address with it: then there is nothing to be sent.
    let (Ok(sender), Ok(receiver)) = (bind(from, source), bind(to, target)) else { return Ok(()) };
    let start = Instant::now();
    while start.elapsed() < SILENCE {
        let _ = sender.send_to(b"hello", receiver.local_addr()?);
        if receive(&receiver)?.is_some() {
            bail!("a datagram came from {source} to {target}");
        }
    }
    Ok(())
}

/// Number of datagrams from the first host to the second that the filter has counted as
/// lost: exactly those that did not arrive.
fn lost_of(count: u64, net: &Network) -> Result<u64> {
    let [from, to] = [net.host(0), net.host(1)];
    let (sender, receiver) = (bind(from, from.v4().into())?, bind(to, to.v4().into())?);
    receiver.set_nonblocking(true)?;
    let mut arrived = 0;
    let mut drain = || -> Result<u64> {
        while receive(&receiver)?.is_some() {
            arrived += 1;
        }
        Ok(arrived)
    };
    // What an earlier part of the test has lost is not of this part.
    let before = to.lost().unwrap_or(0);
    for _ in 0..count {
        sender.send_to(b"one of many", receiver.local_addr()?)?;
        drain()?;
    }
    wait_for("the last datagram", PATIENCE, || {
        let lost = to.lost().unwrap_or(0) - before;
        Ok((drain()? + lost == count).then_some(lost))
    })
}

/// Sends so many bytes by TCP.
fn stream(from: &Host, to: &Host, bytes: usize) -> Result<()> {
    let listener = to.inside(|| TcpListener::bind((to.v4(), 0)))??;
    let target = listener.local_addr()?;
    let connect = || TcpStream::connect_timeout(&target, PATIENCE);
    let mut sender = from.inside(connect)??;
    let (mut receiver, _) = listener.accept()?;
    std::thread::scope(|scope| {
        scope.spawn(move || sender.write_all(&vec![7; bytes]));
        let mut seen = Vec::new();
        receiver.set_read_timeout(Some(PATIENCE))?;
        receiver.read_to_end(&mut seen)?;
        ensure!(seen.len() == bytes, "{} bytes came", seen.len());
        Ok(())
    })
}

/// Packets that the second host needs to receive this many bytes by TCP.
fn packets(net: &Network, bytes: usize) -> Result<usize> {
    let before = received(net.host(1))?;
    stream(net.host(0), net.host(1), bytes)?;
    Ok(received(net.host(1))? - before)
}

/// The packets that its interface has received.
fn received(host: &Host) -> Result<usize> {
    let list = host.run("cat", &["/proc/net/dev"], PATIENCE)?.good()?;
    let line = list.lines().find_map(|line| line.trim().strip_prefix("eth0:"));
    let count = line.and_then(|line| line.split_whitespace().nth(1));
    count.context("no count of packets")?.parse().context("a number")
}
