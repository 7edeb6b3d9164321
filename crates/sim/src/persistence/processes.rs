//! Stores and publishers of a run, as processes that start and crash.

use super::log::SimLog;
use super::scenario::StoreScenario;
use super::tamper::StoreTamper;
use crate::rng::SimRng;
use lanecast_persistence::{Source, SourceSettings, Store, StoreSettings};
use lanecast_protocol::{MILLISECOND, Nanos};

/// A store and its disk.
#[derive(Debug)]
pub(super) struct StoreProcess {
    pub(super) store: Option<Store>,
    pub(super) log: SimLog,
    pub(super) incarnation: u64,
    pub(super) life: u32,
    pub(super) is_synchronizing: bool,
    /// Nothing reaches it, and nothing leaves it, until then.
    pub(super) cut_until: Nanos,
}

impl StoreProcess {
    /// A store that has not started, with an empty disk.
    pub(super) fn new(pending_max: usize, incarnation: u64) -> Self {
        Self {
            store: None,
            log: SimLog::new(pending_max),
            incarnation,
            life: 0,
            is_synchronizing: false,
            cut_until: 0,
        }
    }

    /// The store as it comes back from its disk.
    pub(super) fn restored(&self) -> Store {
        let settings = StoreSettings {
            streams_max: 2,
            early_bytes: 1_000,
            receivers_max: 10,
            retry: 15 * MILLISECOND,
            longest_frame: 400,
        };
        self.log.restore(Store::new(settings, self.incarnation))
    }

    /// The process dies, and with it a part of what the disk has not written; returns whether it
    /// lived.
    pub(super) fn crash(&mut self, rng: &mut SimRng, tamper: StoreTamper) -> bool {
        if self.store.take().is_none() {
            return false;
        }
        self.log.crash(rng);
        match tamper {
            StoreTamper::LieOfDisk => self.log.lose_last(3),
            StoreTamper::ForgetPromises => self.log.forget_promises(),
            _ => {}
        }
        self.life += 1;
        self.is_synchronizing = false;
        true
    }
}

/// A run of the publisher.
#[derive(Debug)]
pub(super) struct PublisherProcess {
    pub(super) source: Option<Source>,
    pub(super) session: u64,
    /// Sequence of the first message of its run, once it is registered.
    pub(super) start: u64,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) is_superseded: bool,
}

impl PublisherProcess {
    /// A publisher that starts.
    pub(super) fn new(scenario: &StoreScenario, session: u64, epoch: u64, now: Nanos) -> Self {
        let settings = SourceSettings {
            flight_messages: scenario.flight,
            flight_bytes: 4_096,
            retry: 20 * MILLISECOND,
            longest_frame: 200,
            ..SourceSettings::new(scenario.store_groups())
        };
        let source = Some(Source::new(settings, session, epoch, now));
        Self { source, session, start: 0, bodies: Vec::new(), is_superseded: false }
    }

    /// Whether it runs, and no other has taken over.
    pub(super) const fn is_living(&self) -> bool {
        self.source.is_some() && !self.is_superseded
    }

    /// Whether all that it sent is stable.
    pub(super) fn is_drained(&self) -> bool {
        let source = self.source.as_ref();
        source.is_some_and(|it| it.is_registered() && it.stable() == it.next())
    }
}
