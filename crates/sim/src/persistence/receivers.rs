//! Receivers of a run, and the checks of what they hand out.

use super::collected::{SOURCE, TOPIC, Told};
use super::departure::Departure;
use super::oracle::{Oracle, session};
use super::outcome::StoreOutcome;
use super::processes::StoreProcess;
use super::scenario::StoreScenario;
use super::store_list::StoreList;
use super::wanted_range::WantedRange;
use crate::ensure;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{DurableLoss, Receiver, ReceiverSettings};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::{BTreeMap, BTreeSet};

/// Losses of stores' memory that are no fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Forgotten {
    /// Some have lost their data.
    pub(super) data: bool,
    /// The same, or those that knew the receivers are not asked any more: registrations are not
    /// copied.
    pub(super) receivers: bool,
}

/// A program with a receiver, and what it remembers over its crashes.
#[derive(Debug, Default)]
pub(super) struct ReceiverProcess {
    pub(super) receiver: Option<Receiver>,
    /// The stores of this life.
    pub(super) list: Option<StoreList>,
    pub(super) life: u32,
    /// The last message handed out under each sequence.
    handed_out: BTreeMap<u64, Vec<u8>>,
    /// Sequence of the first message of this life.
    began: u64,
    /// Sequence of the next message of this life.
    next: Option<u64>,
    /// Sequence of the first message that the program has not consumed, in any life.
    consumed: u64,
    /// The same, with messages that were discarded since, until enough stores know that they were.
    furthest: u64,
    /// Sequence of the first message that may come again, as it was told.
    acknowledged: u64,
    /// Messages that retention took before they were handed out.
    lost: Vec<u64>,
    /// Stores that this life takes for lost, by their names.
    lost_stores: BTreeSet<String>,
    /// Sessions that go on without this life.
    cut_off: BTreeSet<u64>,
    /// The end of a session was told last.
    has_left: bool,
    /// Stores hold what it has not consumed.
    is_held: bool,
    /// The messages that it has to be handed out.
    range: WantedRange,
    pub(super) departure: Departure,
    /// All stores have ended the registration of the life before.
    is_unknown: bool,
}

impl ReceiverProcess {
    /// Sequence of the next message, once the stream has begun.
    pub(super) const fn next(&self) -> Option<u64> {
        self.next
    }

    /// Whether it has all that is stable, up to its end.
    pub(super) fn is_complete(&self, oracle: &Oracle) -> bool {
        match self.departure {
            Departure::None => {
                self.next.is_some_and(|it| self.range.is_complete(it, self.has_ended(), oracle))
            }
            Departure::Leaving { .. } => false,
            Departure::Gone(_) => true,
        }
    }

    /// Whether the program runs.
    pub(super) const fn is_living(&self) -> bool {
        self.receiver.is_some()
    }

    /// Whether it has come to its end.
    fn has_ended(&self) -> bool {
        self.receiver.as_ref().is_some_and(Receiver::has_ended)
    }

    /// The program starts, if it does not live; returns whether that is so.
    pub(super) fn start(
        &mut self,
        scenario: &StoreScenario,
        list: StoreList,
        id: u64,
        oracle: &Oracle,
        now: Nanos,
    ) -> bool {
        if self.receiver.is_some() || matches!(self.departure, Departure::Gone(_)) {
            return false;
        }
        let settings = ReceiverSettings {
            cache_bytes: scenario.flight * 90,
            fetch_bytes: 1_000,
            retry: 20 * MILLISECOND,
            report: 5 * MILLISECOND,
            life: now,
            start: scenario.ranges[id as usize].0,
            end: scenario.ranges[id as usize].1,
            ..ReceiverSettings::new(list.groups())
        };
        self.list = Some(list);
        self.is_held = scenario.unconsumed.is_some();
        self.range.on_start(scenario.ranges[id as usize], oracle, now);
        self.cut_off.clear();
        self.receiver = Some(Receiver::new(settings, id, now));
        if let Departure::Leaving { .. } = self.departure {
            self.detach(now);
        }
        true
    }

