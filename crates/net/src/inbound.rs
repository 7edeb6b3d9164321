//! A subscriber's side of its sessions: the state machines and the sockets that feed them.

mod admission;
mod telling;

pub(crate) use self::admission::Admission;

use self::admission::JoinBudget;
use self::telling::Telling;
use crate::Kind;
use crate::channel::Channel;
use crate::hand::{Hand, Item};
use crate::place::Place;
use crate::presence::{Descriptor, Presence};
use crate::session::{Session, Source};
use crate::settings::Drive;
use lanecast_os::udp::UdpSocket;
use lanecast_protocol::Nanos;
use lanecast_protocol::receiver::Delivery;
use lanecast_protocol::rng::Rng;
use lanecast_wire::net::Frame;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;

/// The own socket of a subscriber whose messages come by groups and streams is looked at every so
/// many turns.
const OWN_EVERY: u32 = 4;
/// The time is looked at after so many turns that brought something.
const TIME_EVERY: u32 = 64;
/// The most that is read in one turn by whoever stands in.
const STAND_IN_READS: usize = 64;
/// What the kernel hands over at once.
const READ_BYTES: usize = 64 << 10;
const CONTROL_BYTES: usize = 1400;
/// So many topics are asked for at once, so that who publishes several of them does not begin
/// before the subscriber is in for all. Further ones are asked for when they are found.
const NAMES_MAX: usize = 32;
/// The most sessions that are remembered in case their publishers are not dead.
const DORMANT_MAX: usize = 64;

/// All sessions of one subscriber.
#[derive(Debug)]
pub(crate) struct Inbound {
    place: Arc<Place>,
    wanted: BTreeSet<String>,
    own: Arc<UdpSocket>,
    groups: Vec<(SocketAddr, Arc<UdpSocket>)>,
    sessions: Vec<Session>,
    /// Those whose publishers seemed to be dead, the oldest first: what they missed is known only
    /// here.
    dormant: VecDeque<Session>,
    next: u32,
    joins: JoinBudget,
    /// Laid ready while the owner was away.
    ready: VecDeque<Item>,
    /// What one frame brought.
    news: Vec<Delivery>,
    /// Where frames for publishers are written.
    control: Box<[u8]>,
    /// The reading buffer of whoever stands in.
    spare: Box<[u8]>,
    deadline: Nanos,
    turns: u32,
    chance: Rng,
    presence: Arc<Presence>,
    telling: Telling,
    /// Whether the owner leaves the sockets to the conductor, always.
    hands_off: bool,
}

impl Inbound {
    pub(crate) fn new(
        place: Arc<Place>,
        wanted: BTreeSet<String>,
        own: UdpSocket,
        chance: Rng,
        presence: Arc<Presence>,
    ) -> Self {
        let hands_off = place.settings.drive != Drive::Caller;
        Self {
            place,
            wanted,
            own: Arc::new(own),
            groups: Vec::new(),
            sessions: Vec::new(),
            dormant: VecDeque::new(),
            next: 0,
            joins: JoinBudget::new(),
            ready: VecDeque::new(),
            news: Vec::new(),
            control: vec![0; CONTROL_BYTES].into_boxed_slice(),
            spare: Box::default(),
            deadline: Nanos::MAX,
            turns: 0,
            chance,
            presence,
            telling: Telling::new(),
            hands_off,
        }
    }

    /// A publisher of `topic` has been found.
    ///
    /// # Errors
    /// If its sockets cannot be had; it is found again with the next advertisement.
    pub(crate) fn found(
        &mut self,
        source: &Source,
        topic: &str,
        now: Nanos,
    ) -> std::io::Result<Admission> {
        if !self.wanted.contains(topic) {
            return Ok(Admission::Joined);
        }
        let known = self.sessions.iter_mut().find(|session| session.is(source));
        if let Some(session) = known {
            session.want(topic);
        } else {
            let admission = self.admit(source, now);
            if admission != Admission::Joined {
                return Ok(admission);
            }
            if let (Kind::Rm, Some(group)) = (source.kind, source.group)
                && !self.groups.iter().any(|(known, _)| *known == group)
            {
                self.groups.push((group, Arc::new(self.place.group_socket(group)?)));
            }
            let session = match self.revived(source, now)? {
                Some(mut session) => {
                    session.want(topic);
                    session
                }
                None => self.open(source, topic, now)?,
            };
            self.sessions.push(session);
            self.begin_telling(now);
        }
        self.answer(now);
        Ok(Admission::Joined)
    }

