//! Stores and publishers of a run, as processes that start and crash.

use super::collected::{SOURCE, TOPIC};
use super::log::SimLog;
use super::scenario::StoreScenario;
use super::store_list::StoreList;
use super::tamper::StoreTamper;
use crate::rng::SimRng;
use lanecast_persistence::{
    Pacing, Source, SourceSettings, Store, StoreLog, StoreSettings, UnconsumedBounds,
};
use lanecast_protocol::{MILLISECOND, Nanos};
use lanecast_wire::store::Ballot;
use std::ops::Range;

/// Lifetime of registrations: longer than any run, so that none ends.
const RECEIVER_LIFETIME: Nanos = 1_000_000 * MILLISECOND;

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
    /// Bytes that it holds for the receivers of a receiver-paced stream.
    unconsumed: Option<u64>,
}

impl StoreProcess {
    /// A store that has not started, with an empty disk.
    pub(super) fn new(scenario: &StoreScenario, incarnation: u64) -> Self {
        Self {
            store: None,
            log: SimLog::with_clock(scenario.pending_max),
            incarnation,
            life: 0,
            is_synchronizing: false,
            cut_until: 0,
            unconsumed: scenario.unconsumed,
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
            receiver_lifetime: Some(RECEIVER_LIFETIME),
            unconsumed: UnconsumedBounds { bytes: self.unconsumed, ..UnconsumedBounds::default() },
        };
        self.log.restore(Store::new(settings, self.incarnation))
    }

    /// Sequence up to which retention gives up messages, if it could those before `first`. A
    /// receiver-paced stream keeps what is not consumed; a store that was replaced does not know
    /// all `receivers`, and waits for them here.
    pub(super) fn trimmed(&self, first: u64, receivers: &[u64]) -> u64 {
        let Some(store) = self.store.as_ref().filter(|_| self.unconsumed.is_some()) else {
            return first;
        };
        let registered: Vec<u64> = store.receivers(0, 0).map(|it| it.receiver).collect();
        let knows_all = receivers.iter().all(|it| registered.contains(it));
        let stream = store.summaries().next().filter(|it| knows_all && it.is_receiver_paced);
        stream.map_or(0, |stream| stream.consumed.min(first))
    }

    /// Whether its disk has members of the stream, whatever happens.
    pub(super) fn knows(&self) -> bool {
        let mut log = self.log.clone();
        log.crash_unwritten();
        let state = log.restore(Store::new(StoreSettings::default(), 0)).state(TOPIC, SOURCE);
        state.is_some_and(|state| state.members.version > 0)
    }

    /// Whether its disk has the registration of a receiver, as a crash would leave it.
    pub(super) fn keeps(&self, receiver: u64) -> bool {
        let mut log = self.log.clone();
        log.crash_unwritten();
        let store = log.restore(Store::new(StoreSettings::default(), 0));
        store.receivers(0, receiver).next().is_some_and(|it| it.receiver == receiver)
    }

    /// Messages in its log, in order, as far as there are.
    pub(super) fn kept(&self, range: Range<u64>) -> Vec<(u64, Vec<u8>)> {
        let mut kept = Vec::new();
        self.log.read(0, range.start, &mut |sequence, _, body| {
            let is_kept = sequence < range.end;
            if is_kept {
                kept.push((sequence, body.to_vec()));
            }
            is_kept
        });
        kept
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
    pub(super) list: StoreList,
    pub(super) session: u64,
    /// Sequence of the first message of its run, once it is registered.
    pub(super) start: u64,
    pub(super) bodies: Vec<Vec<u8>>,
    pub(super) is_superseded: bool,
    /// Other runs have other lists.
    has_own_list: bool,
}

impl PublisherProcess {
    /// A publisher that starts.
    pub(super) fn new(
        scenario: &StoreScenario,
        list: StoreList,
        session: u64,
        epoch: u64,
        now: Nanos,
    ) -> Self {
        let settings = SourceSettings {
            flight_messages: scenario.flight,
            flight_bytes: 4_096,
            retry: 20 * MILLISECOND,
            longest_frame: 200,
            pacing: if scenario.unconsumed.is_some() { Pacing::Receivers } else { Pacing::Source },
            ..SourceSettings::new(list.groups())
        };
        let source = Some(Source::new(settings, session, epoch, now));
        Self {
            source,
            list,
            session,
            start: 0,
            bodies: Vec::new(),
            is_superseded: false,
            has_own_list: scenario.has_lists(),
        }
    }

    /// The run that it has registered, unless another has superseded it.
    pub(super) fn run(&self) -> Option<Ballot> {
        self.source.as_ref().and_then(Source::registered_run)
    }

    /// A store's process has ended.
    pub(super) fn on_disconnected(&mut self, store: usize) {
        if let (Some(source), Some(place)) = (&mut self.source, self.list.place(store)) {
            source.on_disconnected(place);
        }
    }

    /// Whether it runs, and no other has taken over.
    pub(super) const fn is_living(&self) -> bool {
        self.source.is_some() && !self.is_superseded
    }

    /// Whether the receivers have consumed all that is stable, as it was told.
    pub(super) fn is_consumed(&self) -> bool {
        self.source.as_ref().is_some_and(|it| it.consumed() == it.stable())
    }

    /// Whether all that it sent is stable and, where lists change, the members are the stores of
    /// its list.
    pub(super) fn is_drained(&self) -> bool {
        let source = self.source.as_ref();
        let is_stable = source.is_some_and(|it| it.is_registered() && it.stable() == it.next());
        is_stable && (!self.has_own_list || self.is_settled())
    }

    /// Whether the members are the stores of its list.
    fn is_settled(&self) -> bool {
        let members = self.source.as_ref().map(Source::members);
        members.is_some_and(|members| {
            let mut names = self.list.stores().map(StoreScenario::store_name);
            let is_member = |name: String| members.incarnation(&name).is_some();
            let count = self.list.stores().count();
            !members.is_joint() && members.stores.len() == count && names.all(is_member)
        })
    }
}
