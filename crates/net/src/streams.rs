//! A publisher's TCP connections, one for each receiver.

use crate::presence::Descriptor;
use lanecast_os::direct;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::Nanos;
use lanecast_protocol::sender::{Sender, UNJOINED_MAX};
use lanecast_wire::net::{Frame, frame_length};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;

/// The most bytes of frames that a receiver may have sent in part: theirs are short.
const PARTIAL_MAX: usize = 64 << 10;
/// The most connections from one address that no receiver has joined by.
const UNJOINED_EACH: usize = 16;
/// The most connections that are accepted at a time.
const ACCEPTS_MAX: usize = 16;
/// Connections are accepted at most so often while the publisher is busy.
const ACCEPT_EVERY: Nanos = 1_000_000;
/// Connections are read at most so often while the publisher is busy.
const READ_EVERY: Nanos = 20_000;

/// One receiver's connection.
#[derive(Debug)]
struct Link {
    number: u64,
    from: IpAddr,
    stream: Arc<TcpStream>,
    /// The beginning of a frame.
    partial: Vec<u8>,
    /// The last write found no room.
    is_full: bool,
}

/// All of them, and the socket that new ones come from.
#[derive(Debug)]
pub(crate) struct Streams {
    listener: Arc<TcpListener>,
    options: TcpOptions,
    links: Vec<Link>,
    links_max: usize,
    last: u64,
    accepted: Nanos,
    read: Nanos,
}

impl Streams {
    /// For so many receivers.
    pub(crate) fn new(listener: TcpListener, options: TcpOptions, receivers: usize) -> Self {
        let listener = Arc::new(listener);
        let links_max = receivers + UNJOINED_MAX;
        Self { listener, options, links: Vec::new(), links_max, last: 0, accepted: 0, read: 0 }
    }

    /// Takes in what receivers say, and new receivers.
    pub(crate) fn listen(&mut self, sender: &mut Sender, now: Nanos, buffer: &mut [u8]) -> usize {
        let mut heard = 0;
        if now.wrapping_sub(self.accepted) >= ACCEPT_EVERY || self.links.is_empty() {
            self.accepted = now;
            heard += self.accept(sender, now);
        }
        if now.wrapping_sub(self.read) < READ_EVERY {
            return heard;
        }
        self.read = now;
        self.links.retain_mut(|link| match link.read(sender, now, buffer) {
            Ok(frames) => {
                heard += frames;
                true
            }
            Err(_) => {
                sender.disconnect(link.number);
                heard += 1;
                false
            }
        });
        heard
    }

    fn accept(&mut self, sender: &mut Sender, now: Nanos) -> usize {
        let mut accepted = 0;
        while let Some(link) = sender.overdue_connection(now) {
            self.close(sender, link);
            accepted += 1;
        }
        while accepted < ACCEPTS_MAX
            && let Ok((stream, from)) = self.listener.accept()
        {
            accepted += 1;
            if tcp::tune(&stream, &self.options).is_err() {
                continue;
            }
            self.make_room(sender, from.ip());
            self.last += 1;
            sender.connect(now, self.last);
            self.links.push(Link {
                number: self.last,
                from: from.ip(),
                stream: Arc::new(stream),
                partial: Vec::new(),
                is_full: false,
            });
        }
        accepted
    }

    /// Closes the oldest connections without a receiver, first those from `from`, so that one more
    /// has a place: those that stay silent keep nobody out.
    fn make_room(&mut self, sender: &mut Sender, from: IpAddr) {
        let unjoined: Vec<u64> = sender.unjoined_connections().collect();
        let is_own = |number: &u64| {
            self.links.iter().any(|link| link.number == *number && link.from == from)
        };
        let own: Vec<u64> = unjoined.iter().copied().filter(is_own).collect();
        let is_crowded = unjoined.len() >= UNJOINED_MAX || self.links.len() >= self.links_max;
        let oldest = if own.len() >= UNJOINED_EACH {
            own.first()
        } else {
            unjoined.first().filter(|_| is_crowded)
        };
        oldest.into_iter().for_each(|number| self.close(sender, *number));
    }

    fn close(&mut self, sender: &mut Sender, number: u64) {
        sender.disconnect(number);
        self.links.retain(|link| link.number != number);
    }

    /// Writes to each receiver what it can take; returns how many writes that took.
    pub(crate) fn transmit(&mut self, sender: &mut Sender, now: Nanos) -> usize {
        let mut calls = 0;
        // Where the data rate lets out less than all could take, each is first in turn.
        let first = self.links.len().min(1);
        self.links.rotate_left(first);
        self.links.retain_mut(|link| match link.write(sender, now) {
            Ok(writes) => {
                calls += writes;
                true
            }
            Err(_) => {
                sender.disconnect(link.number);
                false
            }
        });
        calls
    }

    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        into.push((Descriptor::Listener(Arc::clone(&self.listener)), false));
        for link in &self.links {
            into.push((Descriptor::Tcp(Arc::clone(&link.stream)), link.is_full));
        }
    }
}

impl Link {
    fn read(&mut self, sender: &mut Sender, now: Nanos, buffer: &mut [u8]) -> io::Result<usize> {
        let stream = &*self.stream;
        let length = match direct::read(stream, buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => length,
            Err(error) if is_passing(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        let fresh = &buffer[..length];
        if self.partial.is_empty() {
            let used = frames(fresh, |frame| sender.on_stream_frame(now, self.number, frame))?;
            self.partial.extend_from_slice(&fresh[used..]);
        } else {
            self.partial.extend_from_slice(fresh);
            let number = self.number;
            let used = frames(&self.partial, |frame| sender.on_stream_frame(now, number, frame))?;
            self.partial.drain(..used);
        }
        if self.partial.len() > PARTIAL_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        Ok(1)
    }

    fn write(&mut self, sender: &mut Sender, now: Nanos) -> io::Result<usize> {
        let mut writes = 0;
        let stream = &*self.stream;
        self.is_full = false;
        loop {
            let bytes = sender.stream_bytes(now, self.number);
            if bytes.is_empty() {
                return Ok(writes);
            }
            match direct::write(stream, bytes) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(length) => sender.stream_written(now, self.number, length),
                Err(error) if is_passing(&error) => {
                    self.is_full = error.kind() == ErrorKind::WouldBlock;
                    return Ok(writes);
                }
                Err(error) => return Err(error),
            }
            writes += 1;
        }
    }
}

/// Whether the next try may go better.
pub(crate) fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Hands each whole frame of `bytes` over; gives how many bytes they took.
pub(crate) fn frames(bytes: &[u8], mut each: impl FnMut(&Frame<'_>)) -> io::Result<usize> {
    let mut used = 0;
    loop {
        let rest = &bytes[used..];
        let Some(length) = frame_length(rest).map_err(|_| ErrorKind::InvalidData)? else {
            return Ok(used);
        };
        if rest.len() < length {
            return Ok(used);
        }
        // A frame of a kind that this version does not know is passed over.
        if let Some((frame, _)) = Frame::split(&rest[..length]) {
            each(&frame);
        }
        used += length;
    }
}
