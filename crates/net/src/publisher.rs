//! A network publisher: the owner of one sending session.
//!
//! All calls run in the application's thread, which locks the session by [`Owner::lock`]: as
//! cheap as a plain borrow unless the conductor is inside.

use crate::claim::{NetBatch, NetClaim};
use crate::conductor_handle::ConductorHandle;
use crate::counters::{PublisherCounters, PublisherStatus};
use crate::error::{TopicError, check_name};
use crate::send_session::SendSession;
use crate::settings::ThreadingMode;
use crate::source::Source;
use lanecast_base::sync::Ordering;
use lanecast_os::biased::Owner;
use lanecast_os::event::EventFd;
use lanecast_protocol::sender;
use lanecast_transport::{ClaimError, Completion, Publish, PublisherEvent, SessionId, TopicId};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two requests for positions while subscribers are waited for.
const JOIN_PROBE_PAUSE: Duration = Duration::from_millis(100);

/// A publisher over the network: one session.
pub struct Publisher {
    owner: Owner<SendSession>,
    conductor: Arc<ConductorHandle>,
    /// The session's advertised source and datagram length.
    advertised: (Source, usize),
    source: String,
    longest: usize,
    status: Arc<PublisherStatus>,
    is_closed: bool,
    /// The descriptor, if the program asked for one.
    wakeup: Option<Arc<EventFd>>,
}

impl Publisher {
    pub(crate) fn new(
        owner: Owner<SendSession>,
        conductor: Arc<ConductorHandle>,
        advertised: (Source, usize),
        longest: usize,
        status: Arc<PublisherStatus>,
    ) -> Self {
        let source = advertised.0.to_string();
        Self {
            owner,
            conductor,
            advertised,
            source,
            longest,
            status,
            is_closed: false,
            wakeup: None,
        }
    }

    /// Number of claims that found the window full.
    pub fn back_pressured(&self) -> u64 {
        self.status.back_pressured.load(Ordering::Relaxed)
    }

    /// The session's counters.
    pub fn counters(&mut self) -> PublisherCounters {
        self.owner.lock_uncounted().counters()
    }

    /// Sends committed messages that are still batched.
    pub fn flush(&mut self) {
        self.owner.lock().flush();
    }

    /// Drives the session until `done` or `timeout`; returns whether `done`. Asks receivers for
    /// their positions, at most each `pause`.
    fn drive_until(
        &mut self,
        timeout: Duration,
        pause: Duration,
        done: impl Fn(&SendSession) -> bool,
    ) -> bool {
        let (start, mut probed) = (Instant::now(), None::<Instant>);
        loop {
            let mut session = self.owner.lock();
            // Receivers report by themselves only now and then: the question shortens the wait.
            if probed.is_none_or(|at| at.elapsed() >= pause) {
                session.probe();
                probed = Some(Instant::now());
            } else {
                session.flush();
            }
            let is_done = done(&session);
            let left = timeout.checked_sub(start.elapsed());
            let Some(left) = left.filter(|_| !is_done) else {
                session.wake_conductor();
                return is_done;
            };
            session.sleep(left);
        }
    }

    fn end(&mut self) {
        // Set first: a drop after `close` must not count the session as lingering twice.
        if !std::mem::replace(&mut self.is_closed, true) {
            self.owner.lock().close();
            self.conductor.retire_publisher(self.advertised.0.session);
        }
    }
}

impl Publish for Publisher {
    type Claim<'a> = NetClaim<'a>;
    type Batch<'a> = NetBatch<'a>;
    type TopicError = TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, TopicError> {
        check_name(name)?;
        let (source, datagram_bytes) = self.advertised;
        // A session sends to one group: a topic with another group needs a session of its own.
        let own = self.conductor.context.settings.own_group(name);
        if let (Some(own), Some(group)) = (own, source.group)
            && own != group
        {
            return Err(TopicError::Group { own, group });
        }
        let added = self.owner.lock().add_topic(name);
        let number = added.map_err(|error| match error {
            sender::TopicError::Name => TopicError::Name(name.len()),
            sender::TopicError::TooMany { max } => TopicError::Full(max),
        })?;
        self.conductor.add_publication(source, datagram_bytes, name);
        Ok(TopicId(number))
    }

    #[inline(always)]
    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<NetClaim<'_>, ClaimError> {
        let mut session = self.owner.lock();
        session.stage(topic, len)?;
        Ok(NetClaim::new(session, topic))
    }

    #[inline(always)]
    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<NetClaim<'_>, ClaimError> {
        let mut session = self.owner.lock();
        session.stage_blocking(topic, len)?;
        Ok(NetClaim::new(session, topic))
    }

    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.owner.lock().try_send_uncounted(bytes)
    }

    fn batch(&mut self) -> NetBatch<'_> {
        NetBatch::new(self.owner.lock())
    }

    fn try_reserve(&mut self, count: usize, bytes: usize) -> Result<(), ClaimError> {
        self.owner.lock().try_reserve(count, bytes)
    }

    fn pack(&mut self) {
        self.owner.lock().pack();
    }

    fn send_packed(&mut self) {
        self.owner.lock().send_packed();
    }

    fn keep_warm(&mut self) {
        let settings = &self.conductor.context.settings;
        // Otherwise the conductor is not told that the owner is there.
        if settings.keep_warm.is_some() && settings.threading == ThreadingMode::Caller {
            self.owner.lock().drive_if_idle();
        }
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.status.has_wakeup.store(true, Ordering::Relaxed);
        let event = self.owner.lock_uncounted().room_event.open()?;
        let event: &EventFd = self.wakeup.insert(event);
        Ok(event.as_fd())
    }

    fn session(&self) -> SessionId {
        SessionId(self.advertised.0.session)
    }

    fn source(&self) -> &str {
        &self.source
    }

    fn longest_message(&self) -> usize {
        self.longest
    }

    fn subscribers(&self) -> usize {
        self.status.receivers.load(Ordering::Relaxed)
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        // Each answer ends a sleep: asked at once again, all would answer for every one that joins.
        self.drive_until(timeout, JOIN_PROBE_PAUSE, |session| session.sender.joined() >= count)
    }

    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.owner.lock().poll_events(handler)
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        self.drive_until(timeout, Duration::ZERO, |session| session.sender.is_drained());
        self.owner.lock().sender.subscribers().completion()
    }

    fn close(mut self, linger: Duration) -> Completion {
        let completion = self.drain(linger);
        // After the drain: the announced end is then the last position for all.
        self.end();
        completion
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").field("source", &self.source).finish_non_exhaustive()
    }
}
