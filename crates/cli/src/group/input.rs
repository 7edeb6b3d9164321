//! Lines of the input of `lanecast group join`, read on a thread of their own.

use std::io::{self, BufRead, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Lines waiting for the member's thread.
const QUEUE: usize = 64;
/// Longest line, in bytes; longer ones are sent in several.
const LONGEST: u64 = 64 << 10;

/// A line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A message to all.
    Text(Vec<u8>),
    /// A message to one member.
    To(String, Vec<u8>),
    /// `/members`
    Members,
    /// `/stats`
    Stats,
    /// `/leave`
    Leave,
    /// A command that does not exist, or lacks something.
    Wrong(String),
}

impl Line {
    /// Reads a line without its end.
    fn parse(line: &[u8]) -> Self {
        let Some(rest) = line.strip_prefix(b"/") else { return Self::Text(line.to_vec()) };
        if rest.starts_with(b"/") {
            return Self::Text(rest.to_vec());
        }
        let text = String::from_utf8_lossy(rest);
        let (command, words) = text.split_once(' ').unwrap_or((&text, ""));
        match (command, words.split_once(' ')) {
            ("to", Some((name, text))) if !name.is_empty() => {
                Self::To(name.to_owned(), text.as_bytes().to_vec())
            }
            ("to", _) => Self::Wrong("write /to NAME TEXT".into()),
            ("members", _) => Self::Members,
            ("stats", _) => Self::Stats,
            ("leave", _) => Self::Leave,
            _ => Self::Wrong(format!(
                "there is no command /{command}: /to, /members, /stats and /leave are there; \
                 //{command} sends it"
            )),
        }
    }
}

/// The lines of standard input. The channel closes at its end.
pub(super) fn lines() -> io::Result<Receiver<Line>> {
    let (sender, receiver) = sync_channel(QUEUE);
    let read = move || read_all(&mut io::stdin().lock(), &sender);
    std::thread::Builder::new().name("input".into()).spawn(read)?;
    Ok(receiver)
}

fn read_all(input: &mut impl BufRead, sender: &SyncSender<Line>) {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input.by_ref().take(LONGEST).read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        if !text.is_empty() && sender.send(Line::parse(text)).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_messages_or_commands() {
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(Line::parse(b"hello /to"), text("hello /to"));
        assert_eq!(Line::parse(b"//to ann"), text("/to ann"));
        assert_eq!(Line::parse(b"/to ann two words"), Line::To("ann".into(), b"two words".into()));
        for (line, expected) in
            [("/members", Line::Members), ("/stats", Line::Stats), ("/leave", Line::Leave)]
        {
            assert_eq!(Line::parse(line.as_bytes()), expected);
        }
        for wrong in ["/to", "/to ann", "/to  x", "/", "/joni"] {
            assert!(matches!(Line::parse(wrong.as_bytes()), Line::Wrong(_)), "{wrong}");
        }
        assert_eq!(Line::parse(b"\xff"), Line::Text(vec![0xff]), "messages are bytes");
    }

    #[test]
    fn an_endless_line_is_cut() {
        let (sender, receiver) = sync_channel(QUEUE);
        let long = vec![b'x'; LONGEST as usize + 1];
        read_all(&mut &long[..], &sender);
        drop(sender);
        let lengths = receiver.iter().map(|line| match line {
            Line::Text(text) => text.len(),
            other => panic!("{other:?}"),
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [LONGEST as usize, 1]);
    }
}
