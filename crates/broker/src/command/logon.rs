//! Logons that are acknowledged when what their clients published before is durable.
//!
//! A logon tells the last sequence number of its client's name, and the client may forget all
//! messages up to that. So the number is told when it is on disk, and not before: until then the
//! client is stopped, and no other one waits for it.

use crate::Nanos;
use crate::client::ClientId;
use crate::command::publish::{CommandResult, succeed};
use crate::engine::{DisconnectReason, Engine, Now};
use crate::topic::durable_store::DurableStore;
use lanecast_wire::command::{Acks, Header};
use std::mem;

/// A logon that waits for the disk.
#[derive(Debug)]
pub(crate) struct PendingLogon {
    pub(crate) client: ClientId,
    header: Box<[u8]>,
    name: Box<str>,
    sequence: u64,
    /// The last change when it came.
    journal: u64,
    until: Nanos,
}

impl Engine {
    /// What a logon is answered with: at once if all that was published is durable, later if not.
    pub(crate) fn logged_on(
        &mut self,
        at: Now,
        client: ClientId,
        header: &Header<'_>,
        name: Box<str>,
        sequence: u64,
    ) -> CommandResult {
        let behind = self.world.disk.as_ref().filter(|disk| !disk.has_reached(disk.last()));
        let Some(disk) = behind.filter(|_| sequence > 0) else {
            return CommandResult::LoggedOn { name, sequence };
        };
        let patience = u64::try_from(self.settings.handshake.as_nanos()).unwrap_or(u64::MAX);
        let (journal, until) = (disk.last(), at.now.saturating_add(patience));
        let header = header.bytes().into();
        self.logons.push(PendingLogon { client, header, name, sequence, journal, until });
        if let Some(client) = self.client(client) {
            client.is_logging_on = true;
        }
        CommandResult::Later
    }

    /// Acknowledges logons that have waited for the disk. Hangs up on those that have for too long:
    /// their clients come again, and have kept their messages.
    pub(crate) fn go_on_logging_on(&mut self, at: Now) {
        for logon in mem::take(&mut self.logons) {
            let id = logon.client;
            if self.world.disk.as_ref().is_none_or(|disk| disk.has_reached(logon.journal)) {
                if let Some(client) = self.client(id) {
                    client.is_logging_on = false;
                }
                let Ok(header) = Header::parse(&logon.header) else { continue };
                let acks = header.acks().unwrap_or(Acks::NONE);
                let PendingLogon { name, sequence, .. } = logon;
                let done = CommandResult::LoggedOn { name, sequence };
                self.reply(id, &header, acks, |reply| succeed(reply, &done));
            } else if logon.until <= at.now {
                self.depart(id, DisconnectReason::Undurable);
            } else {
                self.logons.push(logon);
            }
        }
    }

    /// Whether a logon can be acknowledged that has waited for the disk.
    pub(crate) fn has_late_logon(&self, disk: &DurableStore) -> bool {
        self.logons.iter().any(|logon| disk.has_reached(logon.journal))
    }

    /// When the first logon has waited for too long.
    pub(crate) fn next_late_logon(&self) -> Option<Nanos> {
        self.logons.iter().map(|logon| logon.until).min()
    }
}

#[cfg(test)]
mod tests {
    use crate::client::ClientId;
    use crate::config::storage::StorageConfig;
    use crate::test_broker::TestBroker;
    use lanecast_filter::message_type::MessageType;
    use lanecast_sow::TopicDefinition;
    use std::path::Path;
    use std::time::{Duration, Instant};

    fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
        let start = Instant::now();
        while !is_so() {
            assert!(start.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
            std::thread::yield_now();
        }
    }

    fn desk(directory: &Path, change: impl FnOnce(&mut StorageConfig)) -> TestBroker {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        let mut storage = StorageConfig { segment_bytes: 16 << 10, ..StorageConfig::at(directory) };
        change(&mut storage);
        TestBroker::new(|settings| {
            settings.kept = vec![topic.durable()];
            settings.storage = Some(storage);
        })
    }

