//! A content server within the program, so that the desks run without one beside them.

use lanecast_broker::{Server, ServerConfig, TopicDefinition};
use lanecast_filter::message_type::MessageType;
use std::error::Error;
use std::net::Ipv4Addr;
use std::thread;
use std::time::Duration;

/// Starts one that keeps orders by their `id`, and ends with the program; where it listens.
pub(crate) fn start() -> Result<String, Box<dyn Error>> {
    let mut settings = ServerConfig::at((Ipv4Addr::LOCALHOST, 0).into());
    settings.topics = vec![TopicDefinition::new("orders", MessageType::Json).key("/id")?];
    let mut server = Server::open(settings)?;
    let address = server.address()?.to_string();
    thread::spawn(move || while server.turn(Duration::from_millis(100)).is_ok() {});
    Ok(address)
}
