//! Active subscriptions, and what the server sends to them.

use super::command_writer::{CommandWriter, build_frame};
use crate::error::ClientError;
use crate::event::{Event, Message};
use crate::query::SubscribeRequest;
use lanecast_wire::command::{Ack, Acks, Field, Header, HeaderWriter};
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

/// A subscription that is placed anew on each connection.
#[derive(Debug)]
struct ActiveSubscription {
    request: SubscribeRequest,
    /// Whether the server has accepted it once. Until then its command is a pending request.
    is_accepted: bool,
}

/// Subscriptions by name.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    active: BTreeMap<String, ActiveSubscription>,
    /// Subscriptions being placed anew, by command id.
    replacing: HashMap<u64, String>,
}

impl Subscriptions {
    pub(super) fn insert(&mut self, name: String, request: SubscribeRequest) {
        self.active.insert(name, ActiveSubscription { request, is_accepted: false });
    }

    /// Removes a subscription; whether there was one.
    pub(super) fn remove(&mut self, name: &str) -> bool {
        self.active.remove(name).is_some()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.active.contains_key(name)
    }

    /// Handles the answer to a first subscribe command, whose id is the subscription's name.
    pub(super) fn answered(&mut self, command: u64, is_refused: bool) {
        let name = command.to_string();
        if is_refused {
            self.active.remove(&name);
        } else if let Some(active) = self.active.get_mut(&name) {
            active.is_accepted = true;
        }
    }

    /// Drops the commands that the lost connection took with it.
    pub(super) fn connection_lost(&mut self) {
        self.replacing.clear();
    }

    /// Places the accepted subscriptions on a new connection.
    pub(super) fn resume(&mut self, writer: &mut CommandWriter) {
        for (name, active) in self.active.iter().filter(|(_, active)| active.is_accepted) {
            let id = writer.next_id();
            let frame = build_frame(|out| {
                let header = HeaderWriter::command(out, active.request.command());
                let header = active.request.write(header.number(Field::CommandId, id), name);
                header.acks(Acks::NONE.with(Ack::Processed)).end();
            });
            writer.out.extend_from_slice(&frame);
            self.replacing.insert(id, name.clone());
        }
    }

    /// Handles the answer to a command of [`resume`](Self::resume): the event for the application;
    /// `Err` with the reason back if the command was another one.
    pub(super) fn resumed(
        &mut self,
        command: u64,
        refusal: Option<String>,
    ) -> Result<Option<Event>, Option<String>> {
        let Some(subscription) = self.replacing.remove(&command) else { return Err(refusal) };
        let Some(reason) = refusal else {
            let is_active = self.active.contains_key(&subscription);
            return Ok(is_active.then_some(Event::Resumed { subscription }));
        };
        let was_active = self.active.remove(&subscription).is_some();
        Ok(was_active.then(|| {
            let what = "cannot resume the subscription".to_owned();
            Event::Ended { subscription, error: ClientError::Refused { what, reason } }
        }))
    }

    /// Handles the failure of the query that a subscription begins with: the server has ended the
    /// subscription. Returns the event for the application if it was active.
    pub(super) fn query_failed(&mut self, header: &Header<'_>, reason: String) -> Option<Event> {
        let subscription = text(header, Field::QueryId)?;
        self.active.remove(&subscription)?;
        let what = "cannot query and subscribe".to_owned();
        Some(Event::Ended { subscription, error: ClientError::Refused { what, reason } })
    }

    /// A message with those of its subscriptions that are still active.
    pub(super) fn message(&self, header: &Header<'_>) -> Result<Option<Message>, ClientError> {
        let names = text(header, Field::SubscriptionIds).unwrap_or_default();
        let names = names.split(',').filter(|name| self.active.contains_key(*name));
        let subscriptions: Vec<String> = names.map(str::to_owned).collect();
        if subscriptions.is_empty() {
            return Ok(None);
        }
        Ok(Some(Message {
            topic: text(header, Field::Topic).unwrap_or_default(),
            subscriptions,
            correlation: text(header, Field::CorrelationId),
            key: header.number(Field::SowKey)?,
            body: header.body().to_vec(),
        }))
    }
}

/// A text of the header, copied.
pub(super) fn text(header: &Header<'_>, field: Field) -> Option<String> {
    header.text(field).map(Cow::into_owned)
}
