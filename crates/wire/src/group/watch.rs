//! Bytes of the connections by which members watch each other, without sockets: the greeting of a
//! listener, the probes of a watcher and their answers. See `docs/protocol/group.md`, "Watching".

/// Bytes of a greeting: a tag, then the member's id.
pub const WATCH_GREETING: usize = 16;
/// A watcher's byte, which asks for an answer.
pub const WATCH_PROBE: u8 = b'?';
/// The listener's byte, which answers all probes that it has read.
pub const WATCH_ANSWER: u8 = b'!';
/// The listener's byte before it closes a connection to make room: the end is no crash then.
pub const WATCH_DISMISSAL: u8 = b'-';
/// Tag of a greeting.
pub const WATCH_TAG: [u8; 8] = *b"lc-watc2";

/// The greeting of the member `id`.
pub fn watch_greeting(id: u64) -> [u8; WATCH_GREETING] {
    let mut greeting = [0; WATCH_GREETING];
    greeting[..8].copy_from_slice(&WATCH_TAG);
    greeting[8..].copy_from_slice(&id.to_le_bytes());
    greeting
}

/// Whether `bytes` are what a watcher may send.
pub fn are_probes(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == WATCH_PROBE)
}

/// A watcher's end of a connection: the bytes of the listener, checked as they come.
#[derive(Clone, Debug)]
pub struct WatchedStream {
    expected: [u8; WATCH_GREETING],
    /// Bytes of the greeting that have come.
    length: usize,
}

/// Meaning of bytes that came from a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchedBytes {
    /// Part of the greeting, or no byte at all.
    Partial,
    /// The greeting is complete: from now on the end of the connection is the end of the member.
    Greeted,
    /// The member has answered a probe.
    Answered,
    /// The connection is another program's, another member's, or dismissed.
    Foreign,
}

impl WatchedStream {
    /// The stream of the member `id`.
    pub fn new(id: u64) -> Self {
        Self { expected: watch_greeting(id), length: 0 }
    }

    /// Whether the greeting has come.
    pub const fn is_greeted(&self) -> bool {
        self.length == WATCH_GREETING
    }

    /// Reads the next bytes. After [`WatchedBytes::Foreign`] the connection is to be closed.
    pub fn read(&mut self, bytes: &[u8]) -> WatchedBytes {
        let was_greeted = self.is_greeted();
        let missing = &self.expected[self.length..];
        let (greeting, answers) = bytes.split_at(bytes.len().min(missing.len()));
        if !missing.starts_with(greeting) || answers.iter().any(|byte| *byte != WATCH_ANSWER) {
            return WatchedBytes::Foreign;
        }
        self.length += greeting.len();
        match (answers.is_empty(), was_greeted) {
            (false, _) => WatchedBytes::Answered,
            (true, false) if self.is_greeted() => WatchedBytes::Greeted,
            (true, _) => WatchedBytes::Partial,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_describes_the_greeting_and_the_bytes_after_it() {
        let page = include_str!("../../../../docs/protocol/group.md");
        assert!(page.contains("a greeting of 16 bytes: `lc-watc2` in ASCII, and its member id"));
        assert!(page.contains("the byte 63 (`?`)") && page.contains("33 (`!`)"));
        assert!(page.contains("the byte 45 (`-`)"));
        assert_eq!(&watch_greeting(0x0102), b"lc-watc2\x02\x01\0\0\0\0\0\0");
        assert_eq!((WATCH_PROBE, WATCH_ANSWER, WATCH_DISMISSAL), (63, 33, 45));
    }

    #[test]
    fn a_greeting_comes_in_parts_and_only_answers_follow() {
        let greeting = watch_greeting(7);
        for cut in 0..WATCH_GREETING {
            let mut stream = WatchedStream::new(7);
            assert_eq!(stream.read(&greeting[..cut]), WatchedBytes::Partial);
            assert!(!stream.is_greeted());
            assert_eq!(stream.read(&greeting[cut..]), WatchedBytes::Greeted);
            assert!(stream.is_greeted());
            assert_eq!(stream.read(b"!!"), WatchedBytes::Answered);
            assert_eq!(stream.read(b"!?"), WatchedBytes::Foreign);
            assert_eq!(stream.read(&[WATCH_ANSWER, WATCH_DISMISSAL]), WatchedBytes::Foreign);
        }
    }

    #[test]
    fn other_greetings_are_foreign_at_their_first_wrong_byte() {
        let greeting = watch_greeting(7);
        for at in 0..WATCH_GREETING {
            let mut other = greeting;
            other[at] ^= 1;
            let mut stream = WatchedStream::new(7);
            assert_eq!(stream.read(&other[..at]), WatchedBytes::Partial);
            assert_eq!(stream.read(&other[at..=at]), WatchedBytes::Foreign);
        }
        assert_eq!(WatchedStream::new(7).read(b"lc-watc1"), WatchedBytes::Foreign);
        assert!(are_probes(b"??") && are_probes(b"") && !are_probes(b"?!"));
    }
}