    /// Whether it takes part, or will.
    pub(super) const fn is_staying(&self) -> bool {
        matches!(self.departure, Departure::None)
    }

    /// The program gives up its registration, in this life and in those that follow, until that is
    /// confirmed; a later life begins anew if it `returns`.
    pub(super) fn leave(&mut self, returns: bool, now: Nanos) {
        if self.is_staying() {
            self.departure = Departure::Leaving { returns };
            self.detach(now);
        }
    }

    fn detach(&mut self, now: Nanos) {
        if let Some(receiver) = &mut self.receiver {
            receiver.detach(now);
        }
        // Acknowledged messages may come again to a life that is not registered.
        self.acknowledged = 0;
    }

    /// The program comes back after its registration has ended, at all stores if it `is_unknown`.
    pub(super) fn begin_anew(&mut self, is_unknown: bool) {
        (self.departure, self.is_unknown) = (Departure::None, is_unknown);
    }

    /// Whether it holds no publisher back for good: it has left, or will consume everything.
    pub(super) fn will_consume(&self) -> bool {
        !self.is_staying() || !self.range.has_end()
    }

    /// A store's process has ended.
    pub(super) fn on_disconnected(&mut self, store: usize) {
        let place = self.list.as_ref().and_then(|list| list.place(store));
        if let (Some(receiver), Some(place)) = (&mut self.receiver, place) {
            receiver.on_disconnected(place);
        }
    }

    /// The program ends where it stands.
    pub(super) fn crash(&mut self) {
        self.life += 1;
        self.next = None;
        self.receiver = None;
        self.lost_stores.clear();
        self.cut_off.clear();
    }

    /// A session goes on without the receiver.
    pub(super) fn cut_off(&mut self, session: u64) {
        self.cut_off.insert(session);
    }

    /// The receiver takes part in a session again.
    pub(super) fn let_in(&mut self, session: u64) {
        self.cut_off.remove(&session);
    }

    /// Whether a session goes on without the receiver.
    pub(super) fn is_cut_off(&self, session: u64) -> bool {
        self.cut_off.contains(&session)
    }

    /// The end of a session has to be told from now on.
    pub(super) const fn expect_left(&mut self) {
        self.has_left = false;
    }

    /// The session of the last message handed out.
    pub(super) fn last_session(&self) -> Option<u64> {
        session(self.handed_out.get(&self.next?.checked_sub(1)?)?)
    }

    /// Whether the end of a session was told since, or none is due since the receiver has come to
    /// its own.
    pub(super) fn has_left(&self) -> bool {
        self.has_left || self.has_ended()
    }

    /// The program consumes all that it was handed out.
    pub(super) fn consume(&mut self, now: Nanos) {
        let (Some(next), Some(receiver)) = (self.next, &mut self.receiver) else { return };
        self.consumed = self.consumed.max(next);
        self.furthest = self.furthest.max(next);
        receiver.consumed(SOURCE, next, now);
    }

    /// Once enough stores know how far the program has come, it goes on nowhere else.
    pub(super) fn note_acknowledged(&mut self) {
        let is_acknowledged = self.receiver.as_ref().is_some_and(Receiver::is_acknowledged);
        if self.next.is_some() && is_acknowledged {
            self.furthest = self.consumed;
        }
    }

