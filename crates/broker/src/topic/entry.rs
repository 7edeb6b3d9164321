//! An entry of the catalog: a transient topic, a SOW topic, or none.

use crate::command::error::CommandError;
use crate::ids::SubscriptionId;
use crate::topic::sow_context::SowContext;
use crate::topic::sow_topic::SowTopic;
use crate::topic::transient::TransientTopic;
use lanecast_filter::Filter;
use lanecast_filter::message_type::MessageType;
use lanecast_sow::SubscriptionOptions;

/// An entry of the catalog.
#[derive(Debug)]
pub(crate) enum TopicEntry {
    /// Messages are delivered and not kept.
    Transient(Box<TransientTopic>),
    /// The last message of each key is kept (state of the world).
    Sow(Box<SowTopic>),
    /// Free for the next topic.
    Vacant,
}

impl TopicEntry {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Transient(topic) => &topic.name,
            Self::Sow(topic) => &topic.name,
            Self::Vacant => "",
        }
    }

    /// The type of its messages, if there is a topic.
    pub(crate) fn kind(&self) -> Option<MessageType> {
        match self {
            Self::Transient(topic) => Some(topic.kind),
            Self::Sow(topic) => Some(topic.kind()),
            Self::Vacant => None,
        }
    }

    pub(crate) fn subscribe(
        &mut self,
        id: SubscriptionId,
        filter: Option<&Filter>,
        options: SubscriptionOptions,
        context: &mut SowContext,
    ) -> Result<(), CommandError> {
        match self {
            Self::Transient(topic) => topic.subscribe(id, filter)?,
            Self::Sow(topic) => topic.subscribe(id, filter, options, context)?,
            Self::Vacant => {}
        }
        Ok(())
    }

    pub(crate) fn unsubscribe(&mut self, id: SubscriptionId, context: &mut SowContext) {
        match self {
            Self::Transient(topic) => topic.unsubscribe(id),
            Self::Sow(topic) => topic.unsubscribe(id, context),
            Self::Vacant => {}
        }
    }
}
