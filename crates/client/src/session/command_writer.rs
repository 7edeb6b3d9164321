//! Frames of commands, on their way to the server.

use crate::settings::Identity;
use lanecast_wire::command::{
    Ack, Acks, Command, Field, HeaderWriter, PROTOCOL_VERSION, begin_frame, end_frame,
};

/// Bytes to send on this connection, and the ids of commands, which grow across connections.
#[derive(Debug, Default)]
pub(super) struct CommandWriter {
    pub(super) out: Vec<u8>,
    last_id: u64,
}

impl CommandWriter {
    /// The id of the next command.
    pub(super) fn peek_id(&self) -> u64 {
        self.last_id + 1
    }

    /// Takes the id of the next command.
    pub(super) fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Appends a frame.
    pub(super) fn write_frame(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = begin_frame(&mut self.out);
        write(&mut self.out);
        end_frame(&mut self.out, start);
    }

    /// Writes the logon, the first command of a connection; returns its id.
    pub(super) fn log_on(&mut self, identity: &Identity) -> u64 {
        self.out.clear();
        let id = self.next_id();
        self.write_frame(|out| {
            let header = HeaderWriter::command(out, Command::Logon).number(Field::CommandId, id);
            let header = header.acks(Acks::NONE.with(Ack::Processed));
            header
                .text_if(Field::ClientName, given(&identity.name))
                .text_if(Field::UserId, given(&identity.user))
                .text_if(Field::Password, given(&identity.password))
                .text(Field::Version, env!("CARGO_PKG_VERSION"))
                .text(Field::MessageType, &identity.message_type)
                .number(Field::ProtocolVersion, PROTOCOL_VERSION)
                .end();
        });
        id
    }

    /// Appends a heartbeat with these options.
    pub(super) fn heartbeat(&mut self, options: &str) {
        self.write_frame(|out| {
            HeaderWriter::command(out, Command::Heartbeat).text(Field::Options, options).end();
        });
    }

    pub(super) fn unsubscribe(&mut self, name: &str) {
        self.write_frame(|out| {
            let header = HeaderWriter::command(out, Command::Unsubscribe);
            header.text(Field::SubscriptionId, name).end();
        });
    }
}

/// One frame in a buffer of its own.
pub(super) fn build_frame(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frame = Vec::new();
    let start = begin_frame(&mut frame);
    write(&mut frame);
    end_frame(&mut frame, start);
    frame
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
