//! Frames from the server.

use crate::command::error::CommandError;
use crate::topic::durable_store::PendingAck;
use lanecast_wire::command::{
    Ack, Acks, Command, Field, Header, HeaderWriter, begin_frame, end_frame,
};

/// Why a command that is acknowledged was not done.
pub(crate) const DUPLICATE: &str = "duplicate: this client's name has had this seq, or a later one";

/// What acknowledgements of a command say of it.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    header: &'a Header<'a>,
    pub(crate) acks: Acks,
    pub(crate) out: &'a mut Vec<u8>,
}

impl<'a> Reply<'a> {
    pub(crate) fn new(header: &'a Header<'a>, acks: Acks, out: &'a mut Vec<u8>) -> Self {
        Self { header, acks, out }
    }

    /// Acknowledges with `ack`, if that is wanted, and with what `more` adds.
    pub(crate) fn success(
        &mut self,
        ack: Ack,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        if self.acks.has(ack) {
            self.write(ack, "success", more);
        }
    }

    /// Says that the command fails at `ack`, if that is wanted.
    pub(crate) fn failure(&mut self, ack: Ack, why: &CommandError) {
        if self.acks.has(ack) {
            let reason = why.to_string();
            self.write(ack, "failure", |header| header.text(Field::Reason, &reason));
        }
    }

    /// Answers a query with no records.
    pub(crate) fn empty_group(&mut self) {
        let given = self.header.text(Field::QueryId);
        let id = given.or_else(|| self.header.text(Field::CommandId)).unwrap_or_default();
        for command in [Command::GroupBegin, Command::GroupEnd] {
            let frame = begin_frame(self.out);
            HeaderWriter::command(self.out, command).text(Field::QueryId, &id).end();
            end_frame(self.out, frame);
        }
    }

    fn write(
        &mut self,
        ack: Ack,
        status: &str,
        more: impl FnOnce(HeaderWriter<'_>) -> HeaderWriter<'_>,
    ) {
        let frame = begin_frame(self.out);
        let header = HeaderWriter::command(self.out, Command::Ack).acks(Acks::NONE.with(ack));
        let id = self.header.text(Field::CommandId);
        let header = header.text(Field::Status, status).text_if(Field::CommandId, id.as_deref());
        let query = self.header.text(Field::QueryId);
        more(header.text_if(Field::QueryId, query.as_deref())).end();
        end_frame(self.out, frame);
    }
}

/// What a client did is durable, or why it is not.
pub(crate) fn persisted(owed: &PendingAck, why: Option<&CommandError>, out: &mut Vec<u8>) {
    let frame = begin_frame(out);
    let header = HeaderWriter::command(out, Command::Ack).acks(Acks::NONE.with(Ack::Persisted));
    let status = if why.is_none() { "success" } else { "failure" };
    let header = header.text(Field::Status, status);
    let header = header.text_if(Field::CommandId, owed.command_id.as_deref());
    let header = match owed.sequence {
        Some(sequence) => header.number(Field::Sequence, sequence),
        None => header,
    };
    let duplicate = owed.is_duplicate.then(|| DUPLICATE.to_owned());
    let reason = why.map(CommandError::to_string).or(duplicate);
    header.text_if(Field::Reason, reason.as_deref()).end();
    end_frame(out, frame);
}

/// What somebody is told who does not encrypt where that is needed.
pub(crate) fn no_tls() -> Vec<u8> {
    let mut out = Vec::new();
    goodbye(&mut out, "not authorized: this server speaks TLS alone: connect with tcps://");
    out
}

/// What a client is told whose frame is longer than it may be before a logon.
pub(crate) fn too_long(most: usize, out: &mut Vec<u8>) {
    goodbye(out, &format!("invalid frame: it may have {most} bytes before a logon: log on first"));
}

/// Why a connection ends, which no command was the reason for.
fn goodbye(out: &mut Vec<u8>, reason: &str) {
    let frame = begin_frame(out);
    HeaderWriter::command(out, Command::Ack)
        .acks(Acks::NONE.with(Ack::Processed))
        .text(Field::Status, "failure")
        .text(Field::Reason, reason)
        .end();
    end_frame(out, frame);
}

/// A sign of life.
pub(crate) fn heartbeat(out: &mut Vec<u8>) {
    let frame = begin_frame(out);
    HeaderWriter::command(out, Command::Heartbeat).end();
    end_frame(out, frame);
}
