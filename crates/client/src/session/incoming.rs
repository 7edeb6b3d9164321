//! Commands from the server.

use super::{Phase, Session};
use crate::error::ClientError;
use crate::event::{Event, Message, Record, State};
use crate::settings::AckLevel;
use lanecast_wire::command::{Command, Field, Header, Records, SEQUENCE_MAX};
use std::time::Instant;

impl Session {
    /// Processes bytes of the connection.
    ///
    /// # Errors
    /// If they are invalid or the logon is refused: the caller must close the connection.
    pub(crate) fn receive(&mut self, now: Instant, bytes: &[u8]) -> Result<(), ClientError> {
        self.last_receive = now;
        let mut frames = std::mem::take(&mut self.frames);
        let consumed = frames.take(bytes, |payload| self.hear(now, payload));
        self.frames = frames;
        consumed?;
        self.failure().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn hear(&mut self, now: Instant, payload: &[u8]) -> Result<(), ClientError> {
        let header = Header::parse(payload)?;
        match header.command()? {
            Command::Ack => self.acknowledged(now, &header)?,
            Command::Publish | Command::DeltaPublish => {
                if let Some(message) = self.message(&header)? {
                    self.push_event(Event::Message(message));
                }
            }
            Command::Oof => {
                if let Some(message) = self.message(&header)? {
                    let reason = text(&header, Field::Reason).unwrap_or_default();
                    self.push_event(Event::Left { message, reason });
                }
            }
            Command::Sow => self.records(&header)?,
            Command::GroupEnd => {
                let subscription = text(&header, Field::QueryId).unwrap_or_default();
                if self.active.contains_key(&subscription) {
                    self.push_event(Event::Current { subscription });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A message with those of its subscriptions that are still active.
    fn message(&self, header: &Header<'_>) -> Result<Option<Message>, ClientError> {
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

    fn records(&mut self, header: &Header<'_>) -> Result<(), ClientError> {
        let subscription = text(header, Field::QueryId).unwrap_or_default();
        let asked = subscription.parse().ok().filter(|_| !self.active.contains_key(&subscription));
        for record in Records::new(header.body()) {
            let (header, body) = record?;
            let key = header.number(Field::SowKey)?.unwrap_or(0);
            let record = Record { key, body: body.to_vec() };
            if self.active.contains_key(&subscription) {
                self.push_event(Event::Record { subscription: subscription.clone(), record });
            } else if let Some(pending) = asked.and_then(|command| self.pending.get_mut(command)) {
                pending.answer.records.push(record);
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
            // A TLS server refuses a client without TLS with an acknowledgement that has no command
            // id.
            if reason.is_some() && matches!(self.phase, Phase::LoggingOn { .. }) {
                self.logged_on(now, reason, 0);
                return Ok(());
            }
            // All messages up to this sequence number are persisted.
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
            self.resubscribed(name, reason);
        } else {
            self.acknowledged_request(command, header, reason)?;
        }
        Ok(())
    }

    /// Handles the answer to the logon: the server has all messages up to `sequence`.
    fn logged_on(&mut self, now: Instant, reason: Option<String>, sequence: u64) {
        if let Some(reason) = reason {
            return self.fail(ClientError::Refused { what: "cannot log on".to_owned(), reason });
        }
        if self.has_name() {
            if self.has_been_connected && sequence > self.sequence {
                let name = self.settings.identity.name.clone();
                return self.fail(ClientError::NameTaken { name });
            }
            // Received is not persisted: those wait for their own acknowledgements.
            if self.settings.acknowledge == AckLevel::Processed {
                self.backlog.acknowledge_sequence(sequence);
            }
            // The server accepts no numbers beyond the limit, so none above it may be next.
            self.sequence = self.sequence.max(sequence.min(SEQUENCE_MAX));
        }
        self.has_been_connected = true;
        self.phase = Phase::Connected { since: now };
        self.push_state(State::Connected { server: self.server() });
        self.resume();
    }

    fn resubscribed(&mut self, subscription: String, reason: Option<String>) {
        let Some(reason) = reason else {
            if self.active.contains_key(&subscription) {
                self.push_event(Event::Resumed { subscription });
            }
            return;
        };
        if self.active.remove(&subscription).is_some() {
            let what = "cannot resume the subscription".to_owned();
            let error = ClientError::Refused { what, reason };
            self.push_event(Event::Ended { subscription, error });
        }
    }

    fn acknowledged_request(
        &mut self,
        command: u64,
        header: &Header<'_>,
        reason: Option<String>,
    ) -> Result<(), ClientError> {
        let acks = header.acks()?;
        let deleted = header.number(Field::RecordsDeleted)?;
        let Some(pending) = self.pending.get_mut(command) else { return Ok(()) };
        pending.answer.deleted = deleted.unwrap_or(pending.answer.deleted);
        let is_refused = reason.is_some();
        if let Some(reason) = reason {
            let what = pending.what.to_owned();
            pending.done = Some(Err(ClientError::Refused { what, reason }));
        } else if acks.has(pending.ack) {
            pending.done = Some(Ok(()));
        } else {
            return Ok(());
        }
        // The first command of a subscription gives it its name.
        let name = command.to_string();
        if is_refused {
            self.active.remove(&name);
        } else if let Some(active) = self.active.get_mut(&name) {
            active.is_accepted = true;
        }
        Ok(())
    }
}

fn text(header: &Header<'_>, field: Field) -> Option<String> {
    header.text(field).map(std::borrow::Cow::into_owned)
}
