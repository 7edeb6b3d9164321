//! Deliveries to subscriptions: recipients, order and conflation.

use lanecast_filter::Filter;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{
    Event, Publication, Query, SubscriptionOptions, SubscriptionSet, Topic, TopicDefinition,
    TopicError,
};
use std::time::Duration;

fn topic() -> Topic {
    let format = Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators");
    let definition = TopicDefinition::new("orders", format).key("/11").expect("a path");
    Topic::new(definition).expect("a topic")
}

fn filter(text: &str) -> Filter {
    Filter::parse(text).expect(text)
}

/// Deliveries, one line per event.
#[derive(Debug, Default)]
struct Told(Vec<String>);

impl lanecast_sow::Sink for Told {
    fn deliver(&mut self, subscriptions: &[u32], event: Event<'_>) {
        let text =
            |record: &lanecast_sow::Record| String::from_utf8_lossy(record.bytes()).into_owned();
        let mut subscriptions = subscriptions.to_vec();
        subscriptions.sort_unstable();
        let event = match event {
            Event::Begin => "begin".into(),
            Event::Records(records) => records.iter().map(text).collect::<Vec<_>>().join(" "),
            Event::End(answer) => format!("end {} of {}", answer.returned, answer.records),
            Event::Update { record, .. } => format!("update {}", text(record)),
            Event::Delta { bytes, .. } => format!("delta {}", String::from_utf8_lossy(bytes)),
            Event::OutOfFocus { record, reason, .. } => format!("left {} {reason:?}", text(record)),
            Event::SortMemoryExceeded(_) => "exhausted".into(),
            Event::Overrun => "overrun".into(),
        };
        self.0.push(format!("{subscriptions:?} {event}"));
    }
}

impl Told {
    #[track_caller]
    fn is(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.0), expected);
    }
}

fn publish(
    topic: &mut Topic,
    feed: &mut SubscriptionSet,
    told: &mut Told,
    message: &str,
    now_ns: u64,
) {
    let change = topic.publish(&Publication::of(message.as_bytes()), now_ns).expect("taken");
    feed.on_change(&change, now_ns, told);
}

#[test]
fn conflated_updates_are_flushed_in_steps_earliest_first() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    let conflation = Some(Duration::from_nanos(10));
    for _ in 0..3 {
        let options = SubscriptionOptions { conflation, ..SubscriptionOptions::default() };
        feed.subscribe(&mut topic, None, options).expect("room");
    }
    for quantity in [1, 2] {
        for id in 0..4 {
            publish(&mut topic, &mut feed, &mut told, &format!("11={id};38={quantity};"), 0);
        }
    }
    told.0.clear();
    // All are due at 10; what is delivered is due again at 30, behind the others.
    for expected in [[0, 0, 0], [0, 1, 1], [1, 1, 2], [2, 2, 2]] {
        feed.flush_up_to(20, 3, &mut told);
        let by: Vec<String> = told.0.drain(..).map(|line| line[..3].to_owned()).collect();
        assert_eq!(by, expected.map(|id| format!("[{id}]")));
    }
    assert_eq!(feed.next_flush_ns(), Some(30));
}

#[test]
fn a_message_is_delivered_once_with_all_matching_subscriptions() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    for text in ["/55 = 'IBM'", "/55 = 'IBM' AND /38 > 10", "/55 = 'MSFT'", "/38 > 10"] {
        feed.subscribe(&mut topic, Some(&filter(text)), SubscriptionOptions::default())
            .expect("room");
    }
    feed.subscribe(&mut topic, None, SubscriptionOptions::default()).expect("room");
    publish(&mut topic, &mut feed, &mut told, "11=1;55=IBM;38=5;", 0);
    told.is(&["[0, 4] update 11=1;55=IBM;38=5;"]);
    publish(&mut topic, &mut feed, &mut told, "11=1;55=IBM;38=50;", 0);
    told.is(&["[0, 1, 3, 4] update 11=1;55=IBM;38=50;"]);
    assert!(feed.unsubscribe(&mut topic, 4));
    assert!(!feed.unsubscribe(&mut topic, 4));
    publish(&mut topic, &mut feed, &mut told, "11=1;55=SAP;38=5;", 0);
    told.is(&[]);
    assert_eq!(feed.len(), 4);
}

