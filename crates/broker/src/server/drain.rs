//! The server's end: clients take what waits for them, and nothing else happens.

use super::Server;
use crate::client::ClientId;
use crate::net::connection::Connection;
use crate::net::poller::Interest;
use crate::net::websocket::CloseReason;
use std::time::{Duration, Instant};

impl Server {
    /// From now on the poller only knows those who may take more: what comes is not read.
    fn listen_no_more(&mut self) {
        self.entrances.close(&self.poller);
        for connection in self.connections.iter().flatten() {
            drop(self.poller.remove(&connection.channel));
        }
    }

    fn write_last(&mut self, id: ClientId) {
        let Some(Some(connection)) = self.connections.get_mut(id.0 as usize) else { return };
        let sent = connection.send(&mut self.hub, id);
        let (channel, number) = (&connection.channel, id.0.into());
        match sent {
            Ok(true) => drop(self.poller.remove(channel)),
            Ok(false) => {
                // It may be there from the last time.
                drop(self.poller.add(channel, number));
                drop(self.poller.change(channel, number, Interest::Write));
            }
            Err(_) => self.close(id),
        }
    }

    /// Whether something waits to be sent to a client.
    fn has_unsent(&mut self, id: ClientId) -> bool {
        let connection = self.connections.get(id.0 as usize).and_then(Option::as_ref);
        connection.is_some_and(Connection::has_unsent) || self.hub.has_unsent(id)
    }

    /// Accepts nobody any more, and empties outboxes for as long as the settings say; whether all
    /// are empty.
    pub fn drain(mut self) -> bool {
        let start = Instant::now();
        let limit = self.hub.settings.drain;
        self.listen_no_more();
        self.hub.finish(limit);
        loop {
            let ids = (0..self.connections.len() as u32).map(ClientId);
            let full: Vec<ClientId> = ids.filter(|id| self.has_unsent(*id)).collect();
            full.iter().for_each(|id| self.write_last(*id));
            let left = limit.saturating_sub(start.elapsed());
            if full.is_empty() || left.is_zero() {
                for connection in self.connections.iter_mut().flatten() {
                    connection.say_goodbye(CloseReason::Away);
                }
                return full.is_empty();
            }
            let mut ready = Vec::new();
            let nap = left.min(Duration::from_millis(10));
            if self.poller.wait(Some(nap), &mut ready).is_err() {
                return false;
            }
        }
    }
}
