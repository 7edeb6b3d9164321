//! Limits of topic patterns and of the patterns in filters.

use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::TopicDefinition;

#[test]
fn the_patterns_of_a_client_have_a_budget_together() {
    let topic = TopicDefinition::new("orders", MessageType::Json).key("/id").expect("a path");
    let mut broker = TestBroker::new(|config| {
        config.topics = vec![topic];
        // Enough for three patterns that are more than a text.
        config.client_patterns_bytes = 230 << 10;
    });
    let (one, other) = (broker.client(), broker.client());
    let mut say = |id, rest: &str| {
        broker.send(id, &format!(r#"{{"cid":"1","a":"processed",{rest}}}"#));
        let heard = broker.received(id).concat();
        broker.run_until_idle();
        drop(broker.received(id));
        heard
    };
    let like = r#""filter":"/a LIKE 'x.*y'""#;
    let subscribe = |topic: &str, name: &str| {
        format!(r#""c":"subscribe","t":"{topic}","sub_id":"{name}",{like}"#)
    };
    let refused = "may take 235520 bytes";
    for (topic, name) in [("orders", "a"), ("passing", "b")] {
        assert!(say(one, &subscribe(topic, name)).contains("success"));
    }
    // Its topic's pattern counts, and its filter's.
    assert!(say(one, &subscribe("^p.*", "c")).contains(refused));
    assert!(say(one, r#""c":"subscribe","t":"^p.*","sub_id":"c""#).contains("success"));
    assert!(say(one, r#""c":"subscribe","t":"^p.*","sub_id":"d""#).contains("success"), "the same");
    assert!(say(one, &subscribe("other", "e")).contains(refused));
    assert!(say(one, &format!(r#""c":"sow","t":"orders",{like}"#)).contains(refused));
    assert!(say(other, &subscribe("other", "e")).contains("success"), "others have their own");
    // What has ended takes nothing; an answer only until it is given.
    assert!(say(one, r#""c":"unsubscribe","sub_id":"a,c,d""#).contains("success"));
    for _ in 0..3 {
        let query = format!(r#""c":"sow_and_subscribe","t":"orders","sub_id":"s",{like}"#);
        assert!(say(one, &query).contains("success"));
        assert!(say(one, &format!(r#""c":"sow","t":"orders",{like}"#)).contains("success"));
        assert!(say(one, r#""c":"unsubscribe","sub_id":"s""#).contains("success"));
    }
}

#[test]
fn patterns_of_topics_are_limited_and_shared() {
    let mut broker = TestBroker::new(|config| config.patterns_max = 5);
    let (one, other) = (broker.client(), broker.client());
    let mut subscribe = |id, topic: &str, name: &str| {
        let rest = r#""cid":"1","a":"processed""#;
        broker.send(id, &format!(r#"{{"c":"subscribe","t":"{topic}","sub_id":"{name}",{rest}}}"#));
        broker.received(id).concat()
    };
    for number in 0..5 {
        assert!(subscribe(one, &format!("^{number}"), &number.to_string()).contains("success"));
    }
    let refused = subscribe(one, "^5", "5");
    assert!(refused.contains("subscribe to 5 different patterns"), "{refused}");
    assert!(subscribe(one, "^4", "again").contains("success"), "it is there already");
    for number in 0..10 {
        assert!(subscribe(other, "^4", &number.to_string()).contains("success"));
    }
    let hostile = subscribe(other, "(((a{99}){99}){99})", "h");
    assert!(hostile.contains("262144 bytes when compiled"), "{hostile}");
}

#[test]
fn a_client_that_has_many_patterns_compiled_leaves_others_their_turn() {
    let mut broker = TestBroker::new(|_| {});
    let (one, other) = (broker.client(), broker.client());
    let large = ["/a LIKE '(a{100}){90}'"; 10].join(" OR ");
    // Also where nothing comes of it.
    let wrong = format!("{large} OR OR");
    for (topic, filter, most) in [("t", &*large, 1), ("t", &*wrong, 1), ("^t{n}", "/a = 1", 9)] {
        let mut commands = 0;
        while broker.engine.can_execute(one) {
            commands += 1;
            assert!(commands <= most, "{topic} {filter}: {commands} commands in a turn");
            let topic = topic.replace("{n}", &commands.to_string());
            let rest = format!(r#""t":"{topic}","sub_id":"{topic}","filter":"{filter}""#);
            broker.send(one, &format!(r#"{{"c":"subscribe",{rest}}}"#));
        }
        assert!(broker.engine.can_execute(other));
        assert!(broker.turn(), "it goes on at once");
    }
}
