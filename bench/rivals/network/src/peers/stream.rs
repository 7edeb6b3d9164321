//! TCP: each message with its length in front, written at once or by batches.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::socket::{LONGEST_SLEEP, is_harmless};
use crate::end::End;
use crate::place::Place;

/// Bytes of the length in front of a message.
const LENGTH: usize = 4;
/// Most bytes gathered before a write; also the size of a read.
const BATCH: usize = 1 << 16;
/// Most bytes kept while the kernel takes no more; then sending fails for lack of room.
const BACKLOG: usize = 1 << 22;
/// Time limit for the other end to connect.
const LIMIT: Duration = Duration::from_secs(10);

/// An end of a stream.
#[derive(Debug)]
pub struct Stream {
    listener: Option<TcpListener>,
    stream: Option<TcpStream>,
    sleeps: bool,
    gathers: bool,
    out: Vec<u8>,
    /// Number of its bytes that have been written.
    written: usize,
    inbox: Vec<u8>,
    /// Offset of the unread bytes in it.
    from: usize,
    to: usize,
}

impl Stream {
    /// Connects, or listens; the connection is then taken by the first call that needs one.
    ///
    /// # Errors
    ///
    /// When the other end does not come in time.
    pub fn new(place: &Place, sleeps: bool, gathers: bool) -> Result<Self> {
        let mut new = Self {
            listener: None,
            stream: None,
            sleeps,
            gathers,
            out: Vec::with_capacity(2 * BATCH),
            written: 0,
            inbox: vec![0; 4 * BATCH],
            from: 0,
            to: 0,
        };
        if place.role.begins() {
            let stream = TcpStream::connect_timeout(&place.waiting()?, LIMIT)?;
            new.use_stream(stream)?;
        } else {
            let listener = TcpListener::bind(place.waiting()?).context("cannot listen")?;
            listener.set_nonblocking(true)?;
            new.listener = Some(listener);
        }
        Ok(new)
    }

    fn use_stream(&mut self, stream: TcpStream) -> Result<()> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(!self.sleeps)?;
        stream.set_read_timeout(Some(LONGEST_SLEEP))?;
        self.stream = Some(stream);
        Ok(())
    }

    fn accept(&mut self) -> Result<()> {
        let Some(listener) = &self.listener else { return Ok(()) };
        match listener.accept() {
            Ok((stream, _)) => self.use_stream(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn waiting(&self) -> usize {
        self.out.len() - self.written
    }

    /// Hands over the whole messages that were read.
    #[inline]
    fn unpack(&mut self, mut each: impl FnMut(&[u8])) -> usize {
        let mut count = 0;
        while let Some((length, rest)) = self.inbox[self.from..self.to].split_first_chunk() {
            let length = u32::from_le_bytes(*length) as usize;
            let Some(message) = rest.get(..length) else { break };
            each(message);
            self.from += LENGTH + length;
            count += 1;
        }
        self.inbox.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        count
    }
}

impl End for Stream {
    #[inline]
    fn send(&mut self, size: usize, mut fill: impl FnMut(&mut [u8])) -> Result<bool> {
        let full = if self.gathers { BATCH } else { BACKLOG };
        if self.waiting() + size > full && !self.flush()? {
            return Ok(false);
        }
        self.out.extend_from_slice(&(size as u32).to_le_bytes());
        let from = self.out.len();
        self.out.resize(from + size, 0);
        fill(&mut self.out[from..]);
        if !self.gathers {
            self.flush()?;
        }
        Ok(true)
    }

    fn flush(&mut self) -> Result<bool> {
        let start = Instant::now();
        while self.stream.is_none() {
            self.accept()?;
            if start.elapsed() > LIMIT {
                bail!("no peer connected");
            }
        }
        let Some(stream) = &mut self.stream else { return Ok(false) };
        while self.written < self.out.len() {
            match stream.write(&self.out[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if is_harmless(&error) => return Ok(false),
                Err(error) => return Err(error.into()),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(true)
    }

    #[inline]
    fn receive(&mut self, each: impl FnMut(&[u8])) -> Result<usize> {
        let Some(stream) = &mut self.stream else {
            self.accept()?;
            return Ok(0);
        };
        let room = (self.to + BATCH).min(self.inbox.len());
        match stream.read(&mut self.inbox[self.to..room]) {
            Ok(bytes) => self.to += bytes,
            Err(error) if is_harmless(&error) => return Ok(0),
            Err(error) => return Err(error.into()),
        }
        Ok(self.unpack(each))
    }
}
