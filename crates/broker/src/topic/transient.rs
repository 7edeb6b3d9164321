//! A transient topic: matches messages against its subscriptions and delivers them. It is created
//! on first use, and removed when it is idle, since nothing is lost with it.

use crate::command::error::CommandError;
use crate::delivery::fanout::{MessageSender, OutboundMessage, Payload};
use crate::delivery::matcher::Matcher;
use crate::delivery::patterns::{MatchedPatterns, Patterns};
use crate::delivery::subscriptions::SubscriptionIds;
use crate::ids::SubscriptionId;
use lanecast_filter::Filter;
use lanecast_filter::interpreter::Environment;
use lanecast_filter::malformed::Malformed;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::Publication;
use lanecast_wire::command::Command;
use std::sync::Arc;

/// A topic whose messages are not kept.
#[derive(Debug)]
pub(crate) struct TransientTopic {
    pub(crate) name: Box<str>,
    pub(crate) kind: MessageType,
    /// Subscriptions to this topic by name; `None` if there are none, as for most topics that only
    /// patterns match.
    matcher: Option<Box<Matcher>>,
    /// The patterns that its name matches.
    patterns: MatchedPatterns,
    /// Whether a message was published since the last [`take_in_use`](Self::take_in_use).
    was_published: bool,
    /// Token of the client that created it, for the limit of topics per client.
    _creator: Arc<()>,
}

impl TransientTopic {
    pub(crate) fn new(name: &str, kind: MessageType, creator: Arc<()>) -> Self {
        Self {
            name: name.into(),
            kind,
            matcher: None,
            patterns: MatchedPatterns::default(),
            was_published: true,
            _creator: creator,
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        id: SubscriptionId,
        filter: Option<&Filter>,
    ) -> Result<(), CommandError> {
        let kind = self.kind;
        let matcher = self.matcher.get_or_insert_with(|| Box::new(Matcher::new(kind)));
        let result = matcher.subscribe(id, filter);
        // A refused filter leaves a matcher without subscriptions.
        self.drop_empty_matcher();
        Ok(result?)
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId) {
        if let Some(matcher) = &mut self.matcher {
            matcher.unsubscribe(id);
        }
        self.drop_empty_matcher();
    }

    fn drop_empty_matcher(&mut self) {
        self.matcher.take_if(|matcher| matcher.is_empty());
    }

    /// Whether the topic has subscriptions by name, or messages since the last call.
    pub(crate) fn take_in_use(&mut self) -> bool {
        std::mem::take(&mut self.was_published) || self.matcher.is_some()
    }

    #[cfg(test)]
    pub(crate) fn matches_patterns(&self) -> bool {
        self.patterns.bits.iter().any(|word| *word != 0)
    }

    #[cfg(test)]
    pub(crate) fn has_matcher(&self) -> bool {
        self.matcher.is_some()
    }

    /// Delivers a message to the subscriptions that it matches. `matches` is scratch memory.
    ///
    /// # Errors
    /// If the message cannot be parsed up to a field that a filter needs.
    #[inline]
    pub(crate) fn publish(
        &mut self,
        publication: &Publication<'_>,
        unix_ns: u64,
        patterns: &mut Patterns,
        matches: &mut SubscriptionIds,
        sender: &mut MessageSender<'_>,
    ) -> Result<(), Malformed> {
        self.was_published = true;
        let environment = Environment { topic: &self.name, client: publication.client, unix_ns };
        match &mut self.matcher {
            Some(matcher) => matcher.matches(publication.bytes, &environment, matches)?,
            None => matches.clear(),
        }
        // After the topic's own matcher, which clears the list; patterns append to it.
        patterns.matches(
            &mut self.patterns,
            self.kind,
            publication.bytes,
            &environment,
            matches,
        )?;
        // Messages without subscribers end here, before any encoding.
        if !matches.is_empty() {
            let message = OutboundMessage {
                command: Command::Publish,
                topic: &self.name,
                format: self.kind.into(),
                reason: None,
                payload: Payload::Message(publication.bytes),
            };
            sender.send(&message, matches);
        }
        Ok(())
    }
}
