//! Limits on TLS handshakes of accepted connections, while it is not known who connects.
//!
//! Owned by a publisher's `TcpSender` or by a `ResolverDaemon`, and used on its thread. A handshake
//! costs that thread a signature and a key exchange, and any host can begin any number of them. So
//! each address begins a bounded number a second; steps take a bounded part of the thread's time;
//! and addresses take turns, so that one of them holds up only itself.

use crate::rate_limiter::RateLimiter;
use crate::telemetry::{HandshakeCount, Telemetry};
use lanecast_protocol::{MILLISECOND, Nanos, SECOND};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// The most connections from one address that have not shown who they are.
pub(crate) const UNKNOWN_PER_ADDRESS: usize = 16;
/// Handshakes that an address may begin in a second, and at once: as many as it has places, so that
/// those that came first have time before a newcomer takes their place.
const BEGUN_RATE: u64 = 100;
const BEGUN_BURST: u64 = UNKNOWN_PER_ADDRESS as u64;
/// Time without a handshake after which an address is as good as new.
const FORGET: Nanos = BEGUN_BURST * SECOND / BEGUN_RATE;
/// The most addresses that are remembered.
const ADDRESSES_MAX: usize = 1_024;
/// The longest pause after a step: the system may have taken the CPU away during it.
const PAUSE_MAX: Nanos = 20 * MILLISECOND;

/// TLS handshakes of accepted connections so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HandshakeCounters {
    /// Handshakes begun.
    pub begun: u64,
    /// Handshakes completed.
    pub completed: u64,
    /// Connections closed at once because their address begins too many handshakes a second.
    pub refused: u64,
    /// Connections that gave way to newcomers before they had shown who they are, with TLS or
    /// without.
    pub displaced: u64,
    /// Steps: reads that went on with a handshake.
    pub steps: u64,
    /// Nanoseconds that steps took.
    pub nanos: u64,
}

/// The part of its time that a thread gives to handshakes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HandshakeShare {
    /// A tenth: messages wait meanwhile.
    Tenth,
    /// Half: all other clients are served between two steps.
    Half,
}

/// Outcome of a connection's attempt to begin a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeAdmission {
    /// The handshake may begin.
    Admitted,
    /// The address begins too many; `is_first` since that was last told.
    Refused { is_first: bool },
}

/// The words of a refusal, behind the address.
pub(crate) const OVER_RATE: &str = "begins more than 100 TLS handshakes a second: the others of \
                                    its programs are made to try again";

/// The connection that gives way to a newcomer from `from`: the oldest from there if it has as many
/// as one address may have, or else the oldest of all if there are too many. `unknown` are those
/// that have not shown who they are, the oldest first.
pub(crate) fn gives_way(
    unknown: impl Iterator<Item = (u64, IpAddr)>,
    from: IpAddr,
    is_crowded: impl FnOnce(usize) -> bool,
) -> Option<u64> {
    let unknown: Vec<(u64, IpAddr)> = unknown.collect();
    let mut here = unknown.iter().filter(|(_, address)| *address == from);
    let oldest = if here.clone().count() >= UNKNOWN_PER_ADDRESS {
        here.next()
    } else {
        unknown.first().filter(|_| is_crowded(unknown.len()))
    };
    oldest.map(|(number, _)| *number)
}

/// Handshakes of one address.
#[derive(Debug)]
struct Address {
    begun: RateLimiter,
    /// Number of the last step that served it; 0 before the first one.
    served: u64,
    /// A refusal was told.
    is_told: bool,
}

/// The limits, and the count of what they let through.
#[derive(Debug)]
pub(crate) struct HandshakeLimiter {
    share: HandshakeShare,
    /// No step before.
    next_step: Nanos,
    addresses: BTreeMap<IpAddr, Address>,
    counters: HandshakeCounters,
    telemetry: Telemetry,
}

