//! Clients whose commands wait: what stops them, and what lets them go on.
//!
//! Whether a client goes on depends on values that change at any time, one of them on the thread
//! that writes to the disk. So each decision is made once and kept: [`Engine::goes_on`] decides before
//! a client is read and after each of its commands, and `Client::is_stopped` holds the result
//! until [`Engine::resumes`] decides again, once per turn. A stopped client is in `Engine::stopped`, and
//! before the server sleeps [`Engine::has_progress`] asks the disk for a wake-up and looks once more.

use crate::client::{Client, ClientId};
use crate::engine::{Engine, Now};
use crate::topic::durable_store::DurableStore;
use lanecast_wire::command::{Command, Field, Header};

impl Engine {
    /// Decides whether the next command of a client is taken. If it is not, the client is stopped:
    /// what it sends is not read, until it [resumes](Self::resumes).
    pub(crate) fn goes_on(&mut self, id: ClientId) -> bool {
        let goes_on = self.may_go_on(id);
        let Some(client) = self.client(id) else { return true };
        let goes_on = goes_on && client.held.is_none();
        if !goes_on && !std::mem::replace(&mut client.is_stopped, true) {
            self.stopped.push(id);
        }
        goes_on
    }

    /// Whether a client was stopped, and has not resumed.
    pub(crate) fn is_stopped(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0 as usize).and_then(Option::as_ref);
        client.is_some_and(|client| client.is_stopped)
    }

    /// Notes whether a client leaves more pongs unread than it may, which stops it.
    pub(crate) fn note_pongs(&mut self, id: ClientId, are_unread: bool) {
        let Some(client) = self.client(id) else { return };
        client.leaves_pongs = are_unread;
        if are_unread {
            self.goes_on(id);
        }
    }

    /// Those that are stopped, each to be asked whether it [resumes](Self::resumes).
    pub(crate) fn take_stopped(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.stopped)
    }

    /// Decides whether a stopped client goes on. If it does, what it sent before is to be taken
    /// first: the command that was [held back](Self::receive_held), and what has been read.
    pub(crate) fn resumes(&mut self, id: ClientId) -> bool {
        let resumes = self.may_go_on(id);
        let Some(client) = self.client(id).filter(|client| client.is_stopped) else { return false };
        client.is_stopped = !resumes;
        if !resumes {
            self.stopped.push(id);
        }
        resumes
    }

    /// Whether there is something to do at once for those that wait: for the disk, or for an
    /// answer. If not, the disk has been asked for a wake-up.
    pub(crate) fn has_progress(&self) -> bool {
        if let Some(disk) = &self.world.disk
            && (disk.is_awaited() || !self.stopped.is_empty() || !self.deleting.is_empty())
        {
            // All looks come after this: what changes later rings.
            disk.bell().arm();
            if disk.has_news() || self.has_late_logon(disk) {
                return true;
            }
        }
        if !self.deleting.is_empty() && !self.is_disk_pressed() {
            return true;
        }
        self.stopped.iter().any(|id| self.may_go_on(*id))
    }

    /// The wake-up that was asked for has come.
    pub(crate) fn hush_disk(&self) {
        if let Some(disk) = &self.world.disk {
            disk.bell().clear();
        }
    }

    /// Holds back what would be written to a disk that is behind, from a client that has not
    /// written there before. One that has was stopped before its command was read.
    pub(crate) fn holds_back(&mut self, id: ClientId, header: &Header<'_>, payload: &[u8]) -> bool {
        let is_write = matches!(
            header.command(),
            Ok(Command::Publish | Command::DeltaPublish | Command::SowDelete)
        );
        if !is_write || !self.is_disk_pressed() {
            return false;
        }
        let Some(kind) = self.client(id).map(|client| client.kind) else { return false };
        if !self.is_durable(kind, &header.text(Field::Topic).unwrap_or_default()) {
            return false;
        }
        let Some(client) = self.client(id) else { return false };
        client.writes_durably = true;
        client.held = Some(payload.into());
        true
    }

    /// Takes the command that was held back, if there is one. The client [resumes](Self::resumes).
    pub(crate) fn receive_held(&mut self, moment: Now, id: ClientId) {
        if let Some(payload) = self.client(id).and_then(|client| client.held.take()) {
            self.receive(moment, id, &payload);
        }
    }

    /// Whether commands of a client can be taken now. They wait while its password is checked,
    /// while it leaves answers unread, while as many of its queries are being answered as may or
    /// it deletes, when they have cost enough for this turn, and while the disk is behind with what
    /// it and others have published. The last changes on another thread, so two calls in a row may
    /// differ.
    pub(crate) fn may_go_on(&self, id: ClientId) -> bool {
        let client = self.clients.get(id.0 as usize).and_then(Option::as_ref);
        let waits = |client: &Client| {
            client.is_busy(self.settings.queries_max)
                || client.leaves_unread()
                || client.writes_durably && self.is_disk_pressed()
        };
        !self.is_proving(id) && !client.is_some_and(waits)
    }

    /// Whether more waits for the disk than should.
    pub(crate) fn is_disk_pressed(&self) -> bool {
        self.world.disk.as_ref().is_some_and(DurableStore::has_enough)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::server_config::ServerConfig;
    use crate::config::storage::StorageConfig;
    use lanecast_filter::message_type::MessageType;
    use lanecast_sow::TopicDefinition;
    use std::time::{Duration, Instant};

    const NOW: Now = Now { now: 0, unix_ns: 0 };

    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
            std::thread::yield_now();
        }
    }

    fn hub(directory: &std::path::Path) -> Engine {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        // One message is half of it.
        let storage = StorageConfig { waiting_bytes: 2_000, ..StorageConfig::at(directory) };
        let kept = vec![topic.durable()];
        let storage = Some(storage);
        Engine::new(ServerConfig { kept, storage, ..ServerConfig::default() }).expect("a hub")
    }

    /// Publishes until the disk is behind at the moment when that is asked.
    fn stop(hub: &mut Engine, client: ClientId) {
        let note = "x".repeat(2_000);
        let payload = format!(r#"{{"c":"p","t":"orders"}}{{"id":1,"note":"{note}"}}"#);
        wait_for("a disk that is behind", || {
            hub.receive(NOW, client, payload.as_bytes());
            let goes_on = hub.goes_on(client);
            if !goes_on && hub.client(client).is_some_and(|client| client.held.is_some()) {
                // It was behind before already.
                wait_for("the disk", || hub.resumes(client));
                hub.receive_held(NOW, client);
                return !hub.goes_on(client);
            }
            !goes_on
        });
    }

    #[test]
    fn a_client_that_was_stopped_stays_so_until_it_is_resumed() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut hub = hub(directory.path());
        let client = hub.connect(0).expect("there is room");
        stop(&mut hub, client);
        // The disk catches up between that decision and all that follow from it.
        wait_for("the disk", || !hub.is_disk_pressed());
        assert!(hub.is_stopped(client), "what it sent waits, and is not to be forgotten");
        assert!(hub.has_progress(), "the server may not sleep");
        assert_eq!(hub.take_stopped(), [client]);
        assert!(hub.resumes(client) && !hub.is_stopped(client) && !hub.has_progress());
    }

    #[test]
    fn a_client_that_goes_on_is_read_however_far_the_disk_falls_behind() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut hub = hub(directory.path());
        let (client, other) = (hub.connect(0).expect("room"), hub.connect(0).expect("room"));
        hub.client(other).expect("it is here").writes_durably = true;
        stop(&mut hub, client);
        assert!(!hub.is_stopped(other), "nothing would resume it");
    }

    #[test]
    fn the_disk_rings_when_it_has_come_further() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut hub = hub(directory.path());
        let client = hub.connect(0).expect("there is room");
        stop(&mut hub, client);
        // As the server does: it sleeps only if there is nothing to do.
        wait_for("a client that goes on", || {
            let has_progress = hub.has_progress();
            if !has_progress {
                hub.world.disk.as_ref().expect("a disk").bell().wait(None);
            }
            has_progress
        });
        let stopped = hub.take_stopped();
        assert!(stopped == [client] && hub.resumes(client));
    }
}
