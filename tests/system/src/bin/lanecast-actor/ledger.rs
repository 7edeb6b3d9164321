//! Events of a subscriber by stream, checked against the contract on arrival.

use anyhow::{Context, Result, ensure};
use lanecast_transport::{Event, Gap, Stream};
use std::collections::BTreeMap;

/// One stream: a session, and a topic of it.
type Key = (u64, String);

fn key(stream: &Stream) -> Key {
    (stream.session.0, stream.topic.clone())
}

/// One stream's account.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    /// The number of its first message, as soon as it is known.
    pub(crate) first: Option<u64>,
    /// Messages read.
    pub(crate) read: u64,
    /// Messages reported as lost.
    pub(crate) lost: u64,
    has_left: bool,
}

impl Account {
    /// Messages read or reported as lost.
    fn told(&self) -> u64 {
        self.read + self.lost
    }

    /// The number of the message that comes next, as far as it is known.
    pub(crate) fn next(&self) -> u64 {
        self.first.unwrap_or(0) + self.told()
    }

    fn read(&mut self, number: u64) -> Result<()> {
        let told = self.told();
        let first = match self.first {
            Some(first) => first,
            None => number.checked_sub(told).context("more was lost than there was")?,
        };
        self.first = Some(first);
        ensure!(number == first + told, "message {number} instead of {}", first + told);
        self.read += 1;
        Ok(())
    }

    fn lose(&mut self, gap: &Gap<'_>) -> Result<()> {
        let told = self.told();
        let first = match self.first {
            Some(first) => first,
            None => gap.first.checked_sub(told).context("more was lost than there was")?,
        };
        self.first = Some(first);
        ensure!(gap.first == first + told, "lost from {}, not {}", gap.first, first + told);
        ensure!(gap.count > 0, "nothing was lost");
        self.lost += gap.count;
        Ok(())
    }
}

/// The accounts of all streams.
#[derive(Debug, Default)]
pub(crate) struct Ledger(BTreeMap<Key, Account>);

impl Ledger {
    /// A message of `number` came.
    pub(crate) fn read(&mut self, stream: &Stream, number: u64) -> Result<&Account> {
        let account = self.alive(stream)?;
        account.read(number).with_context(|| stream.to_string())?;
        Ok(account)
    }

    /// Something else than a message was told.
    pub(crate) fn tell(&mut self, event: &Event<'_>) -> Result<()> {
        match event {
            Event::Joined(stream) => {
                let before = self.0.insert(key(stream), Account::default());
                // After an outage it may join the same session anew.
                ensure!(before.is_none_or(|account| account.has_left), "{stream} joined twice");
            }
            Event::Lost(gap) => {
                self.alive(gap.stream)?.lose(gap).with_context(|| gap.stream.to_string())?;
            }
            Event::Left(stream, _) => {
                let account = self.alive(stream)?;
                account.has_left = true;
            }
            other => anyhow::bail!("{other:?}"),
        }
        Ok(())
    }

    /// The account of a stream that has joined.
    pub(crate) fn account(&self, stream: &Stream) -> Option<&Account> {
        self.0.get(&key(stream))
    }

    fn alive(&mut self, stream: &Stream) -> Result<&mut Account> {
        let account = self.0.get_mut(&key(stream));
        let account = account.with_context(|| format!("{stream}: an event before Joined"))?;
        ensure!(!account.has_left, "{stream}: an event after Left");
        Ok(account)
    }
}
