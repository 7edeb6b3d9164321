//! A subscriber's connection to one publisher.

use crate::place::Place;
use crate::presence::Descriptor;
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
    partial: Vec<u8>,
    unsent: Vec<u8>,
    retry_at: Option<Nanos>,
    pause: Nanos,
    /// When acknowledgements were last asked to wait.
    delayed: Nanos,
}

impl Channel {
    pub(crate) fn open(place: &Place, address: SocketAddr) -> io::Result<Self> {
        let options = place.tcp_options();
        let stream = tcp::connect(Some(place.address), address)?;
        tcp::tune(&stream, &options)?;
        Ok(Self {
            local: place.address,
            address,
            options,
            stream: Some(Arc::new(stream)),
            is_open: false,
            partial: Vec::new(),
            unsent: Vec::new(),
            retry_at: None,
            pause: RETRY,
            delayed: 0,
        })
    }

    /// What has come behind what was left of the last frame; `None`: nothing.
    pub(crate) fn read(&mut self, now: Nanos, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        if !self.is_open && !self.opens()? {
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
    fn opens(&mut self) -> io::Result<bool> {
        let Some(stream) = self.stream.as_deref() else { return Ok(false) };
        self.is_open = tcp::established(stream)?;
        if self.is_open {
            self.pause = RETRY;
        }
        Ok(self.is_open)
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
        self.stream = None;
        self.is_open = false;
        self.partial.clear();
        self.unsent.clear();
        self.retry_at = Some(now.saturating_add(self.pause));
        self.pause = (self.pause * 2).min(RETRY_MAX);
    }

    /// Connects again if it is time; says whether it did.
    pub(crate) fn retry(&mut self, now: Nanos) -> bool {
        if self.retry_at.is_none_or(|at| at > now) {
            return false;
        }
        let opened = tcp::connect(Some(self.local), self.address)
            .and_then(|stream| tcp::tune(&stream, &self.options).map(|()| stream));
        match opened {
            Ok(stream) => {
                self.stream = Some(Arc::new(stream));
                self.retry_at = None;
                true
            }
            Err(_) => {
                self.break_off(now);
                false
            }
        }
    }

    pub(crate) const fn next_deadline(&self) -> Option<Nanos> {
        self.retry_at
    }

    pub(crate) fn descriptor(&self) -> Option<(Descriptor, bool)> {
        let wants_room = !self.is_open || !self.unsent.is_empty();
        let stream = self.stream.as_ref()?;
        Some((Descriptor::Tcp(Arc::clone(stream)), wants_room))
    }
}
