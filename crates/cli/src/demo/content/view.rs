//! A view: the average price by customer and symbol of all that was traded, weighted by volume,
//! kept up to date by an application that subscribes to the executions.

use super::book::Book;
use super::served;
use super::subscriber::Expected;
use lanecast_client::Client;
use lanecast_filter::kind::Kind;
use lanecast_market::Day;
use lanecast_sow::{Cascade, Publication, Topic, TopicDefinition, ViewDefinition};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// So many executions change the view together.
const TOGETHER: u64 = 1_000;

/// Customer and symbol.
type Group = (String, String);

/// The view as it is at the end.
#[derive(Debug)]
pub(super) struct Viewed {
    executions: u64,
    busy: Duration,
    /// Volume and average price, as they were written.
    records: HashMap<Group, (String, String)>,
}

/// What the view came to.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) executions: u64,
    /// Executions per second of the time that the view took.
    pub(super) rate: f64,
    pub(super) records: u64,
    /// Records that are wrong, missing, or too many.
    pub(super) wrong: u64,
}

pub(super) fn connect(server: &str) -> anyhow::Result<Client> {
    let mut client = served::connect(server)?;
    client.subscribe("executions", None)?;
    Ok(client)
}

/// Follows the executions until all have come.
pub(super) fn follow(mut client: Client, expected: &OnceLock<Expected>) -> anyhow::Result<Viewed> {
    let mut topic = Topic::new(TopicDefinition::new("executions", Kind::Fix).key("/37")?)?;
    let mut views = Cascade::new();
    let definition = ViewDefinition::new("vwap", Kind::Nvfix, "executions")
        .project(
            "/1 AS /customer, /55 AS /symbol, SUM(/14) AS /volume, SUM(/381) / SUM(/14) AS /vwap",
        )
        .group_by("/1, /55")
        .filter("/14 > 0");
    views.add(definition, &|name| (name == "executions").then_some(&topic))?;
    let (mut executions, mut busy) = (0, Duration::ZERO);
    loop {
        if let Some(message) = served::next(&mut client)? {
            let start = Instant::now();
            let change = topic.publish(&Publication::of(&message), executions)?;
            views.apply("executions", &change);
            executions += 1;
            if executions % TOGETHER == 0 {
                settle(&mut views, executions)?;
            }
            busy += start.elapsed();
        } else if let Some(expected) = expected.get()
            && (executions >= expected.executions || Instant::now() > expected.until)
        {
            settle(&mut views, executions)?;
            return Ok(Viewed { executions, busy, records: records(&views) });
        }
    }
}

fn settle(views: &mut Cascade, now_ns: u64) -> anyhow::Result<()> {
    let mut result = Ok(());
    views.settle(now_ns, &mut |_, change| {
        if let Err(error) = change {
            result = Err(error);
        }
    });
    Ok(result?)
}

fn records(views: &Cascade) -> HashMap<Group, (String, String)> {
    let topics = views.views().iter().map(lanecast_sow::View::topic);
    let records = topics.flat_map(Topic::iter).map(|record| {
        let text = String::from_utf8_lossy(record.bytes());
        let field = |name: &str| {
            let mut fields = text.split('\u{1}').filter_map(|field| field.split_once('='));
            fields
                .find(|field| field.0 == name)
                .map_or_else(String::new, |field| field.1.to_owned())
        };
        ((field("customer"), field("symbol")), (field("volume"), field("vwap")))
    });
    records.collect()
}

impl Viewed {
    /// Compares the view with sums over the book.
    pub(super) fn judge(&self, day: &Day, book: &Book) -> Outcome {
        let mut sums: HashMap<Group, (u64, u64)> = HashMap::new();
        for order in book.orders().map(|(execution, _)| execution.order) {
            if order.filled > 0 {
                let customer = format!("C{:03}", order.customer);
                let sum = sums.entry((customer, day.symbol(order.symbol).to_owned()));
                let (volume, cents) = sum.or_default();
                *volume += order.filled;
                *cents += order.traded_cents;
            }
        }
        let is_right = |(group, (volume, cents)): &(&Group, &(u64, u64))| {
            let record = self.records.get(*group);
            record.is_some_and(|(text, vwap)| {
                *text == volume.to_string() && is_quotient(vwap, *cents, volume * 100)
            })
        };
        let right = sums.iter().filter(is_right).count();
        Outcome {
            executions: self.executions,
            rate: self.executions as f64 / self.busy.as_secs_f64().max(1e-9),
            records: self.records.len() as u64,
            wrong: (sums.len().max(self.records.len()) - right) as u64,
        }
    }
}

/// Whether `text` is `above / below`, right to 5 decimals or as many more as it has.
fn is_quotient(text: &str, above: u64, below: u64) -> bool {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let Ok(digits) = format!("{whole}{decimals:0<5}").parse::<u128>() else { return false };
    let (above, below) = (u128::from(above), u128::from(below));
    let tens =
        u32::try_from(decimals.len().max(5)).ok().and_then(|count| 10u128.checked_pow(count));
    let products =
        tens.and_then(|tens| Some((digits.checked_mul(below)?, above.checked_mul(tens)?)));
    products.is_some_and(|(one, other)| 2 * one.abs_diff(other) <= below)
}

#[cfg(test)]
mod tests {
    use super::is_quotient;

    #[test]
    fn quotients_are_right_to_the_last_digit() {
        assert!(is_quotient("34.70833", 208_250, 6_000));
        assert!(!is_quotient("34.70834", 208_250, 6_000));
        assert!(!is_quotient("34.7", 208_250, 6_000));
        assert!(is_quotient("18.75", 1_875, 100));
        assert!(is_quotient("35", 35, 1));
        assert!(is_quotient("34.708", 34_708_001, 1_000_000));
        assert!(!is_quotient("", 1, 1));
        assert!(!is_quotient("-1", 1, 1));
    }
}
