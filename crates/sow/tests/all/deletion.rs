//! A deletion in steps has the result of a deletion at once, whatever changes between its steps.

use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{Deletion, Publication, Query, QueryCursor, Topic, TopicDefinition};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Another client's operation between two steps.
#[derive(Clone, Copy, Debug)]
enum Other {
    Publish(u8, u8),
    Delete(u8),
    /// A change that is refused after it was checked, as by a full disk.
    Refused(u8),
}

fn message(id: u8, quantity: u8) -> String {
    format!(r#"{{"id":{id},"quantity":{quantity},"symbol":"s{}"}}"#, quantity % 3)
}

struct Run {
    topic: Topic,
    deletion: Option<Deletion>,
    deleted: usize,
}

impl Run {
    fn new() -> Self {
        let orders = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
        let topic = Topic::new(orders.index("/symbol").expect("a path")).expect("a topic");
        Self { topic, deletion: None, deleted: 0 }
    }

    /// Checks the record that a message addresses with the deletion, before it changes.
    fn before(&mut self, message: &str) {
        let key = self.topic.key_of(&Publication::of(message.as_bytes())).expect("a key");
        if let (Some(deletion), Some(key)) = (&mut self.deletion, key)
            && deletion.is_target(&self.topic, key)
        {
            self.topic.delete(key, "", 0).expect("it is there");
            self.deleted += 1;
        }
    }

    fn refuse(&mut self, id: u8) {
        let message = message(id, 0);
        let key = self.topic.key_of(&Publication::of(message.as_bytes())).expect("a key");
        if let (Some(deletion), Some(key)) = (&mut self.deletion, key) {
            deletion.is_target(&self.topic, key);
        }
    }

    fn other(&mut self, other: Other) {
        if let Other::Refused(id) = other {
            return self.refuse(id);
        }
        let message = match other {
            Other::Publish(id, quantity) => message(id, quantity),
            Other::Delete(id) | Other::Refused(id) => message(id, 0),
        };
        self.before(&message);
        let publication = Publication::of(message.as_bytes());
        let change = match other {
            Other::Publish(..) => Some(self.topic.publish(&publication, 0).expect("taken")),
            Other::Delete(_) => self.topic.delete_as(&publication, 0).expect("a key"),
            Other::Refused(_) => None,
        };
        if let (Some(change), Some(deletion)) = (change, &mut self.deletion) {
            deletion.on_change(&change);
        }
    }

    fn step(&mut self, mut looks: usize) {
        let Some(deletion) = &mut self.deletion else { return };
        while let Some(key) = deletion.next(&self.topic, &mut looks) {
            self.topic.delete(key, "", 0).expect("it is there");
            self.deleted += 1;
        }
    }

    fn left(&self) -> Vec<String> {
        let text = |record: &lanecast_sow::Record| {
            String::from_utf8(record.bytes().to_vec()).expect("text")
        };
        let mut left: Vec<String> = self.topic.iter().map(text).collect();
        left.sort();
        left
    }
}

fn other() -> impl Strategy<Value = Other> {
    prop_oneof![
        3 => (0..40_u8, 0..20_u8).prop_map(|(id, quantity)| Other::Publish(id, quantity)),
        1 => (0..40_u8).prop_map(Other::Delete),
        1 => (0..40_u8).prop_map(Other::Refused),
    ]
}

proptest! {
    #[test]
    fn a_deletion_in_steps_equals_one_at_once(
        before in prop::collection::vec(other(), 0..60),
        between in prop::collection::vec((other(), 0..6_usize), 0..60),
        by in 0..3_usize,
    ) {
        let mut run = Run::new();
        before.iter().for_each(|other| run.other(*other));
        let filter = |text: &str| Query::from(Filter::parse(text).expect("a filter"));
        let query = match by {
            0 => filter("/quantity < 10"),
            1 => filter("/symbol = 's1' AND /id > 5"),
            _ => {
                let keys = run.topic.iter().step_by(2).map(|record| record.key()).collect();
                Query { keys: Some(keys), ..Query::default() }
            }
        };
        // In a model, at once.
        let doomed = QueryCursor::read_all(&run.topic, &query, 0).expect("room");
        let doomed: Vec<&[u8]> = doomed.iter().map(|record| record.bytes()).collect();
        let mut model: BTreeMap<u8, String> = BTreeMap::new();
        for other in &before {
            match *other {
                Other::Publish(id, quantity) => drop(model.insert(id, message(id, quantity))),
                Other::Delete(id) => drop(model.remove(&id)),
                Other::Refused(_) => {}
            }
        }
        model.retain(|_, text| !doomed.contains(&text.as_bytes()));
        let count = doomed.len();
        // In steps, with other operations in between.
        run.deletion = Some(Deletion::new(&run.topic, &query, 0).expect("room"));
        for (other, looks) in between {
            run.other(other);
            run.step(looks);
            match other {
                Other::Publish(id, quantity) => drop(model.insert(id, message(id, quantity))),
                Other::Delete(id) => drop(model.remove(&id)),
                Other::Refused(_) => {}
            }
        }
        run.step(usize::MAX);
        prop_assert!(run.deletion.as_ref().is_some_and(Deletion::is_done));
        prop_assert_eq!(run.deleted, count);
        let mut expected: Vec<String> = model.into_values().collect();
        expected.sort();
        prop_assert_eq!(run.left(), expected);
    }
}
