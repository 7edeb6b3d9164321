//! Several tasks share one connection to a content server: each has a subscription of its own, and
//! one that reads too slowly ends alone.
//!
//! Run it: `cargo run -p lanecast-examples --example desk_async`, which starts a server for itself,
//! or beside `lanecast serve` with the server's address as argument.
#![forbid(unsafe_code)]

mod desk_server;

use lanecast_client::aio::Client;
use lanecast_client::{Event, Identity, Settings};
use std::error::Error;
use tokio::runtime::Builder;

const SYMBOLS: [&str; 3] = ["IBM", "INTC", "MSFT"];
const ORDERS: u64 = 3_000;

fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).map_or_else(desk_server::start, Ok)?;
    Builder::new_current_thread().enable_all().build()?.block_on(desk(server))
}

async fn desk(server: String) -> Result<(), Box<dyn Error>> {
    let identity = Identity { name: "desk_async".to_owned(), ..Identity::default() };
    let client = Client::connect_with(Settings::new([server], identity)).await?;
    let mut readers = Vec::new();
    for symbol in SYMBOLS {
        let filter = format!("/symbol = '{symbol}' and /qty > 50");
        let mut orders = client.subscribe("flow", Some(&filter)).await?;
        readers.push(tokio::spawn(async move {
            let mut count = 0;
            loop {
                match orders.next().await? {
                    Event::Message(_) => count += 1,
                    other => println!("{symbol}: {other:?}"),
                }
                if count == ORDERS / 3 / 2 {
                    return Ok::<u64, lanecast_client::ClientError>(count);
                }
            }
        }));
    }
    for id in 0..ORDERS {
        let symbol = SYMBOLS[id as usize % SYMBOLS.len()];
        let quantity = 1 + id / 3 % 100;
        let order = format!(r#"{{"id":{id},"symbol":"{symbol}","qty":{quantity}}}"#);
        client.publish("flow", order.as_bytes()).await?;
    }
    client.flush().await?;
    for (symbol, reader) in SYMBOLS.iter().zip(readers) {
        println!("{symbol}: {} orders above 50", reader.await??);
    }
    client.close().await?;
    Ok(())
}
