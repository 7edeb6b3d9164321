//! Addresses of servers in text form.

use lanecast_wire::command::PORT;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// Address of a server: `host`, `host:port` or `[::1]:port`, with `tcp://` or `tcps://` before it
/// and a path behind it or not. Without a port it is 9007.
///
/// ```
/// let server: lanecast_client::ServerAddress = "tcps://desk.example".parse()?;
/// assert_eq!((server.host(), server.port(), server.is_encrypted()), ("desk.example", 9007, true));
/// assert_eq!(server.to_string(), "tcps://desk.example:9007");
/// # Ok::<(), lanecast_client::ServerAddressError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServerAddress {
    host: String,
    port: u16,
    is_encrypted: bool,
}

/// Error of parsing a [`ServerAddress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "not an address of a server: write it as HOST or HOST:PORT, such as 127.0.0.1:{PORT} or \
     [::1]:{PORT}, with tcps:// before it for TLS"
)]
pub struct ServerAddressError;

impl ServerAddress {
    /// The host name, or the IP address without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether the connection must use TLS: the text begins with `tcps://`.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }
}

impl FromStr for ServerAddress {
    type Err = ServerAddressError;

    fn from_str(text: &str) -> Result<Self, ServerAddressError> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
        let is_encrypted = match scheme {
            "tcp" => false,
            "tcps" => true,
            _ => return Err(ServerAddressError),
        };
        let subscribe_to = rest.split('/').next().unwrap_or_default();
        let (host, port) = match subscribe_to.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, read_port(port)?),
            _ => (subscribe_to, PORT),
        };
        Ok(Self { host: read_host(host)?.to_owned(), port, is_encrypted })
    }
}

impl fmt::Display for ServerAddress {
    /// The text form, with the port.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, is_encrypted } = self;
        let scheme = if *is_encrypted { "tcps://" } else { "" };
        match host.contains(':') {
            true => write!(formatter, "{scheme}[{host}]:{port}"),
            false => write!(formatter, "{scheme}{host}:{port}"),
        }
    }
}

/// Digits alone: numbers may have a sign elsewhere.
fn read_port(text: &str) -> Result<u16, ServerAddressError> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number).ok_or(ServerAddressError)
}

/// A name, or numbers; those with colons stand in brackets, or they would end in a port.
fn read_host(text: &str) -> Result<&str, ServerAddressError> {
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let is_host = match inside {
        // An interface may stand behind the numbers.
        Some(inside) => {
            let (address, zone) = inside.split_once('%').unwrap_or((inside, "0"));
            address.parse::<Ipv6Addr>().is_ok() && is_word(zone)
        }
        None => is_word(text),
    };
    if is_host { Ok(inside.unwrap_or(text)) } else { Err(ServerAddressError) }
}

fn is_word(text: &str) -> bool {
    let is_odd = |sign: char| matches!(sign, ':' | '@' | '[' | ']') || sign.is_whitespace();
    !text.is_empty() && !text.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> ServerAddress {
        text.parse().expect("an address")
    }

    #[test]
    fn missing_parts_of_an_address_have_defaults_and_errors_show_the_right_form() {
        for (text, meant) in [
            ("host", "host:9007"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]", "[::1]:9007"),
            ("[::1]:7", "[::1]:7"),
            ("[fe80::1%eth0]:7", "[fe80::1%eth0]:7"),
            ("tcp://h:7/amps/json", "h:7"),
            ("tcp://desk:1/", "desk:1"),
            ("tcps://h", "tcps://h:9007"),
            ("tcps://[::1]:1", "tcps://[::1]:1"),
        ] {
            assert_eq!(parse(text).to_string(), meant);
            assert_eq!(parse(meant), parse(text));
        }
        let wrong =
            ["", ":7", "h:", "h:x", "h:65536", "h:+7", "::1", "[::1", "[]", "[h]", "[::1]7"];
        for text in wrong.into_iter().chain(["[::1%]", "http://h", "tcp://", "me@h:1", "h h"]) {
            let error = text.parse::<ServerAddress>().expect_err(text);
            assert!(error.to_string().contains("127.0.0.1:9007"), "{text}");
        }
    }

    #[test]
    fn the_parts_are_what_sockets_and_certificates_ask_for() {
        let server = parse("tcps://[::1]:1");
        assert_eq!((server.host(), server.port(), server.is_encrypted()), ("::1", 1, true));
        let server = parse("tcp://desk:1/");
        assert_eq!((server.host(), server.port(), server.is_encrypted()), ("desk", 1, false));
        let error = crate::settings::parse_server("http://desk").expect_err("no such scheme");
        assert!(error.to_string().starts_with("bad settings: \"http://desk\" is not an address"));
    }
}
