//! After any changes an incrementally maintained view equals one computed from scratch, and a plain
//! count.

use super::world::{World, plain};
use lanecast_filter::message_type::MessageType;
use lanecast_sow::ViewDefinition;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// A publication: topic, key, and the record's fields, or `None` to delete it.
type Act = (usize, u8, Option<[u8; 4]>, bool);

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let fields = prop::option::weighted(0.8, any::<[u8; 4]>());
    prop::collection::vec((0..2_usize, 0..8_u8, fields, any::<bool>()), 1..40)
}

const QUANTITIES: [&str; 8] =
    ["", "1", "2.50", "-3", "1e3", "0.001", "x", "12345678901234567890123"];

/// A random record of orders or of customers.
fn record(topic: usize, fields: [u8; 4]) -> String {
    let [who, symbol, quantity, price] = fields;
    let who = ["", "who=a;", "who=b;", "who=c;"][usize::from(who % 4)];
    let symbol = ["X", "Y"][usize::from(symbol % 2)];
    let quantity = QUANTITIES[usize::from(quantity % 8)];
    match topic {
        0 => format!("{who}sym={symbol};qty={quantity};px={}.{};", price % 50, price % 7),
        _ => format!("{who}rank={};region={symbol};", price % 3),
    }
}

fn definitions() -> Vec<ViewDefinition> {
    let view = |name, topic| ViewDefinition::new(name, plain(MessageType::Nvfix), topic);
    vec![
        view("sums", "orders")
            .project(
                "/who, /sym, sum(/qty * /px)/sum(/qty) as /vwap, count(/qty) as /n, /px as /last, \
                 min(/px) as /low, max(/qty) as /high, count_distinct(/px) as /prices",
            )
            .group_by("/who, /sym")
            .filter("/px < 40 OR /qty IS NULL"),
        view("totals", "orders")
            .project(
                "/who, sum(/qty) as /sum, sum(/qty * /px) as /value, count(/qty) as /n, \
                 max(/px) as /high, count_distinct(/qty) as /kinds",
            )
            .group_by("/who")
            .filter("/qty < 1000 OR /px >= 7"),
        view("regions", "orders")
            .join("customers", "/orders/who = /customers/who")
            .project(
                "/customers/region as /region, sum(/orders/px / (/customers/rank + 1)) as /sum, \
                 count(1) as /rows, max(/orders/sym) as /top, /orders/qty as /last",
            )
            .group_by("/customers/region")
            .filter("/customers/rank <> 2"),
        view("symbols", "sums")
            .project("/sym, sum(/n) as /n, avg(/vwap) as /vwap, min(/low) as /low")
            .group_by("/sym"),
        view("all", "symbols")
            .join("regions", "/symbols/sym = /regions/region")
            .project("count(1) as /rows, sum(/symbols/n * /regions/rows) as /product"),
    ]
}

fn world() -> World {
    World::new(&["orders", "customers"], plain(MessageType::Nvfix))
}

/// Records of views computed from scratch over the topics of `world`.
fn anew(world: &mut World) -> BTreeMap<String, Vec<String>> {
    let topics = std::mem::take(&mut world.topics);
    let mut other =
        World { topics, reads_along: false, ..World::new(&[], MessageType::Nvfix.into()) };
    for definition in definitions() {
        other = other.with(definition);
    }
    other.settle();
    let shown = shown(&mut other);
    world.topics = other.topics;
    shown
}

fn shown(world: &mut World) -> BTreeMap<String, Vec<String>> {
    let names = definitions().into_iter().map(|definition| definition.name.to_string());
    names.map(|name| (name.clone(), world.shown(&name))).collect()
}

/// Volume-weighted prices of these orders, in integer arithmetic.
fn counted(orders: &BTreeMap<u8, (char, i64, i64)>) -> Vec<String> {
    let mut sums = BTreeMap::<char, (i128, i128)>::new();
    for (symbol, quantity, cents) in orders.values() {
        let sum = sums.entry(*symbol).or_default();
        sum.0 += i128::from(*quantity) * i128::from(*cents);
        sum.1 += i128::from(*quantity);
    }
    let shown = sums.into_iter().map(|(symbol, (value, quantity))| {
        if quantity == 0 {
            return format!("sym={symbol};");
        }
        // In units of 0.00001, halves rounded away from zero.
        let (above, below) = (value * 1_000 * quantity.signum(), quantity.abs());
        let rounded = (2 * above.abs() + below) / (2 * below);
        let sign = if above < 0 && rounded > 0 { "-" } else { "" };
        let text = format!("{sign}{}.{:05}", rounded / 100_000, rounded % 100_000);
        format!("sym={symbol};vwap={};", text.trim_end_matches('0').trim_end_matches('.'))
    });
    shown.collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_view_forgets_all_but_what_is_there(acts in acts()) {
        let mut world = definitions().into_iter().fold(world(), World::with);
        for (topic, key, fields, is_asked) in acts {
            let record = fields.map(|fields| record(topic, fields));
            world.set(topic, &key.to_string(), record.as_deref());
            if is_asked {
                world.settle();
                let said = shown(&mut world);
                prop_assert_eq!(said, anew(&mut world));
            }
        }
    }

    #[test]
    fn prices_are_those_of_a_plain_count(
        acts in prop::collection::vec(
            (0..9_u8, prop::option::weighted(0.8, (0..3_u8, 1..100_000_i64, 1_000..9_999_999_i64))),
            1..60,
        ),
    ) {
        let definition = ViewDefinition::new("vwap", plain(MessageType::Nvfix), "orders")
            .project("/sym, sum(/qty * /px) / sum(/qty) as /vwap")
            .group_by("/sym")
            .rounding(lanecast_sow::view::Rounding { decimals: 5, digits: 1 });
        let mut world = world().with(definition);
        let mut orders = BTreeMap::new();
        for (key, order) in acts {
            let order = order.map(|(symbol, quantity, cents)| {
                (char::from(b'A' + symbol), quantity, cents)
            });
            let record = order.map(|(symbol, quantity, cents)| {
                format!("sym={symbol};qty={quantity};px={}.{:02};", cents / 100, cents % 100)
            });
            world.set(0, &key.to_string(), record.as_deref());
            match order {
                Some(order) => orders.insert(key, order),
                None => orders.remove(&key),
            };
            world.settle();
            prop_assert_eq!(world.shown("vwap"), counted(&orders));
        }
    }
}
