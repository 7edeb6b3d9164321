//! Pending connections: TLS, WebSocket or logon are incomplete. Their number is limited for each
//! address and in all, and each has a deadline. The server owns the table.

use crate::ids::ClientId;
use crate::net::source::Source;
use crate::time::Nanos;
use foldhash::HashMap;

#[derive(Debug)]
struct Connection {
    id: ClientId,
    source: Source,
    due: Nanos,
    /// The password worker checks its password; the deadline pauses meanwhile.
    is_checking: bool,
}

/// All pending connections, oldest first.
#[derive(Debug, Default)]
pub(crate) struct PendingConnections {
    connections: Vec<Connection>,
}

impl PendingConnections {
    /// Adds a connection whose handshake must be complete by `due`.
    pub(crate) fn add(&mut self, id: ClientId, source: Source, due: Nanos) {
        // Pushed at the end: the list stays in the order of arrival, and `find` returns the oldest.
        self.connections.push(Connection { id, source, due, is_checking: false });
    }

    /// Removes a connection that completed its handshake or ended.
    pub(crate) fn remove(&mut self, id: ClientId) {
        self.connections.retain(|one| one.id != id);
    }

    /// Pauses the deadline while a password is checked.
    pub(crate) fn pause_deadline(&mut self, id: ClientId) {
        // The client must not pay for the queue of the password worker.
        self.set(id, true, Nanos::MAX);
    }

    /// Sets a new deadline after a wrong password.
    pub(crate) fn set_deadline(&mut self, id: ClientId, due: Nanos) {
        self.set(id, false, due);
    }

    fn set(&mut self, id: ClientId, is_checking: bool, due: Nanos) {
        if let Some(one) = self.connections.iter_mut().find(|one| one.id == id) {
            (one.is_checking, one.due) = (is_checking, due);
        }
    }

    /// The earliest deadline.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.connections.iter().map(|one| one.due).min()
    }

    /// A connection whose deadline passed.
    pub(crate) fn expired(&self, now: Nanos) -> Option<ClientId> {
        self.connections.iter().find(|one| one.due <= now).map(|one| one.id)
    }

    /// The source that must lose a connection before one more from `source` is accepted.
    pub(crate) fn source_over_limit(
        &self,
        source: Source,
        per_source: usize,
        total: usize,
    ) -> Option<Source> {
        match () {
            // An address over its own limit loses its own connection, not that of another.
            () if self.count(source) >= per_source => Some(source),
            () if self.connections.len() >= total => self.busiest_source(),
            () => None,
        }
    }

    /// The source with the most pending connections.
    pub(crate) fn busiest_source(&self) -> Option<Source> {
        // Counted in one pass: with each accept, a pass for each connection would hold up clients.
        let mut counts = HashMap::<Source, usize>::default();
        self.connections.iter().for_each(|one| *counts.entry(one.source).or_default() += 1);
        // `max_by_key` returns the last of equals; `rev` makes that the oldest.
        let sources = self.connections.iter().rev().map(|one| one.source);
        sources.max_by_key(|source| counts[source])
    }

    /// The oldest connection of a source whose password is not being checked.
    pub(crate) fn oldest_idle(&self, source: Source) -> Option<ClientId> {
        let mut idle = self.connections.iter().filter(|one| !one.is_checking);
        idle.find(|one| one.source == source).map(|one| one.id)
    }

    fn count(&self, source: Source) -> usize {
        self.connections.iter().filter(|one| one.source == source).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: u8) -> Source {
        Source::of([10, 0, 0, number].into())
    }

    #[test]
    fn the_fullest_source_gives_up_its_first() {
        let mut pending = PendingConnections::default();
        for number in 0..4 {
            pending.add(ClientId(number), source(1), 100);
        }
        pending.add(ClientId(9), source(2), 50);
        assert_eq!(pending.source_over_limit(source(1), 4, 10), Some(source(1)));
        assert_eq!(pending.source_over_limit(source(2), 4, 10), None);
        assert_eq!(pending.source_over_limit(source(3), 4, 5), Some(source(1)));
        pending.pause_deadline(ClientId(0));
        assert_eq!(pending.oldest_idle(source(1)), Some(ClientId(1)));
        pending.remove(ClientId(1));
        assert_eq!(pending.source_over_limit(source(1), 4, 10), None);
    }

    #[test]
    fn no_clock_runs_while_a_password_is_checked() {
        let mut pending = PendingConnections::default();
        pending.add(ClientId(0), source(1), 10);
        pending.add(ClientId(1), source(1), 20);
        pending.pause_deadline(ClientId(0));
        assert_eq!((pending.next_due(), pending.expired(19)), (Some(20), None));
        assert_eq!(pending.expired(20), Some(ClientId(1)));
        pending.set_deadline(ClientId(0), 30);
        pending.remove(ClientId(1));
        assert_eq!((pending.next_due(), pending.expired(30)), (Some(30), Some(ClientId(0))));
    }
}
