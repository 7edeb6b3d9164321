//! Views in a server: asked for and followed as any kept topic, and changed by theirs alone.

use crate::test_server::{Client, Served};
use lanecast_broker::{OpenError, Server, ServerConfig, ViewDefinition};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;
use std::net::Ipv4Addr;

fn settings(settings: &mut ServerConfig) {
    // Publishers supply the keys: the messages are as the example has them.
    settings.topics = vec![TopicDefinition::new("orders", MessageType::Fix)];
    let vwap = ViewDefinition::new("VWAP", MessageType::Nvfix, "orders")
        .project("/11 as /customer, /55 as /symbol, sum(/14 * /99)/sum(/14) AS /vwap")
        .group_by("/11, /55");
    let best = ViewDefinition::new("best", MessageType::Json, "VWAP")
        .project("/customer, MAX(/vwap) AS /most, COUNT(1) AS /symbols")
        .group_by("/customer");
    settings.views = vec![vwap, best];
}

fn client(served: &Served, kind: &str) -> Client {
    let mut client = served.client();
    client.speak(kind);
    client
}

fn publish(client: &mut Client, key: u32, fields: &str) {
    let body = fields.replace(';', "\u{1}");
    client.send(&format!(r#"{{"c":"p","t":"orders","k":"{key}"}}{body}"#));
}

/// The next message's command and body.
fn told(client: &mut Client) -> (String, String) {
    let told = client.told();
    assert_eq!(told.correlation_id, "");
    (told.command, told.body.replace('\u{1}', ";"))
}

fn state(client: &mut Client, query_id: &str) -> Vec<String> {
    client.answer(query_id).iter().map(|body| body.replace('\u{1}', ";")).collect()
}

#[test]
fn the_price_by_customer_and_symbol_is_there_when_its_orders_are() {
    let served = Served::new(settings);
    let mut publisher = client(&served, "fix");
    let (mut reader, mut above) = (client(&served, "nvfix"), client(&served, "json"));
    above.send(r#"{"c":"subscribe","t":"best","sub_id":"b"}"#);
    above.flush();
    publish(&mut publisher, 1, "11=c01;55=INTC;14=1000;99=34.50;");
    publish(&mut publisher, 2, "11=c01;55=INTC;14=5000;99=34.75;");
    publish(&mut publisher, 3, "11=c01;55=INFA;14=100;99=18.75;");
    publisher.flush();
    let wants = r#""orderby":"/symbol DESC","opts":"oof","sub_id":"v""#;
    reader.send(&format!(r#"{{"c":"sow_and_subscribe","t":"VWAP",{wants}}}"#));
    let (intel, informatica) =
        ("customer=c01;symbol=INTC;vwap=34.70833;", "customer=c01;symbol=INFA;vwap=18.75;");
    assert_eq!(state(&mut reader, ""), [intel, informatica]);
    publisher
        .send("{\"c\":\"delta_publish\",\"t\":\"orders\",\"k\":\"3\",\"x\":\"mine\"}99=19\u{1}");
    assert_eq!(told(&mut reader), ("p".into(), "customer=c01;symbol=INFA;vwap=19;".into()));
    publisher.send(r#"{"c":"sow_delete","t":"orders","filter":"/55 = 'INFA'"}"#);
    assert_eq!(told(&mut reader), ("oof".into(), "customer=c01;symbol=INFA;vwap=19;".into()));
    for expected in [
        r#"{"customer":"c01","most":34.5,"symbols":1}"#,
        r#"{"customer":"c01","most":34.70833,"symbols":1}"#,
        r#"{"customer":"c01","most":34.70833,"symbols":2}"#,
        r#"{"customer":"c01","most":34.70833,"symbols":1}"#,
    ] {
        assert_eq!(told(&mut above), ("p".into(), expected.into()));
    }
    reader.flush();
    assert!(served.end());
}

#[test]
fn a_view_is_changed_by_its_topics_alone() {
    let served = Served::new(settings);
    let mut writer = client(&served, "nvfix");
    for command in [
        "{\"c\":\"p\",\"t\":\"VWAP\",\"a\":\"processed\"}customer=c\u{1}symbol=s\u{1}",
        r#"{"c":"sow_delete","t":"VWAP","filter":"/vwap > 1","a":"processed"}"#,
    ] {
        writer.send(command);
        let answer = writer.next().expect("an answer");
        assert!(answer.contains("failure") && answer.contains("this is a view"), "{answer}");
    }
    assert!(served.end());
}

#[test]
fn orders_and_customers_are_shown_together() {
    let served = Served::new(|settings| {
        let topic =
            |name| TopicDefinition::new(name, MessageType::Json).key("/id").expect("a path");
        settings.topics = vec![topic("orders"), topic("customers")];
        let view = ViewDefinition::new("regions", MessageType::Json, "orders")
            .join("customers", "/orders/customer = /customers/id")
            .project("/customers/region AS /region, SUM(/orders/qty) AS /qty")
            .group_by("/customers/region");
        settings.views = vec![view];
    });
    let (mut publisher, mut reader) = (client(&served, "json"), client(&served, "json"));
    reader.send(r#"{"c":"sow_and_delta_subscribe","t":"regions","opts":"oof","sub_id":"v"}"#);
    assert!(state(&mut reader, "").is_empty());
    for (topic, body) in [
        ("customers", r#"{"id":"a","region":"EU"}"#),
        ("orders", r#"{"id":1,"customer":"a","qty":5}"#),
        ("orders", r#"{"id":2,"customer":"a","qty":7}"#),
        ("customers", r#"{"id":"a","region":"US"}"#),
    ] {
        publisher.send(&format!(r#"{{"c":"p","t":"{topic}"}}{body}"#));
    }
    let mut events: Vec<(String, String)> = (0..4).map(|_| told(&mut reader)).collect();
    events[2..].sort();
    let events: Vec<(&str, &str)> = events.iter().map(|(a, b)| (&**a, &**b)).collect();
    let expected = [
        ("p", r#"{"region":"EU","qty":5}"#),
        ("p", r#"{"region":"EU","qty":12}"#),
        ("oof", r#"{"region":"EU","qty":12}"#),
        ("p", r#"{"region":"US","qty":12}"#),
    ];
    assert_eq!(events, expected);
    assert!(served.end());
}

#[test]
fn a_wrong_view_is_no_server_and_says_why() {
    let refused = |change: fn(&mut ServerConfig), part: &str| {
        let mut wrong = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
        settings(&mut wrong);
        change(&mut wrong);
        let error = Server::open(wrong).expect_err(part);
        assert!(matches!(error, OpenError::Catalog(_)), "{error}");
        assert!(error.to_string().contains(part), "{error}");
    };
    refused(|it| it.topics.clear(), "the view VWAP: in the topics, at byte 0: there is no topic");
    refused(|it| it.views[0].grouping = "11".into(), "in the grouping");
    refused(|it| it.views[0].name = "orders".into(), "already");
    refused(
        |it| it.topics.push(TopicDefinition::new("orders", MessageType::Json)),
        "several topics orders",
    );
    refused(|it| it.topics.push(it.topics[0].clone()), "orders");
}

#[test]
fn the_example_file_shows_what_it_says() {
    const FILE: &str = include_str!("../../../../config/vwap.toml");
    let served = Served::new(|settings| {
        let said = lanecast_broker::parse_config(FILE).expect("it is valid");
        (settings.topics, settings.views) = (said.topics, said.views);
    });
    let mut client = client(&served, "json");
    // What the file tells to publish.
    let orders = FILE.lines().filter_map(|line| line.split('\'').nth(1));
    let orders: Vec<&str> = orders.filter(|order| order.starts_with('{')).collect();
    assert_eq!(orders.len(), 3);
    for order in orders {
        client.send(&format!(r#"{{"c":"p","t":"orders"}}{order}"#));
    }
    client.send(r#"{"c":"sow","cid":"1","t":"VWAP","orderby":"/symbol DESC"}"#);
    let expected = [
        r#"{"customer":"c01","symbol":"INTC","vwap":34.70833}"#,
        r#"{"customer":"c01","symbol":"INFA","vwap":18.75}"#,
    ];
    assert_eq!(state(&mut client, "1"), expected);
    assert!(served.end());
}
