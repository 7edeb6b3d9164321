//! Subscriber: requests its filter from each publisher and reads the matching messages.

use crate::control::ControlTopics;
use crate::error::OpenError;
use crate::filters::Filters;
use crate::negotiation::Negotiations;
use crate::queued_event::QueuedEvent;
use crate::run::FilteredRun;
use crate::selection::Selection;
use crate::settings::ContentSettings;
use crate::topics::{CONTENT, content_topic};
use lanecast_filter::Filter;
use lanecast_transport::{Event, SessionId, Subscribe, TopicPattern, TopicSelection, Transport};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

/// Subscriber with a filter, to all publishers of its topic.
///
/// Publishers that serve filters evaluate it and send the matching messages only; on the messages
/// of others the subscriber evaluates it itself. Either way each stream has the events of any
/// subscriber and, before its first message, [`Event::FilterActive`].
#[derive(Debug)]
pub struct Subscriber<C: Transport> {
    feed: C::Subscriber,
    controls: ControlTopics<C>,
    filter: String,
    state: Negotiations,
    /// Events that are found and not yielded yet.
    queue: VecDeque<QueuedEvent>,
    retry_interval: Duration,
    requested_at: Option<Instant>,
}

impl<C: Transport> Subscriber<C> {
    /// Opens a subscriber to the messages of `topic` that match `filter`.
    ///
    /// # Errors
    ///
    /// If the filter is malformed or depends on the time, or the transport fails.
    pub fn new(
        transport: &C,
        topic: &str,
        filter: &str,
        settings: &ContentSettings,
    ) -> Result<Self, OpenError<C::Error>> {
        let local = local_filter(topic, filter, settings)?;
        let controls = ControlTopics::of_topic(transport, topic).map_err(OpenError::Transport)?;
        let feed =
            transport.subscriber(&[topic, &content_topic(topic)]).map_err(OpenError::Transport)?;
        Ok(Self::over(feed, controls, local, filter, settings))
    }

    /// Opens a subscriber to the messages that match `filter`, of all topics that one of `patterns`
    /// matches, at most `topics_max` of them.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn of_patterns(
        transport: &C,
        (patterns, topics_max): (Vec<TopicPattern>, usize),
        filter: &str,
        settings: &ContentSettings,
    ) -> Result<Self, OpenError<C::Error>>
    where
        C: Clone,
    {
        let local = local_filter("", filter, settings)?;
        let patterns = patterns.into_iter().map(|it| it.with_endings(&["", CONTENT])).collect();
        let selection = TopicSelection::of_patterns(patterns, topics_max);
        let feed = transport.subscriber_of(&selection).map_err(OpenError::Transport)?;
        let controls = ControlTopics::of_pattern(transport.clone());
        Ok(Self::over(feed, controls, local, filter, settings))
    }

    fn over(
        feed: C::Subscriber,
        controls: ControlTopics<C>,
        local: Filters,
        filter: &str,
        settings: &ContentSettings,
    ) -> Self {
        let (filter, retry_interval) = (filter.to_owned(), settings.retry_interval);
        let (mut state, queue) = (Negotiations::new(local), VecDeque::new());
        state.set_controls(controls.sessions());
        Self { feed, controls, filter, state, queue, retry_interval, requested_at: None }
    }

    /// The transport's subscriber, for its own operations, such as rejoining a publisher that
    /// ejected this subscriber.
    pub const fn feed(&mut self) -> &mut C::Subscriber {
        &mut self.feed
    }

    /// Number of streams in which the filter is active.
    pub fn active_streams(&self) -> usize {
        self.state.active_streams()
    }

    /// Number of malformed frames from publishers that serve filters.
    pub const fn malformed_frames(&self) -> u64 {
        self.state.malformed_frames()
    }

    /// Number of messages from publishers that serve no filters that could not be read as the
    /// message type of the settings, and so did not match.
    pub const fn malformed_messages(&self) -> u64 {
        self.state.malformed_messages()
    }

    /// Requests the filter, if a publisher has not answered for a while.
    #[inline]
    fn repeat_request(&mut self) {
        if self.state.is_requesting() {
            self.request_filter();
        }
    }

    #[cold]
    fn request_filter(&mut self) {
        if !self.until_request().is_zero() {
            return;
        }
        self.requested_at = Some(Instant::now());
        self.controls.request(&self.filter, &mut self.state, &mut self.queue);
    }

    /// Time until the next request is due, if a publisher has not answered.
    fn until_request(&self) -> Duration {
        match self.requested_at {
            _ if !self.state.is_requesting() => Duration::MAX,
            Some(at) => self.retry_interval.saturating_sub(at.elapsed()),
            None => Duration::ZERO,
        }
    }
}

