//! Addresses that a server listens on, and their default ports.

use std::net::{IpAddr, SocketAddr};

/// The default TCP port.
pub use lanecast_wire::command::PORT;

/// The default WebSocket port.
pub const WEBSOCKET_PORT: u16 = 9008;

/// Parses the address of a host; `port` is the default.
///
/// # Errors
/// If the text is not an address; the error shows how to write one.
pub fn parse_address(text: &str, port: u16) -> Result<SocketAddr, String> {
    let address = text.parse().or_else(|_| {
        let ip = text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        ip.map(|ip| SocketAddr::new(ip, port))
    });
    let examples = "127.0.0.1, 10.0.0.1:9007 or [::1]:9007";
    address.map_err(|_| format!("no address of a host: write it as in {examples}"))
}
