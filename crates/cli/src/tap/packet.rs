//! Captured packets: what carries frames in them, UDP payloads and TCP segments.

use etherparse::{LaxSlicedPacket, NetSlice, SlicedPacket, TransportSlice};
use std::net::{IpAddr, SocketAddr};

/// First header of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// With an Ethernet header.
    Ethernet,
    /// With an IP header.
    Ip,
    /// With a header of Linux's cooked captures.
    Cooked,
    /// With 4 bytes that name the protocol, before the IP header (BSD loopback).
    Null,
}

impl Link {
    /// The link type of a capture file.
    pub(super) const fn of_number(number: i32) -> Option<Self> {
        Some(match number {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            // Raw IP has different numbers on different systems.
            12 | 14 | 101 | 228 | 229 => Self::Ip,
            113 => Self::Cooked,
            _ => return None,
        })
    }

    /// The link type in a capture file that is written.
    pub(super) const fn number(self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::Ip => 101,
            Self::Cooked => 113,
        }
    }
}

/// A UDP payload or a TCP segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) payload: &'a [u8],
    /// `None`: UDP.
    pub(super) tcp: Option<Segment>,
}

/// Place of a segment in its TCP stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub(super) sequence: u32,
    pub(super) is_start: bool,
    pub(super) is_end: bool,
    pub(super) is_reset: bool,
}

impl<'a> Packet<'a> {
    /// Reads a captured packet; `None` if it carries neither UDP nor TCP, or is cut short before
    /// that.
    pub(super) fn read(link: Link, bytes: &'a [u8]) -> Option<Self> {
        let (net, transport) = match link {
            Link::Ethernet => {
                let packet = LaxSlicedPacket::from_ethernet(bytes).ok()?;
                (addresses_lax(&packet)?, packet.transport?)
            }
            Link::Cooked => {
                let packet = SlicedPacket::from_linux_sll(bytes).ok()?;
                (addresses(packet.net.as_ref()?)?, packet.transport?)
            }
            Link::Ip | Link::Null => {
                let skip = if link == Link::Null { 4 } else { 0 };
                let packet = LaxSlicedPacket::from_ip(bytes.get(skip..)?).ok()?;
                (addresses_lax(&packet)?, packet.transport?)
            }
        };
        let (from, to) = net;
        match transport {
            TransportSlice::Udp(udp) => Some(Self {
                from: SocketAddr::new(from, udp.source_port()),
                to: SocketAddr::new(to, udp.destination_port()),
                payload: udp.payload(),
                tcp: None,
            }),
            TransportSlice::Tcp(tcp) => Some(Self {
                from: SocketAddr::new(from, tcp.source_port()),
                to: SocketAddr::new(to, tcp.destination_port()),
                payload: tcp.payload(),
                tcp: Some(Segment {
                    sequence: tcp.sequence_number(),
                    is_start: tcp.syn(),
                    is_end: tcp.fin(),
                    is_reset: tcp.rst(),
                }),
            }),
            _ => None,
        }
    }
}

fn addresses_lax(packet: &LaxSlicedPacket<'_>) -> Option<(IpAddr, IpAddr)> {
    use etherparse::LaxNetSlice;
    Some(match packet.net.as_ref()? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        LaxNetSlice::Arp(_) => return None,
    })
}

fn addresses(net: &NetSlice<'_>) -> Option<(IpAddr, IpAddr)> {
    Some(match net {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into())
        }
        NetSlice::Arp(_) => return None,
    })
}
