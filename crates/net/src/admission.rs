//! Admission of discovered publishers: limits on sessions, groups and the rate of joins.
//!
//! Any host can advertise any number of publishers; a subscriber joins only as many as these
//! limits allow.

use crate::context::NetContext;
use crate::rate_limiter::RateLimiter;
use crate::receive_session::ReceiveSession;
use crate::receive_sockets::ReceiveSockets;
use crate::source::{Source, TransportKind};
use lanecast_protocol::Nanos;

/// The most joins in progress, and the most of them at one address.
const JOINS_MAX: usize = 64;
const JOINS_PER_ADDRESS: usize = 32;
/// The most UDP sessions at one address: they take memory, but no descriptor each.
const SESSIONS_PER_ADDRESS: usize = 4_096;
/// The most groups: each takes a descriptor.
const GROUPS_MAX: usize = 64;
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
        let is_new_group = source.group.is_some_and(|group| !sockets.has_group(group));
        // Counted by address: one host cannot use up the sessions of all.
        if sessions.iter().filter(same).count() >= most
            || is_new_group && sockets.groups.len() >= GROUPS_MAX
        {
            context.telemetry.error(&format!(
                "not every publisher at {address} is joined: at most {most} of one address by {}, \
                 and {GROUPS_MAX} groups; for tcp, net.streams_each sets it",
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
