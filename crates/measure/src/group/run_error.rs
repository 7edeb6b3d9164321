//! Errors that end a run without a table.

use std::io;

/// A group test could not be run.
#[derive(Debug, thiserror::Error)]
pub enum GroupError {
    /// Too few members came.
    #[error("{here} of {wanted} members came within {seconds} s: {names}")]
    TooFew {
        /// Members that are here, this one included.
        here: usize,
        /// `num_members`.
        wanted: usize,
        /// The waiting time.
        seconds: u64,
        /// Their names.
        names: String,
    },
    /// More members came than the configuration says.
    #[error("more than num_members={wanted} members are in this group: {names}")]
    TooMany {
        /// `num_members`.
        wanted: usize,
        /// Their names.
        names: String,
    },
    /// The members' roles do not fit the configuration.
    #[error("{senders} of the members are senders, and num_senders={wanted}: {names}")]
    Senders {
        /// Members that send.
        senders: usize,
        /// `num_senders`.
        wanted: usize,
        /// Their names.
        names: String,
    },
    /// Two members have different configurations.
    #[error("{key} is {here} here and {there} at {name}: all members must have the same file")]
    Differs {
        /// The key.
        key: &'static str,
        /// The value of this member.
        here: String,
        /// The value of the other one.
        there: String,
        /// The other one's name.
        name: String,
    },
    /// The test had begun when this member came.
    #[error("the test of this group has begun without this member")]
    Late,
    /// A member died, or fell silent, before the start.
    #[error("{name} {why} before the start")]
    DiedBeforeStart {
        /// The name.
        name: String,
        /// The way it went.
        why: String,
    },
    /// Messages of this size do not go over this transport.
    #[error("msg_size={size} is too long for {transport}: {longest} bytes at most")]
    TooLong {
        /// `msg_size`.
        size: usize,
        /// The transport.
        transport: &'static str,
        /// The longest message.
        longest: usize,
    },
    /// Interrupted by the user.
    #[error("interrupted")]
    Stopped,
    /// The transport failed.
    #[error(transparent)]
    Transport(#[from] io::Error),
}
