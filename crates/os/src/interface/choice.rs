//! Choice of an interface by an address, a network or a name.

use super::{Interface, interfaces};
use std::fmt;
use std::io;
use std::net::IpAddr;

/// Error of choosing an interface, with advice.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceError {
    /// No interface of this host matches.
    #[error(
        "no interface of this host is '{spec}': write a name, an address or a network in the form \
         10.29.4.0/24; there is {there}"
    )]
    Missing {
        /// The requested interface.
        spec: String,
        /// The interfaces of this host.
        there: Listing,
    },
    /// The network is malformed.
    #[error(
        "'{spec}' is no network: write an address, a slash and the prefix's length in bits, \
             as in 10.29.4.0/24 or fd00::/64"
    )]
    NoNetwork {
        /// The requested interface.
        spec: String,
    },
    /// The interface has no address.
    #[error(
        "interface {name} has no address: give it one with `ip address add`, or choose another"
    )]
    NoAddress {
        /// The interface.
        name: String,
    },
    /// The interface is down.
    #[error(
        "interface {name} is down: switch it on with `ip link set {name} up`, or choose another"
    )]
    Down {
        /// The interface.
        name: String,
    },
    /// A system call failed.
    #[error("the system does not tell its network interfaces ({0})")]
    System(io::Error),
}

impl From<io::Error> for InterfaceError {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Readable list of interfaces and their addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing(Vec<Interface>);

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut gap = "";
        for interface in self.0.iter().filter(|interface| interface.is_up) {
            f.write_str(gap)?;
            f.write_str(&interface.name)?;
            for (address, prefix) in &interface.addresses {
                write!(f, " {address}/{prefix}")?;
            }
            gap = ", ";
        }
        if gap.is_empty() { f.write_str("none that is up") } else { Ok(()) }
    }
}

/// Returns the interface that `spec` names, and its address to send from.
///
/// `spec` is an address of this host (`10.29.4.121`), a network in which it has one
/// (`10.29.4.0/24`, `fd00::/64`; the first interface counts) or an interface's name (`eth0`; its
/// first IPv4 address counts, or else its first of IPv6 that is valid beyond the link).
///
/// # Errors
/// If there is none, or it is down; the error lists what there is and says what to write.
pub fn choose(spec: &str) -> Result<(Interface, IpAddr), InterfaceError> {
    choose_from(interfaces()?, spec.trim())
}

fn choose_from(all: Vec<Interface>, spec: &str) -> Result<(Interface, IpAddr), InterfaceError> {
    let found = match spec.split_once('/') {
        Some((address, prefix)) => {
            let network = Network::parse(address, prefix)
                .ok_or_else(|| InterfaceError::NoNetwork { spec: spec.to_owned() })?;
            find(&all, |address| network.contains(address))
        }
        None => match spec.parse::<IpAddr>() {
            Ok(wanted) => find(&all, |address| address == wanted),
            Err(_) => match all.iter().find(|interface| interface.name == spec) {
                Some(interface) => Some((interface, first_address(interface)?)),
                None => None,
            },
        },
    };
    match found {
        Some((interface, _)) if !interface.is_up => {
            Err(InterfaceError::Down { name: interface.name.clone() })
        }
        Some((interface, address)) => Ok((interface.clone(), address)),
        None => Err(InterfaceError::Missing { spec: spec.to_owned(), there: Listing(all) }),
    }
}

/// The first address that fits, of an interface that is up if there is one.
fn find(all: &[Interface], fits: impl Fn(IpAddr) -> bool) -> Option<(&Interface, IpAddr)> {
    let fitting = |up: bool| {
        all.iter().filter(move |interface| interface.is_up == up).find_map(|interface| {
            let mut addresses = interface.addresses.iter();
            addresses.find(|(address, _)| fits(*address)).map(|(address, _)| (interface, *address))
        })
    };
    fitting(true).or_else(|| fitting(false))
}