    /// Whether the session is joined, or being joined.
    pub(crate) fn has(&self, source: &Source) -> bool {
        self.sessions.iter().any(|session| session.is(source))
    }

    /// A session that was never joined.
    fn open(&mut self, source: &Source, topic: &str, now: Nanos) -> std::io::Result<Session> {
        let others = self.wanted.iter().map(String::as_str).filter(|other| *other != topic);
        let topics: Vec<&str> = [topic].into_iter().chain(others).take(NAMES_MAX).collect();
        let seed = self.chance.next_u64();
        let session = Session::open(&self.place, self.next, source, &topics, seed, now)?;
        self.next = self.next.wrapping_add(1);
        Ok(session)
    }

    /// A session that goes on, whose publisher had seemed to be dead.
    fn revived(&mut self, source: &Source, now: Nanos) -> std::io::Result<Option<Session>> {
        let Some(at) = self.dormant.iter().position(|session| session.is(source)) else {
            return Ok(None);
        };
        let revives = self.dormant[at].revive(&self.place, source, now)?;
        Ok(if revives { self.dormant.remove(at) } else { None })
    }

    /// Fills an empty hand: what lies ready, or else what one look at the sockets brings.
    #[inline]
    pub(crate) fn refill(&mut self, now: Nanos, hand: &mut Hand) {
        self.bring(now, hand);
        self.sessions.iter_mut().for_each(Session::mark);
    }

    #[inline]
    fn bring(&mut self, now: Nanos, hand: &mut Hand) {
        if !self.ready.is_empty() {
            hand.items.append(&mut self.ready);
            return;
        }
        if self.hands_off {
            return;
        }
        let found = self.read_once(now, &mut hand.buffer, &mut hand.items);
        // What lies in the sockets may be the sign of life that seems to be missing.
        if self.deadline <= now && (!found || self.turns.is_multiple_of(TIME_EVERY)) {
            self.on_time(now, &mut hand.items);
        }
        // What there is in hand comes first; the caller settles after that.
        if hand.items.is_empty() && (found || self.deadline <= now) {
            self.answer(now);
        }
    }

    /// The application has had what it wanted for now, and is done with all that it had in hand
    /// if `all`.
    pub(crate) fn settle(&mut self, now: Nanos, all: bool) {
        if all {
            let everything = self.ready.is_empty();
            self.sessions.iter_mut().for_each(|session| session.has_been_read(everything));
        }
        self.answer(now);
    }

    /// One turn while the owner is away: what comes is copied and laid ready. Returns when the
    /// next turn is due at the latest, and whether something lies ready that did not before.
    pub(crate) fn stand_in(&mut self, now: Nanos) -> (Option<Nanos>, bool) {
        if self.spare.is_empty() {
            self.spare = vec![0; crate::channel::READ_BYTES].into_boxed_slice();
        }
        let mut spare = std::mem::take(&mut self.spare);
        let before = self.ready.len();
        let mut items = VecDeque::new();
        for _ in 0..STAND_IN_READS {
            if !self.read_once(now, &mut spare, &mut items) {
                break;
            }
            self.ready.extend(items.drain(..).map(|item| kept(item, &spare)));
        }
        self.on_time(now, &mut items);
        self.ready.extend(items.drain(..).map(|item| kept(item, &spare)));
        self.spare = spare;
        self.answer(now);
        let due = (self.deadline != Nanos::MAX).then_some(self.deadline);
        (due, self.ready.len() > before)
    }

    /// Reads from the first source that has something; says whether there was one.
    fn read_once(&mut self, now: Nanos, buffer: &mut [u8], items: &mut VecDeque<Item>) -> bool {
        self.turns = self.turns.wrapping_add(1);
        for index in 0..self.groups.len() {
            let received = self.groups[index].1.receive(&mut buffer[..READ_BYTES]);
            if let Ok(Some((length, from))) = received {
                self.take(now, buffer, length, from, items);
                return true;
            }
        }
        let own_turn = self.turns.is_multiple_of(OWN_EVERY);
        if (own_turn || self.sessions.iter().any(Session::is_unsettled))
            && let Ok(Some((length, from))) = self.own.receive(&mut buffer[..READ_BYTES])
        {
            self.take(now, buffer, length, from, items);
            return true;
        }
        (0..self.sessions.len()).any(|index| self.read_channel(now, index, buffer, items))
    }

