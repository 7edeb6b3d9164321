//! Datagrams past the kernel's network stack (AF_XDP): at one end or at both, beside everything
//! else on the same cable.

use crate::play::{PATIENT, check_whole, has_time, publisher, subscriber};
use anyhow::{Context, Result, ensure};
use lanecast_system_tests::{Actor, Host, Loss, Network, Traffic, possible, wait_for};
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Time after which a packet without an answer is sent again.
const AGAIN: Duration = Duration::from_millis(200);

/// Transports that consist of datagrams.
const DATAGRAMS: [&str; 2] = ["rm", "ru"];

/// The actor's datagrams pass the stack by.
fn check_bypass(actor: &mut Actor) -> Result<()> {
    let io = actor.tells("io")?;
    ensure!(io.starts_with("xdp"), "{io}");
    println!("{io}");
    Ok(())
}

/// Starts a publisher and a subscriber of two topics; `ends` says which of them use AF_XDP.
fn start(net: &Network, transport: &str, ends: [bool; 2], words: &str) -> Result<[Actor; 2]> {
    let io = ends.map(|xdp| if xdp { "io=xdp" } else { "io=sockets" });
    let words = format!("{PATIENT} topics=2 longest=4000 {words}");
    let role = format!("publish transport={transport} {words} {} count=0 subscribers=1", io[0]);
    let source = Actor::start(net.host(0), &role)?;
    let reader = Actor::start(net.host(1), &format!("subscribe {words} {}", io[1]))?;
    let mut both = [source, reader];
    for (actor, xdp) in both.iter_mut().zip(ends) {
        if xdp {
            check_bypass(actor)?;
        }
    }
    both[0].tells("publishing")?;
    Ok(both)
}

/// Sends and reads `count` messages, which all arrive.
fn finish([mut source, mut reader]: [Actor; 2], count: u64) -> Result<()> {
    source.say(&format!("send {count}"))?;
    source.tells("reached")?;
    source.end()?;
    ensure!(source.tells("drained")? == "true", "something was not read");
    for _ in 0..2 {
        check_whole(&reader.parts()?, count / 2)?;
    }
    reader.finish()?;
    source.finish()?;
    Ok(())
}

/// Messages of all lengths, while the packet filter drops every datagram that the stack of an end
/// with AF_XDP would see.
fn passes_the_stack_by(net: &Network, transport: &str, ends: [bool; 2], words: &str) -> Result<()> {
    let actors = start(net, transport, ends, words)?;
    for (host, _) in net.hosts().iter().zip(ends).filter(|(_, xdp)| *xdp) {
        host.lose(&Loss::per_mille(1000).of(Traffic::Udp))?;
    }
    finish(actors, if has_time() { 200_000 } else { 10_000 })?;
    net.lose_nothing()
}

#[test]
fn either_end_or_both_pass_the_stack_by() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in DATAGRAMS {
        for ends in [[true, true], [true, false], [false, true]] {
            let net = Network::bridged(2)?;
            passes_the_stack_by(&net, transport, ends, "").with_context(|| {
                format!("{transport}, AF_XDP at publisher, subscriber: {ends:?}")
            })?;
        }
    }
    Ok(())
}

#[test]
fn lost_datagrams_are_repaired_past_the_stack() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in DATAGRAMS {
        let net = Network::pair()?;
        passes_the_stack_by(&net, transport, [true, true], "loss=50").context(transport)?;
    }
    Ok(())
}

/// Two ends with a key and parity repair what is lost, and a program without the key hears nothing.
#[test]
fn sealed_datagrams_and_parity_pass_the_stack_by() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let directory = tempfile::tempdir()?;
    let keys = directory.path().join("keys");
    fs::write(&keys, "5a".repeat(32))?;
    fs::set_permissions(&keys, Permissions::from_mode(0o600))?;
    let words = format!("key_file={} fec=4+1 loss=50", keys.display());
    for transport in DATAGRAMS {
        for ends in [[true, true], [true, false], [false, true]] {
            let net = Network::bridged(3)?;
            let without = subscriber(net.host(2), &format!("{PATIENT} topics=2"))?;
            passes_the_stack_by(&net, transport, ends, &words)
                .with_context(|| format!("{transport} {ends:?}"))?;
            ensure!(!without.story().contains("joined"), "{}", without.story());
            without.finish()?;
        }
    }
    Ok(())
}

