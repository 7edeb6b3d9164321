//! A subscriber that stores give what it missed, over one or several topics.

use super::error::StoreBackedError;
use super::missing::Missing;
use super::notice::StoreNotice;
use super::queued_event::QueuedEvent;
use super::run::StoreBackedRun;
use super::settings::Shared;
use lanecast_store::{Detachment, DurableOptions, DurableSubscriber, ReceiverEvent, ReceiverStart};
use lanecast_transport::{
    CloseReason, Event, Gap, Lease, LossReason, Message, SessionId, Stream, Subscribe, TopicId,
    Transport,
};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Messages of a poll while the stores are waited for.
const POLL_LIMIT: usize = 64;
/// Longest sleep: a stop flag is checked after it.
const LONGEST_WAIT: Duration = Duration::from_millis(100);
/// The same with several topics, of which one is slept on.
const SHARED_WAIT: Duration = Duration::from_micros(200);
/// Time for a store to confirm the last message of a publisher that is gone.
const CONFIRMATION: Duration = Duration::from_secs(5);

/// Longest time at the end until stores have ended the registration.
const DETACHMENT: Duration = Duration::from_secs(1);

/// A subscriber to topics whose messages stores keep.
///
/// A publisher's stream joins when its messages come without a detour, and leaves when a store
/// confirms that nothing of it is missing. A stream's session is the publisher's stable id.
pub struct StoreBackedSubscriber<C: Transport> {
    shared: Arc<Shared>,
    topics: Vec<Topic<C>>,
    /// Events that came while the stores were waited for, or that a run left.
    queue: VecDeque<QueuedEvent>,
    /// The topic that is slept on next.
    turn: usize,
    recovered: u64,
}

struct Topic<C: Transport> {
    name: String,
    id: TopicId,
    /// Taken at the end.
    subscriber: Option<DurableSubscriber<C>>,
    streams: Vec<PersistentStream>,
    /// Stores that have not answered; told while too few have.
    silent: Vec<String>,
    told_unkept: bool,
}

/// A publisher's stream.
struct PersistentStream {
    source: u64,
    stream: Stream,
    is_joined: bool,
    /// Since when its publisher has been gone.
    gone: Option<Instant>,
}

impl<C: Transport + Clone + Send + 'static> StoreBackedSubscriber<C> {
    /// Opens a subscriber, and waits until enough stores have answered: it misses nothing from
    /// then on.
    pub(super) fn open(
        carrier: &C,
        topics: &[&str],
        shared: Arc<Shared>,
    ) -> Result<Self, StoreBackedError> {
        let topics = topics.iter().zip(0..).map(|(name, index)| {
            let mut options = DurableOptions::new(shared.settings.stores_of(name).clone());
            // Skip messages that stores kept from earlier runs.
            options.settings.start = ReceiverStart::End;
            options.settings.is_replay = !shared.settings.resumes;
            options.settings.is_non_blocking = shared.settings.is_non_blocking;
            options.settings.cache_bytes = shared.settings.cache_bytes;
            options.settings.retry = shared.settings.retry;
            let id = shared.settings.id;
            let opened = DurableSubscriber::open(carrier.clone(), name, id, options);
            let subscriber = Some(opened.map_err(StoreBackedError::of)?);
            let (name, id) = ((*name).to_owned(), TopicId(index));
            let silent = shared.use_stores(&name);
            Ok(Topic { name, id, subscriber, streams: Vec::new(), silent, told_unkept: false })
        });
        let topics = topics.collect::<Result<_, StoreBackedError>>()?;
        let mut this = Self { shared, topics, queue: VecDeque::new(), turn: 0, recovered: 0 };
        this.wait_for_stores()?;
        Ok(this)
    }

    fn wait_for_stores(&mut self) -> Result<(), StoreBackedError> {
        let topics: Vec<&str> = self.topics.iter().map(|it| it.name.as_str()).collect();
        let end = (topics.join(","), "subscriber");
        let shared = Arc::clone(&self.shared);
        shared.wait_for_stores(end, || {
            let mut queue = std::mem::take(&mut self.queue);
            let work = self.poll_topics(POLL_LIMIT, &mut |event| {
                queue.extend(QueuedEvent::of(&event));
            });
            self.queue = queue;
            (work, self.missing())
        })
    }

    /// Stores that any topic waits for; `None` if enough have answered for all.
    fn missing(&self) -> Option<Missing> {
        let is_registered = |topic: &&Topic<C>| {
            topic.subscriber.as_ref().is_some_and(DurableSubscriber::is_registered)
        };
        let mut waiting = self.topics.iter().filter(|it| !is_registered(it)).peekable();
        waiting.peek()?;
        let silent: BTreeSet<&String> = waiting.flat_map(|topic| &topic.silent).collect();
        Some(Missing { silent: silent.into_iter().cloned().collect(), ..Missing::default() })
    }

    /// Number of messages that came from stores.
    pub const fn recovered(&self) -> u64 {
        self.recovered
    }

    #[inline]
    fn poll_topics(&mut self, limit: usize, handler: &mut impl FnMut(Event<'_>)) -> usize {
        let Self { topics, shared, recovered, .. } = self;
        let mut work = 0;
        for topic in topics {
            work += topic.poll(limit, shared, recovered, handler);
        }
        work
    }
}

