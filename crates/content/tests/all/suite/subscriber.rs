//! Subscribers with a filter that publishers drive while these wait for them.
//!
//! A subscriber requests its filter when it is polled. The suite polls none while a publisher waits
//! for subscribers, so the publisher does, and keeps copies of the events that it finds for the
//! subscriber's owner.

use lanecast::{Event, FilteredSubscriber, Run, Subscribe};
use lanecast_transport::{CloseReason, Gap, Lease, LossReason, Message, Stream};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A subscriber, and the events that were found while it was idle.
struct Driven {
    subscriber: FilteredSubscriber,
    found: VecDeque<Found>,
}

/// A copy of an event.
struct Found {
    stream: Stream,
    kind: Kind,
}

enum Kind {
    Joined,
    Message { number: u64, bytes: Vec<u8> },
    Lost { first: u64, count: u64, why: LossReason },
    Left(CloseReason),
}

/// A subscriber while its owner does not use it.
type Place = Mutex<Option<Box<Driven>>>;

/// The subscribers that publishers drive.
#[derive(Clone, Default)]
pub(super) struct IdleSubscribers(Arc<Mutex<Vec<Weak<Place>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IdleSubscribers {
    pub(super) fn add(&self, subscriber: FilteredSubscriber) -> SuiteSubscriber {
        let driven = Driven { subscriber, found: VecDeque::new() };
        let place = Arc::new(Mutex::new(Some(Box::new(driven))));
        lock(&self.0).push(Arc::downgrade(&place));
        SuiteSubscriber { place, own: None, descriptor: None }
    }

    /// Has each request its filter.
    pub(super) fn drive(&self) {
        lock(&self.0).retain(|place| {
            let Some(place) = place.upgrade() else { return false };
            if let Some(driven) = lock(&place).as_mut() {
                driven.find_events();
            }
            true
        });
    }
}

impl Driven {
    fn find_events(&mut self) {
        let Self { subscriber, found } = self;
        while subscriber.poll(64, |event| found.extend(Found::new(event))) > 0 {}
    }
}

impl Found {
    /// A copy of `event`; `None` if it tells of the filter.
    fn new(event: Event<'_>) -> Option<Self> {
        let (stream, kind) = match event {
            Event::Joined(stream) => (stream, Kind::Joined),
            Event::Message(message) => {
                let (number, bytes) = (message.number(), message.bytes().to_vec());
                (message.stream(), Kind::Message { number, bytes })
            }
            Event::Lost(Gap { stream, first, count, why }) => {
                (stream, Kind::Lost { first, count, why })
            }
            Event::Left(stream, why) => (stream, Kind::Left(why)),
            other => {
                assert!(!is_of_stream(&other));
                return None;
            }
        };
        Some(Self { stream: stream.clone(), kind })
    }

    fn event(&self) -> Event<'_> {
        let stream = &self.stream;
        match &self.kind {
            Kind::Joined => Event::Joined(stream),
            Kind::Message { number, bytes } => {
                Event::Message(Message::new(bytes, stream, *number, Lease::FOR_GOOD))
            }
            &Kind::Lost { first, count, why } => Event::Lost(Gap { stream, first, count, why }),
            Kind::Left(why) => Event::Left(stream, *why),
        }
    }

    const fn is_left(&self) -> bool {
        matches!(self.kind, Kind::Left(_))
    }
}

fn is_of_stream(event: &Event<'_>) -> bool {
    assert!(!matches!(event, Event::FilterInactive(_) | Event::FilterRefused(..)), "{event:?}");
    !matches!(event, Event::FilterActive(_))
}

/// A subscriber with a filter, without the events that tell of the filter.
pub(super) struct SuiteSubscriber {
    /// Holds the subscriber between its uses.
    place: Arc<Place>,
    /// The subscriber in use: until the use after that of a run.
    own: Option<Box<Driven>>,
    /// The subscriber's descriptor, once asked for.
    descriptor: Option<OwnedFd>,
}

impl SuiteSubscriber {
    fn own(&mut self) -> &mut Driven {
        let place = &self.place;
        self.own.get_or_insert_with(|| lock(place).take().expect("no other use"))
    }

    /// Ends the use of the subscriber.
    fn give_back(&mut self) {
        *lock(&self.place) = self.own.take();
    }

    fn with<T>(&self, ask: impl FnOnce(&Driven) -> T) -> T {
        match &self.own {
            Some(own) => ask(own),
            None => ask(lock(&self.place).as_ref().expect("no other use")),
        }
    }
}

impl Subscribe for SuiteSubscriber {
    type Run<'a> = SuiteRun<'a, <FilteredSubscriber as Subscribe>::Run<'a>>;

    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let Driven { subscriber, found } = self.own();
        let mut work = 0;
        while work < limit
            && let Some(first) = found.pop_front()
        {
            work += 1;
            handler(first.event());
        }
        work += subscriber.poll(limit - work, |event| {
            if is_of_stream(&event) {
                handler(event);
            }
        });
        self.give_back();
        work
    }

    fn take(&mut self, limit: usize) -> Self::Run<'_> {
        let Driven { subscriber, found } = self.own();
        if found.is_empty() {
            return SuiteRun::Matching(subscriber.take(limit));
        }
        SuiteRun::Found(FoundRun { found, limit, yielded: Cell::new(0) })
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        let Driven { subscriber, found } = self.own();
        subscriber.wait_at_most(work + found.len(), limit);
        self.give_back();
    }

    fn longest_wait(&self) -> Duration {
        self.with(|it| it.subscriber.longest_wait())
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        if self.descriptor.is_none() {
            let descriptor = self.own().subscriber.wakeup()?.try_clone_to_owned()?;
            self.descriptor = Some(descriptor);
            self.give_back();
        }
        Ok(self.descriptor.as_ref().expect("a descriptor").as_fd())
    }

    fn streams(&self) -> usize {
        self.with(|it| {
            it.subscriber.streams() + it.found.iter().filter(|found| found.is_left()).count()
        })
    }
}

/// A run of events that were found before, or without the events that tell of the filter.
pub(super) enum SuiteRun<'a, R> {
    Found(FoundRun<'a>),
    Matching(R),
}

/// A run of events that were found before.
pub(super) struct FoundRun<'a> {
    found: &'a mut VecDeque<Found>,
    limit: usize,
    yielded: Cell<usize>,
}

impl Drop for FoundRun<'_> {
    fn drop(&mut self) {
        self.found.drain(..self.yielded.get());
    }
}

pub(super) enum SuiteEvents<'r, R: Run + 'r> {
    Found { run: &'r FoundRun<'r>, next: usize },
    Matching(R::Events<'r>),
}

impl<R: Run> Run for SuiteRun<'_, R> {
    type Events<'r>
        = SuiteEvents<'r, R>
    where
        Self: 'r;

    fn iter(&self) -> SuiteEvents<'_, R> {
        match self {
            Self::Found(run) => SuiteEvents::Found { run, next: 0 },
            Self::Matching(run) => SuiteEvents::Matching(run.iter()),
        }
    }
}

impl<'r, R: Run> Iterator for SuiteEvents<'r, R> {
    type Item = Event<'r>;

    fn next(&mut self) -> Option<Event<'r>> {
        match self {
            Self::Found { run, next } => {
                let found = run.found.iter().take(run.limit).nth(*next)?;
                *next += 1;
                run.yielded.set(run.yielded.get().max(*next));
                Some(found.event())
            }
            Self::Matching(events) => events.find(is_of_stream),
        }
    }
}
