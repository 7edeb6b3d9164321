//! A publisher's session, towards any number of receivers.
//!
//! Messages are laid out as datagrams in a window of memory (`window`, `packer`), from where they
//! are sent, and sent again: to a group, to each receiver, or as streams. Receivers are let in
//! (`admission`), report (`status`), hold the sender up or not (`pacing`), and miss things
//! (`repair`). When nothing is sent, signs of life are (`heartbeat`).

mod admission;
mod answers;
mod audience;
mod behind;
mod counters;
mod error;
mod heartbeat;
mod member;
mod pacing;
mod packer;
mod repair;
mod status;
mod stream;
mod transmit;
mod window;

pub use counters::SenderCounters;
pub use error::{StageError, TopicError};
pub use stream::UNJOINED_MAX;

use crate::{MILLISECOND, Nanos, SECOND};
use answers::Answers;
use heartbeat::Heartbeat;
use lanecast_wire::net::{DATAGRAM_MIN, FRAME_MAX, FrameWriter, Kind, NAME_MAX};
use member::Member;
use pacing::Bucket;
use packer::Packer;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use window::Window;

/// The longest datagram: what fits in a UDP packet, in whole steps of the window.
const DATAGRAM_MAX: usize = 65_504;
/// The window holds so many of the longest datagrams at least.
const WINDOW_DATAGRAMS_MIN: usize = 8;
/// A message may take up to this part of the window.
const LONGEST_PART: usize = 4;
/// The most events that wait to be fetched.
const EVENTS_MAX: usize = 256;

/// How datagrams get to the receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// To a multicast group.
    Multicast(SocketAddr),
    /// To each receiver by itself.
    Unicast,
    /// Through connections.
    Stream,
}

/// Which receivers may hold the sender up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// All.
    Slowest,
    /// All, but one that stands still for so long while it holds the sender up is ejected.
    SlowestOrEject(Nanos),
    /// The one that is furthest.
    Fastest,
    /// Those with this tag.
    Tagged(u32),
    /// None: the source sets the pace, and who does not follow loses messages.
    None,
}

/// What a session is like.
#[derive(Clone, Debug)]
pub struct SenderSettings {
    /// The session's number: random.
    pub session: u64,
    /// The number of the first datagram.
    pub first_sequence: u64,
    /// How datagrams get to the receivers.
    pub distribution: Distribution,
    /// Which receivers may hold the sender up.
    pub pacing: Pacing,
    /// The longest datagram (of a stream: frame), in bytes.
    pub datagram_bytes: usize,
    /// The memory for datagrams, in bytes; rounded up to a power of two.
    pub window_bytes: usize,
    /// The longest message, in bytes; at most a quarter of the window.
    pub longest_message: usize,
    /// The most receivers.
    pub receivers_max: usize,
    /// The most topics.
    pub topics_max: usize,
    /// Whether receivers may begin with the oldest that is kept.
    pub late_join: bool,
    /// A receiver that is silent for so long is gone.
    pub liveness: Nanos,
    /// The longest time between two signs of life.
    pub heartbeat: Nanos,
    /// The most data per second, in bytes.
    pub data_rate: Option<u64>,
    /// How much of `data_rate` (or else of `link_rate`) repairs may take beside it, in percent.
    pub repair_share: u32,
    /// What the link carries per second, in bytes.
    pub link_rate: u64,
    /// The process, for people.
    pub pid: u32,
    /// Where chance comes from; secret, since it also makes the cookies.
    pub seed: u64,
}

impl Default for SenderSettings {
    fn default() -> Self {
        Self {
            session: 0,
            first_sequence: 0,
            distribution: Distribution::Unicast,
            pacing: Pacing::Slowest,
            datagram_bytes: 1_472,
            window_bytes: 4 << 20,
            longest_message: 1 << 20,
            receivers_max: 64,
            topics_max: 1_024,
            late_join: false,
            liveness: SECOND,
            heartbeat: 100 * MILLISECOND,
            data_rate: None,
            repair_share: 20,
            link_rate: 1_250_000_000,
            pid: 0,
            seed: 0,
        }
    }
}

/// What happened to receivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SenderEvent {
    /// It was let in.
    Joined {
        /// Who.
        receiver: u64,
    },
    /// It left.
    Left {
        /// Who.
        receiver: u64,
    },
    /// It fell silent.
    Died {
        /// Who.
        receiver: u64,
    },
    /// It held the sender up for too long.
    Ejected {
        /// Who.
        receiver: u64,
    },
}

