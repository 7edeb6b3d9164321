//! Published messages: their numbers, and how the server acknowledged them.

use super::command_writer::{CommandWriter, build_frame};
use crate::backlog::Backlog;
use crate::error::ClientError;
use crate::publication::Publication;
use crate::settings::{AckLevel, Settings};
use lanecast_wire::command::{Ack, Acks, Field, HeaderWriter, SEQUENCE_MAX};

/// The messages that a client has published, across its connections.
#[derive(Debug)]
pub(super) struct Published {
    /// Whether the client has a name, under which the server recognizes repetitions.
    has_name: bool,
    level: AckLevel,
    /// Sequence number of the last message.
    sequence: u64,
    /// Messages that were published, by which errors number them: from 1 on, whatever the name.
    count: u64,
    backlog: Backlog,
    /// Messages that may be lost, for a client without a name.
    uncertain: u64,
    /// Messages that the server acknowledged as duplicates.
    duplicates: u64,
    /// The first refused message by its number among all, with the reason.
    refused: Option<(u64, String)>,
}

impl Published {
    /// No messages yet; `sequence` is below their numbers.
    pub(super) fn new(settings: &Settings, sequence: u64) -> Self {
        Self {
            has_name: !settings.identity.name.is_empty(),
            level: settings.acknowledge,
            sequence,
            count: 0,
            backlog: Backlog::new(settings.unacknowledged_bytes_max),
            uncertain: 0,
            duplicates: 0,
            refused: None,
        }
    }

    /// Number of messages that the server acknowledged as duplicates.
    pub(super) fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Stores a message until it is acknowledged, and writes it if there is a connection.
    pub(super) fn publish(
        &mut self,
        publication: &Publication<'_>,
        writer: &mut CommandWriter,
        is_connected: bool,
    ) -> Result<(), ClientError> {
        let (command, sequence) = (writer.peek_id(), self.sequence + 1);
        let named = self.has_name.then_some(sequence);
        let level = match self.level {
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
        // A message that does not fit takes no number: the next one may.
        self.backlog.check(frame.len())?;
        self.backlog.push(writer.next_id(), sequence, &frame);
        if is_connected {
            writer.out.extend_from_slice(&frame);
        }
        self.sequence = sequence;
        self.count += 1;
        Ok(())
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.backlog.is_empty()
    }

    /// Returns the refusal or possible loss of earlier messages, once.
    pub(super) fn take_refusal(&mut self) -> Result<(), ClientError> {
        if let Some((number, reason)) = self.refused.take() {
            let what = format!("cannot publish message {number}");
            return Err(ClientError::Refused { what, reason });
        }
        if self.uncertain > 0 {
            return Err(ClientError::Unsure(std::mem::take(&mut self.uncertain)));
        }
        Ok(())
    }

    /// Handles the acknowledgement of a command; false if it is no message's.
    pub(super) fn acknowledge(
        &mut self,
        command: u64,
        is_duplicate: bool,
        refusal: Option<&String>,
    ) -> bool {
        let Some(later) = self.backlog.acknowledge(command) else { return false };
        self.duplicates += u64::from(is_duplicate);
        if let Some(reason) = refusal
            && self.refused.is_none()
        {
            self.refused = Some((self.count - later as u64, reason.clone()));
        }
        true
    }

    /// All messages up to this sequence number are persisted.
    pub(super) fn acknowledge_sequence(&mut self, sequence: u64) {
        self.backlog.acknowledge_sequence(sequence);
    }

    /// Handles the answer to a logon: the server has all messages up to `sequence`. False if it has
    /// later ones than this client published: another program uses the name.
    pub(super) fn logged_on(&mut self, sequence: u64, has_been_connected: bool) -> bool {
        if !self.has_name {
            return true;
        }
        if has_been_connected && sequence > self.sequence {
            return false;
        }
        // Received is not persisted: those wait for their own acknowledgements.
        if self.level == AckLevel::Processed {
            self.backlog.acknowledge_sequence(sequence);
        }
        // The server accepts no numbers beyond the limit, so none above it may be next.
        self.sequence = self.sequence.max(sequence.min(SEQUENCE_MAX));
        true
    }

    /// Handles the end of a connection. Without a name the server could not tell a repetition, so
    /// nothing is sent again.
    pub(super) fn connection_lost(&mut self) {
        if !self.has_name {
            self.uncertain += self.backlog.len() as u64;
            self.backlog.clear();
        }
    }

    /// Writes the unacknowledged messages again.
    pub(super) fn resume(&self, writer: &mut CommandWriter) {
        self.backlog.write(&mut writer.out);
    }
}
