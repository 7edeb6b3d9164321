//! The conformance suite over publishers that serve filters and subscribers whose filter matches
//! every message.
//!
//! Left out are:
//!
//! - cases that need one session for several topics, or know sessions by their numbers: the session
//!   of matching messages has a number of its own, and an added topic is not in it;
//! - cases of patterns, which have tests of their own in `lanecast`;
//! - `publishers_come_and_go` and `a_loop_on_the_descriptor_misses_nothing`: a subscriber that is
//!   not polled meanwhile requests its filter from no publisher;
//! - `two_publishers_are_two_streams`: a publisher also hears requests that are meant for another,
//!   and may count a subscriber as ready that has not joined its session yet;
//! - `late_subscribers_start_at_the_live_edge` over rm: the session with every message has no
//!   receiver, so nothing paces it, and it floods the group of the other session.

use crate::stage::Stage;
use lanecast::{
    ClaimError, Completion, Error, Event, FilterablePublisher, FilteredSubscriber, Publish,
    PublisherEvent, Run, SessionId, Subscribe, TopicId, TopicSelection, Transport,
};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Matches every message.
const FILTER: &str = "1 = 1";
/// Longest wait of a publisher between two turns of the new subscribers.
const TURN: Duration = Duration::from_millis(1);

/// A new subscriber, which a publisher that waits for it drives until its owner does.
type Place = Mutex<Option<Box<FilteredSubscriber>>>;

/// A subscriber requests its filter when it is polled. The suite polls none while it waits for
/// subscribers, so the stage's publishers do.
#[derive(Clone, Default)]
struct NewSubscribers(Arc<Mutex<Vec<Weak<Place>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl NewSubscribers {
    fn add(&self, subscriber: FilteredSubscriber) -> SuiteSubscriber {
        let place = Arc::new(Mutex::new(Some(Box::new(subscriber))));
        lock(&self.0).push(Arc::downgrade(&place));
        SuiteSubscriber { place, own: None, descriptor: None }
    }

    /// Has each request its filter. No event is lost by it: a dropped run consumes none.
    fn drive(&self) {
        lock(&self.0).retain(|place| {
            let Some(place) = place.upgrade() else { return false };
            let mut subscriber = lock(&place);
            subscriber.as_mut().is_some_and(|subscriber| {
                drop(subscriber.take(64));
                true
            })
        });
    }
}

/// Contexts whose publishers serve filters.
struct Suite {
    stage: Stage,
    new: NewSubscribers,
}

impl Suite {
    fn new(transports: &str) -> Box<Self> {
        let stage = Stage::with(transports, &[("filter.message_type", "binary")]);
        Box::new(Self { stage, new: NewSubscribers::default() })
    }
}

impl Transport for Suite {
    type Publisher = SuitePublisher;
    type Subscriber = SuiteSubscriber;
    type Error = Error;

    fn name(&self) -> &'static str {
        self.stage.publishers.name()
    }

    fn keeps_order_across_topics(&self) -> bool {
        self.stage.publishers.keeps_order_across_topics()
    }

    fn publisher(&self, topic: &str) -> Result<SuitePublisher, Error> {
        let publisher = self.stage.publishers.topic(topic).filterable().publisher()?;
        Ok(SuitePublisher { publisher, new: self.new.clone() })
    }

    fn subscriber(&self, topics: &[&str]) -> Result<SuiteSubscriber, Error> {
        let context = &self.stage.subscribers;
        let subscriber = match topics {
            [topic] => context.topic(topic).filter(FILTER).subscriber()?,
            // A filter is one topic's, or that of a pattern.
            several => {
                let names = format!("^({})$", several.join("|"));
                context.regex(&names).filter(FILTER).subscriber()?
            }
        };
        Ok(self.new.add(subscriber))
    }

    fn subscriber_of(&self, _: &TopicSelection) -> Result<SuiteSubscriber, Error> {
        panic!("a filter is one topic's")
    }

    fn subscriber_except(&self, _: &[&str], _: SessionId) -> Result<SuiteSubscriber, Error> {
        panic!("the session of matching messages has another number")
    }
}

/// A publisher that serves filters.
struct SuitePublisher {
    publisher: FilterablePublisher,
    new: NewSubscribers,
}

impl Publish for SuitePublisher {
    type Claim<'a> = <FilterablePublisher as Publish>::Claim<'a>;
    type Batch<'a> = <FilterablePublisher as Publish>::Batch<'a>;
    type TopicError = <FilterablePublisher as Publish>::TopicError;

    fn add_topic(&mut self, name: &str) -> Result<TopicId, Self::TopicError> {
        self.publisher.add_topic(name)
    }

    fn try_claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.publisher.try_claim_on(topic, len)
    }

    fn claim_on(&mut self, topic: TopicId, len: usize) -> Result<Self::Claim<'_>, ClaimError> {
        self.publisher.claim_on(topic, len)
    }

    fn try_send_uncounted(&mut self, bytes: &[u8]) -> Result<(), ClaimError> {
        self.publisher.try_send_uncounted(bytes)
    }

    fn batch(&mut self) -> Self::Batch<'_> {
        self.publisher.batch()
    }

    fn pack(&mut self) {
        self.publisher.pack();
    }

    fn send_packed(&mut self) {
        self.publisher.send_packed();
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.publisher.wakeup()
    }

    fn session(&self) -> SessionId {
        self.publisher.session()
    }

    fn source(&self) -> &str {
        self.publisher.source()
    }

    fn longest_message(&self) -> usize {
        self.publisher.longest_message()
    }

    fn subscribers(&self) -> usize {
        self.publisher.subscribers()
    }

    fn wait_for_subscribers(&mut self, count: usize, timeout: Duration) -> bool {
        let start = Instant::now();
        loop {
            let left = timeout.saturating_sub(start.elapsed());
            if self.publisher.wait_for_subscribers(count, left.min(TURN)) || left.is_zero() {
                return !left.is_zero();
            }
            self.new.drive();
        }
    }

    fn poll_events(&mut self, handler: impl FnMut(PublisherEvent<'_>)) -> usize {
        self.publisher.poll_events(handler)
    }

    fn drain(&mut self, timeout: Duration) -> Completion {
        self.publisher.drain(timeout)
    }

    fn close(self, linger: Duration) -> Completion {
        self.publisher.close(linger)
    }
}