/// Datagrams to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// 1 to 64 datagrams, one behind the other; at most 65,507 bytes.
    pub bytes: &'a [u8],
    /// The length of each datagram; the last may be shorter.
    pub segment: usize,
}

/// One session.
#[derive(Debug)]
pub struct Sender {
    settings: SenderSettings,
    packer: Packer,
    names: Vec<Box<str>>,
    numbers_of: BTreeMap<Box<str>, u32>,
    /// Topics are laid out whether somebody wants them or not.
    wants_all: bool,
    members: Vec<Member>,
    behind: behind::Behind,
    /// How often a receiver has come or gone.
    membership_changes: u64,
    links: stream::Links,
    cookies: admission::Cookies,
    /// What looking for the beginnings of topics may cost, in datagrams.
    scans: Bucket,
    answers: Answers,
    peeked: Option<transmit::Planned>,
    /// The next sequence for the group.
    sent: u64,
    gate: Option<u64>,
    group_limit: Option<u64>,
    refused: bool,
    data_rate: Option<Bucket>,
    repair_budget: Bucket,
    repair_turn: usize,
    data_turn: usize,
    group_beat: Heartbeat,
    heads_told: usize,
    /// The longest round trip that a receiver has told, if one has.
    round_trip: Option<Nanos>,
    /// When somebody was last asked for a status.
    probed_at: Option<Nanos>,
    closed: bool,
    farewells: u32,
    /// When somebody last looked at the time.
    looked: Nanos,
    counters: SenderCounters,
    events: VecDeque<SenderEvent>,
}

impl Sender {
    /// A session without topics or receivers.
    pub fn new(mut settings: SenderSettings, now: Nanos) -> Self {
        let longest = match settings.distribution {
            Distribution::Stream => FRAME_MAX,
            Distribution::Multicast(_) | Distribution::Unicast => DATAGRAM_MAX,
        };
        let datagram = settings.datagram_bytes.clamp(DATAGRAM_MIN, longest);
        let bytes = settings.window_bytes.clamp(datagram * WINDOW_DATAGRAMS_MIN, 1 << 40);
        let window = Window::new(bytes, settings.first_sequence);
        let longest = settings.longest_message.min(window.bytes.len() / LONGEST_PART);
        settings.datagram_bytes = datagram;
        let packer = Packer::new(window, settings.session, datagram, longest);
        let is_group = matches!(settings.distribution, Distribution::Multicast(_));
        let heartbeat = settings.heartbeat;
        let mut sender = Self {
            packer,
            names: Vec::new(),
            numbers_of: BTreeMap::new(),
            wants_all: is_group || settings.late_join,
            members: Vec::new(),
            behind: behind::Behind::default(),
            membership_changes: 0,
            links: stream::Links::default(),
            cookies: admission::Cookies::new(settings.seed),
            scans: Bucket::new(admission::SCAN_RATE, now),
            answers: Answers::default(),
            peeked: None,
            sent: settings.first_sequence,
            gate: None,
            group_limit: None,
            refused: false,
            data_rate: settings.data_rate.map(|rate| Bucket::new(rate, now)),
            repair_budget: Bucket::new(1, now),
            repair_turn: 0,
            data_turn: 0,
            group_beat: Heartbeat::new(now, heartbeat),
            heads_told: 0,
            round_trip: None,
            probed_at: None,
            closed: false,
            farewells: 0,
            looked: now,
            counters: SenderCounters::default(),
            events: VecDeque::new(),
            settings,
        };
        sender.repair_budget = Bucket::new(sender.repair_rate(), now);
        sender
    }

    /// Adds a topic: 0, 1, 2 and so on; the same number for the same name.
    ///
    /// # Errors
    /// See [`TopicError`].
    pub fn add_topic(&mut self, name: &str) -> Result<u32, TopicError> {
        if name.is_empty() || name.len() > NAME_MAX {
            return Err(TopicError::Name);
        }
        if let Some(number) = self.numbers_of.get(name) {
            return Ok(*number);
        }
        let max = self.settings.topics_max;
        if self.names.len() >= max {
            return Err(TopicError::TooMany { max });
        }
        let number = self.names.len() as u32;
        self.names.push(name.into());
        self.numbers_of.insert(name.into(), number);
        self.packer.add_topic(self.wants_all);
        self.fulfil(number);
        Ok(number)
    }

