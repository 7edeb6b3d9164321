//! Receivers that are registered with a store, and how far they have consumed a stream.

use super::copying::consumed_length;
use crate::log::{LogFull, StoreLog};
use lanecast_wire::store::{Consumption, LogRecord, ReceiverReport, Registered, Run};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Time of a store that starts: receivers may have been away for long before.
pub(super) const UP_AT_START: u64 = 1 << 62;
/// Times away from which on a record tells none.
const AWAY_UNKNOWN: u64 = 1 << 59;

/// Receivers of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Receivers {
    by_id: BTreeMap<u64, Receiver>,
    slowest: Slowest,
    /// The same by reports that are not durable yet.
    slowest_reported: Slowest,
    /// That of all receivers, also of those that hold no publisher back.
    slowest_of_all: Slowest,
    /// The latest life of all receivers whose registrations have ended.
    pub(super) ended_life: u64,
}

/// Sequence of the first message that a receiver which holds a publisher back has not consumed, the
/// largest number if there is no such receiver; `None` until it is asked for after a change.
/// Follows from the receivers and the runs, so it is no part of the state.
#[derive(Clone, Default)]
struct Slowest(Cell<Option<u64>>);

impl Slowest {
    /// The sequence, by `find` after a change.
    fn get(&self, find: impl FnOnce() -> Option<u64>) -> u64 {
        let slowest = self.0.get().unwrap_or_else(|| find().unwrap_or(u64::MAX));
        self.0.set(Some(slowest));
        slowest
    }
}

impl fmt::Debug for Slowest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Slowest")
    }
}

#[derive(Clone, Debug)]
struct Receiver {
    /// Position; `None` until one is durable for the first time.
    durable: Option<Consumption>,
    /// Later reports, with the positions of their records.
    pending: VecDeque<(u64, Consumption)>,
    /// The life in which all of them were reported: the last one. Earlier ones are void, since its
    /// program may have begun elsewhere.
    life: u64,
    /// The receiver was heard of since other stores were last asked for positions.
    is_heard: bool,
    /// The client that waits for an answer.
    owed_to: Option<u64>,
    /// The receiver does not hold a receiver-paced publisher back.
    is_non_blocking: bool,
    /// The receiver was away for longer than registrations live.
    is_expired: bool,
    /// Time since the store's start, and from [`UP_AT_START`] on, at which it was heard of.
    heard: u64,
    /// Nanoseconds for which it was away, as the last record says.
    written_away: u64,
}

impl Receiver {
    /// A receiver as a record tells it at the store's start.
    fn new(registered: &Registered) -> Self {
        let Registered { is_non_blocking, is_expired, away_ns, .. } = *registered;
        // Earlier builds wrote the time of day at which it was heard of.
        let away_ns = if away_ns < AWAY_UNKNOWN { away_ns } else { 0 };
        Self {
            durable: None,
            pending: VecDeque::new(),
            life: registered.life,
            is_heard: false,
            owed_to: None,
            is_non_blocking,
            is_expired,
            heard: UP_AT_START - away_ns,
            written_away: away_ns,
        }
    }

    /// The record that tells for how long it is away; `None` without a position.
    fn record(&self, receiver: u64, away_ns: u64, is_expired: bool) -> Option<Registered> {
        let Self { life, is_non_blocking, .. } = *self;
        let consumption = self.last()?;
        Some(Registered { receiver, consumption, life, is_non_blocking, is_expired, away_ns })
    }

    /// Whether it holds a receiver-paced publisher back.
    const fn is_blocking(&self) -> bool {
        !self.is_non_blocking && !self.is_expired
    }

    /// The last position that it has reported, durable or not.
    fn last(&self) -> Option<Consumption> {
        self.pending.back().map(|(_, report)| *report).or(self.durable)
    }
}

impl Receivers {
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(super) fn is_known(&self, receiver: u64) -> bool {
        self.by_id.contains_key(&receiver)
    }

    /// A receiver's position, durable or not: a program that starts again at once gets nothing of
    /// what it has reported.
    pub(super) fn consumption(&self, receiver: u64) -> Option<Consumption> {
        self.by_id.get(&receiver)?.last()
    }

    /// The receiver's life; if it is not registered, the latest one of those that were.
    pub(super) fn life(&self, receiver: u64) -> u64 {
        self.by_id.get(&receiver).map_or(self.ended_life, |it| it.life)
    }

