//! The suite over the way between processes, with both ends in one.

use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy};
use std::ops::Deref;
use std::time::Duration;
use tempfile::TempDir;

/// The smallest window, so that every case goes around it many times.
const WINDOW_BYTES: u64 = 64 << 10;

/// A domain of its own.
struct Stage {
    domain: Domain,
    _directory: TempDir,
}

impl Stage {
    fn new(wait: WaitStrategy, first_position: u64) -> Self {
        Self::with(SlowConsumerPolicy::Wait, wait, first_position)
    }

    fn with(slow_consumer: SlowConsumerPolicy, wait: WaitStrategy, first_position: u64) -> Self {
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let domain = Domain::open(DomainSettings {
            directory: directory.path().join("domain"),
            window_bytes: WINDOW_BYTES,
            publisher_wait: wait,
            subscriber_wait: wait,
            slow_consumer,
            first_position,
            local_join: false,
            ..DomainSettings::default()
        });
        Self { domain: domain.expect("a domain"), _directory: directory }
    }
}

impl Deref for Stage {
    type Target = Domain;
    fn deref(&self) -> &Domain {
        &self.domain
    }
}

mod spin {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::BusySpin, 0));
}

mod spin_yield {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::SpinYield, 0));
}

mod spin_park {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::SpinPark, 0));
}

mod park {
    use super::*;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::Park, 0));
}

/// Positions run through 2^64.
mod wrap_of_positions {
    use super::*;
    const FIRST: u64 = u64::MAX - WINDOW_BYTES / 2;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::SpinPark, FIRST));
}

/// Positions run through 2^32: nothing on the way is cut to half its size.
mod wrap_of_halves {
    use super::*;
    const FIRST: u64 = u32::MAX as u64 - WINDOW_BYTES / 2;
    lanecast_conformance::conformance_tests!(Stage::new(WaitStrategy::SpinPark, FIRST));
}

/// A subscriber that stalls, across the wrap of positions too.
#[test]
fn an_evicted_subscriber_knows_what_it_lost() {
    for first in [0, u64::MAX - WINDOW_BYTES / 2] {
        let policy = SlowConsumerPolicy::EvictAfter(Duration::from_millis(50));
        let stage = Stage::with(policy, WaitStrategy::SpinPark, first);
        lanecast_conformance::interruptions::an_evicted_subscriber_knows_what_it_lost(&*stage);
    }
}

/// Persistence over memory shared by processes.
mod persistence {
    use super::*;
    lanecast_conformance::persistence_tests!(Stage::new(WaitStrategy::SpinPark, 0));
}
