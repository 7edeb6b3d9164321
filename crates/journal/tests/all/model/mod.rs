//! Reference model: all appended records in memory.

use lanecast_journal::{Entry, Record};
use lanecast_sim::rng::SimRng;

/// An appended record.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    topic: u32,
    client: u32,
    client_sequence: u64,
    unix_ns: u64,
    flags: u16,
    body: Vec<u8>,
}

impl Kept {
    pub(crate) fn entry(&self) -> Entry<'_> {
        let (head, body) = pieces(&self.body);
        Entry {
            topic: self.topic,
            client: self.client,
            client_sequence: self.client_sequence,
            unix_ns: self.unix_ns,
            flags: self.flags,
            head,
            body,
        }
    }
}

/// A payload as programs may have it: in two pieces.
fn pieces(body: &[u8]) -> (&[u8], &[u8]) {
    body.split_at(body.len() / 3)
}

/// All records, in order of their sequence.
#[derive(Debug, Default)]
pub(crate) struct Model {
    records: Vec<Kept>,
}

impl Model {
    /// The sequence of the next record.
    pub(crate) fn next(&self) -> u64 {
        self.records.len() as u64 + 1
    }

    /// Random new records.
    pub(crate) fn draw(&self, dice: &mut SimRng) -> Vec<Kept> {
        let last_ns = self.records.last().map_or(1_000, |last| last.unix_ns);
        let record = |dice: &mut SimRng| {
            let length =
                if dice.percent(5) { dice.within(0..=4_000) } else { dice.spread(1..=600) };
            let start = dice.any();
            Kept {
                topic: dice.within(0..=5) as u32,
                client: dice.any() as u32,
                client_sequence: dice.any(),
                unix_ns: last_ns,
                flags: dice.any() as u16,
                body: (0..length).map(|at| (start >> (at % 57)) as u8 ^ at as u8).collect(),
            }
        };
        let mut records: Vec<Kept> = (0..dice.spread(1..=8)).map(|_| record(dice)).collect();
        let mut unix_ns = last_ns;
        for record in &mut records {
            unix_ns += dice.within(0..=3);
            record.unix_ns = unix_ns;
        }
        records
    }

    pub(crate) fn extend(&mut self, records: Vec<Kept>) {
        self.records.extend(records);
    }

    /// Drops the records behind `last`, which a crash has cut off.
    pub(crate) fn cut(&mut self, last: u64) {
        assert!(last < self.next(), "{last} was never appended");
        self.records.truncate(last as usize);
    }

    /// Asserts that `record` equals the appended one.
    pub(crate) fn check(&self, record: &Record<'_>) {
        let kept = self.records.get(record.sequence as usize - 1);
        let kept = kept.unwrap_or_else(|| panic!("{} was invented", record.sequence));
        let (head, body) = pieces(record.body);
        let read = Entry {
            topic: record.topic,
            client: record.client,
            client_sequence: record.client_sequence,
            unix_ns: record.unix_ns,
            flags: record.flags,
            head,
            body,
        };
        assert_eq!(read, kept.entry(), "record {}", record.sequence);
    }
}