    /// The record that a report asks for which is `heard` now: `None` if it is neither further
    /// than what is written nor registers the receiver anew, or is one of an earlier life.
    pub(super) fn news(&mut self, report: &Registered, heard: u64) -> Option<Registered> {
        let report = Registered { is_expired: false, away_ns: 0, ..*report };
        let Some(known) = self.by_id.get_mut(&report.receiver) else { return Some(report) };
        if report.life < known.life {
            return None;
        }
        (known.heard, known.is_heard) = (heard, true);
        if report.life > known.life {
            return Some(report);
        }
        let last = known.last().filter(|last| !report.consumption.is_after(last));
        let is_same = known.is_non_blocking == report.is_non_blocking && !known.is_expired;
        match last {
            Some(_) if is_same => None,
            Some(consumption) => Some(Registered { consumption, ..report }),
            None => Some(report),
        }
    }

    /// A receiver is `heard` of at this time.
    pub(super) fn hear(&mut self, receiver: u64, heard: u64) {
        if let Some(it) = self.by_id.get_mut(&receiver) {
            it.heard = heard;
        }
    }

    /// The record that asks for what another store has of a receiver, which is on its disk: `None`
    /// if it is neither further nor of a later life. A receiver that is not registered here stays
    /// so: its registration may have ended.
    fn adopted(&self, told: &Registered) -> Option<Registered> {
        let known = self.by_id.get(&told.receiver).filter(|it| !it.is_expired)?;
        let Registered { receiver, consumption, life, .. } = *told;
        let is_later = life > known.life;
        let is_further = || known.last().is_none_or(|last| consumption.is_after(&last));
        let is_news = is_later || (life == known.life && is_further());
        let is_non_blocking = if is_later { told.is_non_blocking } else { known.is_non_blocking };
        let (is_expired, away_ns) = (false, known.written_away);
        is_news.then_some(Registered {
            receiver,
            consumption,
            life,
            is_non_blocking,
            is_expired,
            away_ns,
        })
    }

    /// The first receiver from the id `from` on that counts and has not reported the messages
    /// before `next`; of those that were not heard of, if these `is_silent`.
    pub(super) fn lagging(
        &self,
        from: u64,
        runs: &[Run],
        next: u64,
        is_silent: bool,
    ) -> Option<u64> {
        let lags = |it: &Receiver| {
            let position = it.last().map_or(0, |last| consumed_length(&last, runs, next));
            !it.is_expired && (!is_silent || !it.is_heard) && position < next
        };
        self.by_id.range(from..).find(|(_, it)| lags(it)).map(|(receiver, _)| *receiver)
    }

    /// Other stores are asked for positions: receivers that are heard of from here on count as
    /// heard of.
    pub(super) fn expect_word(&mut self) {
        self.by_id.values_mut().for_each(|it| it.is_heard = false);
    }

    /// Records that are due at time `up`, of receivers whose time away is not what is written, by
    /// at least `step`. With a `lifetime` those expire that were away for longer, and those that
    /// have expired are left out.
    pub(super) fn due(&self, up: u64, lifetime: Option<u64>, step: u64) -> Vec<Registered> {
        let record = |(receiver, it): (&u64, &Receiver)| {
            let away = up.saturating_sub(it.heard);
            let expires = lifetime.is_some_and(|lifetime| away > lifetime);
            let is_due = expires || away.abs_diff(it.written_away) >= step;
            is_due.then(|| it.record(*receiver, away, expires || it.is_expired)).flatten()
        };
        let counts = |(_, it): &(&u64, &Receiver)| lifetime.is_none() || !it.is_expired;
        self.by_id.iter().filter(counts).filter_map(record).collect()
    }

    /// Whether a receiver was away for longer than registrations live.
    pub(super) fn is_expired(&self, receiver: u64) -> bool {
        self.by_id.get(&receiver).is_some_and(|it| it.is_expired)
    }

    /// The receiver that was away for longest, of those that have expired.
    pub(super) fn longest_away(&self) -> Option<u64> {
        let expired = self.by_id.iter().filter(|(_, it)| it.is_expired);
        expired.min_by_key(|(_, it)| it.heard).map(|(receiver, _)| *receiver)
    }

