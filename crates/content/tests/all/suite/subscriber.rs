//! Subscribers with a filter that publishers drive while these wait for them.
//!
//! A subscriber requests its filter when it is polled. The suite polls none while a publisher waits
//! for subscribers, so the publisher does, and keeps the events of streams that it finds for the
//! subscriber's owner. Messages stay where they are.

use lanecast::{Event, FilteredSubscriber, Gap, Run, Subscribe};
use lanecast_conformance::{Entry, Record};
use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// A subscriber, and the events that were found while it was idle.
struct Driven {
    subscriber: FilteredSubscriber,
    found: VecDeque<Entry>,
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
    /// Takes the events before the next message.
    fn find_events(&mut self) {
        let Self { subscriber, found } = self;
        let mut is_done = false;
        while !is_done {
            let run = subscriber.take(64);
            let mut events = run.iter();
            is_done = match events.next() {
                None => true,
                Some(Event::Message(_)) => {
                    // Forgotten with the message, which has then not been read.
                    std::mem::forget(events);
                    true
                }
                Some(event) => {
                    let rest = std::iter::once(event).chain(events).filter(is_of_stream);
                    let mut record = Record::new();
                    rest.for_each(|event| record.note(event));
                    found.extend(record.entries().iter().cloned());
                    false
                }
            };
        }
    }
}

fn is_of_stream(event: &Event<'_>) -> bool {
    assert!(!matches!(event, Event::FilterInactive(_) | Event::FilterRefused(..)), "{event:?}");
    !matches!(event, Event::FilterActive(_))
}

fn event(entry: &Entry) -> Event<'_> {
    match entry {
        Entry::Joined(stream) => Event::Joined(stream),
        Entry::Left(stream, why) => Event::Left(stream, *why),
        Entry::Lost { stream, first, count, why } => {
            Event::Lost(Gap { stream, first: *first, count: *count, why: *why })
        }
        Entry::Message { .. } => unreachable!("messages stay where they are"),
    }
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
            && let Some(entry) = found.pop_front()
        {
            work += 1;
            handler(event(&entry));
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
        let is_left = |entry: &&Entry| matches!(entry, Entry::Left(..));
        self.with(|it| it.subscriber.streams() + it.found.iter().filter(is_left).count())
    }
}

/// A run of events that were found before, or without the events that tell of the filter.
pub(super) enum SuiteRun<'a, R> {
    Found(FoundRun<'a>),
    Matching(R),
}

/// A run of events that were found before.
pub(super) struct FoundRun<'a> {
    found: &'a mut VecDeque<Entry>,
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
                let entry = run.found.iter().take(run.limit).nth(*next)?;
                *next += 1;
                run.yielded.set(run.yielded.get().max(*next));
                Some(event(entry))
            }
            Self::Matching(events) => events.find(is_of_stream),
        }
    }
}
