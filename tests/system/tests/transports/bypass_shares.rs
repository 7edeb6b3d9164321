//! Frames that AF_XDP sockets share: those that stand still leave enough to all others.

use anyhow::{Context, Result, ensure};
use lanecast_os::interface::interfaces;
use lanecast_os::udp::{GSO_SEGMENTS_MAX, GsoBatch, UdpOptions, UdpSocket};
use lanecast_os::xdp::{RING_FRAMES, XdpDevice, XdpOptions, XdpSocket};
use lanecast_system_tests::{Host, Network, possible};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Opens sockets past the stack of `host`, on a thread of it.
fn sockets(host: &Host, count: usize) -> Result<Vec<XdpSocket>> {
    let address = host.v4().into();
    let mut interfaces = interfaces()?.into_iter();
    let interface = interfaces.find(|it| it.addresses.iter().any(|(ip, _)| *ip == address));
    let interface = interface.context("no interface has the address")?;
    let device = XdpDevice::open(&interface, 1_400, XdpOptions::default())?;
    let open = |_| {
        let options = UdpOptions { local: SocketAddr::new(address, 0), ..Default::default() };
        XdpSocket::open(&device, UdpSocket::open(&options)?, 1).map_err(|(_, error)| error.into())
    };
    (0..count).map(open).collect()
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
            // The cable of a busy machine may drop datagrams, too.
            while still.dropped() == 0 {
                within(start, "a ring is not full")?;
                for _ in 0..RING_FRAMES / 8 {
                    sender.send_to(b"unread", still.local_address())?;
                }
            }
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
            let (length, _) = still.receive(&mut buffer)?.context("nothing was kept")?;
            ensure!(buffer[..length].starts_with(b"unread"));
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
