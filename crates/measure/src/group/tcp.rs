//! Bare TCP connections between all members, for comparison.
//!
//! Of two members, the later one in the list of addresses connects to the earlier one. A message is
//! written once into a log; each connection, and this member's own loopback, reads it at a place of
//! its own. The slowest one holds the sender back when the log is full.

use super::transport::{GroupEvent, GroupTransport, SendRefusal, SenderId};
use lanecast_os::PausingListener;
use lanecast_os::poll::PollBuffer;
use lanecast_os::raw_io;
use lanecast_os::tcp::{self, TcpOptions};
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Bytes of the log, and of each connection's receive buffer.
const LOG_BYTES: usize = 4 << 20;
const READ_BYTES: usize = 1 << 20;
/// Each message begins with its length.
const LENGTH_BYTES: usize = 4;
const LONGEST: usize = READ_BYTES - LENGTH_BYTES;
/// A poll writes earlier than this only if nothing was read.
const GATHERED: usize = 64 << 10;
/// A connection begins with these bytes and the number of the member that made it.
const GREETING: [u8; 4] = *b"LGT1";
const GREETING_BYTES: usize = GREETING.len() + 4;
/// Pause between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);
/// A stranger that connects and says nothing is dropped after this time.
const GREETING_TIME: Duration = Duration::from_secs(5);

/// Members joined by TCP.
#[derive(Debug)]
pub struct TcpTransport {
    cluster: Vec<SocketAddr>,
    /// This member's number: the place of its address in the cluster.
    own: usize,
    listener: PausingListener,
    /// The connection to each member; none to this one.
    peers: Vec<Link>,
    /// Accepted connections whose greeting has not arrived in full.
    strangers: Vec<Stranger>,
    log: Log,
    /// Place of this member's own reading.
    own_place: u64,
    begun: Instant,
    retry_due: Instant,
    room: PollBuffer,
    departures: Vec<(usize, String)>,
}

#[derive(Debug)]
enum Link {
    /// None yet, or the connection to oneself.
    None,
    Connecting(TcpStream),
    Up(Box<Connection>),
    Gone,
}

#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// Position in the log up to which everything is written.
    place: u64,
    buffer: Vec<u8>,
    /// Unread bytes of the buffer.
    from: usize,
    to: usize,
}

#[derive(Debug)]
struct Stranger {
    stream: TcpStream,
    greeting: Vec<u8>,
    since: Instant,
}

/// Sent bytes that some connection has not written yet.
#[derive(Debug, Default)]
struct Log {
    bytes: Vec<u8>,
    /// Position of the first byte.
    start: u64,
}

impl Log {
    fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    fn after(&self, place: u64) -> &[u8] {
        &self.bytes[(place - self.start) as usize..]
    }

    /// Drops what all have, if that is worth moving the rest.
    fn trim(&mut self, least: u64) {
        let done = (least - self.start) as usize;
        if done == self.bytes.len() || done >= LOG_BYTES / 2 {
            self.bytes.drain(..done);
            self.start = least;
        }
    }
}

impl TcpTransport {
    /// Joins the members at `cluster`: listens at the first address that is free here, and connects
    /// to the others as they come.
    ///
    /// # Errors
    /// If no address of the cluster is free on this host.
    pub fn open(cluster: &[SocketAddr]) -> io::Result<Self> {
        let mut refusal = io::Error::new(ErrorKind::InvalidInput, "the cluster has no address");
        for (own, address) in cluster.iter().enumerate() {
            match tcp::listen(*address, cluster.len() as u32) {
                Ok(listener) => return Ok(Self::listening(cluster.to_vec(), own, listener)),
                Err(error) => refusal = error,
            }
        }
        let what = format!("no address of the cluster is free on this host: {refusal}");
        Err(io::Error::new(refusal.kind(), what))
    }

    fn listening(cluster: Vec<SocketAddr>, own: usize, listener: TcpListener) -> Self {
        let peers = cluster.iter().map(|_| Link::None).collect();
        Self {
            cluster,
            own,
            listener: PausingListener::new(listener),
            peers,
            strangers: Vec::new(),
            log: Log::default(),
            own_place: 0,
            begun: Instant::now(),
            retry_due: Instant::now(),
            room: PollBuffer::default(),
            departures: Vec::new(),
        }
    }

