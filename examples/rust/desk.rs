//! A trading desk at a content server: it publishes orders, keeps a table of those of a customer
//! that are large, and sees it change. When the server goes away, it waits for it to come back.
//!
//! Run it: `cargo run -p lanecast-examples --example desk`, which starts a server for itself, or
//! beside `lanecast serve --keep orders:json:/id` with the server's address as argument.
#![forbid(unsafe_code)]

mod desk_server;

use lanecast_client::{Client, Event, Identity, Query, Settings, SubscribeOptions};
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

const TIMEOUT: Option<Duration> = Some(Duration::from_secs(10));

fn main() -> Result<(), Box<dyn Error>> {
    let server = std::env::args().nth(1).map_or_else(desk_server::start, Ok)?;
    // With a name, what is published and not acknowledged is sent again after a break, and taken
    // once. Several servers may be given, and are tried in turn.
    let identity = Identity { name: "desk".to_owned(), ..Identity::default() };
    let settings = Settings::new([server], identity).on_state(|state| println!("{state:?}"));
    let mut client = Client::connect_with(settings)?;

    client.publish("orders", br#"{"id":1,"customer":"c01","qty":7000}"#)?;
    client.publish("orders", br#"{"id":2,"customer":"c02","qty":9000}"#)?;
    client.flush()?;

    let filter = Some("/customer = 'c01' and /qty >= 5000".to_owned());
    let question = Query { filter, ..Query::default() };
    let wishes = SubscribeOptions { out_of_focus: true, ..SubscribeOptions::default() };
    client.query_and_subscribe("orders", &question, &wishes)?;
    client.publish("orders", br#"{"id":3,"customer":"c01","qty":6000}"#)?;
    client.delta_publish("orders", br#"{"id":1,"qty":400}"#)?;

    let mut table = BTreeMap::new();
    while let Some(event) = client.next(TIMEOUT)? {
        match event {
            Event::Record { record, .. } => {
                println!("is there  {}", String::from_utf8_lossy(&record.body));
                table.insert(record.key, record.body);
            }
            Event::Current { .. } => println!("that is all; from now on, what changes:"),
            Event::Message(message) => {
                println!("changes   {}", String::from_utf8_lossy(&message.body));
                table.insert(message.key.unwrap_or_default(), message.body);
            }
            Event::OutOfFocus { message, reason } => {
                println!("leaves    {} ({reason})", String::from_utf8_lossy(&message.body));
                table.remove(&message.key.unwrap_or_default());
                break;
            }
            // The records follow anew.
            Event::Resumed { .. } => table.clear(),
            Event::Ended { error, .. } => return Err(error.into()),
        }
    }
    println!("the table has {} order", table.len());
    println!("{} orders deleted", client.delete("orders", "/id > 0")?);
    client.close()?;
    Ok(())
}
