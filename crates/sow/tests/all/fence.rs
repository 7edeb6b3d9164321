//! A subscriber's copy equals the topic at every update, for any order of publishing, deleting,
//! expiring, querying and unsubscribing.

use lanecast_filter::Filter;
use lanecast_filter::merge::merge;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{
    Change, Event, Key, Order, OutOfFocusReason, Publication, Query, Sink, SubscriptionOptions,
    SubscriptionSet, Topic, TopicDefinition,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

type State = BTreeMap<u64, Vec<u8>>;

#[derive(Clone, Debug)]
enum Act {
    Publish { id: u8, quantity: u8, lifetime: Option<u8> },
    Delete(u8),
    Pass(u8),
    Advance(u8),
    Subscribe(Wish),
    Replace(u8, Wish),
    Unsubscribe(u8),
}

/// A filter `low <= quantity < high`, and the options of the answer.
#[derive(Clone, Copy, Debug)]
struct Wish {
    low: u8,
    high: u8,
    equal: bool,
    sorted: bool,
    batch: u8,
    asks: bool,
    delta: bool,
}

impl Wish {
    fn wants(&self, bytes: &[u8]) -> bool {
        let text = std::str::from_utf8(bytes).expect("text");
        let quantity: u8 = text
            .split("38=")
            .nth(1)
            .expect("a field")
            .trim_end_matches(';')
            .parse()
            .expect("a number");
        if self.equal { quantity == self.low } else { (self.low..self.high).contains(&quantity) }
    }

    fn query(&self) -> Query {
        let text = if self.equal {
            format!("/38 = {}", self.low)
        } else {
            format!("/38 >= {} AND /38 < {}", self.low, self.high)
        };
        let order =
            if self.sorted { vec![Order::descending("/38").expect("a path")] } else { vec![] };
        Query { order, ..Query::from(Filter::parse(&text).expect("a filter")) }
    }

    fn options(&self) -> SubscriptionOptions {
        let delta = self.delta;
        SubscriptionOptions {
            out_of_focus: true,
            delta,
            batch: self.batch.into(),
            ..SubscriptionOptions::default()
        }
    }
}

/// A subscriber and its copy of the topic.
#[derive(Debug)]
struct Client {
    wish: Wish,
    known: State,
    is_answered: bool,
    /// Sequence of the last change in the copy.
    sequence: u64,
}

/// History of the topic, and the subscribers.
#[derive(Debug, Default)]
struct World {
    /// Changes, by sequence.
    history: Vec<State>,
    clients: HashMap<u32, Client>,
}

impl World {
    fn record(&mut self, change: &Change<'_>) {
        let mut state = self.history.last().expect("the beginning").clone();
        assert_eq!(change.sequence, self.history.len() as u64);
        assert_eq!(change.before.is_some(), state.contains_key(&change.key.0));
        match change.after {
            Some(after) => state.insert(change.key.0, after.record().bytes().to_vec()),
            None => state.remove(&change.key.0),
        };
        self.history.push(state);
    }

    fn wanted(&self, sequence: u64, wish: &Wish) -> State {
        let state = self.history[sequence as usize].iter();
        state
            .filter(|(_, bytes)| wish.wants(bytes))
            .map(|(key, bytes)| (*key, bytes.clone()))
            .collect()
    }

    fn follows(&mut self, id: u32, wish: Wish) {
        let sequence = self.history.len() as u64 - 1;
        let known = if wish.asks { State::new() } else { self.wanted(sequence, &wish) };
        let is_answered = !wish.asks;
        self.clients.insert(id, Client { wish, known, is_answered, sequence });
    }

    /// Called before an event of change `sequence`: the copy must be complete up to it.
    fn before(&mut self, id: u32, sequence: u64) {
        let client = &self.clients[&id];
        assert!(client.is_answered, "the answer comes first");
        assert!(client.sequence < sequence, "{sequence} is told twice or late");
        for passed in client.sequence..sequence {
            assert_eq!(client.known, self.wanted(passed, &client.wish), "at {passed}");
        }
    }

    fn after(&mut self, id: u32, sequence: u64) {
        let client = &self.clients[&id];
        assert_eq!(client.known, self.wanted(sequence, &client.wish), "at {sequence}");
        self.clients.get_mut(&id).expect("it follows").sequence = sequence;
    }

    fn client(&mut self, id: u32) -> &mut Client {
        self.clients.get_mut(&id).expect("it follows")
    }
}

impl Sink for World {
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>) {
        for id in subscriptions.iter().copied() {
            match event {
                // The event comes before the test knows the id.
                Event::Begin => {}
                Event::Records(records) => {
                    let client = self.client(id);
                    assert!(!records.is_empty() && records.len() <= client.wish.batch.into());
                    for record in records {
                        assert!(
                            record.sequence() <= client.sequence,
                            "it is younger than the fence"
                        );
                        let old = client.known.insert(record.key().0, record.bytes().to_vec());
                        assert!(old.is_none(), "a record comes once");
                    }
                }
                Event::End(answer) => {
                    let sequence = self.client(id).sequence;
                    assert_eq!(answer.records, self.history[sequence as usize].len());
                    assert_eq!(answer.returned, self.client(id).known.len());
                    self.client(id).is_answered = true;
                    self.after(id, sequence);
                }
                Event::Update { record, .. } => {
                    self.before(id, record.sequence());
                    let known = &mut self.client(id).known;
                    known.insert(record.key().0, record.bytes().to_vec());
                    self.after(id, record.sequence());
                }
                Event::Delta { record, bytes, .. } => {
                    self.before(id, record.sequence());
                    let format = format();
                    let known = &mut self.client(id).known;
                    let base = known.get(&record.key().0).expect("a record that is known");
                    let mut merged = Vec::new();
                    merge(format, base, bytes, &mut merged).expect("a delta");
                    known.insert(record.key().0, merged);
                    self.after(id, record.sequence());
                }
                Event::OutOfFocus { record, reason, sequence } => {
                    let is_there = self.history[sequence as usize].contains_key(&record.key().0);
                    assert_eq!(is_there, reason == OutOfFocusReason::Match);
                    // Owed to a subscription that is being replaced: the answer is still to come.
                    if !self.clients.contains_key(&id) {
                        continue;
                    }
                    self.before(id, sequence);
                    assert!(self.client(id).known.remove(&record.key().0).is_some());
                    self.after(id, sequence);
                }
                Event::SortMemoryExceeded(_) | Event::Overrun => {
                    unreachable!("so much is never waiting")
                }
            }
        }
    }
}