    /// Checks what it is told. Messages before `trimmed` may be gone.
    pub(super) fn on_told(
        &mut self,
        told: Told,
        oracle: &Oracle,
        trimmed: u64,
        forgotten: Forgotten,
        outcome: &mut StoreOutcome,
    ) -> Verdict {
        let Forgotten { data: forget, receivers } = forgotten;
        match told {
            Told::Started { next, is_resumed } => {
                self.on_started(next, is_resumed, oracle, trimmed, forgotten, outcome)?;
            }
            Told::Message { sequence, bytes } => {
                let next = self.expected()?;
                ensure!(sequence == next, "message {sequence} comes where {next} is next");
                self.range.on_message(sequence)?;
                oracle.on_handed_out(sequence, &bytes)?;
                self.handed_out.insert(sequence, bytes);
                (self.next, self.has_left) = (Some(sequence + 1), false);
                outcome.handed_out += 1;
            }
            Told::Lost { first, count, why: DurableLoss::NotStored } => {
                self.on_not_stored(first, count, oracle, forget)?;
                outcome.not_stored += count;
            }
            Told::Left { next } => {
                self.on_session_end(next, oracle, forget)?;
                outcome.left += 1;
            }
            Told::Lost { first, count, .. } => {
                self.on_expired(first, count, trimmed, forget)?;
                outcome.lost_messages += count;
            }
            Told::Discarded { first, count } => {
                self.on_discarded(first, count, oracle)?;
                outcome.discarded += count;
            }
            Told::Acknowledged { next } => {
                ensure!(
                    next <= self.consumed.max(self.next.unwrap_or(0)),
                    "{next} are acknowledged, {} consumed",
                    self.consumed
                );
                self.acknowledged = next;
            }
            Told::Unkept => ensure!(receivers, "a registered publisher is taken for another"),
            Told::Ended { next } => {
                ensure!(self.expected()? == next, "the end is at {next}: {:?}", self.next);
                self.range.on_ended(next, oracle, forget)?;
                outcome.ended += 1;
            }
            Told::Expired => ensure!(false, "a receiver that was there has expired"),
            Told::CaughtUp => outcome.caught_up += 1,
            Told::StoreLost { name } => _ = self.lost_stores.insert(name),
            Told::StoreBack { name } => _ = self.lost_stores.remove(&name),
        }
        Ok(())
    }

    /// The stream begins. Messages before `trimmed` may be gone.
    fn on_started(
        &mut self,
        next: u64,
        is_resumed: bool,
        oracle: &Oracle,
        trimmed: u64,
        Forgotten { data: forget, receivers }: Forgotten,
        outcome: &mut StoreOutcome,
    ) -> Verdict {
        ensure!(self.next.is_none(), "a stream begins twice");
        let is_unknown = std::mem::take(&mut self.is_unknown) && !receivers;
        ensure!(
            !(is_resumed && is_unknown),
            "a receiver goes on at {next}, and all stores had ended its registration"
        );
        let known = is_resumed || self.acknowledged == 0 || receivers;
        ensure!(known, "a receiver is forgotten: it had come to {}", self.acknowledged);
        if is_resumed {
            ensure!(
                next <= self.furthest.max(trimmed) || forget,
                "a receiver that consumed {} goes on at {next}",
                self.furthest
            );
        } else if !receivers {
            self.range.on_begun(next, trimmed, oracle)?;
            outcome.later_starts += u64::from(next > trimmed);
        }
        let repeated = next..self.acknowledged;
        // Only messages that were never stable may come again: others under their numbers.
        for sequence in repeated.filter(|_| !receivers) {
            let body = self.handed_out.get(&sequence);
            ensure!(
                body.is_none_or(|body| !oracle.is_stable(sequence, body)),
                "message {sequence} comes again, {} were acknowledged",
                self.acknowledged
            );
        }
        // It is registered there, whether it consumes anything or not.
        let registered = if is_resumed { 0 } else { next };
        self.consumed = self.consumed.max(registered);
        self.furthest = self.furthest.max(registered);
        // Messages in front of the first one are not missed by a receiver that is new.
        self.lost.extend(if is_resumed { 0..0 } else { 0..next });
        outcome.resumed += u64::from(is_resumed);
        (self.began, self.next, self.has_left) = (next, Some(next), false);
        Ok(())
    }

    /// Messages are lost that came to no store.
    fn on_not_stored(&mut self, first: u64, count: u64, oracle: &Oracle, forget: bool) -> Verdict {
        let next = self.expected()?;
        ensure!(
            first == next && (oracle.stable() <= first || forget),
            "{first}..{} never came to a store, and {} are stable",
            first + count,
            oracle.stable()
        );
        (self.next, self.has_left) = (Some(first + count), false);
        // A store that was away then, or that is not named, may come back with them.
        self.lost.extend(first..first + count);
        Ok(())
    }