#[test]
fn subscribers_are_told_why_a_record_left() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    let watching = SubscriptionOptions { out_of_focus: true, ..SubscriptionOptions::default() };
    feed.subscribe(&mut topic, Some(&filter("/38 > 10")), watching).expect("room");
    feed.subscribe(&mut topic, Some(&filter("/38 > 10")), SubscriptionOptions::default())
        .expect("room");
    feed.subscribe(&mut topic, Some(&filter("/38 > 15")), watching).expect("room");
    publish(&mut topic, &mut feed, &mut told, "11=1;38=20;", 0);
    publish(&mut topic, &mut feed, &mut told, "11=1;38=12;", 0);
    told.is(&[
        "[0, 1, 2] update 11=1;38=20;",
        "[2] left 11=1;38=12; Match",
        "[0, 1] update 11=1;38=12;",
    ]);
    let change = topic.delete_as(&Publication::of(b"11=1;"), 0).expect("a key").expect("there");
    feed.on_change(&change, 0, &mut told);
    told.is(&["[0] left 11=1;38=12; Deleted"]);
    let short =
        Publication { lifetime: Some(Duration::from_nanos(5)), ..Publication::of(b"11=2;38=99;") };
    feed.on_change(&topic.publish(&short, 0).expect("taken"), 0, &mut told);
    feed.on_change(&topic.expire(5).expect("due"), 5, &mut told);
    told.is(&["[0, 1, 2] update 11=2;38=99;", "[0, 2] left 11=2;38=99; Expired"]);
}

#[test]
fn an_answer_comes_in_batches_before_what_happens_meanwhile() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    for number in 0..5 {
        publish(&mut topic, &mut feed, &mut told, &format!("11={number};38=1;"), 0);
    }
    let options = SubscriptionOptions { batch: 2, ..SubscriptionOptions::default() };
    let query = Query::default();
    let id = feed.query_and_subscribe(&mut topic, &query, options, 0, &mut told);
    assert_eq!(id, Ok(0));
    assert!(feed.advance(&mut topic, 0, 3, &mut told));
    publish(&mut topic, &mut feed, &mut told, "11=4;38=2;", 0);
    publish(&mut topic, &mut feed, &mut told, "11=9;38=2;", 0);
    assert!(!feed.advance(&mut topic, 0, 10, &mut told));
    publish(&mut topic, &mut feed, &mut told, "11=0;38=3;", 0);
    told.is(&[
        "[0] begin",
        "[0] 11=0;38=1; 11=1;38=1;",
        // Previous versions of changed records come first.
        "[0] 11=2;38=1; 11=4;38=1;",
        "[0] 11=3;38=1;",
        "[0] end 5 of 5",
        "[0] update 11=4;38=2;",
        "[0] update 11=9;38=2;",
        "[0] update 11=0;38=3;",
    ]);
}

#[test]
fn a_query_alone_ends_by_itself() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    publish(&mut topic, &mut feed, &mut told, "11=1;38=1;", 0);
    let id = feed.query(&topic, &filter("/38 = 1").into(), 10, 0, &mut told).expect("room");
    publish(&mut topic, &mut feed, &mut told, "11=1;38=2;", 0);
    assert!(!feed.advance(&mut topic, 0, 100, &mut told));
    told.is(&["[0] begin", "[0] 11=1;38=1;", "[0] end 1 of 1"]);
    assert!(feed.is_empty() && !feed.unsubscribe(&mut topic, id));
}

#[test]
fn too_much_waiting_ends_the_subscription() {
    let few = SubscriptionOptions { waiting_max: 2, ..SubscriptionOptions::default() };
    // Two messages.
    let short = SubscriptionOptions { waiting_bytes_max: 10, ..SubscriptionOptions::default() };
    for options in [few, short] {
        let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
        let all = Query::default();
        feed.query_and_subscribe(&mut topic, &all, options, 0, &mut told).expect("room");
        for number in 0..3 {
            publish(&mut topic, &mut feed, &mut told, &format!("11={number};"), 0);
        }
        assert!(!feed.advance(&mut topic, 0, 100, &mut told));
        told.is(&["[0] begin", "[0] overrun"]);
        assert!(feed.is_empty());
    }
}

