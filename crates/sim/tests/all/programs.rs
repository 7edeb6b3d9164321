//! Many programs of one host: each has a resolver, sources of several topics, and receivers of
//! other programs' sources, over simulated sockets.
//!
//! Every resolver hears the frames of all others. Times are simulated; memory is that of the state
//! machines, and of frames in flight.

use lanecast_protocol::receiver::{Delivery, Phase, Receiver, ReceiverSettings};
use lanecast_protocol::resolution::{
    Announcement, Resolver, ResolverEvent, ResolverSettings, SessionTransport,
};
use lanecast_protocol::rng::Rng;
use lanecast_protocol::sender::{Sender, SenderSettings};
use lanecast_protocol::{MICROSECOND, Nanos, SECOND};
use lanecast_sim::event_queue::EventQueue;
use lanecast_sim::network::{address, group_address, owner};
use lanecast_transport::{TopicPattern, TopicSelection};
use lanecast_wire::net::{Frame, FrameHeader, Items, Kind, flag};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::rc::Rc;

/// The host, and its first socket.
const HOST: u16 = 1;
const FIRST_SOCKET: u16 = 1_000;
/// Delay of a datagram within the host, and its random part.
const DELAY: Nanos = 20 * MICROSECOND;
const JITTER: Nanos = 30 * MICROSECOND;
/// A duty cycle takes time: a deadline that stays in the past must not stop the clock.
const TURN_MIN: Nanos = MICROSECOND;
/// The smallest window of a source, so that memory is that of everything else.
const WINDOW_BYTES: usize = 64 << 10;
const LIVENESS: Nanos = SECOND;

/// Numbers of programs, and of each one's sources and receivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) programs: usize,
    /// Sources of a program, and as many receivers.
    pub(crate) sources: usize,
    /// Topics of a source.
    pub(crate) topics: usize,
    /// Subscribers have a pattern that matches all topics, from [`Programs::look`] on.
    pub(crate) has_pattern: bool,
}

impl Shape {
    pub(crate) const fn all_sources(&self) -> usize {
        self.programs * self.sources
    }

    pub(crate) const fn all_topics(&self) -> usize {
        self.all_sources() * self.topics
    }
}

/// Frames and turns so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Work {
    /// Frames of all resolvers, and their bytes.
    pub(crate) resolution: u64,
    pub(crate) resolution_bytes: u64,
    /// Data of all sources, repairs included.
    pub(crate) data: u64,
    pub(crate) repairs: u64,
    /// Other frames of sources.
    pub(crate) control: u64,
    /// Frames of all receivers, and the NAKs among them.
    pub(crate) receivers: u64,
    pub(crate) naks: u64,
    /// Duty cycles of all resolvers, sources and receivers.
    pub(crate) resolver_turns: u64,
    pub(crate) source_turns: u64,
    pub(crate) receiver_turns: u64,
}

impl Work {
    pub(crate) fn since(&self, then: &Self) -> Self {
        Self {
            resolution: self.resolution - then.resolution,
            resolution_bytes: self.resolution_bytes - then.resolution_bytes,
            data: self.data - then.data,
            repairs: self.repairs - then.repairs,
            control: self.control - then.control,
            receivers: self.receivers - then.receivers,
            naks: self.naks - then.naks,
            resolver_turns: self.resolver_turns - then.resolver_turns,
            source_turns: self.source_turns - then.source_turns,
            receiver_turns: self.receiver_turns - then.receiver_turns,
        }
    }
}

#[derive(Debug)]
enum Event {
    Arrives { to: usize, from: usize, bytes: Rc<[u8]> },
    Acts(usize),
}

#[derive(Debug)]
enum Role {
    Resolver(Box<Resolver>),
    Source(Box<Sender>),
    Reader(Box<Reader>),
}

/// A subscriber of the topics of one source.
#[derive(Debug)]
struct Reader {
    topics: Vec<String>,
    receiver: Option<Receiver>,
    /// Topics joined, messages read of each, and messages lost, since the last join.
    read: BTreeMap<u32, u64>,
    lost: u64,
    out: Vec<Delivery>,
}

impl Reader {
    fn is_joined(&self) -> bool {
        self.read.len() == self.topics.len()
    }

