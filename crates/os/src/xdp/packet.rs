//! Ethernet frames of UDP datagrams over IPv4: written by the sender, read as foreign bytes.

use std::net::{Ipv4Addr, SocketAddrV4};
use zerocopy::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of the headers before a datagram's payload.
pub const HEADER_BYTES: usize = size_of::<Headers>();
/// Bytes of the IPv4 and UDP headers, which count against the MTU.
pub const IP_UDP_BYTES: usize = HEADER_BYTES - ETHERNET_BYTES;

const ETHERNET_BYTES: usize = 14;
const IP_BYTES: usize = 20;
const UDP_BYTES: usize = 8;
const IPV4: u16 = 0x0800;
/// Version 4, and a header of five words.
const VERSION_AND_LENGTH: u8 = 0x45;
const DONT_FRAGMENT: u16 = 0x4000;
/// More fragments, and the offset of one.
const FRAGMENT: u16 = 0x3fff;
const UDP: u8 = 17;

/// Ethernet, IPv4 (without options) and UDP headers of a frame.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Headers {
    to_mac: [u8; 6],
    from_mac: [u8; 6],
    ethertype: U16,
    version_and_length: u8,
    service: u8,
    ip_length: U16,
    identification: U16,
    fragment: U16,
    hops: u8,
    protocol: u8,
    ip_checksum: U16,
    from: [u8; 4],
    to: [u8; 4],
    from_port: U16,
    to_port: U16,
    udp_length: U16,
    udp_checksum: U16,
}

const _: () = assert!(HEADER_BYTES == ETHERNET_BYTES + IP_BYTES + UDP_BYTES);

/// Hardware address of a network card.
pub type Mac = [u8; 6];

/// A received datagram: its sender, and its payload within the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Datagram<'a> {
    /// Address and port of the sender, as the frame says.
    pub from: SocketAddrV4,
    /// Bytes behind the headers.
    pub payload: &'a [u8],
}

/// Writes the frame of a datagram into `frame`, which has room for it; returns its length.
///
/// # Panics
/// If `frame` is shorter than headers and payload, or the payload longer than a datagram can be.
pub fn write(
    frame: &mut [u8],
    (from_mac, to_mac): (Mac, Mac),
    (from, to): (SocketAddrV4, SocketAddrV4),
    hops: u8,
    payload: &[u8],
) -> usize {
    let length = HEADER_BYTES + payload.len();
    let ip_length = (IP_UDP_BYTES + payload.len()) as u16;
    let udp_length = ip_length - IP_BYTES as u16;
    let mut headers = Headers {
        to_mac,
        from_mac,
        ethertype: IPV4.into(),
        version_and_length: VERSION_AND_LENGTH,
        service: 0,
        ip_length: ip_length.into(),
        // Never fragmented, so no number is needed to put it together.
        identification: 0.into(),
        fragment: DONT_FRAGMENT.into(),
        hops,
        protocol: UDP,
        ip_checksum: 0.into(),
        from: from.ip().octets(),
        to: to.ip().octets(),
        from_port: from.port().into(),
        to_port: to.port().into(),
        udp_length: udp_length.into(),
        udp_checksum: 0.into(),
    };
    let ip = &headers.as_bytes()[ETHERNET_BYTES..ETHERNET_BYTES + IP_BYTES];
    headers.ip_checksum.set((!folded(sum(0, ip))).swap_bytes());
    let udp = &headers.as_bytes()[ETHERNET_BYTES + IP_BYTES..];
    let checksum = !folded(sum(sum(pseudo(&headers), udp), payload));
    // Zero means that there is none; all ones is the same number.
    let checksum = if checksum == 0 { 0xffff } else { checksum };
    headers.udp_checksum.set(checksum.swap_bytes());
    frame[..HEADER_BYTES].copy_from_slice(headers.as_bytes());
    frame[HEADER_BYTES..length].copy_from_slice(payload);
    length
}

/// Reads a frame that is to be a whole datagram to `to`; `None` for any other bytes.
///
/// A checksum over the pseudo header alone is taken as well as a full one: so frames come from a
/// process on this host, across a virtual link that leaves the rest to a card.
pub fn read<'a>(frame: &'a [u8], mac: Mac, to: SocketAddrV4) -> Option<Datagram<'a>> {
    let (headers, rest) = Headers::ref_from_prefix(frame).ok()?;
    // Multicast frames have the group's hardware address, the rest has the card's.
    let is_ours = headers.to_mac == mac || headers.to_mac == multicast_mac(*to.ip());
    let is_whole = headers.fragment.get() & FRAGMENT == 0;
    let is_udp = headers.ethertype.get() == IPV4
        && headers.version_and_length == VERSION_AND_LENGTH
        && headers.protocol == UDP;
    let is_to = headers.to == to.ip().octets() && headers.to_port.get() == to.port();
    if !(is_ours && is_whole && is_udp && is_to) {
        return None;
    }
    let udp_length = usize::from(headers.udp_length.get());
    // Short frames are padded behind the IP packet.
    let ip_payload = usize::from(headers.ip_length.get()).checked_sub(IP_BYTES)?;
    if udp_length > ip_payload || ip_payload > rest.len() + UDP_BYTES {
        return None;
    }
    let payload = &rest[..udp_length.checked_sub(UDP_BYTES)?];
    let ip = &frame[ETHERNET_BYTES..ETHERNET_BYTES + IP_BYTES];
    if folded(sum(0, ip)) != 0xffff {
        return None;
    }
    let pseudo = pseudo(headers);
    let checksum = headers.udp_checksum.get().swap_bytes();
    let udp = &frame[ETHERNET_BYTES + IP_BYTES..HEADER_BYTES];
    if checksum != 0
        && checksum != folded(pseudo)
        && folded(sum(sum(pseudo, udp), payload)) != 0xffff
    {
        return None;
    }
    let from = SocketAddrV4::new(Ipv4Addr::from(headers.from), headers.from_port.get());
    Some(Datagram { from, payload })
}

