//! Subscriptions, by their numbers.

use crate::client::ClientId;
use foldhash::HashMap;
use lanecast_base::budget::Reservation;
use lanecast_filter::Selection;
use lanecast_filter::message_type::MessageType;
use std::sync::Arc;

/// What a client wants.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) client: ClientId,
    /// The client's name for it, as it stands in a header.
    pub(crate) shown: Box<[u8]>,
    pub(crate) kind: MessageType,
    pub(crate) scope: TopicSelector,
    pub(crate) taste: FieldSelection,
    /// The memory of its filter's patterns, of that which its client may use.
    pub(crate) _memory: Reservation,
}

/// Which parts of messages are wanted, and which messages are not worth a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct FieldSelection {
    /// Which fields; all if it does not say.
    pub(crate) selection: Option<Arc<Selection>>,
    /// Not to be told of a record that says the same as before.
    pub(crate) no_empties: bool,
}

impl FieldSelection {
    /// Whether all that there is may be told as it is.
    pub(crate) fn is_plain(&self) -> bool {
        self.selection.is_none() && !self.no_empties
    }
}

/// Where its messages come from.
#[derive(Debug)]
pub(crate) enum TopicSelector {
    /// A topic, by its number.
    Topic(u32),
    /// All topics whose names hold the pattern at this place, also those to come.
    Topics(u32),
}

/// What delivery needs to know of a subscription.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    pub(crate) client: ClientId,
    /// The number of its name as it stands in a header.
    pub(crate) name: u32,
}

/// All of them. A number that has become free is given again.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    entries: Vec<Option<Subscription>>,
    /// The same numbers' routes.
    routes: Vec<Option<Route>>,
    free: Vec<u32>,
    names: Names,
    /// How many have a taste of their own.
    particular: usize,
}

impl Subscriptions {
    /// The number that the next one gets.
    pub(crate) fn next_number(&self) -> u32 {
        self.free.last().copied().unwrap_or(self.entries.len() as u32)
    }

    /// Files one under [`next_number`](Self::next_number).
    pub(crate) fn insert(&mut self, subscription: Subscription) {
        self.particular += usize::from(!subscription.taste.is_plain());
        let name = self.names.take(&subscription.shown);
        let route = Some(Route { client: subscription.client, name });
        if let Some(number) = self.free.pop() {
            self.entries[number as usize] = Some(subscription);
            self.routes[number as usize] = route;
        } else {
            self.entries.push(Some(subscription));
            self.routes.push(route);
        }
    }

    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Subscription> {
        self.entries.get(number as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn route(&self, number: u32) -> Option<Route> {
        self.routes.get(number as usize).copied().flatten()
    }

    /// A name as it stands in a header.
    #[inline]
    pub(crate) fn name(&self, number: u32) -> &[u8] {
        &self.names.entries[number as usize].0
    }

    /// Has nothing more delivered, long before all else of the subscription is gone.
    pub(crate) fn silence(&mut self, number: u32) {
        if let Some(route) = self.routes.get_mut(number as usize).and_then(Option::take) {
            self.names.give_back(route.name);
        }
    }

    pub(crate) fn remove(&mut self, number: u32) -> Option<Subscription> {
        let removed = self.entries.get_mut(number as usize)?.take()?;
        self.particular -= usize::from(!removed.taste.is_plain());
        self.silence(number);
        self.free.push(number);
        Some(removed)
    }

    /// Whether all of them are told all that there is.
    #[inline]
    pub(crate) fn all_are_plain(&self) -> bool {
        self.particular == 0
    }
}

/// The names of subscriptions, each once: most clients choose the same.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    /// The names, and how many have them.
    entries: Vec<(Box<[u8]>, u32)>,
    free: Vec<u32>,
}

impl Names {
    fn take(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            self.entries[*number as usize].1 += 1;
            return *number;
        }
        let entry = (Box::from(name), 1);
        let number = if let Some(number) = self.free.pop() {
            self.entries[number as usize] = entry;
            number
        } else {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        };
        self.numbers.insert(name.into(), number);
        number
    }

    fn give_back(&mut self, number: u32) {
        let (name, users) = &mut self.entries[number as usize];
        *users -= 1;
        if *users == 0 {
            self.numbers.remove(name);
            *name = Box::default();
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_number_as_long_as_somebody_has_it() {
        let mut names = Names::default();
        let (a, b) = (names.take(b"a"), names.take(b"b"));
        assert_eq!((names.take(b"a"), a == b), (a, false));
        names.give_back(a);
        assert_eq!(names.take(b"a"), a);
        names.give_back(a);
        names.give_back(a);
        assert_eq!(names.take(b"c"), a, "a free number is given again");
        assert_ne!(names.take(b"a"), a);
    }
}
