//! A durable log: orders that were acknowledged are there for the next process, which reads them
//! all and goes on where the last one ended.
//!
//! Run it, twice: `cargo run -p lanecast-examples --example journal -- orders`
#![forbid(unsafe_code)]

use lanecast_journal::{Directory, Durability, Entry, Journal, JournalConfig, Start};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, SystemTime};

const TIMEOUT: Duration = Duration::from_secs(10);
const ORDERS: u32 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| "orders".into());
    let settings = JournalConfig { segment_bytes: 1 << 20, ..JournalConfig::default() };
    let journal = Journal::open(Directory::new(&directory), settings)?;
    println!("{} orders are in {directory}", journal.recovered().last);

    // What this process knows, it knows from the journal.
    let mut cursor = journal.cursor(Start::Oldest, Durability::Persisted)?;
    let mut quantities: BTreeMap<String, u64> = BTreeMap::new();
    let mut apply = |body: &[u8]| {
        let text = String::from_utf8_lossy(body).into_owned();
        if let Some((symbol, quantity)) = text.split_once(' ') {
            *quantities.entry(symbol.to_owned()).or_default() += quantity.parse().unwrap_or(0);
        }
    };
    cursor.for_each(usize::MAX, |record| apply(record.body))?;

    // Acknowledged means: it survives whatever stops this machine.
    let unix_ns = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_nanos() as u64;
    for (client_sequence, order) in (1..).zip(["IBM 100", "MSFT 50", "IBM 25"]) {
        let body = order.as_bytes();
        let entry =
            Entry { topic: ORDERS, client: 1, client_sequence, unix_ns, body, ..Entry::default() };
        println!("order {} is persisted: {order}", journal.persist(&[entry], TIMEOUT)?);
    }

    // The cursor goes on where it was.
    cursor.for_each(usize::MAX, |record| apply(record.body))?;
    for (symbol, quantity) in &quantities {
        println!("{symbol:5} {quantity}");
    }
    journal.close()?;
    Ok(())
}
