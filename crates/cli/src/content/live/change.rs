//! Changes of the watched records, as the server's events tell them.

use lanecast_client::Event;

/// Kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChangeKind {
    Added,
    Changed,
    Removed,
}

/// Something that concerns one record, with its body.
pub(super) struct Change {
    pub(super) kind: ChangeKind,
    /// The command that it came by.
    pub(super) command: &'static str,
    pub(super) key: u64,
    pub(super) correlation: Option<String>,
    pub(super) body: Vec<u8>,
    /// Why it is gone.
    pub(super) reason: Option<String>,
}

/// Meaning of one event of the server.
pub(super) enum Update {
    Change(Change),
    /// All records have been told.
    Current,
    /// All records are told anew.
    Restart,
}

/// Reads an event of the server; `known` tells whether a key is already in the table.
pub(super) fn read_update(event: Event, known: impl Fn(u64) -> bool) -> anyhow::Result<Update> {
    let put = |command, key: u64, correlation, body| {
        let kind = if known(key) { ChangeKind::Changed } else { ChangeKind::Added };
        Update::Change(Change { kind, command, key, correlation, body, reason: None })
    };
    Ok(match event {
        Event::Record { record, .. } => put("sow", record.key, None, record.body),
        Event::Message(message) => {
            put("p", message.key.unwrap_or_default(), message.correlation, message.body)
        }
        Event::OutOfFocus { message, reason } => Update::Change(Change {
            kind: ChangeKind::Removed,
            command: "oof",
            key: message.key.unwrap_or_default(),
            correlation: message.correlation,
            body: message.body,
            reason: Some(reason),
        }),
        Event::Current { .. } => Update::Current,
        Event::Resumed { .. } => Update::Restart,
        Event::Ended { error, .. } => return Err(error.into()),
    })
}
