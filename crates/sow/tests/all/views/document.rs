//! The example of the guide, and single messages of views.

use super::world::{World, plain};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::ViewDefinition;
use lanecast_sow::view::Rounding;

fn vwap() -> ViewDefinition {
    ViewDefinition::new("VWAP", plain(MessageType::Nvfix), "orders")
        .project("/11 as /customer, /55 as /symbol, sum(/14 * /99)/sum(/14) AS /vwap")
        .group_by("/11, /55")
}

fn orders() -> World {
    World::new(&["orders"], plain(MessageType::Fix))
}

/// Publishes these messages, each with its own key.
fn publish(world: &mut World, messages: &[&str]) {
    for (number, message) in messages.iter().enumerate() {
        world.set(0, &format!("{number}"), Some(message));
    }
    world.settle();
}

const MESSAGES: [&str; 3] = [
    "11=c01;55=INTC;14=1000;99=34.50;",
    "11=c01;55=INTC;14=5000;99=34.75;",
    "11=c01;55=INFA;14=100;99=18.75;",
];

#[test]
fn the_paper_is_reproduced_to_the_last_digit() {
    let mut world = orders().with(vwap());
    publish(&mut world, &MESSAGES);
    assert_eq!(
        world.shown("VWAP"),
        ["customer=c01;symbol=INFA;vwap=18.75;", "customer=c01;symbol=INTC;vwap=34.70833;"]
    );
}

#[test]
fn replaced_and_deleted_records_leave_no_trace_in_a_view() {
    let mut world = orders().with(vwap());
    publish(&mut world, &MESSAGES);
    world.set(0, "1", Some("11=c01;55=INTC;14=3000;99=34.50;"));
    world.set(0, "2", None);
    world.settle();
    assert_eq!(world.shown("VWAP"), ["customer=c01;symbol=INTC;vwap=34.5;"]);
    assert_eq!(world.views.views()[0].groups(), 1);
    world.set(0, "0", Some("11=c02;55=INTC;14=1;99=2;"));
    world.set(0, "1", None);
    world.settle();
    assert_eq!(world.shown("VWAP"), ["customer=c02;symbol=INTC;vwap=2;"]);
}

#[test]
fn a_view_starts_with_what_its_topic_holds() {
    let mut world = orders();
    publish(&mut world, &MESSAGES);
    let mut world = world.with(vwap());
    world.settle();
    assert_eq!(world.shown("VWAP").len(), 2);
}

#[test]
fn changes_of_one_group_between_reads_are_one_change() {
    let mut world = orders().with(vwap());
    for number in 0..100 {
        world.set(0, &number.to_string(), Some("11=c;55=X;14=1;99=2;"));
    }
    world.settle();
    assert_eq!(world.views.views()[0].topic().sequence(), 1);
    world.set(0, "5", Some("11=c;55=X;14=3;99=2;"));
    world.settle();
    assert_eq!(world.views.views()[0].topic().sequence(), 1, "the same record is no change");
    world.set(0, "200", Some("11=d;55=X;14=3;99=2;"));
    world.set(0, "200", None);
    world.settle();
    assert_eq!(world.views.views()[0].topic().sequence(), 1, "it came and went unseen");
}

#[test]
fn all_functions_and_the_last_value_are_shown() {
    let definition = ViewDefinition::new("all", plain(MessageType::Nvfix), "orders")
        .project(
            "/55, count(/14) as /n, count(1) as /rows, sum(/14) as /sum, avg(/99) as /avg, \
             min(/99) as /min, max(/99) as /max, count_distinct(/11) as /who, /11 as /last, \
             if(sum(/14) > 10, 'large', 'small') as /size, max(/99) - min(/99) as /spread",
        )
        .group_by("/55")
        .filter("/99 < 100");
    let mut world = orders().with(definition);
    publish(
        &mut world,
        &[
            "55=X;14=10;99=10.50;11=a;",
            "55=X;99=9.5;11=b;",
            "55=X;14=0.10;99=9.50;11=a;",
            "55=X;14=7;99=100;11=z;",
            "14=7;99=1;11=z;",
        ],
    );
    assert_eq!(
        world.shown("all"),
        ["55=X;n=2;rows=3;sum=10.1;avg=9.83333;min=9.5;max=10.5;who=2;last=a;size=large;spread=1;"]
            .map(|text| text.replace("9.83333", "9.833333"))
    );
    assert_eq!(world.views.views()[0].ungrouped_rows(), 1, "one has no symbol");
    world.set(0, "2", None);
    world.settle();
    assert_eq!(
        world.shown("all"),
        ["55=X;n=1;rows=2;sum=10;avg=10;min=9.5;max=10.5;who=2;last=b;size=small;spread=1;"]
    );
    world.set(0, "1", Some("55=X;14=abc;99=9.5;11=b;"));
    world.settle();
    assert_eq!(
        world.shown("all"),
        ["55=X;n=2;rows=2;avg=10;min=9.5;max=10.5;who=2;last=b;size=small;spread=1;"],
        "no sum is shown while something is in it that is no number"
    );
}

#[test]
fn a_view_without_grouping_has_one_record() {
    let definition = ViewDefinition::new("total", MessageType::Json, "orders")
        .project("count(1) as /orders/count, sum(/14)/count(/14) as /orders/average, /55 as /last")
        .rounding(Rounding { decimals: 2, digits: 1 });
    let mut world = orders().with(definition);
    publish(&mut world, &MESSAGES);
    let shown = world.shown("total");
    assert_eq!(shown, [r#"{"orders":{"count":3,"average":2033.33},"last":"INFA"}"#]);
    (0..3).for_each(|key| world.set(0, &key.to_string(), None));
    world.settle();
    assert!(world.shown("total").is_empty());
}

#[test]
fn a_value_that_cannot_be_written_is_named_and_the_rest_goes_on() {
    let definition = ViewDefinition::new("v", plain(MessageType::Nvfix), "orders")
        .project("/55, max(/58) as /text")
        .group_by("/55");
    // With other separators a text may contain a semicolon.
    let mut world = World::new(&["orders"], MessageType::Fix.into()).with(definition);
    world.set(0, "1", Some("55=A\u{1}58=a;b\u{1}"));
    world.set(0, "2", Some("55=B\u{1}58=b\u{1}"));
    let mut said = Vec::new();
    world.views.refresh(1, &mut |_, change| {
        said.push(change.map(|change| change.key.0 > 0).map_err(|error| error.to_string()));
    });
    let refused = "the value of /text contains the field separator: use another format for the \
                   view";
    assert_eq!(said, [Err(refused.to_owned()), Ok(true)]);
}

#[test]
fn views_stand_on_views() {
    let best = ViewDefinition::new("best", plain(MessageType::Nvfix), "VWAP")
        .project("/symbol, max(/vwap) as /best, count(/customer) as /customers")
        .group_by("/symbol");
    let mut world = orders().with(vwap()).with(best);
    publish(&mut world, &["11=a;55=X;14=1;99=2;", "11=b;55=X;14=1;99=3;", "11=a;55=Y;14=2;99=4;"]);
    assert_eq!(
        world.shown("best"),
        ["symbol=X;best=3;customers=2;", "symbol=Y;best=4;customers=1;"]
    );
    world.set(0, "1", None);
    world.set(0, "2", None);
    world.settle();
    assert_eq!(world.shown("best"), ["symbol=X;best=2;customers=1;"]);
}
