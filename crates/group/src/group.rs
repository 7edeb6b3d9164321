//! A member of a group, driven by the application's calls.

use crate::error::JoinError;
use crate::links::Links;
use crate::name;
use crate::options::{GroupOptions, fitted};
use crate::outbox::Outbox;
use crate::pending::PendingEvents;
use crate::refused_frames::RefusedFrames;
use crate::streams::{departure, remember};
use crate::telemetry::Telemetry;
use crate::wakeup::Wakeup;
use crate::watch::{Watch, WatchEvent, address_of};
use lanecast_base::clock::Clock;
use lanecast_membership::{
    Departure, Event, GroupCounters, Member, MemberId, MemberInfo, Nanos, Order, SendError,
    StateError, View,
};
use lanecast_transport::{CloseReason, Event as StreamEvent, Subscribe, Transport};
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Frames read in one poll by calls that wait.
const POLL_LIMIT: usize = 64;
/// Longest sleep while the transport has no room: readers that make some send no wake-up.
const ROOM_WAIT: Duration = Duration::from_micros(100);

/// A member of a group over the transport `T`.
///
/// All work is done in the calls of the application, most of it in [`poll`](Self::poll): heartbeats
/// are sent, crashes noticed and views agreed on there, so a loop calls it all the time. A member
/// that does not poll for longer than `hang_timeout` is excluded; it comes back by itself when it
/// polls again.
///
/// Messages of one sender arrive in its order at all members; those sent with [`Order::Total`]
/// arrive in one order at all members, across senders. Members that go from one view to the
/// next together have received the same messages in between.
///
/// ```
/// use lanecast_group::{Event, Group, GroupOptions, Order};
/// use lanecast_shm::{Domain, DomainSettings, Visibility};
///
/// let settings = DomainSettings { visibility: Visibility::Process, ..Default::default() };
/// let domain = Domain::open(settings)?;
/// let mut group = Group::join(domain, "workers", GroupOptions::named("first"))?;
///
/// let (mut has_sent, mut received) = (false, None);
/// while received.is_none() {
///     let mut is_member = false;
///     let work = group.poll(64, |event| match event {
///         Event::View(view, _) => {
///             println!("{} members", view.members.len());
///             is_member = true;
///         }
///         Event::Message { bytes, .. } => received = Some(bytes.to_vec()),
///         _ => {}
///     });
///     if is_member && !has_sent {
///         group.try_send(b"hello, all", Order::Sender)?;
///         has_sent = true;
///     }
///     group.wait(work); // never longer than the member's next duty
/// }
/// assert_eq!(received.as_deref(), Some(&b"hello, all"[..])); // a sender receives its own
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Group<T: Transport> {
    member: Member,
    // Before the links: a subscriber that is dropped first holds up no publisher.
    subscriber: T::Subscriber,
    links: Links<T>,
    watch: Option<Watch>,
    pending: PendingEvents,
    wakeup: Option<Wakeup>,
    clock: Clock,
    /// Addresses of members between hosts, by their streams.
    addresses: Vec<(MemberId, IpAddr)>,
    /// Most bytes of own messages that wait for the next poll.
    pending_max: usize,
    /// A publisher evicted the subscriber, which is replaced at the end of the poll.
    was_evicted: bool,
    has_view: bool,
    has_left: bool,
    /// The view of the last look at its members.
    seen_view: Option<lanecast_membership::ViewId>,
    foreign_frames: u64,
    refused: RefusedFrames,
    telemetry: Telemetry,
    /// The frame of a sealed one.
    opened: Vec<u8>,
}

