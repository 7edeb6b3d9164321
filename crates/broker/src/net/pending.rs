//! Connections that have not come in yet: hands are being shaken, or it is not known who it is.
//! They are few, from each address and from all, and each has a deadline.

use crate::Nanos;
use crate::client::ClientId;
use crate::net::source::Source;

#[derive(Debug)]
struct Connection {
    id: ClientId,
    source: Source,
    due: Nanos,
    /// Its password is being checked, which takes as long as it takes.
    is_proving: bool,
}

/// All of them, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct PendingConnections {
    connections: Vec<Connection>,
}

impl PendingConnections {
    /// One more, which has to be in by `due`.
    pub(crate) fn add(&mut self, id: ClientId, source: Source, due: Nanos) {
        self.connections.push(Connection { id, source, due, is_proving: false });
    }

    /// It has come in, or gone.
    pub(crate) fn remove(&mut self, id: ClientId) {
        self.connections.retain(|one| one.id != id);
    }

    /// Stops its clock while its password waits to be checked.
    pub(crate) fn stop_clock(&mut self, id: ClientId) {
        self.set(id, true, Nanos::MAX);
    }

    /// Its password was wrong: it may try again until `due`.
    pub(crate) fn restart_clock(&mut self, id: ClientId, due: Nanos) {
        self.set(id, false, due);
    }

    fn set(&mut self, id: ClientId, is_proving: bool, due: Nanos) {
        if let Some(one) = self.connections.iter_mut().find(|one| one.id == id) {
            (one.is_proving, one.due) = (is_proving, due);
        }
    }

    /// When the next one is late.
    pub(crate) fn next_due(&self) -> Option<Nanos> {
        self.connections.iter().map(|one| one.due).min()
    }

    /// One that is late.
    pub(crate) fn late(&self, now: Nanos) -> Option<ClientId> {
        self.connections.iter().find(|one| one.due <= now).map(|one| one.id)
    }

    /// Which source has to give one up before one more of `source` may come.
    pub(crate) fn surplus(&self, source: Source, of_one: usize, of_all: usize) -> Option<Source> {
        match () {
            () if self.count(source) >= of_one => Some(source),
            () if self.connections.len() >= of_all => self.fullest(),
            () => None,
        }
    }

    /// The source of the most.
    pub(crate) fn fullest(&self) -> Option<Source> {
        // Of several that of the first, which is the last by `rev`.
        let sources = self.connections.iter().rev().map(|one| one.source);
        sources.max_by_key(|source| self.count(*source))
    }

    /// The first of a source that nothing is being found out about.
    pub(crate) fn first_idle(&self, source: Source) -> Option<ClientId> {
        let mut idle = self.connections.iter().filter(|one| !one.is_proving);
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
        assert_eq!(pending.surplus(source(1), 4, 10), Some(source(1)));
        assert_eq!(pending.surplus(source(2), 4, 10), None);
        assert_eq!(pending.surplus(source(3), 4, 5), Some(source(1)));
        pending.stop_clock(ClientId(0));
        assert_eq!(pending.first_idle(source(1)), Some(ClientId(1)));
        pending.remove(ClientId(1));
        assert_eq!(pending.surplus(source(1), 4, 10), None);
    }

    #[test]
    fn no_clock_runs_while_a_password_is_checked() {
        let mut pending = PendingConnections::default();
        pending.add(ClientId(0), source(1), 10);
        pending.add(ClientId(1), source(1), 20);
        pending.stop_clock(ClientId(0));
        assert_eq!((pending.next_due(), pending.late(19)), (Some(20), None));
        assert_eq!(pending.late(20), Some(ClientId(1)));
        pending.restart_clock(ClientId(0), 30);
        pending.remove(ClientId(1));
        assert_eq!((pending.next_due(), pending.late(30)), (Some(30), Some(ClientId(0))));
    }
}
