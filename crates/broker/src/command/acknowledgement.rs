//! Acknowledgements: the results of commands as frames. Written into the send queue of the client
//! that sent the command.

use crate::command::error::CommandError;
use crate::ids::ClientId;
use lanecast_wire::command::{
    Ack, Acks, Command, Field, HeaderWriter, PROTOCOL_VERSION, begin_frame, end_frame,
};
use std::borrow::Cow;

/// The reason of an acknowledged command that was a duplicate.
const DUPLICATE: &str = "duplicate: this client's name has had this seq, or a later one";

/// Numbers of a deletion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeleteCounts {
    /// Records in the topic, as far as the client may see them.
    pub(crate) records: u64,
    pub(crate) deleted: u64,
}

/// The result of a successful command.
#[derive(Debug)]
pub(crate) enum CommandResult {
    Done,
    /// The sequence number was not new.
    Duplicate {
        is_delete: bool,
    },
    /// A query began; its result and final acknowledgements follow.
    QueryStarted,
    /// A query of a topic without records: the result is empty.
    NoRecords,
    Deleted(DeleteCounts),
    /// The command takes several turns, and is acknowledged at its end.
    Deferred,
    LoggedOn {
        name: Box<str>,
        sequence: u64,
        /// The client has stated the version of the protocol, and the answer does too.
        states_version: bool,
    },
    Subscribed(Box<str>),
}

/// The fields of a command that its acknowledgements repeat, and the acknowledgements it wants.
#[derive(Clone, Debug)]
pub(crate) struct ReplyTo<'a> {
    pub(crate) command_id: Option<Cow<'a, str>>,
    pub(crate) query_id: Option<Cow<'a, str>>,
    pub(crate) acks: Acks,
}

impl ReplyTo<'_> {
    /// Copies the fields, for a command that is acknowledged in a later turn.
    pub(crate) fn to_owned(&self) -> ReplyTo<'static> {
        let own = |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| text.to_owned().into());
        let (command_id, query_id) = (own(&self.command_id), own(&self.query_id));
        ReplyTo { command_id, query_id, acks: self.acks }
    }

    /// The id of a query: the one given for it, or the command's.
    pub(crate) fn effective_query_id(&self) -> &str {
        self.query_id.as_deref().or(self.command_id.as_deref()).unwrap_or_default()
    }

    /// Appends all acknowledgements of a successful command.
    pub(crate) fn ack(&self, result: &CommandResult, out: &mut Vec<u8>) {
        if matches!(result, CommandResult::Deferred) {
            return;
        }
        self.success(Ack::Processed, out, |header| match result {
            CommandResult::Duplicate { .. } => header.text(Field::Reason, DUPLICATE),
            CommandResult::Subscribed(name) => header.text(Field::SubscriptionId, name),
            CommandResult::LoggedOn { name, sequence, states_version } => {
                let header = header.text(Field::Version, env!("CARGO_PKG_VERSION"));
                let named = (!name.is_empty()).then_some(&**name);
                let header = header.text_if(Field::ClientName, named);
                let header = header.number(Field::Sequence, *sequence);
                match states_version {
                    true => header.number(Field::ProtocolVersion, PROTOCOL_VERSION),
                    false => header,
                }
            }
            _ => header,
        });
        match result {
            // The query itself sends the rest.
            CommandResult::QueryStarted => {}
            CommandResult::NoRecords => {
                self.empty_group(out);
                self.success(Ack::Completed, out, |header| header);
                self.success(Ack::Stats, out, |header| {
                    let header = header.number(Field::Matches, 0).number(Field::TopicMatches, 0);
                    header.number(Field::RecordsReturned, 0)
                });
            }
            CommandResult::Deleted(DeleteCounts { records, deleted }) => {
                self.success(Ack::Completed, out, |header| header);
                self.success(Ack::Stats, out, |header| {
                    let header = header.number(Field::RecordsDeleted, *deleted);
                    header.number(Field::Matches, *deleted).number(Field::TopicMatches, *records)
                });
            }
            CommandResult::Duplicate { is_delete } => {
                self.success(Ack::Completed, out, |header| header.text(Field::Reason, DUPLICATE));
                if *is_delete {
                    self.success(Ack::Stats, out, |header| {
                        let header = header.text(Field::Reason, DUPLICATE);
                        let header = header.number(Field::RecordsDeleted, 0);
                        header.number(Field::Matches, 0).number(Field::TopicMatches, 0)
                    });
                }
            }
            _ => self.success(Ack::Completed, out, |header| header),
        }
    }

    /// Appends the failure of a command, at the first step of which an acknowledgement is wanted.
    pub(crate) fn nack(&self, error: &CommandError, out: &mut Vec<u8>) {
        let steps = [Ack::Processed, Ack::Completed, Ack::Stats];
        if let Some(ack) = steps.into_iter().find(|ack| self.acks.has(*ack)) {
            self.failure(ack, error, out);
        }
    }

    /// Appends one acknowledgement, if it is wanted, with the fields that `more` adds.
    pub(crate) fn success(
        &self,
        ack: Ack,
        out: &mut Vec<u8>,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        if self.acks.has(ack) {
            self.write(ack, "success", out, more);
        }
    }

    /// Appends one failure, if that acknowledgement is wanted.
    pub(crate) fn failure(&self, ack: Ack, error: &CommandError, out: &mut Vec<u8>) {
        if self.acks.has(ack) {
            let reason = error.to_string();
            self.write(ack, "failure", out, |header| header.text(Field::Reason, &reason));
        }
    }

    /// Appends an empty query result.
    fn empty_group(&self, out: &mut Vec<u8>) {
        for command in [Command::GroupBegin, Command::GroupEnd] {
            let frame = begin_frame(out);
            let header = HeaderWriter::command(out, command);
            header.text(Field::QueryId, self.effective_query_id()).end();
            end_frame(out, frame);
        }
    }

    fn write(
        &self,
        ack: Ack,
        status: &str,
        out: &mut Vec<u8>,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        let frame = begin_frame(out);
        let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(ack));
        let header = header.text(Field::Status, status);
        let header = header.text_if(Field::CommandId, self.command_id.as_deref());
        more(header.text_if(Field::QueryId, self.query_id.as_deref())).end();
        end_frame(out, frame);
    }
}

/// A `persisted` acknowledgement that waits for the journal.
#[derive(Debug)]
pub(crate) struct PendingAck {
    pub(crate) client: ClientId,
    pub(crate) command_id: Option<Box<str>>,
    pub(crate) sequence: Option<u64>,
    /// The command was a duplicate.
    pub(crate) is_duplicate: bool,
}

impl PendingAck {
    /// Appends the acknowledgement, or the failure if there is an error.
    pub(crate) fn write(&self, error: Option<&CommandError>, out: &mut Vec<u8>) {
        let frame = begin_frame(out);
        let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(Ack::Persisted));
        let status = if error.is_none() { "success" } else { "failure" };
        let header = header.text(Field::Status, status);
        let header = header.text_if(Field::CommandId, self.command_id.as_deref());
        let header = match self.sequence {
            Some(sequence) => header.number(Field::Sequence, sequence),
            None => header,
        };
        let duplicate = self.is_duplicate.then(|| DUPLICATE.to_owned());
        let reason = error.map(CommandError::to_string).or(duplicate);
        header.text_if(Field::Reason, reason.as_deref()).end();
        end_frame(out, frame);
    }
}

/// Appends a heartbeat.
pub(crate) fn write_heartbeat(out: &mut Vec<u8>) {
    let frame = begin_frame(out);
    HeaderWriter::command(out, Command::Heartbeat).end();
    end_frame(out, frame);
}