impl<T: Transport> Group<T> {
    /// Joins the group `name`: finds its members over `transport`, or is its first one.
    ///
    /// Returns at once; the first [`Event::View`] tells that the member is in the group. Members
    /// that use the same transport, or can reach each other over it, and the same name meet. A
    /// transport over shared memory should evict subscribers that do not read
    /// (`SlowConsumerPolicy::EvictAfter`), or a member that hangs holds up the others' streams for
    /// good.
    ///
    /// # Errors
    /// See [`JoinError`].
    pub fn join(
        transport: T,
        name: &str,
        options: GroupOptions,
    ) -> Result<Self, JoinError<T::Error>> {
        name::check_group(name)?;
        name::check_member(&options.name)?;
        let links =
            Links::open(transport, name, options.keys.as_ref()).map_err(JoinError::Transport)?;
        let id = links.id();
        let watch = options.watch.map(|local| Watch::open(local, id));
        let watch = watch.transpose().map_err(JoinError::Watch)?;
        let port = watch.as_ref().map_or(0, Watch::port);
        let me = MemberInfo { id, incarnation: micros(), name: options.name, port };
        let settings = fitted(options.settings, links.longest_frame());
        let pending_max = settings.window;
        let clock = Clock::host();
        let now = clock.ns(clock.ticks());
        let member = Member::new(settings, me, name, id.0, now)?;
        let subscriber = links.subscribe().map_err(JoinError::Transport)?;
        let telemetry = Telemetry::open(options.counters.as_deref(), &member, name);
        Ok(Self {
            member,
            subscriber,
            links,
            watch,
            pending: PendingEvents::default(),
            wakeup: None,
            clock,
            addresses: Vec::new(),
            pending_max,
            was_evicted: false,
            has_view: false,
            has_left: false,
            seen_view: None,
            foreign_frames: 0,
            refused: RefusedFrames::default(),
            telemetry,
            opened: Vec::new(),
        })
    }

    fn now(&self) -> Nanos {
        self.clock.ns(self.clock.ticks())
    }

