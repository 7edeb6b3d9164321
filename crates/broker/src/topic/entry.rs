//! A topic: who wants which of its messages.

use crate::command::error::CommandError;
use crate::delivery::matcher::Matcher;
use crate::delivery::patterns::{Joined, Patterns};
use crate::topic::catalog::Catalog;
use crate::topic::sow_topic::SowTopic;
use lanecast_filter::Filter;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::SubscriptionOptions;
use std::sync::Arc;

/// The longest name, in bytes.
pub(crate) const NAME_MAX: usize = 255;

/// A topic's messages pass by, or the last ones are kept.
#[derive(Debug)]
pub(crate) enum TopicEntry {
    Transient(Box<Topic>),
    SowTopic(Box<SowTopic>),
    /// A number that no topic has for now.
    Vacant,
}

impl TopicEntry {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Transient(topic) => &topic.name,
            Self::SowTopic(kept) => &kept.name,
            Self::Vacant => "",
        }
    }

    /// The type of its messages, if there is a topic.
    pub(crate) fn kind(&self) -> Option<MessageType> {
        match self {
            Self::Transient(topic) => Some(topic.kind),
            Self::SowTopic(kept) => Some(kept.kind()),
            Self::Vacant => None,
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        number: u32,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
        world: &mut Catalog,
    ) -> Result<(), CommandError> {
        match self {
            Self::Transient(topic) => topic.subscribe(number, filter)?,
            Self::SowTopic(kept) => kept.subscribe(number, filter, options, world)?,
            Self::Vacant => {}
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, number: u32, world: &mut Catalog) {
        match self {
            Self::Transient(topic) => topic.unsubscribe(number),
            Self::SowTopic(kept) => kept.unsubscribe(number, world),
            Self::Vacant => {}
        }
    }
}

/// Messages of one type, and subscriptions to them. Without any there is nothing that would be lost
/// with it.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) name: Box<str>,
    pub(crate) kind: MessageType,
    /// Its own subscriptions, as long as it has any: most topics of a pattern have none.
    matcher: Option<Box<Matcher>>,
    /// The patterns that its name holds.
    joined: Joined,
    /// Something was published since it was last looked whether it is in use.
    is_used: bool,
    /// By this the topics are counted that its client has made.
    _counted: Arc<()>,
}

impl Topic {
    pub(crate) fn new(name: &str, kind: MessageType, counted: Arc<()>) -> Self {
        Self {
            name: name.into(),
            kind,
            matcher: None,
            joined: Joined::default(),
            is_used: true,
            _counted: counted,
        }
    }

    fn subscribe(&mut self, number: u32, filter: Option<&Filter>) -> Result<(), CommandError> {
        let kind = self.kind;
        let matcher = self.matcher.get_or_insert_with(|| Box::new(Matcher::new(kind)));
        let filed = matcher.subscribe(number, filter);
        self.tidy();
        Ok(filed?)
    }

    fn unsubscribe(&mut self, number: u32) {
        if let Some(matcher) = &mut self.matcher {
            matcher.unsubscribe(number);
        }
        self.tidy();
    }

    /// Drops what subscriptions have left.
    fn tidy(&mut self) {
        self.matcher.take_if(|matcher| matcher.is_empty());
    }

    /// Whether it has a subscription, or something was published since this was asked last.
    pub(crate) fn is_in_use(&mut self) -> bool {
        std::mem::take(&mut self.is_used) || self.matcher.is_some()
    }

    /// Whether it has found out which patterns its name holds.
    #[cfg(test)]
    pub(crate) fn has_joined(&self) -> bool {
        self.joined.places.iter().any(|word| *word != 0)
    }

    /// Whether it has a matcher of its own.
    #[cfg(test)]
    pub(crate) fn has_matcher(&self) -> bool {
        self.matcher.is_some()
    }

    /// The subscriptions that a message is for.
    ///
    /// # Errors
    /// If a filter asks for a field, and the message cannot be read as far as that.
    #[inline]
    pub(crate) fn matches(
        &mut self,
        patterns: &mut Patterns,
        bytes: &[u8],
        client: &str,
        unix_ns: u64,
        numbers: &mut Vec<u32>,
    ) -> Result<(), Malformed> {
        self.is_used = true;
        let environment = Environment { topic: &self.name, client, unix_ns };
        match &mut self.matcher {
            Some(matcher) => matcher.matches(bytes, &environment, numbers)?,
            None => numbers.clear(),
        }
        patterns.matches(&mut self.joined, self.kind, bytes, &environment, numbers)
    }
}

/// Whether a name is that of a topic.
pub(crate) fn is_name(name: &str) -> bool {
    (1..=NAME_MAX).contains(&name.len()) && !name.bytes().any(|byte| byte.is_ascii_control())
}

/// Whether a name stands for all topics that hold it as a pattern. A dot alone does not make it
/// one: names have them.
pub(crate) fn is_pattern(name: &str) -> bool {
    name.contains(['*', '+', '?', '(', ')', '[', ']', '{', '}', '|', '^', '$', '\\'])
}