fn wish() -> impl Strategy<Value = Wish> {
    (0..6_u8, 1..6_u8, any::<(bool, bool, bool)>(), 1..4_u8, prop::bool::weighted(0.8)).prop_map(
        |(low, width, (equal, sorted, delta), batch, asks)| Wish {
            delta,
            low,
            high: low + width,
            equal,
            sorted,
            batch,
            asks,
        },
    )
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        10 => (0..8_u8, 0..8_u8, prop::option::weighted(0.2, 1..20_u8))
            .prop_map(|(id, quantity, lifetime)| Act::Publish { id, quantity, lifetime }),
        3 => (0..8_u8).prop_map(Act::Delete),
        2 => (1..6_u8).prop_map(Act::Pass),
        6 => (1..4_u8).prop_map(Act::Advance),
        2 => wish().prop_map(Act::Subscribe),
        1 => (any::<u8>(), wish()).prop_map(|(which, wish)| Act::Replace(which, wish)),
        1 => any::<u8>().prop_map(Act::Unsubscribe),
    ]
}

fn format() -> Format {
    Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators")
}

fn topic(indexed: bool) -> Topic {
    let format = format();
    let mut definition = TopicDefinition::new("orders", format).key("/11").expect("a path");
    if indexed {
        definition = definition.index("/38").expect("a path");
    }
    Topic::new(definition).expect("a topic")
}

