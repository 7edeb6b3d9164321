//! The network between the members, and the queue of what happens next.

use crate::event_queue::EventQueue;
use crate::group::fault::GroupFault;
use crate::group::note::Note;
use crate::group::outlet::Outgoing;
use crate::group::process::Slot;
use crate::group::scenario::GroupScenario;
use crate::history::History;
use crate::network::{Fate, Host, Network, Socket, address};
use crate::rng::SimRng;
use lanecast_membership::MemberId;
use lanecast_protocol::Nanos;
use std::rc::Rc;

/// Notes to keep for a report.
const NOTES: usize = 600;
/// Start of all runs, so that no time is 0.
pub(super) const BEGIN: Nanos = 1_000_000_000;

/// An event of the simulation. Processes are named by place and incarnation.
#[derive(Debug)]
pub(super) enum GroupEvent {
    Arrives(usize, u32, Rc<[u8]>),
    Wakes(usize, u32),
    Serves(usize, u32),
    Sends(usize, u32),
    Starts(usize),
    Signal(usize, u32, MemberId),
    Befalls(usize),
}

/// Counts of a run.
#[derive(Clone, Copy, Debug, Default)]
#[allow(missing_docs, reason = "the names say it; a frame to all counts once")]
pub struct Totals {
    pub frames: u64,
    pub lost: u64,
    pub repairs: u64,
    pub refused_frames: u64,
    pub refused_sends: u64,
    pub crashes: u64,
    pub hangs: u64,
    pub partitions: u64,
    pub leaves: u64,
}

/// Fabric of all members.
#[derive(Debug)]
pub struct GroupFabric {
    /// Now.
    pub now: Nanos,
    /// Counts so far.
    pub totals: Totals,
    /// Latest events.
    pub history: History<Note>,
    /// Network.
    pub network: Network,
    pub(super) events: EventQueue<GroupEvent>,
    pub(super) rng: SimRng,
    loops_back: bool,
}

/// Host of a place.
const fn host(slot: usize) -> Host {
    slot as Host + 1
}

impl GroupFabric {
    /// Creates the fabric of a scenario, with its starts and faults to come.
    pub fn new(scenario: &GroupScenario) -> Self {
        let mut rng = SimRng::new(scenario.seed ^ 0x6d65_6d62);
        let mut network = Network::new(scenario.conditions, rng.fork());
        let mut events = EventQueue::new();
        for (number, (at, _)) in scenario.faults.iter().enumerate() {
            events.add(BEGIN + at, GroupEvent::Befalls(number));
        }
        for (slot, place) in scenario.places.iter().enumerate() {
            if let Some(egress) = scenario.egress {
                network.set_egress(host(slot), egress);
            }
            events.add(BEGIN + place.starts, GroupEvent::Starts(slot));
        }
        Self {
            now: BEGIN,
            totals: Totals::default(),
            history: History::new(NOTES),
            network,
            events,
            rng,
            loops_back: scenario.loops_back,
        }
    }

    /// Time since the start.
    pub const fn elapsed(&self) -> Nanos {
        self.now - BEGIN
    }

    /// Notes an event at a place.
    pub fn note(&mut self, slot: usize, note: Note) {
        self.history.note(self.elapsed(), slot as Socket, note);
    }

    /// Sends a frame to one or to all processes.
    pub fn transmit(&mut self, slots: &[Slot], from: usize, frame: &Outgoing) {
        let bytes = &frame.bytes;
        let head = Note::head(bytes);
        self.note(from, Note::Sends { to: frame.to, head, bytes: bytes.len() });
        self.totals.frames += 1;
        self.totals.repairs += u64::from(bytes.get(1) == Some(&5));
        for (slot, there) in slots.iter().enumerate() {
            let Some(process) = &there.process else { continue };
            let wanted = frame.to.map_or(slot != from || self.loops_back, |to| to == process.id);
            if !wanted {
                continue;
            }
            let (to, incarnation) = (address(host(slot), host(slot)), process.incarnation);
            let (events, lost) = (&mut self.events, &mut self.totals.lost);
            self.network.send(self.now, host(from), to, bytes.len(), |_, fate| match fate {
                Fate::Arrives(at) => {
                    events.add(at, GroupEvent::Arrives(slot, incarnation, bytes.clone()));
                }
                _ => *lost += 1,
            });
        }
    }

    /// Applies a fault of the network; false for one of a process.
    pub fn apply(&mut self, fault: &GroupFault, places: usize) -> bool {
        match *fault {
            GroupFault::Partition(ref sides) => {
                self.totals.partitions += 1;
                for from in 0..places {
                    for to in (0..places).filter(|to| sides[*to] != sides[from]) {
                        self.network.cut(host(from), host(to));
                    }
                }
            }
            GroupFault::Cut(from, to) => self.network.cut(host(from), host(to)),
            GroupFault::Mend(from, to) => self.network.heal(host(from), host(to)),
            GroupFault::Heal => self.heal(places),
            GroupFault::Conditions(conditions) => self.network.set_fabric(conditions),
            _ => return false,
        }
        true
    }

    /// All processes reach each other.
    pub fn heal(&mut self, places: usize) {
        for from in 0..places {
            (0..places).for_each(|to| self.network.heal(host(from), host(to)));
        }
    }
}
