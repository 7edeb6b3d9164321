//! Subscriptions, by their numbers.

use crate::client::ClientId;
use lanecast_filter::kind::Kind;
use lanecast_filter::{Filter, Pattern};
use lanecast_sow::Options;

/// What a client wants.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: ClientId,
    /// The client's name for it, as it stands in a header.
    pub(crate) shown: Box<[u8]>,
    pub(crate) kind: Kind,
    pub(crate) scope: Scope,
    pub(crate) filter: Option<Filter>,
    /// How it is told of kept topics' records.
    pub(crate) options: Options,
}

/// Where its messages come from.
#[derive(Debug)]
pub(crate) enum Scope {
    /// A topic, by its number.
    Topic(u32),
    /// All topics whose names hold the pattern, also those to come.
    Topics(Pattern),
}

/// All of them. A number that has become free is given again.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    entries: Vec<Option<Subscription>>,
    free: Vec<u32>,
}

impl Subscriptions {
    /// The number that the next one gets.
    pub(crate) fn next_number(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    /// Files one under [`next_number`](Self::next_number).
    pub(crate) fn insert(&mut self, subscription: Subscription) {
        match self.free.pop() {
            Some(number) => self.entries[number as usize] = Some(subscription),
            None => self.entries.push(Some(subscription)),
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Subscription> {
        self.entries.get(number as usize)?.as_ref()
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Subscription> {
        let removed = self.entries.get_mut(number as usize)?.take();
        if removed.is_some() {
            self.free.push(number);
        }
        removed
    }
}
