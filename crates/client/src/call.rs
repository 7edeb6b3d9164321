//! Commands that somebody waits for.

use crate::error::ClientError;
use crate::event::Record;
use lanecast_wire::command::Ack;
use std::collections::BTreeMap;

/// What a command was answered with.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) records: Vec<Record>,
    pub(crate) deleted: u64,
}

/// One that waits.
#[derive(Debug)]
pub(crate) struct Call {
    /// What it means if it fails.
    pub(crate) what: &'static str,
    /// Its answer is complete with this.
    pub(crate) ack: Ack,
    pub(crate) frame: Vec<u8>,
    /// Whether it may be sent again without doing anything twice.
    pub(crate) may_repeat: bool,
    pub(crate) is_sent: bool,
    pub(crate) answer: Answer,
    pub(crate) done: Option<Result<(), ClientError>>,
}

/// All of them, by the numbers of their commands.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: BTreeMap<u64, Call>,
}

impl Calls {
    pub(crate) fn insert(&mut self, command: u64, call: Call) {
        self.calls.insert(command, call);
    }

    pub(crate) fn get_mut(&mut self, command: u64) -> Option<&mut Call> {
        self.calls.get_mut(&command)
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget(&mut self, command: u64) {
        self.calls.remove(&command);
    }

    /// How it went, once that is known.
    pub(crate) fn take(&mut self, command: u64) -> Option<Result<Answer, ClientError>> {
        self.calls.get(&command)?.done.as_ref()?;
        let call = self.calls.remove(&command)?;
        Some(call.done?.map(|()| call.answer))
    }

    /// Sends those that have not been sent on this connection.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) {
        for call in self.calls.values_mut().filter(|call| call.done.is_none() && !call.is_sent) {
            call.is_sent = true;
            out.extend_from_slice(&call.frame);
        }
    }

    /// The connection broke.
    pub(crate) fn interrupt(&mut self) {
        for call in self.calls.values_mut().filter(|call| call.done.is_none() && call.is_sent) {
            if call.may_repeat {
                call.is_sent = false;
                call.answer = Answer::default();
            } else {
                call.done = Some(Err(ClientError::Interrupted { what: call.what.to_owned() }));
            }
        }
    }

    pub(crate) fn fail(&mut self, error: &ClientError) {
        for call in self.calls.values_mut().filter(|call| call.done.is_none()) {
            call.done = Some(Err(error.clone()));
        }
    }
}
