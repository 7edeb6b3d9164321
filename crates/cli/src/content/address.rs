//! Where a content server is, as people write it.

const PORT: u16 = lanecast_broker::PORT;

/// Reads `host`, `host:port`, `[::1]:port`, with `tcp://` before it and a path behind it or not.
/// What is encrypted stays as it is written.
pub(crate) fn parse(text: &str) -> Result<String, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
    let place = rest.split('/').next().unwrap_or_default();
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()),
        _ => (place, Some(PORT)),
    };
    match port {
        Some(port) if ["tcp", "tcps"].contains(&scheme) && is_host(host) => {
            let mark = if scheme == "tcps" { "tcps://" } else { "" };
            Ok(format!("{mark}{host}:{port}"))
        }
        _ => Err(format!("write it as HOST or HOST:PORT, such as 127.0.0.1:{PORT}")),
    }
}

/// A name, or numbers; those with colons stand in brackets, or they would end in a port.
fn is_host(text: &str) -> bool {
    let is_bracketed = text.starts_with('[') && text.ends_with(']');
    !text.is_empty() && !text.contains('@') && (is_bracketed || !text.contains(':'))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn what_is_left_out_is_usual_and_what_is_wrong_is_shown_right() {
        for (text, meant) in [
            ("host", "host:9007"),
            ("127.0.0.1:1", "127.0.0.1:1"),
            ("[::1]", "[::1]:9007"),
            ("[::1]:7", "[::1]:7"),
            ("tcp://h:7/amps/json", "h:7"),
            ("tcps://h", "tcps://h:9007"),
        ] {
            assert_eq!(parse(text).as_deref(), Ok(meant));
        }
        for text in ["", ":7", "h:", "h:x", "h:65536", "::1", "http://h", "tcp://", "me@h:1"] {
            assert!(parse(text).is_err_and(|why| why.contains("127.0.0.1:9007")), "{text}");
        }
    }
}