    /// Counts deliveries, and checks the order of messages.
    fn account(&mut self, buffer: &[u8]) {
        for delivery in std::mem::take(&mut self.out) {
            let (slot, first, items) = match &delivery {
                Delivery::Joined { slot } => {
                    assert_eq!(self.read.insert(*slot, 0), None, "joined twice");
                    continue;
                }
                Delivery::Borrowed { slot, first, start, end } => {
                    (*slot, *first, &buffer[*start as usize..*end as usize])
                }
                Delivery::Owned { slot, first, items } => (*slot, *first, &items[..]),
                Delivery::Lost { count, .. } => {
                    self.lost += count;
                    continue;
                }
                Delivery::Left { slot, .. } => {
                    self.read.remove(slot);
                    continue;
                }
                Delivery::Message { .. } => panic!("no message is fragmented"),
            };
            for (number, item) in (first..).zip(Items::new(items)) {
                let told = u64::from_le_bytes(*item.bytes.first_chunk().expect("a number"));
                assert_eq!(told, number, "a message of another place");
                *self.read.get_mut(&slot).expect("a joined topic") += 1;
            }
        }
    }
}

#[derive(Debug)]
struct Actor {
    role: Role,
    inbox: VecDeque<(usize, Rc<[u8]>)>,
    timer: Option<Nanos>,
    /// Duty cycles so far.
    turns: u64,
}

/// The programs of one host.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) now: Nanos,
    pub(crate) shape: Shape,
    pub(crate) work: Work,
    /// Nothing arrives.
    pub(crate) is_cut: bool,
    /// The receiver to which 90 of 100 datagrams are lost.
    pub(crate) lossy: Option<usize>,
    /// Datagrams of a thousand that are lost anywhere.
    pub(crate) loss: u64,
    /// Random part of a datagram's delay.
    pub(crate) jitter: Nanos,
    /// Frames of this kind are lost until then.
    pub(crate) lost: Option<(Kind, Nanos)>,
    events: EventQueue<Event>,
    /// Resolvers first, then sources, then receivers.
    actors: Vec<Actor>,
    /// Messages published on each topic of a source.
    published: Vec<u64>,
    rng: Rng,
}

impl Programs {
    /// Starts all programs at once.
    pub(crate) fn new(shape: Shape, seed: u64) -> Self {
        let mut programs = Self {
            now: SECOND,
            shape,
            work: Work::default(),
            is_cut: false,
            lossy: None,
            loss: 0,
            jitter: JITTER,
            lost: None,
            events: EventQueue::new(),
            actors: Vec::new(),
            published: vec![0; shape.all_sources()],
            rng: Rng::new(seed),
        };
        for number in 0..shape.programs {
            let resolver = programs.resolver(number);
            programs.add(Role::Resolver(Box::new(resolver)));
        }
        for number in 0..shape.all_sources() {
            let source = programs.source(number);
            programs.add(Role::Source(Box::new(source)));
        }
        for number in 0..shape.all_sources() {
            let topics = programs.wanted(number);
            let (read, out) = (BTreeMap::new(), Vec::new());
            let reader = Reader { topics, receiver: None, read, lost: 0, out };
            programs.add(Role::Reader(Box::new(reader)));
        }
        programs
    }

    fn add(&mut self, role: Role) {
        let actor = self.actors.len();
        self.actors.push(Actor { role, inbox: VecDeque::new(), timer: None, turns: 0 });
        self.wake(actor, self.now);
    }

    fn resolver(&mut self, program: usize) -> Resolver {
        let settings = ResolverSettings {
            resolver: program as u64 + 1,
            seed: self.rng.next_u64(),
            ..ResolverSettings::default()
        };
        let mut resolver = Resolver::new(settings, self.now);
        for number in self.of_program(program) {
            let announcement = Announcement {
                session: number as u64 + 1,
                transport: SessionTransport::Unicast,
                control: self.address(self.source_at(number)),
                group: None,
                host: 0,
                domain: 0,
                pid: 0,
                datagram_bytes: 1_472,
            };
            for topic in topics(number, self.shape.topics) {
                resolver.publish(announcement, &topic).expect("a name");
            }
            for topic in self.wanted(number).iter().filter(|_| !self.shape.has_pattern) {
                resolver.subscribe(topic).expect("a name");
            }
        }
        resolver
    }

