//! Ethernet, IPv4 and UDP in front of each datagram, and the addresses that they hold.

use std::fs;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::if_nametoindex;

/// Bytes in front of a datagram.
pub const HEADERS: usize = 42;
const IP_LENGTH: usize = 16;
const IP_CHECKSUM: usize = 24;
const UDP_LENGTH: usize = 38;
const IP: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
/// A port on which nothing listens, in order to ask for the hardware address behind it.
const DISCARD: u16 = 9;
const LIMIT: Duration = Duration::from_secs(5);
/// Flag of a neighbour that has answered, in the kernel's table.
const COMPLETE: &str = "0x2";

type Mac = [u8; 6];

/// An interface of Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct Interface {
    /// Number by which the kernel knows it.
    pub index: u32,
    mac: Mac,
}

impl Interface {
    /// The one with this address.
    pub fn of(address: Ipv4Addr) -> Result<Self> {
        let all: Vec<_> = getifaddrs()?.collect();
        let has_address = all.iter().find(|it| {
            let own = it.address.as_ref().and_then(|own| own.as_sockaddr_in());
            own.is_some_and(|own| own.ip() == address)
        });
        let name = &has_address.context("no interface has --local")?.interface_name;
        let mac = all
            .iter()
            .filter(|it| it.interface_name == *name)
            .find_map(|it| it.address.as_ref()?.as_link_addr()?.addr());
        let index = if_nametoindex(name.as_str())?;
        Ok(Self { index, mac: mac.with_context(|| format!("{name} has no hardware address"))? })
    }
}

/// The headers of all datagrams of one address to one other; lengths are added.
#[derive(Clone, Copy, Debug)]
pub struct Headers {
    bytes: [u8; HEADERS],
    /// Sum of the IPv4 header without its length.
    sum: u32,
}

impl Headers {
    /// Headers from one address to the other, whose hardware address the kernel finds out.
    pub fn new(interface: Interface, from: SocketAddrV4, to: SocketAddrV4) -> Result<Self> {
        Ok(Self::between((interface.mac, from), (neighbour(*from.ip(), *to.ip())?, to)))
    }

    fn between((near, from): (Mac, SocketAddrV4), (far, to): (Mac, SocketAddrV4)) -> Self {
        let mut bytes = [0; HEADERS];
        bytes[0..6].copy_from_slice(&far);
        bytes[6..12].copy_from_slice(&near);
        // IPv4, 20 bytes of header, 64 hops, UDP.
        (bytes[12], bytes[IP], bytes[22], bytes[23]) = (8, 0x45, 64, 17);
        bytes[26..30].copy_from_slice(&from.ip().octets());
        bytes[30..34].copy_from_slice(&to.ip().octets());
        bytes[34..36].copy_from_slice(&network_order(from.port()));
        bytes[36..38].copy_from_slice(&network_order(to.port()));
        let words = bytes[IP..IP + IP_BYTES].chunks(2);
        let sum = words.map(|word| u32::from(word[0]) << 8 | u32::from(word[1])).sum();
        Self { bytes, sum }
    }

    /// Writes them in front of a datagram of that length. UDP over IPv4 does without a checksum.
    #[inline]
    pub fn write(&self, into: &mut [u8], length: usize) {
        into[..HEADERS].copy_from_slice(&self.bytes);
        let whole = (IP_BYTES + UDP_BYTES + length) as u16;
        let sum = self.sum + u32::from(whole);
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !(folded + (folded >> 16)) as u16;
        into[IP_LENGTH..IP_LENGTH + 2].copy_from_slice(&network_order(whole));
        into[IP_CHECKSUM..IP_CHECKSUM + 2].copy_from_slice(&network_order(checksum));
        let datagram = (UDP_BYTES + length) as u16;
        into[UDP_LENGTH..UDP_LENGTH + 2].copy_from_slice(&network_order(datagram));
    }
}

/// The datagram in a frame that the interface's program has chosen.
#[inline]
pub fn datagram(frame: &[u8]) -> &[u8] {
    let length = usize::from(frame[UDP_LENGTH]) << 8 | usize::from(frame[UDP_LENGTH + 1]);
    let end = (HEADERS - UDP_BYTES + length).clamp(HEADERS, frame.len());
    &frame[HEADERS..end]
}

fn network_order(number: u16) -> [u8; 2] {
    [(number >> 8) as u8, number as u8]
}

/// The hardware address of another host, from the kernel's table of neighbours.
fn neighbour(from: Ipv4Addr, to: Ipv4Addr) -> Result<Mac> {
    let socket = UdpSocket::bind((from, 0))?;
    let start = Instant::now();
    while start.elapsed() < LIMIT {
        // The kernel asks for the address in order to send this.
        socket.send_to(&[], (to, DISCARD))?;
        if let Some(mac) = read_neighbour(&fs::read_to_string("/proc/net/arp")?, to) {
            return Ok(mac);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    bail!("{to} does not answer with a hardware address")
}

/// Reads address, type, flags and hardware address of each line.
fn read_neighbour(table: &str, of: Ipv4Addr) -> Option<Mac> {
    table.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [address, _, flags, mac, ..] = words.as_slice() else { return None };
        let is_known = address.parse() == Ok(of) && *flags == COMPLETE;
        let mut bytes = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
        let mut next = || bytes.next()?;
        is_known.then_some([next()?, next()?, next()?, next()?, next()?, next()?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_header_has_its_checksum_and_its_datagram() {
        let ends = [("10.77.0.1:20001", [2; 6]), ("10.77.0.2:20000", [4; 6])];
        let [near, far] = ends.map(|(end, mac)| (mac, end.parse().expect("an address")));
        for length in [0, 24, 999, 1472] {
            let mut frame = vec![7; 1600];
            Headers::between(near, far).write(&mut frame, length);
            let words = frame[IP..IP + IP_BYTES].chunks(2);
            let sum: u32 = words.map(|it| u32::from(it[0]) << 8 | u32::from(it[1])).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "{length}");
            assert_eq!(datagram(&frame).len(), length);
        }
    }

    #[test]
    fn lengths_that_are_wrong_stay_within_the_frame() {
        let mut frame = vec![0xff; 60];
        assert_eq!(datagram(&frame).len(), 60 - HEADERS);
        frame.fill(0);
        assert_eq!(datagram(&frame).len(), 0);
    }

    #[test]
    fn neighbours_that_have_not_answered_are_unknown() {
        let table = "IP address HW type Flags HW address Mask Device\n\
            10.77.0.2 0x1 0x0 00:00:00:00:00:00 * eth0\n\
            10.77.0.3 0x1 0x2 0a:00:00:00:00:ff * eth0\n";
        let read = |host| read_neighbour(table, Ipv4Addr::new(10, 77, 0, host));
        assert_eq!([read(1), read(2)], [None, None]);
        assert_eq!(read(3), Some([10, 0, 0, 0, 0, 255]));
    }
}
