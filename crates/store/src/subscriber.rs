//! A subscriber that gets what it missed, driven by the application's calls.

use crate::durable_run::DurableRun;
use crate::error::OpenError;
use crate::former_feed::FormerFeed;
use crate::held_events::{HeldEvents, position_after};
use crate::links::Links;
use crate::options::{Acknowledgement, DurableOptions};
use lanecast_base::clock::{Clock, deadline};
use lanecast_os::epoll::Epoll;
use lanecast_persistence::{Detachment, Nanos, Receiver, ReceiverEvent, ReceiverOutlet};
use lanecast_stats::unix_ns;
use lanecast_transport::{CloseReason, Event, Publish, Subscribe, Transport};
use lanecast_wire::store::StoreFrame;
use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// Messages and frames read in one poll of a subscriber that waits for the stores.
const POLL_LIMIT: usize = 64;
/// Bytes of a frame beside the messages in it.
const FRAME_OVERHEAD: usize = 512;
/// Longest sleep while requests wait for a store to join, which no descriptor tells.
const ROOM_WAIT: Duration = Duration::from_millis(1);

/// A subscriber with a stable id, which gets what was sent while it was away.
///
/// It hands out each message of a stream once and in order: first those that it missed, from the
/// stores, then live ones, without a detour. All work is done in [`poll`](Self::poll), on the
/// caller's thread.
///
/// ```
/// use lanecast_shm::{Domain, DomainSettings, Visibility};
/// use lanecast_store::{
///     DurableOptions, DurableSubscriber, PersistentOptions, PersistentPublisher, ReceiverEvent,
///     StoreOptions, StoreServer,
/// };
/// # let directory = tempfile::tempdir()?;
///
/// let settings = DomainSettings { visibility: Visibility::Process, ..Default::default() };
/// # let settings = DomainSettings { directory: directory.path().into(), ..settings };
/// let domain = Domain::open(settings)?;
/// let options = StoreOptions::default();
/// let mut store = StoreServer::open(domain.clone(), "a", directory.path(), options)?;
/// let options = PersistentOptions::with_store("a");
/// let mut publisher = PersistentPublisher::open(&domain, "orders", 7, options)?;
/// while publisher.try_send(b"early").is_err() || publisher.stable() == 0 {
///     publisher.poll(|_| {});
///     store.poll()?;
/// }
/// drop(publisher);
///
/// let options = DurableOptions::with_store("a");
/// let mut subscriber = DurableSubscriber::open(domain, "orders", 99, options)?;
/// let mut received = Vec::new();
/// while received.is_empty() {
///     subscriber.poll(64, |event| {
///         if let ReceiverEvent::Message(message) = event {
///             received.push(message.bytes().to_vec());
///         }
///     });
///     store.poll()?;
/// }
/// assert_eq!(received[0], b"early");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct DurableSubscriber<T: Transport> {
    /// Live messages and the stores' answers. One subscriber for both: a thread that waits for it
    /// is woken by either, as by the messages of a plain subscriber, by the transport's strategy.
    // Before the links: a subscriber that is dropped first holds up no publisher.
    feed: T::Subscriber,
    /// The feed before, which a publisher evicted, as long as it has unread events.
    former: Option<FormerFeed<T::Subscriber>>,
    machine: Receiver,
    links: Links<T::Publisher>,
    acknowledgement: Acknowledgement,
    /// Streams and sequences that count as consumed since the last report.
    consumed: Vec<(u64, u64)>,
    /// Events that a run has taken, or left.
    held: HeldEvents,
    /// A publisher evicted the subscriber, which is replaced at the end of the poll.
    was_evicted: bool,
    /// The descriptor, if the program asked for one; stays when the subscriber is replaced.
    wakeup: Option<Epoll>,
    clock: Clock,
    transport: T,
    /// Sessions on the topic whose live messages come.
    sessions: BTreeSet<u64>,
    /// Sessions whose ends the feed before has told. This one may have the last part of them.
    ended: BTreeSet<u64>,
    foreign_frames: u64,
}

/// Outlet of the machine's requests and events.
struct Outbox<'a, P: Publish, F> {
    links: &'a mut Links<P>,
    handler: &'a mut F,
    acknowledgement: Acknowledgement,
    /// The streams and sequences of the messages that count as consumed.
    consumed: &'a mut Vec<(u64, u64)>,
}

