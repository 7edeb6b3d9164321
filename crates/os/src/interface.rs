//! The network interfaces of this host, and the choice of one: getifaddrs(3), netdevice(7).

mod choice;

pub use self::choice::{InterfaceError, choose};

use crate::checked;
use nix::ifaddrs::InterfaceAddress;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name, such as `eth0`.
    pub name: String,
    /// The kernel's number of the interface.
    pub index: u32,
    /// Addresses, each with the length of its network's prefix in bits.
    pub addresses: Vec<(IpAddr, u8)>,
    /// MTU, in bytes; 0 if unknown.
    pub mtu: u32,
    /// Whether the interface is up.
    pub is_up: bool,
    /// Whether the interface is a loopback.
    pub is_loopback: bool,
    /// Whether the interface declares multicast. Loopback carries it without declaring it.
    pub is_multicast: bool,
}

/// The interfaces of this host, in the kernel's order.
///
/// # Errors
/// If a system call fails.
pub fn interfaces() -> io::Result<Vec<Interface>> {
    let asked = Socket::new(Domain::IPV4, Type::DGRAM.cloexec(), None)?;
    let mut found: Vec<Interface> = Vec::new();
    for entry in nix::ifaddrs::getifaddrs()? {
        let at = match found.iter().position(|known| known.name == entry.interface_name) {
            Some(at) => at,
            // It may have gone since.
            None if if_nametoindex(entry.interface_name.as_str()).is_err() => continue,
            None => {
                found.push(described(&entry, &asked));
                found.len() - 1
            }
        };
        found[at].addresses.extend(address(&entry));
    }
    found.sort_by_key(|interface| interface.index);
    Ok(found)
}

fn described(entry: &InterfaceAddress, asked: &Socket) -> Interface {
    let name = entry.interface_name.clone();
    Interface {
        index: if_nametoindex(name.as_str()).unwrap_or(0),
        addresses: Vec::new(),
        mtu: mtu(&name, asked).unwrap_or(0),
        is_up: entry.flags.contains(InterfaceFlags::IFF_UP),
        is_loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
        is_multicast: entry.flags.contains(InterfaceFlags::IFF_MULTICAST),
        name,
    }
}

/// The number of receive queues of an interface, as its driver tells; `None` if it does not.
pub fn receive_queues(name: &str) -> Option<u32> {
    /// ETHTOOL_GCHANNELS, of SIOCETHTOOL.
    const GET_CHANNELS: u32 = 0x3c;
    const SIOCETHTOOL: libc::c_ulong = 0x8946;
    // `struct ethtool_channels`: command, four limits, and the numbers of channels that receive,
    // send, do other work, and do both.
    let mut channels = [0_u32; 9];
    channels[0] = GET_CHANNELS;
    let asked = Socket::new(Domain::IPV4, Type::DGRAM.cloexec(), None).ok()?;
    let mut request = named_request(name);
    request.ifr_ifru.ifru_data = channels.as_mut_ptr().cast();
    let fd = asked.as_raw_fd();
    // SAFETY: the request has a terminated name, and points to room for the answer.
    checked(unsafe { libc::ioctl(fd, SIOCETHTOOL as _, &mut request) }).ok()?;
    Some(channels[5] + channels[8]).filter(|count| *count > 0)
}

/// A request about an interface.
fn named_request(name: &str) -> libc::ifreq {
    // SAFETY: all bits zero is an empty request.
    let mut request: libc::ifreq = unsafe { core::mem::zeroed() };
    // The last byte stays zero.
    let room = request.ifr_name.len() - 1;
    for (place, byte) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *place = byte as libc::c_char;
    }
    request
}

/// An entry's address and the length of its prefix; entries of other kinds have none.
fn address(entry: &InterfaceAddress) -> Option<(IpAddr, u8)> {
    let (address, mask) = (entry.address.as_ref()?, entry.netmask.as_ref());
    if let Some(v4) = address.as_sockaddr_in() {
        let mask = mask.and_then(|mask| mask.as_sockaddr_in());
        let prefix = mask.map_or(32, |mask| u32::from(mask.ip()).leading_ones());
        return Some((v4.ip().into(), prefix as u8));
    }
    let v6 = address.as_sockaddr_in6()?;
    let mask = mask.and_then(|mask| mask.as_sockaddr_in6());
    let prefix = mask.map_or(128, |mask| u128::from(mask.ip()).leading_ones());
    Some((v6.ip().into(), prefix as u8))
}

fn mtu(name: &str, asked: &Socket) -> Option<u32> {
    let mut request = named_request(name);
    // SAFETY: the request is writable and has a terminated name.
    checked(unsafe { libc::ioctl(asked.as_raw_fd(), libc::SIOCGIFMTU, &mut request) }).ok()?;
    // SAFETY: the system has written this part of the answer.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn loopback_is_found_with_its_address_and_size() {
        let all = interfaces().unwrap();
        let loopback = all.iter().find(|interface| interface.is_loopback).unwrap();
        assert!(loopback.is_up && loopback.index > 0 && loopback.mtu >= 1500, "{loopback:?}");
        assert!(loopback.addresses.contains(&(Ipv4Addr::LOCALHOST.into(), 8)), "{loopback:?}");
        let mut names: Vec<_> = all.iter().map(|interface| &interface.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len(), "each is there once");
    }
}