    /// Opens the subscribers of all programs.
    pub(crate) fn look(&mut self) {
        let pattern = TopicPattern::wildcard("market.**").expect("a pattern");
        let all = TopicSelection::of_patterns(vec![pattern], usize::MAX);
        for program in 0..self.shape.programs {
            if let Role::Resolver(resolver) = &mut self.actors[program].role {
                resolver.subscribe_pattern(1, &all);
            }
            self.wake(program, self.now);
        }
    }

    fn source(&mut self, number: usize) -> Sender {
        let settings = SenderSettings {
            session: number as u64 + 1,
            window_bytes: WINDOW_BYTES,
            longest_message: 1_024,
            liveness: LIVENESS,
            cookie_key: [self.rng.next_u64(), 1],
            ..SenderSettings::default()
        };
        let mut sender = Sender::new(settings, self.now);
        for topic in topics(number, self.shape.topics) {
            sender.add_topic(&topic).expect("a name");
        }
        sender
    }

    /// Sources, or receivers, of a program.
    const fn of_program(&self, program: usize) -> std::ops::Range<usize> {
        program * self.shape.sources..(program + 1) * self.shape.sources
    }

    /// Duty cycles of each source so far.
    pub(crate) fn source_turns(&self) -> Vec<u64> {
        let sources = self.source_at(0)..self.reader_at(0);
        self.actors[sources].iter().map(|actor| actor.turns).collect()
    }

    /// The source whose topics a receiver has.
    pub(crate) const fn source_of(&self, receiver: usize) -> usize {
        (receiver * 7 + 1) % self.shape.all_sources()
    }

    /// The topics of a receiver: those of a source that no other receiver has.
    fn wanted(&self, receiver: usize) -> Vec<String> {
        topics(self.source_of(receiver), self.shape.topics).collect()
    }

    const fn source_at(&self, number: usize) -> usize {
        self.shape.programs + number
    }

    const fn reader_at(&self, number: usize) -> usize {
        self.shape.programs + self.shape.all_sources() + number
    }

    fn address(&self, actor: usize) -> SocketAddr {
        address(HOST, FIRST_SOCKET + actor as u16)
    }

    fn readers(&self) -> impl Iterator<Item = &Reader> {
        self.actors.iter().filter_map(|actor| match &actor.role {
            Role::Reader(reader) => Some(&**reader),
            _ => None,
        })
    }

    fn sources(&self) -> impl Iterator<Item = &Sender> {
        self.actors.iter().filter_map(|actor| match &actor.role {
            Role::Source(sender) => Some(&**sender),
            _ => None,
        })
    }

    /// Whether each receiver has joined all its topics.
    pub(crate) fn have_joined(&self) -> bool {
        self.readers().all(Reader::is_joined)
    }

    /// Whether each receiver has joined all its topics, and each source has its receiver.
    pub(crate) fn all_joined(&self) -> bool {
        self.have_joined() && self.sources().all(|source| source.joined() == 1)
    }

    /// Whether no source has a receiver.
    pub(crate) fn all_apart(&self) -> bool {
        self.sources().all(|source| source.receivers() == 0)
            && self.readers().all(|reader| reader.receiver.is_none())
    }

    /// Whether each receiver, but for `except`, has read so many messages of each topic.
    pub(crate) fn all_read(&self, messages: u64, except: Option<usize>) -> bool {
        let others = self.readers().enumerate().filter(|(number, _)| Some(*number) != except);
        others.map(|(_, reader)| reader).all(|reader| {
            assert_eq!(reader.lost, 0, "nothing was lost for good");
            reader.is_joined() && reader.read.values().all(|read| *read == messages)
        })
    }

    /// Publishes one message on each topic of a source.
    pub(crate) fn publish(&mut self, source: usize) {
        let (at, number) = (self.source_at(source), self.published[source]);
        let Role::Source(sender) = &mut self.actors[at].role else { return };
        for topic in 0..self.shape.topics {
            let bytes = sender.stage(topic as u32, 24).expect("room in the window");
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            sender.publish();
        }
        sender.flush();
        self.published[source] += 1;
        self.wake(at, self.now);
    }

