//! The table of connections, and the memory and time of their incomplete frames.

use crate::ids::ClientId;
use crate::net::connection::Connection;
use crate::net::source::Source;
use crate::time::Nanos;
use foldhash::HashMap;
use std::time::Duration;

/// Incomplete frames are checked this often: an eighth of their timeout, within these bounds.
const CHECK_SHORTEST: Duration = Duration::from_millis(10);
const CHECK_LONGEST: Duration = Duration::from_secs(1);

/// All connections, by client.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    entries: Vec<Option<Connection>>,
    /// Bytes of incomplete frames on all connections.
    partial_bytes: usize,
    /// When incomplete frames are checked next.
    partial_check_at: Nanos,
}

impl Connections {
    #[inline]
    pub(crate) fn get(&self, id: ClientId) -> Option<&Connection> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, id: ClientId) -> Option<&mut Connection> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    pub(crate) fn insert(&mut self, id: ClientId, connection: Connection) {
        if self.entries.len() <= id.index() {
            self.entries.resize_with(id.index() + 1, || None);
        }
        self.entries[id.index()] = Some(connection);
    }

    pub(crate) fn remove(&mut self, id: ClientId) -> Option<Connection> {
        let connection = self.entries.get_mut(id.index())?.take()?;
        self.partial_bytes -= connection.partial_bytes;
        Some(connection)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.entries.iter_mut().flatten()
    }

    /// Identifiers up to the last one in use.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ClientId> + use<> {
        (0..self.entries.len()).map(ClientId::from_index)
    }

    /// Updates the size of a client's incomplete frame after a read.
    pub(crate) fn update_partial(&mut self, now: Nanos, id: ClientId) {
        if let Some(Some(connection)) = self.entries.get_mut(id.index()) {
            let before = connection.update_partial(now);
            // Kept as a sum, so that no read walks all connections.
            self.partial_bytes = self.partial_bytes - before + connection.partial_bytes;
        }
    }

    /// Bytes of incomplete frames on all connections.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partial_bytes
    }

    /// When incomplete frames are checked next, if there are any.
    pub(crate) fn partial_check_at(&self) -> Option<Nanos> {
        (self.partial_bytes > 0).then_some(self.partial_check_at)
    }

    /// The connections whose frame is incomplete for longer than `timeout`, if a check is due. The
    /// age does not count for clients that the server does not read from.
    pub(crate) fn expired_partials(
        &mut self,
        now: Nanos,
        timeout: Duration,
        is_paused: impl Fn(ClientId) -> bool,
    ) -> Vec<ClientId> {
        if self.partial_check_at().is_none_or(|due| now < due) {
            return Vec::new();
        }
        let every = (timeout / 8).clamp(CHECK_SHORTEST, CHECK_LONGEST).as_nanos() as u64;
        self.partial_check_at = now.saturating_add(every);
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let mut expired = Vec::new();
        for (index, connection) in self.entries.iter_mut().enumerate() {
            let (id, Some(connection)) = (ClientId::from_index(index), connection) else {
                continue;
            };
            if is_paused(id) {
                // The server itself causes the delay: the clock starts anew.
                connection.partial_since = now;
            }
            let age = now.saturating_sub(connection.partial_since);
            if connection.partial_bytes > 0 && age > timeout {
                expired.push(id);
            }
        }
        expired
    }

    /// The oldest incomplete frame from the address with the most bytes of such frames, among
    /// clients that are not waiting for the server itself.
    pub(crate) fn oldest_partial(&self, is_waiting: impl Fn(ClientId) -> bool) -> Option<ClientId> {
        let all = self.ids().zip(&self.entries);
        let partials = all.filter_map(|(id, connection)| {
            let connection = connection.as_ref().filter(|one| one.partial_bytes > 0)?;
            (!is_waiting(id)).then_some((id, connection))
        });
        let partials: Vec<_> = partials.collect();
        let mut by_source = HashMap::<Source, usize>::default();
        for (_, connection) in &partials {
            *by_source.entry(connection.source).or_default() += connection.partial_bytes;
        }
        // The address with most bytes loses one, so one attacker cannot displace all others.
        let (fullest, _) = by_source.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let its = partials.iter().filter(|(_, connection)| connection.source == fullest);
        its.min_by_key(|(_, connection)| connection.partial_since).map(|(id, _)| *id)
    }
}
