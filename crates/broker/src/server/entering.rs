//! Connections that have not come in yet: hands are being shaken, and it is found out who it is.

use super::Server;
use crate::Nanos;
use crate::channel::Channel;
use crate::connection::Connection;
use crate::entrance::Speech;
use crate::websocket::{Farewell, WebSocket};
use std::net::TcpStream;

impl Server {
    pub(super) fn welcome(&mut self, now: Nanos, stream: TcpStream, speech: Speech) {
        let limit = self.hub.settings.frame_bytes_max;
        let websocket =
            (speech == Speech::WebSocket).then(|| WebSocket::new(self.origins.clone(), limit));
        // Whom it cannot serve it hangs up on.
        let Ok(channel) = Channel::new(stream, self.tls.as_ref()) else { return };
        let connection = Connection::new(channel, websocket, now);
        let Some(id) = self.hub.connect(now) else { return };
        let at = id.0 as usize;
        if self.connections.len() <= at {
            self.connections.resize_with(at + 1, || None);
        }
        let added = self.poller.add(&connection.channel, id.0.into());
        if !connection.is_open() || !self.hub.is_admitted(id) {
            self.entering.push_back((now, id));
        }
        self.connections[at] = Some(connection);
        if added.is_err() {
            self.close(id);
        }
    }

    /// Lets those go who take too long to come in.
    pub(super) fn hurry(&mut self, now: Nanos) {
        while let Some((since, id)) = self.entering.front().copied()
            && self.late(since) <= now
        {
            self.entering.pop_front();
            let connection = self.connections.get(id.0 as usize).and_then(Option::as_ref);
            if connection
                .is_some_and(|it| it.since == since && !(it.is_open() && self.hub.is_admitted(id)))
            {
                self.dismiss(id, Farewell::Refused("it took too long to come in"));
            }
        }
    }

    /// When somebody is late to come in who came then.
    pub(super) fn late(&self, since: Nanos) -> Nanos {
        let patience = u64::try_from(self.hub.settings.handshake.as_nanos()).unwrap_or(u64::MAX);
        since.saturating_add(patience)
    }
}
