//! Deletions of many records: some at a time, so that others get their turn in between.
//!
//! A deletion covers the records that the topic had when it began, as if all went at once: a
//! record that somebody publishes before its turn is deleted first if the deletion covers it. The
//! deletions of a topic are done one after another; nothing expires meanwhile. Others may ask for
//! records that are about to go; the client that deletes waits for the end.

use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::command::publish::{CommandResult, fail, succeed};
use crate::command::query::Deleted;
use crate::engine::{Engine, Now};
use crate::topic::entry::TopicEntry;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{Change, Deletion, Key, Query, Topic};
use lanecast_wire::command::{Ack, Acks, Header};
use std::sync::Arc;

/// A deletion, until it is done.
#[derive(Debug)]
pub(crate) struct Removal {
    pub(crate) query: Query,
    /// How far it is, once it has begun.
    pub(crate) deletion: Option<Deletion>,
    /// The name of the client that deletes.
    pub(crate) client: Arc<str>,
    /// Records there were.
    pub(crate) records: usize,
    pub(crate) deleted: usize,
    pub(crate) asked: Asked,
}

/// Who has asked for a deletion, and how.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) client: ClientId,
    /// The command, once it has to be answered later.
    pub(crate) header: Box<[u8]>,
    /// The same as its client has, if that has not gone meanwhile.
    pub(crate) token: Arc<()>,
    /// By what its number is remembered, and that.
    pub(crate) numbered: Option<(Arc<str>, u64)>,
}

impl Removal {
    pub(crate) fn new(query: Query, client: Arc<str>, asked: Asked) -> Self {
        Self { query, deletion: None, client, records: 0, deleted: 0, asked }
    }

    /// The next record to delete, if `looks` suffice to find one. Begins if it has not yet.
    pub(crate) fn next(
        &mut self,
        topic: &Topic,
        now_ns: u64,
        looks: &mut usize,
    ) -> Result<Option<Key>, CommandError> {
        if self.deletion.is_none() {
            let deletion = Deletion::new(topic, &self.query, now_ns);
            self.deletion = Some(deletion.map_err(lanecast_sow::TopicError::from)?);
            self.records = topic.len();
        }
        Ok(self.deletion.as_mut().and_then(|deletion| deletion.next(topic, looks)))
    }

    pub(crate) fn is_over(&self) -> bool {
        self.deletion.as_ref().is_some_and(Deletion::is_done)
    }

    /// A record has changed.
    pub(crate) fn note(&mut self, change: &Change<'_>) {
        if let Some(deletion) = &mut self.deletion {
            deletion.on_change(change);
        }
    }

    /// Whether a record that is about to change is to be deleted before.
    pub(crate) fn claims(&mut self, topic: &Topic, key: Key) -> bool {
        self.deletion.as_mut().is_some_and(|deletion| deletion.is_target(topic, key))
    }
}

impl Engine {
    /// Goes on deleting; whether there is more to delete at once.
    pub(crate) fn go_on_deleting(&mut self, at: Now) -> bool {
        if self.deleting.is_empty() || self.is_disk_pressed() {
            return false;
        }
        let mut topics = std::mem::take(&mut self.deleting);
        topics.retain(|topic| {
            let done = self.with_kept(*topic, at, |kept, world, post| {
                kept.remove_some(at.unix_ns, world, post);
                Ok(())
            });
            while let Some((removal, done)) = self.removed(*topic) {
                self.tell_deleted(at, *topic, removal, done);
            }
            let room = &self.topics[*topic as usize];
            done.is_ok() && matches!(room, TopicEntry::SowTopic(kept) if kept.is_removing())
        });
        self.deleting.append(&mut topics);
        !self.deleting.is_empty()
    }

    /// A deletion of a topic that is done.
    fn removed(&mut self, topic: u32) -> Option<(Removal, Result<(), CommandError>)> {
        match &mut self.topics[topic as usize] {
            TopicEntry::SowTopic(kept) => kept.next_removed(),
            _ => None,
        }
    }

