//! Topics of which nothing is kept come with their first use, and go when they are in none.
//!
//! Such a topic without subscriptions holds nothing that could be lost: the next message makes it
//! anew. So the server forgets those that were not published to for a while, some at a time, and
//! those of one client never use up all numbers.

use crate::Nanos;
use crate::client::ClientId;
use crate::command::error::CommandError;
use crate::engine::{Engine, Now};
use crate::topic::entry::{NAME_MAX, Topic, TopicEntry, is_name};
use lanecast_filter::message_type::MessageType;
use std::sync::Arc;

/// Topics that are looked at before others get their turn.
const STEP: usize = 1_024;

/// How far it has been looked which topics are in use.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    /// The number that is looked at next.
    next: usize,
    /// When the next round over all of them begins; none while one goes on.
    due: Option<Nanos>,
    /// Numbers that no topic has.
    vacant: Vec<u32>,
    /// Topics of which nothing is kept.
    passing: usize,
}

impl Engine {
    /// The topic of that name, if there is one.
    pub(crate) fn known_topic(&self, kind: MessageType, name: &str) -> Option<u32> {
        self.numbers.get(&kind)?.get(name).copied()
    }

    /// The topic of that name, made for a client if need be.
    pub(crate) fn topic(
        &mut self,
        id: ClientId,
        kind: MessageType,
        name: &str,
    ) -> Result<u32, CommandError> {
        if let Some(number) = self.known_topic(kind, name) {
            return Ok(number);
        }
        if !is_name(name) {
            return Err(CommandError::TopicName { max: NAME_MAX });
        }
        let most = self.settings.client_topics_max;
        let made = self.client(id).map(|client| Arc::clone(&client.topics)).unwrap_or_default();
        // One is the client's own, and one this.
        if Arc::strong_count(&made).saturating_sub(2) >= most {
            return Err(CommandError::TopicsOfClient(most));
        }
        if self.topics.len() - self.sweep.vacant.len() >= self.settings.topics_max {
            self.sweep_some();
        }
        let there_are = self.topics.len() - self.sweep.vacant.len();
        if there_are >= self.settings.topics_max {
            return Err(CommandError::Topics(there_are));
        }
        let topic = TopicEntry::Transient(Box::new(Topic::new(name, kind, made)));
        let number = match self.sweep.vacant.pop() {
            Some(number) => {
                self.topics[number as usize] = topic;
                number
            }
            None => {
                self.topics.push(topic);
                self.topics.len() as u32 - 1
            }
        };
        self.sweep.passing += 1;
        self.numbers.entry(kind).or_default().insert(name.into(), number);
        Ok(number)
    }

    /// Topics of a type of which records are kept, by their numbers.
    pub(crate) fn kept_of(&self, kind: MessageType) -> impl Iterator<Item = u32> {
        let kept = self.world.kept.iter().copied();
        kept.filter(move |number| self.topics[*number as usize].kind() == Some(kind))
    }

    /// Goes on forgetting topics that are not in use, if it is time for that; whether there is more
    /// to do.
    pub(crate) fn forget_topics(&mut self, at: Now) -> bool {
        let idle = u64::try_from(self.settings.topics_idle.as_nanos()).unwrap_or(u64::MAX);
        let next = at.now.saturating_add(idle);
        if self.sweep.passing == 0 {
            self.sweep.due = Some(next);
        }
        if self.sweep.due.is_some_and(|due| due > at.now) {
            return false;
        }
        self.sweep.due = None;
        if !self.sweep_some() {
            return true;
        }
        self.sweep.due = Some(next);
        false
    }

    /// When topics are to be looked at.
    pub(crate) fn next_sweep(&self, now: Nanos) -> Option<Nanos> {
        (self.sweep.passing > 0).then(|| self.sweep.due.unwrap_or(now))
    }

    /// Looks at some topics; whether those were the last ones.
    fn sweep_some(&mut self) -> bool {
        let (mut gone, end) = (Vec::new(), self.topics.len());
        for number in self.sweep.next..end.min(self.sweep.next + STEP) {
            if let TopicEntry::Transient(topic) = &mut self.topics[number]
                && !topic.is_in_use()
            {
                gone.push(number as u32);
            }
        }
        self.sweep.next += STEP;
        let is_over = self.sweep.next >= end;
        if is_over {
            self.sweep.next = 0;
        }
        self.forget_those(&gone);
        is_over
    }

