//! Admission of discovered publishers: limits on sessions, groups and the rate of joins.
//!
//! Any host can advertise any number of publishers; a subscriber joins only as many as these
//! limits allow.

use crate::context::NetContext;
use crate::rate_limiter::RateLimiter;
use crate::receive_session::ReceiveSession;
use crate::receive_sockets::ReceiveSockets;
use crate::settings::NetSettings;
use crate::source::{Source, TransportKind};
use lanecast_protocol::Nanos;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// The most joins in progress, and the most of them at one address.
const JOINS_MAX: usize = 64;
const JOINS_PER_ADDRESS: usize = 32;
/// The most UDP sessions at one address: they take memory, but no descriptor each.
const SESSIONS_PER_ADDRESS: usize = 4_096;
/// The most groups, each of which takes a descriptor, and the most of them whose publishers are all
/// at one address. Groups of the settings are joined in any case.
const GROUPS_MAX: usize = 64;
const GROUPS_PER_ADDRESS: usize = GROUPS_MAX / 4;
/// Joins started in a second, and in a burst.
const JOINS_RATE: u64 = 500;
const JOINS_BURST: u64 = 128;

/// Outcome of an attempt to join a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Joined, or being joined.
    Joined,
    /// Over the rate of joins: try again soon.
    Deferred,
    /// Over a limit of sessions or groups.
    Refused,
}

/// Limits of a subscriber's joins.
#[derive(Debug)]
pub(crate) struct JoinLimiter(RateLimiter);

impl JoinLimiter {
    pub(crate) const fn new() -> Self {
        Self(RateLimiter::new(JOINS_RATE, JOINS_BURST, 0))
    }

    /// Whether a join of `source` may be started beside `sessions`.
    pub(crate) fn admit(
        &mut self,
        context: &NetContext,
        sockets: &ReceiveSockets,
        sessions: &[ReceiveSession],
        source: &Source,
        now: Nanos,
    ) -> Admission {
        let address = source.address.ip();
        let at_address = |it: &&ReceiveSession| it.source().address.ip() == address;
        let same = |it: &&ReceiveSession| at_address(it) && it.source().kind == source.kind;
        let most = match source.kind {
            // Each takes a descriptor: the limit is lower, and a setting.
            TransportKind::Tcp => context.settings.streams_each,
            TransportKind::Rm | TransportKind::Ru => SESSIONS_PER_ADDRESS,
        };
        let is_known = |group| is_of_settings(group, &context.settings);
        let has_room_for = |group| {
            let publishers = sessions.iter().filter_map(|it| Some((it.group()?, it.source())));
            let publishers = publishers.map(|(group, source)| (group, source.address.ip()));
            sockets.has_group(group)
                || is_known(group)
                || has_room_for_group(address, publishers.filter(|(it, _)| !is_known(*it)))
        };
        // Counted by address: one host cannot use up the sessions and groups of all.
        if sessions.iter().filter(same).count() >= most || !source.group.is_none_or(has_room_for) {
            context.telemetry.error(&format!(
                "not every publisher at {address} is joined: at most {most} of one address by {}, \
                 and {GROUPS_MAX} groups, {GROUPS_PER_ADDRESS} of them of one address alone; for \
                 tcp, net.streams_each sets it, and groups of net.groups are always joined",
                source.kind
            ));
            return Admission::Refused;
        }
        // A join to a host that does not answer takes a place until it times out.
        let joining = sessions.iter().filter(|session| session.is_joining());
        let (all, there) = joining.fold((0, 0), |(all, there), session| {
            (all + 1, there + usize::from(at_address(&session)))
        });
        // The token last: a deferred join does not cost one.
        if all >= JOINS_MAX || there >= JOINS_PER_ADDRESS || !self.0.take(now) {
            return Admission::Deferred;
        }
        Admission::Joined
    }
}

/// Whether the settings name a group.
fn is_of_settings(group: SocketAddr, settings: &NetSettings) -> bool {
    group == settings.group || settings.groups.iter().any(|(_, it)| *it == group)
}

/// Whether another group may be joined for a publisher at `address`, beside those of the joined
/// `publishers`, without groups of the settings.
fn has_room_for_group(
    address: IpAddr,
    publishers: impl Iterator<Item = (SocketAddr, IpAddr)>,
) -> bool {
    // Whether only this address publishes to a group.
    let mut is_alone = BTreeMap::new();
    for (group, from) in publishers {
        *is_alone.entry(group).or_insert(true) &= from == address;
    }
    let alone = is_alone.values().filter(|is_alone| **is_alone).count();
    is_alone.len() < GROUPS_MAX && alone < GROUPS_PER_ADDRESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(number: usize) -> SocketAddr {
        SocketAddr::from(([239, 1, 1, number as u8], 7_000))
    }

    fn host(number: usize) -> IpAddr {
        IpAddr::from([10, 0, 0, number as u8])
    }

    /// Groups that publishers at `hosts` have got, each asking for as many as it can.
    fn joined(hosts: usize, each: usize) -> Vec<(SocketAddr, IpAddr)> {
        let mut joined = Vec::new();
        for (host, number) in (0..hosts * each).map(|at| (host(at / each), at)) {
            if has_room_for_group(host, joined.iter().copied()) {
                joined.push((group(number), host));
            }
        }
        joined
    }

    #[test]
    fn one_address_cannot_use_up_the_groups_of_others() {
        assert_eq!(joined(1, 100).len(), GROUPS_PER_ADDRESS);
        assert_eq!(joined(2, 100).len(), 2 * GROUPS_PER_ADDRESS);
        assert_eq!(joined(9, 20).len(), GROUPS_MAX);
    }

    #[test]
    fn groups_that_others_publish_to_are_not_counted_for_an_address() {
        let mut joined = joined(1, 100);
        assert!(!has_room_for_group(host(0), joined.iter().copied()));
        joined.push((group(0), host(1)));
        assert!(has_room_for_group(host(0), joined.iter().copied()));
    }

    #[test]
    fn groups_of_the_settings_are_known() {
        let groups = vec![("prices".to_owned(), group(2))];
        let settings = NetSettings { group: group(1), groups, ..NetSettings::default() };
        let known = (0..4).filter(|number| is_of_settings(group(*number), &settings));
        assert_eq!(known.collect::<Vec<_>>(), [1, 2]);
    }
}
