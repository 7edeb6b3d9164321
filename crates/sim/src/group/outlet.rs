//! Frames and events of one call of a member.

use crate::group::event::OwnedEvent;
use crate::rng::{Millionths, SimRng};
use lanecast_membership::{Event, MemberId, Outlet};
use std::rc::Rc;

/// A frame on its way out.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// The one receiver; `None`: all members.
    pub to: Option<MemberId>,
    /// The frame.
    pub bytes: Rc<[u8]>,
}

/// Collects frames and events of one call, and refuses frames by chance.
#[derive(Debug)]
pub struct Collector {
    /// Frames, in their order.
    pub frames: Vec<Outgoing>,
    /// Events, in their order.
    pub events: Vec<OwnedEvent>,
    /// Members that are asked for a sign of life.
    pub probes: Vec<MemberId>,
    /// Refused frames.
    pub refused: u64,
    refuses: Millionths,
    rng: SimRng,
}

impl Collector {
    /// Creates a collector that refuses each frame with a probability of `refuses`.
    pub const fn new(refuses: Millionths, rng: SimRng) -> Self {
        Self {
            frames: Vec::new(),
            events: Vec::new(),
            probes: Vec::new(),
            refused: 0,
            refuses,
            rng,
        }
    }

    fn send(&mut self, to: Option<MemberId>, head: &[u8], body: &[u8]) -> bool {
        if self.rng.happens(self.refuses) {
            self.refused += 1;
            return false;
        }
        let bytes: Vec<u8> = [head, body].concat();
        self.frames.push(Outgoing { to, bytes: bytes.into() });
        true
    }
}

impl Outlet for Collector {
    fn broadcast(&mut self, head: &[u8], body: &[u8]) -> bool {
        self.send(None, head, body)
    }

    fn direct(&mut self, to: MemberId, head: &[u8], body: &[u8]) -> bool {
        self.send(Some(to), head, body)
    }

    fn probe(&mut self, to: MemberId) {
        self.probes.push(to);
    }

    fn event(&mut self, event: Event<'_>) {
        self.events.extend(OwnedEvent::copy(&event));
    }
}