impl<C: Transport> Topic<C> {
    #[inline]
    fn poll(
        &mut self,
        limit: usize,
        shared: &Shared,
        recovered: &mut u64,
        handler: &mut impl FnMut(Event<'_>),
    ) -> usize {
        let Self { name, id, subscriber, streams, silent, told_unkept } = self;
        let Some(subscriber) = subscriber else { return 0 };
        let mut work = subscriber.poll(limit, |event| match event {
            ReceiverEvent::Message(message) => {
                let known = at(streams, message.source(), name, *id);
                if !known.is_joined {
                    known.join(handler);
                }
                *recovered += u64::from(message.is_recovered());
                let (bytes, sequence) = (message.bytes(), message.sequence());
                let message = Message::new(bytes, &known.stream, sequence, Lease::FOR_GOOD);
                handler(Event::Message(message));
            }
            ReceiverEvent::Joined { source, next, is_resumed } => {
                at(streams, source, name, *id);
                if is_resumed {
                    (shared.hooks.notify)(&StoreNotice::Resumed { topic: name.clone(), next });
                }
            }
            ReceiverEvent::Lost { source, first, count, .. } => {
                let known = at(streams, source, name, *id);
                if !known.is_joined {
                    known.join(handler);
                }
                let (stream, why) = (&known.stream, LossReason::Gone);
                handler(Event::Lost(Gap { stream, first, count, why }));
            }
            ReceiverEvent::Left { source, .. } => {
                at(streams, source, name, *id).leave(CloseReason::Closed, handler);
            }
            ReceiverEvent::Waiting { silent: now } => *silent = now,
            ReceiverEvent::Unkept { .. } if *told_unkept => {}
            other => tell(&other, shared, told_unkept),
        });
        for known in streams.iter_mut().filter(|known| !known.is_joined) {
            if subscriber.is_live(known.source) {
                known.join(handler);
                work += 1;
            }
        }
        if work == 0 {
            work += end_unconfirmed(subscriber, streams, shared, handler);
        }
        work
    }
}

/// Reports store events as notices.
#[cold]
fn tell(event: &ReceiverEvent<'_>, shared: &Shared, told_unkept: &mut bool) {
    let notice = match event {
        ReceiverEvent::StoreLost { store } => {
            shared.flight.note_store_lost();
            StoreNotice::StoreLost { store: store.clone() }
        }
        ReceiverEvent::StoreBack { store } => StoreNotice::StoreBack { store: store.clone() },
        &ReceiverEvent::OtherVersion { ref store, version } => {
            StoreNotice::OtherVersion { store: store.clone(), version }
        }
        ReceiverEvent::Refused { store, refusal, .. } => {
            StoreNotice::Refused { store: store.clone(), refusal: *refusal }
        }
        ReceiverEvent::Discarded { count, .. } => StoreNotice::Discarded { messages: *count },
        ReceiverEvent::Unkept { .. } => {
            *told_unkept = true;
            StoreNotice::Unkept
        }
        _ => return,
    };
    (shared.hooks.notify)(&notice);
}

/// Ends the streams of publishers that are gone and whose stores say nothing.
fn end_unconfirmed<C: Transport>(
    subscriber: &DurableSubscriber<C>,
    streams: &mut [PersistentStream],
    shared: &Shared,
    handler: &mut impl FnMut(Event<'_>),
) -> usize {
    let mut work = 0;
    for known in streams.iter_mut().filter(|known| known.is_joined) {
        if subscriber.is_live(known.source) {
            known.gone = None;
        } else if known.gone.get_or_insert_with(Instant::now).elapsed() >= CONFIRMATION {
            (shared.hooks.notify)(&StoreNotice::Unconfirmed);
            known.leave(CloseReason::Died, handler);
            work += 1;
        }
    }
    work
}

/// The stream of a publisher.
#[inline]
fn at<'a>(
    streams: &'a mut Vec<PersistentStream>,
    source: u64,
    topic: &str,
    topic_id: TopicId,
) -> &'a mut PersistentStream {
    let index = streams.iter().position(|known| known.source == source);
    let index = index.unwrap_or_else(|| {
        let stream = Stream {
            session: SessionId(source),
            topic: topic.to_owned(),
            topic_id,
            pid: 0,
            source: format!("persistent:{source}"),
        };
        streams.push(PersistentStream { source, stream, is_joined: false, gone: None });
        streams.len() - 1
    });
    &mut streams[index]
}