    /// Runs until then.
    pub(crate) fn run_until(&mut self, until: Nanos) {
        while self.events.next_at().is_some_and(|at| at <= until) {
            let Some((at, event)) = self.events.take() else { break };
            self.now = self.now.max(at);
            match event {
                Event::Arrives { to, from, bytes } => {
                    if !self.is_cut {
                        self.actors[to].inbox.push_back((from, bytes));
                        self.wake(to, self.now);
                    }
                }
                Event::Acts(actor) if self.actors[actor].timer == Some(at) => {
                    self.actors[actor].timer = None;
                    self.act(actor);
                }
                Event::Acts(_) => {}
            }
        }
        self.now = self.now.max(until);
    }

    fn wake(&mut self, actor: usize, at: Nanos) {
        if self.actors[actor].timer.is_none_or(|set| at < set) {
            self.actors[actor].timer = Some(at);
            self.events.add(at, Event::Acts(actor));
        }
    }

    fn act(&mut self, actor: usize) {
        self.actors[actor].turns += 1;
        match self.actors[actor].role {
            Role::Resolver(_) => self.work.resolver_turns += 1,
            Role::Source(_) => self.work.source_turns += 1,
            Role::Reader(_) => self.work.receiver_turns += 1,
        }
        let inbox = std::mem::take(&mut self.actors[actor].inbox);
        let due = match self.actors[actor].role {
            Role::Resolver(_) => self.resolve(actor, inbox),
            Role::Source(_) => self.send(actor, inbox),
            Role::Reader(_) => self.read(actor, inbox),
        };
        if let Some(at) = due {
            self.wake(actor, at.max(self.now + TURN_MIN));
        }
    }

    fn resolve(&mut self, actor: usize, inbox: VecDeque<(usize, Rc<[u8]>)>) -> Option<Nanos> {
        let (now, mut frames, mut found) = (self.now, Vec::new(), Vec::new());
        let Role::Resolver(resolver) = &mut self.actors[actor].role else { return None };
        for (from, bytes) in inbox {
            let (frame, _) = Frame::split(&bytes).expect("a frame");
            let from = address(HOST, FIRST_SOCKET + from as u16);
            resolver.on_frame(now, from, &frame);
        }
        let mut buffer = [0; 1_472];
        while let Some(length) = resolver.next_transmit(now, &mut buffer) {
            frames.push(buffer[..length].to_vec());
        }
        while let Some(event) = resolver.next_event() {
            if let ResolverEvent::Found { announcement, topic } = event {
                found.push((announcement, topic));
            }
        }
        let due = resolver.next_deadline();
        for frame in frames {
            self.work.resolution += 1;
            self.work.resolution_bytes += frame.len() as u64;
            self.transmit(actor, group_address(1), &frame);
        }
        for (announcement, topic) in found {
            for number in self.of_program(actor) {
                self.found(self.reader_at(number), &announcement, &topic);
            }
        }
        due
    }

    /// Joins a source that was found.
    fn found(&mut self, actor: usize, announcement: &Announcement, topic: &str) {
        let (now, seed) = (self.now, self.rng.next_u64());
        let source = self.source_of(actor - self.reader_at(0));
        let has_pattern = self.shape.has_pattern;
        let Role::Reader(reader) = &mut self.actors[actor].role else { return };
        if announcement.session != source as u64 + 1 {
            return;
        }
        if let Some(receiver) = &mut reader.receiver {
            receiver.subscribe(topic);
            self.wake(actor, now);
            return;
        }
        let settings = ReceiverSettings {
            receiver: seed.max(1),
            liveness: LIVENESS,
            seed,
            ..ReceiverSettings::default()
        };
        let all = reader.topics.iter().map(String::as_str);
        let topics = if has_pattern { vec![topic] } else { all.collect() };
        let (session, control) = (announcement.session, announcement.control);
        reader.read.clear();
        reader.receiver = Some(Receiver::new(settings, session, control, &topics, now));
        self.wake(actor, now);
    }