impl HandshakeLimiter {
    pub(crate) const fn new(share: HandshakeShare, telemetry: Telemetry) -> Self {
        Self {
            share,
            next_step: 0,
            addresses: BTreeMap::new(),
            counters: HandshakeCounters {
                begun: 0,
                completed: 0,
                refused: 0,
                displaced: 0,
                steps: 0,
                nanos: 0,
            },
            telemetry,
        }
    }

    pub(crate) const fn counters(&self) -> &HandshakeCounters {
        &self.counters
    }

    /// Whether a connection from `from` may begin a handshake.
    pub(crate) fn admit(&mut self, now: Nanos, from: IpAddr) -> HandshakeAdmission {
        if !self.addresses.contains_key(&from) {
            self.make_room(now);
        }
        let address = self.addresses.entry(from).or_insert_with(|| Address {
            begun: RateLimiter::new(BEGUN_RATE, BEGUN_BURST, now),
            served: 0,
            is_told: false,
        });
        if address.begun.take(now) {
            self.counters.begun += 1;
            self.telemetry.count_handshakes(HandshakeCount::Begun, 1);
            return HandshakeAdmission::Admitted;
        }
        let is_first = !std::mem::replace(&mut address.is_told, true);
        self.counters.refused += 1;
        self.telemetry.count_handshakes(HandshakeCount::Refused, 1);
        HandshakeAdmission::Refused { is_first }
    }

    /// Forgets addresses, so that there is room for another one.
    fn make_room(&mut self, now: Nanos) {
        if self.addresses.len() < ADDRESSES_MAX {
            return;
        }
        self.addresses.retain(|_, it| now.saturating_sub(it.begun.refilled()) < FORGET);
        if self.addresses.len() >= ADDRESSES_MAX {
            let longest = self.addresses.iter().min_by_key(|(_, it)| it.begun.refilled());
            if let Some(address) = longest.map(|(address, _)| *address) {
                self.addresses.remove(&address);
            }
        }
    }

    /// A connection gave way to a newcomer.
    pub(crate) fn displaced(&mut self) {
        self.counters.displaced += 1;
        self.telemetry.count_handshakes(HandshakeCount::Displaced, 1);
    }

    /// Whether a step may be taken now.
    pub(crate) const fn is_due(&self, now: Nanos) -> bool {
        self.next_step <= now
    }

    /// Time of the next step.
    pub(crate) const fn next_step(&self) -> Nanos {
        self.next_step
    }

    /// Sorts connections in the order in which they get the next step: the address that was served
    /// longest ago is first, and there the oldest connection.
    pub(crate) fn sort(&self, waiting: &mut [(u64, IpAddr)]) {
        let served = |from: &IpAddr| self.addresses.get(from).map_or(0, |it| it.served);
        waiting.sort_unstable_by_key(|(number, from)| (served(from), *number));
    }

