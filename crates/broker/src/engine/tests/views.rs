//! Records of views: their length is bounded.

use crate::test_broker::TestBroker;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::{TopicDefinition, ViewDefinition};

#[test]
fn a_joined_record_is_no_longer_than_a_frame_may_be() {
    const FRAME: usize = 1_000;
    let mut broker = TestBroker::new(|config| {
        config.frame_bytes_max = FRAME;
        let topic = |name| TopicDefinition::new(name, MessageType::Json).key("/id");
        config.topics = ["a", "b"].map(|name| topic(name).expect("a path")).into();
        let view = ViewDefinition::new("both", MessageType::Json, "a")
            .join("b", "/a/id = /b/id")
            .project("/a/id AS /id, max(/a/text) AS /one, max(/b/text) AS /other")
            .group_by("/a/id");
        config.views = vec![view];
    });
    let (publisher, reader) = (broker.client(), broker.client());
    broker.send(reader, r#"{"c":"subscribe","t":"both","sub_id":"1"}"#);
    let mut publish = |topic: &str, length: usize| {
        let text = "x".repeat(length);
        let body = format!(r#"{{"id":1,"text":"{text}"}}"#);
        broker.send(publisher, &format!(r#"{{"c":"p","t":"{topic}"}}{body}"#));
        broker.turn();
        let errors = broker.engine.counters().view_errors;
        let lines = broker.engine.state.log.iter().filter(|line| line.contains("both")).count();
        (broker.received(reader).len(), errors, lines)
    };
    assert_eq!(publish("a", 600), (1, 0, 0));
    assert_eq!(publish("b", 600), (0, 1, 1), "each alone fits");
    assert_eq!(publish("b", 601), (0, 2, 1), "counted, and told once");
    assert_eq!(publish("b", 200), (1, 2, 1), "it fits again");
}