/// The filter, for messages of publishers that serve none.
fn local_filter<E>(
    topic: &str,
    filter: &str,
    settings: &ContentSettings,
) -> Result<Filters, OpenError<E>> {
    if !Filter::parse_with(filter, &settings.limits)?.is_deterministic() {
        return Err(OpenError::TimeDependent);
    }
    let mut local = Filters::new(topic, settings.clone());
    local.subscribe(SessionId(0), filter).map_err(OpenError::Limits)?;
    Ok(local)
}

/// Gives at most `limit` queued events to `handler`; returns their number. An event is out of the
/// queue before its handler runs: one that panics has consumed it, and the others stay.
#[inline]
fn yield_queued(
    queue: &mut VecDeque<QueuedEvent>,
    limit: usize,
    handler: &mut impl FnMut(Event<'_>),
) -> usize {
    let mut work = 0;
    while work < limit
        && let Some(event) = queue.pop_front()
    {
        work += 1;
        handler(event.get());
    }
    work
}

impl<C: Transport + Send + 'static> Subscribe for Subscriber<C> {
    type Run<'a>
        = FilteredRun<'a, <C::Subscriber as Subscribe>::Run<'a>>
    where
        Self: 'a;

    /// Passes new events to `handler` and repeats unanswered filter requests. Never blocks.
    ///
    /// `limit` and the returned number count what the transport delivered, including messages that
    /// do not match.
    fn poll<F: FnMut(Event<'_>)>(&mut self, limit: usize, mut handler: F) -> usize {
        let Self { feed, state, queue, .. } = self;
        // Before and after: an event that a run has queued comes first, and one that follows from a
        // request that cannot be sent does not wait for the next poll.
        let mut work = yield_queued(queue, limit, &mut handler);
        if work < limit {
            work += feed.poll(limit - work, |event| match state.select(event) {
                Selection::Message(message) => handler(Event::Message(message)),
                Selection::Skipped => {}
                Selection::Other => {
                    state.note(event, queue);
                    yield_queued(queue, usize::MAX, &mut handler);
                }
            });
        }
        self.repeat_request();
        work + yield_queued(&mut self.queue, limit - work.min(limit), &mut handler)
    }

    /// As [`Subscribe::take`]. The run has the matching messages among the next `limit` of the
    /// transport.
    fn take(&mut self, limit: usize) -> Self::Run<'_> {
        self.repeat_request();
        if !self.queue.is_empty() || limit == 0 {
            return FilteredRun::of_queue(&mut self.queue, limit);
        }
        let run = self.feed.take(limit);
        FilteredRun::new(run, &mut self.state, &mut self.queue, limit)
    }

    fn wait_at_most(&mut self, work: usize, limit: Duration) {
        // A request that found no publisher listening is repeated by the next poll.
        let limit = limit.min(self.until_request());
        self.feed.wait_at_most(work + self.queue.len(), limit);
    }

    fn longest_wait(&self) -> Duration {
        self.feed.longest_wait()
    }

    /// As [`Subscribe::wakeup`]. Until [`Event::FilterActive`] a loop polls every `retry_interval`
    /// besides, because a poll repeats requests that found no publisher listening.
    fn wakeup(&mut self) -> io::Result<BorrowedFd<'_>> {
        self.feed.wakeup()
    }

    fn streams(&self) -> usize {
        let ended = self.queue.iter().filter(|event| event.is_left()).count();
        self.state.streams() + ended
    }
}

#[cfg(test)]
mod tests;
