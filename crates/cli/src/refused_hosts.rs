//! Words for a user who waits in vain: programs of other hosts, or of this one, seal their
//! datagrams with another key, or with none.

use lanecast::Context;
use lanecast::net::RefusedDatagramsReport;
use std::net::IpAddr;
use std::time::{Duration, Instant};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Looks in a row that must find refused datagrams: a single one may be anybody's, and a change of
/// keys reaches programs one after the other.
const LOOKS: u32 = 3;

/// Refused datagrams as a command has seen and told them. Each host is told once, and a network
/// names few of them, whatever arrives.
#[derive(Debug)]
pub(crate) struct RefusedHosts {
    next: Instant,
    datagrams: u64,
    looks: u32,
    told: Vec<IpAddr>,
}

impl RefusedHosts {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now(), datagrams: 0, looks: 0, told: Vec::new() }
    }

    /// Tells the user of hosts whose datagrams have been refused for some seconds.
    pub(crate) fn tell(&mut self, context: &Context) {
        let now = Instant::now();
        if now >= self.next {
            let lines = self.look(now, context.refused_datagrams());
            lines.iter().for_each(|line| crate::output::warn(line));
        }
    }

    /// The words for a look at `now`.
    fn look(&mut self, now: Instant, refused: RefusedDatagramsReport) -> Vec<String> {
        self.next = now + INTERVAL;
        self.looks = if refused.datagrams > self.datagrams { self.looks + 1 } else { 0 };
        self.datagrams = refused.datagrams;
        if self.looks < LOOKS {
            return Vec::new();
        }
        let new = refused.hosts.into_iter().filter(|host| !self.told.contains(&host.address));
        let new: Vec<_> = new.collect();
        self.told.extend(new.iter().map(|host| host.address));
        let line = |host: &lanecast::net::RefusedHost| {
            let (address, reason) = (host.address, host.reason);
            format!("frames of {address} could not be opened: the key differs? One {reason}")
        };
        new.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast::net::RefusedHost;

    fn report(datagrams: u64, hosts: &[u8]) -> RefusedDatagramsReport {
        let host = |last: &u8| RefusedHost { address: [10, 0, 0, *last].into(), reason: "is so" };
        RefusedDatagramsReport { datagrams, hosts: hosts.iter().map(host).collect() }
    }

    #[test]
    fn a_host_is_told_once_after_some_looks_in_a_row() {
        let (mut refused, now) = (RefusedHosts::new(), Instant::now());
        let mut look = |datagrams, hosts: &[u8]| refused.look(now, report(datagrams, hosts));
        for (datagrams, hosts) in [(0, &[][..]), (5, &[7]), (6, &[7]), (6, &[7]), (7, &[7])] {
            assert_eq!(look(datagrams, hosts), [""; 0]);
        }
        assert_eq!(look(8, &[7]), [""; 0], "a pause begins the count anew");
        let words = "frames of 10.0.0.7 could not be opened: the key differs? One is so";
        assert_eq!(look(9, &[7]), [words]);
        for datagrams in 10..1_000 {
            assert_eq!(look(datagrams, &[7]), [""; 0]);
        }
        assert_eq!(look(1_000, &[7, 8]).len(), 1, "another host");
    }
}
