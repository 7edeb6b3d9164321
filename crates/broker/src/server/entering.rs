//! Connections that come in, and frames that have begun: what strangers may take is bounded.

use super::Server;
use crate::Nanos;
use crate::client::ClientId;
use crate::command::acknowledgement as reply;
use crate::net::byte_stream::ByteStream;
use crate::net::connection::Connection;
use crate::net::listeners::Framing;
use crate::net::source::Source;
use crate::net::websocket::{CloseReason, WebSocket};
use crate::queue::slow_consumers::is_told;
use foldhash::HashMap;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The longest frame of one of whom it is to be found out who it is: a logon.
const STRANGERS_FRAME_MAX: usize = 16 << 10;
/// What is read from such a one at a time: with TLS, a record and what it says.
pub(super) const STRANGERS_READ: usize = 64 << 10;

impl Server {
    pub(super) fn welcome(
        &mut self,
        now: Nanos,
        stream: TcpStream,
        from: SocketAddr,
        speech: Framing,
    ) {
        let source = Source::of(from.ip());
        // Whom it cannot serve it hangs up on.
        let Ok(channel) = ByteStream::new(stream, self.tls.as_ref()) else { return };
        let is_known = self.hub.guard.users.is_none();
        let is_pending = !is_known || !channel.is_open() || speech == Framing::WebSocket;
        self.make_room(source, is_pending);
        let Some(id) = self.hub.connect(now) else { return };
        self.hub.came_from(id, source);
        let limit = self.frame_limit(is_known);
        let websocket =
            (speech == Framing::WebSocket).then(|| WebSocket::new(self.origins.clone(), limit));
        let mut connection = Connection::new(channel, websocket, source);
        connection.is_pending = is_pending;
        if is_pending {
            self.pending.add(id, source, self.late(now));
        }
        let at = id.0 as usize;
        if self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
        }
        let added = self.poller.add(&connection.channel, id.0.into());
        self.connections[at] = Some(connection);
        if added.is_err() {
            self.close(id);
        }
    }

    /// Lets others go that have not come in yet, if they are too many for one more.
    fn make_room(&mut self, source: Source, is_pending: bool) {
        let settings = &self.hub.settings;
        let (of_one, of_all) = (settings.pending_per_address_max, settings.pending_max);
        loop {
            let surplus = self.pending.surplus(source, of_one, of_all).filter(|_| is_pending);
            let fullest = || self.pending.fullest().filter(|_| self.hub.is_full());
            let Some(full) = surplus.or_else(fullest) else { return };
            let idle = self.pending.first_idle(full);
            let Some(id) = idle.or_else(|| self.hub.guard.logons.first_of_most(full)) else {
                return;
            };
            let counters = &mut self.hub.counters;
            counters.evicted += 1;
            let count = counters.evicted;
            if is_told(count) {
                let limits = "limits.pending, limits.pending_per_address";
                self.hub.say(format!(
                    "too many connections are coming in: {count} were hung up on so far, the last \
                     from {full} ({limits})"
                ));
            }
            self.dismiss(id, CloseReason::Refused("too many are coming in: try again later"));
        }
    }

    /// How long a client's frames may be.
    pub(super) fn frame_limit(&self, is_known: bool) -> usize {
        let most = self.hub.settings.frame_bytes_max;
        if is_known { most } else { most.min(STRANGERS_FRAME_MAX) }
    }

    /// Looks whether a connection has come in.
    pub(super) fn look_whether_in(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        if !connection.is_pending {
            return;
        }
        if self.hub.is_proving(id) {
            self.pending.stop_clock(id);
        } else if connection.is_open() && self.hub.is_admitted(id) {
            connection.is_pending = false;
            connection.set_limit(self.hub.settings.frame_bytes_max);
            self.pending.remove(id);
        }
    }

    /// Lets those go who take too long to come in, and those who take too long over a frame.
    pub(super) fn hurry(&mut self, now: Nanos) {
        while let Some(id) = self.pending.late(now) {
            self.pending.remove(id);
            self.dismiss(id, CloseReason::Refused("it took too long to come in"));
        }
        let time = &self.hub.settings.frame_timeout;
        let frame_timeout = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if self.partial_bytes == 0 || now < self.partials_due {
            return;
        }
        let (shortest, longest) = (Duration::from_millis(10), Duration::from_secs(1));
        let every = (*time / 8).clamp(shortest, longest).as_nanos() as u64;
        self.partials_due = now.saturating_add(every);
        for at in 0..self.connections.len() {
            let id = ClientId(at as u32);
            let Some(connection) = &mut self.connections[at] else { continue };
            if self.hub.is_stopped(id) {
                // It is not read from.
                connection.partial_since = now;
            }
            let age = now.saturating_sub(connection.partial_since);
            if connection.partial > 0 && age > frame_timeout {
                self.let_unfinished_go(id, "its frame took too long");
            }
        }
    }

    /// When somebody is late to come in who came then.
    pub(super) fn late(&self, since: Nanos) -> Nanos {
        let patience = u64::try_from(self.hub.settings.handshake.as_nanos()).unwrap_or(u64::MAX);
        since.saturating_add(patience)
    }

    /// Something of a client was read: counts what has come of its next frame. If there is too much
    /// of such frames, lets those go that have most of it.
    pub(super) fn count_partial(&mut self, now: Nanos, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let before = connection.note_partial(now);
        self.partial_bytes = self.partial_bytes - before + connection.partial;
        let settings = &self.hub.settings;
        let most = settings.partial_frame_bytes_max.max(settings.frame_bytes_max);
        while self.partial_bytes > most
            && let Some(id) = self.oldest_partial()
        {
            self.let_unfinished_go(id, "too much has come of frames that have not ended");
        }
    }

    /// The oldest frame that has begun of the address that has sent most of such frames.
    fn oldest_partial(&self) -> Option<ClientId> {
        let all = (0..).map(ClientId).zip(&self.connections);
        let partials = all.filter_map(|(id, connection)| {
            let connection = connection.as_ref().filter(|one| one.partial > 0)?;
            // What waits for the disk, or for answers to queries, is no fault of its client.
            let client = self.hub.clients.get(id.0 as usize).and_then(Option::as_ref);
            let waits = client.is_some_and(|client| client.is_stopped && !client.leaves_unread());
            (!waits).then_some((id, connection))
        });
        let mut by_source = HashMap::<Source, usize>::default();
        for (_, connection) in partials.clone() {
            *by_source.entry(connection.source).or_default() += connection.partial;
        }
        let (fullest, _) = by_source.into_iter().max_by_key(|(_, bytes)| *bytes)?;
        let its = partials.filter(|(_, connection)| connection.source == fullest);
        its.min_by_key(|(_, connection)| connection.partial_since).map(|(id, _)| id)
    }

    fn let_unfinished_go(&mut self, id: ClientId, why: &'static str) {
        self.hub.counters.partial_frames_dropped += 1;
        let count = self.hub.counters.partial_frames_dropped;
        let source = self.connections[id.0 as usize].as_ref().map(|one| one.source);
        if is_told(count) {
            let source = source.unwrap_or_default();
            self.hub.say(format!(
                "frames that have begun do not end: {count} connections were hung up on so far, \
                 the last from {source}: {why} (limits.frame_timeout, limits.partial)"
            ));
        }
        self.dismiss(id, CloseReason::Refused(why));
    }

    /// Tells a stranger that its frame is too long; one of a WebSocket is told by its close.
    pub(super) fn refuse_frame(&mut self, id: ClientId) {
        let connection = self.connections.get(id.0 as usize).and_then(Option::as_ref);
        let can_be_told = connection.is_some_and(|it| it.is_open() && !it.is_websocket());
        if can_be_told && !self.hub.is_admitted(id) {
            let most = self.frame_limit(false);
            self.hub.answer(id, |out| reply::too_long(most, out));
            self.write(id);
        }
    }
}
