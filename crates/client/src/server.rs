//! Where a server is.

use crate::error::ClientError;

/// A server, as settings name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Server<'a> {
    /// Its name or address, and its port.
    pub(crate) place: &'a str,
    /// Whether it is only to be spoken to in secret.
    pub(crate) is_encrypted: bool,
}

impl<'a> Server<'a> {
    /// Reads `host:port`, `tcp://host:port` or `tcps://host:port`.
    pub(crate) fn parse(text: &'a str) -> Result<Self, ClientError> {
        let (scheme, place) = text.split_once("://").unwrap_or(("tcp", text));
        let place = place.trim_end_matches('/');
        match scheme {
            "tcp" => Ok(Self { place, is_encrypted: false }),
            "tcps" => Ok(Self { place, is_encrypted: true }),
            _ => Err(ClientError::Settings(
                "a server is named as in 127.0.0.1:9007, tcp://host:9007 or tcps://host:9007",
            )),
        }
    }

    /// Its name or address alone.
    pub(crate) fn host(self) -> &'a str {
        let host = self.place.rsplit_once(':').map_or(self.place, |(host, _)| host);
        host.trim_start_matches('[').trim_end_matches(']')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_in_three_ways() {
        let parse = |text| Server::parse(text).expect("a server");
        assert_eq!(parse("desk:1"), Server { place: "desk:1", is_encrypted: false });
        assert_eq!(parse("tcp://desk:1/"), parse("desk:1"));
        assert_eq!(parse("tcps://[::1]:1"), Server { place: "[::1]:1", is_encrypted: true });
        assert_eq!((parse("[::1]:1").host(), parse("desk:1").host()), ("::1", "desk"));
        assert!(Server::parse("http://desk:1").is_err());
    }
}
