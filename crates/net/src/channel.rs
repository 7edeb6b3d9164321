//! A subscriber's connection to one publisher.

use crate::place::Place;
use crate::presence::Descriptor;
use crate::settings::nanos;
use crate::streams::is_passing;
use lanecast_os::direct;
use lanecast_os::tcp::{self, TcpOptions};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::sync::Arc;

/// How much is read at a time.
pub(crate) const READ_BYTES: usize = 320 << 10;
/// Frames for the publisher that the connection has not taken yet: it takes few.
const UNSENT_MAX: usize = 64 << 10;
/// The first pause before connecting again, and the longest.
const RETRY: Nanos = 10 * MILLISECOND;
const RETRY_MAX: Nanos = 1_000 * MILLISECOND;
/// Parts of the liveness that a connection may take to be made: the system itself asks ever more
/// seldom, and several tries must fit into the time that the publisher keeps the place for.
const CONNECT_PART: Nanos = 10;
/// The least of it.
const CONNECT_MIN: Nanos = 200 * MILLISECOND;

/// Acknowledgements are asked to wait again after this: the system forgets, 40 ms after the last.
const DELAY_ACKS_EVERY: Nanos = 5 * MILLISECOND;

/// The connection, and what is under way on it.
#[derive(Debug)]
pub(crate) struct Channel {
    local: IpAddr,
    address: SocketAddr,
    options: TcpOptions,
    stream: Option<Arc<TcpStream>>,
    is_open: bool,
    /// The last connection was refused by the publisher's host.
    is_refused: bool,
    partial: Vec<u8>,
    unsent: Vec<u8>,
    retry_at: Option<Nanos>,
    /// A connection that is not there by then is given up.
    connect_by: Nanos,
    pause: Nanos,
    /// When it was there.
    opened: Nanos,
    /// When acknowledgements were last asked to wait.
    delayed: Nanos,
}

impl Channel {
    pub(crate) fn open(place: &Place, address: SocketAddr, now: Nanos) -> io::Result<Self> {
        let options = place.tcp_options();
        let stream = tcp::connect(Some(place.address), address)?;
        tcp::tune(&stream, &options)?;
        Ok(Self {
            local: place.address,
            address,
            options,
            stream: Some(Arc::new(stream)),
            is_open: false,
            is_refused: false,
            partial: Vec::new(),
            unsent: Vec::new(),
            retry_at: None,
            connect_by: connect_by(now, nanos(place.settings.liveness)),
            pause: RETRY,
            opened: now,
            delayed: 0,
        })
    }

    /// What has come behind what was left of the last frame; `None`: nothing.
    pub(crate) fn read(&mut self, now: Nanos, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if !self.is_open && !self.opens(now)? {
            return Ok(None);
        }
        if !self.unsent.is_empty() {
            self.write(&[]);
        }
        let Some(stream) = self.stream.as_deref() else { return Ok(None) };
        let kept = self.partial.len();
        match direct::read(stream, &mut buffer[kept..]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => {
                if now.wrapping_sub(self.delayed) >= DELAY_ACKS_EVERY {
                    self.delayed = now;
                    // Where the system refuses, it acknowledges as it likes.
                    drop(tcp::delay_acks(stream));
                }
                buffer[..kept].copy_from_slice(&self.partial);
                self.partial.clear();
                Ok(Some(kept + length))
            }
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a connection that was being made is there now.
    #[cold]
    fn opens(&mut self, now: Nanos) -> io::Result<bool> {
        let Some(stream) = self.stream.as_deref() else { return Ok(false) };
        let opened = tcp::established(stream);
        self.is_refused = opened.as_ref().is_err_and(is_refusal);
        self.is_open = opened?;
        self.opened = now;
        Ok(self.is_open)
    }

    /// Whether the last connection was refused by the publisher's host.
    pub(crate) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    pub(crate) fn keep_partial(&mut self, bytes: &[u8]) {
        self.partial.extend_from_slice(bytes);
    }

    /// Writes a frame, or keeps it until there is room.
    pub(crate) fn write(&mut self, frame: &[u8]) {
        if self.unsent.len() + frame.len() <= UNSENT_MAX {
            self.unsent.extend_from_slice(frame);
        }
        let Some(stream) = self.stream.as_deref().filter(|_| self.is_open) else { return };
        while !self.unsent.is_empty() {
            match direct::write(stream, &self.unsent) {
                Ok(length) => drop(self.unsent.drain(..length)),
                // The reading side notices a broken connection.
                Err(_) => break,
            }
        }
    }

    /// The connection is broken: another one follows after a pause.
    pub(crate) fn break_off(&mut self, now: Nanos) {
        // One that ends at once would otherwise be followed by others as fast as can be.
        if self.is_open && now.saturating_sub(self.opened) >= RETRY_MAX {
            self.pause = RETRY;
        }
        self.stream = None;
        self.is_open = false;
        self.partial.clear();
        self.unsent.clear();
        self.retry_at = Some(now.saturating_add(self.pause));
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// Whether a connection is under way for too long.
    pub(crate) fn is_overdue(&mut self, now: Nanos) -> bool {
        self.stream.is_some()
            && !self.is_open
            && self.connect_by <= now
            // A process that stood still may not have looked since it was made.
            && !self.opens(now).unwrap_or(false)
    }

    /// Whether bytes wait to be read.
    pub(crate) fn has_bytes(&self) -> bool {
        let stream = self.stream.as_deref().filter(|_| self.is_open);
        stream.is_some_and(|stream| stream.peek(&mut [0]).is_ok_and(|length| length > 0))
    }

    /// Connects again if it is time; says whether it did.
    pub(crate) fn retry(&mut self, now: Nanos, liveness: Nanos) -> bool {
        if self.retry_at.is_none_or(|at| at > now) {
            return false;
        }
        let opened = tcp::connect(Some(self.local), self.address)
            .and_then(|stream| tcp::tune(&stream, &self.options).map(|()| stream));
        match opened {
            Ok(stream) => {
                self.stream = Some(Arc::new(stream));
                self.retry_at = None;
                self.connect_by = connect_by(now, liveness);
                true
            }
            Err(error) => {
                self.is_refused = is_refusal(&error);
                self.break_off(now);
                false
            }
        }
    }

    pub(crate) fn next_deadline(&self) -> Option<Nanos> {
        let connecting = self.stream.is_some() && !self.is_open;
        self.retry_at.or(connecting.then_some(self.connect_by))
    }

    pub(crate) fn descriptor(&self) -> Option<(Descriptor, bool)> {
        let wants_room = !self.is_open || !self.unsent.is_empty();
        let stream = self.stream.as_ref()?;
        Some((Descriptor::Tcp(Arc::clone(stream)), wants_room))
    }
}

fn is_refusal(error: &io::Error) -> bool {
    error.kind() == ErrorKind::ConnectionRefused
}

/// When a connection that is begun now is given up.
fn connect_by(now: Nanos, liveness: Nanos) -> Nanos {
    now.saturating_add((liveness / CONNECT_PART).max(CONNECT_MIN))
}
