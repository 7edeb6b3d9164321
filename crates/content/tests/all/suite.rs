//! The conformance suite over publishers that serve filters and subscribers whose filter matches
//! every message.
//!
//! Left out are:
//!
//! - cases that need one session for several topics: the session of matching messages has a number
//!   of its own, and an added topic is not in it, so that a subscriber of several topics counts
//!   twice, and is ready for one of them before the other;
//! - `a_session_can_be_left_out`: subscribers with a filter have no such choice;
//! - `the_same_topic_is_one_number`: a filter names one topic, or patterns, and no list of names;
//! - `late_subscribers_start_at_the_live_edge` over rm: the session with every message has no
//!   receiver, so nothing paces it, and it floods the group of the other session.

mod subscriber;

use crate::stage::Stage;
use lanecast::{
    ClaimError, Completion, Error, FilterablePublisher, MatchingTopics, Publish, PublisherEvent,
    SessionId, TopicId, TopicPattern, TopicSelection, Transport,
};
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};
use subscriber::{IdleSubscribers, SuiteSubscriber};

/// Matches every message.
const FILTER: &str = "1 = 1";
/// Longest wait of a publisher between two turns of the idle subscribers.
const TURN: Duration = Duration::from_millis(1);

/// Contexts whose publishers serve filters.
struct Suite {
    stage: Stage,
    idle: IdleSubscribers,
}

impl Suite {
    fn new(transports: &str) -> Box<Self> {
        let stage = Stage::with(transports, &[("filter.message_type", "binary")]);
        Box::new(Self { stage, idle: IdleSubscribers::default() })
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
        Ok(SuitePublisher { publisher, idle: self.idle.clone() })
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
        Ok(self.idle.add(subscriber))
    }

    fn subscriber_of(&self, selection: &TopicSelection) -> Result<SuiteSubscriber, Error> {
        let mut patterns = selection.patterns().iter().map(TopicPattern::text);
        let first = self.stage.subscribers.pattern(patterns.next().expect("a pattern"));
        let patterns = patterns.fold(first, MatchingTopics::or).topics_max(selection.topics_max());
        Ok(self.idle.add(patterns.filter(FILTER).subscriber()?))
    }

    fn subscriber_except(&self, _: &[&str], _: SessionId) -> Result<SuiteSubscriber, Error> {
        panic!("the session of matching messages has another number")
    }
}

/// A publisher that serves filters.
struct SuitePublisher {
    publisher: FilterablePublisher,
    idle: IdleSubscribers,
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

    /// As subscribers with a filter see it.
    fn session(&self) -> SessionId {
        self.publisher.matching_session()
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
            self.idle.drive();
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
                two_publishers_are_two_streams publishers_come_and_go
                streams_join_and_leave_exactly_once strangers_to_a_topic_hold_nobody_up
                unwanted_topics_do_not_arrive a_loop_on_the_descriptor_misses_nothing
                a_descriptor_asked_for_after_a_refusal_tells_of_room
                topics_of_a_pattern_come_and_go overlapping_patterns_are_one_subscription
                topics_of_a_pattern_are_limited a_pattern_works_with_runs_and_the_descriptor
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
