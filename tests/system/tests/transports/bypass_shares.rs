//! Frames that AF_XDP sockets share: those that stand still leave enough to all others.

use anyhow::{Context, Result, ensure};
use lanecast_os::interface::interfaces;
use lanecast_os::udp::{GSO_SEGMENTS_MAX, GsoBatch, UdpOptions, UdpSocket};
use lanecast_os::xdp::{RING_FRAMES, XdpDevice, XdpOptions, XdpSocket};
use lanecast_system_tests::{Host, Network, possible};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Limit of open files, more than a test has.
const FILES: u64 = 100;

/// Opens the interface of `host` past its stack, on a thread of it.
fn device(host: &Host, options: XdpOptions) -> Result<Arc<XdpDevice>> {
    let address = std::net::IpAddr::from(host.v4());
    let mut interfaces = interfaces()?.into_iter();
    let interface = interfaces.find(|it| it.addresses.iter().any(|(ip, _)| *ip == address));
    let interface = interface.context("no interface has the address")?;
    Ok(XdpDevice::open(&interface, 1_400, options)?)
}

/// Opens a socket past the stack of `host`, on a thread of it.
fn socket(host: &Host, device: &Arc<XdpDevice>) -> Result<XdpSocket> {
    let local = SocketAddr::new(host.v4().into(), 0);
    let system = UdpSocket::open(&UdpOptions { local, ..Default::default() })?;
    XdpSocket::open(device, system, 1).map_err(|(_, error)| error.into())
}

/// Opens sockets past the stack of `host`, on a thread of it.
fn sockets(host: &Host, count: usize) -> Result<Vec<XdpSocket>> {
    let device = device(host, XdpOptions::default())?;
    (0..count).map(|_| socket(host, &device)).collect()
}

/// Sends datagrams to a socket that reads none, until it has dropped some.
fn overrun(sender: &std::net::UdpSocket, socket: &XdpSocket) -> Result<()> {
    let start = Instant::now();
    // The cable of a busy machine may drop datagrams, too.
    while socket.dropped() == 0 {
        within(start, "a ring is not full")?;
        for _ in 0..RING_FRAMES / 8 {
            sender.send_to(b"unread", socket.local_address())?;
        }
    }
    Ok(())
}

fn within(start: Instant, what: &str) -> Result<()> {
    ensure!(start.elapsed() < PATIENCE, "{what} within {PATIENCE:?}");
    Ok(())
}

/// Two sockets that read nothing could hold all frames of a queue.
#[test]
fn sockets_that_read_nothing_lose_their_own_datagrams_only() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let (from, to) = (net.host(0), net.host(1));
    let sender = from.inside(|| std::net::UdpSocket::bind((from.v4(), 0)))??;
    to.inside(|| {
        let mut sockets = sockets(to, 3)?;
        let start = Instant::now();
        for still in &sockets[..2] {
            overrun(&sender, still)?;
        }
        let mut buffer = vec![0; 1 << 16];
        let reader = &mut sockets[2];
        for number in 0..100_u8 {
            while reader.receive(&mut buffer)?.is_none() {
                within(start, "a socket that reads receives nothing")?;
                sender.send_to(&[number], reader.local_address())?;
            }
        }
        // Sockets that stood still go on with what they have kept.
        for still in &mut sockets[..2] {
            let (run, _) = still.receive(&mut buffer)?.context("nothing was kept")?;
            ensure!(buffer[..run.bytes].starts_with(b"unread"));
        }
        Ok(())
    })?
}

/// Sockets kept the frames that they had taken for a whole run.
#[test]
fn sockets_that_send_no_more_leave_frames_to_others() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let host = net.host(0);
    host.inside(|| {
        let mut sockets = sockets(host, 100)?;
        let group = SocketAddr::from((Ipv4Addr::new(239, 192, 71, 77), 14_477));
        let start = Instant::now();
        for (number, socket) in sockets.iter_mut().enumerate() {
            socket.set_multicast_loopback(false)?;
            let bytes = [0; GSO_SEGMENTS_MAX];
            let run = GsoBatch { bytes: &bytes, segment: 1, to: Some(group) };
            // One datagram of each, and a whole run of the last.
            let one = GsoBatch { bytes: &bytes[..1], ..run };
            let run = if number == 99 { run } else { one };
            while let Err(error) = socket.send_run(run) {
                ensure!(error.kind() == std::io::ErrorKind::WouldBlock, "{error}");
                within(start, &format!("socket {number} has no frames"))?;
            }
        }
        Ok(())
    })?
}

/// The kernel's counts stay with the sockets, which the next owner takes over.
#[test]
fn a_socket_counts_no_datagrams_that_its_predecessor_dropped() -> Result<()> {
    if !possible() {
        return Ok(());
    }
    let net = Network::pair()?;
    let (from, to) = (net.host(0), net.host(1));
    let sender = from.inside(|| std::net::UdpSocket::bind((from.v4(), 0)))??;
    to.inside(|| {
        let device = device(to, XdpOptions::default())?;
        for round in 0..3 {
            // The device has no other sockets: each one is that of the round before.
            let socket = socket(to, &device)?;
            ensure!(socket.dropped() == 0, "round {round}: {} before all", socket.dropped());
            overrun(&sender, &socket)?;
        }
        Ok(())
    })?
}

/// Mappings of sockets' rings in this process.
fn rings() -> Result<usize> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    Ok(maps.lines().filter(|line| line.contains("socket:[")).count())
}

/// The queue kept the rings of sockets that could not be opened to the end.
#[test]
fn sockets_that_cannot_be_opened_leave_nothing_behind() -> Result<()> {
    const ATTEMPTS: usize = 10;
    /// Set in the process that has this test to itself: limits are those of a process.
    const ALONE: &str = "BYPASS_ALONE";
    if !possible() {
        return Ok(());
    }
    if std::env::var_os(ALONE).is_none() {
        let mut alone = Command::new(std::env::current_exe()?);
        alone
            .args(["bypass_shares::sockets_that_cannot_be_opened_leave_nothing_behind", "--exact"]);
        let output = alone.env(ALONE, "").output()?;
        let told = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success() && told.contains("1 passed"), "{told}");
        return Ok(());
    }
    let net = Network::pair_with_queues(2)?;
    let host = net.host(0);
    host.inside(|| {
        let device = device(host, XdpOptions::default())?;
        let before = rings()?;
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(FILES), ..limit })?;
        let mut files: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        // One for the socket of the system, and one for the first queue: none is left for the
        // second.
        files.truncate(files.len() - 2);
        let refused = (0..ATTEMPTS).filter(|_| socket(host, &device).is_err()).count();
        drop(files);
        setrlimit(Resource::Nofile, limit)?;
        ensure!(refused == ATTEMPTS, "{refused} of {ATTEMPTS} were refused");
        let after = rings()?;
        ensure!(after == before, "{before} rings became {after}");
        let one = socket(host, &device)?;
        ensure!(rings()? > before, "mapped rings are not seen");
        drop(one);
        Ok(())
    })?
}
