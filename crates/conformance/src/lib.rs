//! Conformance suite for the contracts of every transport.
//!
//! Each case is a function over any [`Transport`](lanecast_transport::Transport): it makes its own
//! publishers and subscribers, on a transport of its own, and panics with the reason if a
//! contract is broken. [`conformance_tests!`] makes a test of every case:
//!
//! ```text
//! lanecast_conformance::conformance_tests!(Stage::new());   // derefs to a transport
//! ```
//!
//! Every wait is bounded by [`PATIENCE`]; nothing sleeps to hide a race.
#![forbid(unsafe_code)]

mod body;
mod claims;
pub mod interruptions;
mod life;
mod numbers;
mod order;
mod patterns;
pub mod persistence;
mod pressure;
mod publisher_events;
mod record;
mod runs;
mod sharing;
mod topics;
mod waiting;
mod wakeups;

pub use body::Body;
pub use claims::{
    a_batch_becomes_visible_at_once, a_batch_without_room_keeps_what_it_has,
    a_commit_claims_the_next, a_dropped_batch_is_never_seen, a_dropped_claim_is_never_seen,
    a_message_that_cannot_be_is_refused,
};
pub use life::{
    a_dropped_subscriber_holds_nobody_up, a_panic_at_a_farewell_repeats_nothing,
    a_panic_on_the_last_message_leaves_nothing_unread,
    a_panicking_handler_has_consumed_its_message, any_order_of_starting_will_do,
    pending_messages_come_before_left, publishers_come_and_go, streams_join_and_leave_exactly_once,
    two_publishers_are_two_streams,
};
pub use numbers::{
    late_subscribers_see_the_publisher_s_numbers, messages_are_numbered_on_their_topics,
};
pub use order::{
    every_subscriber_sees_everything, late_subscribers_start_at_the_live_edge, order_is_kept,
    order_is_kept_across_topics, the_shortest_and_the_longest_arrive,
};
pub use patterns::{
    a_pattern_works_with_runs_and_the_descriptor, matching_topics_join_by_themselves,
    overlapping_patterns_are_one_subscription, topics_of_a_pattern_are_limited,
    topics_of_a_pattern_come_and_go,
};
pub use pressure::{
    a_blocked_publisher_goes_on, a_slow_subscriber_loses_nothing, back_pressure_is_a_value,
    closing_tells_whether_all_was_read, draining_tells_whether_all_was_read,
};
pub use publisher_events::{
    a_report_names_who_has_not_read_everything, a_report_tells_who_left_early,
    publishers_learn_who_came_and_went, room_again_is_an_event,
};
pub use record::{Entry, PATIENCE, Record};
pub use runs::{
    a_dropped_run_keeps_joined_and_left, a_held_run_stays_whole_and_presses_back,
    a_panic_in_a_run_keeps_the_rest, only_yielded_events_are_read, runs_carry_every_event_in_order,
};
pub use sharing::{many_threads_share_a_publisher, offers_and_claims_share_one_order};
pub use topics::{
    a_session_can_be_left_out, a_topic_added_later_is_joined, strangers_to_a_topic_hold_nobody_up,
    the_same_topic_is_one_number, unwanted_topics_do_not_arrive,
};
pub use waiting::{a_wait_is_bounded, a_waiting_subscriber_sees_the_farewell, ping_and_pong};
pub use wakeups::{
    a_descriptor_asked_for_after_a_refusal_tells_of_room, a_loop_on_the_descriptor_misses_nothing,
    a_message_makes_the_descriptor_readable, a_publisher_on_the_descriptor_goes_on,
    a_subscriber_that_leaves_makes_room, descriptors_come_and_go, many_ends_share_one_loop,
    room_makes_the_publishers_descriptor_readable,
    streams_that_come_and_go_make_the_descriptor_readable,
    two_loops_on_descriptors_answer_each_other, waits_and_the_descriptor_mix,
};

/// Makes a test of each case that depends on how ends wait, and of a few others that come with
/// them: for more ways of waiting over a transport whose other cases are tested in one way. The
/// argument is as for [`conformance_tests!`].
#[macro_export]
macro_rules! waiting_tests {
    ($stage:expr) => {
        $crate::conformance_tests! { @each $stage =>
            order_is_kept a_commit_claims_the_next
            a_blocked_publisher_goes_on a_slow_subscriber_loses_nothing
            draining_tells_whether_all_was_read closing_tells_whether_all_was_read
            runs_carry_every_event_in_order a_held_run_stays_whole_and_presses_back
            a_wait_is_bounded a_waiting_subscriber_sees_the_farewell ping_and_pong
            two_loops_on_descriptors_answer_each_other a_publisher_on_the_descriptor_goes_on
            waits_and_the_descriptor_mix
        }
    };
}

/// Makes a test of every case; the argument is a value that derefs to an unused transport.
#[macro_export]
macro_rules! conformance_tests {
    ($stage:expr) => {
        $crate::conformance_tests! { @each $stage =>
            order_is_kept order_is_kept_across_topics the_shortest_and_the_longest_arrive
            every_subscriber_sees_everything late_subscribers_start_at_the_live_edge
            messages_are_numbered_on_their_topics late_subscribers_see_the_publisher_s_numbers
            streams_join_and_leave_exactly_once pending_messages_come_before_left
            any_order_of_starting_will_do publishers_come_and_go two_publishers_are_two_streams
            a_dropped_subscriber_holds_nobody_up a_panicking_handler_has_consumed_its_message
            a_panic_at_a_farewell_repeats_nothing
            a_panic_on_the_last_message_leaves_nothing_unread
            a_topic_added_later_is_joined strangers_to_a_topic_hold_nobody_up
            the_same_topic_is_one_number unwanted_topics_do_not_arrive a_session_can_be_left_out
            matching_topics_join_by_themselves topics_of_a_pattern_come_and_go
            overlapping_patterns_are_one_subscription topics_of_a_pattern_are_limited
            a_pattern_works_with_runs_and_the_descriptor
            back_pressure_is_a_value a_blocked_publisher_goes_on a_slow_subscriber_loses_nothing
            draining_tells_whether_all_was_read closing_tells_whether_all_was_read
            publishers_learn_who_came_and_went room_again_is_an_event
            a_report_names_who_has_not_read_everything a_report_tells_who_left_early
            a_dropped_claim_is_never_seen a_commit_claims_the_next
            a_batch_becomes_visible_at_once a_dropped_batch_is_never_seen
            a_batch_without_room_keeps_what_it_has a_message_that_cannot_be_is_refused
            many_threads_share_a_publisher offers_and_claims_share_one_order
            runs_carry_every_event_in_order a_held_run_stays_whole_and_presses_back
            only_yielded_events_are_read a_panic_in_a_run_keeps_the_rest
            a_dropped_run_keeps_joined_and_left
            a_wait_is_bounded a_waiting_subscriber_sees_the_farewell ping_and_pong
            a_message_makes_the_descriptor_readable
            streams_that_come_and_go_make_the_descriptor_readable
            a_loop_on_the_descriptor_misses_nothing two_loops_on_descriptors_answer_each_other
            room_makes_the_publishers_descriptor_readable a_publisher_on_the_descriptor_goes_on
            a_subscriber_that_leaves_makes_room many_ends_share_one_loop
            waits_and_the_descriptor_mix descriptors_come_and_go
            a_descriptor_asked_for_after_a_refusal_tells_of_room
        }
    };
    (@each $stage:expr => $($case:ident)*) => {
        $(
            #[test]
            fn $case() {
                let stage = $stage;
                $crate::$case(&*stage);
            }
        )*
    };
}
