//! Commands of requests and messages.

/// A command, or the kind of a message from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// Says who the client is.
    Logon,
    /// A message, either way.
    Publish,
    /// The changed fields of a record.
    DeltaPublish,
    /// Messages from now on.
    Subscribe,
    /// The same, as changed fields.
    DeltaSubscribe,
    /// Records as they are; from the server, some of them.
    Sow,
    /// Records as they are, and what follows without a gap.
    SowAndSubscribe,
    /// The same, as changed fields.
    SowAndDeltaSubscribe,
    /// No more messages.
    Unsubscribe,
    /// Removes records.
    SowDelete,
    /// Asks when all before it is done.
    Flush,
    /// Life signs, both ways.
    Heartbeat,
    /// Result of a command.
    Ack,
    /// A record that a subscription does not show any more.
    Oof,
    /// Records follow.
    GroupBegin,
    /// No more of them.
    GroupEnd,
}

impl Command {
    /// Each command, the name that is written, and the other one that is read.
    const NAMES: [(Self, &'static str, &'static str); 16] = [
        (Self::Publish, "p", "publish"),
        (Self::Logon, "logon", ""),
        (Self::DeltaPublish, "delta_publish", ""),
        (Self::Subscribe, "subscribe", ""),
        (Self::DeltaSubscribe, "delta_subscribe", ""),
        (Self::Sow, "sow", ""),
        (Self::SowAndSubscribe, "sow_and_subscribe", ""),
        (Self::SowAndDeltaSubscribe, "sow_and_delta_subscribe", ""),
        (Self::Unsubscribe, "unsubscribe", ""),
        (Self::SowDelete, "sow_delete", ""),
        (Self::Flush, "flush", ""),
        (Self::Heartbeat, "heartbeat", ""),
        (Self::Ack, "ack", ""),
        (Self::Oof, "oof", ""),
        (Self::GroupBegin, "group_begin", ""),
        (Self::GroupEnd, "group_end", ""),
    ];

    /// The command of that name.
    #[inline]
    pub fn named(name: &str) -> Option<Self> {
        let known = |(_, short, long): &&(Self, &str, &str)| {
            *short == name || !long.is_empty() && *long == name
        };
        Self::NAMES.iter().find(known).map(|(command, ..)| *command)
    }

    /// The name that is written.
    pub fn name(self) -> &'static str {
        let known = Self::NAMES.iter().find(|(command, ..)| *command == self);
        known.map_or("", |(_, name, _)| name)
    }
}