    /// Gives each frame of a datagram, or of a run of datagrams, to its session.
    #[inline]
    fn take(
        &mut self,
        now: Nanos,
        buffer: &[u8],
        length: usize,
        from: SocketAddr,
        items: &mut VecDeque<Item>,
    ) {
        let lose = self.place.settings.artificial_loss;
        let mut rest = &buffer[..length];
        while let Some((frame, after)) = Frame::split(rest) {
            let lost = lose > 0 && self.chance.below(1000) < u64::from(lose);
            if !lost {
                let at = length - after.len() - frame.body.len();
                let mut sessions = self.sessions.iter_mut();
                if let Some(session) = sessions
                    .find(|session| session.number() == frame.session && session.hears(from))
                {
                    session.on_frame(now, &frame, at, &mut self.news);
                    session.hand_over(&mut self.news, items);
                }
            }
            rest = after;
        }
    }

    fn read_channel(
        &mut self,
        now: Nanos,
        index: usize,
        buffer: &mut [u8],
        items: &mut VecDeque<Item>,
    ) -> bool {
        let session = &mut self.sessions[index];
        let Some(length) = session.read_channel(now, buffer) else { return false };
        let used = session.on_stream(now, &buffer[..length], &mut self.news);
        session.hand_over(&mut self.news, items);
        session.keep_partial(&buffer[used..length]);
        true
    }

    #[cold]
    fn on_time(&mut self, now: Nanos, items: &mut VecDeque<Item>) {
        if self.telling.due() <= now {
            self.tell(now);
        }
        for session in &mut self.sessions {
            session.on_time(now, &mut self.news);
            session.hand_over(&mut self.news, items);
        }
    }

    /// Sends what the sessions have to say; forgets those that are over.
    #[inline]
    fn answer(&mut self, now: Nanos) {
        let mut deadline = self.telling.due();
        let mut over = false;
        for session in &mut self.sessions {
            session.answer(now, &self.own, &mut self.control);
            deadline = deadline.min(session.next_deadline().unwrap_or(Nanos::MAX));
            over |= session.is_over();
        }
        self.deadline = deadline;
        if over {
            self.forget(now);
        }
    }

    #[cold]
    fn forget(&mut self, now: Nanos) {
        for session in self.sessions.iter().filter(|it| it.is_over() && it.may_come_back()) {
            self.presence.lose(session.number());
        }
        self.gather_gaps(now);
        let over = self.sessions.extract_if(.., |session| session.is_over());
        for session in over.collect::<Vec<_>>() {
            if session.may_be_revived() {
                self.dormant.push_back(session);
            } else {
                self.remember(&session);
            }
        }
        while self.dormant.len() > DORMANT_MAX {
            let oldest = self.dormant.pop_front();
            oldest.iter().for_each(|session| self.remember(session));
        }
        self.leave_groups();
    }

    /// Says goodbye to all publishers.
    pub(crate) fn leave(&mut self, now: Nanos) {
        self.sessions.iter_mut().for_each(Session::leave);
        self.answer(now);
    }

    pub(crate) fn next_deadline(&self) -> Nanos {
        self.deadline
    }

    /// What is to be watched, and whether for room to write.
    pub(crate) fn descriptors(&self, into: &mut Vec<(Descriptor, bool)>) {
        into.push((Descriptor::Udp(Arc::clone(&self.own)), false));
        let groups = self.groups.iter();
        into.extend(groups.map(|(_, socket)| (Descriptor::Udp(Arc::clone(socket)), false)));
        let channels = self.sessions.iter().filter_map(Session::channel);
        into.extend(channels.filter_map(Channel::descriptor));
    }
}

/// The same item, with nothing in the buffer.
fn kept(item: Item, buffer: &[u8]) -> Item {
    let delivery = match item.delivery {
        Delivery::Borrowed { slot, start, end } => {
            Delivery::Owned { slot, items: buffer[start as usize..end as usize].into() }
        }
        other => other,
    };
    Item { delivery, ..item }
}
