//! The suite between the threads of a process: in memory of its own, and in a domain that other
//! processes might join as well.

use lanecast_base::WaitStrategy;
use lanecast_shm::{Domain, DomainSettings, SlowConsumerPolicy, Visibility};
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
    fn new(visibility: Visibility, wait: WaitStrategy, first_position: u64) -> Self {
        Self::with(DomainSettings {
            visibility,
            publisher_wait: wait,
            subscriber_wait: wait,
            first_position,
            ..DomainSettings::default()
        })
    }

    fn with(settings: DomainSettings) -> Self {
        let directory = TempDir::new_in("/dev/shm").expect("a directory");
        let domain = Domain::open(DomainSettings {
            directory: directory.path().join("domain"),
            window_bytes: WINDOW_BYTES,
            ..settings
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

/// The whole suite, each time with another way of waiting or another first position.
macro_rules! suites {
    ($visibility:ident, $($name:ident: $wait:ident from $first:expr,)*) => {
        $(mod $name {
            use super::*;
            lanecast_conformance::conformance_tests!(
                Stage::new(Visibility::$visibility, WaitStrategy::$wait, $first)
            );
        })*
    };
}

suites! { Process,
    spin: BusySpin from 0,
    spin_yield: SpinYield from 0,
    spin_park: SpinPark from 0,
    park: Park from 0,
    // Positions run through 2^64, and through 2^32.
    wrap_of_positions: SpinPark from u64::MAX - WINDOW_BYTES / 2,
    wrap_of_halves: SpinPark from u64::from(u32::MAX) - WINDOW_BYTES / 2,
}

suites! { Host,
    in_a_directory_spin_park: SpinPark from 0,
    in_a_directory_park: Park from 0,
}

#[test]
fn an_evicted_subscriber_knows_what_it_lost() {
    let slow_consumer = SlowConsumerPolicy::EvictAfter(Duration::from_millis(50));
    for visibility in [Visibility::Process, Visibility::Host] {
        let settings = DomainSettings { visibility, slow_consumer, ..DomainSettings::default() };
        let stage = Stage::with(settings);
        lanecast_conformance::interruptions::an_evicted_subscriber_knows_what_it_lost(&*stage);
    }
}

/// Persistence between threads.
mod persistence {
    use super::*;
    lanecast_conformance::persistence_tests!(Stage::new(
        Visibility::Process,
        WaitStrategy::SpinPark,
        0
    ));
}
