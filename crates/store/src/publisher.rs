//! A publisher whose messages are kept, driven by the application's calls.

use crate::error::{OpenError, PersistentSendError};
use crate::links::Links;
use crate::name;
use crate::options::PersistentOptions;
use crate::room_wait::RoomWait;
use lanecast_base::clock::{Clock, deadline};
use lanecast_persistence::{Nanos, SendRefusal, Source, SourceEvent, SourceOutlet};
use lanecast_transport::{Claim, Completion, Event, Publish, Subscribe, Transport};
use lanecast_wire::store::StoreFrame;
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Frames read in one poll.
const POLL_LIMIT: usize = 256;
/// Bytes of a frame beside a message that it carries.
const FRAME_OVERHEAD: usize = 512;
/// Longest sleep while requests wait for a store to join, or for room.
const ROOM_WAIT: Duration = Duration::from_micros(100);

/// A publisher whose messages are kept by stores.
///
/// Messages go to subscribers as those of any other publisher do, without a detour; stores receive
/// them beside. All other work is done in [`poll`](Self::poll), on the caller's thread: a program
/// that sends without polling reaches the flight size and is refused.
///
/// [`StoreServer`](crate::StoreServer) has an example.
pub struct PersistentPublisher<T: Transport> {
    // Before the publishers: a subscriber that is dropped first holds up none of them.
    replies: T::Subscriber,
    publisher: T::Publisher,
    machine: Source,
    source: u64,
    links: Links<T::Publisher>,
    events: Vec<SourceEvent>,
    clock: Clock,
    next_tick: Nanos,
    longest: usize,
    foreign_frames: u64,
    room_wait: RoomWait,
}

/// Outlet of the machine's requests and events.
struct Outbox<'a, P: Publish> {
    source: u64,
    links: &'a mut Links<P>,
    events: &'a mut Vec<SourceEvent>,
}

impl<P: Publish> SourceOutlet for Outbox<'_, P> {
    fn request(&mut self, store: usize, frame: &StoreFrame<'_>) {
        self.links.send(store, self.source, frame);
    }

    fn event(&mut self, event: SourceEvent) {
        self.events.push(event);
    }
}

impl<T: Transport> fmt::Debug for PersistentPublisher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (topic, source) = (self.links.topic(), self.source);
        let mut debug = f.debug_struct("PersistentPublisher");
        debug.field("topic", &topic).field("source", &source).finish_non_exhaustive()
    }
}