    /// Connects to earlier members, and takes connections of later ones.
    fn connect(&mut self) -> io::Result<()> {
        if self.is_connected() {
            return Ok(());
        }
        let now = Instant::now();
        let is_due = now >= self.retry_due;
        for at in 0..self.own {
            match std::mem::replace(&mut self.peers[at], Link::None) {
                // A member that has not come yet refuses.
                Link::None if is_due => {
                    let address = self.cluster[at];
                    let attempt = tcp::connect(Some(self.cluster[self.own].ip()), address);
                    self.peers[at] = attempt.map_or(Link::None, Link::Connecting);
                }
                Link::Connecting(stream) => match tcp::established(&stream) {
                    Ok(true) => self.peers[at] = self.greet(stream)?,
                    Ok(false) => self.peers[at] = Link::Connecting(stream),
                    Err(_) => {}
                },
                other => self.peers[at] = other,
            }
        }
        if is_due {
            self.retry_due = now + RETRY;
        }
        let now_ns = self.now_ns();
        while let Some((stream, _)) = self.listener.accept(now_ns) {
            tcp::tune(&stream, &TcpOptions::default())?;
            self.strangers.push(Stranger { stream, greeting: Vec::new(), since: now });
        }
        for mut stranger in std::mem::take(&mut self.strangers) {
            match stranger.number(self.own, self.peers.len()) {
                Ok(Some(at)) => {
                    // A member that comes again takes the place of the earlier one.
                    self.peers[at] = self.link(stranger.stream);
                }
                Ok(None) if now.duration_since(stranger.since) < GREETING_TIME => {
                    self.strangers.push(stranger);
                }
                Ok(None) | Err(_) => {}
            }
        }
        // Never asked for their greeting from now on: their bytes would end every sleep.
        if self.is_connected() {
            self.strangers.clear();
        }
        Ok(())
    }

    /// Whether connections to all members were made: no further ones are taken.
    fn is_connected(&self) -> bool {
        self.peers.iter().enumerate().all(|(at, link)| at == self.own || link.is_final())
    }

    /// Nanoseconds since this member began, the clock of the listener.
    fn now_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Says who this member is; the few bytes always fit into a new connection.
    fn greet(&self, stream: TcpStream) -> io::Result<Link> {
        tcp::tune(&stream, &TcpOptions::default())?;
        let mut greeting = GREETING.to_vec();
        greeting.extend_from_slice(&(self.own as u32).to_le_bytes());
        match raw_io::write(&stream, &greeting) {
            Ok(GREETING_BYTES) => Ok(self.link(stream)),
            _ => Ok(Link::None),
        }
    }

    fn link(&self, stream: TcpStream) -> Link {
        let place = self.log.end();
        let buffer = vec![0; READ_BYTES];
        Link::Up(Box::new(Connection { stream, place, buffer, from: 0, to: 0 }))
    }

    /// Writes as much as connections take.
    fn flush(&mut self) {
        let end = self.log.end();
        let mut least = self.own_place;
        for (at, link) in self.peers.iter_mut().enumerate() {
            let Link::Up(connection) = link else { continue };
            while connection.place < end {
                match raw_io::write(&connection.stream, self.log.after(connection.place)) {
                    Ok(count) => connection.place += count as u64,
                    Err(error) if is_busy(&error) => break,
                    Err(error) => {
                        self.departures.push((at, format!("lost its connection ({error})")));
                        *link = Link::Gone;
                        break;
                    }
                }
            }
            if let Link::Up(connection) = link {
                least = least.min(connection.place);
            }
        }
        self.log.trim(least);
    }
}

impl Link {
    /// Whether nothing has to be done to bring it up.
    const fn is_final(&self) -> bool {
        matches!(self, Self::Up(_) | Self::Gone)
    }
}

