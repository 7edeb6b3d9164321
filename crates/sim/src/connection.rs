//! A TCP connection between a subscriber and the publisher.

use crate::dice::Dice;
use crate::link::Weather;
use crate::pipe::Pipe;
use lanecast_protocol::Nanos;
use lanecast_wire::net::{Frame, frame_length};

/// How many bytes each direction holds.
const CAPACITY: usize = 1 << 16;

/// One end's view of a direction: what it still has to write, and what it has read.
#[derive(Debug)]
pub struct Direction {
    pipe: Pipe,
    /// Bytes that there was no room for.
    rest: Vec<u8>,
    /// Bytes that are no whole frame yet.
    begun: Vec<u8>,
}

/// A connection.
#[derive(Debug)]
pub struct Connection {
    /// Whose.
    pub subscriber: usize,
    /// The session that it is for.
    pub session: usize,
    /// From the publisher.
    pub down: Direction,
    /// To the publisher.
    pub up: Direction,
    /// The publisher has accepted it.
    pub is_open: bool,
    /// No byte comes through any more.
    pub is_broken: bool,
}

impl Direction {
    const fn new() -> Self {
        Self { pipe: Pipe::new(CAPACITY), rest: Vec::new(), begun: Vec::new() }
    }

    /// Writes as much as there is room for; says how much, and when it arrives.
    pub fn write(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        weather: &Weather,
        dice: &mut Dice,
    ) -> (usize, Nanos) {
        self.pipe.write(now, bytes, weather, dice)
    }

    /// Writes all, some of it later.
    pub fn write_all(
        &mut self,
        now: Nanos,
        bytes: &[u8],
        weather: &Weather,
        dice: &mut Dice,
    ) -> Nanos {
        self.rest.extend_from_slice(bytes);
        let (written, at) = self.pipe.write(now, &self.rest, weather, dice);
        self.rest.drain(..written);
        at
    }

    /// Reads what has arrived; whether that ended a jam.
    pub fn read(&mut self, now: Nanos, most: usize) -> bool {
        self.pipe.read(now, most, &mut self.begun)
    }

    /// Takes a whole frame out of what was read.
    ///
    /// # Panics
    /// If what was read is no frame: streams arrive as they were sent.
    pub fn take_frame(&mut self) -> Option<Vec<u8>> {
        let length = frame_length(&self.begun).expect("frames only")?;
        (length <= self.begun.len()).then(|| self.begun.drain(..length).collect())
    }

    /// When the next bytes arrive, or have arrived.
    pub fn next_at(&self) -> Option<Nanos> {
        self.pipe.next_at()
    }

    /// Nothing arrives before `at`.
    pub fn delay_until(&mut self, at: Nanos) {
        self.pipe.delay_until(at);
    }
}

impl Connection {
    /// A connection that the publisher has not accepted yet.
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

    /// Whether bytes come through.
    pub const fn is_live(&self) -> bool {
        self.is_open && !self.is_broken
    }
}

/// The frame that fills `bytes`.
pub fn whole(bytes: &[u8]) -> Option<Frame<'_>> {
    Frame::split(bytes).map(|(frame, _)| frame)
}
