//! Hosts whose datagrams are refused for their seal: a program can tell its user of them, who
//! otherwise waits in silence for programs with another key.
//!
//! Written on the cold path of the threads that read sockets, read by any thread. Bounded whatever
//! arrives, as anybody can send datagrams.

use lanecast_base::sync::{AtomicU64, Ordering};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// The most hosts that are remembered; a host counts once for each of its reasons.
const HOSTS_MAX: usize = 32;

/// Datagrams that are refused for their seal, by the counter of each reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusedDatagrams {
    /// Not sealed, and this program has keys.
    NotSealed = 4,
    /// Sealed with a key that this program does not have.
    UnknownKey = 5,
    /// Altered, for another address, or not sealed by a holder of the key.
    Forged = 6,
    /// Opened before, or too old to tell.
    Repeated = 7,
    /// Sealed, and this program has no key.
    NoKey = 8,
}

impl RefusedDatagrams {
    /// The reason, and what to do; `a datagram from HOST` stands before it.
    pub(crate) const fn reason(self) -> &'static str {
        match self {
            Self::NotSealed => {
                "is not sealed, and refused: give its programs the keys of net.key_file"
            }
            Self::UnknownKey => {
                "is sealed with a key that net.key_file does not have here: give both hosts the \
                 same keys"
            }
            Self::Forged => {
                "fails authentication: it was altered, or its address translated on the way, or \
                 its sender does not have the key"
            }
            Self::Repeated => "came before",
            Self::NoKey => {
                "is sealed, and this program has no key: set net.key_file to the keys of that host"
            }
        }
    }
}

/// A host whose datagrams could not be opened, for one reason; its programs may give several, as
/// each has keys of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHost {
    /// Address that the datagrams name as their sender's.
    pub address: IpAddr,
    /// The reason, and what to do.
    pub reason: &'static str,
}

/// Datagrams that were refused for their seal, and the hosts that sent them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedDatagramsReport {
    /// Refused datagrams of all hosts, without those that the network repeated.
    pub datagrams: u64,
    /// The first hosts that sent such datagrams, each once for each reason.
    pub hosts: Vec<RefusedHost>,
}

/// The same, as it is counted.
#[derive(Debug, Default)]
pub(crate) struct RefusedHosts {
    datagrams: AtomicU64,
    hosts: Mutex<Vec<RefusedHost>>,
}

impl RefusedHosts {
    /// Counts a datagram.
    pub(crate) fn count(&self) {
        self.datagrams.fetch_add(1, Ordering::Relaxed);
    }

    /// Remembers a host with the reason, if there is room.
    pub(crate) fn add(&self, address: IpAddr, refused: RefusedDatagrams) {
        let host = RefusedHost { address, reason: refused.reason() };
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        if hosts.len() < HOSTS_MAX && !hosts.contains(&host) {
            hosts.push(host);
        }
    }

    pub(crate) fn report(&self) -> RefusedDatagramsReport {
        let hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        RefusedDatagramsReport { datagrams: self.datagrams.load(Ordering::Relaxed), hosts }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn hosts_are_remembered_once_and_up_to_a_bound() {
        let refused = RefusedHosts::default();
        for number in 0..1_000_u32 {
            refused.count();
            let address = IpAddr::V4(Ipv4Addr::from_bits(number / 2));
            refused.add(address, RefusedDatagrams::UnknownKey);
        }
        let report = refused.report();
        assert_eq!((report.datagrams, report.hosts.len()), (1_000, HOSTS_MAX));
        let second = &report.hosts[1];
        assert_eq!(second.address.to_string(), "0.0.0.1");
        assert!(second.reason.contains("net.key_file"), "{}", second.reason);
    }

    #[test]
    fn a_host_is_remembered_once_for_each_reason() {
        let refused = RefusedHosts::default();
        let reasons = [RefusedDatagrams::NotSealed, RefusedDatagrams::UnknownKey];
        for reason in reasons.into_iter().chain(reasons) {
            refused.add(Ipv4Addr::LOCALHOST.into(), reason);
        }
        let told: Vec<_> = refused.report().hosts.into_iter().map(|host| host.reason).collect();
        assert_eq!(told, reasons.map(RefusedDatagrams::reason));
    }
}