    /// How many topics it has.
    pub fn topics(&self) -> usize {
        self.names.len()
    }

    /// Room for a message, behind what is staged already. Nobody sees it before
    /// [`publish`](Self::publish).
    ///
    /// # Errors
    /// See [`StageError`].
    #[inline(always)]
    pub fn stage(&mut self, topic: u32, len: usize) -> Result<&mut [u8], StageError> {
        if self.packer.stage_behind(topic, len) {
            return Ok(self.packer.staged());
        }
        self.stage_anew(topic, len)
    }

    #[inline(never)]
    fn stage_anew(&mut self, topic: u32, len: usize) -> Result<&mut [u8], StageError> {
        if self.closed {
            return Err(StageError::Closed);
        }
        let floor = self.floor();
        match self.packer.stage(topic, len, floor) {
            Ok(()) => Ok(self.packer.staged()),
            Err(refused) => {
                if refused == StageError::WindowFull {
                    self.counters.window_full += 1;
                    self.refused = true;
                }
                Err(refused)
            }
        }
    }

    /// The bytes of the message that was staged last; none if none is staged.
    #[inline(always)]
    pub fn staged(&mut self) -> &mut [u8] {
        self.packer.staged()
    }

    /// As [`staged`](Self::staged), to look at.
    #[inline]
    pub fn staged_bytes(&self) -> &[u8] {
        self.packer.staged_bytes()
    }

    /// Publishes all that is staged, as one batch; how many messages that was.
    #[inline(always)]
    pub fn publish(&mut self) -> usize {
        let messages = self.packer.publish();
        self.counters.messages += messages as u64;
        let unwanted = self.packer.take_unwanted();
        if unwanted > 0 {
            self.counters.unwanted += unwanted as u64;
        }
        messages
    }

    /// Drops all that is staged.
    pub fn unstage(&mut self) {
        self.packer.unstage();
    }

    /// The longest message, in bytes.
    pub const fn longest_message(&self) -> usize {
        self.packer.longest()
    }

    /// What is published may be sent: the open datagram is closed, as soon as nothing is staged
    /// behind it.
    #[inline]
    pub fn flush(&mut self) {
        self.packer.flush();
    }

    /// Does what is due.
    pub fn on_time(&mut self, now: Nanos) {
        // Or what cannot be sent, for want of a connection, would be due for ever.
        self.has_rate(now);
        self.excuse(now);
        self.weed(now);
        self.beat(now);
    }

    /// When there is something to do at the latest, without anything new.
    pub fn next_deadline(&self) -> Option<Nanos> {
        // Within the rate, what can be sent has been sent.
        let is_held = |rate: &&Bucket| rate.is_spent() && self.has_data_to_send();
        let data = self.data_rate.as_ref().filter(is_held);
        let beats = self.members.iter().map(|member| member.beat.due);
        let silences = self.members.iter().map(|member| {
            let patience = match self.settings.pacing {
                Pacing::SlowestOrEject(patience) => patience,
                _ => Nanos::MAX,
            };
            let ejected = member.holds_since.map_or(Nanos::MAX, |at| at.saturating_add(patience));
            ejected.min(member.heard.saturating_add(self.settings.liveness).saturating_add(1))
        });
        let beat = if self.is_group() { Some(self.group_beat.due) } else { beats.min() };
        let beat = beat.filter(|_| !self.is_over());
        let data = data.map(Bucket::ready_at);
        let due = [beat, silences.min(), self.repairs_due(), data, self.links_due()];
        due.into_iter().flatten().min()
    }

    /// Publishes nothing any more. What was published is still sent and repaired, and the end
    /// is told until all have read everything or left.
    pub fn close(&mut self, now: Nanos) {
        if self.closed {
            return;
        }
        self.packer.unstage();
        self.packer.flush();
        self.closed = true;
        let beat = self.first_beat(now).at_once(now);
        self.group_beat = beat;
        self.members.iter_mut().for_each(|member| member.beat = beat);
    }

    /// What was done so far.
    pub const fn counters(&self) -> &SenderCounters {
        &self.counters
    }

    /// A frame of this session, no longer than a datagram.
    fn frame(
        &self,
        kind: (Kind, u16),
        sequence: u64,
        fill: impl FnOnce(&mut FrameWriter<'_>),
    ) -> Vec<u8> {
        let session = self.settings.session;
        answers::compose(kind, (session, sequence), self.settings.datagram_bytes, fill)
    }
}

#[cfg(test)]
mod tests;
