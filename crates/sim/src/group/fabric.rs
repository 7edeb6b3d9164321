//! The network between the members, and the queue of what happens next.

use crate::event_queue::EventQueue;
use crate::group::fault::GroupFault;
use crate::group::note::Note;
use crate::group::outlet::Outgoing;
use crate::group::process::Slot;
use crate::group::scenario::GroupScenario;
use crate::group::stream_link::StreamLink;
use crate::history::History;
use crate::network::{Fate, Host, Network, Socket, address};
use crate::rng::Millionths;
use crate::rng::SimRng;
use lanecast_membership::{Departure, MemberId};
use lanecast_protocol::{MILLISECOND, Nanos};
use std::collections::BTreeMap;
use std::rc::Rc;

/// Notes to keep for a report.
const NOTES: usize = 600;
/// Start of all runs, so that no time is 0.
pub(super) const BEGIN: Nanos = 1_000_000_000;

/// An event of the simulation. Processes are named by place and incarnation.
#[derive(Debug)]
pub(super) enum GroupEvent {
    Arrives(usize, u32, Rc<[u8]>),
    /// Something may have come by a stream.
    Releases(StreamKey),
    /// A probed process looks at its connections: the prober and its incarnation come last.
    Answers(usize, u32, (usize, u32)),
    Wakes(usize, u32),
    Serves(usize, u32),
    Sends(usize, u32),
    Starts(usize),
    Signal(usize, u32, MemberId, Departure),
    Befalls(usize),
}

/// A stream: from, to, and whether it carries probes.
pub(super) type StreamKey = (usize, usize, bool);

/// Something on a stream.
#[derive(Clone, Debug)]
pub(super) enum Parcel {
    /// A frame for this incarnation.
    Frame(u32, Rc<[u8]>),
    /// A probe of this incarnation, by that one.
    Probe(u32, u32),
    /// An answer for this incarnation, of a member.
    Answer(u32, MemberId),
}

/// The longest time between two looks of a process at its connections.
const LOOK: Nanos = 20 * MILLISECOND;

/// Time from the end of a member that has left to the word of the others' transports.
const STREAM_END: Nanos = MILLISECOND;

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
    pub answers: u64,
    pub held: u64,
    /// Starts of an incarnation that is no later than the former one, by its clock.
    pub early: u64,
    pub replaced: u64,
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
    /// Frames travel by streams that lose with this probability.
    stream_loss: Option<Millionths>,
    /// Members probe each other by streams that lose with this probability.
    probe_loss: Option<Millionths>,
    streams: BTreeMap<StreamKey, StreamLink<Parcel>>,
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
            stream_loss: scenario.stream_loss,
            probe_loss: scenario.probe_loss,
            streams: BTreeMap::new(),
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
            let incarnation = process.incarnation;
            if let Some(loss) = self.stream_loss {
                let parcel = Parcel::Frame(incarnation, bytes.clone());
                self.send_by_stream((from, slot, false), loss, bytes.len(), parcel);
                continue;
            }
            let to = address(host(slot), host(slot));
            let (events, lost) = (&mut self.events, &mut self.totals.lost);
            self.network.send(self.now, host(from), to, bytes.len(), |_, fate| match fate {
                Fate::Arrives(at) => {
                    events.add(at, GroupEvent::Arrives(slot, incarnation, bytes.clone()));
                }
                _ => *lost += 1,
            });
        }
    }

    /// The transports of the others tell that a member which has left has closed its stream.
    pub fn end_streams(&mut self, slots: &[Slot], gone: MemberId) {
        let at = self.now + STREAM_END;
        for (slot, there) in slots.iter().enumerate() {
            let Some(process) = there.process.as_ref().filter(|it| it.id != gone) else { continue };
            let told = GroupEvent::Signal(slot, process.incarnation, gone, Departure::Left);
            self.events.add(at, told);
        }
    }

    /// Sends by a stream. What the network loses besides is lost: the connection was replaced.
    fn send_by_stream(&mut self, key: StreamKey, loss: Millionths, bytes: usize, parcel: Parcel) {
        let (from, to, _) = key;
        let mut arrival = None;
        let address = address(host(to), host(to));
        self.network.send(self.now, host(from), address, bytes, |_, fate| match fate {
            Fate::Arrives(at) => arrival = arrival.or(Some(at)),
            _ => arrival = None,
        });
        let Some(at) = arrival else {
            self.totals.lost += 1;
            return;
        };
        let stream = self.streams.entry(key).or_insert_with(|| StreamLink::new(loss));
        let due = stream.send(self.now, at, parcel, &mut self.rng);
        self.totals.held += u64::from(due > at);
        self.events.add(due, GroupEvent::Releases(key));
    }

    /// The next parcel that has come by a stream.
    pub(super) fn release(&mut self, key: StreamKey) -> Option<Parcel> {
        self.streams.get_mut(&key)?.release(self.now)
    }

    /// Asks the process of a member for a sign of life, if the members watch each other.
    pub(super) fn probe(&mut self, slots: &[Slot], from: usize, id: MemberId) {
        let (Some(loss), Some(prober)) = (self.probe_loss, &slots[from].process) else { return };
        let is_it = |slot: &&Slot| slot.process.as_ref().is_some_and(|process| process.id == id);
        let Some(to) = slots.iter().position(|slot| is_it(&slot)) else { return };
        let Some(probed) = &slots[to].process else { return };
        let parcel = Parcel::Probe(probed.incarnation, prober.incarnation);
        self.send_by_stream((from, to, true), loss, 1, parcel);
    }

    /// A process looks at its connections soon.
    pub(super) fn answer_soon(&mut self, slot: usize, incarnation: u32, prober: (usize, u32)) {
        let at = self.now + 1 + self.rng.up_to(LOOK);
        self.events.add(at, GroupEvent::Answers(slot, incarnation, prober));
    }

    /// A process answers a probe.
    pub(super) fn answer(&mut self, slot: usize, id: MemberId, (to, incarnation): (usize, u32)) {
        let Some(loss) = self.probe_loss else { return };
        self.totals.answers += 1;
        self.send_by_stream((slot, to, true), loss, 1, Parcel::Answer(incarnation, id));
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

    /// A process starts: its streams are new.
    pub(super) fn renew_streams(&mut self, slot: usize) {
        self.streams.retain(|&(from, to, _), _| from != slot && to != slot);
    }

    /// Streams lose nothing from now on.
    pub fn calm_streams(&mut self) {
        self.stream_loss = self.stream_loss.map(|_| 0);
        self.probe_loss = self.probe_loss.map(|_| 0);
        self.streams.values_mut().for_each(StreamLink::calm);
    }

    /// All processes reach each other.
    pub fn heal(&mut self, places: usize) {
        for from in 0..places {
            (0..places).for_each(|to| self.network.heal(host(from), host(to)));
        }
    }
}
