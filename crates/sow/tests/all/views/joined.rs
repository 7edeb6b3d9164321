//! Joins: matching rows and rows without a match.

use super::world::{World, plain};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::ViewDefinition;
use lanecast_sow::view::RefreshError;

fn world() -> World {
    let definition = ViewDefinition::new("weights", plain(MessageType::Nvfix), "orders")
        .join("customers", "/orders/who = /customers/id")
        .join("regions", "/customers/region = /regions/id")
        .project(
            "/orders/who as /who, sum(/orders/qty * /regions/weight) as /weighed, \
             count(1) as /rows, max(/customers/name) as /name",
        )
        .group_by("/orders/who");
    World::new(&["orders", "customers", "regions"], plain(MessageType::Nvfix)).with(definition)
}

#[test]
fn rows_wait_for_what_they_are_joined_with() {
    let mut world = world();
    world.set(0, "1", Some("who=7;qty=10;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;rows=1;"], "there is a row without a match");
    world.set(1, "a", Some("id=7;name=Ann;region=eu;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;rows=1;name=Ann;"]);
    world.set(2, "x", Some("id=eu;weight=1.5;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;weighed=15;rows=1;name=Ann;"]);
    world.set(2, "x", Some("id=eu;weight=2;"));
    world.set(0, "2", Some("who=7;qty=1;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;weighed=22;rows=2;name=Ann;"]);
    world.set(1, "a", None);
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;rows=2;"]);
}

#[test]
fn several_matches_are_several_rows() {
    let mut world = world();
    world.set(0, "1", Some("who=7;qty=10;"));
    world.set(1, "a", Some("id=7;name=Ann;region=eu;"));
    world.set(1, "b", Some("id=7;name=Bob;region=us;"));
    world.set(2, "x", Some("id=eu;weight=1;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;weighed=10;rows=2;name=Bob;"]);
    world.set(1, "b", None);
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;weighed=10;rows=1;name=Ann;"]);
}

#[test]
fn texts_are_compared_and_null_matches_nothing() {
    let mut world = world();
    world.set(0, "1", Some("who=7;qty=10;"));
    world.set(0, "2", Some("qty=10;"));
    world.set(1, "a", Some("id=7.0;name=Ann;"));
    world.set(1, "b", Some("name=Unknown;"));
    world.settle();
    assert_eq!(world.shown("weights"), ["who=7;rows=1;"]);
    assert_eq!(world.views.views()[0].ungrouped_rows(), 1);
}

#[test]
fn conditions_see_all_of_a_row() {
    let definition = ViewDefinition::new("v", plain(MessageType::Nvfix), "a")
        .join("b", "/a/x = /b/x AND /a/y = /b/y")
        .project("/a/x as /x, count(1) as /n")
        .group_by("/a/x")
        .filter("/b/z > /a/z OR /b/z IS NULL");
    let mut world = World::new(&["a", "b"], plain(MessageType::Nvfix)).with(definition);
    world.set(0, "1", Some("x=1;y=1;z=5;"));
    world.set(0, "2", Some("x=1;y=2;z=5;"));
    world.set(1, "1", Some("x=1;y=1;z=6;"));
    world.settle();
    assert_eq!(world.shown("v"), ["x=1;n=2;"]);
    world.set(1, "1", Some("x=1;y=1;z=4;"));
    world.settle();
    assert_eq!(world.shown("v"), ["x=1;n=1;"], "one does not meet the condition");
    world.set(1, "1", Some("x=1;y=3;z=4;"));
    world.settle();
    assert_eq!(world.shown("v"), ["x=1;n=2;"]);
}

#[test]
fn a_record_that_would_be_too_long_keeps_its_contents() {
    let definition = ViewDefinition::new("pairs", plain(MessageType::Nvfix), "a")
        .join("b", "/a/x = /b/x")
        .project("/a/x as /x, max(/a/y) as /y, max(/b/z) as /z")
        .group_by("/a/x")
        .record_bytes_max(20);
    let mut world = World::new(&["a", "b"], plain(MessageType::Nvfix)).with(definition);
    world.set(0, "1", Some("x=1;y=1234567;"));
    world.set(1, "1", Some("x=1;z=abc;"));
    world.settle();
    assert_eq!(world.shown("pairs"), ["x=1;y=1234567;z=abc;"], "as long as it may be");
    world.set(1, "1", Some("x=1;z=abcd;"));
    let mut errors = Vec::new();
    world.views.refresh(0, &mut |_, change| errors.extend(change.err()));
    assert_eq!(errors, [RefreshError::TooLong(20)]);
    assert_eq!(world.shown("pairs"), ["x=1;y=1234567;z=abc;"]);
    world.set(0, "1", Some("x=1;y=1;"));
    world.settle();
    assert_eq!(world.shown("pairs"), ["x=1;y=1;z=abcd;"]);
}
