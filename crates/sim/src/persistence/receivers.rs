//! Receivers of a run, and the checks of what they hand out.

use super::collected::{SOURCE, Told};
use super::oracle::Oracle;
use super::outcome::StoreOutcome;
use super::scenario::StoreScenario;
use super::store_list::StoreList;
use crate::ensure;
use crate::violation::{Verdict, Violation};
use lanecast_persistence::{Receiver, ReceiverSettings};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::BTreeMap;

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
    /// The same, with messages that were discarded since.
    furthest: u64,
    /// Sequence of the first message that may come again, as it was told.
    acknowledged: u64,
    /// Messages that retention took before they were handed out.
    lost: Vec<u64>,
}

impl ReceiverProcess {
    /// Sequence of the next message, once the stream has begun.
    pub(super) const fn next(&self) -> Option<u64> {
        self.next
    }

    /// The program starts, if it does not live; returns whether that is so.
    pub(super) fn start(
        &mut self,
        scenario: &StoreScenario,
        list: StoreList,
        id: u64,
        now: Nanos,
    ) -> bool {
        if self.receiver.is_some() {
            return false;
        }
        let settings = ReceiverSettings {
            cache_bytes: scenario.flight * 90,
            fetch_bytes: 1_000,
            retry: 20 * MILLISECOND,
            report: 5 * MILLISECOND,
            ..ReceiverSettings::new(list.groups())
        };
        self.list = Some(list);
        self.receiver = Some(Receiver::new(settings, id, now));
        true
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
    }

    /// The program consumes all that it was handed out.
    pub(super) fn consume(&mut self, now: Nanos) {
        let (Some(next), Some(receiver)) = (self.next, &mut self.receiver) else { return };
        self.consumed = self.consumed.max(next);
        self.furthest = self.furthest.max(next);
        receiver.consumed(SOURCE, next, now);
    }

    /// Checks what it is told. Messages before `trimmed` may be gone.
    pub(super) fn on_told(
        &mut self,
        told: Told,
        oracle: &Oracle,
        trimmed: u64,
        Forgotten { data: forget, receivers }: Forgotten,
        outcome: &mut StoreOutcome,
    ) -> Verdict {
        match told {
            Told::Started { next, is_resumed } => {
                ensure!(self.next.is_none(), "a stream begins twice");
                let known = is_resumed || self.acknowledged == 0 || receivers;
                ensure!(known, "a receiver is forgotten: it had come to {}", self.acknowledged);
                // A run that discards messages may give way to one that has them.
                let consumed = if receivers { self.furthest } else { self.consumed };
                ensure!(
                    next <= consumed.max(trimmed) || forget,
                    "a receiver that consumed {} goes on at {next}",
                    self.consumed
                );
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
                // Messages in front of the first one are not missed by a receiver that is new.
                self.lost.extend(if is_resumed { 0..0 } else { 0..next });
                outcome.resumed += u64::from(is_resumed);
                (self.began, self.next) = (next, Some(next));
            }
            Told::Message { sequence, bytes } => {
                let next = self.expected()?;
                ensure!(sequence == next, "message {sequence} comes where {next} is next");
                oracle.on_handed_out(sequence, &bytes)?;
                self.handed_out.insert(sequence, bytes);
                self.next = Some(sequence + 1);
                outcome.handed_out += 1;
            }
            Told::Lost { first, count } => {
                let next = self.expected()?;
                ensure!(
                    first == next && (first + count <= trimmed || forget),
                    "{first}..{} are lost, and retention took those before {trimmed}",
                    first + count
                );
                self.lost.extend(first..first + count);
                self.next = Some(first + count);
                outcome.lost_messages += count;
            }
            Told::Discarded { first, count } => {
                // What was discarded may have been replaced already, in an earlier life.
                let until = self.expected()?.min(first + count);
                for sequence in self.began.max(first)..until {
                    let body = self.handed_out.get(&sequence);
                    ensure!(
                        body.is_none_or(|body| !oracle.is_stable(sequence, body)),
                        "message {sequence} is stable, and discarded"
                    );
                }
                self.next = Some(first);
                // Their sequences begin anew.
                self.consumed = self.consumed.min(first);
                self.acknowledged = self.acknowledged.min(first);
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
            Told::CaughtUp => outcome.caught_up += 1,
        }
        Ok(())
    }

    fn expected(&self) -> Result<u64, Violation> {
        self.next.ok_or_else(|| Violation("a stream that has not begun".into()))
    }

    /// Checks that everything stable was handed out as it was sent.
    pub(super) fn check_end(&self, oracle: &Oracle) -> Verdict {
        ensure!(
            self.next == Some(oracle.stable()),
            "{} messages are stable, a receiver is at {:?}: {:?}",
            oracle.stable(),
            self.next,
            self.receiver
        );
        for sequence in (0..oracle.stable()).filter(|it| !self.lost.contains(it)) {
            let body = self.handed_out.get(&sequence);
            ensure!(
                body.is_some_and(|body| oracle.is_stable(sequence, body)),
                "message {sequence} was not handed out as it was stable"
            );
        }
        Ok(())
    }
}