impl PersistentStream {
    #[cold]
    fn join(&mut self, handler: &mut impl FnMut(Event<'_>)) {
        (self.is_joined, self.gone) = (true, None);
        handler(Event::Joined(&self.stream));
    }

    fn leave(&mut self, why: CloseReason, handler: &mut impl FnMut(Event<'_>)) {
        if std::mem::take(&mut self.is_joined) {
            handler(Event::Left(&self.stream, why));
        }
    }
}

impl<C: Transport + Clone + Send + 'static> Subscribe for StoreBackedSubscriber<C> {
    type Run<'a> = StoreBackedRun<'a>;

    #[inline]
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let mut work = 0;
        while work < limit
            && let Some(event) = self.queue.pop_front()
        {
            handler(event.event());
            work += 1;
        }
        work + self.poll_topics(limit - work, &mut handler)
    }

    fn take(&mut self, limit: usize) -> StoreBackedRun<'_> {
        if self.queue.is_empty() {
            let mut queue = std::mem::take(&mut self.queue);
            self.poll_topics(limit, &mut |event| queue.extend(QueuedEvent::of(&event)));
            self.queue = queue;
        }
        StoreBackedRun::new(&mut self.queue, limit)
    }

    #[inline]
    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        let work = work + self.queue.len();
        let count = self.topics.len();
        let limit = if count > 1 { limit.min(SHARED_WAIT) } else { limit };
        self.turn = if self.turn + 1 < count { self.turn + 1 } else { 0 };
        if let Some(subscriber) =
            self.topics.get_mut(self.turn).and_then(|it| it.subscriber.as_mut())
        {
            subscriber.wait_at_most(work, limit);
        }
    }

    fn longest_wait(&self) -> Duration {
        LONGEST_WAIT
    }

    /// Always an error: no experiment waits in an event loop.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn streams(&self) -> usize {
        let streams = self.topics.iter().flat_map(|topic| &topic.streams);
        streams.filter(|known| known.is_joined).count()
    }
}

/// A receiver that measures is gone at its end: no publisher shall wait for it.
impl<C: Transport> Drop for StoreBackedSubscriber<C> {
    fn drop(&mut self) {
        for topic in &mut self.topics {
            let Some(subscriber) = topic.subscriber.take() else { continue };
            let detachment = subscriber.detach(DETACHMENT);
            if let Detachment::Enough { unconfirmed: stores }
            | Detachment::TooFew { unconfirmed: stores } = detachment
            {
                let topic = std::mem::take(&mut topic.name);
                (self.shared.hooks.notify)(&StoreNotice::StillRegistered { topic, stores });
            }
        }
    }
}

impl<C: Transport> fmt::Debug for StoreBackedSubscriber<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.topics.iter().map(|topic| topic.name.as_str()).collect();
        f.debug_struct("StoreBackedSubscriber").field("topics", &names).finish_non_exhaustive()
    }
}