#[test]
fn a_background_thread_passes_the_stack_by_too() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in DATAGRAMS {
        let net = Network::pair()?;
        passes_the_stack_by(&net, transport, [true, true], "drive=thread").context(transport)?;
    }
    Ok(())
}

#[test]
fn a_subscriber_that_sleeps_on_its_descriptor_is_woken() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    for transport in DATAGRAMS {
        let net = Network::pair()?;
        passes_the_stack_by(&net, transport, [true, true], "sleep=descriptor loss=20")
            .context(transport)?;
    }
    Ok(())
}

#[test]
fn all_queues_of_a_card_receive() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair_with_queues(3)?;
    for transport in DATAGRAMS {
        for ends in [[true, true], [false, true]] {
            let actors = start(&net, transport, ends, "")?;
            net.host(1).lose(&Loss::per_mille(1000).of(Traffic::Udp))?;
            ensure!(actors[1].story().contains("3 queues"), "{}", actors[1].story());
            finish(actors, 10_000).with_context(|| format!("{transport} {ends:?}"))?;
            net.lose_nothing()?;
        }
    }
    Ok(())
}

/// Sends datagrams and a stream from one host to the other by sockets of the system.
fn other_traffic(from: &Host, to: &Host) -> Result<()> {
    let at = SocketAddr::from((to.v4(), 0));
    let (datagrams, listener) =
        to.inside(|| anyhow::Ok((UdpSocket::bind(at)?, TcpListener::bind(at)?)))??;
    datagrams.set_read_timeout(Some(AGAIN))?;
    let (to_datagrams, to_stream) = (datagrams.local_addr()?, listener.local_addr()?);
    let here = SocketAddr::from((from.v4(), 0));
    let (sender, mut stream) =
        from.inside(|| anyhow::Ok((UdpSocket::bind(here)?, TcpStream::connect(to_stream)?)))??;
    let mut buffer = vec![0; 1 << 16];
    // The longest consist of fragments.
    for length in [0, 1, 24, 1472, 1473, 9000, 60_000] {
        let bytes = vec![length as u8; length];
        let got = until_answered(|| {
            sender.send_to(&bytes, to_datagrams)?;
            datagrams.recv(&mut buffer)
        });
        let got = got.context("a datagram has not come")?;
        ensure!(buffer[..got] == bytes, "{length} bytes became {got}");
        // Those that were sent again and were late only.
        datagrams.set_nonblocking(true)?;
        while datagrams.recv(&mut [0]).is_ok() {}
        datagrams.set_nonblocking(false)?;
    }
    stream.write_all(&buffer)?;
    drop(stream);
    let mut all = Vec::new();
    listener.accept()?.0.read_to_end(&mut all)?;
    ensure!(all == buffer, "the stream is {} bytes", all.len());
    Ok(())
}

/// Sends and receives until there is an answer: a cable of a busy machine drops a packet now and
/// then, and the kernel limits the refusals that it sends.
fn until_answered(mut exchange: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    let start = Instant::now();
    loop {
        match exchange() {
            Err(error) if error.kind() == ErrorKind::WouldBlock && start.elapsed() < PATIENCE => {}
            answer => return answer,
        }
    }
}

/// The refusal of a closed port comes by ICMP.
fn refusal_arrives(from: &Host, to: &Host) -> Result<()> {
    let open = to.inside(|| UdpSocket::bind((to.v4(), 0)))??;
    let closed = open.local_addr()?;
    drop(open);
    let sender = from.inside(|| UdpSocket::bind((from.v4(), 0)))??;
    sender.connect(closed)?;
    sender.set_read_timeout(Some(AGAIN))?;
    let answer = until_answered(|| {
        sender.send(b"to a closed port")?;
        sender.recv(&mut [0; 64])
    });
    let refused = answer.map_err(|error| error.kind());
    ensure!(refused == Err(ErrorKind::ConnectionRefused), "{refused:?}");
    Ok(())
}

#[test]
fn other_traffic_passes_untouched() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let actors = start(&net, "rm", [true, true], "")?;
    let groups = "group=239.192.71.9:14409 resolver_group=239.192.71.8:14408";
    let by_sockets = start(&net, "tcp", [false, false], groups)?;
    for _ in 0..20 {
        other_traffic(net.host(0), net.host(1))?;
        other_traffic(net.host(1), net.host(0))?;
    }
    refusal_arrives(net.host(0), net.host(1))?;
    refusal_arrives(net.host(1), net.host(0))?;
    finish(actors, 5_000)?;
    finish(by_sockets, 5_000)
}