    fn send(&mut self, actor: usize, inbox: VecDeque<(usize, Rc<[u8]>)>) -> Option<Nanos> {
        let (now, mut datagrams) = (self.now, Vec::new());
        let Role::Source(sender) = &mut self.actors[actor].role else { return None };
        for (from, bytes) in inbox {
            let (frame, _) = Frame::split(&bytes).expect("a frame");
            sender.on_frame(now, address(HOST, FIRST_SOCKET + from as u16), &frame);
        }
        sender.on_time(now);
        while let Some(transmit) = sender.next_transmit(now) {
            for datagram in transmit.bytes.chunks(transmit.segment) {
                datagrams.push((transmit.to, datagram.to_vec()));
            }
            sender.transmitted(now);
        }
        // Its application polls for them.
        sender.subscribers().poll_events(|_| {});
        let due = sender.next_deadline();
        for (to, datagram) in datagrams {
            let (frame, _) = Frame::split(&datagram).expect("a frame");
            if frame.kind == Kind::Data {
                self.work.data += 1;
                self.work.repairs += u64::from(frame.flags & flag::AGAIN != 0);
            } else {
                self.work.control += 1;
            }
            self.transmit(actor, to, &datagram);
        }
        due
    }

    fn read(&mut self, actor: usize, inbox: VecDeque<(usize, Rc<[u8]>)>) -> Option<Nanos> {
        let (now, mut frames) = (self.now, Vec::new());
        let Role::Reader(reader) = &mut self.actors[actor].role else { return None };
        for (_, bytes) in inbox {
            let (frame, _) = Frame::split(&bytes).expect("a frame");
            if let Some(receiver) = &mut reader.receiver {
                receiver.on_frame(now, &frame, size_of::<FrameHeader>(), &mut reader.out);
            }
            reader.account(&bytes);
        }
        let receiver = reader.receiver.as_mut()?;
        receiver.on_time(now, &mut reader.out);
        receiver.consumed_all();
        let mut buffer = [0; 1_472];
        while let Some(length) = receiver.next_transmit(now, &mut buffer) {
            frames.push(buffer[..length].to_vec());
        }
        let (source, session) = (receiver.source(), receiver.session());
        let (due, is_over) = (receiver.next_deadline(), receiver.is_done());
        reader.account(&[]);
        if is_over || reader.receiver.as_ref().is_some_and(|it| it.phase() == Phase::Closed) {
            reader.receiver = None;
            self.lost(actor, session);
        }
        for frame in frames {
            let (header, _) = Frame::split(&frame).expect("a frame");
            self.work.receivers += 1;
            self.work.naks += u64::from(header.kind == Kind::Nak);
            self.transmit(actor, source, &frame);
        }
        due
    }

    /// The program's resolver has to find the session again.
    fn lost(&mut self, actor: usize, session: u64) {
        let program = (actor - self.reader_at(0)) / self.shape.sources;
        if let Role::Resolver(resolver) = &mut self.actors[program].role {
            resolver.session_lost(self.now, session);
        }
        self.wake(program, self.now);
    }

    fn transmit(&mut self, from: usize, to: SocketAddr, datagram: &[u8]) {
        let kind = Frame::split(datagram).map(|(frame, _)| frame.kind);
        if self.lost.is_some_and(|(lost, until)| self.now < until && kind == Some(lost)) {
            return;
        }
        let bytes: Rc<[u8]> = datagram.into();
        let Some((_, socket)) = owner(to) else {
            // To the group of the resolvers.
            for to in 0..self.shape.programs {
                self.fly(from, to, Rc::clone(&bytes));
            }
            return;
        };
        let to = usize::from(socket - FIRST_SOCKET);
        let is_lossy = self.lossy.is_some_and(|number| self.reader_at(number) == to);
        if !(is_lossy && self.rng.below(10) > 0) {
            self.fly(from, to, bytes);
        }
    }

    fn fly(&mut self, from: usize, to: usize, bytes: Rc<[u8]>) {
        let at = self.now + DELAY + self.rng.below(self.jitter);
        let is_lost = self.loss > 0 && self.rng.below(1_000) < self.loss;
        if !self.is_cut && !is_lost {
            self.events.add(at, Event::Arrives { to, from, bytes });
        }
    }
}

fn topics(source: usize, count: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |topic| format!("market.{source}.{topic}"))
}
