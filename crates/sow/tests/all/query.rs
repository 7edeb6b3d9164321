//! Queries compared with a full scan in the test.

use lanecast_filter::Filter;
use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{Key, Order, Publication, Query, QueryCursor, Topic, TopicDefinition};

fn topic(indexes: &[&str]) -> Topic {
    let format = Format::new(MessageType::Fix).with_separators(b';', b'=').expect("separators");
    let mut definition = TopicDefinition::new("orders", format).key("/11").expect("a path");
    for index in indexes {
        definition = definition.index(index).expect("a path");
    }
    let mut topic = Topic::new(definition).expect("a topic");
    for number in 0..200_u32 {
        let symbol = ["IBM", "MSFT", "AAPL", "5", "5.0", "05"][number as usize % 6];
        let message =
            format!("11={number};55={symbol};38={};44=1.{};", number * 7 % 50, number % 3);
        topic.publish(&Publication::of(message.as_bytes()), 0).expect("taken");
    }
    topic
}

fn filter(text: &str) -> Query {
    Query::from(Filter::parse(text).expect(text))
}

fn found(topic: &Topic, query: &Query) -> Vec<String> {
    let records = QueryCursor::read_all(topic, query, 0).expect("room");
    records.iter().map(|record| String::from_utf8_lossy(record.bytes()).into_owned()).collect()
}

fn field<'a>(message: &'a str, tag: &str) -> &'a str {
    let mut fields = message.split(';').filter_map(|field| field.split_once('='));
    fields.find(|(name, _)| *name == tag).map_or("", |(_, value)| value)
}

#[test]
fn an_index_finds_what_looking_at_all_records_finds() {
    let (plain, mut indexed) = (topic(&[]), topic(&["/55", "/38"]));
    let again = "11=6;55=MSFT;38=1;";
    indexed.publish(&Publication::of(again.as_bytes()), 0).expect("taken");
    let mut plain_again = plain;
    plain_again.publish(&Publication::of(again.as_bytes()), 0).expect("taken");
    for topic in [&mut plain_again, &mut indexed] {
        for deleted in ["11=7;", "11=0;", "11=199;"] {
            topic.delete_as(&Publication::of(deleted.as_bytes()), 0).expect("a key");
        }
    }
    for (text, is_indexed) in [
        ("/55 = 'IBM'", true),
        ("'IBM' = /55 AND /38 > 20", true),
        ("/55 IN ('IBM', 'AAPL', 'GONE')", true),
        ("/55 = 5", true),
        ("/55 = '5'", true),
        ("/55 IN (5, '05', 'MSFT')", true),
        ("/38 = 14 AND /55 IN ('IBM', 'MSFT')", true),
        ("/55 = 'IBM' OR /55 = 'MSFT'", false),
        ("/55 <> 'IBM'", false),
        ("/44 = 1.1", false),
    ] {
        let query = filter(text);
        let mut expected = found(&plain_again, &query);
        let mut actual = found(&indexed, &query);
        expected.sort();
        actual.sort();
        assert!(!expected.is_empty(), "{text}");
        assert_eq!(actual, expected, "{text}");
        let picked = QueryCursor::new(&indexed, &query, 0).expect("room").picked();
        assert_eq!(picked.is_some(), is_indexed, "{text}");
        assert!(picked.is_none_or(|picked| picked < 140), "{text}: {picked:?}");
    }
    let few = QueryCursor::new(&indexed, &filter("/38 = 14 AND /55 = 'IBM'"), 0).expect("room");
    assert!(few.picked().is_some_and(|picked| picked <= 4), "the more selective index is taken");
}

#[test]
fn answers_are_sorted_by_number_where_there_are_numbers() {
    let topic = topic(&[]);
    let order =
        vec![Order::descending("/38").expect("a path"), Order::ascending("/11").expect("a path")];
    let all = found(&topic, &Query { order: order.clone(), ..Query::default() });
    assert_eq!(all.len(), 200);
    let number = |message: &str, tag| field(message, tag).parse::<i64>().expect("a number");
    let keys: Vec<_> =
        all.iter().map(|message| (-number(message, "38"), number(message, "11"))).collect();
    assert!(keys.is_sorted());
    let page = Query { order, skip: 15, top: Some(20), ..Query::default() };
    assert_eq!(found(&topic, &page), all[15..35]);
    let by_symbol = vec![Order::ascending("/55").expect("a path")];
    let symbols = found(&topic, &Query { order: by_symbol, ..Query::default() });
    assert_eq!(field(&symbols[0], "55"), "5");
    assert_eq!(field(&symbols[100], "55"), "AAPL");
    assert_eq!(field(&symbols[199], "55"), "MSFT");
}

#[test]
fn pages_of_an_unsorted_answer_are_cut_where_it_says() {
    let topic = topic(&[]);
    let all = found(&topic, &filter("/38 < 10"));
    let page = Query { skip: 3, top: Some(5), ..filter("/38 < 10") };
    assert_eq!(found(&topic, &page), all[3..8]);
    assert_eq!(found(&topic, &Query { top: Some(0), ..Query::default() }), Vec::<String>::new());
    let past = Query { skip: 500, ..Query::default() };
    assert_eq!(found(&topic, &past), Vec::<String>::new());
}

#[test]
fn records_are_found_by_key() {
    let topic = topic(&[]);
    let some: Vec<Key> = topic.iter().take(3).map(|record| record.key()).collect();
    let keys = vec![some[2], Key(1), some[0], some[2]];
    let query = Query { keys: Some(keys), ..Query::default() };
    let mut found = QueryCursor::read_all(&topic, &query, 0).expect("room");
    found.sort_by_key(|record| record.sequence());
    let found: Vec<Key> = found.iter().map(|record| record.key()).collect();
    assert_eq!(found, [some[0], some[2]]);
}

#[test]
fn scans_count_and_come_to_an_end_in_slices() {
    let topic = topic(&[]);
    let order = vec![Order::ascending("/38").expect("a path")];
    for order in [Vec::new(), order] {
        let query = Query { order, top: Some(30), ..filter("/55 = 'IBM'") };
        let mut scan = QueryCursor::new(&topic, &query, 0).expect("room");
        let (mut slices, mut records) = (1, Vec::new());
        while scan.advance(&topic, 7, &mut records) {
            slices += 1;
        }
        assert_eq!(records.len(), 30);
        assert!((20..=40).contains(&slices), "{slices}");
        assert_eq!((scan.answer().records, scan.answer().returned), (200, 30));
    }
}