    /// Answers a deletion that has taken several turns.
    fn tell_deleted(
        &mut self,
        at: Now,
        topic: u32,
        removal: Removal,
        done: Result<(), CommandError>,
    ) {
        let asked = &removal.asked;
        let id = asked.client;
        let done =
            done.and_then(|()| self.deleted(at, topic, &removal)).map(CommandResult::Deleted);
        let Some(client) = self.client(id) else { return };
        // The number may be another client's by now.
        let is_its = |token: &mut Arc<()>| Arc::ptr_eq(token, &asked.token);
        if client.deleting.take_if(is_its).is_none() {
            return;
        }
        let Ok(header) = Header::parse(&asked.header) else { return };
        let acks = header.acks().unwrap_or(Acks::NONE);
        match &done {
            Ok(done) => self.reply(id, &header, acks, |reply| succeed(reply, done)),
            Err(why) => {
                self.counters.refused += 1;
                self.reply(id, &header, acks, |reply| fail(reply, why));
            }
        }
        self.promise_if_asked(id, &header, acks, done.map(|_| false));
    }

    /// Remembers the number of a deletion that is done, and says what it has done.
    pub(crate) fn deleted(
        &mut self,
        at: Now,
        topic: u32,
        removal: &Removal,
    ) -> Result<Deleted, CommandError> {
        if let Some((name, sequence)) = &removal.asked.numbered {
            self.number(topic, name, *sequence, at.unix_ns)?;
        }
        let Removal { records, deleted, .. } = *removal;
        // How many others there are is not for whoever may see some only.
        let records = if self.is_confined(removal.asked.client) { deleted } else { records };
        Ok(Deleted { records: records as u64, deleted: deleted as u64 })
    }

    /// Sees to it that a client is told when what it did is durable, if it has asked for that.
    pub(crate) fn promise_if_asked(
        &mut self,
        id: ClientId,
        header: &Header<'_>,
        acks: Acks,
        is_duplicate: Result<bool, CommandError>,
    ) {
        if !acks.has(Ack::Persisted) {
            return;
        }
        let promised = is_duplicate.and_then(|is_duplicate| self.promise(id, header, is_duplicate));
        if let Err(why) = promised {
            self.reply(id, header, acks, |reply| reply.failure(Ack::Persisted, &why));
        }
    }

    /// Whether a client's type and a name are those of a topic that writes to disk.
    pub(crate) fn is_durable(&self, kind: MessageType, name: &str) -> bool {
        let topic = self.kept(kind, name).ok().map(|topic| &self.topics[topic as usize]);
        matches!(topic, Some(TopicEntry::SowTopic(kept)) if kept.is_durable())
    }
}

#[cfg(test)]
mod tests {
    use crate::client::ClientId;
    use crate::engine::Now;
    use crate::test_broker::TestBroker;
    use lanecast_filter::message_type::MessageType;
    use lanecast_sow::TopicDefinition;
    use std::time::Duration;

    const RECORDS: usize = 20_000;

    /// A server of a topic with many records, of which every other one is of the kind `a`.
    fn desk() -> (TestBroker, ClientId, ClientId) {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        let mut desk = TestBroker::new(|settings| settings.kept = vec![topic]);
        let (one, other) = (desk.client(), desk.client());
        for id in 0..RECORDS {
            publish(&mut desk, one, id, if id % 2 == 0 { "a" } else { "b" });
        }
        (desk, one, other)
    }