impl<T: Transport> PersistentPublisher<T> {
    /// Opens a publisher of `topic` with the stable id `source`, which it keeps over its restarts;
    /// of two that live at the same time the later one goes on, and the other is told.
    ///
    /// Returns at once; [`SourceEvent::Registered`] tells that messages can be sent.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        transport: &T,
        topic: &str,
        source: u64,
        options: PersistentOptions,
    ) -> Result<Self, OpenError<T::Error>> {
        name::check_topic(topic)?;
        let mut settings = options.settings;
        let failed = OpenError::Transport;
        let publisher = transport.publisher(topic).map_err(failed)?;
        let session = publisher.session().0;
        let links = Links::open(transport, topic, &settings.stores, session)?;
        let replies = links.subscribe(transport, &[]).map_err(failed)?;
        let longest_frame = links.longest_frame().saturating_sub(FRAME_OVERHEAD);
        settings.longest_frame = settings.longest_frame.min(longest_frame);
        // A message has to fit into a frame as well: a store that missed it is sent it again.
        let longest = longest_frame.min(publisher.longest_message()).min(settings.flight_bytes);
        let clock = Clock::host();
        let now = clock.ns(clock.ticks());
        Ok(Self {
            replies,
            machine: Source::new(settings, session, micros(), now),
            publisher,
            source,
            links,
            events: Vec::new(),
            clock,
            next_tick: 0,
            longest,
            foreign_frames: 0,
            room_wait: RoomWait::new(),
        })
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Sends `bytes` if that is possible now; returns the message's sequence in its stream, which
    /// goes on over restarts.
    ///
    /// # Errors
    /// See [`PersistentSendError`]; nothing was sent then.
    #[inline]
    pub fn try_send(&mut self, bytes: &[u8]) -> Result<u64, PersistentSendError> {
        if bytes.len() > self.longest {
            let longest = self.longest;
            return Err(lanecast_transport::ClaimError::TooLong { longest }.into());
        }
        self.machine.check_room(bytes.len())?;
        let Self { publisher, machine, room_wait, .. } = self;
        let note = |refusal| {
            room_wait.on_refusal(machine.next());
            refusal
        };
        let mut claim = publisher.try_claim(bytes.len()).map_err(note)?;
        claim.copy_from_slice(bytes);
        claim.commit();
        Ok(self.machine.sent(bytes))
    }

    /// Longest pause to wait with after the transport had no room for a message: longer if few
    /// messages found room after the last ones.
    pub const fn room_wait(&self) -> Duration {
        self.room_wait.pause()
    }

    /// Whether a message of `length` bytes has room in flight now.
    ///
    /// # Errors
    /// See [`SendRefusal`].
    pub fn room(&self, length: usize) -> Result<(), SendRefusal> {
        self.machine.room(length)
    }

    /// Sends `bytes`, and waits while that is not possible. Events that come meanwhile go to
    /// `handler`.
    ///
    /// # Errors
    /// See [`PersistentSendError`]: those that waiting does not help against.
    pub fn send(
        &mut self,
        bytes: &[u8],
        mut handler: impl FnMut(SourceEvent),
    ) -> Result<u64, PersistentSendError> {
        loop {
            match self.try_send(bytes) {
                Err(error) if error.may_pass() => {
                    let work = self.poll(&mut handler);
                    let is_transport = matches!(error, PersistentSendError::Transport(_));
                    let limit = if is_transport { self.room_wait() } else { Duration::MAX };
                    self.wait_at_most(work, limit);
                }
                other => return other,
            }
        }
    }

    /// Reads the stores' answers, asks them what is due, and calls `handler` with the events;
    /// returns the amount of work, 0 if there was none. Never blocks.
    pub fn poll(&mut self, mut handler: impl FnMut(SourceEvent)) -> usize {
        let now = self.now();
        let Self { replies, publisher, machine, source, links, events, foreign_frames, .. } = self;
        let source = *source;
        publisher.keep_warm();
        let mut work = links.flush();
        work += replies.poll(POLL_LIMIT, |event| match event {
            Event::Message(message) => match links.read(&message) {
                Some((store, about, frame)) if about == source => {
                    machine.on_frame(store, &frame, now, &mut Outbox { source, links, events });
                }
                _ => {
                    *foreign_frames += 1;
                    let other = links.other_version(&message);
                    let event = |(store, version)| SourceEvent::OtherVersion { store, version };
                    events.extend(other.map(event));
                }
            },
            Event::Left(stream, _) => {
                if let Some(store) = links.store(&stream.topic) {
                    machine.on_disconnected(store);
                }
            }
            _ => {}
        });
        if now >= self.next_tick {
            self.next_tick = machine.tick(now, &mut Outbox { source, links, events });
        }
        machine.tell_flight(&mut Outbox { source, links, events });
        work += self.events.len();
        self.events.drain(..).for_each(&mut handler);
        work
    }

    /// Waits by the transport's strategy after a [`poll`](Self::poll) that returned `work`: returns
    /// at once if that is not 0, and in time for the next request.
    pub fn wait(&mut self, work: usize) {
        self.wait_at_most(work, self.replies.longest_wait());
    }

    /// As [`wait`](Self::wait), and returns after `limit` at the latest.
    pub fn wait_at_most(&mut self, work: usize, limit: Duration) {
        let due = Duration::from_nanos(self.next_tick.saturating_sub(self.now()));
        let due = if self.links.are_waiting() { due.min(ROOM_WAIT) } else { due };
        let limit = limit.min(due).min(self.replies.longest_wait());
        if work > 0 || !limit.is_zero() {
            self.replies.wait_at_most(work, limit);
        }
    }

    /// A descriptor for event loops: readable when a store has answered. The publisher has to be
    /// polled at the interval of its requests besides.
    ///
    /// # Errors
    /// If the process has no free descriptor.
    pub fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.replies.wakeup()
    }

    /// Waits until every message is stable, at most `timeout`; returns whether that is so. Events
    /// go to `handler`.
    #[must_use = "messages may not be stable"]
    pub fn wait_stable(&mut self, timeout: Duration, mut handler: impl FnMut(SourceEvent)) -> bool {
        let deadline = deadline(timeout);
        loop {
            let work = self.poll(&mut handler);
            if self.machine.is_registered() && self.machine.stable() == self.machine.next() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait_at_most(work, left);
        }
    }

    /// Whether the stores have accepted this run: messages can be sent.
    pub const fn is_registered(&self) -> bool {
        self.machine.is_registered()
    }

    /// Subscribers that have joined, those of stores left out: of all named stores that are there,
    /// since a store subscribes to the topic before it answers. A subscriber may count late for it,
    /// and none too early.
    pub fn subscribers(&self) -> usize {
        let stores = self.links.joined().max(self.machine.answering());
        self.publisher.subscribers().saturating_sub(stores)
    }

    /// Stores that have answered, and are connected.
    pub fn answering_stores(&self) -> usize {
        self.machine.answering()
    }

    /// Sequence of the next message.
    pub fn next(&self) -> u64 {
        self.machine.next()
    }

    /// Messages in flight: not stable, or, if receivers pace the publisher, not consumed.
    pub fn in_flight(&self) -> u64 {
        self.machine.in_flight()
    }

    /// Sequence of the first message that a registered receiver has not consumed.
    pub const fn consumed(&self) -> u64 {
        self.machine.consumed()
    }

    /// Sequence of the first message that is not stable: all before it survive.
    pub const fn stable(&self) -> u64 {
        self.machine.stable()
    }

    /// Version of the members: it grows when a store that lost its data is taken back.
    pub const fn members(&self) -> u64 {
        self.machine.members().version
    }

    /// The stable id.
    pub const fn source(&self) -> u64 {
        self.source
    }

    /// The longest message, in bytes: the transport's, a frame's to the stores, or the flight's.
    pub const fn longest_message(&self) -> usize {
        self.longest
    }

    /// Frames from the stores that are none, or of another version.
    pub const fn foreign_frames(&self) -> u64 {
        self.foreign_frames
    }

    /// The publisher below: its subscribers and its events.
    pub const fn publisher(&mut self) -> &mut T::Publisher {
        &mut self.publisher
    }

    /// Closes the publisher when its subscribers have read everything, or after `linger`. Messages
    /// that are not stable by then may be kept or not: see [`wait_stable`](Self::wait_stable).
    pub fn close(self, linger: Duration) -> Completion {
        self.publisher.close(linger)
    }
}

/// Now, in microseconds since 1970: the epoch of a run.
fn micros() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_micros()).unwrap_or(u64::MAX))
}
