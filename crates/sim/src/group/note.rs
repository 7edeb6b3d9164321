//! Notes about a group's run, for the report of a failure.

use crate::group::event::OwnedEvent;
use crate::group::fault::GroupFault;
use lanecast_membership::{MemberId, SendError};
use std::fmt;

/// A note.
#[derive(Clone)]
#[allow(missing_docs, reason = "the names say it, and only a failure's report reads them")]
pub enum Note {
    Starts(MemberId),
    Sends { to: Option<MemberId>, head: [u8; 40], bytes: usize },
    Hears { head: [u8; 40], bytes: usize },
    Event(OwnedEvent),
    IsRefused(SendError),
    IsTold(MemberId),
    Fault(GroupFault),
}

impl Note {
    /// Beginning of a frame.
    pub fn head(frame: &[u8]) -> [u8; 40] {
        let mut head = [0; 40];
        let length = frame.len().min(40);
        head[..length].copy_from_slice(&frame[..length]);
        head
    }
}

/// Name of a kind of frames.
pub fn kind(kind: u8) -> &'static str {
    const KINDS: [&str; 18] = [
        "?",
        "Heartbeat",
        "Data",
        "Ack",
        "Want",
        "Repair",
        "Suspect",
        "Leave",
        "Prepare",
        "Flushed",
        "Cut",
        "Ready",
        "Install",
        "Refuse",
        "Direct",
        "DirectAck",
        "State",
        "StateAck",
    ];
    KINDS.get(usize::from(kind)).unwrap_or(&"?")
}

/// Kind, flags, sender, epoch and the first words of a frame, by `docs/protocol/group.md`.
struct Head<'a>(&'a [u8; 40], usize);

impl fmt::Display for Head<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(head, bytes) = self;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&head[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let kind = kind(head[1]);
        let flags = u16::from_le_bytes([head[2], head[3]]);
        let (sender, epoch) = (MemberId(word(8)), word(16));
        write!(formatter, "{kind} flags {flags} of {sender} epoch {epoch}")?;
        write!(formatter, " [{:x} {:x}] {bytes} bytes", word(24), word(32))
    }
}

impl fmt::Debug for Note {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts(id) => write!(formatter, "starts as {id}"),
            Self::Sends { to: None, head, bytes } => {
                write!(formatter, "sends {}", Head(head, *bytes))
            }
            Self::Sends { to: Some(to), head, bytes } => {
                write!(formatter, "sends to {to}: {}", Head(head, *bytes))
            }
            Self::Hears { head, bytes } => write!(formatter, "hears {}", Head(head, *bytes)),
            Self::Event(OwnedEvent::View(view, change)) => {
                let ids: Vec<_> = view.members.iter().map(|member| member.name.as_str()).collect();
                write!(formatter, "VIEW {} {ids:?}, merged {}", view.id, change.merged)
            }
            Self::Event(OwnedEvent::Message { from, sequence, order, bytes }) => {
                let number = crate::payload::Payloads::number(bytes);
                write!(formatter, "MESSAGE {sequence} {order:?} of {from}: {number:?}")
            }
            Self::Event(OwnedEvent::Direct { from, bytes }) => {
                let number = crate::payload::Payloads::number(bytes);
                write!(formatter, "DIRECT of {from}: {number:?}")
            }
            Self::Event(OwnedEvent::State(bytes)) => {
                write!(formatter, "STATE of {} bytes", bytes.len())
            }
            Self::Event(event) => write!(formatter, "{event:?}"),
            Self::IsRefused(why) => write!(formatter, "may not send: {why}"),
            Self::IsTold(id) => write!(formatter, "is told that {id} is gone"),
            Self::Fault(fault) => write!(formatter, "FAULT {fault:?}"),
        }
    }
}
