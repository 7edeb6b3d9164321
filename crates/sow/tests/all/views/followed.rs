//! Views without subscribers stay stale and are refreshed when one comes.

use super::world::{World, plain};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::ViewDefinition;

fn world() -> World {
    let format = plain(MessageType::Nvfix);
    let sums = ViewDefinition::new("sums", format, "orders")
        .project("/who, /sym, sum(/qty) as /qty")
        .group_by("/who, /sym");
    let most = ViewDefinition::new("most", format, "sums")
        .project("/sym, max(/qty) as /qty")
        .group_by("/sym");
    World::new(&["orders"], format).with(sums).with(most)
}

/// Refreshes the subscribed views; returns the names of those that changed.
fn told(world: &mut World) -> Vec<String> {
    let mut names = Vec::new();
    world.views.refresh_subscribed(0, &mut |view, change| {
        change.expect("it can be written");
        names.push(view.to_owned());
    });
    names
}

/// Subscribes to a view; returns the number of records refreshed for that.
fn follow(world: &mut World, view: usize) -> usize {
    let mut count = 0;
    world.views.subscribe(view, 0, &mut |_, change| {
        change.expect("it can be written");
        count += 1;
    });
    count
}

fn records(world: &World, view: usize) -> Vec<String> {
    let topic = world.views.views()[view].topic();
    topic.iter().map(|record| String::from_utf8_lossy(record.bytes()).into_owned()).collect()
}

#[test]
fn a_view_is_computed_while_it_or_a_view_over_it_has_subscribers() {
    let mut world = world();
    world.set(0, "1", Some("who=a;sym=X;qty=1;"));
    world.set(0, "2", Some("who=b;sym=X;qty=2;"));
    assert!(told(&mut world).is_empty() && records(&world, 0).is_empty());
    assert_eq!(follow(&mut world, 1), 3, "two below, and what they come to");
    assert_eq!(records(&world, 1), ["sym=X;qty=2;"]);

    world.set(0, "1", Some("who=a;sym=X;qty=7;"));
    assert_eq!(told(&mut world), ["sums", "most"]);
    assert_eq!(records(&world, 1), ["sym=X;qty=7;"]);

    world.views.unsubscribe(1);
    world.set(0, "1", None);
    assert!(told(&mut world).is_empty());
    assert_eq!(follow(&mut world, 0), 1);
    assert_eq!(records(&world, 0), ["who=b;sym=X;qty=2;"]);
    assert_eq!(records(&world, 1), ["sym=X;qty=7;"], "no subscription asked for this one");
    assert_eq!(follow(&mut world, 1), 1);
    assert_eq!(records(&world, 1), ["sym=X;qty=2;"]);
}

#[test]
fn queued_passwords_are_bounded_by_the_longest_wait() {
    let (mut world, customers, most) = (world(), 10_000, 4_096);
    for customer in 0..customers {
        let order = format!("who={customer};sym=X;qty=1;");
        world.set(0, &customer.to_string(), Some(&order));
        let written = told(&mut world).len();
        assert_eq!(written, usize::from(customer >= most));
        assert!(world.views.views()[0].waiting() <= most);
    }
    assert_eq!(follow(&mut world, 0), most);
    assert_eq!(records(&world, 0).len(), customers);
}
