//! Latest events, for the report of a failure.

use crate::network::{Fate, Socket};
use lanecast_protocol::{MICROSECOND, Nanos};
use lanecast_wire::net::{Frame, Kind};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;

/// Event at a socket.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names say it, and nothing but a failure's report reads them")]
pub enum What {
    Sends { to: SocketAddr, kind: Kind, flags: u16, sequence: u64, bytes: usize },
    Loses(Fate),
    Overflows,
    Hears { kind: Kind, flags: u16, sequence: u64, body: usize },
    Publishes { topic: u32, number: u64, bytes: usize },
    IsRefused(&'static str),
    Reads { slot: u32, number: u64, bytes: usize },
    Joins { slot: u32 },
    Loss { slot: u32, first: u64, count: u64 },
    Leaves { slot: u32, why: String },
    Fault(String),
}

impl What {
    /// A frame is sent.
    pub fn sends(to: SocketAddr, bytes: &[u8]) -> Option<Self> {
        let (frame, _) = Frame::split(bytes)?;
        let Frame { kind, flags, sequence, .. } = frame;
        Some(Self::Sends { to, kind, flags, sequence, bytes: bytes.len() })
    }

    /// A frame is received.
    pub const fn hears(frame: &Frame<'_>) -> Self {
        let Frame { kind, flags, sequence, body, .. } = *frame;
        Self::Hears { kind, flags, sequence, body: body.len() }
    }
}

/// Bounded list of events.
#[derive(Debug)]
pub struct History<W = What> {
    notes: VecDeque<(Nanos, Socket, W)>,
    most: usize,
    all: u64,
}

impl<W> History<W> {
    /// Keeps the last `most` events.
    pub fn new(most: usize) -> Self {
        Self { notes: VecDeque::with_capacity(most), most, all: 0 }
    }

    /// Adds an event.
    pub fn note(&mut self, at: Nanos, socket: Socket, what: W) {
        if self.notes.len() == self.most {
            self.notes.pop_front();
        }
        self.notes.push_back((at, socket, what));
        self.all += 1;
    }

    /// Number of events so far.
    pub const fn count(&self) -> u64 {
        self.all
    }
}

impl<W: fmt::Debug> fmt::Display for History<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "the last {} of {} things:", self.notes.len(), self.all)?;
        for (at, socket, what) in &self.notes {
            let (whole, part) = (at / MICROSECOND, at % MICROSECOND);
            writeln!(formatter, "{whole:>10}.{part:03} us  :{socket:<5} {what:?}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_are_kept() {
        let mut history = History::new(2);
        for slot in 0..5 {
            history.note(u64::from(slot) * 1_500, 7, What::Joins { slot });
        }
        let text = history.to_string();
        assert!(text.starts_with("the last 2 of 5 things:"), "{text}");
        assert!(text.contains("6.000 us  :7     Joins { slot: 4 }"), "{text}");
        assert!(!text.contains("slot: 2"), "{text}");
    }
}
