//! A subscriber with a filter, on a thread of its own.

use super::book::{Prices, Sum};
use super::server;
use super::subscription::Subscription;
use lanecast_client::Client;
use std::sync::OnceLock;
use std::time::Instant;

/// Expected messages and records, known once everything has been published.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) sums: Vec<Sum>,
    /// Expected records of the view.
    pub(super) prices: Prices,
    /// Deadline of the messages; later ones count as lost.
    pub(super) until: Instant,
}

/// Messages received by a subscriber.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) sum: Sum,
    /// When the last message came.
    pub(super) last: Option<Instant>,
}

pub(super) fn connect(server: &str, subscription: &Subscription) -> anyhow::Result<Client> {
    let mut client = server::connect(server)?;
    client.subscribe(subscription.topic, Some(&subscription.filter))?;
    Ok(client)
}

/// Reads until everything has come that must, and no more comes, or until it is to end early.
pub(super) fn read(
    mut client: Client,
    number: usize,
    expected: &OnceLock<Expected>,
    stop: &(dyn Fn() -> bool + Sync),
) -> anyhow::Result<Received> {
    let mut received = Received { sum: Sum::default(), last: None };
    loop {
        if let Some(message) = server::next(&mut client)? {
            received.sum.add(&message.body);
            received.last = Some(Instant::now());
        } else if let Some(expected) = expected.get() {
            let has_all = received.sum.count() >= expected.sums[number].count();
            if has_all || Instant::now() > expected.until || stop() {
                return Ok(received);
            }
        }
    }
}
