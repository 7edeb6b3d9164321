//! A view: orders by customer and symbol with their volume-weighted average price, kept up to date
//! while orders come, are corrected and cancelled; and a view of that view.
//!
//! Run it: `cargo run -p lanecast-examples --example order_view`
#![forbid(unsafe_code)]

use lanecast_filter::message_type::{Format, MessageType};
use lanecast_sow::{Publication, Topic, TopicDefinition, ViewDefinition, ViewGraph};
use std::error::Error;

/// An order and its new message, or none if it is cancelled.
const DAY: [(&str, Option<&str>); 6] = [
    ("1", Some("11=c01;55=INTC;14=1000;99=34.50;")),
    ("2", Some("11=c01;55=INTC;14=5000;99=34.75;")),
    ("3", Some("11=c01;55=INFA;14=100;99=18.75;")),
    ("4", Some("11=c02;55=INTC;14=10;99=35;")),
    ("2", Some("11=c01;55=INTC;14=2000;99=34.75;")),
    ("3", None),
];

fn main() -> Result<(), Box<dyn Error>> {
    let format = |kind| Format::new(kind).with_separators(b';', b'=');
    let orders = TopicDefinition::new("orders", format(MessageType::Fix)?);
    let mut orders = Topic::new(orders)?;
    let mut views = ViewGraph::new();
    let vwap = ViewDefinition::new("VWAP", format(MessageType::Nvfix)?, "orders")
        .project("/11 as /customer, /55 as /symbol, sum(/14 * /99)/sum(/14) AS /vwap")
        .group_by("/11, /55");
    views.add(vwap, &|name| (name == "orders").then_some(&orders))?;
    let symbols = ViewDefinition::new("symbols", MessageType::Json, "VWAP")
        .project("/symbol, count(/customer) AS /customers, max(/vwap) AS /dearest")
        .group_by("/symbol");
    views.add(symbols, &|_| None)?;

    for (now_ns, (key, message)) in (0..).zip(DAY) {
        println!("order {key}: {}", message.unwrap_or("cancelled"));
        let bytes = message.unwrap_or_default().as_bytes();
        let publication = Publication { key: Some(key), ..Publication::of(bytes) };
        let change = match message {
            Some(_) => Some(orders.publish(&publication, now_ns)?),
            None => orders.delete_as(&publication, now_ns)?,
        };
        if let Some(change) = change {
            views.on_change("orders", &change);
        }
        // With many messages at hand, do this after all of them: each record changes once then.
        views.refresh(now_ns, &mut |view, change| match change.map(|change| change.after) {
            Ok(Some(after)) => {
                println!("  {view:8}{}", String::from_utf8_lossy(after.record().bytes()));
            }
            Ok(None) => println!("  {view:8}one record less"),
            Err(error) => println!("  {view:8}{error}"),
        });
    }
    Ok(())
}