impl<P: Publish, F: FnMut(ReceiverEvent<'_>)> ReceiverOutlet for Outbox<'_, P, F> {
    fn request(&mut self, store: usize, source: u64, frame: &StoreFrame<'_>) {
        self.links.send(store, source, frame);
    }

    #[inline]
    fn event(&mut self, event: ReceiverEvent<'_>) {
        let next = position_after(&event);
        if self.acknowledgement == Acknowledgement::OnReception {
            self.consume(next);
        }
        (self.handler)(event);
        if self.acknowledgement == Acknowledgement::OnReturn {
            self.consume(next);
        }
    }
}

/// The first of the events that wait, while its handler is called.
struct HandedOut<'a>(&'a mut HeldEvents);

impl Drop for HandedOut<'_> {
    fn drop(&mut self) {
        self.0.advance(1);
    }
}

impl<P: Publish, F> Outbox<'_, P, F> {
    #[inline]
    fn consume(&mut self, next: Option<(u64, u64)>) {
        let Some((source, next)) = next else { return };
        match self.consumed.last_mut() {
            Some(last) if last.0 == source => last.1 = next,
            _ => self.consumed.push((source, next)),
        }
    }
}

/// Parts of a subscriber that the events of its feed concern.
struct Reading<'a, P: Publish, F> {
    machine: &'a mut Receiver,
    out: Outbox<'a, P, F>,
    sessions: &'a mut BTreeSet<u64>,
    ended: &'a mut BTreeSet<u64>,
    was_evicted: &'a mut bool,
    foreign_frames: &'a mut u64,
    /// The events come from the feed before.
    is_former: bool,
    now: Nanos,
}

impl<P: Publish, F: FnMut(ReceiverEvent<'_>)> Reading<'_, P, F> {
    #[inline]
    fn on_event(&mut self, event: Event<'_>) {
        let Self { machine, out, now, .. } = self;
        match event {
            Event::Message(message) if message.stream().topic == out.links.topic() => {
                let (session, number) = (message.stream().session.0, message.number());
                if !self.is_former && !self.ended.is_empty() && self.ended.contains(&session) {
                    return;
                }
                machine.on_live(session, number, message.bytes(), *now, out);
            }
            Event::Message(message) => match out.links.read(&message) {
                Some((store, source, frame)) => {
                    machine.on_frame(store, source, &frame, *now, out);
                }
                None => {
                    *self.foreign_frames += 1;
                    if let Some((store, version)) = out.links.other_version(&message) {
                        out.event(ReceiverEvent::OtherVersion { store, version });
                    }
                }
            },
            other => self.on_change(other),
        }
    }

    /// Changes of sessions, and losses.
    fn on_change(&mut self, event: Event<'_>) {
        let Self { machine, out, sessions, ended, is_former, .. } = self;
        match event {
            // Lost answers are asked for again.
            Event::Lost(gap) if gap.stream.topic == out.links.topic() => {
                if *is_former || !ended.contains(&gap.stream.session.0) {
                    machine.on_lost(gap.stream.session.0, gap.first, gap.count, out);
                }
            }
            Event::Joined(stream) if stream.topic == out.links.topic() => {
                if *is_former || !ended.contains(&stream.session.0) {
                    sessions.insert(stream.session.0);
                    machine.on_joined(stream.session.0);
                }
            }
            Event::Left(stream, why) => {
                let session = stream.session.0;
                *self.was_evicted |= why == CloseReason::Evicted && !*is_former;
                if let Some(store) = out.links.store(&stream.topic) {
                    return machine.on_disconnected(store);
                }
                if !*is_former && ended.remove(&session) {
                    return;
                }
                sessions.remove(&session);
                let has_ended = matches!(why, CloseReason::Closed | CloseReason::Died);
                if has_ended && *is_former {
                    ended.insert(session);
                }
                // Otherwise only this subscriber's part in it has ended.
                if has_ended { machine.on_left(session) } else { machine.on_cut_off(session) }
            }
            _ => {}
        }
    }
}

impl<T: Transport> fmt::Debug for DurableSubscriber<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("DurableSubscriber");
        debug.field("topic", &self.links.topic()).finish_non_exhaustive()
    }
}