    /// Forgets topics; their numbers go up.
    fn forget_those(&mut self, gone: &[u32]) {
        for number in gone {
            let room = std::mem::replace(&mut self.topics[*number as usize], TopicEntry::Vacant);
            if let Some(names) = room.kind().and_then(|kind| self.numbers.get_mut(&kind)) {
                names.remove(room.name());
            }
        }
        self.sweep.passing -= gone.len();
        self.sweep.vacant.extend(gone);
        if gone.is_empty() {
            return;
        }
        // What is published next may not go by the number that another topic may have by then.
        for client in self.clients.iter_mut().flatten() {
            client.usual.take_if(|usual| gone.binary_search(&usual.topic).is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_broker::TestBroker;
    use std::time::Duration;

    fn publish(desk: &mut TestBroker, id: ClientId, topic: &str) -> Vec<String> {
        desk.say(id, &format!(r#"{{"c":"p","t":"{topic}","cid":"1","a":"processed"}}1"#));
        desk.heard(id)
    }

    #[test]
    fn what_a_pattern_costs_does_not_depend_on_how_many_topics_there_are() {
        let mut desk = TestBroker::new(|_| {});
        let (publisher, subscriber) = (desk.client(), desk.client());
        for number in 0..2_000 {
            publish(&mut desk, publisher, &format!("topic-{number}"));
        }
        for number in 0..100 {
            let name = format!(r#""sub_id":"{number}","cid":"1""#);
            desk.say(
                subscriber,
                &format!(r#"{{"c":"subscribe","t":"^topic-.*{number}$",{name}}}"#),
            );
        }
        let joined = |desk: &TestBroker| {
            let topics = desk.hub.topics.iter();
            topics
                .filter(|room| matches!(room, TopicEntry::Transient(topic) if topic.has_joined()))
                .count()
        };
        assert_eq!(joined(&desk), 0, "nothing is done at any topic");
        publish(&mut desk, publisher, "topic-77");
        assert_eq!(joined(&desk), 1);
        let heard = desk.heard(subscriber).join("");
        assert!(
            heard.contains(r#""sids":"7,77""#) || heard.contains(r#""sids":"77,7""#),
            "{heard}"
        );
        // When it leaves, what is left of it goes by and by, and delivers nothing.
        desk.hub.disconnect(subscriber);
        assert_eq!(desk.hub.parting.len(), 100 - crate::command::subscribe::PARTING_STEP);
        let before = desk.hub.counters().delivered;
        publish(&mut desk, publisher, "topic-99");
        assert_eq!(desk.hub.counters().delivered, before);
        desk.rest();
        assert_eq!(desk.hub.parting.len(), 0);
    }

    #[test]
    fn a_topic_has_a_matcher_only_while_it_has_subscriptions_of_its_own() {
        let mut desk = TestBroker::new(|_| {});
        let (publisher, subscriber) = (desk.client(), desk.client());
        let matchers = |desk: &TestBroker| {
            let topics = desk.hub.topics.iter();
            let has_one = |room: &&TopicEntry| matches!(room, TopicEntry::Transient(one) if one.has_matcher());
            topics.filter(has_one).count()
        };
        desk.say(subscriber, r#"{"c":"subscribe","t":"^t.*","sub_id":"all","cid":"1"}"#);
        for number in 0..10 {
            publish(&mut desk, publisher, &format!("t{number}"));
        }
        assert_eq!(matchers(&desk), 0, "a pattern has its own");
        desk.say(subscriber, r#"{"c":"subscribe","t":"t7","sub_id":"7","cid":"2"}"#);
        assert_eq!(matchers(&desk), 1);
        desk.heard(subscriber);
        publish(&mut desk, publisher, "t7");
        assert_eq!(desk.heard(subscriber).len(), 1);
        desk.say(subscriber, r#"{"c":"unsubscribe","sub_id":"7","cid":"3"}"#);
        desk.rest();
        assert_eq!(matchers(&desk), 0);
    }

    #[test]
    fn a_publisher_that_has_many_patterns_tried_leaves_others_their_turn() {
        let mut desk = TestBroker::new(|_| {});
        let (publisher, subscriber) = (desk.client(), desk.client());
        for number in 0..500 {
            let rest = format!(r#""t":"^a{number}.*","sub_id":"{number}""#);
            desk.say(subscriber, &format!(r#"{{"c":"subscribe",{rest}}}"#));
        }
        desk.turn();
        let listened = |desk: &mut TestBroker, from: usize| {
            let mut topics = from..from + 1_000;
            topics.find(|number| {
                publish(desk, publisher, &format!("t{number}"));
                !desk.hub.may_go_on(publisher)
            })
        };
        assert_eq!(listened(&mut desk, 0), Some(8), "the ninth topic is too many");
        assert!(desk.hub.may_go_on(subscriber));
        assert!(desk.turn(), "it goes on at once");
        assert!(desk.hub.may_go_on(publisher));
        assert_eq!(listened(&mut desk, 0), Some(17), "what was tried is not tried again");
    }

    #[test]
    fn a_client_that_leaves_is_taken_out_some_at_a_time() {
        let kept = ["kept".to_owned(), "other".to_owned()];
        let kept = kept.map(|name| {
            let topic = lanecast_sow::TopicDefinition::new(&name, MessageType::Json);
            topic.key("/id").expect("a path")
        });
        let mut desk = TestBroker::new(|settings| settings.kept = kept.into());
        let (leaving, staying) = (desk.client(), desk.client());
        for topic in ["kept", "passing", "^(kept|passing)$"] {
            for number in 0..200 {
                let rest = format!(r#""sub_id":"{topic}{number}","filter":"/id > {number}""#);
                desk.say(leaving, &format!(r#"{{"c":"subscribe","t":"{topic}",{rest}}}"#));
            }
        }
        desk.say(staying, r#"{"c":"subscribe","t":"kept","sub_id":"1"}"#);
        desk.hub.disconnect(leaving);
        assert_eq!(desk.hub.client(leaving).map(|_| ()), None);
        let again = desk.client();
        assert_eq!(again, leaving, "its number is given again at once");
        for topic in ["kept", "passing"] {
            desk.say(again, &format!(r#"{{"c":"p","t":"{topic}"}}{{"id":1000}}"#));
        }
        assert_eq!(desk.heard(again), [""; 0], "nothing of the old one's is for the new one");
        assert_eq!(desk.heard(staying).len(), 1);
        let turns = desk.rest();
        assert!(turns >= 600 / crate::command::subscribe::PARTING_STEP - 2, "{turns} turns");
        desk.say(staying, r#"{"c":"unsubscribe","sub_id":"all"}"#);
        let TopicEntry::SowTopic(kept) = &desk.hub.topics[0] else { panic!("it is kept") };
        assert!(kept.is_unfollowed(), "all are gone");
    }

    #[test]
    fn topics_that_are_not_in_use_are_forgotten() {
        let idle = Duration::from_secs(60);
        let mut desk = TestBroker::new(|settings| settings.topics_idle = idle);
        let (publisher, subscriber) = (desk.client(), desk.client());
        desk.rest();
        for number in 0..3_000 {
            publish(&mut desk, publisher, &format!("t{number}"));
        }
        desk.say(subscriber, r#"{"c":"subscribe","t":"t5","sub_id":"1"}"#);
        // Without an acknowledgement: it goes by the header the next time.
        desk.say(publisher, r#"{"c":"p","t":"usual"}1"#);
        desk.say(publisher, r#"{"c":"p","t":"usual"}2"#);
        for _ in 0..2 {
            desk.at.now += idle.as_nanos() as u64;
            assert_eq!(desk.rest(), 2, "a thousand at a time");
        }
        let known =
            |desk: &TestBroker, name: &str| desk.hub.known_topic(MessageType::Json, name).is_some();
        assert!(known(&desk, "t5") && !known(&desk, "t6") && !known(&desk, "usual"));
        assert_eq!(desk.hub.topics.len() - desk.hub.sweep.vacant.len(), 1);
        // The numbers go to others, and the publisher's message where it says.
        for number in 0..3_000 {
            let name = format!(r#""t":"u{number}","sub_id":"u{number}""#);
            desk.say(subscriber, &format!(r#"{{"c":"subscribe",{name}}}"#));
        }
        assert_eq!(desk.hub.topics.len(), 3_001);
        desk.say(publisher, r#"{"c":"p","t":"usual"}3"#);
        assert_eq!(desk.heard(subscriber), [""; 0]);
        publish(&mut desk, publisher, "u2999");
        assert_eq!(desk.heard(subscriber).len(), 1);
    }

    #[test]
    fn one_client_does_not_use_up_the_topics_of_all() {
        let mut desk = TestBroker::new(|settings| {
            (settings.topics_max, settings.client_topics_max) = (100, 20);
        });
        let (greedy, other) = (desk.client(), desk.client());
        let subscribe = |desk: &mut TestBroker, id, number| {
            let name = format!(r#""t":"s{number}","sub_id":"{number}","cid":"1","a":"processed""#);
            desk.say(id, &format!(r#"{{"c":"subscribe",{name}}}"#));
            desk.heard(id).concat()
        };
        for number in 0..20 {
            assert!(subscribe(&mut desk, greedy, number).contains("success"));
        }
        let refused = subscribe(&mut desk, greedy, 20);
        assert!(refused.contains("this client has made 20"), "{refused}");
        assert!(subscribe(&mut desk, other, 21).contains("success"));
        assert!(subscribe(&mut desk, greedy, 5).contains("already exists"));
        assert!(publish(&mut desk, greedy, "p").concat().contains("this client has made 20"));
        // What it has ended is forgotten, and counts no more.
        desk.say(greedy, r#"{"c":"unsubscribe","sub_id":"all"}"#);
        for _ in 0..3 {
            desk.at.now += 60_000_000_000;
            desk.rest();
        }
        assert!(publish(&mut desk, greedy, "p").concat().contains("success"));
    }

    #[test]
    fn a_full_server_makes_room_at_once() {
        let mut desk = TestBroker::new(|settings| settings.topics_max = 3);
        let publisher = desk.client();
        for number in 0..3 {
            assert!(
                publish(&mut desk, publisher, &format!("a{number}")).concat().contains("success")
            );
        }
        let refused = publish(&mut desk, publisher, "b").concat();
        assert!(refused.contains("there are 3"), "{refused}");
        publish(&mut desk, publisher, "a1");
        assert!(publish(&mut desk, publisher, "b").concat().contains("success"));
        assert!(desk.hub.known_topic(MessageType::Json, "a1").is_some(), "it is in use");
        assert!(desk.hub.known_topic(MessageType::Json, "a0").is_none());
    }
}
