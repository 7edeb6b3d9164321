//! An attacker: floods of nonsense, of well-formed lies, and of what others said
//! before.

use crate::orders::{Order, Orders};
use crate::words::Words;
use anyhow::{Context, Result};
use lanecast_base::clock::Clock;
use lanecast_wire::net::{FrameWriter, Kind};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// The longest datagram.
const DATAGRAM_BYTES: usize = 1_472;
/// Datagrams of one burst; the pause after it gives the others a chance on a busy machine.
const AT_ONCE: u64 = 50;
const REST: Duration = Duration::from_millis(5);

/// Sends to every target in turn until it is told to end.
///
/// Words: `address` (own), `targets` (comma between them), `session` (hexadecimal: the true one),
/// `group` (whose datagrams are said again).
pub(crate) fn act(words: &Words) -> Result<()> {
    let address: Ipv4Addr = words.get("address")?.context("address= is missing")?;
    let session = words.text("session").context("session= is missing")?;
    let session = u64::from_str_radix(session, 16).context("session=")?;
    let targets = words.text("targets").context("targets= is missing")?;
    let targets: Vec<SocketAddr> =
        targets.split(',').map(str::parse).collect::<Result<_, _>>().context("targets=")?;
    let socket = UdpSocket::bind((address, 0))?;
    socket.set_nonblocking(true)?;
    let own = socket.local_addr()?;
    let ears = words.get("group")?.map(|group| listen(group, address)).transpose()?;
    let clock = Clock::host();
    let mut lies = Lies { chance: clock.ticks() | 1, session, buffer: [0; DATAGRAM_BYTES] };
    let orders = Orders::listen()?;
    println!("attacking=1");
    let (mut sent, mut said_again) = (0u64, 0u64);
    while orders.next()? != Some(Order::End) {
        for _ in 0..AT_ONCE {
            let target = targets[sent as usize % targets.len()];
            let length = lies.make(sent);
            // What the system refuses was no use anyway.
            let _ = socket.send_to(&lies.buffer[..length], target);
            sent += 1;
            let Some(ears) = &ears else { continue };
            while let Ok((length, from)) = ears.recv_from(&mut lies.buffer) {
                if from == own {
                    continue;
                }
                said_again += 1;
                for target in &targets {
                    let _ = socket.send_to(&lies.buffer[..length], target);
                }
            }
        }
        std::thread::sleep(REST);
    }
    println!("repeated={said_again}");
    println!("sent={sent}");
    Ok(())
}

/// Hears what is said in a group.
fn listen(group: SocketAddr, address: Ipv4Addr) -> Result<UdpSocket> {
    let SocketAddr::V4(group) = group else { anyhow::bail!("group= is no IPv4 address") };
    let ears = UdpSocket::bind(group)?;
    ears.join_multicast_v4(group.ip(), &address)?;
    ears.set_nonblocking(true)?;
    Ok(ears)
}

struct Lies {
    chance: u64,
    session: u64,
    buffer: [u8; DATAGRAM_BYTES],
}

impl Lies {
    /// Xorshift: good enough for lies.
    fn any(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance
    }

    /// Makes the next datagram; its length.
    fn make(&mut self, number: u64) -> usize {
        let length = self.any() as usize % DATAGRAM_BYTES + 1;
        for at in (0..length).step_by(8) {
            let word = self.any().to_le_bytes();
            let end = length.min(at + 8);
            self.buffer[at..end].copy_from_slice(&word[..end - at]);
        }
        if number.is_multiple_of(4) {
            return length;
        }
        // A frame of any kind, with any body, of the true session or of another.
        let kind = Kind::from_number((self.any() % 14) as u8 + 1).unwrap_or(Kind::Data);
        let flags = self.any() as u16 & 7;
        let session = if number.is_multiple_of(2) { self.session } else { self.any() };
        let sequence = if number.is_multiple_of(3) { self.any() } else { self.any() % 4_096 };
        let body: Vec<u8> = self.buffer[..length / 2].to_vec();
        let mut writer = FrameWriter::new(&mut self.buffer, kind, flags, session, sequence);
        if writer.add(&body[..]) { writer.finish() } else { length }
    }
}