impl<T: Transport> DurableSubscriber<T> {
    /// Opens a subscriber of `topic` with the stable id `receiver`, which it keeps over its
    /// restarts; two under the same id must not live at the same time.
    ///
    /// Returns at once; [`ReceiverEvent::Joined`] tells of each stream where it goes on.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        transport: T,
        topic: &str,
        receiver: u64,
        options: DurableOptions,
    ) -> Result<Self, OpenError<T::Error>> {
        let DurableOptions { mut settings, acknowledgement } = options;
        let client = lanecast_os::process::random().map_err(OpenError::System)?;
        let links = Links::open(&transport, topic, &settings.stores, client)?;
        let feed = links.subscribe(&transport, &[topic]).map_err(OpenError::Transport)?;
        let longest = links.longest_frame().saturating_sub(FRAME_OVERHEAD);
        let longest = u32::try_from(longest).unwrap_or(u32::MAX);
        settings.fetch_bytes = settings.fetch_bytes.min(longest);
        settings.life = settings.life.max(unix_ns() / 1_000);
        let clock = Clock::host();
        let now = clock.ns(clock.ticks());
        Ok(Self {
            feed,
            former: None,
            machine: Receiver::new(settings, receiver, now),
            links,
            acknowledgement,
            consumed: Vec::new(),
            held: HeldEvents::default(),
            was_evicted: false,
            wakeup: None,
            clock,
            transport,
            sessions: BTreeSet::new(),
            ended: BTreeSet::new(),
            foreign_frames: 0,
        })
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Reads at most `limit` live messages and answers of stores, asks them what is due, and calls
    /// `handler` with the events; returns the amount of work, 0 if there was none. Never blocks.
    ///
    /// One answer of a store holds many messages, so that more than `limit` can be handed out.
    /// Their bytes are valid inside the handler's call. If the handler panics, the messages of this
    /// poll do not count as consumed.
    ///
    /// With [`Acknowledgement::OnReception`] the messages of a poll are copied, and reported before
    /// the handler is called for the first of them.
    pub fn poll(&mut self, limit: usize, mut handler: impl FnMut(ReceiverEvent<'_>)) -> usize {
        if self.acknowledgement == Acknowledgement::OnReception {
            return self.poll_reported(limit, handler);
        }
        let mut work = 0;
        while work < limit && self.held.len() > 0 {
            let next = self.held.position_after(0);
            self.held.get(0).into_iter().for_each(&mut handler);
            self.held.advance(1);
            self.note_consumed(next);
            work += 1;
        }
        if work == limit && work > 0 {
            return work;
        }
        work + self.poll_feed(limit - work, self.acknowledgement, handler)
    }

    /// Takes a run of events, from at most `limit` live messages and answers of stores. They stay
    /// valid until the run is dropped; only then do those that an iterator yielded count as
    /// consumed, if that is to be on their handler's return. Never blocks. Messages are copied:
    /// [`poll`](Self::poll) hands them out in place.
    ///
    /// ```no_run
    /// # use lanecast_store::{DurableSubscriber, ReceiverEvent};
    /// # use lanecast_transport::Transport;
    /// /// Passes messages to `insert`, many at once; returns their number.
    /// fn insert_batch<T: Transport>(
    ///     feed: &mut DurableSubscriber<T>,
    ///     insert: impl Fn(&[&[u8]]),
    /// ) -> usize {
    ///     let run = feed.take(1_000);
    ///     let bodies: Vec<&[u8]> = run
    ///         .iter()
    ///         .filter_map(|event| match event {
    ///             ReceiverEvent::Message(message) => Some(message.bytes()),
    ///             _ => None,
    ///         })
    ///         .collect();
    ///     insert(&bodies);
    ///     bodies.len()
    /// } // The run is dropped: its messages do not come again.
    /// ```
    pub fn take(&mut self, limit: usize) -> DurableRun<'_> {
        if self.held.len() == 0 {
            self.hold(limit);
        }
        let (now, consumes) = (self.now(), self.acknowledgement == Acknowledgement::OnReturn);
        let receiver = consumes.then_some(&mut self.machine);
        DurableRun::new(&mut self.held, receiver, now, limit)
    }

    /// Hands out events of which the messages are reported, and counts each before its handler is
    /// called, also if that panics.
    fn poll_reported(&mut self, limit: usize, mut handler: impl FnMut(ReceiverEvent<'_>)) -> usize {
        let mut work = 0;
        if self.held.len() == 0 {
            work = self.hold(limit);
        }
        while self.held.len() > 0 {
            work += 1;
            let handed = HandedOut(&mut self.held);
            handed.0.get(0).into_iter().for_each(&mut handler);
        }
        work
    }

    /// Reads as [`poll`](Self::poll) does, and keeps copies of the events; returns the amount of
    /// work.
    fn hold(&mut self, limit: usize) -> usize {
        let mut held = std::mem::take(&mut self.held);
        // The drop of a run says what was consumed.
        let acknowledgement = match self.acknowledgement {
            Acknowledgement::OnReturn => Acknowledgement::Explicit,
            other => other,
        };
        let work = self.poll_feed(limit, acknowledgement, |event| held.push(event));
        self.held = held;
        work
    }

    fn note_consumed(&mut self, next: Option<(u64, u64)>) {
        if let (Some((source, next)), Acknowledgement::OnReturn) = (next, self.acknowledgement) {
            let now = self.now();
            self.machine.consumed(source, next, now);
        }
    }

    fn poll_feed(
        &mut self,
        limit: usize,
        acknowledgement: Acknowledgement,
        mut handler: impl FnMut(ReceiverEvent<'_>),
    ) -> usize {
        let now = self.now();
        let Self { feed, former, machine, links, consumed, .. } = self;
        // Left behind by a handler that panicked.
        if acknowledgement == Acknowledgement::OnReturn {
            consumed.clear();
        }
        let mut work = links.flush();
        let out = Outbox { links, handler: &mut handler, acknowledgement, consumed };
        let mut reading = Reading {
            machine,
            out,
            sessions: &mut self.sessions,
            ended: &mut self.ended,
            was_evicted: &mut self.was_evicted,
            foreign_frames: &mut self.foreign_frames,
            is_former: former.is_some(),
            now,
        };
        let read = match former {
            Some(former) => former.poll(limit, |event| reading.on_event(event)),
            None => feed.poll(limit, |event| reading.on_event(event)),
        };
        let Reading { machine, mut out, .. } = reading;
        work += read;
        if now >= machine.due() {
            machine.tick(now, &mut out);
        }
        for (source, next) in self.consumed.drain(..) {
            self.machine.consumed(source, next, now);
            if acknowledgement == Acknowledgement::OnReception {
                let send = |store, frame: &StoreFrame<'_>| self.links.send(store, source, frame);
                self.machine.report(source, now, send);
            }
        }
        if read == 0 && limit > 0 {
            self.on_read_out();
        }
        if self.was_evicted {
            self.resubscribe();
        }
        work
    }

    /// Everything was read that has come.
    fn on_read_out(&mut self) {
        if self.former.take().is_some() {
            // Some went on without this subscriber; the feed tells in which it takes part.
            for session in std::mem::take(&mut self.sessions) {
                self.machine.on_cut_off(session);
            }
        } else {
            self.ended.clear();
        }
    }

    /// Subscribes anew where a publisher or a store went on without this subscriber: the stores
    /// have what it missed.
    #[cold]
    fn resubscribe(&mut self) {
        // For lack of memory or descriptors now, perhaps: the next poll tries again.
        let topics = [self.links.topic()];
        let Ok(mut feed) = self.links.subscribe(&self.transport, &topics) else { return };
        let is_watched = self
            .wakeup
            .as_ref()
            .is_none_or(|set| feed.wakeup().is_ok_and(|it| set.add(it, 0).is_ok()));
        if is_watched {
            let former = std::mem::replace(&mut self.feed, feed);
            (self.former, self.was_evicted) = (Some(FormerFeed::new(former)), false);
        }
    }

    /// Waits by the transport's strategy after a [`poll`](Self::poll) that returned `work`: returns
    /// at once if that is not 0, and in time for the next request or report.
    pub fn wait(&mut self, work: usize) {
        self.wait_at_most(work, self.feed.longest_wait());
    }

    /// As [`wait`](Self::wait), and returns after `limit` at the latest.
    pub fn wait_at_most(&mut self, work: usize, limit: Duration) {
        let due = Duration::from_nanos(self.machine.due().saturating_sub(self.now()));
        let due = if self.links.are_waiting() { due.min(ROOM_WAIT) } else { due };
        let limit = limit.min(due).min(self.feed.longest_wait());
        let work = work + self.held.len() + usize::from(self.former.is_some());
        if work > 0 || !limit.is_zero() {
            self.feed.wait_at_most(work, limit);
        }
    }

    /// A descriptor for event loops: readable when there is something to poll. The subscriber has
    /// to be polled every 100 ms besides, for its times.
    ///
    /// # Errors
    /// If the process has no free descriptor, or the system refuses a thread.
    pub fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.wakeup.is_none() {
            let set = Epoll::new()?;
            set.add(self.feed.wakeup()?, 0)?;
            self.wakeup = Some(set);
        }
        let set = self.wakeup.as_ref().ok_or(io::ErrorKind::NotFound)?;
        Ok(set.as_fd())
    }

    /// The program has consumed the messages of the stream of `source` up to `sequence` and this
    /// one: they do not come again, as soon as enough stores know it
    /// ([`ReceiverEvent::Acknowledged`]). For [`Acknowledgement::Explicit`].
    pub fn acknowledge(&mut self, source: u64, sequence: u64) {
        let now = self.now();
        let next = self.held.consumed(source, sequence.saturating_add(1));
        self.machine.consumed(source, next, now);
    }

    /// Sequence of the next message of a stream; `None` if it has not begun.
    pub fn next(&self, source: u64) -> Option<u64> {
        self.machine.next(source)
    }

    /// Whether enough stores have answered once: every stream that they kept by then has begun, and
    /// of those that come later no message is missed.
    pub const fn is_registered(&self) -> bool {
        self.machine.has_all()
    }

    /// Whether enough stores have answered once, and every stream has come to the end of the range
    /// ([`ReceiverEvent::Ended`]).
    pub fn has_ended(&self) -> bool {
        self.machine.has_ended()
    }

    /// Whether the publisher of a stream is there, and its messages come without a detour.
    pub fn is_live(&self, source: u64) -> bool {
        self.machine.session(source).is_some_and(|session| self.sessions.contains(&session))
    }

    /// Whether enough stores know of all that was consumed.
    pub fn is_acknowledged(&self) -> bool {
        self.machine.is_acknowledged()
    }

    /// Waits until enough stores know of all that was consumed, at most `timeout`; returns whether
    /// that is so. Events that come meanwhile go to `handler`.
    #[must_use = "messages may come again"]
    pub fn wait_acknowledged(
        &mut self,
        timeout: Duration,
        mut handler: impl FnMut(ReceiverEvent<'_>),
    ) -> bool {
        let deadline = deadline(timeout);
        loop {
            let work = self.poll(POLL_LIMIT, &mut handler);
            if self.machine.is_acknowledged() {
                return true;
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            self.wait_at_most(work, left);
        }
    }

    /// Gives up the registration with all stores, for good: nothing is kept for this id, and no
    /// publisher waits for it. Waits until all stores have that on disk, or enough of them while
    /// the others do not answer, and at most `timeout`; returns what was confirmed by then. No
    /// message is handed out any more.
    #[must_use = "stores may still keep messages, and hold publishers back"]
    pub fn detach(mut self, timeout: Duration) -> Detachment {
        let deadline = deadline(timeout);
        self.held = HeldEvents::default();
        self.machine.detach(self.now());
        loop {
            let work = self.poll_feed(POLL_LIMIT, Acknowledgement::Explicit, |_| {});
            let left = deadline.saturating_duration_since(Instant::now());
            if self.machine.is_detached() || left.is_zero() {
                return self.machine.detachment().expect("it is leaving");
            }
            self.wait_at_most(work, left);
        }
    }

    /// Frames from the stores that are none, or of another version.
    pub const fn foreign_frames(&self) -> u64 {
        self.foreign_frames
    }
}