/// A subscriber with a filter, without the events that tell of the filter.
struct SuiteSubscriber {
    /// Holds the subscriber until its first use.
    place: Arc<Place>,
    own: Option<Box<FilteredSubscriber>>,
    /// The subscriber's descriptor, once asked for before its first use.
    descriptor: Option<OwnedFd>,
}

impl SuiteSubscriber {
    fn own(&mut self) -> &mut FilteredSubscriber {
        let place = &self.place;
        self.own.get_or_insert_with(|| lock(place).take().expect("until its first use"))
    }
}

fn is_of_stream(event: &Event<'_>) -> bool {
    assert!(!matches!(event, Event::FilterInactive(_) | Event::FilterRefused(..)), "{event:?}");
    !matches!(event, Event::FilterActive(_))
}

impl Subscribe for SuiteSubscriber {
    type Run<'a> = SuiteRun<<FilteredSubscriber as Subscribe>::Run<'a>>;

    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        self.own().poll(limit, |event| {
            if is_of_stream(&event) {
                handler(event);
            }
        })
    }

    fn take(&mut self, limit: usize) -> Self::Run<'_> {
        SuiteRun(self.own().take(limit))
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        self.own().wait_at_most(work, limit);
    }

    fn longest_wait(&self) -> Duration {
        match &self.own {
            Some(own) => own.longest_wait(),
            None => lock(&self.place).as_ref().expect("until its first use").longest_wait(),
        }
    }

    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        if let Some(own) = &mut self.own {
            return own.wakeup();
        }
        let mut place = lock(&self.place);
        let descriptor = place.as_mut().expect("until its first use").wakeup()?;
        let descriptor = match self.descriptor.take() {
            Some(same) => same,
            None => descriptor.try_clone_to_owned()?,
        };
        let descriptor: &OwnedFd = self.descriptor.insert(descriptor);
        Ok(descriptor.as_fd())
    }

    fn streams(&self) -> usize {
        match &self.own {
            Some(own) => own.streams(),
            None => lock(&self.place).as_ref().expect("until its first use").streams(),
        }
    }
}

/// A run without the events that tell of the filter.
struct SuiteRun<R>(R);

type Selection = for<'a, 'e> fn(&'a Event<'e>) -> bool;

impl<R: Run> Run for SuiteRun<R> {
    type Events<'r>
        = std::iter::Filter<R::Events<'r>, Selection>
    where
        Self: 'r;

    fn iter(&self) -> Self::Events<'_> {
        self.0.iter().filter(is_of_stream as Selection)
    }
}

macro_rules! suites {
    ($($name:ident: $transports:literal $($more:ident)?,)*) => {
        $(mod $name {
            use super::*;
            lanecast_conformance::conformance_tests! { @each Suite::new($transports) =>
                $($more)?
                order_is_kept the_shortest_and_the_longest_arrive
                every_subscriber_sees_everything
                pending_messages_come_before_left
                late_subscribers_see_the_publisher_s_numbers
                any_order_of_starting_will_do
                a_panic_at_a_farewell_repeats_nothing
                a_panic_on_the_last_message_leaves_nothing_unread
                streams_that_come_and_go_make_the_descriptor_readable
                a_dropped_subscriber_holds_nobody_up a_panicking_handler_has_consumed_its_message
                back_pressure_is_a_value a_blocked_publisher_goes_on
                a_slow_subscriber_loses_nothing
                draining_tells_whether_all_was_read closing_tells_whether_all_was_read
                publishers_learn_who_came_and_went room_again_is_an_event
                a_report_names_who_has_not_read_everything
                a_dropped_claim_is_never_seen a_commit_claims_the_next
                a_batch_becomes_visible_at_once a_dropped_batch_is_never_seen
                a_message_that_cannot_be_is_refused
                many_threads_share_a_publisher offers_and_claims_share_one_order
                a_held_run_stays_whole_and_presses_back
                only_yielded_events_are_read a_panic_in_a_run_keeps_the_rest
                a_dropped_run_keeps_joined_and_left
                a_wait_is_bounded a_waiting_subscriber_sees_the_farewell ping_and_pong
                two_loops_on_descriptors_answer_each_other
                room_makes_the_publishers_descriptor_readable
                a_publisher_on_the_descriptor_goes_on
                a_subscriber_that_leaves_makes_room
                waits_and_the_descriptor_mix descriptors_come_and_go
                a_report_tells_who_left_early a_message_makes_the_descriptor_readable
                many_ends_share_one_loop a_batch_without_room_keeps_what_it_has
            }
        })*
    };
}

suites! {
    threads: "threads" late_subscribers_start_at_the_live_edge,
    shm: "shm" late_subscribers_start_at_the_live_edge,
    rm: "rm",
    ru: "ru" late_subscribers_start_at_the_live_edge,
    tcp: "tcp" late_subscribers_start_at_the_live_edge,
}
