//! A TCP connection between a subscriber and the publisher.

use crate::link::LinkConditions;
use crate::pipe::Pipe;
use crate::rng::SimRng;
use lanecast_protocol::Nanos;
use lanecast_wire::net::{Frame, frame_length};

/// Capacity of each direction, in bytes.
const CAPACITY: usize = 1 << 16;

/// One direction: bytes still to write, and bytes read.
#[derive(Debug)]
pub struct Direction {
    pipe: Pipe,
    /// Bytes that did not fit.
    rest: Vec<u8>,
    /// Bytes of an incomplete frame.
    begun: Vec<u8>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Number of the subscriber.
    pub subscriber: usize,
    /// Session of the connection.
    pub session: usize,
    /// Direction from the publisher.
    pub down: Direction,
    /// Direction to the publisher.
    pub up: Direction,
    /// The publisher has accepted it.
    pub is_open: bool,
    /// The connection is broken.
    pub is_broken: bool,
}

impl Direction {
    const fn new() -> Self {
        Self { pipe: Pipe::new(CAPACITY), rest: Vec::new(), begun: Vec::new() }
    }

    /// Writes as far as there is room; returns the number of bytes and their arrival.
    pub fn write(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        conditions: &LinkConditions,
        rng: &mut SimRng,
    ) -> (usize, Nanos) {
        self.pipe.write(now, bytes, conditions, rng)
    }

    /// Writes everything, partly later.
    pub fn write_all(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        conditions: &LinkConditions,
        rng: &mut SimRng,
    ) -> Nanos {
        self.rest.extend_from_slice(bytes);
        let (written, at) = self.pipe.write(now, &self.rest, conditions, rng);
        self.rest.drain(..written);
        at
    }

    /// Reads arrived bytes; returns whether the pipe was full before.
    pub fn read(&mut self, now: Nanos, most: usize) -> bool {
        self.pipe.read(now, most, &mut self.begun)
    }

    /// Takes a whole frame of the bytes read.
    ///
    /// # Panics
    /// If the bytes are no frame: streams arrive as they were sent.
    pub fn take_frame(&mut self) -> Option<Vec<u8>> {
        let length = frame_length(&self.begun).expect("frames only")?;
        (length <= self.begun.len()).then(|| self.begun.drain(..length).collect())
    }

    /// Arrival of the next bytes.
    pub fn next_at(&self) -> Option<Nanos> {
        self.pipe.next_at()
    }

    /// Delays all bytes until `at`.
    pub fn delay_until(&mut self, at: Nanos) {
        self.pipe.delay_until(at);
    }
}

impl Connection {
    /// Creates a connection that the publisher has not accepted yet.
    pub const fn new(subscriber: usize, session: usize) -> Self {
        Self {
            subscriber,
            session,
            down: Direction::new(),
            up: Direction::new(),
            is_open: false,
            is_broken: false,
        }
    }

    /// Whether the connection works.
    pub const fn is_live(&self) -> bool {
        self.is_open && !self.is_broken
    }
}

/// The frame that fills `bytes`.
pub fn whole(bytes: &[u8]) -> Option<Frame<'_>> {
    Frame::split(bytes).map(|(frame, _)| frame)
}
