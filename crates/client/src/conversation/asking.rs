//! What the client says.

use super::{Conversation, Phase, Placed};
use crate::call::{Answer, Call};
use crate::error::ClientError;
use crate::publication::{Deletion, Publication};
use crate::question::{Interest, Question};
use crate::settings::Level;
use lanecast_wire::command::{Ack, Acks, Command, Field, HeaderWriter, begin_frame, end_frame};

impl Conversation {
    /// Publishes a message, or the changed fields of one, now or when there is a connection.
    ///
    /// # Errors
    /// If it cannot be kept, or an earlier one was refused; this one is not taken then.
    pub(crate) fn publish(&mut self, publication: &Publication<'_>) -> Result<(), ClientError> {
        self.complain()?;
        let (command, sequence) = (self.last + 1, self.sequence + 1);
        let named = self.has_name().then_some(sequence);
        let level = match self.settings.acknowledge {
            Level::Processed => Ack::Processed,
            Level::Persisted => Ack::Persisted,
        };
        let frame = framed(|out| {
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

    /// Whether the server has answered all messages that were published.
    ///
    /// # Errors
    /// If it refused one, or nobody can know.
    pub(crate) fn is_flushed(&mut self) -> Result<bool, ClientError> {
        self.complain()?;
        Ok(self.backlog.is_empty())
    }

    /// What is to be said of earlier messages, once.
    pub(crate) fn complain(&mut self) -> Result<(), ClientError> {
        if let Some((number, reason)) = self.refused.take() {
            let what = format!("cannot publish (command {number})");
            return Err(ClientError::Refused { what, reason });
        }
        if self.unsure > 0 {
            return Err(ClientError::Unsure(std::mem::take(&mut self.unsure)));
        }
        match &self.phase {
            Phase::Over(error) => Err(error.clone()),
            _ => Ok(()),
        }
    }

    /// Subscribes. Gives the number of the command, for its answer, and the subscription's name.
    pub(crate) fn subscribe(&mut self, interest: Interest) -> (u64, String) {
        let name = (self.last + 1).to_string();
        let kind = interest.command();
        let command = self.ask("cannot subscribe", kind, Ack::Processed, &[], |header| {
            interest.write(header, &name)
        });
        self.placed.insert(name.clone(), Placed { interest, is_accepted: false });
        (command, name)
    }

    /// Ends a subscription: what still comes of it is dropped.
    pub(crate) fn unsubscribe(&mut self, name: &str) {
        if self.placed.remove(name).is_some() && self.is_connected() {
            self.put(|out| {
                let header = HeaderWriter::command(out, Command::Unsubscribe);
                header.text(Field::SubscriptionId, name).end();
            });
        }
    }

    /// Asks for records.
    pub(crate) fn query(&mut self, topic: &str, question: &Question) -> u64 {
        self.ask("cannot query", Command::Sow, Ack::Completed, &[], |header| {
            question.write(header.text(Field::Topic, topic), Vec::new())
        })
    }

    /// Removes records.
    pub(crate) fn delete(&mut self, topic: &str, deletion: &Deletion<'_>) -> u64 {
        self.ask("cannot delete", Command::SowDelete, Ack::Stats, deletion.body(), |header| {
            deletion.write(header.text(Field::Topic, topic))
        })
    }

    /// What a command was answered with, once it is.
    pub(crate) fn take_answer(&mut self, command: u64) -> Option<Result<Answer, ClientError>> {
        self.calls.take(command)
    }

    /// Nobody waits for its answer any more.
    pub(crate) fn forget(&mut self, command: u64) {
        self.calls.forget(command);
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
        let frame = framed(|out| {
            let header = HeaderWriter::command(out, command).number(Field::CommandId, id);
            fill(header).acks(Acks::NONE.with(ack)).end();
            out.extend_from_slice(body);
        });
        let done = self.failure().map(|error| Err(error.clone()));
        let (may_repeat, answer) = (command != Command::SowDelete, Answer::default());
        self.calls.insert(id, Call { what, ack, frame, may_repeat, is_sent: false, answer, done });
        if self.is_connected() {
            self.calls.send(&mut self.out);
        }
        id
    }

    /// Says who this is, first of all on a connection.
    pub(super) fn log_on(&mut self) -> u64 {
        self.last += 1;
        let (id, identity) = (self.last, &self.settings.identity);
        let frame = framed(|out| {
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

    /// Says all that the server has to know again. Subscriptions come first, so that they hear what
    /// this client publishes itself; then what was published; then what was asked later.
    pub(super) fn begin_again(&mut self) {
        if let Some(beat) = self.settings.heartbeat {
            let start = format!("start,{}", beat.as_secs());
            self.put(|out| {
                HeaderWriter::command(out, Command::Heartbeat).text(Field::Options, &start).end();
            });
        }
        for (name, placed) in self.placed.iter().filter(|(_, placed)| placed.is_accepted) {
            self.last += 1;
            let id = self.last;
            let frame = framed(|out| {
                let header = HeaderWriter::command(out, placed.interest.command());
                let header = placed.interest.write(header.number(Field::CommandId, id), name);
                header.acks(Acks::NONE.with(Ack::Processed)).end();
            });
            self.out.extend_from_slice(&frame);
            self.replacing.insert(id, name.clone());
        }
        self.backlog.write(&mut self.out);
        self.calls.send(&mut self.out);
    }

    /// Adds a frame to what is to be sent.
    pub(super) fn put(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = begin_frame(&mut self.out);
        write(&mut self.out);
        end_frame(&mut self.out, start);
    }
}

fn framed(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    write(&mut frame);
    end_frame(&mut frame, start);
    frame
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
