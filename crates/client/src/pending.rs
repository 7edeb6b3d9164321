//! Requests that wait for an answer.

use crate::error::ClientError;
use crate::event::Record;
use lanecast_wire::command::{Ack, Field, Header};
use std::collections::BTreeMap;

/// The contents of an answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) records: Vec<Record>,
    pub(crate) deleted: u64,
    /// Approximate memory of the records.
    bytes: usize,
}

/// A request that waits for its answer.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    /// The attempt, for error messages.
    pub(crate) what: &'static str,
    /// The acknowledgement that completes the answer.
    pub(crate) ack: Ack,
    pub(crate) frame: Vec<u8>,
    /// Whether sending it again is harmless.
    pub(crate) may_repeat: bool,
    pub(crate) is_sent: bool,
    pub(crate) answer: Answer,
    pub(crate) done: Option<Result<(), ClientError>>,
}

/// Pending requests by command id.
#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    pending: BTreeMap<u64, PendingRequest>,
}

impl PendingRequests {
    pub(crate) fn insert(&mut self, command: u64, pending: PendingRequest) {
        self.pending.insert(command, pending);
    }

    /// Adds a record to the answer of a query. The query fails if its answer exceeds `bytes_max`:
    /// the caller takes all of it at once, so that nothing is gained by reading more slowly.
    pub(crate) fn add_record(&mut self, command: u64, record: Record, bytes_max: usize) {
        let Some(pending) = self.pending.get_mut(&command) else { return };
        // The server sends the rest of a failed query, too.
        if pending.done.is_some() {
            return;
        }
        pending.answer.bytes += size_of::<Record>() + record.body.len();
        if pending.answer.bytes > bytes_max {
            let what = pending.what.to_owned();
            pending.done = Some(Err(ClientError::AnswerTooLong { what, limit: bytes_max }));
            pending.answer = Answer::default();
        } else {
            pending.answer.records.push(record);
        }
    }

    /// Handles an acknowledgement. Returns whether the request was refused, once that is known.
    pub(crate) fn acknowledge(
        &mut self,
        command: u64,
        header: &Header<'_>,
        refusal: Option<String>,
    ) -> Result<Option<bool>, ClientError> {
        let acks = header.acks()?;
        let deleted = header.number(Field::RecordsDeleted)?;
        let Some(pending) = self.pending.get_mut(&command) else { return Ok(None) };
        // A request that has failed keeps its error.
        if matches!(pending.done, Some(Err(_))) {
            return Ok(None);
        }
        pending.answer.deleted = deleted.unwrap_or(pending.answer.deleted);
        let is_refused = refusal.is_some();
        if let Some(reason) = refusal {
            let what = pending.what.to_owned();
            pending.done = Some(Err(ClientError::Refused { what, reason }));
        } else if acks.has(pending.ack) {
            pending.done = Some(Ok(()));
        } else {
            return Ok(None);
        }
        Ok(Some(is_refused))
    }

    /// Drops a request that its caller no longer waits for.
    pub(crate) fn abandon(&mut self, command: u64) {
        self.pending.remove(&command);
    }

    /// Takes the result, once it is known.
    pub(crate) fn take(&mut self, command: u64) -> Option<Result<Answer, ClientError>> {
        self.pending.get(&command)?.done.as_ref()?;
        let pending = self.pending.remove(&command)?;
        Some(pending.done?.map(|()| pending.answer))
    }

    /// Sends all requests that were not sent on this connection.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        for pending in
            self.pending.values_mut().filter(|pending| pending.done.is_none() && !pending.is_sent)
        {
            pending.is_sent = true;
            out.extend_from_slice(&pending.frame);
        }
    }

    /// Handles a lost connection: repeatable requests wait for the next one, others fail.
    pub(crate) fn connection_lost(&mut self) {
        for pending in
            self.pending.values_mut().filter(|pending| pending.done.is_none() && pending.is_sent)
        {
            if pending.may_repeat {
                pending.is_sent = false;
                pending.answer = Answer::default();
            } else {
                pending.done =
                    Some(Err(ClientError::Interrupted { what: pending.what.to_owned() }));
            }
        }
    }

    pub(crate) fn fail(&mut self, error: &ClientError) {
        for pending in self.pending.values_mut().filter(|pending| pending.done.is_none()) {
            pending.done = Some(Err(error.clone()));
        }
    }
}