/// Topic, subscriptions, history and time.
struct House {
    topic: Topic,
    feed: SubscriptionSet,
    world: World,
    now_ns: u64,
}

impl House {
    fn act(&mut self, act: &Act) {
        let Self { topic, feed, world, now_ns } = self;
        match act {
            Act::Publish { id, quantity, lifetime } => {
                let message = format!("11={id};38={quantity};");
                let lifetime = lifetime.map(|ns| Duration::from_nanos(ns.into()));
                let publication = Publication { lifetime, ..Publication::of(message.as_bytes()) };
                let change = topic.publish(&publication, *now_ns).expect("taken");
                world.record(&change);
                feed.on_change(&change, *now_ns, world);
            }
            Act::Delete(id) => {
                let message = format!("11={id};");
                let publication = Publication::of(message.as_bytes());
                if let Some(change) = topic.delete_as(&publication, *now_ns).expect("a key") {
                    world.record(&change);
                    feed.on_change(&change, *now_ns, world);
                }
            }
            Act::Pass(ns) => {
                *now_ns += u64::from(*ns);
                while let Some(change) = topic.expire(*now_ns) {
                    world.record(&change);
                    feed.on_change(&change, *now_ns, world);
                }
            }
            Act::Advance(limit) => {
                feed.advance(topic, *now_ns, (*limit).into(), world);
            }
            Act::Subscribe(wish) => self.subscribe(*wish),
            Act::Replace(which, wish) => {
                if let Some(id) = self.nth(*which) {
                    let wish = Wish { asks: true, ..*wish };
                    let Self { topic, feed, world, now_ns } = self;
                    world.clients.remove(&id);
                    feed.replace(topic, id, &wish.query(), wish.options(), *now_ns, world)
                        .expect("room");
                    world.follows(id, wish);
                }
            }
            Act::Unsubscribe(which) => {
                if let Some(id) = self.nth(*which) {
                    assert!(self.feed.unsubscribe(&mut self.topic, id));
                    self.world.clients.remove(&id);
                }
            }
        }
    }

    fn subscribe(&mut self, wish: Wish) {
        let Self { topic, feed, world, now_ns } = self;
        let (query, options) = (wish.query(), wish.options());
        let id = if wish.asks {
            feed.query_and_subscribe(topic, &query, options, *now_ns, world)
        } else {
            feed.subscribe(topic, query.filter.as_ref(), options)
        };
        let id = id.expect("room");
        assert!(!world.clients.contains_key(&id), "numbers are not given twice");
        world.follows(id, wish);
    }

    fn nth(&self, which: u8) -> Option<u32> {
        let mut ids: Vec<u32> = self.world.clients.keys().copied().collect();
        ids.sort_unstable();
        (!ids.is_empty()).then(|| ids[usize::from(which) % ids.len()])
    }

    /// Completes all queries and compares every copy with the topic.
    fn settle(&mut self) {
        for _ in 0..1_000 {
            if !self.feed.advance(&mut self.topic, self.now_ns, 3, &mut self.world) {
                break;
            }
        }
        let last = self.world.history.len() as u64 - 1;
        for client in self.world.clients.values() {
            assert!(client.is_answered);
            for passed in client.sequence..=last {
                assert_eq!(client.known, self.world.wanted(passed, &client.wish));
            }
        }
        for (key, bytes) in &self.world.history[last as usize] {
            assert_eq!(self.topic.get(Key(*key)).map(|record| record.bytes()), Some(&**bytes));
        }
        assert_eq!(self.feed.len(), self.world.clients.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("LONG_TESTS").is_some() { 100_000 } else { 1_500 },
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_subscriber_knows_the_topic_at_each_moment(
        indexed in any::<bool>(),
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let world = World { history: vec![State::new()], ..World::default() };
        let feed = SubscriptionSet::new();
        let mut house = House { topic: topic(indexed), feed, world, now_ns: 0 };
        for act in &acts {
            house.act(act);
        }
        house.settle();
    }
}