impl Stranger {
    /// The number of the member at the other end; none if it has not been said yet.
    fn number(&mut self, own: usize, members: usize) -> io::Result<Option<usize>> {
        let mut bytes = [0; GREETING_BYTES];
        let missing = GREETING_BYTES - self.greeting.len();
        match self.stream.read(&mut bytes[..missing]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.greeting.extend_from_slice(&bytes[..count]),
            Err(error) if is_busy(&error) => {}
            Err(error) => return Err(error),
        }
        let Some(number) = self.greeting.get(GREETING.len()..GREETING_BYTES) else {
            return Ok(None);
        };
        let number = number.iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte));
        let is_ours = self.greeting.starts_with(&GREETING) && number > own && number < members;
        if is_ours { Ok(Some(number)) } else { Err(ErrorKind::InvalidData.into()) }
    }
}

impl Connection {
    /// Reads once and hands over whole messages; returns their number.
    fn read(
        &mut self,
        from: SenderId,
        handler: &mut impl FnMut(GroupEvent<'_>),
    ) -> io::Result<usize> {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        match raw_io::read(&self.stream, &mut self.buffer[self.to..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => self.to += count,
            Err(error) if is_busy(&error) => return Ok(0),
            Err(error) => return Err(error),
        }
        let (used, count) = split(&self.buffer[..self.to], usize::MAX, |bytes| {
            handler(GroupEvent::Message { from, bytes });
        })?;
        self.from = used;
        Ok(count)
    }
}

/// Hands over the whole messages in `bytes`, `limit` at most; returns their bytes and their number.
fn split(bytes: &[u8], limit: usize, mut each: impl FnMut(&[u8])) -> io::Result<(usize, usize)> {
    let (mut used, mut count) = (0, 0);
    while count < limit
        && let Some((length, behind)) = bytes[used..].split_first_chunk::<LENGTH_BYTES>()
    {
        let length = u32::from_le_bytes(*length) as usize;
        if length > LONGEST {
            let what = format!("a message of {length} bytes is announced");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let Some(message) = behind.get(..length) else { break };
        each(message);
        used += LENGTH_BYTES + length;
        count += 1;
    }
    Ok((used, count))
}

fn is_busy(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

impl GroupTransport for TcpTransport {
    fn longest_message(&self) -> usize {
        LONGEST
    }

    fn try_send(&mut self, bytes: &[u8]) -> Result<(), SendRefusal> {
        if self.log.bytes.len() + LENGTH_BYTES + bytes.len() > LOG_BYTES {
            self.flush();
            if self.log.bytes.len() + LENGTH_BYTES + bytes.len() > LOG_BYTES {
                return Err(SendRefusal::Full);
            }
        }
        let length = (bytes.len() as u32).to_le_bytes();
        self.log.bytes.extend_from_slice(&length);
        self.log.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn poll(
        &mut self,
        limit: usize,
        handler: &mut impl FnMut(GroupEvent<'_>),
    ) -> io::Result<usize> {
        self.connect()?;
        let own = SenderId(self.own as u64);
        let (used, mut count) = split(self.log.after(self.own_place), limit, |bytes| {
            handler(GroupEvent::Message { from: own, bytes });
        })?;
        self.own_place += used as u64;
        for (at, link) in self.peers.iter_mut().enumerate() {
            let Link::Up(connection) = link else { continue };
            match connection.read(SenderId(at as u64), handler) {
                Ok(read) => count += read,
                Err(error) => {
                    let why = match error.kind() {
                        ErrorKind::UnexpectedEof => "closed its connection".to_owned(),
                        _ => format!("lost its connection ({error})"),
                    };
                    self.departures.push((at, why));
                    *link = Link::Gone;
                }
            }
        }
        if count == 0 || self.log.bytes.len() >= GATHERED {
            self.flush();
        }
        for (at, why) in self.departures.drain(..) {
            handler(GroupEvent::Left { from: SenderId(at as u64), why });
            count += 1;
        }
        Ok(count)
    }

    fn wait(&mut self, limit: Duration) {
        let (end, mut limit) = (self.log.end(), limit);
        let (is_connected, now_ns) = (self.is_connected(), self.now_ns());
        let mut set = self.room.clear();
        // Nothing accepts further connections: one that waited would end every sleep.
        if !is_connected {
            if let Some(until) = self.listener.paused_until() {
                limit = limit.min(Duration::from_nanos(until.saturating_sub(now_ns)));
            }
            if let Some(listener) = self.listener.waited_for() {
                set.add(listener.as_fd(), false);
            }
        }
        for link in &self.peers {
            match link {
                Link::Up(connection) => {
                    set.add(connection.stream.as_fd(), connection.place < end);
                }
                Link::Connecting(stream) => {
                    set.add(stream.as_fd(), true);
                }
                Link::None => limit = limit.min(RETRY),
                Link::Gone => {}
            }
        }
        for stranger in &self.strangers {
            set.add(stranger.stream.as_fd(), false);
        }
        if self.own_place == end {
            set.wait(Some(limit));
        }
    }

    fn members(&self) -> Option<usize> {
        Some(1 + self.peers.iter().filter(|link| matches!(link, Link::Up(_))).count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::Ipv4Addr;
    use std::os::fd::OwnedFd;

    /// Longer than anything here takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn listening() -> (TcpListener, SocketAddr) {
        let listener = tcp::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 8).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn members_sleep_while_the_system_accepts_nothing() {
        // A connected socket accepts nothing, as a listener without a free descriptor.
        let (far, address) = listening();
        let refusing = OwnedFd::from(TcpStream::connect(address).unwrap()).into();
        drop(far);
        let mut member = TcpTransport::listening(vec![address; 2], 0, refusing);
        member.poll(10, &mut |_| ()).unwrap();
        let until = member.listener.paused_until().expect("a pause");
        let mut sleeps = 0;
        while member.now_ns() < until {
            member.wait(PATIENCE);
            sleeps += 1;
        }
        // Each lasts as long as the one between two attempts to connect, or to the pause's end.
        assert!(sleeps <= 3, "{sleeps}");
    }

    #[test]
    fn a_connection_that_is_not_taken_ends_no_sleep() {
        let (listener, address) = listening();
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let cluster = vec![address, other.local_addr().unwrap()];
        let mut first = TcpTransport::listening(cluster.clone(), 0, listener);
        other.set_nonblocking(true).unwrap();
        let mut second = TcpTransport::listening(cluster, 1, other);
        let start = Instant::now();
        while first.members() != Some(2) || second.members() != Some(2) {
            assert!(start.elapsed() < PATIENCE, "they do not connect");
            for member in [&mut first, &mut second] {
                member.poll(10, &mut |_| ()).unwrap();
            }
        }
        let _stranger = TcpStream::connect(address).unwrap();
        let (start, limit) = (Instant::now(), Duration::from_millis(20));
        first.wait(limit);
        assert!(start.elapsed() >= limit, "woken after {:?}", start.elapsed());
    }

    #[test]
    fn strangers_that_do_not_greet_end_no_sleep_of_a_whole_cluster() {
        let (listener, address) = listening();
        let mut first = TcpTransport::listening(vec![address; 2], 0, listener);
        let mut stranger = TcpStream::connect(address).unwrap();
        let start = Instant::now();
        while first.strangers.is_empty() {
            assert!(start.elapsed() < PATIENCE, "the stranger is not accepted");
            first.poll(10, &mut |_| ()).unwrap();
        }
        let mut second = TcpStream::connect(address).unwrap();
        second.write_all(&GREETING).unwrap();
        second.write_all(&1_u32.to_le_bytes()).unwrap();
        while first.members() != Some(2) {
            assert!(start.elapsed() < PATIENCE, "the member does not get in");
            first.poll(10, &mut |_| ()).unwrap();
        }
        // A greeting that comes too late, and may be refused by now.
        let _ = stranger.write_all(b"!");
        let (start, limit) = (Instant::now(), Duration::from_millis(20));
        first.wait(limit);
        assert!(start.elapsed() >= limit, "woken after {:?}", start.elapsed());
    }
}
