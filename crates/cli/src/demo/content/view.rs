//! A view: the average price by customer and symbol of all that was traded, weighted by volume. The
//! server keeps it up to date; clients follow it and ask for it as for any kept topic.

use super::book::{Book, Group, Prices};
use super::server;
use super::subscriber::Expected;
use lanecast_client::{Client, Query, SubscribeOptions};
use lanecast_filter::message_type::MessageType;
use lanecast_market::Day;
use lanecast_sow::ViewDefinition;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const NAME: &str = "vwap";

/// Records by their numbers, as they were written.
type Records = HashMap<Option<u64>, Vec<u8>>;

/// Changes and records received by a subscriber that follows the view from the start.
#[derive(Debug)]
pub(super) struct Viewed {
    changes: u64,
    /// Time between the first change and the last.
    took: Duration,
    records: Records,
}

/// Results of the view.
#[derive(Debug, Serialize)]
pub(super) struct Outcome {
    pub(super) executions: u64,
    /// Changes that the follower was told: those of a moment are one.
    pub(super) changes: u64,
    /// Changes told, per second.
    pub(super) rate: f64,
    pub(super) records: u64,
    /// Records that differ from the expected ones, are missing, or are too many, for the subscriber
    /// or a query at the end.
    pub(super) wrong: u64,
}

/// Definition of the view, for the server.
pub(super) fn definition() -> ViewDefinition {
    ViewDefinition::new(NAME, MessageType::Nvfix, "executions")
        .project(
            "/1 AS /customer, /55 AS /symbol, SUM(/14) AS /volume, SUM(/381) / SUM(/14) AS /vwap",
        )
        .group_by("/1, /55")
        .filter("/14 > 0")
}

pub(super) fn connect(server: &str) -> anyhow::Result<Client> {
    let mut client = server::connect_as(server, MessageType::Nvfix)?;
    client.query_and_subscribe(NAME, &Query::default(), &SubscribeOptions::default())?;
    Ok(client)
}

/// Follows the view until it is as it must be, and does not change any more, or until it is to end
/// early.
pub(super) fn follow(
    mut client: Client,
    expected: &OnceLock<Expected>,
    stop: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Viewed> {
    let mut viewed = Viewed { changes: 0, took: Duration::ZERO, records: Records::new() };
    let mut first = None;
    loop {
        if let Some(message) = server::next(&mut client)? {
            viewed.changes += 1;
            viewed.took = first.get_or_insert_with(Instant::now).elapsed();
            viewed.records.insert(message.key, message.body);
        } else if let Some(expected) = expected.get()
            && (wrong(&viewed.records, &expected.prices) == 0
                || Instant::now() > expected.until
                || stop())
        {
            return Ok(viewed);
        }
    }
}

impl Viewed {
    /// Asks for the view, and compares it, and what was told of it, with sums over the book.
    pub(super) fn judge(self, server: &str, day: &Day, book: &Book) -> anyhow::Result<Outcome> {
        let mut client = server::connect_as(server, MessageType::Nvfix)?;
        let asked = client.query(NAME, &Query::default())?;
        let asked = asked.into_iter().map(|record| (Some(record.key), record.body)).collect();
        let prices = book.prices(day);
        Ok(Outcome {
            executions: book.executions(),
            changes: self.changes,
            rate: self.changes as f64 / self.took.as_secs_f64().max(1e-9),
            records: self.records.len() as u64,
            wrong: wrong(&self.records, &prices).max(wrong(&asked, &prices)),
        })
    }
}

/// Number of records that differ, are missing, or are too many.
fn wrong(records: &Records, prices: &Prices) -> u64 {
    // A second record of a group is one too many.
    let right: HashSet<Group> = records.values().filter_map(|it| right(it, prices)).collect();
    (prices.len().max(records.len()) - right.len()) as u64
}

/// Group of the record, if its values are right.
fn right(record: &[u8], prices: &Prices) -> Option<Group> {
    let text = String::from_utf8_lossy(record);
    let field = |name: &str| {
        let mut fields = text.split('\u{1}').filter_map(|field| field.split_once('='));
        fields.find(|field| field.0 == name).map_or("", |field| field.1)
    };
    let group = (field("customer").to_owned(), field("symbol").to_owned());
    let (volume, cents) = *prices.get(&group)?;
    let is_right =
        field("volume") == volume.to_string() && is_quotient(field("vwap"), cents, volume * 100);
    is_right.then_some(group)
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
    use super::{Records, is_quotient, wrong};

    #[test]
    fn records_that_are_wrong_missing_or_too_many_are_counted() {
        let group = |symbol: &str| ("C001".to_owned(), symbol.to_owned());
        let prices = [(group("A"), (4, 1_000)), (group("B"), (2, 300))].into();
        let record = |symbol: &str, volume: u64, vwap: &str| {
            let text = format!("customer=C001|symbol={symbol}|volume={volume}|vwap={vwap}|");
            text.replace('|', "\u{1}").into_bytes()
        };
        let (a, b) = (record("A", 4, "2.5"), record("B", 2, "1.5"));
        let count = |records: &[&Vec<u8>]| {
            let numbered = (1..).zip(records).map(|(key, record)| (Some(key), (*record).clone()));
            wrong(&numbered.collect::<Records>(), &prices)
        };
        assert_eq!(count(&[&a, &b]), 0);
        assert_eq!(count(&[&a]), 1);
        assert_eq!(count(&[&a, &record("B", 2, "1.6")]), 1);
        assert_eq!(count(&[&a, &record("B", 3, "1.5")]), 1);
        assert_eq!(count(&[&a, &b, &record("C", 1, "1")]), 1);
        assert_eq!(count(&[&a, &a]), 1);
    }

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