    /// The end of a session is told.
    fn on_session_end(&mut self, next: u64, oracle: &Oracle, forget: bool) -> Verdict {
        ensure!(self.expected()? == next, "a session ends at {next}: {:?}", self.next);
        let last = next.checked_sub(1).and_then(|last| self.handed_out.get(&last));
        // A receiver that has come to its end is told where it is.
        if let Some(last) = last.filter(|_| next > self.began && !forget && !self.range.has_ended())
        {
            oracle.on_left(last, next)?;
        }
        self.has_left = true;
        Ok(())
    }

    /// Messages are discarded, which were never stable.
    fn on_discarded(&mut self, first: u64, count: u64, oracle: &Oracle) -> Verdict {
        // What was discarded may have been replaced already, in an earlier life.
        let until = self.expected()?.min(first + count);
        for sequence in self.began.max(first)..until {
            let body = self.handed_out.get(&sequence);
            ensure!(
                body.is_none_or(|body| !oracle.is_stable(sequence, body)),
                "message {sequence} is stable, and discarded"
            );
        }
        (self.next, self.has_left) = (Some(first), false);
        self.range.on_discarded(first);
        // Their sequences begin anew: those that are stable in the end have to come again.
        self.handed_out.split_off(&first);
        self.consumed = self.consumed.min(first);
        self.acknowledged = self.acknowledged.min(first);
        Ok(())
    }

    /// Messages are lost that no store keeps any more.
    fn on_expired(&mut self, first: u64, count: u64, trimmed: u64, forget: bool) -> Verdict {
        let next = self.expected()?;
        ensure!(
            first == next && (first + count <= trimmed || forget),
            "{first}..{} are lost, and retention took those before {trimmed}",
            first + count
        );
        ensure!(
            !self.is_held || forget,
            "{first}..{} are lost, and a receiver that paces the publisher had not consumed them",
            first + count
        );
        self.lost.extend(first..first + count);
        (self.next, self.has_left) = (Some(first + count), false);
        Ok(())
    }

    /// Message `first` is lost because it came to no store: those that are named, and there as far
    /// as the receiver knows, do not have it.
    pub(super) fn check_not_stored(
        &self,
        first: u64,
        stores: &[StoreProcess],
        now: Nanos,
    ) -> Verdict {
        let session = self.receiver.as_ref().and_then(|it| it.session(SOURCE));
        for store in self.list.iter().flat_map(StoreList::stores) {
            let process = &stores[store];
            let is_known = !self.lost_stores.contains(&StoreScenario::store_name(store));
            let is_there = is_known && process.store.is_some() && process.cut_until <= now;
            let state = process.store.as_ref().and_then(|it| it.state(TOPIC, SOURCE));
            let state = state.filter(|it| is_there && Some(it.log.session) == session);
            ensure!(
                state.is_none_or(|state| state.next <= first),
                "message {first} never came to a store, and store {store} has it"
            );
        }
        Ok(())
    }

    fn expected(&self) -> Result<u64, Violation> {
        self.next.ok_or_else(|| Violation("a stream that has not begun".into()))
    }

    /// Checks that everything stable was handed out as it was sent.
    pub(super) fn check_end(&self, oracle: &Oracle) -> Verdict {
        if let Departure::Gone(_) = self.departure {
            return Ok(());
        }
        ensure!(
            self.is_complete(oracle),
            "{} messages are stable, a receiver is at {:?} of {:?}, {:?}: {:?}",
            oracle.stable(),
            self.next,
            self.range,
            self.departure,
            self.receiver
        );
        let end = self.next.unwrap_or(0).min(oracle.stable());
        for sequence in (0..end).filter(|it| !self.lost.contains(it)) {
            let body = self.handed_out.get(&sequence);
            ensure!(
                body.is_some_and(|body| oracle.is_stable(sequence, body)),
                "message {sequence} was not handed out as it was stable"
            );
        }
        Ok(())
    }
}
