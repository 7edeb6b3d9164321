//! NATS: its text protocol, spoken to a server that stands between the ends.
//!
//! ```text
//!   to the server:    CONNECT {..} | SUB subject sid | PUB subject size <crlf> bytes | PING | PONG
//!   from the server:  INFO {..} | MSG subject sid size <crlf> bytes | PING | PONG | -ERR text
//! ```
//!
//! Without a client library and its threads: this is the least that a client can cost.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::socket::{LONGEST_SLEEP, is_harmless};
use crate::end::End;
use crate::place::{Place, Role};

const THERE: &str = "there";
const BACK: &str = "back";
const END: &[u8] = b"\r\n";
/// Most bytes gathered before a write; also the size of a read.
const BATCH: usize = 1 << 16;
/// Time limit for the server to listen, and to answer.
const LIMIT: Duration = Duration::from_secs(10);
const RETRY: Duration = Duration::from_millis(20);

/// An end that talks to a server.
#[derive(Debug)]
pub struct Nats {
    stream: TcpStream,
    subject: &'static str,
    out: Vec<u8>,
    /// Number of its bytes that have been written.
    written: usize,
    inbox: Vec<u8>,
    /// Offset of the unread bytes in it.
    from: usize,
    to: usize,
    greeted: bool,
}

impl Nats {
    /// Connects, and subscribes if the role receives.
    ///
    /// # Errors
    ///
    /// When there is no server, or it does not answer.
    pub fn new(place: &Place, sleeps: bool) -> Result<Self> {
        let stream = connect(place)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LONGEST_SLEEP))?;
        let (subject, subscribed) = match place.role {
            Role::Ping => (THERE, Some(BACK)),
            Role::Pong => (BACK, Some(THERE)),
            Role::Pub => (THERE, None),
            Role::Sub => (THERE, Some(THERE)),
        };
        let mut new = Self {
            stream,
            subject,
            out: b"CONNECT {\"verbose\":false,\"pedantic\":false}\r\n".to_vec(),
            written: 0,
            inbox: vec![0; 4 * BATCH],
            from: 0,
            to: 0,
            greeted: false,
        };
        if let Some(subject) = subscribed {
            new.out.extend_from_slice(format!("SUB {subject} 1\r\n").as_bytes());
        }
        new.out.extend_from_slice(b"PING\r\n");
        new.greet()?;
        new.stream.set_nonblocking(!sleeps)?;
        Ok(new)
    }

    /// Until the server has answered: it has heard of the subscription then.
    fn greet(&mut self) -> Result<()> {
        let start = Instant::now();
        while !self.greeted {
            self.flush()?;
            self.receive(|_| ())?;
            if start.elapsed() > LIMIT {
                bail!("the server does not answer");
            }
        }
        Ok(())
    }

    /// Takes what was read apart; returns the number of messages.
    #[inline]
    fn unpack(&mut self, mut each: impl FnMut(&[u8])) -> Result<usize> {
        let mut count = 0;
        while let Some(length) = find_end(&self.inbox[self.from..self.to]) {
            let line = &self.inbox[self.from..self.from + length];
            let after = self.from + length + END.len();
            if line.starts_with(b"MSG ") {
                let size = size_of(line).context("the server sent nonsense")?;
                let Some(body) = self.inbox[after..self.to].get(..size + END.len()) else { break };
                each(&body[..size]);
                self.from = after + size + END.len();
                count += 1;
                continue;
            }
            match line {
                b"PING" => self.out.extend_from_slice(b"PONG\r\n"),
                b"PONG" => self.greeted = true,
                line if line.starts_with(b"-ERR") => {
                    bail!(String::from_utf8_lossy(line).into_owned())
                }
                // What the server tells about itself.
                _ => (),
            }
            self.from = after;
        }
        self.inbox.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        Ok(count)
    }
}

impl End for Nats {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        if self.out.len() - self.written + size > BATCH && !self.flush()? {
            return Ok(false);
        }
        write!(self.out, "PUB {} {size}\r\n", self.subject)?;
        let from = self.out.len();
        self.out.resize(from + size, 0);
        fill(&mut self.out[from..]);
        self.out.extend_from_slice(END);
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if is_harmless(&error) => return Ok(false),
                Err(error) => return Err(error).context("the server has gone"),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, each: impl FnMut(&[u8])) -> Result<usize> {
        let room = (self.to + BATCH).min(self.inbox.len());
        match self.stream.read(&mut self.inbox[self.to..room]) {
            Ok(0) => bail!("the server has gone"),
            Ok(bytes) => self.to += bytes,
            Err(error) if is_harmless(&error) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        self.unpack(each)
    }
}

/// The server is on the host of the end that begins.
fn connect(place: &Place) -> Result<TcpStream> {
    let (server, start) = (place.server()?, Instant::now());
    loop {
        match TcpStream::connect_timeout(&server, LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error)
                if error.kind() == ErrorKind::ConnectionRefused && start.elapsed() < LIMIT =>
            {
                thread::sleep(RETRY);
            }
            Err(error) => {
                return Err(error).with_context(|| format!("no NATS server at {server}"));
            }
        }
    }
}

/// End of the first line, if it is complete.
#[inline]
fn find_end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(END.len()).position(|window| window == END)
}

/// The last word of a line as a number.
#[inline]
fn size_of(line: &[u8]) -> Option<usize> {
    let digits = line.rsplit(|byte| *byte == b' ').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_and_have_sizes() {
        assert_eq!(find_end(b"PING\r\nPONG"), Some(4));
        assert_eq!(find_end(b"PING\r"), None);
        assert_eq!(size_of(b"MSG there 1 24"), Some(24));
        assert_eq!(size_of(b"MSG there 1 x"), None);
    }
}
