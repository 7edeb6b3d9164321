//! Words for a user who waits in vain: programs of other hosts, or of this one, seal their
//! datagrams, or the frames of their group, with another key, or with none.

use lanecast::{Context, Group};
use std::time::{Duration, Instant};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Looks in a row that must find refused datagrams: a single one may be anybody's, and a change of
/// keys reaches programs one after the other.
const LOOKS: u32 = 3;

/// A host whose datagrams or frames were refused, as it is told.
type Refused = (String, &'static str);

/// Refused datagrams or frames as a command has seen and told them. Each host is told once for each
/// reason, and few of them are named, whatever arrives.
#[derive(Debug)]
pub(crate) struct RefusedHosts {
    next: Instant,
    count: u64,
    looks: u32,
    told: Vec<Refused>,
}

impl RefusedHosts {
    pub(crate) fn new() -> Self {
        Self { next: Instant::now(), count: 0, looks: 0, told: Vec::new() }
    }

    /// Tells the user of hosts whose datagrams have been refused for some seconds.
    pub(crate) fn tell(&mut self, context: &Context) {
        self.tell_due(|| {
            let report = context.refused_datagrams();
            let hosts = report.hosts.iter().map(|host| (host.address.to_string(), host.reason));
            (report.datagrams, hosts.collect())
        });
    }

    /// Tells the user of hosts whose frames a member has refused for some seconds.
    pub(crate) fn tell_group(&mut self, group: &Group) {
        self.tell_due(|| {
            let report = group.refused_frames();
            let hosts = report.hosts.iter().map(|host| {
                let address = host.address.map(|address| address.to_string());
                (address.unwrap_or_else(|| "this host".into()), host.reason)
            });
            (report.frames, hosts.collect())
        });
    }

    /// Takes the count and the hosts, and tells the user, if a look is due.
    fn tell_due(&mut self, report: impl FnOnce() -> (u64, Vec<Refused>)) {
        let now = Instant::now();
        if now >= self.next {
            let (count, hosts) = report();
            let lines = self.look(now, count, hosts.into_iter());
            lines.iter().for_each(|line| crate::output::warn(line));
        }
    }

    /// The words for a look at `now`, with `count` refused so far.
    fn look(
        &mut self,
        now: Instant,
        count: u64,
        hosts: impl Iterator<Item = Refused>,
    ) -> Vec<String> {
        self.next = now + INTERVAL;
        self.looks = if count > self.count { self.looks + 1 } else { 0 };
        self.count = count;
        if self.looks < LOOKS {
            return Vec::new();
        }
        let new: Vec<Refused> = hosts.filter(|host| !self.told.contains(host)).collect();
        self.told.extend_from_slice(&new);
        let line = |(host, reason): &Refused| {
            format!("frames of {host} could not be opened: the key differs? One {reason}")
        };
        new.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_told_once_after_some_looks_in_a_row() {
        let (mut refused, now) = (RefusedHosts::new(), Instant::now());
        let host = |last: &u8| (format!("10.0.0.{last}"), "is so");
        let mut look = |count, hosts: &[u8]| refused.look(now, count, hosts.iter().map(host));
        for (count, hosts) in [(0, &[][..]), (5, &[7]), (6, &[7]), (6, &[7]), (7, &[7])] {
            assert_eq!(look(count, hosts), [""; 0]);
        }
        assert_eq!(look(8, &[7]), [""; 0], "a pause begins the count anew");
        let words = "frames of 10.0.0.7 could not be opened: the key differs? One is so";
        assert_eq!(look(9, &[7]), [words]);
        for count in 10..1_000 {
            assert_eq!(look(count, &[7]), [""; 0]);
        }
        assert_eq!(look(1_000, &[7, 8]).len(), 1, "another host");
    }

    #[test]
    fn a_host_is_told_once_for_each_reason() {
        let (mut refused, now) = (RefusedHosts::new(), Instant::now());
        let mut look = |count, reasons: &[&'static str]| {
            let host = |reason: &&'static str| ("10.0.0.7".into(), *reason);
            refused.look(now, count, reasons.iter().map(host))
        };
        let told: Vec<_> = (1..=3).flat_map(|count| look(count, &["has no key"])).collect();
        assert_eq!(told.len(), 1, "{told:?}");
        let told = look(4, &["has no key", "has another key"]);
        assert!(told.len() == 1 && told[0].ends_with("One has another key"), "{told:?}");
        assert_eq!(look(5, &["has no key", "has another key"]), [""; 0]);
    }
}
