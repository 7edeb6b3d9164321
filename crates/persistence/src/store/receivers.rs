//! Receivers that are registered with a store, and how far they have consumed a stream.

use super::copying::consumed_length;
use lanecast_wire::store::{Consumption, Run};
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Receivers of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Receivers {
    by_id: BTreeMap<u64, Receiver>,
    slowest: Slowest,
    /// The same by reports that are not durable yet.
    slowest_reported: Slowest,
}

/// Sequence of the first message that a receiver has not consumed, the largest number if there is
/// no receiver; `None` until it is asked for after a change. Follows from the receivers and the
/// runs, so it is no part of the state.
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
    /// The client that waits for an answer.
    owed_to: Option<u64>,
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
        let it = self.by_id.get(&receiver)?;
        it.pending.back().map(|(_, report)| *report).or(it.durable)
    }

    /// Whether `consumption` is further than what is written.
    pub(super) fn is_news(&self, receiver: u64, consumption: &Consumption) -> bool {
        let known = self.by_id.get(&receiver);
        let last = known.and_then(|it| it.pending.back().map(|(_, it)| *it).or(it.durable));
        last.is_none_or(|last| consumption.is_after(&last))
    }

    /// A report was written at `position`.
    pub(super) fn on_written(&mut self, receiver: u64, consumption: Consumption, position: u64) {
        let new = || Receiver { durable: None, pending: VecDeque::new(), owed_to: None };
        self.by_id.entry(receiver).or_insert_with(new).pending.push_back((position, consumption));
        self.on_changed();
    }

    /// The receivers or the runs of the stream are others now.
    pub(super) fn on_changed(&mut self) {
        self.slowest.0.set(None);
        self.slowest_reported.0.set(None);
    }

    /// The client waits for an answer.
    pub(super) fn owe(&mut self, receiver: u64, client: u64) {
        if let Some(receiver) = self.by_id.get_mut(&receiver) {
            receiver.owed_to = Some(client);
        }
    }

    /// A durable report, when the log is read again.
    pub(super) fn restore(&mut self, receiver: u64, consumption: Consumption) {
        let durable = Some(consumption);
        self.by_id.insert(receiver, Receiver { durable, pending: VecDeque::new(), owed_to: None });
        self.on_changed();
    }

    /// The receivers, in ascending order.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.by_id.keys().copied().collect()
    }

    /// Receivers from the id `from` on, each with the sequence of the first message before `next`
    /// that it has not consumed.
    pub(super) fn positions(
        &self,
        from: u64,
        runs: &[Run],
        next: u64,
    ) -> impl Iterator<Item = (u64, u64)> {
        let position = move |it: &Receiver| {
            it.durable.map_or(0, |durable| consumed_length(&durable, runs, next)).min(next)
        };
        self.by_id.range(from..).map(move |(id, it)| (*id, position(it)))
    }

    /// The receivers, and how far each has come, as far as that is durable.
    pub(super) fn durable(&self) -> impl Iterator<Item = (u64, Consumption)> {
        self.by_id.iter().filter_map(|(receiver, it)| Some((*receiver, it.durable?)))
    }

    pub(super) fn remove(&mut self, receiver: u64) {
        self.by_id.remove(&receiver);
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

    /// Sequence of the first message before `next` that a receiver has not consumed. Looks at the
    /// receivers only after a change.
    pub(super) fn consumed(&self, runs: &[Run], next: u64) -> u64 {
        let positions = || self.positions(0, runs, u64::MAX).map(|(_, consumed)| consumed);
        self.slowest.get(|| positions().min()).min(next)
    }

    /// The same by what the receivers have reported, durable or not.
    pub(super) fn reported(&self, runs: &[Run], next: u64) -> u64 {
        let position = |it: &Receiver| {
            let last = it.pending.back().map(|(_, report)| *report).or(it.durable);
            last.map_or(0, |last| consumed_length(&last, runs, u64::MAX))
        };
        self.slowest_reported.get(|| self.by_id.values().map(position).min()).min(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lanecast_wire::store::Ballot;

    #[test]
    fn the_slowest_receiver_is_known_after_every_change() {
        let run = |epoch, start| Run { ballot: Ballot { epoch, session: epoch }, start };
        let at = |next| Consumption { run: run(1, 0), next };
        let (mut runs, mut receivers) = (vec![run(1, 0)], Receivers::default());
        assert_eq!(receivers.consumed(&runs, 50), 50, "there is none");
        receivers.on_written(7, at(10), 1);
        assert_eq!(receivers.consumed(&runs, 50), 0, "not durable yet");
        assert_eq!(receivers.reported(&runs, 50), 10);
        assert_eq!(receivers.reported(&runs, 5), 5, "no more than there is");
        receivers.advance(1, |_, _, _| {});
        assert_eq!(receivers.consumed(&runs, 50), 10);
        assert_eq!(receivers.consumed(&runs, 5), 5, "no more than there is");
        receivers.restore(8, at(4));
        assert_eq!(receivers.consumed(&runs, 50), 4);
        receivers.on_written(8, at(20), 2);
        receivers.advance(2, |_, _, _| {});
        assert_eq!(receivers.consumed(&runs, 50), 10);
        // A later run replaced the messages from 6 on.
        runs.push(run(2, 6));
        receivers.on_changed();
        assert_eq!(receivers.consumed(&runs, 50), 6);
        receivers.remove(7);
        receivers.remove(8);
        assert_eq!(receivers.consumed(&runs, 50), 50);
    }
}
