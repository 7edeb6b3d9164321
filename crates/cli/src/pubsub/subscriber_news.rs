//! Words about the subscribers of `lanecast pub`: those that came, went, or have not read all.

use crate::output::{print_error, warn};
use lanecast::Completion;
use lanecast::prelude::*;
use std::time::Duration;

/// Longest delay until the stop flag is seen.
pub(super) const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Tells of subscribers that have joined and left since the last call, unless the user wants quiet.
pub(super) fn tell_subscribers(publisher: &mut impl Publish, is_quiet: bool) {
    let note = |text: String| {
        if !is_quiet {
            print_error(&text);
        }
    };
    publisher.poll_events(|event| match event {
        PublisherEvent::SubscriberJoined(subscriber) => note(format!("{subscriber} joined")),
        PublisherEvent::SubscriberLeft(subscriber, why) => {
            note(format!("{subscriber} is gone: {why}"));
        }
        _ => {}
    });
}

/// Warns of subscribers that had not read everything after `linger`; returns whether all had.
pub(super) fn report(completion: &Completion, linger: Duration) -> bool {
    if completion.timed_out() {
        warn(&format!("not every subscriber read everything in {linger:?}"));
    }
    for subscriber in completion.incomplete().iter().filter(|it| !it.has_left()) {
        warn(&format!("not all was read by {subscriber}"));
    }
    if completion.omitted() > 0 {
        let omitted = completion.omitted();
        warn(&format!("not all was read by {omitted} others, which are gone"));
    }
    completion.is_complete()
}