    /// Writes a position to the log of the stream with this number.
    pub(super) fn write(
        &mut self,
        stream: u32,
        registered: Registered,
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let position = log.append(&LogRecord::Consumed { stream, registered })?;
        self.on_written(registered, position);
        Ok(())
    }

    /// Takes over positions that another store has on its disk.
    pub(super) fn adopt(
        &mut self,
        stream: u32,
        told: &[Registered],
        log: &mut impl StoreLog,
    ) -> Result<(), LogFull> {
        let news: Vec<Registered> = told.iter().filter_map(|it| self.adopted(it)).collect();
        news.into_iter().try_for_each(|it| self.write(stream, it, log))
    }

    /// Positions of receivers from the id `from` on that are durable and count, `most` of them.
    pub(super) fn positions(&self, from: u64, most: usize) -> Vec<Registered> {
        let position = |(receiver, it): (&u64, &Receiver)| {
            let is_non_blocking = it.is_non_blocking;
            let it = Registered { life: it.life, ..Registered::new(*receiver, it.durable?) };
            Some(Registered { is_non_blocking, ..it })
        };
        let counts = |(_, it): &(&u64, &Receiver)| !it.is_expired;
        self.by_id.range(from..).filter(counts).filter_map(position).take(most).collect()
    }

    /// A report was written at `position`.
    fn on_written(&mut self, report: Registered, position: u64) {
        let it = self.by_id.entry(report.receiver).or_insert_with(|| Receiver::new(&report));
        (it.is_non_blocking, it.is_expired) = (report.is_non_blocking, report.is_expired);
        it.written_away = report.away_ns;
        if report.life != it.life {
            it.life = report.life;
            // Until its new position is durable the receiver counts as one that needs everything.
            (it.durable, it.pending) = (None, VecDeque::new());
        }
        it.pending.push_back((position, report.consumption));
        self.on_changed();
    }

    /// The receivers or the runs of the stream are others now.
    pub(super) fn on_changed(&mut self) {
        self.slowest.0.set(None);
        self.slowest_reported.0.set(None);
        self.slowest_of_all.0.set(None);
    }

    /// The client waits for an answer.
    pub(super) fn owe(&mut self, receiver: u64, client: u64) {
        if let Some(receiver) = self.by_id.get_mut(&receiver) {
            receiver.owed_to = Some(client);
        }
    }

    /// A durable report, when the log is read again.
    pub(super) fn restore(&mut self, registered: Registered) {
        let durable = Some(registered.consumption);
        let restored = Receiver { durable, ..Receiver::new(&registered) };
        self.by_id.insert(registered.receiver, restored);
        self.on_changed();
    }

