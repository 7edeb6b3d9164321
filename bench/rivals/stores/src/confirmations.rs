//! Bytes from a NATS server, taken apart: messages, and answers of JetStream in them.

use anyhow::{Result, bail, ensure};

/// Bytes at the end of a line, or behind a message.
const END: usize = 2;

/// Something that the server said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said<'a> {
    /// A message.
    Message(&'a [u8]),
    /// The server's question whether the client lives.
    Ping,
    /// Anything else that is no error.
    Other,
}

/// Takes apart what came; returns the bytes that were whole.
pub(crate) fn split(bytes: &[u8], mut each: impl FnMut(Said<'_>) -> Result<()>) -> Result<usize> {
    let mut used = 0;
    while let Some(line) = line(&bytes[used..]) {
        let after = used + line.len() + END;
        if line.starts_with(b"MSG ") {
            let size = line.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
            let size = std::str::from_utf8(size).ok().and_then(|it| it.parse::<usize>().ok());
            let Some(size) = size else { bail!("it said {}", String::from_utf8_lossy(line)) };
            let Some(body) = bytes[after..].get(..size.saturating_add(END)) else { break };
            each(Said::Message(&body[..size]))?;
            used = after + size + END;
            continue;
        }
        ensure!(!line.starts_with(b"-ERR"), "it said {}", String::from_utf8_lossy(line));
        each(if line == b"PING" { Said::Ping } else { Said::Other })?;
        used = after;
    }
    Ok(used)
}

/// The line that `bytes` begin with, if its end is there.
fn line(bytes: &[u8]) -> Option<&[u8]> {
    let end = bytes.iter().position(|byte| *byte == b'\r')?;
    bytes.get(end + 1).map(|_| &bytes[..end])
}

/// The stream's sequence in JetStream's answer to a message.
pub(crate) fn sequence(answer: &[u8]) -> Result<u64> {
    const KEY: &[u8] = b"\"seq\":";
    let wrong = || format!("JetStream answered {}", String::from_utf8_lossy(answer));
    let at = answer.windows(KEY.len()).position(|it| it == KEY);
    let Some(at) = at.filter(|_| !answer.windows(8).any(|it| it == b"\"error\":")) else {
        bail!(wrong());
    };
    let digits = answer[at + KEY.len()..].iter().take_while(|byte| byte.is_ascii_digit());
    let value = digits.map(|digit| u64::from(digit - b'0'));
    let value = value.reduce(|value, digit| value.saturating_mul(10).saturating_add(digit));
    value.ok_or_else(|| anyhow::anyhow!(wrong()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_taken_apart_wherever_they_are_cut() {
        let bytes = b"INFO {}\r\nMSG _INBOX.a 1 4\r\na\r\nb\r\nPING\r\nMSG x 1 0\r\n\r\n";
        let expected: [&[u8]; 4] = [b"other", b"a\r\nb", b"ping", b""];
        for cut in 0..=bytes.len() {
            let mut said: Vec<Vec<u8>> = Vec::new();
            let mut note = |it: Said<'_>| {
                said.push(match it {
                    Said::Message(body) => body.to_vec(),
                    Said::Ping => b"ping".to_vec(),
                    Said::Other => b"other".to_vec(),
                });
                Ok(())
            };
            let used = split(&bytes[..cut], &mut note).unwrap();
            assert_eq!(used + split(&bytes[used..], &mut note).unwrap(), bytes.len(), "at {cut}");
            assert_eq!(said, expected, "cut at {cut}");
        }
        assert!(split(b"-ERR 'no'\r\n", |_| Ok(())).is_err());
        assert!(split(b"MSG x 1 q\r\n", |_| Ok(())).is_err());
    }

    #[test]
    fn a_confirmation_has_the_sequence_and_no_error() {
        assert_eq!(sequence(br#"{"stream":"S","seq":1207}"#).unwrap(), 1_207);
        assert_eq!(sequence(br#"{"stream":"S", "seq":7,"domain":"d"}"#).unwrap(), 7);
        let error = br#"{"error":{"code":503,"description":"no leader"},"seq":0}"#;
        assert!(sequence(error).unwrap_err().to_string().contains("no leader"));
        assert!(sequence(br#"{"stream":"S"}"#).is_err());
        assert!(sequence(br#"{"seq":}"#).is_err());
    }
}