#[test]
fn conflated_subscribers_hear_of_each_record_once_in_a_while() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    let conflation = Some(Duration::from_nanos(10));
    let options =
        SubscriptionOptions { conflation, out_of_focus: true, ..SubscriptionOptions::default() };
    feed.subscribe(&mut topic, Some(&filter("/38 < 50")), options).expect("room");
    feed.subscribe(&mut topic, None, SubscriptionOptions::default()).expect("room");
    for (message, now_ns) in [("11=a;38=1;", 0), ("11=a;38=2;", 1), ("11=b;38=1;", 2)] {
        publish(&mut topic, &mut feed, &mut told, message, now_ns);
    }
    publish(&mut topic, &mut feed, &mut told, "11=a;38=3;", 9);
    told.is(&[
        "[0] update 11=a;38=1;",
        "[1] update 11=a;38=1;",
        "[1] update 11=a;38=2;",
        "[0] update 11=b;38=1;",
        "[1] update 11=b;38=1;",
        "[1] update 11=a;38=3;",
    ]);
    assert_eq!(feed.next_flush_ns(), Some(10));
    feed.flush(9, &mut told);
    told.is(&[]);
    feed.flush(11, &mut told);
    told.is(&["[0] update 11=a;38=3;"]);
    publish(&mut topic, &mut feed, &mut told, "11=b;38=60;", 11);
    publish(&mut topic, &mut feed, &mut told, "11=a;38=60;", 14);
    told.is(&["[1] update 11=b;38=60;", "[1] update 11=a;38=60;"]);
    feed.flush(100, &mut told);
    told.is(&["[0] left 11=b;38=60; Match", "[0] left 11=a;38=60; Match"]);
    feed.flush(200, &mut told);
    told.is(&[]);
    assert_eq!(feed.next_flush_ns(), None);
}

#[test]
fn another_query_takes_a_subscriptions_place() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    for number in 0..4 {
        publish(&mut topic, &mut feed, &mut told, &format!("11={number};38={number};"), 0);
    }
    let options = SubscriptionOptions::default();
    let id = feed.subscribe(&mut topic, Some(&filter("/38 = 1")), options).expect("room");
    let other = filter("/38 >= 2").into();
    feed.replace(&mut topic, id, &other, options, 0, &mut told).expect("room");
    feed.advance(&mut topic, 0, 100, &mut told);
    told.is(&["[0] begin", "[0] 11=2;38=2; 11=3;38=3;", "[0] end 2 of 4"]);
    publish(&mut topic, &mut feed, &mut told, "11=9;38=1;", 0);
    publish(&mut topic, &mut feed, &mut told, "11=9;38=5;", 0);
    told.is(&["[0] update 11=9;38=5;"]);
    let keys = Query { keys: Some(Vec::new()), ..Query::default() };
    let refused = feed.replace(&mut topic, id, &keys, options, 0, &mut told);
    assert_eq!(refused, Err(TopicError::KeyListNotSupported));
    assert!(feed.is_empty());
    let refused = feed.replace(&mut topic, id, &other, options, 0, &mut told);
    assert_eq!(refused, Err(TopicError::NoSubscription(id)));
}

#[test]
fn deltas_are_delivered_to_subscribers_that_know_the_record() {
    let (mut topic, mut feed, mut told) = (topic(), SubscriptionSet::new(), Told::default());
    let options =
        SubscriptionOptions { delta: true, out_of_focus: true, ..SubscriptionOptions::default() };
    feed.subscribe(&mut topic, Some(&filter("/38 > 10")), options).expect("room");
    feed.subscribe(&mut topic, None, SubscriptionOptions::default()).expect("room");
    let conflation = Some(Duration::from_nanos(10));
    let slow = SubscriptionOptions { conflation, ..options };
    feed.subscribe(&mut topic, Some(&filter("/38 > 10")), slow).expect("room");
    publish(&mut topic, &mut feed, &mut told, "11=a;38=20;55=IBM;", 0);
    told.is(&["[2] update 11=a;38=20;55=IBM;", "[0, 1] update 11=a;38=20;55=IBM;"]);
    publish(&mut topic, &mut feed, &mut told, "11=a;38=30;55=IBM;", 1);
    publish(&mut topic, &mut feed, &mut told, "11=a;38=30;55=SAP;", 2);
    told.is(&[
        "[0] delta 11=a;38=30;",
        "[1] update 11=a;38=30;55=IBM;",
        "[0] delta 11=a;55=SAP;",
        "[1] update 11=a;38=30;55=SAP;",
    ]);
    feed.flush(10, &mut told);
    told.is(&["[2] delta 11=a;38=30;55=SAP;"]);
    publish(&mut topic, &mut feed, &mut told, "11=a;38=1;55=SAP;", 50);
    publish(&mut topic, &mut feed, &mut told, "11=a;38=40;55=SAP;", 51);
    told.is(&[
        "[0] left 11=a;38=1;55=SAP; Match",
        "[1] update 11=a;38=1;55=SAP;",
        "[0, 1] update 11=a;38=40;55=SAP;",
    ]);
    feed.flush(100, &mut told);
    told.is(&["[2] update 11=a;38=40;55=SAP;"]);
}
