//! The table of subscriptions: which client, topic and fields each has. The engine's state owns it;
//! matchers and SOW topics refer to its entries by [`SubscriptionId`].

use crate::delivery::field_selection::FieldSelection;
use crate::ids::{ClientId, NameId, PatternId, SubscriptionId, TopicId};
use foldhash::HashMap;
use lanecast_base::budget::Reservation;
use lanecast_filter::message_type::MessageType;
use std::collections::VecDeque;

/// A list of subscriptions. The filter index fills it with plain numbers; this type gives them back
/// as identifiers without a copy.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionIds(Vec<u32>);

impl SubscriptionIds {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The list as the filter index sees it.
    #[inline]
    pub(crate) fn numbers_mut(&mut self) -> &mut Vec<u32> {
        &mut self.0
    }

    #[inline]
    pub(crate) fn extend(&mut self, ids: &[SubscriptionId]) {
        self.0.extend(ids.iter().map(|id| id.0));
    }

    /// Moves all of `other` to the end of this list.
    #[inline]
    pub(crate) fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = SubscriptionId> + '_ {
        self.0.iter().copied().map(SubscriptionId)
    }

    pub(crate) fn last(&self) -> Option<SubscriptionId> {
        self.0.last().copied().map(SubscriptionId)
    }

    /// Removes the subscriptions for which `is_extracted`, and returns them.
    pub(crate) fn extract(&mut self, is_extracted: impl Fn(SubscriptionId) -> bool) -> Self {
        Self(self.0.extract_if(.., |number| is_extracted(SubscriptionId(*number))).collect())
    }
}

impl FromIterator<SubscriptionId> for SubscriptionIds {
    fn from_iter<I: IntoIterator<Item = SubscriptionId>>(ids: I) -> Self {
        Self(ids.into_iter().map(|id| id.0).collect())
    }
}

/// A subscription of a client.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: ClientId,
    /// The client's name for it, escaped for a header.
    pub(crate) escaped_name: Box<[u8]>,
    pub(crate) kind: MessageType,
    pub(crate) selector: TopicSelector,
    pub(crate) fields: FieldSelection,
    /// Memory of its filter's patterns, reserved from the client's budget.
    pub(crate) _reservation: Reservation,
}

/// The topics of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TopicSelector {
    /// One topic.
    Topic(TopicId),
    /// All topics whose name contains the pattern, including future ones.
    Pattern(PatternId),
}

/// The part of a subscription that the fan-out reads for each message: small, so that many fit into
/// the cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) client: ClientId,
    pub(crate) name: NameId,
}

/// All subscriptions. Identifiers of removed ones are reused.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    entries: Vec<Option<Subscription>>,
    /// Routes, with the same indices. A subscription that ended has none.
    routes: Vec<Option<Route>>,
    free: Vec<SubscriptionId>,
    names: SubscriptionNames,
    /// Subscriptions that select fields or skip messages.
    selective: usize,
    /// Ended subscriptions that are still in matchers and topics.
    ended: VecDeque<SubscriptionId>,
}

impl Subscriptions {
    /// The identifier of the next inserted subscription.
    pub(crate) fn next_id(&self) -> SubscriptionId {
        // The same choice as `insert` makes, so that matchers can know the id before it exists.
        let end = SubscriptionId::from_index(self.entries.len());
        self.free.last().copied().unwrap_or(end)
    }

    /// Inserts a subscription as [`next_id`](Self::next_id).
    pub(crate) fn insert(&mut self, subscription: Subscription) {
        self.selective += usize::from(!subscription.fields.is_everything());
        let name = self.names.acquire(&subscription.escaped_name);
        let route = Some(Route { client: subscription.client, name });
        if let Some(id) = self.free.pop() {
            self.entries[id.index()] = Some(subscription);
            self.routes[id.index()] = route;
        } else {
            self.entries.push(Some(subscription));
            self.routes.push(route);
        }
    }

    #[inline]
    pub(crate) fn get(&self, id: SubscriptionId) -> Option<&Subscription> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn route(&self, id: SubscriptionId) -> Option<Route> {
        self.routes.get(id.index()).copied().flatten()
    }

    /// A subscription name, escaped for a header.
    #[inline]
    pub(crate) fn name(&self, id: NameId) -> &[u8] {
        &self.names.entries[id.index()].0
    }

    /// Ends a subscription: nothing more is delivered. Its entries in matchers and topics are
    /// removed later, after [`take_ended`](Self::take_ended).
    pub(crate) fn end(&mut self, id: SubscriptionId) {
        // Without a route the fan-out skips the id, wherever it still is.
        self.remove_route(id);
        self.ended.push_back(id);
    }

    /// Up to `limit` ended subscriptions, to be removed everywhere.
    pub(crate) fn take_ended(&mut self, limit: usize) -> Vec<SubscriptionId> {
        let count = limit.min(self.ended.len());
        self.ended.drain(..count).collect()
    }

    /// Number of ended subscriptions that are not removed yet.
    pub(crate) fn ended_len(&self) -> usize {
        self.ended.len()
    }

    fn remove_route(&mut self, id: SubscriptionId) {
        if let Some(route) = self.routes.get_mut(id.index()).and_then(Option::take) {
            self.names.release(route.name);
        }
    }

    pub(crate) fn remove(&mut self, id: SubscriptionId) -> Option<Subscription> {
        let removed = self.entries.get_mut(id.index())?.take()?;
        self.selective -= usize::from(!removed.fields.is_everything());
        // Does nothing for a subscription that ended before.
        self.remove_route(id);
        self.free.push(id);
        Some(removed)
    }

    /// Whether any subscription selects fields or skips messages. If none does, the fan-out looks
    /// at routes only.
    #[inline]
    pub(crate) fn has_selective(&self) -> bool {
        self.selective > 0
    }
}

/// Subscription names, each stored once: most clients choose the same ones, and the fan-out encodes
/// a frame once per name.
#[derive(Debug, Default)]
struct SubscriptionNames {
    ids: HashMap<Box<[u8]>, NameId>,
    /// Names and their reference counts.
    entries: Vec<(Box<[u8]>, u32)>,
    free: Vec<NameId>,
}

impl SubscriptionNames {
    fn acquire(&mut self, name: &[u8]) -> NameId {
        // Clients of one program use equal names, so this is the usual case.
        if let Some(id) = self.ids.get(name) {
            self.entries[id.index()].1 += 1;
            return *id;
        }
        let entry = (Box::from(name), 1);
        let id = if let Some(id) = self.free.pop() {
            self.entries[id.index()] = entry;
            id
        } else {
            self.entries.push(entry);
            NameId::from_index(self.entries.len() - 1)
        };
        self.ids.insert(name.into(), id);
        id
    }

    fn release(&mut self, id: NameId) {
        let (name, users) = &mut self.entries[id.index()];
        *users -= 1;
        if *users == 0 {
            self.ids.remove(name);
            // The entry stays, since indices of later names must not move.
            *name = Box::default();
            self.free.push(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_while_it_is_in_use() {
        let mut names = SubscriptionNames::default();
        let (a, b) = (names.acquire(b"a"), names.acquire(b"b"));
        assert_eq!((names.acquire(b"a"), a == b), (a, false));
        names.release(a);
        assert_eq!(names.acquire(b"a"), a);
        names.release(a);
        names.release(a);
        assert_eq!(names.acquire(b"c"), a, "a free identifier is reused");
        assert_ne!(names.acquire(b"a"), a);
    }
}
