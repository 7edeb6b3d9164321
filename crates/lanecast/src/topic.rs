//! Topics: the way from a context to publishers that serve filters and subscribers that have one,
//! to publishers whose messages stores keep, and subscribers that get what they missed.

use crate::config::Config;
use crate::error::Error;
use crate::exact_topics::ExactTopics;
use crate::persistence_settings::PersistenceSettings;
use crate::persistent_topic::{DurableTopic, PersistentTopic};
use lanecast_content::ContentSettings;
use lanecast_filter::message_type::Format;

/// A publisher that serves filters; see [`lanecast_content::Publisher`].
pub type FilterablePublisher = lanecast_content::Publisher<ExactTopics>;

/// A subscriber with a filter; see [`lanecast_content::Subscriber`].
pub type FilteredSubscriber = lanecast_content::Subscriber<ExactTopics>;

/// A topic of a context, made by [`Context::topic`](crate::Context::topic): opens publishers that
/// serve filters and subscribers that have one. [`PersistentTopic`] has an example of persistence.
///
/// Plain ones need no topic: the context itself makes them, by
/// [`context.publisher("orders")`](crate::Context::publisher) and
/// [`context.subscriber("orders")`](crate::Context::subscriber), and there is no second way.
///
/// ```
/// use lanecast::prelude::*;
/// # use std::time::Duration;
/// # let context = Context::builder().set("shm.visibility", "process")?.build()?;
/// let mut orders = context.topic("orders").filterable().publisher()?;
/// let mut feed = context.topic("orders").filter("/symbol = 'IBM'").subscriber()?;
///
/// let mut is_active = false;
/// while !is_active {
///     orders.serve_filters(); // an idle publisher answers here, a busy one as it publishes
///     feed.poll(8, |event| is_active |= matches!(event, Event::FilterActive(_)));
/// }
/// orders.send(br#"{"symbol": "ABC", "qty": 5}"#)?;
/// orders.send(br#"{"symbol": "IBM", "qty": 7}"#)?;
///
/// let mut received = Vec::new();
/// while received.is_empty() {
///     let work = feed.poll(8, |event| {
///         if let Event::Message(message) = event {
///             received.push(message.bytes().to_vec());
///         }
///     });
///     feed.wait(work);
/// }
/// assert_eq!(received, [br#"{"symbol": "IBM", "qty": 7}"#]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Topic<'a> {
    transports: &'a ExactTopics,
    name: &'a str,
    settings: ContentSettings,
    persistence: PersistenceSettings,
}

impl<'a> Topic<'a> {
    pub(crate) fn new(transports: &'a ExactTopics, name: &'a str, config: &Config) -> Self {
        let settings = config.filter.clone();
        let persistence = config.persistence.clone().of_topic(name);
        Self { transports, name, settings, persistence }
    }

    /// A publisher made from here has the stable id `source`, which it keeps over its restarts, and
    /// its messages are kept by stores: it learns when each is stable.
    pub fn persistent(self, source: u64) -> PersistentTopic<'a> {
        PersistentTopic::new(self.transports, self.name, source, self.persistence)
    }

    /// A subscriber made from here has the stable id `session`, which it keeps over its restarts:
    /// it goes on where it had come to, and stores give it what it missed.
    pub fn durable(self, session: u64) -> DurableTopic<'a> {
        DurableTopic::new(self.transports, self.name, session, self.persistence)
    }

    /// The format of the messages, instead of the setting `filter.message_type`.
    pub fn message_type(mut self, format: impl Into<Format>) -> Self {
        self.settings.format = format.into();
        self
    }

    /// Publishers made from here evaluate the filters of their subscribers.
    pub fn filterable(self) -> FilterableTopic<'a> {
        FilterableTopic { topic: self }
    }

    /// Subscribers made from here receive the messages that match `filter` only.
    pub fn filter(self, filter: &'a str) -> FilteredTopic<'a> {
        FilteredTopic { topic: self, filter }
    }
}

/// A topic whose publishers serve filters.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilterableTopic<'a> {
    topic: Topic<'a>,
}

impl FilterableTopic<'_> {
    /// A publisher that evaluates the filters of its subscribers. Subscribers without a filter
    /// receive every message.
    ///
    /// # Errors
    /// See [`Error`].
    pub fn publisher(self) -> Result<FilterablePublisher, Error> {
        let Topic { transports, name, settings, .. } = self.topic;
        Ok(FilterablePublisher::new(transports, name, settings)?)
    }
}

/// A topic with a filter.
#[derive(Clone, Debug)]
#[must_use]
pub struct FilteredTopic<'a> {
    topic: Topic<'a>,
    filter: &'a str,
}

impl FilteredTopic<'_> {
    /// A subscriber to the messages that match the filter, of all present and future publishers:
    /// evaluated by those that serve filters, and here for the others.
    ///
    /// # Errors
    /// [`Error::Filter`] if the filter is malformed, exceeds the limits or depends on the time;
    /// others see [`Error`].
    pub fn subscriber(self) -> Result<FilteredSubscriber, Error> {
        let Topic { transports, name, settings, .. } = self.topic;
        Ok(FilteredSubscriber::new(transports, name, self.filter, &settings)?)
    }
}
