//! Commands to the server.

use super::{ActiveSubscription, Phase, Session};
use crate::error::ClientError;
use crate::pending::{Answer, PendingRequest};
use crate::publication::{Deletion, Publication};
use crate::query::{Query, SubscribeRequest};
use crate::settings::AckLevel;
use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter, begin_frame, end_frame};

impl Session {
    /// Publishes a message, now or with the next connection.
    ///
    /// # Errors
    /// If it exceeds the limit or an earlier one was refused; it is then not published.
    pub(crate) fn publish(&mut self, publication: &Publication<'_>) -> Result<(), ClientError> {
        self.take_refusal()?;
        let (command, sequence) = (self.last + 1, self.sequence + 1);
        let named = self.has_name().then_some(sequence);
        let level = match self.settings.acknowledge {
            AckLevel::Processed => Ack::Processed,
            AckLevel::Persisted => Ack::Persisted,
        };
        let frame = build_frame(|out| {
            let header = publication.write(HeaderWriter::command(out, publication.command()));
            let header = header.number(Field::CommandId, command);
            let header =
                named.iter().fold(header, |it, number| it.number(Field::Sequence, *number));
            header.acks(Acks::NONE.with(level)).end();
            out.extend_from_slice(publication.body);
        });
        self.backlog.check(frame.len())?;
        self.backlog.push(command, sequence, &frame);
        if self.is_connected() {
            self.out.extend_from_slice(&frame);
        }
        (self.last, self.sequence) = (command, sequence);
        Ok(())
    }

    /// Whether the server has acknowledged all published messages.
    ///
    /// # Errors
    /// If it refused one, or some may be lost.
    pub(crate) fn is_flushed(&mut self) -> Result<bool, ClientError> {
        self.take_refusal()?;
        Ok(self.backlog.is_empty())
    }

    /// Returns the refusal or possible loss of earlier messages, once.
    pub(crate) fn take_refusal(&mut self) -> Result<(), ClientError> {
        if let Some((number, reason)) = self.refused.take() {
            let what = format!("cannot publish (command {number})");
            return Err(ClientError::Refused { what, reason });
        }
        if self.uncertain > 0 {
            return Err(ClientError::Unsure(std::mem::take(&mut self.uncertain)));
        }
        match &self.phase {
            Phase::Ended(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Subscribes. Returns the command id, for its answer, and the subscription's name.
    pub(crate) fn subscribe(&mut self, request: SubscribeRequest) -> (u64, String) {
        let name = (self.last + 1).to_string();
        let kind = request.command();
        let command = self.ask("cannot subscribe", kind, Ack::Processed, &[], |header| {
            request.write(header, &name)
        });
        self.active.insert(name.clone(), ActiveSubscription { request, is_accepted: false });
        (command, name)
    }

    /// Ends a subscription; its later events are dropped.
    pub(crate) fn unsubscribe(&mut self, name: &str) {
        if self.active.remove(name).is_some() && self.is_connected() {
            self.write_frame(|out| {
                let header = HeaderWriter::command(out, Command::Unsubscribe);
                header.text(Field::SubscriptionId, name).end();
            });
        }
    }

    /// Queries records.
    pub(crate) fn query(&mut self, topic: &str, query: &Query) -> u64 {
        self.ask("cannot query", Command::Sow, Ack::Completed, &[], |header| {
            query.write(header.text(Field::Topic, topic), Vec::new())
        })
    }

    /// Deletes records.
    pub(crate) fn delete(&mut self, topic: &str, deletion: &Deletion<'_>) -> u64 {
        self.ask("cannot delete", Command::SowDelete, Ack::Stats, deletion.body(), |header| {
            deletion.write(header.text(Field::Topic, topic))
        })
    }

    /// Takes the answer to a command, once it is complete.
    pub(crate) fn take_answer(&mut self, command: u64) -> Option<Result<Answer, ClientError>> {
        self.pending.take(command)
    }

    /// Drops a request that its caller no longer waits for.
    pub(crate) fn abandon(&mut self, command: u64) {
        self.pending.abandon(command);
    }

    fn ask(
        &mut self,
        what: &'static str,
        command: Command,
        ack: Ack,
        body: &[u8],
        fill: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) -> u64 {
        self.last += 1;
        let id = self.last;
        let frame = build_frame(|out| {
            let header = HeaderWriter::command(out, command).number(Field::CommandId, id);
            fill(header).acks(Acks::NONE.with(ack)).end();
            out.extend_from_slice(body);
        });
        let done = self.failure().map(|error| Err(error.clone()));
        let (may_repeat, answer) = (command != Command::SowDelete, Answer::default());
        self.pending.insert(
            id,
            PendingRequest { what, ack, frame, may_repeat, is_sent: false, answer, done },
        );
        if self.is_connected() {
            self.pending.send(&mut self.out);
        }
        id
    }

    /// Writes the logon, the first command of a connection.
    pub(super) fn log_on(&mut self) -> u64 {
        self.last += 1;
        let (id, identity) = (self.last, &self.settings.identity);
        let frame = build_frame(|out| {
            let header = HeaderWriter::command(out, Command::Logon).number(Field::CommandId, id);
            let header = header.acks(Acks::NONE.with(Ack::Processed));
            header
                .text_if(Field::ClientName, given(&identity.name))
                .text_if(Field::UserId, given(&identity.user))
                .text_if(Field::Password, given(&identity.password))
                .text(Field::Version, env!("CARGO_PKG_VERSION"))
                .text(Field::MessageType, &identity.message_type)
                .end();
        });
        self.out = frame;
        id
    }

    /// Repeats the state of the session after a logon. Subscriptions come first, so that they match
    /// this client's own messages; then unacknowledged messages; then pending requests.
    pub(super) fn resume(&mut self) {
        if let Some(heartbeat) = self.settings.heartbeat {
            let start = format!("start,{}", heartbeat.as_secs());
            self.write_frame(|out| {
                HeaderWriter::command(out, Command::Heartbeat).text(Field::Options, &start).end();
            });
        }
        for (name, active) in self.active.iter().filter(|(_, active)| active.is_accepted) {
            self.last += 1;
            let id = self.last;
            let frame = build_frame(|out| {
                let header = HeaderWriter::command(out, active.request.command());
                let header = active.request.write(header.number(Field::CommandId, id), name);
                header.acks(Acks::NONE.with(Ack::Processed)).end();
            });
            self.out.extend_from_slice(&frame);
            self.replacing.insert(id, name.clone());
        }
        self.backlog.write(&mut self.out);
        self.pending.send(&mut self.out);
    }

    /// Appends a frame to the pending bytes.
    pub(super) fn write_frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = begin_frame(&mut self.out);
        write(&mut self.out);
        end_frame(&mut self.out, start);
    }
}

fn build_frame(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    write(&mut frame);
    end_frame(&mut frame, start);
    frame
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