    /// The receivers, in ascending order.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.by_id.keys().copied().collect()
    }

    /// Receivers from the id `from` on, each with the sequence of the first message before `next`
    /// that it has not consumed.
    pub(super) fn reports(
        &self,
        from: u64,
        runs: &[Run],
        next: u64,
    ) -> impl Iterator<Item = ReceiverReport> {
        self.by_id.range(from..).map(move |(id, it)| {
            let consumed = it.durable.map_or(0, |it| consumed_length(&it, runs, next)).min(next);
            let (is_non_blocking, is_expired) = (it.is_non_blocking, it.is_expired);
            ReceiverReport { receiver: *id, next: consumed, is_non_blocking, is_expired }
        })
    }

    /// The receivers, as far as they are durable.
    pub(super) fn durable(&self) -> impl Iterator<Item = Registered> {
        self.by_id.iter().filter_map(|(receiver, it)| {
            Some(Registered {
                receiver: *receiver,
                consumption: it.durable?,
                life: it.life,
                is_non_blocking: it.is_non_blocking,
                is_expired: it.is_expired,
                away_ns: it.written_away,
            })
        })
    }

    pub(super) fn remove(&mut self, receiver: u64) {
        if let Some(ended) = self.by_id.remove(&receiver) {
            self.ended_life = self.ended_life.max(ended.life);
        }
        self.on_changed();
    }

    /// Everything up to `position` is durable: gives the answers that are due.
    pub(super) fn advance(&mut self, position: u64, mut answer: impl FnMut(u64, u64, Consumption)) {
        let mut has_changed = false;
        for (id, receiver) in &mut self.by_id {
            let before = receiver.pending.len();
            while let Some((at, consumption)) = receiver.pending.front()
                && *at <= position
            {
                receiver.durable = Some(*consumption);
                receiver.pending.pop_front();
            }
            let has_advanced = receiver.pending.len() < before;
            has_changed |= has_advanced;
            // One that waits for the disk was told of the last durable report before.
            let is_news = has_advanced || receiver.pending.is_empty();
            if let (Some(client), Some(durable)) = (receiver.owed_to, receiver.durable)
                && is_news
            {
                answer(client, *id, durable);
                if receiver.pending.is_empty() {
                    receiver.owed_to = None;
                }
            }
        }
        if has_changed {
            self.on_changed();
        }
    }

    pub(super) fn are_settled(&self) -> bool {
        self.by_id.values().all(|it| it.pending.is_empty() && it.owed_to.is_none())
    }

    /// Sequence of the first message before `next` that a receiver has not consumed, of those that
    /// hold a publisher back. Looks at the receivers only after a change.
    pub(super) fn consumed(&self, runs: &[Run], next: u64) -> u64 {
        let is_blocking = |it: &ReceiverReport| !it.is_non_blocking && !it.is_expired;
        let blocking = || self.reports(0, runs, u64::MAX).filter(is_blocking);
        self.slowest.get(|| blocking().map(|it| it.next).min()).min(next)
    }

    /// The same of all receivers that have not expired.
    pub(super) fn consumed_by_all(&self, runs: &[Run], next: u64) -> u64 {
        let all = || self.reports(0, runs, u64::MAX).filter(|it| !it.is_expired);
        self.slowest_of_all.get(|| all().map(|it| it.next).min()).min(next)
    }

    /// As [`consumed`](Self::consumed), by what the receivers have reported, durable or not.
    pub(super) fn reported(&self, runs: &[Run], next: u64) -> u64 {
        let blocking = || self.by_id.values().filter(|it| it.is_blocking());
        let position =
            |it: &Receiver| it.last().map_or(0, |last| consumed_length(&last, runs, u64::MAX));
        self.slowest_reported.get(|| blocking().map(position).min()).min(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::store::Ballot;

    #[test]
    fn the_slowest_receiver_is_known_after_every_change() {
        let run = |epoch, start| Run { ballot: Ballot { epoch, session: epoch }, start };
        let at = |receiver, next| {
            let consumption = Consumption { run: run(1, 0), next };
            let is_non_blocking = receiver == 9;
            Registered { is_non_blocking, ..Registered::new(receiver, consumption) }
        };
        let (mut runs, mut receivers) = (vec![run(1, 0)], Receivers::default());
        assert_eq!(receivers.consumed(&runs, 50), 50, "there is none");
        receivers.on_written(at(7, 10), 1);
        assert_eq!(receivers.consumed(&runs, 50), 0, "not durable yet");
        assert_eq!(receivers.reported(&runs, 50), 10);
        assert_eq!(receivers.reported(&runs, 5), 5, "no more than there is");
        receivers.advance(1, |_, _, _| {});
        assert_eq!(receivers.consumed(&runs, 50), 10);
        assert_eq!(receivers.consumed(&runs, 5), 5, "no more than there is");
        receivers.restore(at(8, 4));
        assert_eq!(receivers.consumed(&runs, 50), 4);
        receivers.on_written(at(8, 20), 2);
        receivers.advance(2, |_, _, _| {});
        assert_eq!(receivers.consumed(&runs, 50), 10);
        // A later run replaced the messages from 6 on.
        runs.push(run(2, 6));
        receivers.on_changed();
        assert_eq!(receivers.consumed(&runs, 50), 6);
        // One that holds nothing back, until it says otherwise.
        receivers.restore(at(9, 2));
        assert_eq!((receivers.consumed(&runs, 50), receivers.reported(&runs, 50)), (6, 6));
        assert_eq!(receivers.consumed_by_all(&runs, 50), 2);
        assert_eq!(receivers.news(&at(9, 1), 0), None);
        let blocking = Registered { is_non_blocking: false, ..at(9, 1) };
        let news = Registered { is_non_blocking: false, ..at(9, 2) };
        assert_eq!(receivers.news(&blocking, 0), Some(news), "where it had come to");
        receivers.on_written(news, 3);
        assert_eq!((receivers.consumed(&runs, 50), receivers.reported(&runs, 50)), (2, 2));
        receivers.remove(9);
        receivers.remove(7);
        receivers.remove(8);
        assert_eq!(receivers.consumed(&runs, 50), 50);
    }
}