    /// A step for a connection from `from` was taken, and `took` so long.
    pub(crate) fn on_step(&mut self, now: Nanos, from: IpAddr, took: Duration, completed: bool) {
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(Nanos::MAX);
        self.counters.steps += 1;
        self.counters.nanos = self.counters.nanos.saturating_add(nanos);
        self.counters.completed += u64::from(completed);
        self.telemetry.count_handshakes(HandshakeCount::Nanos, nanos);
        self.telemetry.count_handshakes(HandshakeCount::Completed, u64::from(completed));
        let pause = match self.share {
            HandshakeShare::Tenth => nanos.saturating_mul(9),
            HandshakeShare::Half => nanos,
        };
        self.next_step = now.saturating_add(nanos).saturating_add(pause.min(PAUSE_MAX));
        if let Some(address) = self.addresses.get_mut(&from) {
            address.served = self.counters.steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: Duration = Duration::from_micros(200);

    fn limiter(share: HandshakeShare) -> HandshakeLimiter {
        HandshakeLimiter::new(share, Telemetry::disabled())
    }

    fn address(number: u16) -> IpAddr {
        IpAddr::from([10, 0, (number >> 8) as u8, number as u8])
    }

    #[test]
    fn an_address_begins_its_rate_and_takes_nothing_from_others() {
        let mut limiter = limiter(HandshakeShare::Tenth);
        let mut begin = |now, from| limiter.admit(now, from) == HandshakeAdmission::Admitted;
        let at_once = (0..1_000).filter(|_| begin(SECOND, address(1))).count();
        assert_eq!(at_once, UNKNOWN_PER_ADDRESS);
        assert!(begin(SECOND, address(2)));
        let later = (0..5_000).filter(|step| begin(SECOND + step * MILLISECOND, address(1)));
        assert!((498..=500).contains(&later.count()));
        let told = |limiter: &mut HandshakeLimiter| limiter.admit(6 * SECOND, address(3));
        let outcomes: Vec<_> = (0..20).map(|_| told(&mut limiter)).collect();
        let refused = |is_first| HandshakeAdmission::Refused { is_first };
        assert_eq!(outcomes[16], refused(true));
        assert!(outcomes[17..].iter().all(|outcome| *outcome == refused(false)), "told once");
    }

    #[test]
    fn addresses_are_forgotten_when_there_are_too_many() {
        let mut limiter = limiter(HandshakeShare::Tenth);
        for number in 0..5_000 {
            let admitted = limiter.admit(u64::from(number), address(number));
            assert_eq!(admitted, HandshakeAdmission::Admitted);
            assert!(limiter.addresses.len() <= ADDRESSES_MAX);
        }
        // One more, after all have been silent.
        limiter.admit(SECOND, address(6_000));
        assert_eq!(limiter.addresses.len(), 1);
        assert_eq!(limiter.counters().begun, 5_001);
    }

    #[test]
    fn steps_take_their_share_of_the_time_and_no_more() {
        for (share, parts) in [(HandshakeShare::Tenth, 10), (HandshakeShare::Half, 2)] {
            let (mut limiter, mut now, mut busy) = (limiter(share), 0, 0);
            while now < 10 * SECOND {
                now += 10_000;
                if limiter.is_due(now) {
                    let nanos = STEP.as_nanos() as u64;
                    limiter.on_step(now, address(1), STEP, false);
                    now += nanos;
                    busy += nanos;
                }
            }
            assert!(busy <= now / parts && busy > now / parts * 9 / 10, "{busy} of {now}");
        }
        // A step during which the thread had no CPU does not stop handshakes for long.
        let mut limiter = limiter(HandshakeShare::Tenth);
        limiter.on_step(0, address(1), Duration::from_secs(5), false);
        assert_eq!(limiter.next_step(), 5 * SECOND + PAUSE_MAX);
    }

    #[test]
    fn addresses_take_turns_whatever_one_of_them_begins() {
        let mut limiter = limiter(HandshakeShare::Half);
        for number in [1, 1, 1, 2, 3] {
            limiter.admit(0, address(number));
        }
        let from = [(1, 1), (2, 1), (3, 1), (4, 2), (5, 3)];
        let mut waiting = from.map(|(number, from)| (number, address(from)));
        let mut served = Vec::new();
        for turn in 0..6 {
            limiter.sort(&mut waiting);
            served.push(waiting[0].0);
            limiter.on_step(turn, waiting[0].1, STEP, false);
        }
        assert_eq!(served, [1, 4, 5, 1, 4, 5]);
    }

    #[test]
    fn the_oldest_of_an_address_gives_way_and_of_all_if_there_are_too_many() {
        let other = (1, address(9));
        let here = (2..2 + UNKNOWN_PER_ADDRESS as u64).map(|number| (number, address(1)));
        let all = || std::iter::once(other).chain(here.clone());
        let few = |_: usize| false;
        assert_eq!(gives_way(all(), address(1), few), Some(2));
        assert_eq!(gives_way(all().skip(2), address(1), few), None);
        assert_eq!(gives_way(all(), address(2), few), None);
        let crowded = |count: usize| count > UNKNOWN_PER_ADDRESS;
        assert_eq!(gives_way(all(), address(2), crowded), Some(1));
        assert_eq!(gives_way(std::iter::empty(), address(2), |_| true), None);
    }
}