/// The hardware address of an IPv4 multicast group.
pub const fn multicast_mac(group: Ipv4Addr) -> Mac {
    let [_, b, c, d] = group.octets();
    [0x01, 0x00, 0x5e, b & 0x7f, c, d]
}

/// Sum of the pseudo header that a UDP checksum covers.
fn pseudo(headers: &Headers) -> u64 {
    // Protocol and length stand in the frame's order, which is the other one here.
    let length = u64::from(headers.udp_length.get().swap_bytes());
    sum(sum(u64::from(UDP) << 8, &headers.from), &headers.to) + length
}

/// Adds `bytes` to a sum in one's complement; the order of the bytes is that of the host, as the
/// sum does not depend on it. Only the last of several pieces may have an odd length.
#[inline]
fn sum(start: u64, bytes: &[u8]) -> u64 {
    let mut total = u128::from(start);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        total += u128::from(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    total += u128::from(u64::from_le_bytes(last));
    // Twice: the first addition may carry.
    let total = (total & u128::from(u64::MAX)) + (total >> 64);
    let total = ((total & u128::from(u64::MAX)) + (total >> 64)) as u64;
    // Below 2^34, so that sums of several pieces cannot overflow.
    (total & 0xffff_ffff) + (total >> 32)
}

/// A sum's 16 bits, carries added.
const fn folded(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACS: (Mac, Mac) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);

    fn addresses() -> (SocketAddrV4, SocketAddrV4) {
        let (from, to) = (Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2));
        (SocketAddrV4::new(from, 7001), SocketAddrV4::new(to, 7300))
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![0; HEADER_BYTES + payload.len()];
        assert_eq!(write(&mut frame, MACS, addresses(), 64, payload), frame.len());
        frame
    }

    #[test]
    fn a_known_datagram_has_its_known_bytes() {
        let frame = frame(b"abc");
        let text: Vec<String> = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        // The checksums were computed apart from this code, by RFC 791 and RFC 768.
        assert_eq!(
            text.concat(),
            "020000000002020000000001080045000\
             01f00004000401126cc0a0000010a0000021b591c84000bef95616263"
        );
    }

    #[test]
    fn datagrams_come_back_as_they_went() {
        let (from, to) = addresses();
        for length in [0, 1, 2, 7, 8, 9, 24, 1471, 1472] {
            let payload: Vec<u8> = (0..length).map(|n: usize| n as u8).collect();
            let mut frame = frame(&payload);
            let got = read(&frame, MACS.1, to).expect("it is for this port");
            assert_eq!((got.from, got.payload), (from, &payload[..]));
            // Padding behind a short frame is no part of it.
            frame.extend([9; 20]);
            assert_eq!(read(&frame, MACS.1, to).map(|got| got.payload), Some(&payload[..]));
            for bit in 0..8 * (HEADER_BYTES + length) {
                let mut bad = frame.clone();
                bad[bit / 8] ^= 1 << (bit % 8);
                // Nothing covers the hardware address of the sender.
                let is_free = (6..12).contains(&(bit / 8));
                assert_eq!(read(&bad, MACS.1, to).is_some(), is_free, "bit {bit} of {length}");
            }
        }
    }

    #[test]
    fn frames_without_a_full_checksum_are_taken() {
        let (_, to) = addresses();
        let mut none = frame(b"bytes");
        none[40..42].fill(0);
        assert!(read(&none, MACS.1, to).is_some());
        let mut partial = frame(b"bytes");
        let headers = Headers::read_from_bytes(&partial[..HEADER_BYTES]).expect("a header");
        partial[40..42].copy_from_slice(&folded(pseudo(&headers)).to_le_bytes());
        assert!(read(&partial, MACS.1, to).is_some());
        partial[40] ^= 1;
        assert!(read(&partial, MACS.1, to).is_none());
    }

    #[test]
    fn short_lengths_and_other_ports_are_refused() {
        let (from, to) = addresses();
        let whole = frame(b"bytes");
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], MACS.1, to), None, "{length} bytes");
        }
        assert_eq!(read(&whole, MACS.0, to), None, "another card's");
        assert_eq!(read(&whole, MACS.1, from), None, "another port's");
        let group = SocketAddrV4::new(Ipv4Addr::new(239, 192, 71, 2), 14_400);
        let mut frame = vec![0; HEADER_BYTES + 1];
        write(&mut frame, (MACS.0, multicast_mac(*group.ip())), (from, group), 1, b"x");
        assert!(read(&frame, MACS.1, group).is_some());
    }
}