    /// Reads at most `limit` frames, does the member's duties, and calls `handler` with the events;
    /// returns the amount of work, 0 if there was none. Never blocks.
    ///
    /// One frame can release several messages, when it fills a gap. Messages are valid inside the
    /// handler's call.
    pub fn poll(&mut self, limit: usize, mut handler: impl FnMut(Event<'_>)) -> usize {
        let now = self.now();
        // Before the handlers run: the others can read meanwhile.
        self.links.end_turn(now);
        let Self { member, subscriber, links, pending, addresses, seen_view, wakeup, .. } = self;
        let (has_view, has_left) = (&mut self.has_view, &mut self.has_left);
        let (was_evicted, foreign_frames) = (&mut self.was_evicted, &mut self.foreign_frames);
        let (refused, opened) = (&mut self.refused, &mut self.opened);
        let mine = links.id();
        let mut handler = |event: Event<'_>| {
            *has_view |= matches!(event, Event::View(..));
            *has_left |= matches!(event, Event::Left);
            handler(event);
        };
        let mut work = pending.deliver(&mut handler);
        let mut out = Outbox { links, handler: &mut handler };
        let mut on_stream = |event: StreamEvent<'_>| match event {
            StreamEvent::Message(message) => {
                let stream = message.stream();
                let from = MemberId(stream.session.0);
                if from == mine {
                    return;
                }
                let is_mine = out.links.is_mine(stream);
                match out.links.unseal(message.bytes(), from, is_mine, opened) {
                    Ok(frame) => member.on_frame(now, frame, &mut out),
                    Err(why) => {
                        *foreign_frames += 1;
                        refused.add(address_of(&stream.source), why);
                    }
                }
            }
            StreamEvent::Joined(stream) if !out.links.is_mine(stream) => {
                remember(addresses, stream);
                // A member of the view may have been unreachable until now.
                *seen_view = None;
            }
            StreamEvent::Left(_, CloseReason::Evicted) => *was_evicted = true,
            StreamEvent::Left(stream, why) if !out.links.is_mine(stream) => {
                addresses.retain(|(id, _)| id.0 != stream.session.0);
                if let Some(departure) = departure(stream, why) {
                    member.on_peer_gone(now, MemberId(stream.session.0), departure, &mut out);
                }
            }
            // Losses show in the members' own sequences, and are repaired by those.
            _ => {}
        };
        let mut frames = 0;
        let has_more = loop {
            let read = subscriber.poll(limit - frames, &mut on_stream);
            frames += read;
            // A single frame may want an answer now. Several are a stream: the more of it is read
            // in a turn, the fewer system calls do its frames and the answers take. An empty read
            // would make a descriptor unreadable, which only an empty poll does.
            if read <= 1 || frames >= limit || wakeup.is_some() {
                break read > 0;
            }
        };
        work += frames;
        if let Some(watch) = &mut self.watch {
            watch.poll(now, |id, event| match event {
                WatchEvent::Gone => {
                    work += 1;
                    member.on_peer_gone(now, id, Departure::Crashed, &mut out);
                }
                WatchEvent::Answered => member.on_answer(now, id),
            });
        }
        // A read that finds frames may have left others.
        member.set_backlog(now, has_more);
        if now >= member.next_tick() {
            member.on_tick(now, &mut out);
        }
        self.finish_poll(now, work, frames > 0);
        work
    }

    /// Duties after the member's own.
    #[inline]
    fn finish_poll(&mut self, now: Nanos, work: usize, has_frames: bool) {
        // An acknowledgement leaves with the messages of the next turn, which follows work at once.
        if work == 0 {
            self.links.send_packed();
        }
        if !self.links.probes.is_empty() {
            self.probe();
        }
        if self.was_evicted {
            self.resubscribe();
        }
        if self.seen_view != Some(self.member.view().id) {
            self.follow_view();
        }
        self.telemetry.update(now, &self.member, &self.refused);
        if let Some(wakeup) = &mut self.wakeup {
            if work == 0 {
                wakeup.set(now, self.member.next_tick());
            } else if !has_frames {
                // The subscriber's descriptor stays readable after frames, but not after other
                // work, which may have brought the next duty forward.
                wakeup.bring_forward(now, now);
            }
        }
    }

    /// Makes the descriptor readable in time for what a call between two polls has left to do.
    #[inline]
    fn finish_call(&mut self, now: Nanos) {
        if let Some(wakeup) = &mut self.wakeup {
            let due = if self.pending.is_empty() { self.member.next_tick() } else { now };
            wakeup.bring_forward(now, due);
        }
    }

    /// Asks silent members for a sign of life.
    #[cold]
    fn probe(&mut self) {
        for id in self.links.probes.drain(..) {
            if let Some(watch) = &mut self.watch {
                watch.probe(id);
            }
        }
    }

    /// Subscribes anew: the member's stream went on without it.
    #[cold]
    fn resubscribe(&mut self) {
        // For lack of memory or descriptors now, perhaps: the next poll tries again.
        let Ok(mut subscriber) = self.links.subscribe() else { return };
        if let Some(wakeup) = &self.wakeup
            && wakeup.replace(&mut subscriber).is_err()
        {
            return;
        }
        self.subscriber = subscriber;
        self.was_evicted = false;
    }

    /// Closes links to former members, and watches the new ones.
    #[cold]
    fn follow_view(&mut self) {
        let view = self.member.view();
        self.seen_view = Some(view.id);
        self.links.keep(view);
        let Some(watch) = &mut self.watch else { return };
        let mine = self.links.id();
        let addresses = &self.addresses;
        let address = |id: MemberId| addresses.iter().find(|(it, _)| *it == id).map(|(_, ip)| *ip);
        let peers = view.members.iter().filter(|it| it.id != mine && it.port != 0);
        watch.set_peers(
            peers.filter_map(|it| Some((it.id, SocketAddr::new(address(it.id)?, it.port)))),
        );
    }

    /// Waits by the transport's strategy after a [`poll`](Self::poll) that returned `work`: returns
    /// at once if that is not 0, and in time for the member's next duty.
    pub fn wait(&mut self, work: usize) {
        self.wait_at_most(work, self.subscriber.longest_wait());
    }

    /// As [`wait`](Self::wait), and returns after `limit` at the latest.
    pub fn wait_at_most(&mut self, work: usize, limit: Duration) {
        self.links.send_packed();
        let limit = limit.min(self.until_duty());
        if work > 0 || !limit.is_zero() {
            self.subscriber.wait_at_most(work, limit);
        }
    }

    /// Time until the member has to be polled even if nothing comes.
    pub fn until_duty(&self) -> Duration {
        let now = self.now();
        let watch = self.watch.as_ref().map_or(Nanos::MAX, Watch::due);
        let due = if self.pending.is_empty() { self.member.next_tick().min(watch) } else { now };
        Duration::from_nanos(due.saturating_sub(now))
    }

    /// A descriptor for event loops: readable when there is something to poll, a duty of the member
    /// included. A [`poll`](Self::poll) that returns 0 makes it unreadable. Otherwise as
    /// [`Subscribe::wakeup`].
    ///
    /// # Errors
    /// If the process has no free descriptor, or the system refuses a thread.
    pub fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        // Between two polls the application sleeps without a word.
        self.links.never_pack();
        let wakeup = match self.wakeup.take() {
            Some(wakeup) => wakeup,
            None => Wakeup::new(&mut self.subscriber, self.watch.as_ref())?,
        };
        let wakeup: &Wakeup = self.wakeup.insert(wakeup);
        Ok(wakeup.as_fd())
    }

    /// Sends `bytes` to all members of the view, this one included, if that is possible now;
    /// returns the sequence of the message's last frame among those of this member.
    ///
    /// This member receives the message in its next [`poll`](Self::poll), or, with
    /// [`Order::Total`], at its place among those of the others.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was sent then. After a refusal that waiting helps against,
    /// [`Event::Writable`] follows.
    #[inline]
    pub fn try_send(&mut self, bytes: &[u8], order: Order) -> Result<u64, SendError> {
        self.refuse_if_pending()?;
        let now = self.now();
        let pending = &mut self.pending;
        let mut handler = |event: Event<'_>| pending.push(event);
        let mut out = Outbox { links: &mut self.links, handler: &mut handler };
        let sent = self.member.try_send(now, bytes, order, &mut out);
        self.finish_call(now);
        sent
    }

    /// Refuses a message to this member while those that wait for its next poll take too much.
    #[inline]
    fn refuse_if_pending(&mut self) -> Result<(), SendError> {
        if self.pending.length() <= self.pending_max {
            return Ok(());
        }
        self.pending.promise_room();
        Err(SendError::NoCredit(self.links.id()))
    }

    /// Sends `bytes` to all members of the view, and waits while that is not possible: during a
    /// change of the view, without credit, or without room in the transport. Events that come
    /// meanwhile go to `handler`, so that members that all wait still serve each other.
    ///
    /// # Errors
    /// See [`SendError`]: those that waiting does not help against.
    pub fn send(
        &mut self,
        bytes: &[u8],
        order: Order,
        mut handler: impl FnMut(Event<'_>),
    ) -> Result<u64, SendError> {
        loop {
            match self.try_send(bytes, order) {
                Err(error) if may_pass(error) => self.poll_and_wait(error, &mut handler),
                other => return other,
            }
        }
    }

    /// Sends `bytes` to the member `to` alone, if that is possible now; returns the sequence among
    /// the messages to it.
    ///
    /// # Errors
    /// See [`SendError`]; nothing was sent then.
    pub fn try_send_to(&mut self, to: MemberId, bytes: &[u8]) -> Result<u64, SendError> {
        if to == self.links.id() {
            self.refuse_if_pending()?;
        }
        let now = self.now();
        let pending = &mut self.pending;
        let mut handler = |event: Event<'_>| pending.push(event);
        let mut out = Outbox { links: &mut self.links, handler: &mut handler };
        let sent = self.member.try_send_to(now, to, bytes, &mut out);
        self.finish_call(now);
        sent
    }

    /// Sends `bytes` to the member `to` alone, and waits like [`send`](Self::send).
    ///
    /// # Errors
    /// See [`SendError`]: those that waiting does not help against.
    pub fn send_to(
        &mut self,
        to: MemberId,
        bytes: &[u8],
        mut handler: impl FnMut(Event<'_>),
    ) -> Result<u64, SendError> {
        loop {
            match self.try_send_to(to, bytes) {
                Err(error) if may_pass(error) => self.poll_and_wait(error, &mut handler),
                other => return other,
            }
        }
    }

    fn poll_and_wait(&mut self, refused: SendError, handler: &mut impl FnMut(Event<'_>)) {
        let work = self.poll(POLL_LIMIT, handler);
        match refused {
            SendError::Transport => self.wait_at_most(work, ROOM_WAIT),
            _ => self.wait(work),
        }
    }

    /// Answers [`Event::StateRequested`] with the group's state as of the last event that the
    /// application was given, which may have come after the request.
    ///
    /// # Errors
    /// See [`StateError`]. [`StateError::NotRequested`] if the view has changed since the request:
    /// nothing is to be done, the new member asks again if it is still there.
    /// [`StateError::Unseen`] after own messages were sent since the last poll:
    /// poll, and give the state after that.
    pub fn provide_state(&mut self, token: u64, bytes: Vec<u8>) -> Result<(), StateError> {
        if !self.pending.is_empty() {
            return Err(StateError::Unseen);
        }
        let now = self.now();
        let pending = &mut self.pending;
        let mut handler = |event: Event<'_>| pending.push(event);
        let mut out = Outbox { links: &mut self.links, handler: &mut handler };
        let provided = self.member.provide_state(now, token, bytes, &mut out);
        self.finish_call(now);
        provided
    }

    /// Halves the bytes that this member may have under way: for programs that run short of memory.
    /// They grow again while sends are refused for want of credit.
    pub fn on_memory_pressure(&mut self) {
        self.member.on_memory_pressure();
    }

    /// All members have this member's messages below this sequence.
    pub fn stable(&self) -> u64 {
        self.member.stable()
    }

    /// Whether the member is in the group: its first [`Event::View`] has come.
    pub const fn has_view(&self) -> bool {
        self.has_view
    }

    /// The present view.
    pub fn view(&self) -> &View {
        self.member.view()
    }

    /// This member.
    pub fn me(&self) -> &MemberInfo {
        self.member.me()
    }

    /// Counters of this member.
    pub fn counters(&self) -> &GroupCounters {
        self.member.counters()
    }

    /// Frames that were dropped: none of this group's, not under its key, or with another sender
    /// than their stream's.
    pub const fn foreign_frames(&self) -> u64 {
        self.foreign_frames + self.member.foreign_frames()
    }

    /// Frames that could not be opened, as the keys of their senders are others
    /// ([`GroupOptions::keys`]), and the hosts that sent them.
    pub const fn refused_frames(&self) -> &RefusedFrames {
        &self.refused
    }

    /// Leaves the group; waits at most `timeout` until the others have agreed on a view without
    /// this member, or have all left, too. False if they have not: they find out by themselves.
    ///
    /// Events that come meanwhile are dropped; [`leave_with`](Self::leave_with) passes them on. A
    /// group that is dropped leaves without waiting.
    #[must_use = "the others may take this member for dead"]
    pub fn leave(self, timeout: Duration) -> bool {
        self.leave_with(timeout, |_| ())
    }

    /// As [`leave`](Self::leave), with the events of the last view.
    #[must_use = "the others may take this member for dead"]
    pub fn leave_with(mut self, timeout: Duration, mut handler: impl FnMut(Event<'_>)) -> bool {
        let deadline = self.now().saturating_add(nanos(timeout));
        let now = self.now();
        let pending = &mut self.pending;
        let mut push = |event: Event<'_>| pending.push(event);
        let mut out = Outbox { links: &mut self.links, handler: &mut push };
        self.member.leave(now, &mut out);
        loop {
            let work = self.poll(POLL_LIMIT, &mut handler);
            let left = deadline.saturating_sub(self.now());
            if self.has_left || left == 0 {
                let is_known = self.has_left && self.member.was_agreed();
                let Self { subscriber, mut links, .. } = self;
                // First: others that leave too would wait for this member to read.
                drop(subscriber);
                links.drain(Duration::from_nanos(left));
                return is_known;
            }
            self.wait_at_most(work, Duration::from_nanos(left));
        }
    }
}

impl<T: Transport> fmt::Debug for Group<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("me", self.me())
            .field("view", &self.view().id)
            .finish_non_exhaustive()
    }
}

/// Whether a refusal can end by waiting.
const fn may_pass(error: SendError) -> bool {
    matches!(
        error,
        SendError::NoView | SendError::Changing | SendError::NoCredit(_) | SendError::Transport
    )
}

/// Microseconds since 1970.
fn micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