    fn log_on(desk: &mut TestBroker) -> ClientId {
        let client = desk.client();
        desk.say(client, r#"{"c":"logon","cid":"l","a":"processed","client_name":"a"}"#);
        client
    }

    /// Publishes a message with that number; what it is answered with.
    fn publish(desk: &mut TestBroker, client: ClientId, number: u64) -> Vec<String> {
        let note = "x".repeat(2_000);
        let body = format!(r#"{{"id":{number},"note":"{note}"}}"#);
        desk.say(
            client,
            &format!(r#"{{"c":"p","t":"orders","s":{number},"a":"processed"}}{body}"#),
        );
        desk.heard(client)
    }

    #[test]
    fn a_number_is_told_when_its_message_is_on_disk() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut desk = desk(directory.path(), |_| ());
        let mut client = log_on(&mut desk);
        desk.heard(client);
        let mut number = 0;
        wait_for("a logon that waits for the disk", || {
            number += 1;
            assert_eq!(publish(&mut desk, client, number).len(), 1);
            client = log_on(&mut desk);
            !desk.hub.logons.is_empty() || {
                assert!(desk.heard(client)[0].contains(&format!(r#""s":{number}"#)));
                false
            }
        });
        assert!(!desk.hub.goes_on(client), "what else it sends waits for that");
        assert_eq!(desk.heard(client), [""; 0]);
        let journal = desk.hub.world.disk.as_ref().expect("a disk").last();
        wait_for("the disk", || {
            desk.turn();
            desk.hub.logons.is_empty()
        });
        assert!(desk.hub.world.disk.as_ref().expect("a disk").has_reached(journal));
        let heard = desk.heard(client);
        assert!(heard.len() == 1 && heard[0].contains(&format!(r#""s":{number}"#)), "{heard:?}");
        assert!(desk.hub.resumes(client));
    }

    #[test]
    fn a_number_that_a_failed_disk_does_not_have_is_never_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("state");
        let mut desk = desk(&place, |_| ());
        let client = log_on(&mut desk);
        desk.heard(client);
        // The journal goes on in the segments that it has, and finds none behind them.
        std::fs::rename(&place, directory.path().join("away")).expect("a directory");
        let mut number = 0;
        wait_for("a disk that has failed", || {
            number += 1;
            publish(&mut desk, client, number);
            desk.hub.world.disk.as_ref().expect("a disk").has_failed()
        });
        let answer = publish(&mut desk, client, number + 1).concat();
        assert!(answer.contains("failure"), "{answer}");
        desk.turn();
        let words: Vec<String> = desk.hub.words.drain(..).collect();
        assert!(words.iter().any(|it| it.contains("nothing is durable any more")), "{words:?}");
        let counters = desk.hub.counters();
        assert!(counters.disk_failed == 1 && counters.not_stored >= 1, "{counters:?}");
        let client = log_on(&mut desk);
        desk.turn();
        assert_eq!(desk.heard(client), [""; 0], "that it has {number} would not be true");
        // Others are served, and it may come again.
        let other = desk.client();
        desk.say(other, r#"{"c":"sow","cid":"q","t":"orders","top_n":1}"#);
        desk.rest();
        assert!(!desk.heard(other).is_empty());
        let due = desk.hub.next_deadline(desk.at).expect("the end of its patience");
        desk.at.now = desk.at.now.max(due) + 20_000_000_000;
        desk.turn();
        let departure = desk.hub.next_disconnect();
        assert_eq!(departure.map(|it| it.1), Some(crate::engine::DisconnectReason::Undurable));
    }

    #[test]
    fn a_checkpoint_that_fails_is_told_and_counted() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = directory.path().join("state");
        let mut desk = desk(&place, |storage| {
            (storage.segment_bytes, storage.checkpoint_after) = (1 << 20, 10);
        });
        let client = log_on(&mut desk);
        desk.heard(client);
        std::fs::rename(&place, directory.path().join("away")).expect("a directory");
        (1..=15).for_each(|number| drop(publish(&mut desk, client, number)));
        wait_for("a word about it", || {
            desk.turn();
            desk.hub.words.iter().any(|word| word.contains("no checkpoint: "))
        });
        assert_eq!(desk.hub.counters().checkpoints_failed, 1, "not tried again at once");
    }
}