    fn publish(desk: &mut TestBroker, by: ClientId, id: usize, kind: &str) {
        let body = format!(r#"{{"id":{id},"kind":"{kind}"}}"#);
        desk.say(by, &format!(r#"{{"c":"p","t":"orders"}}{body}"#));
    }

    fn count(desk: &mut TestBroker, by: ClientId, filter: &str) -> usize {
        let rest = format!(r#""t":"orders","cid":"q","a":"stats","filter":"{filter}""#);
        desk.say(by, &format!(r#"{{"c":"sow",{rest}}}"#));
        while desk.turn() {}
        let heard = desk.heard(by);
        let (_, matches) = heard.last().expect("stats").split_once(r#""matches":"#).expect("there");
        matches.split(',').next().expect("a number").trim_matches('"').parse().expect("a number")
    }

    #[test]
    fn a_great_deletion_is_done_in_turns_and_counted_exactly() {
        let (mut desk, one, other) = desk();
        desk.say(other, r#"{"c":"subscribe","t":"orders","sub_id":"1"}"#);
        let acks = r#""cid":"d","a":"processed,completed,stats","t":"orders""#;
        desk.say(one, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/kind = 'a'"}}"#));
        assert_eq!(desk.heard(one), [""; 0], "it goes on");
        assert!(!desk.hub.may_go_on(one) && desk.hub.may_go_on(other));
        // Covered, and deleted before: 19,998 is there anew. Not covered: 19,999 and a new one.
        publish(&mut desk, other, RECORDS - 2, "a");
        publish(&mut desk, other, RECORDS - 1, "a");
        publish(&mut desk, other, RECORDS + 7, "a");
        assert_eq!(desk.heard(other).len(), 3, "others are served in between");
        let turns = desk.rest();
        assert!(turns >= 20, "{turns} turns");
        let heard = desk.heard(one);
        assert_eq!(heard.len(), 3, "{heard:?}");
        assert!(heard[0].contains(r#""a":"processed","status":"success","cid":"d""#), "{heard:?}");
        let stats = &heard[2];
        assert!(stats.contains(r#""records_deleted":10000"#), "{stats}");
        assert!(stats.contains(r#""topic_matches":20000"#), "{stats}");
        assert!(desk.hub.may_go_on(one));
        assert_eq!(count(&mut desk, one, "/kind = 'a'"), 3);
        assert_eq!(count(&mut desk, one, "/kind = 'b'"), RECORDS / 2 - 1);
    }

    #[test]
    fn deletions_are_done_one_after_another_whoever_has_gone_meanwhile() {
        let (mut desk, one, other) = desk();
        let (third, acks) = (desk.client(), r#""cid":"d","a":"stats","t":"orders""#);
        desk.say(one, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/kind = 'a'"}}"#));
        desk.say(other, &format!(r#"{{"c":"sow_delete",{acks},"filter":"/id < 100"}}"#));
        desk.say(third, &format!(r#"{{"c":"sow_delete",{acks}}}{{"id":19998}}"#));
        let stats = desk.heard(third).concat();
        assert!(stats.contains(r#""records_deleted":0"#), "the first covers it: {stats}");
        desk.hub.disconnect(one);
        let again = desk.client();
        assert_eq!(again, one);
        desk.rest();
        assert_eq!(desk.heard(again), [""; 0], "that is not for it");
        let stats = desk.heard(other).concat();
        assert!(stats.contains(r#""records_deleted":50"#), "{stats}");
        assert_eq!(count(&mut desk, other, "/id >= 0"), RECORDS / 2 - 50);
    }

    #[test]
    fn what_expires_at_once_goes_in_turns() {
        let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        let topic = topic.lifetime(Duration::from_secs(1));
        let mut desk = TestBroker::new(|settings| settings.kept = vec![topic]);
        let one = desk.client();
        (0..2_000).for_each(|id| publish(&mut desk, one, id, "a"));
        desk.at = Now { now: 5_000_000_000, unix_ns: 5_000_000_000 };
        desk.turn();
        let due = desk.hub.next_deadline(desk.at).expect("there is more");
        assert!(due <= desk.at.now, "at once");
        let rest = count(&mut desk, one, "/id >= 0");
        assert!((1..2_000).contains(&rest), "{rest} are left");
        for _ in 0..10 {
            desk.turn();
        }
        assert_eq!(count(&mut desk, one, "/id >= 0"), 0);
    }

    #[test]
    fn sorting_has_a_budget() {
        let (mut desk, one, other) = desk();
        let sorted = |desk: &mut TestBroker, id, rest: &str| {
            let command = format!(r#""t":"orders","orderby":"/id DESC","cid":"s",{rest}"#);
            desk.say(id, &format!(r#"{{"c":"sow",{command}}}"#));
            desk.rest();
            desk.heard(id)
        };
        let all = sorted(&mut desk, one, r#""a":"completed""#);
        assert!(all.last().expect("an end").contains("success"), "{:?}", all.last());
        desk.hub.settings.query_sort_bytes = 256 << 10;
        let refused = sorted(&mut desk, one, r#""a":"completed""#);
        let why = refused.last().expect("an end");
        assert!(why.contains("failure") && why.contains("262144 bytes"), "{why}");
        assert!(why.contains("top_n") && why.contains(r#""cid":"s""#), "{why}");
        assert_eq!(refused.iter().filter(|it| it.contains("group_end")).count(), 0, "no end");
        // Its memory is free again, and that of others is their own.
        let top = sorted(&mut desk, one, r#""a":"completed","top_n":10"#);
        assert!(top.last().expect("an end").contains("success"), "{top:?}");
        // One that goes on with a subscription ends with its connection.
        let command = r#""t":"orders","orderby":"/id","cid":"w","sub_id":"w","a":"processed""#;
        desk.say(other, &format!(r#"{{"c":"sow_and_subscribe",{command}}}"#));
        desk.rest();
        assert!(desk.hub.next_disconnect().is_some());
        assert!(desk.hub.words.iter().any(|word| word.contains("cannot be sorted")));
    }
}
