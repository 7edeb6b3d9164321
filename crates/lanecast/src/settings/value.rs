//! Values of settings: their text form and its checks.

use lanecast_base::{Size, parse_duration};
use lanecast_net::{DeliveryOrder, Pacing};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub(super) fn parse<T: std::str::FromStr>(text: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

pub(super) fn size(text: &str) -> Result<usize, String> {
    usize::try_from(parse::<Size>(text)?.0).map_err(|_| format!("{text} is too much"))
}

/// A size of `least` to `most` bytes.
pub(super) fn size_within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let size = parse::<Size>(text)?;
    if (least..=most).contains(&size.0) {
        return Ok(size.0);
    }
    let least = Size(least);
    Err(match most {
        u64::MAX => format!("{size} is less than {least}"),
        _ => format!("{size} does not lie between {least} and {}", Size(most)),
    })
}

pub(super) fn written(bytes: usize) -> String {
    Size(bytes as u64).to_string()
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

pub(super) fn number(text: &str, least: u32, most: u32) -> Result<u32, String> {
    let number = parse(text)?;
    if (least..=most).contains(&number) {
        Ok(number)
    } else {
        Err(format!("{number} does not lie between {least} and {most}"))
    }
}

pub(super) fn optional<T>(
    text: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, String> {
    if text == "none" { Ok(None) } else { read(text).map(Some) }
}

pub(super) fn or_none(value: Option<&impl ToString>) -> String {
    value.map_or_else(|| "none".into(), ToString::to_string)
}

pub(super) fn path(path: Option<&PathBuf>) -> String {
    or_none(path.map(|path| path.display()).as_ref())
}

pub(super) fn pacing(text: &str) -> Result<Pacing, String> {
    let mut words = text.split_whitespace();
    let pacing = match (words.next(), words.next()) {
        (Some("slowest"), None) => Pacing::Slowest,
        (Some("slowest"), Some(after)) => Pacing::SlowestOrEject(duration(after)?),
        (Some("fastest"), None) => Pacing::Fastest,
        (Some("tag"), Some(tag)) => Pacing::Tagged(parse(tag)?),
        (Some("none"), None) => Pacing::None,
        _ => return Err(format!("'{text}' is not a pacing")),
    };
    if words.next().is_some() {
        return Err(format!("'{text}' has a word too many"));
    }
    Ok(pacing)
}

pub(super) fn order(text: &str) -> Result<DeliveryOrder, String> {
    match text {
        "publication" => Ok(DeliveryOrder::Publication),
        "arrival" => Ok(DeliveryOrder::Arrival),
        _ => Err(format!("'{text}' is not an order")),
    }
}

/// Data datagrams and parity frames of a block: `4+1`.
pub(super) fn fec(text: &str) -> Result<(u8, u8), String> {
    let (data, parity) = text
        .split_once('+')
        .ok_or_else(|| format!("'{text}': write datagrams and parity of a block, such as 4+1"))?;
    let part = |text: &str, least| Ok::<_, String>(number(text.trim(), least, 32)? as u8);
    Ok((part(data, 1)?, part(parity, 0)?))
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse()
        .map_err(|_| format!("'{text}' is not an address with a port, such as 239.192.71.2:14400"))
}

/// Comma-separated addresses, or `none`.
pub(super) fn addresses(text: &str) -> Result<Vec<SocketAddr>, String> {
    let each = |text: &str| text.split(',').map(|one| address(one.trim())).collect();
    Ok(optional(text, each)?.unwrap_or_default())
}

pub(super) fn listed(addresses: &[SocketAddr]) -> String {
    let words: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    if words.is_empty() { "none".into() } else { words.join(",") }
}

/// Comma-separated DNS names with a port each, or `none`.
pub(super) fn names(text: &str) -> Result<Vec<String>, String> {
    let one = |text: &str| {
        let text = text.trim();
        let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
        match port {
            Some(_) => Ok(text.to_owned()),
            None => Err(format!("'{text}' is not a name with a port, such as prices.example:7341")),
        }
    };
    let each = |text: &str| text.split(',').map(one).collect();
    Ok(optional(text, each)?.unwrap_or_default())
}

pub(super) fn names_listed(names: &[String]) -> String {
    if names.is_empty() { "none".into() } else { names.join(",") }
}

/// Comma-separated topics with an address each, or `none`. A backslash comes before each comma and
/// backslash of a topic.
pub(super) fn by_topic(text: &str) -> Result<Vec<(String, SocketAddr)>, String> {
    let one = |text: &str| {
        let wrong = || format!("'{text}': write a topic and its group, prices=239.192.71.9:14400");
        let (topic, group) = text.trim().rsplit_once('=').ok_or_else(wrong)?;
        let topic = unescaped(topic);
        if topic.is_empty() { Err(wrong()) } else { Ok((topic, address(group)?)) }
    };
    let each = |text: &str| split_unescaped(text).into_iter().map(one).collect();
    Ok(optional(text, each)?.unwrap_or_default())
}

/// The parts of `text` between commas without a backslash before them.
fn split_unescaped(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut is_escaped) = (Vec::new(), 0, false);
    for (at, letter) in text.char_indices() {
        if letter == ',' && !is_escaped {
            parts.push(&text[start..at]);
            start = at + 1;
        }
        is_escaped = letter == '\\' && !is_escaped;
    }
    parts.push(&text[start..]);
    parts
}

/// Text without the backslashes before commas and backslashes.
fn unescaped(text: &str) -> String {
    let (mut plain, mut letters) = (String::new(), text.chars().peekable());
    while let Some(letter) = letters.next() {
        let next = letters.next_if(|next| letter == '\\' && matches!(next, ',' | '\\'));
        plain.push(next.unwrap_or(letter));
    }
    plain
}

pub(super) fn topics_listed(groups: &[(String, SocketAddr)]) -> String {
    let escaped = |topic: &str| topic.replace('\\', "\\\\").replace(',', "\\,");
    let words: Vec<String> =
        groups.iter().map(|(topic, at)| format!("{}={at}", escaped(topic))).collect();
    if words.is_empty() { "none".into() } else { words.join(",") }
}
