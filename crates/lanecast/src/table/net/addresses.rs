//! Addresses as settings write them.

use super::optional;
use std::net::SocketAddr;

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is no address with a port, such as 239.192.71.2:14400"))
}

/// Addresses with commas between, or none.
pub(super) fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let each = |text: &str| text.split(',').map(|one| address(one.trim())).collect();
    Ok(optional(text, each)?.unwrap_or_default())
}

pub(super) fn listed(addresses: &[SocketAddr]) -> String {
    let words: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".into() } else { words.join(",") }
}

/// Topics with an address each, or none.
pub(super) fn by_topic(text: &str) -> Result<Vec<(String, SocketAddr)>, String> {
    let one = |text: &str| {
        let wrong = || format!("'{text}': write a topic and its group, prices=239.192.71.9:14400");
        let (topic, group) = text.trim().rsplit_once('=').ok_or_else(wrong)?;
        if topic.is_empty() { Err(wrong()) } else { Ok((topic.to_owned(), address(group)?)) }
    };
    let each = |text: &str| text.split(',').map(one).collect();
    Ok(optional(text, each)?.unwrap_or_default())
}

pub(super) fn topics_listed(groups: &[(String, SocketAddr)]) -> String {
    let words: Vec<String> = groups.iter().map(|(topic, at)| format!("{topic}={at}")).collect();
    if words.is_empty() { "none".into() } else { words.join(",") }
}
