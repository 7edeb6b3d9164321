//! What the server says.

use super::{Conversation, Phase};
use crate::error::ClientError;
use crate::event::{Event, Message, Record, State};
use crate::settings::Level;
use lanecast_wire::command::{Command, Field, Header, Records, SEQUENCE_MAX};
use std::time::Instant;

impl Conversation {
    /// Takes bytes from the connection.
    ///
    /// # Errors
    /// If they make no sense, or the client is not wanted: the connection is to be closed then.
    pub(crate) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), ClientError> {
        self.heard = now;
        let mut frames = std::mem::take(&mut self.frames);
        let taken = frames.take(bytes, |payload| self.hear(now, payload));
        self.frames = frames;
        taken?;
        self.failure().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn hear(&mut self, now: Instant, payload: &[u8]) -> Result<(), ClientError> {
        let header = Header::parse(payload)?;
        match header.command()? {
            Command::Ack => self.acknowledged(now, &header)?,
            Command::Publish | Command::DeltaPublish => {
                if let Some(message) = self.message(&header)? {
                    self.tell(Event::Message(message));
                }
            }
            Command::Oof => {
                if let Some(message) = self.message(&header)? {
                    let reason = text(&header, Field::Reason).unwrap_or_default();
                    self.tell(Event::Left { message, reason });
                }
            }
            Command::Sow => self.records(&header)?,
            Command::GroupEnd => {
                let subscription = text(&header, Field::QueryId).unwrap_or_default();
                if self.placed.contains_key(&subscription) {
                    self.tell(Event::Current { subscription });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A message for those of its subscriptions that have not been ended.
    fn message(&self, header: &Header<'_>) -> Result<Option<Message>, ClientError> {
        let names = text(header, Field::SubscriptionIds).unwrap_or_default();
        let names = names.split(',').filter(|name| self.placed.contains_key(*name));
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

    fn records(&mut self, header: &Header<'_>) -> Result<(), ClientError> {
        let subscription = text(header, Field::QueryId).unwrap_or_default();
        let asked = subscription.parse().ok().filter(|_| !self.placed.contains_key(&subscription));
        for record in Records::new(header.body()) {
            let (header, body) = record?;
            let key = header.number(Field::SowKey)?.unwrap_or(0);
            let record = Record { key, body: body.to_vec() };
            if self.placed.contains_key(&subscription) {
                self.tell(Event::Record { subscription: subscription.clone(), record });
            } else if let Some(call) = asked.and_then(|command| self.calls.get_mut(command)) {
                call.answer.records.push(record);
            }
        }
        Ok(())
    }

    fn acknowledged(&mut self, now: Instant, header: &Header<'_>) -> Result<(), ClientError> {
        let has_failed = header.text(Field::Status).as_deref() == Some("failure");
        let reason = text(header, Field::Reason).unwrap_or_else(|| "no reason".to_owned());
        let is_duplicate = !has_failed && reason.starts_with("duplicate");
        let reason = has_failed.then_some(reason);
        let Some(command) = header.number(Field::CommandId)? else {
            // It did not understand who this is: so speaks a server that is spoken to in plain.
            if reason.is_some() && matches!(self.phase, Phase::LoggingOn { .. }) {
                self.logged_on(now, reason, 0);
                return Ok(());
            }
            // All messages up to that number are persisted.
            if let Some(sequence) = header.number(Field::Sequence)? {
                self.backlog.acknowledge_sequence(sequence);
            }
            return Ok(());
        };
        if let Phase::LoggingOn { command: logon, .. } = self.phase {
            if logon == command {
                let sequence = header.number(Field::Sequence)?.unwrap_or(0);
                self.logged_on(now, reason, sequence);
            }
        } else if self.backlog.acknowledge(command) {
            self.duplicates += u64::from(is_duplicate);
            if let Some(reason) = reason
                && self.refused.is_none()
            {
                self.refused = Some((command, reason));
            }
        } else if let Some(name) = self.replacing.remove(&command) {
            self.placed_again(name, reason);
        } else {
            self.answered(command, header, reason)?;
        }
        Ok(())
    }

    /// The server knows the client, and all of its messages up to that number.
    fn logged_on(&mut self, now: Instant, reason: Option<String>, sequence: u64) {
        if let Some(reason) = reason {
            return self.fail(ClientError::Refused { what: "cannot log on".to_owned(), reason });
        }
        if self.has_name() {
            if self.has_been_connected && sequence > self.sequence {
                let name = self.settings.identity.name.clone();
                return self.fail(ClientError::NameTaken { name });
            }
            // That it has them does not say that they are persisted.
            if self.settings.acknowledge == Level::Processed {
                self.backlog.acknowledge_sequence(sequence);
            }
            // Beyond that the server takes none, and there would be no next one.
            self.sequence = self.sequence.max(sequence.min(SEQUENCE_MAX));
        }
        self.has_been_connected = true;
        self.phase = Phase::Connected { since: now };
        self.note(State::Connected { server: self.server() });
        self.begin_again();
    }

    fn placed_again(&mut self, subscription: String, reason: Option<String>) {
        let Some(reason) = reason else {
            if self.placed.contains_key(&subscription) {
                self.tell(Event::Resumed { subscription });
            }
            return;
        };
        if self.placed.remove(&subscription).is_some() {
            let what = "cannot resume the subscription".to_owned();
            let error = ClientError::Refused { what, reason };
            self.tell(Event::Ended { subscription, error });
        }
    }

    fn answered(
        &mut self,
        command: u64,
        header: &Header<'_>,
        reason: Option<String>,
    ) -> Result<(), ClientError> {
        let acks = header.acks()?;
        let deleted = header.number(Field::RecordsDeleted)?;
        let Some(call) = self.calls.get_mut(command) else { return Ok(()) };
        call.answer.deleted = deleted.unwrap_or(call.answer.deleted);
        let is_refused = reason.is_some();
        if let Some(reason) = reason {
            let what = call.what.to_owned();
            call.done = Some(Err(ClientError::Refused { what, reason }));
        } else if acks.has(call.ack) {
            call.done = Some(Ok(()));
        } else {
            return Ok(());
        }
        // A subscription has the name of the command that it began with.
        let name = command.to_string();
        if is_refused {
            self.placed.remove(&name);
        } else if let Some(placed) = self.placed.get_mut(&name) {
            placed.is_accepted = true;
        }
        Ok(())
    }
}

fn text(header: &Header<'_>, field: Field) -> Option<String> {
    header.text(field).map(std::borrow::Cow::into_owned)
}
