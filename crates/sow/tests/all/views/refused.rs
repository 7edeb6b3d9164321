//! Invalid definitions are refused with the position and a hint.

use lanecast_filter::message_type::MessageType;
use lanecast_sow::view::Clause;
use lanecast_sow::{Topic, TopicDefinition, View, ViewDefinition, ViewGraph};

fn view() -> ViewDefinition {
    ViewDefinition::new("v", MessageType::Nvfix, "a").project("/x, sum(/y) as /y").group_by("/x")
}

fn joined(on: &str) -> ViewDefinition {
    view().join("b", on).project("/a/x as /x").group_by("/a/x")
}

fn topics() -> Vec<Topic> {
    let topic = |name| Topic::new(TopicDefinition::new(name, MessageType::Nvfix)).expect("a topic");
    ["a", "b", "c"].map(topic).into()
}

fn find<'a>(topics: &'a [Topic], name: &str) -> Option<&'a Topic> {
    topics.iter().find(|topic| &*topic.definition().name == name)
}

#[test]
fn a_mistake_is_named_where_it_is_with_what_to_write() {
    for (definition, clause, at, part) in [
        (view().group_by("/x, 55"), Clause::Grouping, 6, "write /55"),
        (view().group_by("/x, /z"), Clause::Grouping, 4, "add `/z AS /name`"),
        (view().group_by("upper(/x) as /x"), Clause::Grouping, 0, "is no field"),
        (view().project("/x, sum(/y as /y"), Clause::Projection, 11, "expected `,` or `)`"),
        (view().project("/x, sum(/y) /y"), Clause::Projection, 13, "expected"),
        (view().project("/x, sun(/y) as /y"), Clause::Projection, 4, "write SUM"),
        (view().project("/x, sum(max(/y)) as /y"), Clause::Projection, 8, "nested in another"),
        (view().project("/x, sum(/y) as /x"), Clause::Projection, 4, "another field has this"),
        (view().project("/x, sum(/y) as /y/z"), Clause::Projection, 4, "write AS /name"),
        (view().project("/x, unix_timestamp() as /t"), Clause::Projection, 4, "is not allowed"),
        (view().filter("sum(/y) > 1"), Clause::Filter, 0, "in views only"),
        (view().filter("/y > > 1"), Clause::Filter, 5, "expected"),
        (view().filter("client_name() = 'x'"), Clause::Filter, 0, "is not allowed"),
        (view().filter("instance_name() = 'x'"), Clause::Filter, 0, "is not allowed"),
        (view().join("b", "/a/x = /b/x"), Clause::Grouping, 0, "write /a/x"),
        (joined("/a/x > /b/x"), Clause::Join(0), 0, "does not equate"),
        (joined("/a/x = 1"), Clause::Join(0), 0, "does not equate"),
        (joined("/x = /b/x"), Clause::Join(0), 0, "write /a/field = /b/field"),
        (joined("/a/x = /a/y"), Clause::Join(0), 0, "does not join b"),
        (joined("/a/x = /c/x").join("c", "/a/x = /c/x"), Clause::Join(0), 0, "does not join b"),
        (joined("/a/x = /b/x").join("a", "/a/x = /a/y"), Clause::Topics, 0, "to itself"),
        (joined("/a/x = /d/x"), Clause::Join(0), 0, "whose fields"),
        (
            ViewDefinition::new("v", MessageType::Binary, "a").project("/x"),
            Clause::Projection,
            0,
            "no fields",
        ),
        (
            ViewDefinition::new("v", MessageType::Nvfix, "d").project("/x"),
            Clause::Topics,
            0,
            "no topic d",
        ),
        (ViewDefinition::new("v", MessageType::Nvfix, "a"), Clause::Projection, 0, "a field"),
    ] {
        let topics = topics();
        let error = View::new(definition.clone(), &|name| find(&topics, name));
        let error = error.expect_err("it is wrong");
        assert_eq!((error.clause, error.at), (clause, at), "{error}: {definition:?}");
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn names_are_taken_once() {
    let topics = topics();
    let find = |name: &str| find(&topics, name);
    let mut views = ViewGraph::new();
    views.add(view(), &find).expect("a view");
    let error = views.add(view(), &find).expect_err("the name is taken");
    assert!(error.to_string().contains("another name"), "{error}");
    let definition = ViewDefinition { name: "a".into(), ..view() };
    assert!(views.add(definition, &find).is_err(), "it is a topic's");
}
