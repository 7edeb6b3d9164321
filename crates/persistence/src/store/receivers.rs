//! Receivers that are registered with a store, and how far they have consumed a stream.

use super::copying::consumed_length;
use lanecast_wire::store::{Consumption, Run};
use std::collections::{BTreeMap, VecDeque};

/// Receivers of one stream.
#[derive(Clone, Debug, Default)]
pub(super) struct Receivers(BTreeMap<u64, Receiver>);

#[derive(Clone, Debug)]
struct Receiver {
    /// How far it has come; `None` until that is durable for the first time.
    durable: Option<Consumption>,
    /// Later reports, with the positions of their records.
    pending: VecDeque<(u64, Consumption)>,
    /// The client that waits for an answer.
    owed_to: Option<u64>,
}

impl Receivers {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn is_known(&self, receiver: u64) -> bool {
        self.0.contains_key(&receiver)
    }

    /// How far a receiver has come, as far as that is durable.
    pub(super) fn consumption(&self, receiver: u64) -> Option<Consumption> {
        self.0.get(&receiver)?.durable
    }

    /// Whether `consumption` is further than what is written.
    pub(super) fn is_news(&self, receiver: u64, consumption: &Consumption) -> bool {
        let known = self.0.get(&receiver);
        let last = known.and_then(|it| it.pending.back().map(|(_, it)| *it).or(it.durable));
        last.is_none_or(|last| consumption.is_after(&last))
    }

    /// A report was written at `position`.
    pub(super) fn on_written(&mut self, receiver: u64, consumption: Consumption, position: u64) {
        let new = || Receiver { durable: None, pending: VecDeque::new(), owed_to: None };
        self.0.entry(receiver).or_insert_with(new).pending.push_back((position, consumption));
    }

    /// The client waits for an answer.
    pub(super) fn owe(&mut self, receiver: u64, client: u64) {
        if let Some(receiver) = self.0.get_mut(&receiver) {
            receiver.owed_to = Some(client);
        }
    }

    /// A durable report, when the log is read again.
    pub(super) fn restore(&mut self, receiver: u64, consumption: Consumption) {
        let durable = Some(consumption);
        self.0.insert(receiver, Receiver { durable, pending: VecDeque::new(), owed_to: None });
    }

    /// The receivers, in ascending order.
    pub(super) fn ids(&self) -> Vec<u64> {
        self.0.keys().copied().collect()
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
        self.0.range(from..).map(move |(id, it)| (*id, position(it)))
    }

    /// The receivers, and how far each has come, as far as that is durable.
    pub(super) fn durable(&self) -> impl Iterator<Item = (u64, Consumption)> {
        self.0.iter().filter_map(|(receiver, it)| Some((*receiver, it.durable?)))
    }

    pub(super) fn remove(&mut self, receiver: u64) {
        self.0.remove(&receiver);
    }

    /// Everything up to `position` is durable: gives the answers that are due.
    pub(super) fn advance(&mut self, position: u64, mut answer: impl FnMut(u64, u64, Consumption)) {
        for (id, receiver) in &mut self.0 {
            while let Some((at, consumption)) = receiver.pending.front()
                && *at <= position
            {
                receiver.durable = Some(*consumption);
                receiver.pending.pop_front();
            }
            if let (Some(client), Some(durable)) = (receiver.owed_to, receiver.durable) {
                answer(client, *id, durable);
                if receiver.pending.is_empty() {
                    receiver.owed_to = None;
                }
            }
        }
    }

    pub(super) fn are_settled(&self) -> bool {
        self.0.values().all(|it| it.pending.is_empty() && it.owed_to.is_none())
    }

    /// Sequence of the first message before `next` that a receiver has not consumed.
    pub(super) fn consumed(&self, runs: &[Run], next: u64) -> u64 {
        self.positions(0, runs, next).map(|(_, consumed)| consumed).min().unwrap_or(next)
    }
}