/// A group reaches every program of a host that has joined it, whatever each uses.
#[test]
fn programs_of_one_host_share_a_group() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let words = format!("{PATIENT} rate=4000 count=0 subscribers=3");
    let mut source = publisher(net.host(0), "rm", &words)?;
    let mut first = subscriber(net.host(1), &format!("{PATIENT} io=xdp"))?;
    let mut second = subscriber(net.host(1), &format!("{PATIENT} io=sockets"))?;
    // The interface has a program already: the second one that asks for it says so.
    let mut third = Actor::start(net.host(1), &format!("subscribe {PATIENT} io=xdp"))?;
    let io = third.tells("io")?;
    ensure!(io.starts_with("sockets") && io.contains("attached already"), "{io}");
    source.tells("publishing")?;
    source.say("send 8000")?;
    source.tells("reached")?;
    source.end()?;
    ensure!(source.tells("drained")? == "true", "something was not read");
    for reader in [&mut first, &mut second, &mut third] {
        check_whole(&reader.parts()?, 8_000)?;
    }
    for actor in [first, second, third, source] {
        actor.finish()?;
    }
    Ok(())
}

/// Both ends on one host: their datagrams never come to a card.
#[test]
fn both_ends_on_one_host_meet() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(1)?;
    for transport in DATAGRAMS {
        let words = format!("{PATIENT} io=xdp count=3000 subscribers=1");
        let mut source = publisher(net.host(0), transport, &words)?;
        let mut reader = subscriber(net.host(0), PATIENT)?;
        source.tells("reached")?;
        source.end()?;
        check_whole(&reader.parts()?, 3_000)?;
        reader.finish()?;
        source.finish()?;
    }
    Ok(())
}

#[test]
fn a_killed_process_leaves_nothing_attached() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    let host = net.host(1);
    for round in 0..if has_time() { 100 } else { 10 } {
        let mut reader = Actor::start(host, &format!("subscribe {PATIENT} io=xdp"))?;
        // The one before has left the interface to this one.
        check_bypass(&mut reader).with_context(|| format!("round {round}"))?;
        reader.tells("began")?;
        ensure!(host.has_program()?, "round {round}: no program is seen");
        reader.kill()?;
        let is_gone = || Ok((!host.has_program()?).then_some(()));
        wait_for("the program to go", PATIENCE, is_gone)
            .with_context(|| format!("round {round}"))?;
    }
    // One that ends in peace leaves nothing either.
    subscriber(host, &format!("{PATIENT} io=xdp"))?.finish()?;
    ensure!(!host.has_program()?, "the program has stayed");
    Ok(())
}

/// Frames are on their way in all rings when either end dies; a successor takes its interface over,
/// and other programs of the host go on.
#[test]
fn a_process_killed_under_traffic_leaves_nothing_attached() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(2)?;
    for round in 0..if has_time() { 100 } else { 4 } {
        let transport = DATAGRAMS[round % 2];
        // Without a count or a rate: it sends as fast as the other end reads, until it dies.
        let role = format!("publish transport={transport} {PATIENT} io=xdp subscribers=1");
        let mut source = Actor::start(net.host(0), &role)?;
        let mut reader = Actor::start(net.host(1), &format!("subscribe {PATIENT} io=xdp"))?;
        for actor in [&mut source, &mut reader] {
            check_bypass(actor).with_context(|| format!("round {round}"))?;
        }
        reader.reads(2_000)?;
        let mut ends = [(source, net.host(0)), (reader, net.host(1))];
        if round / 2 % 2 == 0 {
            ends.reverse();
        }
        for (actor, host) in ends {
            ensure!(host.has_program()?, "round {round}: no program is seen");
            actor.kill()?;
            let is_gone = || Ok((!host.has_program()?).then_some(()));
            wait_for("the program to go", PATIENCE, is_gone)
                .with_context(|| format!("round {round}"))?;
        }
    }
    other_traffic(net.host(0), net.host(1))
}

#[test]
fn loopback_falls_back_to_sockets_and_says_why() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::bridged(1)?;
    let mut reader = Actor::start(net.host(0), "subscribe interface=127.0.0.1 io=xdp")?;
    let io = reader.tells("io")?;
    ensure!(io.starts_with("sockets") && io.contains("loopback"), "{io}");
    reader.finish()?;
    Ok(())
}
