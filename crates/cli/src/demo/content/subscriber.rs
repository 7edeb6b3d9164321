//! A subscriber with a filter, on a thread of its own.

use super::book::{Prices, Sum};
use super::served;
use super::want::Want;
use lanecast_client::Client;
use std::sync::OnceLock;
use std::time::Instant;

/// What must come, known when everything has been published.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) sums: Vec<Sum>,
    /// What the view must show at the end.
    pub(super) prices: Prices,
    /// What has not come by then does not come.
    pub(super) until: Instant,
}

/// What a subscriber got.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) sum: Sum,
    /// When the last message came.
    pub(super) last: Option<Instant>,
}

pub(super) fn connect(server: &str, want: &Want) -> anyhow::Result<Client> {
    let mut client = served::connect(server)?;
    client.subscribe(want.topic, Some(&want.filter))?;
    Ok(client)
}

/// Reads until everything has come that must, and no more comes.
pub(super) fn read(
    mut client: Client,
    number: usize,
    expected: &OnceLock<Expected>,
) -> anyhow::Result<Received> {
    let mut received = Received { sum: Sum::default(), last: None };
    loop {
        if let Some(message) = served::next(&mut client)? {
            received.sum.add(&message.body);
            received.last = Some(Instant::now());
        } else if let Some(expected) = expected.get() {
            let has_all = received.sum.count() >= expected.sums[number].count();
            if has_all || Instant::now() > expected.until {
                return Ok(received);
            }
        }
    }
}