fn first_address(interface: &Interface) -> Result<IpAddr, InterfaceError> {
    let rank = |address: &IpAddr| match address {
        IpAddr::V4(_) => 0,
        IpAddr::V6(address) if !address.is_unicast_link_local() => 1,
        IpAddr::V6(_) => 2,
    };
    let addresses = interface.addresses.iter().map(|(address, _)| *address);
    addresses
        .min_by_key(rank)
        .ok_or_else(|| InterfaceError::NoAddress { name: interface.name.clone() })
}

/// A network: all addresses that begin like one of them.
struct Network {
    address: IpAddr,
    prefix: u32,
}

impl Network {
    fn parse(address: &str, prefix: &str) -> Option<Self> {
        let (address, prefix) = (address.parse().ok()?, prefix.parse().ok()?);
        let longest = if matches!(address, IpAddr::V4(_)) { 32 } else { 128 };
        (prefix <= longest).then_some(Self { address, prefix })
    }

    fn contains(&self, address: IpAddr) -> bool {
        let alike = match (self.address, address) {
            (IpAddr::V4(ours), IpAddr::V4(other)) => {
                (u32::from(ours) ^ u32::from(other)).leading_zeros()
            }
            (IpAddr::V6(ours), IpAddr::V6(other)) => {
                (u128::from(ours) ^ u128::from(other)).leading_zeros()
            }
            _ => return false,
        };
        alike >= self.prefix
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, is_up: bool, addresses: &[&str]) -> Interface {
        let parsed = |text: &&str| {
            let (address, prefix) = text.split_once('/').unwrap();
            (address.parse().unwrap(), prefix.parse().unwrap())
        };
        Interface {
            name: name.to_owned(),
            index: 1,
            addresses: addresses.iter().map(parsed).collect(),
            mtu: 1500,
            is_up,
            is_loopback: false,
            is_multicast: true,
        }
    }

    fn host() -> Vec<Interface> {
        vec![
            interface("lo", true, &["127.0.0.1/8", "::1/128"]),
            interface("spare", false, &["10.29.4.7/24"]),
            interface("data", true, &["fe80::1/64", "fd00:4::121/64", "10.29.4.121/24"]),
            interface("six", true, &["fe80::2/64", "fd00:5::1/64"]),
            interface("bare", true, &[]),
        ]
    }

    #[test]
    fn addresses_networks_and_names_are_understood() {
        for (spec, name, address) in [
            ("10.29.4.121", "data", "10.29.4.121"),
            ("10.29.4.0/24", "data", "10.29.4.121"),
            ("10.29.4.99/16", "data", "10.29.4.121"),
            ("0.0.0.0/0", "lo", "127.0.0.1"),
            ("data", "data", "10.29.4.121"),
            ("six", "six", "fd00:5::1"),
            ("fd00:5::/64", "six", "fd00:5::1"),
            ("fd00:4::121", "data", "fd00:4::121"),
        ] {
            let (interface, chosen) = choose_from(host(), spec).unwrap();
            assert_eq!((interface.name.as_str(), chosen.to_string().as_str()), (name, address));
        }
    }

    #[test]
    fn errors_say_what_there_is_and_what_to_write() {
        for (spec, words) in [
            ("10.30.0.0/16", "10.29.4.121/24"),
            ("eth7", "lo 127.0.0.1/8 ::1/128, data fe80::1/64"),
            ("", "write a name"),
            ("10.29.4.0/33", "no network"),
            ("eth0/24", "no network"),
            ("10.29.4.0/", "no network"),
            ("bare", "ip address add"),
            ("spare", "ip link set spare up"),
            ("10.29.4.7", "is down"),
        ] {
            let error = choose_from(host(), spec).unwrap_err().to_string();
            assert!(error.contains(words), "{spec}: {error}");
        }
        assert!(choose_from(Vec::new(), "x").unwrap_err().to_string().contains("none that is up"));
    }

    #[test]
    fn this_host_is_found_on_its_own_loopback() {
        let (interface, address) = choose("127.0.0.1").unwrap();
        assert!(interface.is_loopback);
        assert_eq!(choose(&interface.name).unwrap(), (interface, address));
    }
}
